/* SPDX-License-Identifier: MIT */
/* daemon/runs/near.h: which waiting runs are near the head of their queues. */
#include "daemon/runs/near.h"

#include "tests/harness/test.h"

static const struct settings settings;
static struct list lists[RUN_STATES];
static struct near near;

static struct run *wait_for(const char *pools, enum run_kind kind) {
    struct demands d;
    struct run_spec spec = {.kind = kind, .name = "run", .pools = &d};
    struct run *r = NULL;

    TEST_INT(demands_parse(pools, &d), 0);
    TEST_INT(run_new(&r, &spec, &settings), 0);
    near_add(&near, r);
    run_set_state(r, lists, RUN_STATE_WAITING);
    return r;
}

static void end(struct run *r) {
    run_set_state(r, lists, RUN_STATE_DONE);
    near_remove(&near, r, &lists[RUN_STATE_WAITING]);
    run_free(r);
}

static void begin(void) {
    near = (struct near) {0};
    for (size_t i = 0; i < RUN_STATES; i++)
        list_init(&lists[i]);
}

static void end_all(void) {
    list_foreach_safe (r, &lists[RUN_STATE_WAITING], struct run, link)
        end(r);
    TEST_INT(near.n, 0);
}

/* Of each pool, the oldest NEAR_POOL_MAX runs are near, however many wait. */
static void of_pool(void) {
    struct run *runs[300], *other;

    begin();
    for (size_t i = 0; i < ELEMENTSOF(runs); i++)
        runs[i] = wait_for("db", RUN_KIND_ADHOC);
    other = wait_for("net,db", RUN_KIND_ADHOC);
    CU_ASSERT(other->is_near);
    for (size_t i = 0; i < ELEMENTSOF(runs); i++) {
        size_t n = 0;

        for (size_t k = i; k < ELEMENTSOF(runs); k++)
            n += runs[k]->is_near;
        TEST_INT(n, ELEMENTSOF(runs) - i < NEAR_POOL_MAX ? ELEMENTSOF(runs) - i : NEAR_POOL_MAX);
        CU_ASSERT(runs[i]->is_near);
        end(runs[i]);
    }
    end_all();
}

/* The end of a run that is not near changes nothing. */
static void not_near(void) {
    struct run *last = NULL;

    begin();
    for (size_t i = 0; i < 2 * NEAR_POOL_MAX; i++)
        last = wait_for("db", RUN_KIND_ADHOC);
    CU_ASSERT(!last->is_near);
    end(last);
    TEST_INT(near.n, NEAR_POOL_MAX);
    end_all();
}

/* With many pools, at most NEAR_HOST_MAX ad hoc runs of the host are near, and as many runs of jobs. */
static void of_host(void) {
    char pool[16];

    begin();
    for (int i = 0; i < 2 * NEAR_HOST_MAX; i++) {
        snprintf(pool, sizeof(pool), "p%d", i);
        TEST_INT(wait_for(pool, RUN_KIND_ADHOC)->is_near, i < NEAR_HOST_MAX);
        TEST_INT(wait_for(pool, RUN_KIND_JOB)->is_near, i < NEAR_HOST_MAX);
    }
    TEST_INT(wait_for("", RUN_KIND_JOB)->is_near, false);
    end_all();
}

static unsigned n_changes;

static void on_change(_unused_ struct run_watch *watch, struct run *run) {
    n_changes += run->is_near;
}

/* The watch of the run that becomes near is called. */
static void watched(void) {
    struct run_watch watch = {.on_change = on_change};
    struct run *first, *next;

    begin();
    first = wait_for("db", RUN_KIND_ADHOC);
    for (size_t i = 1; i < NEAR_POOL_MAX; i++)
        (void) wait_for("db", RUN_KIND_ADHOC);
    next = wait_for("db", RUN_KIND_ADHOC);
    run_watch_add(next, &watch);
    n_changes = 0;
    end(first);
    TEST_INT(n_changes, 1);
    run_watch_remove(&watch);
    end_all();
}

static CU_TestInfo tests[] = {
    {"of a pool", of_pool}, {"not near", not_near}, {"of a host", of_host}, {"watched", watched}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "near", .pTests = tests});
