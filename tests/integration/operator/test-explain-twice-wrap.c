/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=clock_realtime */

/* `berth explain` draws random times for its estimate. Asked twice at the same moment, it prints the same. It names
 * what a reply lacks. A fake berthd answers, and the clock of `berth` stands still. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"
#include "tests/harness/host/fake-berthd.h"
#include "tests/harness/test.h"

#define NOW_SEC 1800000000 /* 2027-01-15T08:00:00Z */
#define WAITS "fedcba9876543210fedcba9876543210"
#define CLAIM(n) "'0123456789abcdef0123456789abcde" n "'"
#define QUANTILES(runs) "'runs': " runs ", 'q_ms': [1000, 2000, 5000, 9000, 20000, 50000, 70000, 99000]}"
#define POOLS                                                                                               \
    "'schema': 1, 'stale': false, 'complete': true, 'age_ms': 0, 'pools': [{'name': 'db', 'scope': 'cluster', 'limit': 2, "\
    "'used': 2, 'waiting': 2, 'holders': ["                                                                 \
    "{'claim': " CLAIM("1") ", 'host': 'bee', 'name': 'a', 'permits': 1, 'since': '2027-01-15T07:59:50Z'}, " \
    "{'claim': " CLAIM("2") ", 'host': 'bee', 'name': 'b', 'permits': 1, 'since': '2027-01-15T07:59:58Z'}], " \
    "'queue': [{'claim': " CLAIM("3") ", 'host': 'bee', 'name': 'a', 'permits': 2, 'position': 1}, "        \
    "{'claim': '" WAITS "', 'host': 'ant', 'name': 'report', 'permits': 1, 'position': 2}]}]"

static const struct {
    const char *method, *reply;
} answers[] = {
    {"io.berth.Version", "{'parameters': {'host': 'ant', 'version': '1'}}"},
    {"io.berth.Runs", "{'parameters': {'runs': [{'run': '" WAITS "', 'name': 'report', 'state': 'waiting', "
                      "'wait_ms': 5000, 'pools': {'db': 1}, 'position': {'db': 2}, 'blocked_by': 'pool full: db', "
                      "'moved': {'at': '2027-01-15T08:00:01Z', 'head_start_ms': 5000}}]}}"},
    {"io.berth.Pools", "{'parameters': {" POOLS "}}"},
    {"io.berth.Pools", "{'parameters': {" POOLS ", 'usual': ["
                       "{'host': 'bee', 'name': 'a', " QUANTILES("64") ", {'host': 'bee', 'name': 'b', " QUANTILES("20") "]}}"},
};

static usec_t now = NOW_SEC * USEC_PER_SEC;
static bool is_json;

usec_t __wrap_clock_realtime(void);
usec_t __wrap_clock_realtime(void) {
    return now;
}

/* In the child, in place of `berth run`. */
static void explain(_unused_ struct fake *f) {
    char program[] = "berth", verb[] = "explain", name[] = "report", json[] = "--json";
    char *argv[] = {program, verb, name, is_json ? json : NULL, NULL};

    exit(cli_main(is_json ? 4 : 3, argv));
}

/* Returns what it prints, to be freed. */
static char *asked(void) {
    struct fake f;
    char *text;

    fake_init(&f);
    fake_in_child = explain;
    fake_run(&f, "", NULL);
    for (size_t i = 0; i < ELEMENTSOF(answers); i++) {
        fake_accept(&f);
        json_decref(fake_expect(&f, answers[i].method));
        fake_reply(&f, answers[i].reply);
    }
    TEST_INT(fake_await_exit(&f), 0);
    TEST_STRING(fake_errors(&f), "");
    fake_await_output(&f, is_json ? "samples" : "start    in ");
    text = strdup(f.text);
    fake_done(&f);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    return text;
}

static void test_twice(void) {
    for (unsigned kind = 0; kind < 2; kind++) {
        char *first, *second, *later;

        is_json = kind == 0;
        now = NOW_SEC * USEC_PER_SEC;
        first = asked();
        second = asked();
        if (!is_json) /* Redis's clock may be ahead */
            CU_ASSERT(strstr(first, "\n  moved    0ms ago by an operator") != NULL);
        now += 10 * USEC_PER_SEC;
        later = asked();
        TEST_STRING(second, first);
        CU_ASSERT(strcmp(later, first) != 0); /* the holders are older */
        free(first);
        free(second);
        free(later);
    }
}

/* Renames the first member of this name in a reply, to be freed. */
static char *without(const char *reply, const char *member) {
    char *text = strdup(reply), quoted[32], *at;

    CU_ASSERT_FATAL(text != NULL);
    snprintf(quoted, sizeof(quoted), "'%s':", member);
    at = strstr(text, quoted);
    CU_ASSERT_FATAL(at != NULL);
    at[1] = 'X';
    return text;
}

static void test_missing(void) {
    static const struct {
        size_t call;
        const char *what, *member;
    } rows[] = {
        {1, "runs", "run"},      {1, "runs", "name"},   {1, "runs", "state"},   {1, "runs", "pools"},
        {2, "pools", "pools"},   {2, "pools", "scope"}, {2, "pools", "used"},   {2, "pools", "waiting"},
        {2, "pools", "holders"}, {2, "pools", "queue"}, {2, "pools", "claim"},  {2, "pools", "host"},
        {2, "pools", "permits"}, {2, "pools", "name"},  {3, "pools", "position"}};
    char expected[128];
    struct fake f;

    is_json = true;
    for (size_t row = 0; row < ELEMENTSOF(rows); row++) {
        fake_init(&f);
        fake_in_child = explain;
        fake_run(&f, "", NULL);
        for (size_t i = 0; i <= rows[row].call; i++) {
            char *reply = i == rows[row].call ? without(answers[i].reply, rows[row].member) : strdup(answers[i].reply);

            fake_accept(&f);
            json_decref(fake_expect(&f, answers[i].method));
            fake_reply(&f, reply);
            free(reply);
        }
        fake_stop(&f); /* a `berth` that goes on ends as well */
        TEST_INT(fake_await_exit(&f), 70);
        snprintf(expected, sizeof(expected), "berth: berthd's reply about %s lacks \"%s\"\n", rows[row].what,
                 rows[row].member);
        TEST_STRING(fake_errors(&f), expected);
        fake_done(&f);
    }
}

static CU_TestInfo tests[] = {{"the same bytes", test_twice}, {"a reply that lacks a member", test_missing}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "explain-twice", .pTests = tests});
