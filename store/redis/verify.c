/* SPDX-License-Identifier: MIT */

/* Looks once a lease whether Redis still has some of the claims that it confirmed, where they must be: nobody waits for ever because
 * somebody deleted a key. Heartbeats cannot see that, their cost does not depend on claims. */

#include <string.h>
#include <syslog.h>

#include "store/redis/store-redis.h"

#define LOOK_CLAIMS 8 /* in one call */
#define LOOK_STEPS 64 /* entries walked over to find them */

void look_forget(struct entry *e) {
    struct store_redis *r = e->redis;

    if (r->look == e)
        r->look = e->link.next == &r->entries ? NULL : list_entry(e->link.next, struct entry, link);
}

static void look_on_reply(const struct redisReply *reply, void *userdata) {
    struct store_redis *r = userdata;
    struct reply_line line;
    uint64_t more, odd;

    r->look_under_way = false;
    if (r->phase != PHASE_LIVE)
        return;
    if (reply_is(reply_at(reply, 2), "broken"))
        journal_log(redis_journal(r), LOG_WARNING,
                    "somebody deleted keys of this namespace: all hosts tell anew what they hold, nothing is granted for a lease");
    if (!link_judge(r, reply, PHASE_LIVE))
        return;
    if (reply_line_read(reply, &line) < 0 || reply_line_u64(&line, 2, &more) < 0 || reply_line_u64(&line, 3, &odd) < 0) {
        link_bad_reply(r, "look");
        return;
    }
    if (odd > 0) {
        journal_log(redis_journal(r), LOG_WARNING, "Redis does not have all that this host has told it: it is told anew");
        link_resync(r);
    } else if (more > 0) {
        beat_send_untimely(r);
    }
}

static bool is_to_be_seen(const struct entry *e) {
    return e->named && !e->lost && !e->revoked && !e->renew && !list_is_linked(&e->finish) && e->claim->state != CLAIM_STATE_RELEASING;
}

static struct entry *next_entry(struct store_redis *r, struct entry *e) {
    return !e || e->link.next == &r->entries ? list_first(&r->entries, struct entry, link) : list_entry(e->link.next, struct entry, link);
}

/* Some claims from where the last look ended on, each once. */
static size_t put_claims(struct store_redis *r, struct redis_command *w) {
    struct entry *first = r->look ? r->look : next_entry(r, NULL), *e = first;
    size_t n = 0;

    for (size_t i = 0; e && i < LOOK_STEPS && n < LOOK_CLAIMS && (i == 0 || e != first); i++) {
        if (is_to_be_seen(e)) {
            command_add(w, e->claim->id);
            n++;
        }
        e = next_entry(r, e);
    }
    r->look = e;
    return n;
}

void look_send(struct store_redis *r) {
    _cleanup_command_ struct redis_command w = {0};
    usec_t now = clock_boottime();

    if (r->phase != PHASE_LIVE || r->look_under_way || now < usec_add(r->looked, r->lease_usec) || r->n_named == 0)
        return;
    r->looked = now;
    link_begin(r, &w, REDIS_SCRIPT_LOOK);
    command_add(&w, r->epoch);
    if (put_claims(r, &w) > 0 && link_call(r, &w, look_on_reply, r) == 0)
        r->look_under_way = true;
}
