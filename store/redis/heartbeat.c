/* SPDX-License-Identifier: MIT */

/* Heartbeats: they keep the session alive and push the deadline (R8), tell the dead (R4), end grace (R10), and notice what was
 * missed (R11, R12). */

#include <string.h>
#include <syslog.h>

#include "base/number.h"
#include "store/redis/store-redis.h"

#define OVERRIDES_MAX 1000 /* of pools that this host does not declare */
#define UNTIMELY_MAX 250 /* calls between two heartbeats in time: each may expire 128 claims (R15) */

/* --- what is remembered --- */

void beat_hear_epoch(struct store_redis *r, const char *epoch) {
    if (strcmp(r->epoch, epoch) == 0)
        return;
    (void) snprintf(r->epoch, sizeof(r->epoch), "%s", epoch);
    r->epoch_known = clock_boottime();
    r->n_marks = 0; /* counts of an older epoch mean nothing */
    r->last.count = r->own.count = 0;
    r->grace = false;
    r->lost = DATA_LOSS_NONE;
    r->given = 0;
}

void beat_hear_grace(struct store_redis *r, bool grace) {
    if (grace && !r->grace)
        event_emit(r->events, &(struct event) {.type = EVENT_GRACE_BEGUN, .clock = r->store.known},
                   "a new epoch of the namespace: nothing is granted until all hosts had a lease to say what they hold");
    else if (!grace && r->grace)
        event_emit(r->events, &(struct event) {.type = EVENT_GRACE_ENDED}, "grace has ended: permits are granted again");
    r->grace = grace;
}

void beat_add_mark(struct store_redis *r, uint64_t count, usec_t sent) {
    usec_t now = clock_boottime();

    r->last = (struct mark) {.count = count, .sent = sent, .received = now};
    /* Close ones add nothing; with this distance the marks always reach back over a whole lease. */
    if (r->n_marks > 0 && now < r->marks[r->n_marks - 1].received + r->expiry_usec / (MARKS_MAX / 2))
        return;
    if (r->n_marks == MARKS_MAX) {
        memmove(&r->marks[0], &r->marks[1], (MARKS_MAX - 1) * sizeof(r->marks[0]));
        r->n_marks--;
    }
    r->marks[r->n_marks++] = r->last;
}

uint64_t beat_dead_count(const struct store_redis *r, usec_t now) {
    uint64_t count = 0;

    if (r->last.sent + r->expiry_usec <= now) /* so long unheard, it cannot prove a loss of data (R10): it may be wrong */
        return 0;
    for (size_t i = 0; i < r->n_marks && r->marks[i].received + r->expiry_usec <= now; i++)
        count = r->marks[i].count > count ? r->marks[i].count : count;
    return count;
}

usec_t beat_seen(const struct store_redis *r, uint64_t count, usec_t now) {
    /* It beat after this count was made, which was after we asked for it. */
    if (r->last.count > 0 && r->last.count <= count)
        return usec_sub(now, r->last.sent);
    for (size_t i = r->n_marks; i > 0; i--)
        if (r->marks[i - 1].count <= count)
            return usec_sub(now, r->marks[i - 1].sent);
    /* It has not beaten since we came, and nobody may have been there to expire it: that can be long ago. */
    return USEC_INFINITY;
}

static struct known_override *find_override(struct store_redis *r, const char *pool) {
    for (size_t i = 0; i < r->n_overrides; i++)
        if (strcmp(r->overrides[i].pool, pool) == 0)
            return &r->overrides[i];
    return NULL;
}

static struct known_override *add_override(struct store_redis *r, const char *pool) {
    struct known_override *grown;

    grown = reallocarray(r->overrides, r->n_overrides + 1, sizeof(*grown));
    if (!grown)
        return NULL;
    r->overrides = grown;
    grown = &r->overrides[r->n_overrides++];
    *grown = (struct known_override) {.limit = "-", .until = "0"};
    (void) snprintf(grown->pool, sizeof(grown->pool), "%s", pool);
    return grown;
}

