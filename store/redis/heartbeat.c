/* SPDX-License-Identifier: MIT */

#include <stdlib.h>
#include <string.h>

#include "store/redis/store-redis.h"

#define EXTRA_MAX 250   /* calls between two regular heartbeats; each may expire 128 claims (R15) */
#define IDLE_PART 3     /* of the lease: the pause of an idle host; a half leaves no room for a lost one */
#define LATEST_EVERY 16 /* heartbeats, 8 of an idle host, of which one asks for the latest number, which costs more */

/* --- the deadline --- */

static void extend_deadline(struct store_redis *store, usec_t sent) {
    usec_t deadline = sent + store->env.lease_usec - settings_margin(store->env.lease_usec);

    if (deadline <= store->base.deadline)
        return;
    store->base.deadline = deadline;
    store->heartbeat.late_logged = false;
    timer_set(&store->heartbeat.deadline_timer, deadline);
    store->base.listener.on_deadline(&store->base, deadline, store->base.listener.userdata);
}

bool heartbeat_is_past_deadline(const struct store_redis *store) {
    return store->base.deadline > 0 && clock_boottime() >= store->base.deadline;
}

void heartbeat_drop_deadline(struct store_redis *store) {
    store->base.deadline = 0;
}

static void heartbeat_on_deadline(void *userdata) {
    struct store_redis *store = userdata;

    if (heartbeat_is_past_deadline(store) && !store->stop.is_under_way)
        session_lose(store, "no heartbeat was answered in time");
}

/* --- replies --- */

static void send_pending(struct store_redis *store) {
    store->heartbeat.is_answered = true;
    store->heartbeat.resend_due = false;
    hello_declare_due(store);
    turns_report(store); /* first: Redis commits no turn of an earlier epoch */
    claims_send_pending(store);
    admin_send_pending(store);
    inspect_send_pending(store);
}

/* Returns whether Redis was restored to an earlier state without a new epoch (R10). */
static bool went_backwards(const struct store_redis *store, const struct heartbeat_reply *reply) {
    return reply->count <= store->samples.own.count || reply->drawn < store->heartbeat.drawn_before;
}

/* --- round trips --- */

const struct histogram_bounds status_round_trip_bounds = {
    .n = 11,
    .upper = {500, 1 * USEC_PER_MSEC, 2 * USEC_PER_MSEC, 5 * USEC_PER_MSEC, 10 * USEC_PER_MSEC, 25 * USEC_PER_MSEC,
              50 * USEC_PER_MSEC, 100 * USEC_PER_MSEC, 250 * USEC_PER_MSEC, 1 * USEC_PER_SEC, 5 * USEC_PER_SEC},
};

static void note_round_trip(struct store_redis *store, usec_t sent) {
    struct heartbeat *heartbeat = &store->heartbeat;

    usec_t took = usec_sub(store->samples.own.received, sent);

    heartbeat->round_trips[heartbeat->n_round_trips++ % HEARTBEAT_ROUND_TRIPS] = took;
    histogram_add(&heartbeat->all_round_trips, &status_round_trip_bounds, took);
    heartbeat->answered_sent = sent;
}

static int compare_usec(const void *a, const void *b) {
    usec_t x = *(const usec_t *) a, y = *(const usec_t *) b;

    return (x > y) - (x < y);
}

usec_t heartbeat_round_trip(const struct store_redis *store) {
    const struct heartbeat *heartbeat = &store->heartbeat;
    size_t n =
        heartbeat->n_round_trips < HEARTBEAT_ROUND_TRIPS ? heartbeat->n_round_trips : HEARTBEAT_ROUND_TRIPS;
    usec_t sorted[HEARTBEAT_ROUND_TRIPS];

    if (n == 0)
        return 0;
    memcpy(sorted, heartbeat->round_trips, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare_usec);
    return sorted[n / 2] > 0 ? sorted[n / 2] : 1;
}

/* --- what a reply changes --- */

static int apply_news(struct store_redis *store, const struct heartbeat_reply *reply) {
    int r = limits_apply_overrides(store, reply->overrides);

    if (r >= 0)
        expired_log(store, &reply->sessions, false);
    return r;
}

