/* SPDX-License-Identifier: MIT */

/* Sequences: made from a seed. */

#include <string.h>

#include "tests/model/model-sequence.h"

static const char *const step_names[STEPS] = {
    [STEP_CLAIM] = "claim", [STEP_CLAIMS] = "several claims", [STEP_WITHDRAW] = "withdraw", [STEP_CRASH] = "crash",
    [STEP_REBOOT] = "reboot",
    [STEP_LOSE_FILE] = "crash and lose the session's file", [STEP_FREEZE] = "freeze", [STEP_CUT] = "cut",
    [STEP_LOSE_CALL] = "lose a call", [STEP_LOSE_ANSWER] = "lose an answer", [STEP_STALL_CALL] = "stall a call",
    [STEP_STALL_ANSWER] = "stall an answer", [STEP_LOSE_PUSH] = "lose a push", [STEP_STALL_PUSH] = "stall a push",
    [STEP_TWICE] = "a call for claims comes twice",
    [STEP_RECONNECT] = "reconnect", [STEP_BYE] = "bye", [STEP_WIPE] = "Redis restarts empty", [STEP_FLUSH] = "FLUSHALL",
    [STEP_RESTART] = "Redis restarts with its data", [STEP_SAVE] = "snapshot", [STEP_RESTORE] = "Redis comes back with the snapshot",
    [STEP_REDIS_FROZEN] = "freeze Redis", [STEP_CLOCK] = "step Redis' clock", [STEP_LIMIT] = "declare a limit",
    [STEP_OVERRIDE] = "override", [STEP_CLEAR] = "clear an override", [STEP_PAUSE] = "pause", [STEP_RESUME] = "resume",
    [STEP_REVOKE] = "revoke", [STEP_GRACE] = "end grace",
    [STEP_DISASTER] = "with the next start its host and Redis' data are lost, and Redis' clock is set back",
    [STEP_FULL] = "Redis is full", [STEP_REPLICA] = "Redis is a replica, then promoted", [STEP_SCOPE] = "another scope",
    [STEP_AGAIN] = "Redis comes back with the same snapshot again", [STEP_BACK] = "Redis's memory goes back",
    [STEP_DRAIN] = "drain for a time", [STEP_STOP] = "stop the job", [STEP_HOSTS] = "ask for its hosts", [STEP_MOVE] = "move",
    [STEP_NAME] = "berthd is restarted with another name", [STEP_LEASE] = "berthd is restarted with another lease",
};

const char *step_name(enum step_kind kind) {
    return step_names[kind];
}

struct dice {
    uint64_t seed, n;
};

static uint64_t roll(struct dice *d, uint64_t sides) {
    return model_mix(d->seed, d->n++) % sides;
}

/* Returns a duration around the lease, which matters most. */
static usec_t some_time(struct dice *d, usec_t lease) {
    switch (roll(d, 4)) {
    case 0:
        return lease / 20 + roll(d, lease / 6);
    case 1:
        return lease / 4 + roll(d, lease / 2);
    case 2:
        return lease * 9 / 10 + roll(d, lease / 2);
    default:
        return lease + roll(d, lease * 2);
    }
}

/* Hosts declare a plain pool and a pattern, and sometimes one of its keys in full. */
static void make_keys(struct world_setup *setup, struct dice *d) {
    setup->n_pools = POOLS_MAX;
    for (unsigned p = 0; p < setup->n_pools; p++)
        setup->limits[p] = 1 + (uint32_t) roll(d, 4);
    for (unsigned p = 1; p < POOL_PATTERN; p++)
        if (roll(d, 4) > 0)
            setup->limits[p] = 0;
}

void sequence_begin_world(struct world *w, struct bridge *bridge, const struct model_mutation *mutation,
                          const struct world_setup *setup) {
    memset(w, 0, sizeof(*w));
    w->bridge = bridge;
    w->mutation = mutation;
    w->setup = *setup;
    w->longest = setup->lease;
    w->now = USEC_PER_SEC;
    w->redis.replid = 1;
    for (unsigned i = 0; i < setup->n_hosts; i++) {
        struct host *h = &w->hosts[i];

        h->index = h->config.name = i;
        h->config.lease = setup->lease;
        h->rate = 1.0;
        h->start_at = w->now + 1 + i;
        memcpy(h->config.limits, setup->limits, sizeof(setup->limits));
    }
    rules_begin(w);
}