static int hear_override(struct store_redis *r, const struct redisReply *item) {
    struct known_override o, *known;
    char limits[NAME_MAX_LENGTH + 16];
    uint64_t number;

    memset(&o, 0, sizeof(o));
    if (reply_copy(reply_at(item, 0), o.pool, sizeof(o.pool)) < 0 || !name_is_valid(o.pool) ||
        reply_u64(reply_at(item, 1), &o.version) < 0 || reply_copy(reply_at(item, 2), o.limit, sizeof(o.limit)) < 0 ||
        reply_copy(reply_at(item, 3), o.until, sizeof(o.until)) < 0 || reply_copy(reply_at(item, 4), o.by, sizeof(o.by)) < 0 ||
        reply_copy(reply_at(item, 5), o.restore, sizeof(o.restore)) < 0 ||
        reply_copy(reply_at(item, 6), o.reason, sizeof(o.reason)) < 0 || number_parse(o.until, NUMBER_MAX, &number) < 0 ||
        (strcmp(o.limit, "-") != 0 && number_parse(o.limit, UINT32_MAX, &number) < 0))
        return -EBADMSG;
    known = find_override(r, o.pool);
    if (!known && r->n_overrides >= OVERRIDES_MAX && !hello_find_declared(r, o.pool))
        return 0; /* somebody makes pools up: the ones that this host has are remembered all the same */
    if (!known)
        known = add_override(r, o.pool);
    if (!known)
        return -ENOMEM;
    if (o.version > r->overrides_version)
        r->overrides_version = o.version;
    if (o.version <= known->version)
        return 0;
    (void) snprintf(limits, sizeof(limits), "%s:%s", o.pool, o.limit);
    if (r->overrides_heard && strcmp(o.limit, "-") == 0)
        event_emit(r->events, &(struct event) {.type = EVENT_LIMIT_CHANGED, .pools = o.pool, .limits = limits, .clock = o.version},
                   "the limit of pool %s is again what hosts declare", o.pool);
    else if (r->overrides_heard)
        event_emit(r->events,
                   &(struct event) {.type = EVENT_LIMIT_CHANGED, .pools = o.pool, .limits = limits, .clock = o.version,
                                    .reason = *o.reason ? o.reason : NULL},
                   "the limit of pool %s is %s by override", o.pool, o.limit);
    *known = o;
    return 0;
}

int beat_hear_overrides(struct store_redis *r, const struct redisReply *list) {
    size_t n;
    int k = reply_count(list, &n);

    for (size_t i = 0; k >= 0 && i < n; i++)
        k = hear_override(r, reply_at(list, i));
    if (k >= 0)
        r->overrides_heard = true;
    return k;
}

/* Sessions that this call expired or that ended in it, and the held claims that went with them. */
int beat_hear_ended(struct store_redis *r, const struct redisReply *ended, const struct redisReply *reclaimed) {
    const struct redisReply *item;
    size_t n;

    if (reply_count(ended, &n) < 0 || reply_count(reclaimed, &n) < 0)
        return -EBADMSG;
    for (size_t i = 0; (item = reply_at(ended, i)); i++) {
        const char *session = reply_text(reply_at(item, 0)), *host = reply_text(reply_at(item, 1));
        uint64_t clock;

        if (!session || !host || reply_u64(reply_at(item, 2), &clock) < 0)
            return -EBADMSG;
        if (strcmp(session, r->replaced) != 0)
            event_emit(r->events, &(struct event) {.type = EVENT_HOST_EXPIRED, .host = host, .clock = clock},
                       "host %s has not been heard of for a lease: what it held or waited for is given back", host);
    }
    for (size_t i = 0; (item = reply_at(reclaimed, i)); i++) {
        const char *host = reply_text(reply_at(item, 1)), *name = reply_text(reply_at(item, 2));
        const char *run = reply_text(reply_at(item, 3)), *pools = reply_text(reply_at(item, 4));
        uint64_t token, clock;

        if (!host || !name || !run || !pools || reply_u64(reply_at(item, 5), &token) < 0 || reply_u64(reply_at(item, 6), &clock) < 0)
            return -EBADMSG;
        event_emit(r->events,
                   &(struct event) {.type = EVENT_RECLAIMED, .job = name, .run = run, .pools = pools, .host = host, .token = token,
                                    .clock = clock},
                   "permits of %s (%s) on host %s are given back: its lease is over", name, pools, *host ? host : "(its name is lost)");
    }
    return 0;
}

/* Limits that are in force no more because sessions ended. */
int beat_hear_undeclared(struct store_redis *r, const struct redisReply *list, bool but_own) {
    const struct redisReply *item;

    for (size_t i = 0; (item = reply_at(list, i)); i++) {
        const char *pool = reply_text(reply_at(item, 0));
        uint64_t clock, lowest;

        if (!pool || reply_u64(reply_at(item, 2), &clock) < 0)
            return -EBADMSG;
        if (reply_u64(reply_at(item, 1), &lowest) == 0 && !(but_own && hello_find_declared(r, pool))) /* -1: nobody has it any more */
            hello_tell_lowest(r, pool, lowest, clock);
    }
    return 0;
}

