/* SPDX-License-Identifier: MIT */

/* hello: the session is opened or continued, limits are declared, and what hosts disagree about is told. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/store-redis.h"

#define OVERRIDE_KEPT (24 * 3600 * USEC_PER_SEC) /* a cleared one: see limits.lua */

/* Nobody can still repeat the call before it. */
static bool is_forgotten(struct store_redis *r, const struct known_override *o) {
    return strcmp(o->limit, "-") == 0 && !*o->restore && o->version + OVERRIDE_KEPT < r->clock.latest && !hello_find_declared(r, o->pool);
}

static int put_hello(struct store_redis *r, struct redis_command *w) {
    usec_t now = clock_boottime();
    char version[sizeof(r->version) + sizeof(STORE_REDIS_DRAINED)], fresh[ID_TEXT_SIZE];
    int k = id_make(fresh);

    if (k < 0)
        return k;
    fresh[EPOCH_LENGTH] = '\0';
    (void) snprintf(version, sizeof(version), "%s%s", r->version, r->drained ? STORE_REDIS_DRAINED : "");
    link_begin(r, w, REDIS_SCRIPT_HELLO);
    command_add(w, r->replaced);
    command_add(w, r->host);
    command_add(w, r->machine);
    command_add(w, version);
    command_add_u64(w, r->lease_usec);
    command_add_u64(w, r->clock.drawn);
    command_add_u64(w, clock_latest(r, now));
    command_add(w, r->epoch);
    command_add_u64(w, r->own.sent + r->lease_usec > now ? r->own.count : 0);
    command_add_u64(w, beat_dead_count(r, now));
    command_add_u64(w, r->lost);
    command_add(w, fresh);
    command_add_u64(w, r->n_declared);
    for (size_t i = 0; i < r->n_declared; i++) {
        command_add(w, r->declared[i].pool.name);
        if (r->declared[i].pool.elsewhere)
            command_add(w, "host");
        else
            command_add_u64(w, r->declared[i].pool.limit);
    }
    for (size_t i = 0; i < r->n_overrides; i++) {
        const struct known_override *o = &r->overrides[i];

        if (is_forgotten(r, o))
            continue;
        command_add(w, o->pool);
        command_add_u64(w, o->version);
        command_add(w, o->limit);
        command_add(w, o->until);
        command_add(w, o->by);
        command_add(w, o->restore);
        command_add(w, o->reason);
    }
    return 0;
}

static void tell_one_differing(struct store_redis *r, struct declared *d, uint64_t lowest, uint64_t highest, uint64_t elsewhere) {
    const struct event e = {.type = EVENT_LIMITS_DIFFER, .pools = d->pool.name};

    if (lowest != highest && (lowest != d->lowest || highest != d->highest) && !d->pool.elsewhere)
        event_emit(r->events, &e, "hosts declare limits of %" PRIu64 " to %" PRIu64 " for pool %s, this one %" PRIu32
                                  ": the lowest is in force", lowest, highest, d->pool.name, d->pool.limit);
    if (elsewhere > 0 && elsewhere != d->elsewhere)
        event_emit(r->events, &e, "%" PRIu64 " hosts count pool %s each by itself (scope host), others share it (scope cluster); "
                                  "this one has scope %s", elsewhere, d->pool.name, d->pool.elsewhere ? "host" : "cluster");
    d->lowest = lowest;
    d->highest = highest;
    d->elsewhere = elsewhere;
}

static void tell_differing(struct store_redis *r, const struct redisReply *list) {
    for (size_t i = 0; i < r->n_declared; i++) {
        struct declared *d = &r->declared[i];
        uint64_t lowest = 0, highest = 0, elsewhere = 0;
        const struct redisReply *item;

        for (size_t k = 0; (item = reply_at(list, k)); k++)
            if (reply_is(reply_at(item, 0), d->pool.name) &&
                (reply_u64(reply_at(item, 1), &lowest) < 0 || reply_u64(reply_at(item, 2), &highest) < 0 ||
                 reply_u64(reply_at(item, 3), &elsewhere) < 0))
                lowest = highest = elsewhere = 0;
        tell_one_differing(r, d, lowest, highest, elsewhere);
    }
}

static const char *override_of(const struct store_redis *r, const char *pool) {
    for (size_t i = 0; i < r->n_overrides; i++)
        if (strcmp(r->overrides[i].pool, pool) == 0 && strcmp(r->overrides[i].limit, "-") != 0)
            return r->overrides[i].limit;
    return NULL;
}

