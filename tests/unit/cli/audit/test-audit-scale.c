/* SPDX-License-Identifier: MIT */
/* The audit's time grows with the log, not with its square: one log of many runs takes about as long as many
 * small ones with as many runs together. Both are measured in turns as CPU time, and the minimum of a few
 * rounds counts, because other load only adds to it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "tests/harness/judge/audit-fixture.h"
#include "tests/harness/test.h"

#define SMALL 250 /* runs */
#define LONG 1000 /* small enough that quadratic work costs little */
#define FACTOR 16 /* small logs for one large log; quadratic work takes 16 times as long there */
#define MARGIN 5  /* sorting and cache misses: up to 2 */
#define ROUNDS 5

/* --- records --- */

static const char *name(size_t i) {
    static char text[32];

    snprintf(text, sizeof(text), "run-%zu", i);
    return text;
}

static struct entry *say_of(struct writer *w, long msec, const char *event, size_t i, const char *pools, long token) {
    struct entry e = audit_fixture_entry(w, msec, event, name(i), pools);

    e.token = BASE + (usec_t) token * USEC_PER_MSEC;
    audit_fixture_add(&e);
    return &record.items[record.n - 1];
}

static void asks(struct writer *w, long msec, size_t i, const char *pools, int64_t position) {
    struct entry *e = say_of(w, msec + 1, "queued", i, pools, 0);

    e->token = 0;
    e->ticket = BASE + (usec_t) msec * USEC_PER_MSEC;
    e->position = position;
}

/* Adds a run that is granted, and over 30 ms later. */
static void lives(struct writer *w, long asked, long granted, size_t i, const char *pools) {
    audit_fixture_grant(w, asked, granted, name(i), pools);
    say_of(w, granted + 2, "started", i, pools, granted);
    say_of(w, granted + 30, "exited", i, pools, granted);
    say_of(w, granted + 31, "released", i, pools, granted)->clock = BASE + (usec_t) (granted + 30) * USEC_PER_MSEC;
}

static void both_up(const char *text) {
    audit_fixture_begin();
    audit_fixture_up(&ant, 0, text);
    audit_fixture_up(&bee, 0, text);
}

static long at(size_t i) {
    return 100000 + 100 * (long) i;
}

static void make_well(size_t n) {
    both_up("db:1/declared");
    for (size_t i = 0; i < n; i++)
        lives(i % 2 ? &ant : &bee, at(i), at(i), i, "db:1");
}

/* Each logged place is behind more claims than the log has, even with all claims of unknown place. */
static void make_unseen(size_t n) {
    both_up("db:1/declared");
    for (size_t i = 0; i < n; i++) {
        asks(&ant, at(i), i, "db:1", 2 * (int64_t) n);
        if (i % 2)
            lives(&ant, at(i), at(i) + 10, i, "db:1");
        else
            audit_fixture_add_event(&ant, at(i) + 10, "withdrawn", name(i), "db:1");
    }
    for (size_t i = 0; i < n; i++)
        audit_fixture_add_event(&bee, at(n), "withdrawn", name(n + i), "db:1");
    audit_fixture_add_event(&ant, at(n) + 200000, "limits-differ", NULL, "db");
    audit_fixture_add_event(&bee, at(n) + 200000, "limits-differ", NULL, "db");
}

static void make_long_queue(size_t n) {
    both_up("db:1/declared");
    for (size_t i = 0; i < n; i++)
        asks(&ant, 100000 + (long) i, i, i % 3 ? "db:1" : "net:1,db:1", (int64_t) i + 1);
    for (size_t i = 0; i < n; i++)
        lives(&ant, 100000 + (long) i, 200000 + 100 * (long) i, i, i % 3 ? "db:1" : "net:1,db:1");
}

