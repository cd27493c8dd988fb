/* SPDX-License-Identifier: MIT */
#include "daemon/runs/run.h"

#include <stdio.h>
#include <string.h>

#include "tests/harness/test.h"

static struct pool_settings pools[] = {
    {.name = "both", .limit = 9, .scope = POOL_SCOPE_CLUSTER, .host_limit = 2},
    {.name = "cluster", .limit = 4, .scope = POOL_SCOPE_CLUSTER},
    {.name = "host", .limit = 1, .scope = POOL_SCOPE_HOST},
};
static const struct settings settings = {.pools = pools, .n_pools = 3};

/* scopes: of the permits that it holds; or NULL. */
static struct run *make_held(const char *text, const char *scopes) {
    struct demands d;
    struct run_spec spec = {.kind = RUN_KIND_JOB, .name = "job", .pools = &d, .scopes = scopes};
    struct run *r = NULL;

    TEST_INT(demands_parse(text, &d), 0);
    TEST_INT(run_new(&r, &spec, &settings), 0);
    return r;
}

static struct run *make(const char *text) {
    return make_held(text, NULL);
}

static void has(const struct claim *c, const char *expected) {
    char text[DEMANDS_TEXT_SIZE];

    TEST_STRING(demands_format_refs(c->demands, c->n_demands, text), expected);
}

static void test_split(void) {
    _cleanup_(run_freep) struct run *all = make("both:2,cluster,host"), *gone = make("gone:3"), *none = make("");

    has(all->host_claim, "both:2,host:1");
    has(all->cluster_claim, "both:2,cluster:1");
    has(gone->host_claim, "");
    has(gone->cluster_claim, "gone:3"); /* no longer defined: taken for a pool of scope cluster */
    has(none->cluster_claim, "");
    CU_ASSERT(id_is_valid(all->id));
    TEST_STRING(all->host_claim->id, all->id); /* both claims have the id of their run */
    TEST_STRING(all->cluster_claim->id, all->id);
    CU_ASSERT_PTR_EQUAL(all->host_claim->owner, all);
}

/* Permits stay in the store that granted them, whatever scope the config has now. Only host-limit follows the config. */
static void test_held(void) {
    _cleanup_(run_freep) struct run *same = make_held("both:2,cluster,host", "bch"), *other = make_held("both:2,cluster,host", "chc"),
                                    *moved = make_held("both:2,gone:3", "hh");
    char text[RUN_SCOPES_SIZE];

    has(same->host_claim, "both:2,host:1");
    has(same->cluster_claim, "both:2,cluster:1");
    TEST_STRING(run_format_scopes(same, text), "bch");
    has(other->host_claim, "both:2,cluster:1"); /* its host-limit is new */
    has(other->cluster_claim, "both:2,host:1");
    TEST_STRING(run_format_scopes(other, text), "bhc");
    has(moved->host_claim, "both:2,gone:3");
    has(moved->cluster_claim, "");
    TEST_STRING(run_format_scopes(moved, text), "hh");
}

static unsigned n_changes;

static void watch_on_change(struct run_watch *watch, _unused_ struct run *run) {
    n_changes++;
    run_watch_remove(watch);
    run_watch_remove(watch);
}

static void test_state(void) {
    struct list lists[RUN_STATES];
    struct run_watch watch = {.on_change = watch_on_change};
    struct run *r = make("host");

    for (size_t i = 0; i < RUN_STATES; i++)
        list_init(&lists[i]);
    run_watch_add(r, &watch);
    n_changes = 0;
    run_set_state(r, lists, RUN_STATE_WAITING);
    TEST_INT(n_changes, 1);
    CU_ASSERT_PTR_EQUAL(list_first(&lists[RUN_STATE_WAITING], struct run, link), r);
    run_set_state(r, lists, RUN_STATE_DONE);
    TEST_INT(n_changes, 1); /* it removed itself */
    CU_ASSERT(list_is_empty(&lists[RUN_STATE_WAITING]));
    CU_ASSERT(run_is_over(r));
    run_free(r);
    CU_ASSERT(list_is_empty(&lists[RUN_STATE_DONE]));
}

static void test_times(void) {
    _cleanup_(run_freep) struct run *r = make("host");

    r->queued.boottime = 100;
    TEST_INT(run_wait_usec(r, 130), 30);
    TEST_INT(run_time_usec(r, 130), 0);
    r->started.boottime = 150;
    TEST_INT(run_wait_usec(r, 400), 50);
    TEST_INT(run_time_usec(r, 170), 20);
    r->end.boottime = 200;
    TEST_INT(run_time_usec(r, 400), 50);
}

static void test_names(void) {
    for (enum run_result result = RUN_RESULT_SUCCESS; result < RUN_RESULTS; result++)
        TEST_INT(run_result_parse(run_result_name(result)), result);
    TEST_INT(run_result_parse("no such"), RUN_RESULT_NONE);
    CU_ASSERT_PTR_NULL(run_result_name(RUN_RESULT_NONE));
    TEST_STRING(run_state_name(RUN_STATE_STARTING), "starting");
}

static void test_reason(void) {
    _cleanup_(run_freep) struct run *r = make("host");

    run_set_reason(r, "%s: %d", "first", 1);
    run_set_reason(r, "second");
    TEST_STRING(r->reason, "first: 1");
}

static CU_TestInfo tests[] = {
    {"split", test_split}, {"held", test_held}, {"state", test_state},   {"times", test_times},
    {"names", test_names}, {"reason", test_reason}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "run", .pTests = tests});