struct declared *hello_find_declared(struct store_redis *r, const char *pool) {
    for (size_t i = 0; i < r->n_declared; i++)
        if (strcmp(r->declared[i].pool.name, pool) == 0 && !r->declared[i].pool.elsewhere)
            return &r->declared[i];
    return NULL;
}

void hello_tell_lowest(struct store_redis *r, const char *pool, uint64_t lowest, uint64_t cut) {
    struct declared *d = hello_find_declared(r, pool);
    const char *override = override_of(r, pool);
    char limits[NAME_MAX_LENGTH + 40], before[32] = "";

    if (d && d->in_force == lowest)
        return;
    if (d && d->in_force <= UINT32_MAX)
        (void) snprintf(before, sizeof(before), ", it was %" PRIu64, d->in_force);
    if (d)
        d->in_force = lowest;
    (void) snprintf(limits, sizeof(limits), "%s:%" PRIu64 "/declared", pool, lowest);
    event_emit(r->events, &(struct event) {.type = EVENT_LIMIT_CHANGED, .pools = pool, .limits = limits, .clock = cut},
               "the limit of pool %s is %" PRIu64 "%s: the lowest that a host declares%s%s", pool, lowest, before,
               override ? "; in force is an override: " : "", override ? override : "");
}

/* What this answer shows of the pools that this host declares. Before the first one is told by redis-connected nothing is news. */
static void tell_lowest(struct store_redis *r) {
    for (size_t i = 0; i < r->n_declared; i++) {
        const struct declared *d = &r->declared[i];

        if (!d->pool.elsewhere && d->in_force != UINT64_MAX)
            hello_tell_lowest(r, d->pool.name, d->lowest != d->highest ? d->lowest : d->pool.limit, r->cut);
    }
}

