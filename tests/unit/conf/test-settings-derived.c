/* SPDX-License-Identifier: MIT */

/* What follows from several settings: the hash of a job, the least lease, what a reload cannot change. */

#include <string.h>

#include "conf/options.h"
#include "tests/harness/host/config.h"
#include "tests/harness/test.h"

/* ---- hash ---- */

static void job_hash_of(const char *text, char ret[static 17]) {
    _cleanup_(settings_freep) struct settings *s = config_parse(text);

    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    CU_ASSERT_PTR_NOT_NULL_FATAL(settings_find_job(s, "j"));
    memcpy(ret, settings_find_job(s, "j")->hash, 17);
}

/* Each option that is part of the hash occurs in one of these jobs. */
static void expect_all_hashed(const char *const *jobs, size_t n) {
    const struct section *section = section_get(SECTION_JOB);
    char begin[64];

    for (size_t i = 0; i < section->n_options; i++) {
        size_t k = 0;

        snprintf(begin, sizeof(begin), "%s = ", section->options[i].name);
        while (k < n && !strstr(jobs[k], begin))
            k++;
        if (k == n && section->options[i].hash != HASH_NOT) {
            printf("%s is part of the hash\n", section->options[i].name);
            CU_FAIL("no job of the test has a hashed option");
        }
    }
}

static void test_hash(void) {
    static const char *const others[] = {
        "command = {\"/j\"}", "command = {\"/j\", \"a\", \"b\"}", "command = {\"/j\", \"ab\"} environment = {\"A=1\"}",
        "command = {\"/j\", \"ab\"} pools = {p}", "command = {\"/j\", \"ab\"} pools = {\"p:2\"}", "command = {\"/j\", \"ab\"} head-start = 1s",
        "command = {\"/j\", \"ab\"} at-start = true", "command = {\"/j\", \"ab\"} every = 1s", "command = {\"/j\", \"ab\"} overlap = queue",
        "command = {\"/j\", \"ab\"} queue-timeout = 1s", "command = {\"/j\", \"ab\"} timeout = 1s", "command = {\"/j\", \"ab\"} stop-signal = INT",
        "command = {\"/j\", \"ab\"} stop-timeout = 1s", "command = {\"/j\", \"ab\"} on-lease-lost = continue",
        "command = {\"/j\", \"ab\"} user = u", "command = {\"/j\", \"ab\"} group = u", "command = {\"/j\", \"ab\"} directory = \"/x\"",
        "command = {\"/j\", \"ab\"} umask = 0", "command = {\"/j\", \"ab\"} output = null", "command = {\"/j\", \"ab\"} output = \"/x\"",
        "command = {\"/j\", \"ab\"} description = u",
        "command = {\"/j\", \"ab\"} limits = {\"core=0\"}", "command = {\"/j\", \"ab\"} limits = {\"core=1\"}",
        "command = {\"/j\", \"ab\"} limits = {\"as=0\"}", "command = {\"/j\", \"ab\"} nice = 0", "command = {\"/j\", \"ab\"} nice = -1",
        "command = {\"/j\", \"ab\"} oom-score-adjust = 0", "command = {\"/j\", \"ab\"} no-new-privileges = true",
        "command = {\"/j\", \"ab\"} memory-max = 1", "command = {\"/j\", \"ab\"} memory-high = 1",
        "command = {\"/j\", \"ab\"} cpu-weight = 1", "command = {\"/j\", \"ab\"} tasks-max = 1",
        "command = {\"/j\", \"ab\"} operators = {a, b}", "command = {\"/j\", \"ab\"} operators = {b, a}",
        "script = \"/j\"", "script = \"/k\"", "script = \"/j\" shell = \"/bin/bash\"", "command = {\"/j\", \"ab\"} directory = \"~\"",
        "command = {\"/j\", \"ab\"} environment-file = {\"/a\"}", "command = {\"/j\", \"ab\"} environment-file = {\"-/a\"}",
        "command = {\"/j\", \"ab\"} credentials = {a}", "command = {\"/j\", \"ab\"} credentials = {\"a=/a\"}",
        "command = {\"/j\", \"ab\"} stdin = \"/a\"", "command = {\"/j\", \"ab\"} io-class = idle",
        "command = {\"/j\", \"ab\"} io-class = best-effort", "command = {\"/j\", \"ab\"} io-class = best-effort io-priority = 0",
        "command = {\"/j\", \"ab\"} parameters = {A}", "command = {\"/j\", \"ab\"} parameters = {\"A=a|b\"}",
        "command = {\"/j\", \"ab\"} operators = {ab}", "command = {\"/j\", \"ab\"} operators = {\"@ab\"}",
    };
    char first[17], other[ELEMENTSOF(others)][17], text[256];

    expect_all_hashed(others, ELEMENTSOF(others));
    job_hash_of("job j { command = {\"/j\", \"ab\"} }", first);
    /* Other syntax, another line and explicit defaults do not change the hash. */
    job_hash_of("pool p { limit = 1 scope = host }\n#\njob j {\n command = {'/j', ab}\numask = 0022 stop-timeout = \"5000ms\" timeout = \"\""
                " script = \"\" shell = \"/bin/sh\" stdin = null io-class = \"\" environment-file = {} credentials = {} }",
                text);
    TEST_STRING(text, first);
    /* Nor does the order of limits. */
    job_hash_of("job j { command = {\"/j\", \"ab\"} limits = {\"core=0\", \"as=1K\"} }", other[0]);
    job_hash_of("job j { command = {\"/j\", \"ab\"} limits = {\"as=1024\", \"core=0\"} }", text);
    TEST_STRING(text, other[0]);
    TEST_STRING(first, "d3f9e4b6dffa822c"); /* berthd and berth-runner may be of different versions while one is upgraded */
    for (size_t i = 0; i < ELEMENTSOF(others); i++) {
        snprintf(text, sizeof(text), "pool p { limit = 2 scope = host } job j { %s }", others[i]);
        job_hash_of(text, other[i]);
        CU_ASSERT(strcmp(other[i], first) != 0);
        for (size_t j = 0; j < i; j++)
            CU_ASSERT(strcmp(other[i], other[j]) != 0);
    }
}

