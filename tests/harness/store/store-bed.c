/* SPDX-License-Identifier: MIT */
#include "tests/harness/store/store-bed.h"

#include <stdlib.h>
#include <string.h>

#include "tests/harness/clock-file.h"

#define TURN (5 * USEC_PER_MSEC) /* step of the test's clock */

/* --- the listener --- */

static struct probe *hear(struct claim *c, enum claim_state expected) {
    struct probe *p = list_entry(c, struct probe, claim);

    CU_ASSERT_FALSE(p->bed->in_call);
    TEST_INT(c->state, expected);
    p->ticket = c->ticket;
    p->token = c->token;
    return p;
}

static void on_waiting(struct claim *c, void *userdata _unused_) {
    bool parked = c->state == CLAIM_STATE_PARKED;
    struct probe *p = hear(c, parked ? CLAIM_STATE_PARKED : CLAIM_STATE_WAITING);

    CU_ASSERT(c->ticket > 0);
    CU_ASSERT(c->since_realtime > 0);
    TEST_INT(c->token, 0);
    CU_ASSERT(parked || c->position > 0);
    p->was_parked |= parked;
    p->n_waiting++;
}

static void on_granted(struct claim *c, void *userdata _unused_) {
    struct probe *p = hear(c, CLAIM_STATE_HELD);

    CU_ASSERT(c->ticket > 0);
    CU_ASSERT(c->token >= c->ticket);
    p->n_granted++;
    p->grant_number = ++p->bed->n_grants;
    if (p->bed->on_granted)
        p->bed->on_granted(p);
}

static void on_refused(struct claim *c, enum store_refusal refusal, const char *pool, void *userdata _unused_) {
    struct probe *p = list_entry(c, struct probe, claim);

    CU_ASSERT_FALSE(p->bed->in_call);
    TEST_INT(c->state, CLAIM_STATE_NONE);
    CU_ASSERT(demands_get(&p->demands, pool) > 0);
    p->n_refused++;
    p->refusal = refusal;
    snprintf(p->refused_pool, sizeof(p->refused_pool), "%s", pool);
}

static void on_lost(struct claim *c, enum store_loss loss, void *userdata _unused_) {
    struct probe *p = list_entry(c, struct probe, claim);

    CU_ASSERT_FALSE(p->bed->in_call);
    p->n_lost++;
    p->loss = loss;
}

static void on_released(struct claim *c, void *userdata _unused_) {
    struct probe *p = list_entry(c, struct probe, claim);

    CU_ASSERT_FALSE(p->bed->in_call);
    TEST_INT(c->state, CLAIM_STATE_NONE);
    p->n_released++;
}

static void on_moved(struct claim *c, void *userdata _unused_) {
    struct probe *p = list_entry(c, struct probe, claim);

    CU_ASSERT_FALSE(p->bed->in_call);
    CU_ASSERT_FALSE(p->bed->fixture->host_scope);
    CU_ASSERT(c->moved > 0);
    p->n_moved++;
}

static void on_deadline(struct store *s, usec_t deadline, void *userdata) {
    struct bed *b = userdata;

    CU_ASSERT_FALSE(b->in_call);
    CU_ASSERT_FALSE(b->fixture->host_scope); /* no lease there */
    CU_ASSERT(s->deadline == deadline);
}

static void on_state(struct store *s, enum store_state state, void *userdata) {
    struct bed *b = userdata;

    CU_ASSERT_FALSE(b->in_call);
    TEST_INT(s->state, state);
    b->n_states++;
}

/* --- the loop --- */

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata _unused_) {
    return 0; /* wakes sd_event_run() only */
}

/* The clock stands until nothing is left to do without it, however busy the machine is. */
static bool turn_on_own_clock(struct bed *b, usec_t left) {
    bool idle = !b->fixture->is_idle || b->fixture->is_idle(b->fixture->userdata); /* before events are collected */
    int n = sd_event_run(b->event, 0);

    if (n == 0 && idle)
        clock_file_stand(&own_clock, clock_boottime() + (left < TURN ? left : TURN));
    else if (n == 0)
        n = sd_event_run(b->event, USEC_PER_MSEC); /* true ones: for the answer */
    return n >= 0;
}

bool bed_turn(struct bed *b, usec_t end) {
    usec_t left = usec_sub(end, clock_boottime());

    if (left > 0 && own_clock.words)
        return turn_on_own_clock(b, left);
    return left > 0 && sd_event_run(b->event, left) >= 0;
}

/* --- turns --- */

static void on_turn_refused(struct claim *c, const struct store_turn_answer *answer, void *userdata) {
    struct bed *b = userdata;

    (void) answer;
    TEST_INT(c->state, CLAIM_STATE_NONE);
    b->n_turns_refused++;
}