/* "db:4/declared,db:2,net:3/declared": the lowest that hosts declare, and the override that is in force instead. */
char *hello_format_limits(struct store_redis *r) {
    char *text = NULL;
    size_t size;
    FILE *f = r->n_declared > 0 ? open_memstream(&text, &size) : NULL;

    for (size_t i = 0; f && i < r->n_declared; i++) {
        struct declared *d = &r->declared[i];
        const char *override = override_of(r, d->pool.name), *comma = ftello(f) > 0 ? "," : "";

        if (d->pool.elsewhere)
            continue;
        d->in_force = d->lowest != d->highest ? d->lowest : d->pool.limit;
        fprintf(f, "%s%s:%" PRIu64 "/declared", comma, d->pool.name, d->in_force);
        if (override)
            fprintf(f, ",%s:%s", d->pool.name, override);
    }
    if (f && fclose(f) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

/* Another one of this name lives, or one with another lease: said once, then asked again as often as a heartbeat would come. The
 * beat clock is watched meanwhile: if that one is dead, this host may say so (R4). */
static void meet_refusal(struct store_redis *r, const struct redisReply *reply, usec_t sent) {
    bool lease = reply_is(reply_at(reply, 0), "lease-differs");
    const char *epoch = reply_text(reply_at(reply, 1)), *word = lease ? "lease-differs" : "name-taken";
    uint64_t count, theirs, latest;

    if (!epoch || reply_u64(reply_at(reply, 3), &count) < 0 || reply_u64(reply_at(reply, 4), &theirs) < 0 ||
        reply_u64(reply_at(reply, 5), &latest) < 0 || beat_hear_ended(r, reply_at(reply, 6), reply_at(reply, 7)) < 0 ||
        beat_hear_undeclared(r, reply_at(reply, 8), false) < 0) {
        link_bad_reply(r, "hello");
        return;
    }
    beat_hear_epoch(r, epoch);
    clock_hear_latest(r, latest, sent);
    r->expiry_usec = theirs > r->lease_usec ? theirs : r->lease_usec;
    beat_add_mark(r, count, sent);
    if (strcmp(r->refused, word) != 0) {
        char why[160];

        (void) snprintf(r->refused, sizeof(r->refused), "%s", word);
        if (lease)
            (void) snprintf(why, sizeof(why), "the namespace lives by a lease of %" PRIu64 " ms, this host's config names %" PRIu64
                            " ms: all must name the same", theirs / USEC_PER_MSEC, r->lease_usec / USEC_PER_MSEC);
        else
            (void) snprintf(why, sizeof(why), "another machine is in the namespace as host %s: give this one a name of its own", r->host);
        link_note_away(r, why);
        event_emit(r->events, &(struct event) {.type = lease ? EVENT_LEASE_DIFFERS : EVENT_HOST_NAME_TAKEN}, "%s", why);
    }
    link_retry(r, r->heartbeat_usec);
    link_away(r);
}

static void hello_on_reply(const struct redisReply *reply, void *userdata) {
    struct store_redis *r = userdata;
    const char *epoch = reply_text(reply_at(reply, 1));
    uint64_t number, grace, count, known, latest;
    usec_t sent = r->beat_sent;

    if (r->phase != PHASE_HELLO)
        return;
    if (reply_is(reply_at(reply, 0), "stale") && reply_u64(reply_at(reply, 1), &number) == 0) {
        r->connection = number + 1; /* the file was older than the truth */
        session_save(r);
        link_hello_again(r);
        return;
    }
    if (reply_is(reply_at(reply, 0), "schema")) {
        link_down(r, REDIS_ERROR_FATAL, "the namespace was written by a newer berth: update this host");
        return;
    }
    if (reply_is(reply_at(reply, 0), "lease-differs") || reply_is(reply_at(reply, 0), "name-taken")) {
        meet_refusal(r, reply, sent);
        return;
    }
    if (reply_is(reply_at(reply, 0), "gone")) {
        session_lost(r, "it is the session of another machine: the runtime directory was copied");
        return;
    }
    if (reply_is(reply_at(reply, 0), "again")) {
        link_hello_again(r);
        return;
    }
    if (!link_judge(r, reply, PHASE_HELLO))
        return;
    if (!epoch || strlen(epoch) >= sizeof(r->epoch) || reply_u64(reply_at(reply, 3), &grace) < 0 ||
        reply_u64(reply_at(reply, 4), &count) < 0 || reply_u64(reply_at(reply, 5), &known) < 0 ||
        reply_u64(reply_at(reply, 6), &latest) < 0 || beat_hear_overrides(r, reply_at(reply, 7)) < 0 ||
        beat_hear_ended(r, reply_at(reply, 10), reply_at(reply, 11)) < 0 || beat_hear_undeclared(r, reply_at(reply, 9), true) < 0 ||
        reply_u64(reply_at(reply, 12), &r->cut) < 0) {
        link_bad_reply(r, "hello");
        return;
    }
    r->refused[0] = '\0';
    r->expiry_usec = r->lease_usec;
    beat_hear_epoch(r, epoch);
    clock_hear_latest(r, latest, sent);
    beat_add_mark(r, count, sent);
    r->own = r->last;
    tell_differing(r, reply_at(reply, 8));
    tell_lowest(r);
    if (!known && !grace && session_was_lost(r)) { /* it was expired while berthd was away */
        session_lost(r, "berthd was away for longer than the lease");
        return;
    }
    r->from_file = false;
    r->replaced[0] = '\0';
    beat_hear_grace(r, grace > 0);
    r->phase = PHASE_SYNC;
    sync_start(r);
}

void hello_say(struct store_redis *r) {
    _cleanup_command_ struct redis_command w = {0};

    r->beat_sent = clock_boottime();
    if (put_hello(r, &w) < 0) {
        link_retry(r, r->heartbeat_usec);
        return;
    }
    r->declare_again = false;
    if (link_call(r, &w, hello_on_reply, r) == -ENOMEM)
        link_retry(r, r->heartbeat_usec);
}

static void hello_on_declared(const struct redisReply *reply, void *userdata) {
    struct store_redis *r = userdata;
    const char *epoch = reply_text(reply_at(reply, 1));

    if (!link_judge(r, reply, PHASE_LIVE))
        return;
    if (!epoch || strcmp(epoch, r->epoch) != 0) {
        if (r->phase == PHASE_LIVE)
            link_resync(r);
        return;
    }
    (void) beat_hear_overrides(r, reply_at(reply, 7));
    (void) beat_hear_ended(r, reply_at(reply, 10), reply_at(reply, 11));
    (void) beat_hear_undeclared(r, reply_at(reply, 9), true);
    (void) reply_u64(reply_at(reply, 12), &r->cut);
    tell_differing(r, reply_at(reply, 8));
    tell_lowest(r);
}

void hello_declare(struct store_redis *r) {
    _cleanup_command_ struct redis_command w = {0};

    r->declare_again = false;
    if (put_hello(r, &w) < 0 || link_call(r, &w, hello_on_declared, r) == -ENOMEM)
        r->declare_again = true;
}
