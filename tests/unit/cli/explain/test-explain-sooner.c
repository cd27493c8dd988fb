/* SPDX-License-Identifier: MIT */

/* The proposals of `berth explain` are carried out in made-up queues of two pools, in the pools that
 * decide on a host. Each starts the claims that it names and no others. BERTH_TEST_SITUATIONS is the
 * number of queues. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/explain/explained.h"
#include "base/json/format.h"
#include "cli/verbs.h"
#include "store/memory/pool-move.h"
#include "tests/harness/host/asker.h"
#include "tests/harness/draw.h"
#include "tests/harness/test.h"

#define CLAIMS_MAX 24
#define LIMITS 2

static const char *const names[LIMITS] = {"db", "net"};
static const uint32_t limits[LIMITS] = {4, 3};

static struct pools pools;
static struct asker *askers[CLAIMS_MAX];
static unsigned n_askers, n_done[4]; /* proposals: limit or resume, revoke, steal, move */
static uint64_t random_state;

static unsigned pick(unsigned n) {
    return (unsigned) draw_below(&random_state, n);
}

/* --- a situation --- */

static void add_asker(void) {
    char text[32];
    unsigned first = pick(LIMITS), permits = 1 + pick(pick(3) == 0 ? 6 : 2); /* some are parked */

    if (pick(3) == 0)
        snprintf(text, sizeof(text), "db:%u,net:%u", 1 + pick(2), 1 + pick(2));
    else
        snprintf(text, sizeof(text), "%s:%u", names[first], permits);
    askers[n_askers] = asker_ask(&pools, text, NOW + n_askers * USEC_PER_SEC);
    n_askers++;
}

static void make(unsigned seed) {
    unsigned n;

    random_state = seed;
    n = 6 + pick(CLAIMS_MAX - 6);
    asker_begin(&pools);
    for (size_t i = 0; i < LIMITS; i++)
        asker_declare(&pools, names[i], limits[i], 100);
    pools_reevaluate(&pools, NOW);
    for (n_askers = 0; n_askers < n;)
        add_asker();
    if (pick(4) == 0) {
        TEST_INT(pool_pause(pools_find(&pools, names[pick(LIMITS)]), USEC_INFINITY, NULL), 0);
        pools_reevaluate(&pools, NOW);
    }
}

static void unmake(void) {
    for (unsigned i = 0; i < n_askers; i++)
        if (askers[i])
            asker_give_back(&pools, askers[i], NOW);
    pools_done(&pools);
}

static enum pool_claim_state state_of(unsigned i) {
    return askers[i] ? askers[i]->in_pools->state : POOL_CLAIM_STATE_NONE;
}

/* --- as berthd shows it --- */

static unsigned number_of(const struct pool_part *part) {
    for (unsigned i = 0; i < n_askers; i++)
        if (askers[i]->in_pools == part->claim)
            return i;
    CU_FAIL_FATAL("a claim without an asker");
    return 0;
}

static json_t *show_claim(const struct pool_part *part) {
    unsigned i = number_of(part);

    return json_pack("{s:o, s:s, s:o, s:i}", "claim", json_sprintf("%032x", i), "host", "ant", "name",
                     json_sprintf("c%u", i), "permits", (int) part->permits);
}

static void show_list(json_t *array, const struct list *parts, bool is_queue, int step) {
    int position = step;

    list_foreach (part, parts, struct pool_part, link) {
        json_t *claim = show_claim(part);
        char since[CLOCK_TEXT_SIZE];

        clock_format(part->claim->granted_realtime, since);
        json_object_set_new(claim, "since", json_string(since));
        if (is_queue)
            json_object_set_new(claim, "position", json_integer(position));
        json_object_set_new(claim, "waiting_ms",
                            json_integer(1000 * (CLAIMS_MAX - (json_int_t) number_of(part))));
        json_array_append_new(array, claim);
        position += step;
    }
}

static json_t *show_pool(size_t i) {
    const struct pool *pool = pools_find(&pools, names[i]);
    json_t *holders = json_array(), *queue = json_array(), *override = json_null();

    if (pool->override.is_set)
        override = json_pack("{s:i}", "limit", (int) pool->override.limit);
    show_list(holders, &pool->held, false, 0);
    show_list(queue, &pool->queue, true, 1);
    show_list(queue, &pool->parked, true, 0);
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:o, s:o, s:o}", "name", pool->name, "scope", "cluster",
                     "limit", (int) pool_limit(pool), "configured", (int) limits[i], "used",
                     (int) pool_used(pool), "waiting", (int) json_array_size(queue), "override", override,
                     "holders", holders, "queue", queue);
}

