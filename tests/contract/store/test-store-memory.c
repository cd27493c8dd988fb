/* SPDX-License-Identifier: MIT */

/* store-memory keeps the contract of store/store.h. */

#include "tests/harness/store/store-suite.h"

static int make(void *userdata _unused_, unsigned host _unused_, const char *host_name, bool is_first _unused_, sd_event *event,
                struct events *events, const struct store_listener *listener, struct store **ret) {
    return store_memory_new(ret, event, events, host_name, listener);
}

static const struct store_fixture fixture = {.n_hosts = 1, .host_scope = true, .n_seeds = 100, .make = make};
static const struct store_pool pools[] = {{.name = "one", .limit = 1, .queue_limit = 10}};

/* A claim that was revoked while it waited gets no permits, even if its owner is slow to release it. */
static void test_revoked_waiter_gets_nothing(void) {
    struct bed b;

    if (!bed_init(&b, &fixture, pools, 1) || !bed_start(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "one"), *revoked = bed_probe(&b, 0, "one"), *next = bed_probe(&b, 0, "one");
    probe_grant(holder);
    probe_wait(revoked);
    probe_wait(next);
    TEST_INT(bed_revoke(&b, 0, revoked->claim.id), 0);
    TEST_INT(bed_revoke(&b, 0, revoked->claim.id), 0); /* on_lost is called once */
    probe_release(holder);
    BED_UNTIL(&b, next->n_granted > 0);
    bed_settle(&b);
    TEST_INT(revoked->n_lost, 1);
    TEST_INT(revoked->n_granted, 0);
    TEST_INT(revoked->claim.state, CLAIM_STATE_WAITING);
    bed_done(&b);
}

/* The claim is granted, but revoked before on_granted: its owner has started nothing, so it stops nothing. */
static void test_revoked_before_told(void) {
    struct bed b;

    if (!bed_init(&b, &fixture, pools, 1) || !bed_start(&b))
        return;
    struct probe *p = bed_probe(&b, 0, "one");
    probe_ask(p);
    TEST_INT(bed_revoke(&b, 0, p->claim.id), 0);
    BED_UNTIL(&b, p->n_lost > 0);
    TEST_INT(p->n_granted, 0);
    TEST_INT(bed_used(&b, "one"), 0);
    bed_done(&b);
}

/* store_send() grants the next claim without waiting for the next turn of the loop. */
static void test_sent_at_once(void) {
    struct bed b;

    if (!bed_init(&b, &fixture, pools, 1) || !bed_start(&b))
        return;
    struct probe *holder = bed_probe(&b, 0, "one"), *next = bed_probe(&b, 0, "one");
    probe_grant(holder);
    probe_wait(next);
    store_release(b.stores[0], &holder->claim);
    TEST_INT(next->n_granted, 0);
    store_send(b.stores[0]);
    TEST_INT(next->n_granted, 1);
    TEST_INT(holder->claim.state, CLAIM_STATE_NONE);
    bed_settle(&b);
    TEST_INT(next->n_granted, 1);
    bed_done(&b);
}

static void on_reply(int r, void *userdata) {
    *(int *) userdata = r;
}

static void on_inspected(int r, struct snapshot *snapshot, void *userdata) {
    CU_ASSERT_PTR_NULL(snapshot);
    *(int *) userdata = r;
}

/* Each reply comes once, even if the store is freed first. */
static void test_free_answers(void) {
    int limit = 1, snapshot = 1, stop = 1;
    struct bed b;

    if (!bed_init(&b, &fixture, pools, 1) || !bed_start(&b))
        return;
    struct store *s = NULL;
    const struct store_listener listener = b.stores[0]->listener;
    TEST_INT(store_memory_new(&s, b.event, b.events, "ant", &listener), 0);
    TEST_INT(store_declare(s, pools, 1, false), 0);
    TEST_INT(store_override(s, &(struct store_override){.pool = "one", .limit = 1}, on_reply, &limit), 0);
    TEST_INT(store_inspect(s, NULL, on_inspected, &snapshot), 0);
    store_stop(s, on_reply, &stop);
    CU_ASSERT_PTR_NULL(store_free(s));
    TEST_INT(limit, -ENOTCONN);
    TEST_INT(snapshot, -ENOTCONN);
    TEST_INT(stop, -ENOTCONN);
    bed_done(&b);
}

static CU_TestInfo tests[] = {
    {"revoked waiter gets nothing", test_revoked_waiter_gets_nothing},
    {"sent at once", test_sent_at_once},
    {"revoked before on_granted", test_revoked_before_told},
    {"free answers", test_free_answers},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-memory", .pTests = store_suite_tests},
                             {.pName = "store-memory alone", .pTests = tests},
                             CU_SUITE_INFO_NULL};

    store_suite_use(&fixture);
    return test_main(argc, argv, suites);
}