void sequence_make_world(struct world *w, struct bridge *bridge, const struct model_mutation *mutation, uint64_t seed) {
    struct dice d = {.seed = model_mix(seed, 77)};
    static const usec_t leases[] = {10, 60, 100};
    static const double rates[] = {0.99501, 1.0, 1.00499, 1.00499};
    struct world_setup setup = {.seed = seed, .has_keys = seed & MODEL_KEYS, .has_moves = seed & MODEL_MOVES};

    setup.n_hosts = 2 + (unsigned) roll(&d, 3);
    setup.n_pools = 1 + (unsigned) roll(&d, 3);
    setup.lease = leases[roll(&d, ELEMENTSOF(leases))] * USEC_PER_SEC;
    setup.heartbeat = setup.lease / 6;
    setup.tight = roll(&d, 4) == 0;
    setup.sync_part = roll(&d, 2) == 0 ? 2 : 200;
    for (unsigned p = 0; p < setup.n_pools; p++)
        setup.limits[p] = 1 + (uint32_t) roll(&d, 4);
    if (setup.has_keys)
        make_keys(&setup, &d);
    sequence_begin_world(w, bridge, mutation, &setup);
    for (unsigned i = 0; i < setup.n_hosts; i++) {
        w->hosts[i].rate = rates[roll(&d, ELEMENTSOF(rates))];
        w->hosts[i].start_at = w->now + 1 + roll(&d, setup.heartbeat);
    }
    w->turns.is_on = seed & MODEL_TURNS;
    if (w->turns.is_on)
        vturn_init(w);
}

/* How often each kind comes; each sequence leaves out some of them. */
static const unsigned weights[STEPS] = {
    [STEP_CLAIM] = 60, [STEP_CLAIMS] = 12, [STEP_WITHDRAW] = 8, [STEP_CRASH] = 6, [STEP_REBOOT] = 3, [STEP_LOSE_FILE] = 2, [STEP_FREEZE] = 5,
    [STEP_CUT] = 5, [STEP_LOSE_CALL] = 5, [STEP_LOSE_ANSWER] = 8, [STEP_STALL_CALL] = 6, [STEP_STALL_ANSWER] = 6, [STEP_LOSE_PUSH] = 8,
    [STEP_STALL_PUSH] = 5, [STEP_TWICE] = 6, [STEP_RECONNECT] = 4, [STEP_BYE] = 3, [STEP_WIPE] = 4, [STEP_FLUSH] = 1, [STEP_RESTART] = 4,
    [STEP_SAVE] = 5, [STEP_RESTORE] = 4, [STEP_REDIS_FROZEN] = 3, [STEP_CLOCK] = 5, [STEP_LIMIT] = 6, [STEP_OVERRIDE] = 7, [STEP_CLEAR] = 3,
    [STEP_PAUSE] = 4, [STEP_RESUME] = 3, [STEP_REVOKE] = 4, [STEP_GRACE] = 6, [STEP_DISASTER] = 4,
    [STEP_FULL] = 3, [STEP_REPLICA] = 3, [STEP_SCOPE] = 5, [STEP_NAME] = 6, [STEP_LEASE] = 6, [STEP_AGAIN] = 4, [STEP_BACK] = 4,
    [STEP_DRAIN] = 4, [STEP_STOP] = 10, [STEP_HOSTS] = 6, [STEP_MOVE] = 24,
};