static void heartbeat_on_reply(const struct redisReply *reply, void *userdata) {
    struct store_redis *store = userdata;
    struct heartbeat_reply beat;
    usec_t sent = store->heartbeat.sent;
    bool resync, ends_grace;

    store->heartbeat.is_under_way = false;
    if (store->link.phase != PHASE_LIVE || !call_accept_reply(store, reply, PHASE_LIVE))
        return;
    if (heartbeat_reply_parse(reply, &beat) < 0) {
        call_bad_reply(store, "heartbeat");
        return;
    }
    if (beat.has_news && apply_news(store, &beat) < 0) {
        link_fail(store, REDIS_ERROR_RETRY, strerror(ENOMEM));
        return;
    }
    if (heartbeat_is_past_deadline(store)) { /* the timer is due, but has not fired yet */
        session_lose(store, "its heartbeat was answered too late");
        return;
    }
    if (went_backwards(store, &beat)) {
        epoch_note_data_loss(store, DATA_LOSS_SEEN);
        link_resync(store);
        return;
    }
    clock_observe_drawn(store, beat.drawn);
    if (beat.latest > 0)
        clock_observe_latest(store, beat.latest, sent);
    samples_add(store, beat.count, sent, true);
    note_round_trip(store, sent);
    session_save_clock(store);
    resync = push_check_gaps(store, beat.last_number) || beat.n_claims != store->table.n_confirmed;
    if (beat.last_number <= store->pushes.seq && !resync)
        store->base.known = beat.drawn;
    extend_deadline(store, sent);
    ends_grace = store->epoch.in_grace && !beat.grace;
    epoch_set_grace(store, beat.grace);
    store_redis_set_state(store, beat.grace ? STORE_STATE_GRACE : STORE_STATE_READY);
    if (!beat.grace)
        admin_answer_grace(store);
    if (ends_grace && !store->session.namespace[0])
        hello_declare(store); /* gives the namespace an id, or gets the one that it has */
    if (store->link.phase != PHASE_LIVE)
        return;
    if (!store->heartbeat.is_answered || store->heartbeat.resend_due)
        send_pending(store);
    claims_deliver_grants(store);
    turns_look(store);
    if (store->link.phase == PHASE_LIVE && resync)
        link_resync(store);
    else if (store->link.phase == PHASE_LIVE && (beat.more > 0 || store->heartbeat.repeat))
        heartbeat_send_extra(store);
    else
        verify_some(store);
    if (!resync)
        link_reset_backoff(store, sent);
    handshake_recheck(store);
}

/* --- calls --- */

/* Adds what this host knows of the clock if it is in grace; otherwise asks for the latest number every so often. What
 * the host publishes follows. */
static void add_clock(struct store_redis *store, struct redis_command *command, usec_t now) {
    bool in_grace = store->epoch.in_grace, asks, publishes = publish_is_due(store);
    unsigned every = store->heartbeat.is_slow ? LATEST_EVERY / 2 : LATEST_EVERY;

    asks = in_grace || store->heartbeat.n_sent++ % every == 0;
    if (!asks && !publishes)
        return;
    /* A lease has passed for an administrator who ends grace. */
    command_add_u64(command, admin_is_ending_grace(store) ? USEC_INFINITY / 2
                                                          : usec_sub(usec_sub(now, store->epoch.known_since), slot_failover_margin(store)));
    command_add_u64(command, in_grace ? clock_latest(store, now) : 0);
    if (publishes)
        publish_add(store, command);
}

void heartbeat_send(struct store_redis *store) {
    _cleanup_command_ struct redis_command command = {0};
    struct heartbeat *heartbeat = &store->heartbeat;
    usec_t now = clock_boottime();

    if (store->link.phase != PHASE_LIVE || store->stop.is_under_way)
        return;
    if (heartbeat->is_under_way) {
        heartbeat->repeat = true;
        return;
    }
    call_begin(store, &command, REDIS_SCRIPT_HEARTBEAT);
    command_add_u64(&command, samples_dead_count(store, now));
    command_add_u64(&command, store->samples.own.count);
    command_add_u64(&command, store->limits.overrides_version);
    command_add_u64(&command, store->pushes.highest);
    add_clock(store, &command, now);
    heartbeat->sent = now;
    heartbeat->drawn_before = store->clock.drawn;
    heartbeat->repeat = false;
    push_note_heartbeat(store);
    if (call_send(store, &command, heartbeat_on_reply, store) == 0)
        heartbeat->is_under_way = true;
}

bool heartbeat_take_extra(struct store_redis *store) {
    if (store->heartbeat.n_extra == EXTRA_MAX)
        return false;
    store->heartbeat.n_extra++;
    return true;
}

static void reset_extra(struct store_redis *store) {
    store->heartbeat.n_extra = 0;
}

void heartbeat_begin_connection(struct store_redis *store) {
    reset_extra(store);
    store->heartbeat.n_round_trips = 0;
}

void heartbeat_send_extra(struct store_redis *store) {
    if (heartbeat_take_extra(store))
        heartbeat_send(store);
}

bool heartbeat_is_ready(const struct store_redis *store) {
    return store->link.phase == PHASE_LIVE && store->heartbeat.is_answered;
}