/* Each grant passes all claims that need more than the limit. */
static void make_parked(size_t n) {
    both_up("db:1/declared");
    for (size_t i = 0; i < n; i++)
        asks(&ant, 100000 + (long) i, i, "db:2", 0);
    for (size_t i = 0; i < n; i++)
        lives(&bee, at(i) + 200000, at(i) + 200000, n + i, "db:1");
    audit_fixture_declare(&ant, at(n) + 300000, "config-loaded", "db:2/declared");
    audit_fixture_declare(&bee, at(n) + 300000, "config-loaded", "db:2/declared");
    for (size_t i = 0; i < n; i++)
        lives(&ant, 100000 + (long) i, at(n + i) + 400000, i, "db:2");
}

/* Hosts that lose their leases, and runs that are reclaimed before their host learned of the grant. */
static void make_reclaimed(size_t n) {
    both_up("db:1/declared");
    for (size_t i = 0; i < n; i++) {
        struct entry *e;

        asks(&ant, at(i), i, "db:1", 1);
        e = say_of(&bee, at(i) + 20, "reclaimed", i, "db:1", at(i) + 10);
        e->clock = BASE + (usec_t) (at(i) + 20) * USEC_PER_MSEC;
        free(e->host);
        e->host = strdup(i % 2 ? "ant" : name(n + i));
    }
}

/* Each berthd is killed after a grant, and logs nothing more of it. Once the pool is full, each further
 * grant is unproved. */
static void make_killed(size_t n) {
    static char process[32];

    both_up("db:300/declared");
    for (size_t i = 0; i < n; i++) {
        audit_fixture_grant(&ant, at(i), at(i), name(i), "db:1");
        snprintf(process, sizeof(process), "ant/%zu", i + 2);
        ant = (struct writer) {"ant", process, "boot-a1", 0, 0};
        audit_fixture_up(&ant, at(i) + 50, "db:300/declared");
    }
}

static void make_epochs(size_t n) {
    both_up("db:1/declared");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < 2; k++) {
            struct writer *w = k ? &ant : &bee;

            audit_fixture_add_event(w, at(i), "redis-lost", NULL, NULL);
            audit_fixture_add_event(w, at(i) + 10, "grace-begun", NULL, NULL);
            audit_fixture_declare(w, at(i) + 20, "redis-connected", "db:1/declared");
            audit_fixture_add_event(w, at(i) + 30, "grace-ended", NULL, NULL);
        }
}

/* One pool for each run. */
static void make_pools(size_t n) {
    char *text = NULL, pools[32];
    size_t size;
    FILE *f = open_memstream(&text, &size);

    for (size_t i = 0; f && i < n; i++)
        fprintf(f, "%spool-%zu:1/%s", i > 0 ? "," : "", i, i % 2 ? "declared" : "host");
    CU_ASSERT(f && fclose(f) == 0);
    both_up(text);
    free(text);
    for (size_t i = 0; i < n; i++) {
        snprintf(pools, sizeof(pools), "pool-%zu:1", i);
        lives(&ant, at(i), at(i), i, pools);
    }
}

static void make_host_limits(size_t n) {
    both_up("db:1/declared");
    for (size_t i = 0; i < n; i++) {
        for (long k = 0; k < 5; k++)
            audit_fixture_limits(&ant, at(i) + k, "config-loaded", k % 2 ? "own:1/host" : "own:2/host");
        lives(&ant, at(i) + 5, at(i) + 5, i, "own:1");
    }
}

/* Each run needs a permit of its own key besides one of a pool that all share. It waits behind the one before. */
static void make_keys(size_t n) {
    char pools[64];

    both_up("db:1/declared,key/*:1/declared");
    for (size_t i = 0; i < n; i++) {
        snprintf(pools, sizeof(pools), "db:1,key/k%zu:1", i);
        asks(&ant, at(i), i, pools, i == 0 ? 1 : 2);
        lives(&ant, at(i), at(i) + 150, i, pools);
    }
}

