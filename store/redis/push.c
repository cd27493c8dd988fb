/* SPDX-License-Identifier: MIT */

/* What Redis pushes to this session (R12), and whether anything of it was missed: each number that was given to it names the one before. */

#include <errno.h>
#include <string.h>
#include <syslog.h>

#include "store/redis/store-redis.h"

#define PUSH_MAX 1024

void push_hear_number(struct store_redis *r, uint64_t before, uint64_t number) {
    if (number > r->given)
        r->given = number;
    if (number <= r->chain)
        return;
    if (before > r->chain) { /* something between was missed, or is still on the other connection */
        if (r->n_early < CHAIN_MAX)
            r->early[r->n_early++] = (struct chain_link) {.before = before, .number = number};
        return;
    }
    r->chain = number;
    for (size_t i = 0; i < r->n_early;) {
        if (r->early[i].before > r->chain) {
            i++;
            continue;
        }
        if (r->early[i].number > r->chain)
            r->chain = r->early[i].number;
        r->early[i] = r->early[--r->n_early];
        i = 0;
    }
}

/* The next word of a push; the text is cut into pieces. */
static char *next_word(char **text) {
    char *word = *text, *end;

    if (!word)
        return NULL;
    end = strchr(word, ' ');
    *text = end ? end + 1 : NULL;
    if (end)
        *end = '\0';
    return word;
}

struct push {
    const char *verb, *id;
    uint64_t one, two;      /* before and number; or position and ticket */
    uint64_t ticket, since; /* 0: not told */
};

/* 0; a positive number: it is of another epoch; -EBADMSG. */
static int push_parse(struct store_redis *r, char *text, struct push *ret) {
    const char *words[7] = {NULL};

    for (size_t i = 0; i < ELEMENTSOF(words); i++)
        words[i] = next_word(&text);
    *ret = (struct push) {.verb = words[0], .id = words[4]};
    if (words[4] && strcmp(words[1], r->epoch) != 0)
        return 1;
    if (!words[4] || reply_number_parse(words[2], &ret->one) < 0 || reply_number_parse(words[3], &ret->two) < 0)
        return -EBADMSG;
    if (strcmp(ret->verb, "revoked") == 0) /* its last words are for people */
        return 0;
    return words[6] && reply_number_parse(words[5], &ret->ticket) == 0 && reply_number_parse(words[6], &ret->since) == 0 ? 0 : -EBADMSG;
}

/* Whoever may publish here may have written it. If it stands for one of ours, the answer to the next heartbeat says what was missed. */
static void meet_nonsense(struct store_redis *r) {
    if (!r->nonsense_told)
        journal_log(redis_journal(r), LOG_WARNING, "a message on this host's channel makes no sense and is ignored");
    r->nonsense_told = true;
    beat_send_untimely(r);
}

/* granted EPOCH BEFORE NUMBER CLAIM TICKET SINCE;  revoked EPOCH BEFORE NUMBER CLAIM REASON;  parked|queued EPOCH POSITION TICKET
 * CLAIM TICKET SINCE. An epoch that is not the one synced with is ignored (R12). */
static void hear_push(struct store_redis *r, char *text) {
    struct push push;
    struct entry *e;
    int k = push_parse(r, text, &push);

    if (k < 0)
        meet_nonsense(r);
    if (k != 0)
        return;
    e = claim_find(r, push.id);
    if (strcmp(push.verb, "parked") == 0 || strcmp(push.verb, "queued") == 0) {
        if (e && push.one <= UINT32_MAX)
            claim_hear_waiting(e, strcmp(push.verb, "parked") == 0, push.ticket, (uint32_t) push.one, push.since);
        return;
    }
    push_hear_number(r, push.one, push.two);
    clock_hear_drawn(r, push.two);
    if (e && strcmp(push.verb, "granted") == 0)
        claim_hear_held(e, push.ticket, push.two, push.since);
    else if (e && strcmp(push.verb, "revoked") == 0) {
        e->claim->released = e->claim->state != CLAIM_STATE_HELD ? push.two : 0;
        claim_hear_revoked(e);
    }
    if (r->n_early > 0) /* the next answer will tell whether something is missing */
        beat_send_untimely(r);
}

void push_on_message(const struct redisReply *reply, void *userdata) {
    struct store_redis *r = userdata;
    char text[PUSH_MAX];

    if (r->stopping || !reply_is(reply_at(reply, 0), "message"))
        return;
    if (reply_copy(reply_at(reply, 2), text, sizeof(text)) == 0)
        hear_push(r, text);
    else
        meet_nonsense(r);
}