static void on_committed(struct claim *c, bool is_ours, void *userdata) {
    struct bed *b = userdata;

    TEST_INT(c->state, CLAIM_STATE_HELD);
    b->n_committed += is_ours;
}

static void on_turn_open(struct store *s, const struct store_open_turn *turn, void *userdata) {
    struct bed *b = userdata;

    CU_ASSERT(s && turn->attempt > 0);
    b->n_opened++;
}

static void on_turn_superseded(struct claim *c, const struct store_ended_turn *turn, void *userdata) {
    (void) userdata;
    CU_ASSERT(c->turn && turn->due < c->turn->due && turn->attempt > 0);
}

/* --- the bed --- */

static int make_store(struct bed *b, unsigned host, bool is_first) {
    int r = b->fixture->make(b->fixture->userdata, host, b->hosts[host], is_first, b->event, b->events, &b->listener, &b->stores[host]);

    return r < 0 ? r : store_declare(b->stores[host], b->pools, b->n_pools, false);
}

static int make_stores(struct bed *b) {
    static const char *const names[BED_HOSTS_MAX] = {"ant", "bee", "cow"};

    for (unsigned i = 0; i < b->fixture->n_hosts; i++) {
        snprintf(b->hosts[i], sizeof(b->hosts[i]), "%s", names[i]);
        b->n_hosts++; /* a store that could not be made is NULL */
        int r = make_store(b, i, i == 0);
        if (r < 0)
            return r;
    }
    return 0;
}

void bed_die(struct bed *b, unsigned host) {
    b->stores[host] = store_free(b->stores[host]);
}

void bed_come_back(struct bed *b, unsigned host) {
    CU_ASSERT_FATAL(make_store(b, host, false) == 0);
}

static void bed_free(struct bed *b) {
    _cleanup_free_ char *text = NULL;

    for (unsigned i = 0; i < b->n_hosts; i++)
        b->stores[i] = store_free(b->stores[i]);
    list_foreach_safe(p, &b->probes, struct probe, link)
        free(p);
    sd_event_source_disable_unref(b->timer);
    sd_event_unref(b->event);
    events_free(b->events);
    journal_free(b->journal);
    text = capture_end(&b->capture);
    if (text && CU_get_number_of_failures() > b->n_failures)
        printf("the events of this bed:\n%s", text);
}

bool bed_init(struct bed *b, const struct store_fixture *fixture, const struct store_pool *pools, size_t n) {
    *b = (struct bed) {.fixture = fixture, .pools = pools, .n_pools = n,
                       .listener = {on_waiting, on_granted, on_refused, on_lost, on_released, on_deadline, on_state, on_turn_refused, on_committed,
                                    on_turn_open, on_turn_superseded, on_moved, b}};
    list_init(&b->probes);
    b->n_failures = CU_get_number_of_failures();
    capture_begin(&b->capture);
    /* The timer keeps sd_event_run() from being refused when a store has no source of its own yet. */
    if (journal_new(&b->journal, "test") == 0 && events_new(&b->events, b->journal, "ant", "test") == 0 &&
        sd_event_new(&b->event) >= 0 &&
        sd_event_add_time_relative(b->event, &b->timer, CLOCK_BOOTTIME, 3600 * USEC_PER_SEC, 0, on_timer, NULL) >= 0 &&
        make_stores(b) == 0)
        return true;
    CU_FAIL("cannot make the stores");
    bed_free(b);
    return false;
}

static void on_reply(int r, void *userdata) {
    *(int *) userdata = r;
}

#define NO_REPLY (-1000000)

static int await_reply(struct bed *b, int called, const int *reply) {
    b->in_call = false;
    TEST_INT(called, 0);
    if (called == 0)
        BED_UNTIL(b, *reply != NO_REPLY);
    return *reply;
}

static bool is_ready(struct bed *b, unsigned host) {
    return b->stores[host]->state == STORE_STATE_READY;
}

void bed_end_grace(struct bed *b, unsigned host) {
    int reply = NO_REPLY;

    if (is_ready(b, host))
        return;
    b->in_call = true;
    TEST_INT(await_reply(b, store_end_grace(b->stores[host], on_reply, &reply), &reply), 0);
}

bool bed_start(struct bed *b) {
    for (unsigned i = 0; i < b->n_hosts; i++) {
        b->in_call = true;
        TEST_INT(store_start(b->stores[i]), 0);
        b->in_call = false;
    }
    for (unsigned i = 0; i < b->n_hosts; i++)
        BED_UNTIL(b, b->stores[i]->state != STORE_STATE_AWAY);
    for (unsigned i = 0; i < b->n_hosts; i++)
        bed_end_grace(b, i);
    for (unsigned i = 0; i < b->n_hosts; i++)
        BED_UNTIL(b, is_ready(b, i));
    BED_UNTIL(b, b->n_states > 0);
    return is_ready(b, 0);
}