void heartbeat_request_resend(struct store_redis *store) {
    store->heartbeat.resend_due = true;
}

static void log_late(struct store_redis *store, usec_t now) {
    usec_t lease = store->env.lease_usec,
           age = usec_sub(now, store->base.deadline - lease + settings_margin(lease));

    if (store->base.deadline == 0 || store->heartbeat.late_logged || age <= lease / 2)
        return;
    store->heartbeat.late_logged = true;
    event_emit(store->env.events, &(struct event) {.type = EVENT_LEASE_LATE},
               "the last answered heartbeat was sent %" PRIu64 " ms ago, the lease is %" PRIu64 " ms",
               age / USEC_PER_MSEC, lease / USEC_PER_MSEC);
}

/* Returns whether this host has no claim that the lease protects, no grace to end, and shares no job (R18). */
static bool is_idle(const struct store_redis *store) {
    return list_is_empty(&store->table.entries) && store->base.state == STORE_STATE_READY &&
           !limits_has_job(store);
}

/* Returns 0.9 to 1.1 thirds of the lease. Returns the usual interval if a new connection after an unanswered heartbeat
 * could come too late for the lease: the session would expire although its host lives. */
static usec_t idle_pause(const struct store_redis *store) {
    const struct redis_settings *settings = &store->link.settings;
    usec_t lease = store->env.lease_usec, jitter = lease / IDLE_PART / 10, least = lease / IDLE_PART - jitter,
           noticed = usec_add(settings->timeout_usec, settings->connect_timeout_usec);

    if (usec_add(least + 2 * jitter, noticed) >= lease - settings_margin(lease))
        return store->env.heartbeat_usec;
    return least + backoff_draw_within(2 * jitter);
}

static void set_timer(struct store_redis *store, usec_t at) {
    store->heartbeat.due = at;
    timer_set(&store->heartbeat.timer, at);
}

static void arm_timer(struct store_redis *store, usec_t now) {
    usec_t pause = is_idle(store) ? idle_pause(store) : 0;

    store->heartbeat.is_slow = pause > store->env.heartbeat_usec;
    set_timer(store, now + (store->heartbeat.is_slow ? pause : store->env.heartbeat_usec));
}

void heartbeat_wake(struct store_redis *store) {
    if (!store->heartbeat.is_slow)
        return;
    store->heartbeat.is_slow = false;
    set_timer(store, usec_add(store->heartbeat.sent, store->env.heartbeat_usec));
}

#define DAY (UINT64_C(86400) * USEC_PER_SEC)

/* Keeps the longest of a day. The process was stopped, or the machine was suspended, or it had no time for berthd. */
static void note_standstill(struct store_redis *store, usec_t now) {
    struct redis_standstill *longest = &store->heartbeat.standstill;
    usec_t late = usec_sub(now, store->heartbeat.due);

    if (late <= store->env.heartbeat_usec || (late < longest->lasted && now < usec_add(longest->at, DAY)))
        return;
    *longest = (struct redis_standstill) {.at = now, .lasted = late};
}

/* Fires whether the link is live or not. */
static void heartbeat_on_timer(void *userdata) {
    struct store_redis *store = userdata;
    usec_t now = clock_boottime();

    note_standstill(store, now);
    arm_timer(store, now);
    log_late(store, now);
    reset_extra(store);
    if (!store->heartbeat.is_under_way)
        heartbeat_send(store);
}

void heartbeat_start(struct store_redis *store) {
    store->heartbeat.is_answered = store->heartbeat.is_slow = false;
    publish_again(store);
    /* Hosts that came back together send their next heartbeats apart. */
    set_timer(store, clock_boottime() + backoff_draw_within(store->env.heartbeat_usec));
    heartbeat_send(store);
}

void heartbeat_reset(struct store_redis *store) {
    struct heartbeat *heartbeat = &store->heartbeat;

    heartbeat->is_under_way = heartbeat->repeat = heartbeat->is_answered = false;
    push_reset_gaps(store);
    if (store->stop.is_under_way) {
        timer_off(&heartbeat->timer);
        timer_off(&heartbeat->deadline_timer);
    }
}

int heartbeat_init(struct store_redis *store) {
    struct heartbeat *heartbeat = &store->heartbeat;
    sd_event *event = store->env.event;
    int r = timer_init(&heartbeat->timer, event, SD_EVENT_PRIORITY_NORMAL, heartbeat_on_timer, store);

    return r < 0 ? r
                 : timer_init(&heartbeat->deadline_timer, event, SD_EVENT_PRIORITY_NORMAL, heartbeat_on_deadline,
                              store);
}

void heartbeat_done(struct store_redis *store) {
    timer_done(&store->heartbeat.timer);
    timer_done(&store->heartbeat.deadline_timer);
}