static void fill_claims(struct dice *d, struct step *s, const struct world *w) {
    usec_t lease = w->setup.lease;

    if (s->kind == STEP_CLAIM) {
        s->a = 0;
        for (unsigned p = 0; p < w->setup.n_pools; p++)
            if (roll(d, 2) == 0)
                s->a |= (1 + roll(d, 3) % 2 + roll(d, 5) / 4) << (8 * p);
        s->b = roll(d, 5) == 0 ? some_time(d, lease) : 0;
        s->c = (roll(d, 8) == 0 ? 1u : 0u) | (roll(d, 8) == 0 ? 2u : 0u) | (roll(d, 6) == 0 ? (1 + roll(d, 3)) << 2 : 0u);
    } else {
        s->a = roll(d, w->setup.n_pools);
        s->b = some_time(d, lease);
        s->c = roll(d, 16) | (roll(d, 3) == 0 ? roll(d, 64) << 8 : 0) | (roll(d, 4) == 0 ? (1 + roll(d, 4)) << 16 : 0);
    }
    s->d = roll(d, 3) == 0 ? some_time(d, lease) * 2 : roll(d, lease / 2);
}

/* Sometimes repeats an earlier step. at: the number of steps before it. */
static void fill_override(struct dice *d, struct step *s, const struct world *w, const struct sequence *q, size_t at) {
    s->a = roll(d, w->setup.n_pools);
    s->b = roll(d, 5);
    s->c = at + 1;
    s->d = roll(d, 3) == 0 ? some_time(d, w->setup.lease) : 0;
    for (size_t i = 0; i < at && roll(d, 4) == 0; i++)
        if (q->steps[i].kind >= STEP_OVERRIDE && q->steps[i].kind <= STEP_RESUME && roll(d, 2) == 0) {
            usec_t when = s->at;

            *s = q->steps[i];
            s->at = when;
            break;
        }
}

static void fill_step(struct dice *d, struct step *s, const struct world *w, const struct sequence *q, size_t at) {
    s->host = (unsigned) roll(d, w->setup.n_hosts);
    s->a = some_time(d, w->setup.lease);
    switch (s->kind) {
    case STEP_CLAIM:
    case STEP_CLAIMS:
        fill_claims(d, s, w);
        break;
    case STEP_WITHDRAW:
        s->b = roll(d, 3) == 0 ? 1 + roll(d, 5) : 0;
        break;
    case STEP_STALL_ANSWER:
        s->a = roll(d, 3) == 0 ? s->a : w->setup.lease / 4 + roll(d, w->setup.lease * 6 / 10);
        break;
    case STEP_CLOCK:
        s->a = roll(d, 3) == 0 ? 3600 * USEC_PER_SEC : some_time(d, w->setup.lease);
        s->b = roll(d, 3); /* 1: back */
        break;
    case STEP_LIMIT:
        s->a = roll(d, w->setup.n_pools);
        s->b = roll(d, 6); /* 0: it declares that pool no more */
        break;
    case STEP_SCOPE:
        s->a = roll(d, w->setup.n_pools);
        s->b = roll(d, 2); /* 1: host */
        break;
    case STEP_NAME:
        s->b = roll(d, w->setup.n_hosts);
        break;
    case STEP_LEASE:
        s->b = roll(d, 3);
        s->c = roll(d, 2); /* 1: all others are stopped meanwhile, and come back with it */
        if (s->c == 1)
            s->a = roll(d, w->setup.heartbeat);
        break;
    case STEP_MOVE:
        s->b = roll(d, 5); /* first, before (twice), more, less */
        s->a = roll(d, 1000);
        s->c = roll(d, 1000);
        s->d = some_time(d, w->setup.lease);
        break;
    case STEP_OVERRIDE:
    case STEP_CLEAR:
    case STEP_PAUSE:
    case STEP_RESUME:
        fill_override(d, s, w, q, at);
        break;
    default:
        break;
    }
}

/* Adds a step that matters after some faults and is rare by chance. The host goes away after a late reply,
 * or after it was the first with another lease. Redis is replaced while a push is under way, and connections
 * stay. The host that must remember the clock has only just received it. */
