/* SPDX-License-Identifier: MIT */
/* The audit of keys: a key has the limit of its pattern, unless it has one of its own. */
#include <stdio.h>
#include <string.h>

#include "tests/harness/judge/audit-fixture.h"
#include "tests/harness/test.h"

static void begin(void) {
    audit_fixture_begin();
    audit_fixture_up(&ant, 0, "t/*:1/declared");
    audit_fixture_up(&bee, 0, "t/*:1/declared");
}

static void test_each_key(void) {
    begin();
    audit_fixture_grant(&ant, 100, 100, "a", "t/x:1");
    audit_fixture_grant(&bee, 101, 101, "b", "t/y:1");
    audit_fixture_end(&ant, 500, "a", "t/x:1");
    audit_fixture_grant(&bee, 150, 501, "c", "t/x:1");
    audit_fixture_expect_proof();
    TEST_INT(report.n_granted, 3);

    begin();
    audit_fixture_grant(&ant, 100, 100, "a", "t/x:1");
    audit_fixture_grant(&bee, 150, 200, "b", "t/x:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "b", "2 permits of pool t/x in use, its limit is 1; held before: a on ant");
}

/* The key's own override goes first, then that of the pattern. */
static void test_overrides(void) {
    begin();
    audit_fixture_declare(&ant, 50, "limit-changed", "t/x:2");
    audit_fixture_declare(&ant, 60, "limit-changed", "t/*:1");
    audit_fixture_grant(&ant, 100, 100, "a", "t/x:1");
    audit_fixture_grant(&bee, 150, 200, "b", "t/x:1");
    audit_fixture_expect_proof();
    audit_fixture_grant(&ant, 210, 210, "c", "t/y:1");
    audit_fixture_grant(&bee, 220, 220, "d", "t/y:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "2 permits of pool t/y in use, its limit is 1");

    begin();
    audit_fixture_declare(&ant, 50, "limit-changed", "t/*:2");
    audit_fixture_grant(&ant, 100, 100, "a", "t/x:1");
    audit_fixture_grant(&bee, 150, 200, "b", "t/x:1");
    audit_fixture_expect_proof();
    audit_fixture_declare(&ant, 300, "limit-changed", "t/x:2");
    audit_fixture_declare(&ant, 310, "limit-changed", "t/*:-");
    audit_fixture_declare(&ant, 320, "limit-changed", "t/x:-");
    audit_fixture_end(&ant, 400, "a", "t/x:1");
    audit_fixture_grant(&bee, 350, 410, "c", "t/x:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "c", "2 permits of pool t/x in use, its limit is 1");
}

/* A key that is declared in full does not have the declared limit of its pattern. */
static void test_in_full(void) {
    audit_fixture_begin();
    audit_fixture_up(&ant, 0, "t/*:1/declared,t/x:2/declared");
    audit_fixture_grant(&ant, 100, 100, "a", "t/x:2");
    audit_fixture_expect_proof();
    audit_fixture_grant(&ant, 200, 200, "b", "t/y:1");
    audit_fixture_grant(&ant, 210, 210, "c", "t/y:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "c", "2 permits of pool t/y in use, its limit is 1");
}

/* An override that a later redis-connected does not list has ended. */
static void test_connected(void) {
    audit_fixture_begin();
    audit_fixture_up(&ant, 0, "t/*:1/declared,t/x:2");
    audit_fixture_grant(&ant, 100, 100, "a", "t/x:1");
    audit_fixture_grant(&ant, 150, 200, "b", "t/x:1");
    audit_fixture_expect_proof();
    audit_fixture_declare(&ant, 300, "redis-connected", "t/*:1/declared");
    audit_fixture_end(&ant, 400, "a", "t/x:1");
    audit_fixture_grant(&ant, 350, 410, "c", "t/x:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "c", "2 permits of pool t/x in use, its limit is 1");
}

/* Of scope host: each host counts for itself. */
static void test_host(void) {
    audit_fixture_begin();
    audit_fixture_limits(&ant, 0, "ready", "t/*:1/host");
    audit_fixture_limits(&bee, 0, "ready", "t/*:1/host");
    audit_fixture_grant(&ant, 100, 100, "a", "t/x:1");
    audit_fixture_grant(&bee, 110, 110, "b", "t/x:1");
    audit_fixture_expect_proof();
    audit_fixture_limits(&ant, 200, "limit-changed", "t/x:2/host");
    audit_fixture_grant(&ant, 300, 300, "c", "t/x:1");
    audit_fixture_expect_proof();
    audit_fixture_limits(&ant, 400, "limit-changed", "t/x:-/host");
    audit_fixture_end(&ant, 500, "a", "t/x:1");
    audit_fixture_grant(&ant, 600, 600, "d", "t/x:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "d", "2 permits of pool t/x in use, its limit is 1");
}

/* A reload gives a pool another scope. What was claimed before keeps its permits where they are, and each scope has its own. */
static void test_scope_changes(void) {
    audit_fixture_begin();
    audit_fixture_up(&ant, 0, "db:1/declared");
    audit_fixture_grant(&ant, 100, 100, "a", "db:1");
    audit_fixture_limits(&ant, 200, "config-loaded", "db:2/host");
    audit_fixture_grant(&ant, 300, 300, "b", "db:1");
    audit_fixture_grant(&ant, 310, 310, "c", "db:1");
    audit_fixture_end(&ant, 400, "a", "db:1");
    audit_fixture_expect_proof();
    audit_fixture_add_event(&ant, 450, "queued", "f", "db:1"); /* as a claim of the host */
    audit_fixture_limits(&ant, 500, "config-loaded", "db:1/declared");
    audit_fixture_grant(&ant, 600, 600, "d", "db:1");
    audit_fixture_expect_proof();
    audit_fixture_end(&ant, 601, "b", "db:1");
    audit_fixture_add_event(&ant, 602, "granted", "f", "db:1");
    audit_fixture_expect_proof();
    audit_fixture_grant(&bee, 610, 610, "e", "db:1");
    audit_fixture_expect_violation(AUDIT_ABOVE_LIMIT, "e", "2 permits of pool db in use, its limit is 1");
}

static CU_TestInfo tests[] = {
    {"each key", test_each_key},
    {"overrides", test_overrides},
    {"in full", test_in_full},
    {"connected again", test_connected},
    {"of a host", test_host},
    {"scope changes", test_scope_changes},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "audit-keys", .pCleanupFunc = audit_fixture_done, .pTests = tests});
