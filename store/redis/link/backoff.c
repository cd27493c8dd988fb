/* SPDX-License-Identifier: MIT */

#include "store/redis/link/backoff.h"

#include <errno.h>
#include <sys/random.h>

static usec_t at_most(usec_t a, usec_t b) {
    return a < b ? a : b;
}

void backoff_init(struct backoff *b, usec_t heartbeat_usec) {
    *b = (struct backoff){.heartbeat_usec = heartbeat_usec};
}

void backoff_reset(struct backoff *b) {
    b->next_usec = 0;
}

usec_t backoff_longest(const struct backoff *b) {
    return at_most(b->heartbeat_usec, BACKOFF_MAX);
}

usec_t backoff_longest_busy(const struct backoff *b) {
    return b->heartbeat_usec > BACKOFF_MAX ? b->heartbeat_usec : BACKOFF_MAX;
}

usec_t backoff_next(struct backoff *b, usec_t most) {
    usec_t pause = at_most(b->next_usec, most);

    b->next_usec = at_most(pause == 0 ? BACKOFF_MIN : pause * 2, most);
    return pause;
}

usec_t backoff_next_brief(struct backoff *b) {
    usec_t pause = b->next_usec;

    if (pause < BACKOFF_BRIEF)
        return backoff_next(b, at_most(BACKOFF_BRIEF, backoff_longest(b)));
    b->next_usec = at_most(pause + pause / 64, backoff_longest(b));
    return pause;
}

/* Attempts are rare, so each draw asks the kernel. Without randomness it is the middle. */
usec_t backoff_draw_within(usec_t most) {
    uint32_t number = UINT32_MAX / 2;

    while (getrandom(&number, sizeof(number), 0) < 0 && errno == EINTR)
        ;
    return (usec_t) ((double) most * number / UINT32_MAX);
}

usec_t backoff_draw(const struct backoff *b, usec_t pause) {
    if (pause == 0)
        return backoff_draw_within(at_most(b->heartbeat_usec / 10, BACKOFF_FIRST_MAX));
    return pause / 2 + backoff_draw_within(pause);
}