static void follow(struct dice *d, struct sequence *q, const struct step *s, const struct world *w, bool may_lose_data) {
    struct step *next = &q->steps[q->n];

    if (q->n == STEPS_MAX || roll(d, 2) == 0)
        return;
    if (s->kind == STEP_STALL_ANSWER || (s->kind == STEP_LEASE && s->c == 1)) {
        static const enum step_kind kinds[] = {STEP_CUT, STEP_CRASH, STEP_FREEZE};

        *next = (struct step){
            .kind = kinds[roll(d, ELEMENTSOF(kinds))], .host = s->host, .a = some_time(d, w->setup.lease)};
        next->at = s->at + s->a + roll(d, w->setup.heartbeat * 3 / 2);
        q->n++;
    } else if (s->kind == STEP_STALL_PUSH) {
        static const enum step_kind kinds[] = {STEP_RESTART, STEP_WIPE, STEP_RESTORE};

        *next = (struct step) {.kind = kinds[may_lose_data ? roll(d, ELEMENTSOF(kinds)) : 0], .host = s->host, .a = 1};
        next->at = s->at + roll(d, w->setup.lease / 2);
        q->n++;
    } else if (s->kind == STEP_RESTORE || s->kind == STEP_AGAIN) { /* each time a new berthd sends the first hello */
        *next = (struct step){
            .kind = STEP_LOSE_FILE, .at = s->at - 1, .host = s->host, .a = roll(d, w->setup.heartbeat)};
        q->n++;
        if (q->n < STEPS_MAX && may_lose_data)
            q->steps[q->n++] = (struct step){
                .kind = STEP_AGAIN, .at = s->at + some_time(d, w->setup.lease), .host = s->host, .a = 2};
    } else if (s->kind == STEP_DISASTER) {
        *next = (struct step){
            .kind = STEP_CRASH, .at = s->at, .host = s->host, .a = roll(d, w->setup.heartbeat)};
        q->n++;
    }
}

static int compare_steps(const void *a, const void *b) {
    const struct step *x = a, *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

void sequence_make(struct sequence *q, uint64_t seed, const struct world *w) {
    struct dice d = {.seed = model_mix(seed, 78)};
    bool used[STEPS] = {false};
    unsigned sum = 0;
    usec_t at = w->now;

    memset(q, 0, sizeof(*q));
    q->seed = seed;
    for (unsigned k = 0; k < (w->turns.is_on ? STEP_MOVE : STEP_DRAIN); k++) {
        used[k] = k <= STEP_CLAIMS || roll(&d, k >= STEP_FULL && k <= STEP_DRAIN ? 8 : 3) == 0; /* what keeps hosts out leaves less to all the others */
        if ((k == STEP_RESTORE || k == STEP_AGAIN || k == STEP_BACK) && used[k])
            used[STEP_SAVE] = true;
    }
    used[STEP_MOVE] = w->setup.has_moves;
    if (used[STEP_LEASE]) /* no rule covers lost data while hosts have different leases */
        used[STEP_WIPE] = used[STEP_FLUSH] = used[STEP_RESTORE] = used[STEP_DISASTER] = used[STEP_AGAIN] = used[STEP_BACK] = false;
    if (w->turns.is_on) /* no rule covers memory that goes back */
        used[STEP_BACK] = false;
    for (unsigned k = 0; k < STEPS; k++)
        sum += used[k] ? weights[k] : 0;
    q->n = 20 + roll(&d, STEPS_MAX - 40);
    q->length = w->setup.lease * (4 + roll(&d, 5));
    if (roll(&d, 2) == 0) /* past the first grace, where most would only wait */
        at += w->setup.lease + w->setup.lease / 4;
    for (size_t i = 0; i < q->n; i++) {
        uint64_t n = roll(&d, sum);
        struct step *s = &q->steps[i];

        for (unsigned k = 0; k < STEPS; k++) {
            if (!used[k])
                continue;
            if (n < weights[k]) {
                s->kind = k;
                break;
            }
            n -= weights[k];
        }
        /* Bursts: what happens close together matters. */
        at += roll(&d, 3) == 0 ? roll(&d, 3 * q->length / q->n * 2) : roll(&d, w->setup.heartbeat / 4);
        s->at = at;
        fill_step(&d, s, w, q, i);
    }
    for (size_t i = 0, n = q->n; i < n; i++)
        follow(&d, q, &q->steps[i], w, !used[STEP_LEASE]);
    qsort(q->steps, q->n, sizeof(*q->steps), compare_steps);
}