static void check_nothing_left(struct bed *b) {
    _cleanup_(snapshot_freep) struct snapshot *s = bed_inspect(b, 0);

    if (!s)
        return;
    TEST_INT(s->n_mine, 0);
    for (size_t i = 0; i < s->n_pools; i++) {
        TEST_INT(s->pools[i].used, 0);
        TEST_INT(s->pools[i].waiting, 0);
        TEST_INT(s->pools[i].parked, 0);
        TEST_INT(s->pools[i].n_holders, 0);
        TEST_INT(s->pools[i].n_queue, 0);
    }
}

bool bed_all_ready(const struct bed *b) {
    for (unsigned i = 0; i < b->n_hosts; i++)
        if (b->stores[i] && b->stores[i]->state != STORE_STATE_READY)
            return false;
    return true;
}

void bed_done(struct bed *b) {
    list_foreach(p, &b->probes, struct probe, link)
        probe_release(p);
    list_foreach(p, &b->probes, struct probe, link)
        BED_UNTIL(b, p->claim.state == CLAIM_STATE_NONE);
    bed_settle(b);
    check_nothing_left(b);
    for (unsigned i = 0; i < b->n_hosts; i++) {
        int reply = NO_REPLY;

        b->in_call = true;
        store_stop(b->stores[i], on_reply, &reply);
        TEST_INT(store_declare(b->stores[i], b->pools, b->n_pools, false), 0); /* too late: it leaves no session */
        TEST_INT(await_reply(b, 0, &reply), 0);
        b->stores[i] = store_free(b->stores[i]);
    }
    if (b->fixture->check_empty)
        b->fixture->check_empty(b->fixture->userdata);
    bed_free(b);
}

/* --- calls --- */

int bed_declare(struct bed *b, unsigned host, const struct store_pool *pools, size_t n) {
    b->in_call = true;
    int r = store_declare(b->stores[host % b->n_hosts], pools, n, false);
    b->in_call = false;
    return r;
}

int bed_override(struct bed *b, unsigned host, const struct store_override *o) {
    int reply = NO_REPLY;

    b->in_call = true;
    return await_reply(b, store_override(b->stores[host % b->n_hosts], o, on_reply, &reply), &reply);
}

int bed_revoke(struct bed *b, unsigned host, const char *claim) {
    int reply = NO_REPLY;

    b->in_call = true;
    return await_reply(b, store_revoke(b->stores[host % b->n_hosts], claim, "a test", on_reply, &reply), &reply);
}

int bed_move(struct bed *b, unsigned host, struct store_move *move) {
    int reply = NO_REPLY;

    b->in_call = true;
    return await_reply(b, store_move(b->stores[host % b->n_hosts], move, on_reply, &reply), &reply);
}

struct inspection {
    int r;
    struct snapshot *snapshot;
};

static void on_inspected(int r, struct snapshot *snapshot, void *userdata) {
    struct inspection *i = userdata;

    i->r = r;
    i->snapshot = snapshot;
}

struct snapshot *bed_inspect(struct bed *b, unsigned host) {
    struct inspection i = {.r = NO_REPLY};

    b->in_call = true;
    TEST_INT(await_reply(b, store_inspect(b->stores[host % b->n_hosts], &(struct store_question) {.keys = true}, on_inspected, &i), &i.r), 0);
    CU_ASSERT_PTR_NOT_NULL(i.snapshot);
    return i.snapshot;
}

void bed_settle(struct bed *b) {
    for (unsigned round = 0; round < 2; round++) /* what the first ones bring about is known to all after the second */
        for (unsigned i = 0; i < b->n_hosts; i++)
            CU_ASSERT(bed_revoke(b, i, "00000000000000000000000000000000") >= 0); /* no such claim: only the reply counts */
}

uint32_t bed_used(struct bed *b, const char *pool) {
    _cleanup_(snapshot_freep) struct snapshot *s = bed_inspect(b, 0);
    const struct snapshot_pool *p = snapshot_find_pool(s, pool);

    return p ? p->used : 0;
}

uint32_t bed_limit(struct bed *b, const char *pool) {
    _cleanup_(snapshot_freep) struct snapshot *s = bed_inspect(b, 0);
    const struct snapshot_pool *p = snapshot_find_pool(s, pool);

    return p ? p->limit : UINT32_MAX;
}

unsigned bed_count_events(struct bed *b, const char *begin) {
    _cleanup_free_ char *text = capture_read(&b->capture);
    unsigned n = 0;

    for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
        n += strncmp(line, begin, strlen(begin)) == 0;
    return n;
}

bool bed_has_event(struct bed *b, const char *begin) {
    return bed_count_events(b, begin) > 0;
}

bool bed_says(struct bed *b, const char *part) {
    _cleanup_free_ char *text = capture_read(&b->capture);

    return text && strstr(text, part);
}
