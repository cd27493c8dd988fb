/* SPDX-License-Identifier: MIT */

#include <string.h>

#include "store/redis/store-redis.h"

void samples_add(struct store_redis *store, uint64_t count, usec_t sent, bool is_own) {
    struct samples *samples = &store->samples;
    usec_t now = clock_boottime();

    samples->newest = (struct heartbeat_sample) {.count = count, .sent = sent, .received = now};
    if (is_own)
        samples->own = samples->newest;
    /* Close ones add nothing. At this distance the items always reach back over a whole lease. */
    if (samples->n > 0 &&
        now < samples->items[samples->n - 1].received + samples->expiry_usec / (SAMPLES_MAX / 2))
        return;
    if (samples->n == SAMPLES_MAX) {
        memmove(&samples->items[0], &samples->items[1], (SAMPLES_MAX - 1) * sizeof(samples->items[0]));
        samples->n--;
    }
    samples->items[samples->n++] = samples->newest;
}

void samples_reset(struct store_redis *store) {
    store->samples.n = 0;
    store->samples.newest.count = store->samples.own.count = 0;
}

void samples_set_expiry(struct store_redis *store, usec_t expiry_usec) {
    store->samples.expiry_usec = expiry_usec;
}

uint64_t samples_dead_count(const struct store_redis *store, usec_t now) {
    const struct samples *samples = &store->samples;
    uint64_t count = 0;

    /* Without a reply for a lease this host may have missed a loss of data (R10): no proof. */
    if (samples->newest.sent + samples->expiry_usec <= now)
        return 0;
    for (size_t i = 0; i < samples->n && samples->items[i].received + samples->expiry_usec <= now; i++)
        count = samples->items[i].count > count ? samples->items[i].count : count;
    return count;
}

usec_t samples_last_seen(const struct store_redis *store, uint64_t count, usec_t now) {
    const struct samples *samples = &store->samples;

    /* The session's heartbeat came after this count, which was drawn after the sample was sent. */
    if (samples->newest.count > 0 && samples->newest.count <= count)
        return usec_sub(now, samples->newest.sent);
    for (size_t i = samples->n; i > 0; i--)
        if (samples->items[i - 1].count <= count)
            return usec_sub(now, samples->items[i - 1].sent);
    /* No heartbeat since this host joined. The last one may be long ago if no host could expire it. */
    return USEC_INFINITY;
}
