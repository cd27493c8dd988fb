/* SPDX-License-Identifier: MIT */

/* Random claims, releases, withdrawals and overrides on any store, from a seed. Checks: no grant exceeds a
 * limit; no claim is overtaken (by tickets and tokens, which come from one clock: a claim is in its queues
 * from its ticket to its token); every claim that stays is granted; nothing is left. */

#include <string.h>

#include "tests/harness/draw.h"
#include "tests/harness/store/store-suite.h"

#define N_POOLS 4
#define N_CLAIMS 150
#define N_STEPS 600

static const struct store_pool pools[N_POOLS] = {
    {.name = "a", .limit = 1, .queue_limit = 1000},
    {.name = "b", .limit = 3, .queue_limit = 1000},
    {.name = "c", .limit = 5, .queue_limit = 1000},
    {.name = "d", .limit = 8, .queue_limit = 1000},
};

static uint64_t state;
static uint32_t allowed[N_POOLS]; /* permits allowed at a grant: the higher limit while one is being changed */

static uint32_t pick(uint32_t below) {
    return (uint32_t) draw_below(&state, below);
}

static uint32_t used_by_model(struct bed *b, const char *pool) {
    uint32_t used = 0;

    list_foreach(p, &b->probes, struct probe, link)
        if (p->claim.state == CLAIM_STATE_HELD)
            used += demands_get(&p->demands, pool);
    return used;
}

/* R1, at each grant. */
static void on_granted(struct probe *p) {
    for (unsigned i = 0; i < N_POOLS; i++)
        if (demands_get(&p->demands, pools[i].name) > 0)
            CU_ASSERT(used_by_model(p->bed, pools[i].name) <= allowed[i]);
}

static struct probe *make_probe(struct bed *b) {
    char text[DEMANDS_TEXT_SIZE] = "";
    uint32_t chosen = 1 + pick((1u << N_POOLS) - 1);

    for (unsigned i = 0; i < N_POOLS; i++) {
        size_t n = strlen(text);

        if (chosen & (1u << i))
            snprintf(text + n, sizeof(text) - n, "%s%s:%u", n > 0 ? "," : "", pools[i].name, 1 + pick(pools[i].limit));
    }
    struct probe *p = bed_probe(b, pick(BED_HOSTS_MAX), text);
    p->claim.nowait = pick(10) == 0;
    if (pick(5) == 0)
        p->claim.head_start_usec = pick(20) * USEC_PER_MSEC;
    return p;
}

/* Returns a waiting, held or requested claim, from any start; NULL: there is none. */
static struct probe *choose(struct bed *b, bool held_only) {
    struct probe *found = NULL;
    uint32_t n = 0;

    list_foreach(p, &b->probes, struct probe, link) {
        enum claim_state s = p->claim.state;

        if (s == CLAIM_STATE_HELD ||
            (!held_only && (s == CLAIM_STATE_ASKED || s == CLAIM_STATE_WAITING || s == CLAIM_STATE_PARKED)))
            if (pick(++n) == 0)
                found = p;
    }
    return found;
}

static void change_limit(struct bed *b, unsigned i, const struct store_override *o, uint32_t limit) {
    uint32_t after = o->clear ? pools[i].limit : limit;

    if (after > allowed[i])
        allowed[i] = after;
    bed_settle(b); /* so that all parked claims are reported: a store need not report a state that is over */
    TEST_INT(bed_override(b, pick(BED_HOSTS_MAX), o), 0);
    bed_settle(b);
    allowed[i] = after;
}

static void change_any_limit(struct bed *b) {
    unsigned i = pick(N_POOLS);
    uint32_t limit = pick(pools[i].limit + 2);

    change_limit(b, i,
                 &(struct store_override){
                     .pool = pools[i].name, .clear = pick(3) == 0, .limit = limit, .for_usec = USEC_INFINITY},
                 limit);
}

static void step(struct bed *b, unsigned *n_claims) {
    uint32_t dice = pick(100);
    struct probe *p;

    if (dice < 45 && *n_claims < N_CLAIMS) {
        (*n_claims)++;
        probe_ask(make_probe(b));
    } else if (dice < 80) {
        if ((p = choose(b, true)))
            probe_release(p);
    } else if (dice < 85) {
        if ((p = choose(b, false)))
            probe_release(p);
    } else if (dice < 88)
        change_any_limit(b);
    else
        (void) bed_turn(b, clock_boottime() + USEC_PER_MSEC);
}

static bool is_over(const struct probe *p) {
    return p->n_granted + p->n_refused + p->n_released > 0 || p->claim.state == CLAIM_STATE_RELEASING;
}

/* Clears limits and releases held claims until every claim has been granted. */
static void serve_all(struct bed *b) {
    for (unsigned i = 0; i < N_POOLS; i++)
        change_limit(b, i, &(struct store_override){.pool = pools[i].name, .clear = true}, 0);
    list_foreach(p, &b->probes, struct probe, link) {
        usec_t end = clock_boottime() + BED_DEADLINE_USEC;

        do {
            list_foreach(h, &b->probes, struct probe, link)
                if (h->claim.state == CLAIM_STATE_HELD && h != p)
                    probe_release(h);
        } while (!is_over(p) && bed_turn(b, end));
        CU_ASSERT(is_over(p));
    }
}

static bool share_a_pool(const struct probe *x, const struct probe *y) {
    for (size_t i = 0; i < x->demands.n; i++)
        if (demands_get(&y->demands, x->demands.items[i].pool) > 0)
            return true;
    return false;
}

/* R2: a claim that was in front of y in a queue when y was granted was granted earlier. Parked claims are in
 * no queue. */
static unsigned count_overtaken(struct bed *b) {
    unsigned n = 0;

    list_foreach(x, &b->probes, struct probe, link)
        list_foreach(y, &b->probes, struct probe, link)
            n += x->n_granted > 0 && y->n_granted > 0 && !x->was_parked && x->ticket < y->token && y->token < x->token &&
                 x->ticket - x->claim.head_start_usec < y->ticket - y->claim.head_start_usec && share_a_pool(x, y);
    return n;
}

static void check_tokens(struct bed *b) {
    list_foreach(x, &b->probes, struct probe, link)
        list_foreach(y, &b->probes, struct probe, link)
            if (x != y && x->n_granted > 0 && y->n_granted > 0 && (x->token == y->token || x->ticket == y->ticket))
                CU_FAIL("a token or ticket was given twice");
}

void store_fuzz(const struct store_fixture *fixture, uint64_t seed) {
    unsigned n_claims = 0, n_failures = CU_get_number_of_failures();
    struct bed b;

    state = seed;
    if (!bed_init(&b, fixture, pools, N_POOLS) || !bed_start(&b))
        return;
    b.on_granted = on_granted;
    for (unsigned i = 0; i < N_POOLS; i++)
        allowed[i] = pools[i].limit;
    for (unsigned i = 0; i < N_STEPS; i++)
        step(&b, &n_claims);
    serve_all(&b);
    TEST_INT(count_overtaken(&b), 0);
    check_tokens(&b);
    bed_done(&b);
    if (CU_get_number_of_failures() > n_failures)
        printf("fuzz: BERTH_SEED=%" PRIu64 "\n", seed);
}