/* Returns the proposals for the claim. */
static json_t *propose(unsigned target) {
    const struct demands *d = &askers[target]->demands;
    json_t *wants = json_object(), *run, *list, *answer, *sooner;

    for (size_t i = 0; i < d->n; i++)
        json_object_set_new(wants, d->items[i].pool, json_integer(d->items[i].permits));
    run = json_pack("{s:o, s:s, s:s, s:o, s:s}", "run", json_sprintf("%032x", target), "name", "c", "state",
                    "waiting", "pools", wants, "blocked_by", "pool full: db");
    list = json_pack("[o]", explained_new(run, "ant"));
    answer = json_pack("{s:[o, o], s:[], s:b}", "pools", show_pool(0), show_pool(1), "usual", "stale", 0);
    TEST_INT(explained_fill(list, answer, false, SIZE_MAX), 0);
    sooner = json_incref(json_object_get(json_array_get(list, 0), "sooner"));
    json_decref(run);
    json_decref(list);
    json_decref(answer);
    return sooner;
}

/* --- done --- */

static unsigned claim_of(const char *text) {
    return (unsigned) strtoul(text, NULL, 16);
}

static void end(const char *claim) {
    asker_give_back(&pools, askers[claim_of(claim)], NOW);
    askers[claim_of(claim)] = NULL;
}

static void move_first(const char *claim) {
    struct store_move move = {.kind = STORE_MOVE_FIRST};

    TEST_INT(pools_move(&pools, askers[claim_of(claim)]->in_pools, NULL, &move, NOW), 0);
    pools_settle(&pools, NOW);
}

static void obey(const json_t *words) {
    const char *verb = json_string_value(json_array_get(words, 1));
    const char *what = json_string_value(json_array_get(words, 2));
    const char *last = json_string_value(json_array_get(words, json_array_size(words) - 1));

    if (strcmp(verb, "limit") == 0) {
        TEST_INT(pool_override(pools_find(&pools, what), (uint32_t) atoi(last), USEC_INFINITY, NULL), 0);
        pools_reevaluate(&pools, NOW);
        n_done[0]++;
    } else if (strcmp(verb, "resume") == 0) {
        pool_resume(pools_find(&pools, what), NOW);
        pools_reevaluate(&pools, NOW);
        n_done[0]++;
    } else if (strcmp(verb, "revoke") == 0) {
        end(what);
        n_done[1]++;
    } else if (strcmp(verb, "steal") == 0) {
        move_first(last);
        end(what);
        n_done[2]++;
    } else {
        TEST_STRING(verb, "move");
        move_first(what);
        n_done[3]++;
    }
}

static bool is_named(const json_t *starts, unsigned i) {
    char name[16];
    json_t *item;
    size_t k;

    snprintf(name, sizeof(name), "ant:c%u", i);
    json_array_foreach (starts, k, item)
        if (strcmp(json_string_value(item), name) == 0)
            return true;
    return false;
}

static void check(unsigned seed, unsigned target, const json_t *proposal) {
    const json_t *starts = json_object_get(proposal, "starts");
    enum pool_claim_state before[CLAIMS_MAX] = {};

    make(seed);
    for (unsigned i = 0; i < n_askers; i++)
        before[i] = state_of(i);
    obey(json_object_get(proposal, "do"));
    CU_ASSERT(is_named(starts, target));
    for (unsigned i = 0; i < n_askers; i++) {
        bool started = before[i] != POOL_CLAIM_STATE_HELD && state_of(i) == POOL_CLAIM_STATE_HELD;

        if (started != is_named(starts, i)) {
            _cleanup_free_ char *text = json_dumps(proposal, 0);

            printf("situation %u, claim %u, proposal %s: c%u %s\n", seed, target, text, i,
                   started ? "started as well" : "did not start");
            CU_FAIL("a proposal starts other claims than it names");
        }
    }
    unmake();
}

static void proposals(void) {
    unsigned n = (unsigned) test_count("BERTH_TEST_SITUATIONS", 80);

    for (unsigned seed = 1; seed <= n; seed++) {
        json_t *sooner, *proposal;
        unsigned target;
        size_t k;

        make(seed);
        target = pick(n_askers);
        for (unsigned i = 0; i < n_askers && state_of(target) == POOL_CLAIM_STATE_HELD; i++)
            target = (target + 1) % n_askers;
        sooner = state_of(target) == POOL_CLAIM_STATE_HELD ? json_array() : propose(target);
        unmake();
        json_array_foreach (sooner, k, proposal)
            check(seed, target, proposal);
        json_decref(sooner);
    }
    printf("%u queues: %u limits, %u revoked, %u stolen, %u moved\n", n, n_done[0], n_done[1], n_done[2],
           n_done[3]);
    for (size_t i = 0; i < ELEMENTSOF(n_done); i++)
        CU_ASSERT(n_done[i] > 0);
}

static CU_TestInfo tests[] = {
    {"each proposal starts what it names", proposals},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "explain-sooner", .pTests = tests});