/* A host connects again for each run, and declares the pattern of all keys. */
static void make_connections_of_keys(size_t n) {
    char pools[64];

    both_up("key/*:1/declared");
    for (size_t i = 0; i < n; i++) {
        snprintf(pools, sizeof(pools), "key/k%zu:1", i);
        lives(&ant, at(i), at(i), i, pools);
        audit_fixture_declare(&bee, at(i) + 50, "redis-connected", "key/*:1/declared");
    }
}

/* --- what they cost --- */

static clock_t cost(const struct entries *entries, size_t times) {
    clock_t begun = clock();

    for (size_t i = 0; i < times; i++) {
        audit_report_done(&report);
        TEST_INT(audit_check(entries, &options, &report), 0);
    }
    return clock() - begun;
}

static struct entries make(void (*shape)(size_t n), size_t n) {
    struct entries made;

    shape(n);
    made = record;
    record = (struct entries) {};
    return made;
}

/* Compares FACTOR logs of n runs with one log of FACTOR * n runs. */
static void compare(void (*shape)(size_t n), size_t n) {
    _cleanup_(entries_done) struct entries small = make(shape, n), large = make(shape, n * FACTOR);
    clock_t of_small = 0, of_large = 0;

    for (int round = 0; round < ROUNDS && (round == 0 || of_large > MARGIN * of_small); round++) {
        clock_t s = cost(&small, FACTOR), l = cost(&large, 1);

        of_small = round == 0 || s < of_small ? s : of_small;
        of_large = round == 0 || l < of_large ? l : of_large;
    }
    printf("%zu events %.1f ms, %d times %zu events %.1f ms\n", large.n, (double) of_large * 1e3 / CLOCKS_PER_SEC, FACTOR, small.n,
           (double) of_small * 1e3 / CLOCKS_PER_SEC);
    CU_ASSERT(of_large <= MARGIN * of_small);
}

static void test_well(void) {
    compare(make_well, SMALL);
    TEST_INT(report.n_findings + report.n_unproved, 0);
}

static void test_missing_host(void) {
    compare(make_unseen, SMALL);
    TEST_INT(report.n_no_journal, (size_t) SMALL * FACTOR);
}

static void test_long_queue(void) {
    compare(make_long_queue, LONG);
    TEST_INT(report.n_unproved, 0);
}

static void test_parked(void) {
    compare(make_parked, LONG);
    TEST_INT(report.n_findings, 0);
    TEST_INT(report.n_explained, (size_t) LONG * LONG * FACTOR * FACTOR);
}

static void test_reclaimed(void) {
    compare(make_reclaimed, SMALL);
    CU_ASSERT(report.n_no_journal > SMALL);
}

static void test_killed(void) {
    compare(make_killed, SMALL);
    CU_ASSERT(report.n_running > SMALL);
}

static void test_epochs(void) {
    compare(make_epochs, SMALL);
}

static void test_pools(void) {
    compare(make_pools, SMALL);
    TEST_INT(report.n_pools, (size_t) SMALL * FACTOR);
}

static void test_host_limits(void) {
    compare(make_host_limits, LONG);
    TEST_INT(report.n_findings, 0);
}

static void test_keys(void) {
    compare(make_keys, SMALL);
    TEST_INT(report.n_findings + report.n_unproved, 0);
}

static void test_connections_of_keys(void) {
    compare(make_connections_of_keys, SMALL);
    TEST_INT(report.n_findings + report.n_unproved, 0);
}

static CU_TestInfo tests[] = {{"well", test_well},           {"missing host", test_missing_host},
                              {"long queue", test_long_queue}, {"parked", test_parked},
                              {"reclaimed", test_reclaimed},
                              {"killed", test_killed},       {"epochs", test_epochs},
                              {"pools", test_pools},         {"host limits", test_host_limits},
                              {"keys", test_keys},           {"connections of keys", test_connections_of_keys},
                              CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "audit of long records", .pCleanupFunc = audit_fixture_done, .pTests = tests});
