/* SPDX-License-Identifier: MIT */

/* queue_start_time() against the pools of berthd (store/memory/pool.c), which grant by the same rules.
 * The claims are random: of one to three pools, some with a head start, some too large for a limit that
 * rises later. Each must start at the same time. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/explain/queue.h"
#include "base/json/format.h"
#include "cli/verbs.h"
#include "store/memory/pool.h"
#include "tests/harness/draw.h"
#include "tests/harness/test.h"

#define POOLS 3
#define CLAIMS 24
#define NOW (1000 * USEC_PER_SEC)

static struct pools pools;
static struct {
    struct claim claim;
    char id[ID_TEXT_SIZE];
    struct demand_ref demands[POOLS];
    struct pool_claim *in_pools;
    double ends, takes, started; /* ms; `ends` is of holders; `started` is -1 before the start */
} claims[CLAIMS];
static uint64_t state;

static int pick(int n) {
    return (int) draw_below(&state, (uint64_t) n);
}

static const char *const names[POOLS] = {"p0", "p1", "p2"};

/* berthd shows the wait of a parked claim and not its head start. So no claim has a head start where
 * parked ones come back. */
static void begin(bool has_head_starts) {
    struct pool *pool;

    pools_init(&pools);
    for (int i = 0; i < POOLS; i++) {
        TEST_INT(pools_make(&pools, names[i], &pool), 0);
        pool_declare(pool, (uint32_t) (2 + pick(4)), 1000);
    }
    pools_open(&pools, NOW);
    memset(claims, 0, sizeof(claims));
    for (int i = 0; i < CLAIMS; i++) {
        struct claim *c = &claims[i].claim;
        size_t refused;

        snprintf(claims[i].id, sizeof(claims[i].id), "%032x", i);
        c->id = claims[i].id;
        for (int p = 0; p < POOLS; p++)
            if (pick(3) == 0 || (p == POOLS - 1 && c->n_demands == 0))
                claims[i].demands[c->n_demands++] =
                    (struct demand_ref) {names[p], (uint32_t) (1 + pick(pick(8) == 0 ? 6 : 2))};
        c->demands = claims[i].demands;
        c->head_start_usec = pick(5) == 0 && has_head_starts ? (usec_t) pick(20) * USEC_PER_MSEC : 0;
        claims[i].takes = 1000 * (1 + pick(1000)) + i; /* no two end at one time */
        claims[i].started = -1;
        TEST_INT(pools_claim(&pools, c, NOW + (usec_t) i * USEC_PER_MSEC, &claims[i].in_pools, &refused), 0);
    }
}

static void end(void) {
    for (int i = 0; i < CLAIMS; i++)
        if (claims[i].in_pools) {
            pools_leave(&pools, claims[i].in_pools, NOW);
            list_unlink(&claims[i].in_pools->changed);
            pool_claim_free(claims[i].in_pools);
        }
    pools_done(&pools);
}

static void note_starts(double now) {
    for (int i = 0; i < CLAIMS; i++)
        if (claims[i].started < 0 && claims[i].in_pools &&
            claims[i].in_pools->state == POOL_CLAIM_STATE_HELD) {
            claims[i].started = now;
            claims[i].ends = now + claims[i].takes;
        }
}

/* Ends the claim that ends next. Returns when, or -1. */
static double end_next(double before) {
    int next = -1;

    for (int i = 0; i < CLAIMS; i++)
        if (claims[i].in_pools && claims[i].in_pools->state == POOL_CLAIM_STATE_HELD &&
            (next < 0 || claims[i].ends < claims[next].ends))
            next = i;
    if (next < 0 || claims[next].ends > before)
        return -1;
    pools_leave(&pools, claims[next].in_pools, NOW + USEC_PER_SEC);
    list_unlink(&claims[next].in_pools->changed);
    pool_claim_free(claims[next].in_pools);
    claims[next].in_pools = NULL;
    return claims[next].ends;
}