/* --- the deadline --- */

static void push_deadline(struct store_redis *r, usec_t sent) {
    usec_t deadline = sent + r->lease_usec - settings_margin(r->lease_usec);

    if (deadline <= r->store.deadline)
        return;
    r->store.deadline = deadline;
    r->late_told = false;
    (void) sd_event_source_set_time(r->deadline_timer, deadline);
    (void) sd_event_source_set_enabled(r->deadline_timer, SD_EVENT_ONESHOT);
    r->store.listener.on_deadline(&r->store, deadline, r->store.listener.userdata);
}

static int beat_on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
    struct store_redis *r = userdata;

    (void) source, (void) usec;
    if (r->store.deadline > 0 && clock_boottime() >= r->store.deadline && !r->stopping)
        session_lost(r, "no heartbeat was answered in time");
    return 0;
}

/* --- the heartbeat --- */


/* Whether something that concerns this session was missed. */
static bool judge_numbers(struct store_redis *r, uint64_t last, uint64_t claims) {
    bool missed = (r->early_sent && r->n_early > 0) || (r->doubt > 0 && r->chain < r->doubt) || claims != r->n_named;

    r->doubt = last > r->chain ? last : 0;
    return missed;
}

static void say_what_waits(struct store_redis *r) {
    r->beaten = true;
    r->unsaid = false;
    if (r->declare_again)
        hello_declare(r);
    claim_flush(r);
    admin_flush(r);
    inspect_flush(r);
}

/* Redis's memory went back, though it is the same Redis: it was restored to a state before what this host has seen (R10). */
static bool went_back(const struct store_redis *r, uint64_t count, uint64_t drawn) {
    return count <= r->own.count || drawn < r->beat_drawn;
}

static void beat_on_reply(const struct redisReply *reply, void *userdata) {
    struct store_redis *r = userdata;
    bool has_news = reply_text(reply) == NULL, resync;
    uint64_t more, grace, count, last, claims, drawn, latest = 0;
    usec_t sent = r->beat_sent;
    struct reply_line line;

    r->beat_under_way = false;
    if (r->phase != PHASE_LIVE || !link_judge(r, reply, PHASE_LIVE))
        return;
    if (reply_line_read(has_news ? reply_at(reply, 0) : reply, &line) < 0 || reply_line_u64(&line, 2, &more) < 0 ||
        reply_line_u64(&line, 3, &grace) < 0 || reply_line_u64(&line, 4, &count) < 0 || reply_line_u64(&line, 5, &last) < 0 ||
        reply_line_u64(&line, 6, &claims) < 0 || reply_line_u64(&line, 7, &drawn) < 0 || (has_news && reply_line_u64(&line, 8, &latest) < 0) ||
        (has_news && (beat_hear_overrides(r, reply_at(reply, 1)) < 0 || beat_hear_ended(r, reply_at(reply, 2), reply_at(reply, 3)) < 0 ||
                      beat_hear_undeclared(r, reply_at(reply, 4), false) < 0))) {
        link_bad_reply(r, "beat");
        return;
    }
    if (r->store.deadline > 0 && clock_boottime() >= r->store.deadline) {
        session_lost(r, "its heartbeat was answered too late"); /* the timer has not had its turn yet */
        return;
    }
    if (went_back(r, count, drawn)) {
        r->lost = DATA_LOSS_SEEN;
        link_resync(r);
        return;
    }
    clock_hear_drawn(r, drawn);
    if (latest > 0)
        clock_hear_latest(r, latest, sent);
    beat_add_mark(r, count, sent);
    r->own = r->last;
    session_save_clock(r);
    resync = judge_numbers(r, last, claims);
    if (last <= r->chain && !resync)
        r->store.known = drawn;
    push_deadline(r, sent);
    beat_hear_grace(r, grace > 0);
    redis_set_state(r, grace > 0 ? STORE_STATE_GRACE : STORE_STATE_READY);
    if (grace == 0)
        admin_answer_grace(r);
    if (r->phase != PHASE_LIVE)
        return;
    if (!r->beaten || r->unsaid)
        say_what_waits(r);
    claim_tell_granted(r);
    if (r->phase == PHASE_LIVE && resync)
        link_resync(r);
    else if (r->phase == PHASE_LIVE && (more > 0 || r->beat_again))
        beat_send_untimely(r);
    else
        look_send(r);
    if (!resync)
        link_calm(r, sent);
    link_check(r);
}