/* ---- questions ---- */

static void test_margin(void) {
    struct settings s = {.lease_usec = 30 * USEC_PER_SEC, .heartbeat_usec = 5 * USEC_PER_SEC};

    TEST_INT(settings_margin(30 * USEC_PER_SEC), 500 * USEC_PER_MSEC);
    TEST_INT(settings_margin(100 * USEC_PER_SEC), 1000 * USEC_PER_MSEC);
    TEST_INT(settings_stop_timeout_max(&s), 19500 * USEC_PER_MSEC);
    TEST_INT(settings_stop_timeout_default(&s), 5 * USEC_PER_SEC);
    TEST_INT(settings_lease_min(10 * USEC_PER_SEC), 10500 * USEC_PER_MSEC);
    TEST_INT(settings_lease_min(990 * USEC_PER_SEC), 1000 * USEC_PER_SEC);
    s.lease_usec = 10 * USEC_PER_SEC;
    TEST_INT(settings_stop_timeout_max(&s), 0);
    TEST_INT(settings_stop_timeout_default(&s), 1666 * USEC_PER_MSEC);
}

/* settings_lease_min() is enough, and a millisecond less is not. */
static void test_lease_min_is_exact(void) {
    static const usec_t needed[] = {0, 1, 999, 30 * USEC_PER_SEC, 49500000, 49500001, 50 * USEC_PER_SEC, 4711 * USEC_PER_SEC + 17};

    for (size_t i = 0; i < ELEMENTSOF(needed); i++) {
        usec_t lease = settings_lease_min(needed[i]), less = lease - USEC_PER_MSEC;

        CU_ASSERT(lease >= needed[i] + settings_margin(lease));
        CU_ASSERT(less < needed[i] + settings_margin(less));
    }
}

static void test_default_stop_timeout_fits(void) {
    /* With the default heartbeat the default stop timeout fits every lease from 1s on. */
    for (usec_t lease = USEC_PER_SEC; lease < 600 * USEC_PER_SEC; lease += 7 * USEC_PER_MSEC) {
        struct settings s = {.lease_usec = lease, .heartbeat_usec = lease / 6 / 1000 * 1000};

        if (settings_stop_timeout_default(&s) > settings_stop_timeout_max(&s))
            TEST_INT(lease, 0);
    }
}

static void changes_from(const char *running, const char *loaded, const char *expected) {
    _cleanup_(settings_freep) struct settings *a = config_parse(running);
    _cleanup_(settings_freep) struct settings *b = config_parse(loaded);

    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    TEST_STRING(settings_find_fixed_change(a, b), expected);
}

static void changes(const char *loaded, const char *expected) {
    changes_from("redis { url = \"redis://u@h\" }\npool p { limit = 1 }", loaded, expected);
}

#define SENTINELS(list) "redis { url = \"redis:///0\" sentinels = " list " }"

/* Sentinels may be replaced one after the other, but not all at once. */
static void test_sentinels(void) {
    static const char running[] = SENTINELS("{a, \"b:1\", c}");
    _cleanup_(settings_freep) struct settings *a = config_parse(running), *b = config_parse(SENTINELS("{a, \"b:1\"}"));

    changes_from(running, SENTINELS("{d, \"b:1\", e}"), NULL);
    changes_from(running, SENTINELS("{c}"), NULL);
    changes_from(running, SENTINELS("{d, \"b:2\", ca}"), "redis");
    CU_ASSERT_FATAL(a && b);
    CU_ASSERT(settings_hash_redis(a->redis) != settings_hash_redis(b->redis));
    CU_ASSERT(settings_hash_redis(a->redis) == settings_hash_redis(a->redis));
}

static void test_fixed_change(void) {
    changes("\nlease = 30s redis { username = u url = \"redis://h\" }\npool q { limit = 2 }", NULL);
    changes("host = x redis { url = \"redis://u@h\" }", "host");
    changes("namespace = x redis { url = \"redis://u@h\" }", "namespace");
    changes("lease = 31s redis { url = \"redis://u@h\" }", "lease");
    changes("heartbeat = 4s redis { url = \"redis://u@h\" }", "heartbeat");
    changes("runtime-directory = \"/x\" redis { url = \"redis://u@h\" }", "runtime-directory");
    changes("", "redis");
    changes("redis { url = \"redis://h\" }", NULL);
    changes("redis { url = \"redis://u@h2\" }", "redis");
    changes("redis { url = \"redis://u@h:1\" }", "redis");
    changes("redis { url = \"redis://u@h/1\" }", "redis");
    changes("redis { url = \"unix:///h\" }", "redis");
    changes("redis { url = \"rediss://u@h\" }", "redis");
    changes("redis { url = \"redis://u@h\" timeout = 1s }", NULL);
    changes("redis { url = \"redis://u@h\" connect-timeout = 1s }", NULL);
    changes("redis { url = \"redis://v@h\" }", NULL);
    changes("redis { url = \"redis://u@h\" password-file = \"/p\" }", NULL);
}

static CU_TestInfo tests[] = {
    {"hash", test_hash},
    {"margin", test_margin},
    {"lease-min-is-exact", test_lease_min_is_exact},
    {"default-stop-timeout-fits", test_default_stop_timeout_fits},
    {"fixed-change", test_fixed_change}, {"sentinels", test_sentinels},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "settings-derived", .pTests = tests});
