/* SPDX-License-Identifier: MIT */
/* The use of pools in made-up events: changing limits, waits, open runs, pools of one host. */
#include <stdlib.h>
#include <string.h>

#include "cli/history/use.h"
#include "tests/harness/test.h"

#define SEC USEC_PER_SEC
#define BASE (1000000 * SEC)
#define NEAR(value, expected) CU_ASSERT((value) > (expected) -0.001 && (value) < (expected) + 0.001)

static struct entry items[100];
static struct entries entries = {.items = items};
static struct past *pasts;
static size_t n_pasts;
static struct history_hosts hosts;
static struct uses uses;

static void done(void) {
    free(pasts);
    pasts = NULL;
    history_hosts_done(&hosts);
    uses_done(&uses);
}

static void begin(void) {
    done();
    entries.n = 0;
}

static struct entry *add(long at, const char *event, const char *run, const char *pools) {
    struct entry *e = &items[entries.n++];

    *e = (struct entry){.event = (char *) event,
                        .run = (char *) run,
                        .host = (char *) "ant",
                        .boot = (char *) "1",
                        .job = (char *) "dump",
                        .pools = (char *) pools,
                        .cursor = (char *) "",
                        .asked.head_start_ms = -1,
                        .took = {.wait_ms = -1, .run_ms = -1},
                        .exit = {-1, -1},
                        .uid = -1};
    e->time = (usec_t) ((int64_t) BASE + at * (int64_t) SEC);
    return e;
}

static void add_limits(long at, const char *event, const char *limits) {
    struct entry *e = add(at, event, NULL, NULL);

    e->limits = (char *) limits;
    e->clock = 1;
}

/* Adds a run. queued == granted: it did not wait. released < 0: it goes on. */
static void add_run(const char *run, const char *pools, long queued, long granted, long released) {
    if (queued != granted)
        add(queued, "queued", run, pools);
    add(granted, "granted", run, pools)->took.wait_ms = 1000 * (granted - queued);
    if (released < 0)
        return;
    add(released, "exited", run, pools)->result = (char *) "success";
    add(released, "released", run, pools);
}

/* Returns the use of the pool in the 100 s from BASE, in 4 cells. */
static const struct use_pool *make(const char *name) {
    done();
    TEST_INT(pasts_make(&entries, &pasts, &n_pasts), 0);
    TEST_INT(history_hosts_make(&entries, &hosts), 0);
    TEST_INT(uses_make(&uses, &entries, pasts, n_pasts, &hosts, BASE, BASE + 100 * SEC, 4), 0);
    for (size_t i = 0; i < uses.n; i++)
        if (use_pool_is(&uses.pools[i], name))
            return &uses.pools[i];
    CU_FAIL_FATAL("no such pool");
    return NULL;
}

static double share(const struct use_cell *c) {
    return c->allowed > 0 ? c->held / c->allowed : -1;
}

static void test_use(void) {
    const struct use_pool *db;

    begin();
    add_limits(-50, "redis-connected", "db:4/declared,net:2/declared");
    add_run("a", "db:2,net:1", 0, 0, 50);
    add_run("b", "db:3", 10, 50, 75); /* waits 40 s */
    db = make("db");
    TEST_INT(uses.n, 2);
    NEAR(share(&db->all), (2 * 50 + 3 * 25) / 400.0);
    NEAR(share(&db->cells[0]), 0.5);
    NEAR(share(&db->cells[1]), 0.5);
    NEAR(share(&db->cells[2]), 0.75);
    NEAR(share(&db->cells[3]), 0);
    TEST_INT(db->peak, 3);
    TEST_INT(db->full, 40 * SEC);
    TEST_INT(db->wait.n, 1);
    TEST_INT(db->wait.p95, 40000);
    TEST_INT(db->limit_min, 4);
    TEST_INT(db->limit_max, 4);
    TEST_INT(make("net")->peak, 1);
    TEST_INT(make("net")->full, 0);
}

/* An override counts until it ends. Time with the limit 0 is left out. Use above the limit is shown as it
 * is. */
static void test_limits(void) {
    const struct use_pool *db;

    begin();
    add_limits(-50, "redis-connected", "db:4/declared");
    add_limits(25, "limit-changed", "db:2");
    add_limits(50, "limit-changed", "db:0");
    add_limits(75, "limit-changed", "db:-");
    add_run("a", "db:3", 0, 0, 100);
    db = make("db");
    NEAR(share(&db->cells[0]), 0.75);
    NEAR(share(&db->cells[1]), 1.5);
    CU_ASSERT(share(&db->cells[2]) < 0);
    NEAR(share(&db->cells[3]), 0.75);
    NEAR(share(&db->all), 0.9);
    TEST_INT(db->limit_min, 0);
    TEST_INT(db->limit_max, 4);
    TEST_INT(db->shut, 25 * SEC);
    add_limits(90, "redis-connected", "db:5/declared"); /* without an override there is none */
    TEST_INT(make("db")->limit_max, 5);
}