/* In grace Redis hears what this host remembers. Else it is asked now and then what to remember: that costs more than a heartbeat. */
static void put_clock(struct store_redis *r, struct redis_command *w, usec_t now) {
    if (!r->grace && r->beats++ % 16 != 0)
        return;
    command_add_u64(w, admin_is_ending_grace(r) ? USEC_INFINITY / 2 : usec_sub(now, r->epoch_known));
    command_add_u64(w, r->grace ? clock_latest(r, now) : 0);
}

void beat_send(struct store_redis *r) {
    _cleanup_command_ struct redis_command w = {0};
    usec_t now = clock_boottime();

    if (r->phase != PHASE_LIVE || r->stopping)
        return;
    if (r->beat_under_way) {
        r->beat_again = true;
        return;
    }
    link_begin(r, &w, REDIS_SCRIPT_BEAT);
    command_add(&w, r->epoch);
    command_add_u64(&w, beat_dead_count(r, now));
    command_add_u64(&w, r->own.count);
    command_add_u64(&w, r->overrides_version);
    command_add_u64(&w, r->given);
    put_clock(r, &w, now);
    r->beat_sent = now;
    r->beat_drawn = r->clock.drawn;
    r->beat_again = false;
    r->early_sent = r->n_early > 0;
    if (link_call(r, &w, beat_on_reply, r) == 0)
        r->beat_under_way = true;
}

bool beat_may_go_on(struct store_redis *r) {
    if (r->n_untimely == UNTIMELY_MAX)
        return false;
    r->n_untimely++;
    return true;
}

void beat_send_untimely(struct store_redis *r) {
    if (beat_may_go_on(r))
        beat_send(r);
}

/* Each heartbeat's time, connected or not. */
static int beat_on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
    struct store_redis *r = userdata;
    usec_t now = clock_boottime();

    (void) source, (void) usec;
    (void) sd_event_source_set_time(r->beat_timer, now + r->heartbeat_usec);
    (void) sd_event_source_set_enabled(r->beat_timer, SD_EVENT_ONESHOT);
    if (r->store.deadline > 0 && !r->late_told) {
        usec_t age = usec_sub(now, r->store.deadline - r->lease_usec + settings_margin(r->lease_usec));

        if (age > r->lease_usec / 2) {
            r->late_told = true;
            event_emit(r->events, &(struct event) {.type = EVENT_LEASE_LATE},
                       "the last heartbeat that was answered was sent %" PRIu64 " ms ago, the lease is %" PRIu64 " ms",
                       age / USEC_PER_MSEC, r->lease_usec / USEC_PER_MSEC);
        }
    }
    r->n_untimely = 0;
    if (!r->beat_under_way)
        beat_send(r);
    return 0;
}

void beat_start(struct store_redis *r) {
    r->beaten = false;
    (void) sd_event_source_set_time(r->beat_timer, clock_boottime() + r->heartbeat_usec);
    (void) sd_event_source_set_enabled(r->beat_timer, SD_EVENT_ONESHOT);
    beat_send(r);
}

void beat_reset(struct store_redis *r) {
    r->beat_under_way = r->beat_again = r->beaten = false;
    r->early_sent = false;
    r->n_early = 0;
    r->doubt = 0;
    if (r->stopping) {
        (void) sd_event_source_set_enabled(r->beat_timer, SD_EVENT_OFF);
        (void) sd_event_source_set_enabled(r->deadline_timer, SD_EVENT_OFF);
    }
}

int beat_init(struct store_redis *r) {
    int k = sd_event_add_time(r->event, &r->beat_timer, CLOCK_BOOTTIME, 0, 1000, beat_on_timer, r);

    if (k >= 0)
        k = sd_event_source_set_enabled(r->beat_timer, SD_EVENT_OFF);
    if (k >= 0)
        k = sd_event_add_time(r->event, &r->deadline_timer, CLOCK_BOOTTIME, 0, 1000, beat_on_deadline, r);
    return k < 0 ? k : sd_event_source_set_enabled(r->deadline_timer, SD_EVENT_OFF);
}

void beat_done(struct store_redis *r) {
    sd_event_source_disable_unref(r->beat_timer);
    sd_event_source_disable_unref(r->deadline_timer);
}