/* --- as io.berth.Pools would have it --- */

static json_t *json_claim(const struct pool_part *part, int position) {
    return json_pack("{s:s, s:i, s:i, s:i, s:s}", "claim", part->claim->claim->id, "permits",
                     (int) part->permits, "position", position, "waiting_ms",
                     1000 - (int) strtol(part->claim->claim->id, NULL, 16), "since", "2026-01-01T00:00:00Z");
}

static json_t *json_pool(const char *name) {
    struct pool *pool = pools_find(&pools, name);
    json_t *holders = json_array(), *queue = json_array();
    int n = 0;

    list_foreach (part, &pool->held, struct pool_part, link)
        json_array_append_new(holders, json_claim(part, 0));
    list_foreach (part, &pool->queue, struct pool_part, link)
        json_array_append_new(queue, json_claim(part, ++n));
    list_foreach (part, &pool->parked, struct pool_part, link)
        json_array_append_new(queue, json_claim(part, 0));
    return json_pack("{s:s, s:i, s:i, s:i, s:o, s:o}", "name", name, "limit", (int) pool_limit(pool), "used",
                     (int) pool_used(pool), "waiting", (int) json_array_size(queue), "holders", holders,
                     "queue", queue);
}

/* --- one situation --- */

static void compare(unsigned seed, bool is_raised) {
    _cleanup_json_ json_t *json = json_array();
    _cleanup_(queue_freep) struct queue *q = NULL;
    struct queue_later later = {.pool = 1, .limit = 6, .msec = 300500.5};
    double starts[CLAIMS], msec[CLAIMS], now = 0, at;

    state = seed;
    begin(!is_raised);
    note_starts(0);
    for (int i = pick(4); i > 0; i--) {
        at = end_next(1e9);
        now = at >= 0 ? at : now;
        note_starts(now);
    }
    for (int i = 0; i < POOLS; i++)
        json_array_append_new(json, json_pool(names[i]));
    TEST_INT(queue_new(&q, json), 0);
    CU_ASSERT(queue_is_complete(q));
    for (size_t i = 0; i < queue_count(q); i++) {
        bool is_held;
        long c = strtol(format_get_text(queue_claim(q, i, &is_held), "claim"), NULL, 16);

        msec[i] = is_held ? claims[c].ends - now : claims[c].takes;
    }
    for (int i = 0; i < CLAIMS; i++)
        starts[i] = claims[i].started >= 0 || !claims[i].in_pools
                        ? 0
                        : queue_start_time(
                              q, &(struct queue_change){}, claims[i].claim.id,
                              &(struct queue_times){.msec = msec, .later = &later, .n_later = is_raised});
    later.msec += now;
    while ((at = end_next(is_raised ? later.msec : 1e9)) >= 0)
        note_starts(at);
    if (is_raised) {
        pool_declare(pools_find(&pools, "p1"), 6, 1000);
        pools_reevaluate(&pools, NOW + USEC_PER_SEC);
        note_starts(later.msec);
        while ((at = end_next(1e9)) >= 0)
            note_starts(at);
    }
    for (int i = 0; i < CLAIMS; i++) {
        double was = claims[i].started <= now && claims[i].started >= 0 ? 0
                     : claims[i].started < 0                            ? -1
                                                                        : claims[i].started - now;

        if (starts[i] - was > 0.01 || was - starts[i] > 0.01) {
            printf("seed %u, claim %d: played %f, was %f\n", seed, i, starts[i], was);
            CU_FAIL("berthd starts the claim at another time");
        }
    }
    end();
}

static void test_fixed(void) {
    for (unsigned seed = 1; seed <= 1000; seed++)
        compare(seed, false);
}

static void test_raised(void) {
    for (unsigned seed = 1; seed <= 1000; seed++)
        compare(seed, true);
}

static CU_TestInfo tests[] = {{"fixed", test_fixed}, {"raised", test_raised}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "explain-play", .pTests = tests});