/* Before the first limit in the journals, that limit counts. Without any limit there is no share. */
static void test_unknown_limits(void) {
    begin();
    add_limits(50, "redis-connected", "db:4/declared");
    add_run("a", "db:1,gone:1", 0, 0, 100);
    NEAR(share(&make("db")->all), 0.25);
    CU_ASSERT(share(&make("gone")->all) < 0 && !make("gone")->has_limit);
    TEST_INT(make("gone")->peak, 1);
}

/* An open run holds or waits to the end of the period. A run that ended with a boot of its host is left
 * out. */
static void test_open(void) {
    const struct use_pool *db;

    begin();
    add_limits(-50, "redis-connected", "db:2/declared");
    add_run("a", "db:1", -20, -20, -1);
    add(60, "queued", "b", "db:1");
    db = make("db");
    NEAR(share(&db->all), 0.5);
    TEST_INT(db->full, 40 * SEC);
    TEST_INT(db->wait.n, 0);
    add(80, "ready", NULL, NULL)->boot = (char *) "2";
    NEAR(share(&make("db")->all), 0);
}

/* Pools of one host are apart; keys have the limit of their pattern; the pool of a job and a pattern are not
 * shown. */
static void test_kinds(void) {
    begin();
    add_limits(-50, "redis-connected", "tenant/*:2/declared,@copy:1/declared");
    add(-40, "ready", NULL, NULL)->limits = (char *) "cpu:2/host";
    add(-40, "ready", NULL, NULL)->limits = (char *) "cpu:4/host";
    items[entries.n - 1].host = (char *) "bee";
    add_run("a", "cpu:1,tenant/x:1,@copy:1", 0, 0, 100);
    (void) make("cpu");
    TEST_INT(uses.n, 3);
    TEST_STRING(uses.pools[0].host, "ant");
    NEAR(share(&uses.pools[0].all), 0.5);
    TEST_STRING(uses.pools[1].host, "bee");
    NEAR(share(&uses.pools[1].all), 0);
    NEAR(share(&make("tenant/x")->all), 0.5);
}

/* The limit of a key follows that of its pattern. An override of the key takes precedence, and after it that of the pattern. */
static void test_keys(void) {
    const struct use_pool *key;

    begin();
    add_limits(-50, "redis-connected", "tenant/*:4/declared");
    add_limits(25, "limit-changed", "tenant/*:2");
    add_limits(50, "limit-changed", "tenant/*:-");
    add_limits(75, "redis-connected", "tenant/*:8/declared");
    add_run("a", "tenant/x:2", 0, 0, 100);
    key = make("tenant/x");
    NEAR(share(&key->cells[0]), 0.5);
    NEAR(share(&key->cells[1]), 1);
    NEAR(share(&key->cells[2]), 0.5);
    NEAR(share(&key->cells[3]), 0.25);
    TEST_INT(key->limit_min, 2);
    TEST_INT(key->limit_max, 8);
    begin();
    add_limits(-50, "redis-connected", "tenant/*:4/declared,tenant/x:5/declared");
    add_limits(0, "limit-changed", "tenant/*:2");
    add_limits(25, "limit-changed", "tenant/x:1");
    add_limits(50, "limit-changed", "tenant/x:-");
    add_limits(75, "limit-changed", "tenant/*:-");
    add_run("a", "tenant/x:1", 0, 0, 100);
    key = make("tenant/x");
    NEAR(share(&key->cells[0]), 0.5);
    NEAR(share(&key->cells[1]), 1);
    NEAR(share(&key->cells[2]), 0.5);
    NEAR(share(&key->cells[3]), 0.2);
}

/* The end of an override is not in a journal if all hosts were away. The next connection shows that it has ended. */
static void test_connections(void) {
    const struct use_pool *key;

    begin();
    add_limits(-50, "redis-connected", "tenant/*:4/declared");
    add_limits(0, "limit-changed", "tenant/x:1");
    add_limits(25, "redis-connected", "tenant/*:4/declared,tenant/x:1");
    add_limits(50, "redis-connected", "tenant/*:4/declared");
    add_run("a", "tenant/x:1", 0, 0, 100);
    key = make("tenant/x");
    NEAR(share(&key->cells[0]), 1);
    NEAR(share(&key->cells[1]), 1);
    NEAR(share(&key->cells[2]), 0.25);
    NEAR(share(&key->cells[3]), 0.25);
}

int main(int argc, char **argv) {
    CU_TestInfo tests[] = {
        {"use", test_use},   {"limits", test_limits}, {"unknown-limits", test_unknown_limits},
        {"open", test_open}, {"kinds", test_kinds},
        {"keys", test_keys}, {"connections", test_connections}, CU_TEST_INFO_NULL,
    };
    CU_SuiteInfo suites[] = {{.pName = "history-use", .pTests = tests}, CU_SUITE_INFO_NULL};
    int r = test_main(argc, argv, suites);

    done();
    return r;
}
