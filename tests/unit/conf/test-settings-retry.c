/* SPDX-License-Identifier: MIT */

/* The values of the options of retries and hooks. Their errors are in test-settings-errors-job.c. */

#include <signal.h>
#include <string.h>

#include "tests/harness/host/config.h"
#include "tests/harness/test.h"

static void test_defaults(void) {
    _cleanup_(settings_freep) struct settings *s = config_parse(JOB(""));
    static const enum retry_kind kinds[] = {RETRY_FAILURE, RETRY_TIMEOUT, RETRY_LEASE_LOST, RETRY_GUARD_DIED,
                                            RETRY_HOST_LOST};
    const struct job_retry *retry = &s->jobs[0].retry;
    const struct job_hooks *hooks = &s->jobs[0].hooks;

    TEST_INT(retry->retries, 0);
    TEST_INT(retry->on.n, ELEMENTSOF(kinds));
    for (size_t i = 0; i < ELEMENTSOF(kinds) && i < retry->on.n; i++) {
        TEST_INT(retry->on.items[i].kind, kinds[i]);
        TEST_INT(retry->on.items[i].is_negated, 0);
    }
    TEST_INT(retry->delay_usec, 30 * USEC_PER_SEC);
    TEST_INT(retry->delay_max_usec, 900 * USEC_PER_SEC);
    TEST_INT(retry->within_usec == USEC_INFINITY, 1);
    for (int status = -2; status < 300; status++)
        TEST_INT(exit_statuses_have(&retry->success, status), status == 0);
    TEST_INT(retry->restart, JOB_RESTART_NO);
    CU_ASSERT_PTR_NULL(hooks->on_success);
    CU_ASSERT_PTR_NULL(hooks->on_failure);
    CU_ASSERT_PTR_NULL(hooks->on_broken);
    CU_ASSERT_PTR_NULL(hooks->on_recovered);
    TEST_INT(hooks->broken_after, 1);
    TEST_INT(hooks->remind_after_usec == USEC_INFINITY, 1);
    TEST_INT(hooks->max_silence_usec == USEC_INFINITY, 1);
}

static void test_retry_on(void) {
    _cleanup_(settings_freep) struct settings *s =
        config_parse(JOB("retry-on = {failure, \"!exit:2\", \"exit:0-255\", \"signal:SIGSEGV\", not-started, "
                  "\"!queue-timeout\"}"));
    static const struct retry_rule expected[] = {
        {RETRY_FAILURE, false, 0, 0},     {RETRY_EXIT, true, 2, 2},
        {RETRY_EXIT, false, 0, 255},      {RETRY_SIGNAL, false, SIGSEGV, SIGSEGV},
        {RETRY_NOT_STARTED, false, 0, 0}, {RETRY_QUEUE_TIMEOUT, true, 0, 0},
    };
    const struct retry_rules *rules = &s->jobs[0].retry.on;

    TEST_INT(rules->n, ELEMENTSOF(expected));
    for (size_t i = 0; i < ELEMENTSOF(expected) && i < rules->n; i++) {
        TEST_INT(rules->items[i].kind, expected[i].kind);
        TEST_INT(rules->items[i].is_negated, expected[i].is_negated);
        TEST_INT(rules->items[i].first, expected[i].first);
        TEST_INT(rules->items[i].last, expected[i].last);
    }
}

static void test_empty_lists_are_defaults(void) {
    _cleanup_(settings_freep) struct settings *s = config_parse(JOB("retry-on = {} success-on = {}"));

    TEST_INT(s->jobs[0].retry.on.n, 5);
    CU_ASSERT(exit_statuses_have(&s->jobs[0].retry.success, 0));
}

static void test_success_on(void) {
    _cleanup_(settings_freep) struct settings *s = config_parse(JOB("success-on = {\"24\", \"62-65\", \"255\"}"));

    for (int status = 0; status <= 255; status++)
        TEST_INT(exit_statuses_have(&s->jobs[0].retry.success, status),
                 status == 24 || (status >= 62 && status <= 65) || status == 255);
}

static void test_hooks(void) {
    _cleanup_(settings_freep) struct settings *s =
        config_parse("job j { command = {\"/j\"} on-success = {load, mail} on-broken = {mail} broken-after = 3 "
              "remind-after = 1d max-silence = 26h }"
              "job load { command = {\"/j\"} on-failure = {mail} on-recovered = {mail} } job mail { command "
              "= {\"/j\"} }");
    const struct job_hooks *hooks = &settings_find_job(s, "j")->hooks;

    TEST_STRING(hooks->on_success[0], "load");
    TEST_STRING(hooks->on_success[1], "mail");
    CU_ASSERT_PTR_NULL(hooks->on_success[2]);
    CU_ASSERT_PTR_NULL(hooks->on_failure);
    TEST_STRING(hooks->on_broken[0], "mail");
    CU_ASSERT_PTR_NULL(hooks->on_broken[1]);
    TEST_INT(hooks->broken_after, 3);
    TEST_INT(hooks->remind_after_usec, 86400 * USEC_PER_SEC);
    TEST_INT(hooks->max_silence_usec, 26 * 3600 * USEC_PER_SEC);
    TEST_STRING(settings_find_job(s, "load")->hooks.on_recovered[0], "mail");
}

/* Retries and hooks concern berthd alone and do not change the hash: the runner starts a job even if it
 * has not read them yet. */
static void test_hash(void) {
    _cleanup_(settings_freep) struct settings *plain = config_parse(JOB("") "job m { command = {\"/m\"} }");
    _cleanup_(settings_freep) struct settings *s =
        config_parse(JOB("retry = 5 retry-on = {timeout} retry-delay = 1s retry-delay-max = 2s retry-within = 1h "
                  "success-on = {\"1\"} on-success = {m}"
                  " on-failure = {m} on-broken = {m} on-recovered = {m} broken-after = 2 remind-after = 1d "
                  "max-silence = 1d") "job m { command = {\"/m\"} restart = always }");

    TEST_STRING(s->jobs[0].hash, plain->jobs[0].hash);
    TEST_STRING(s->jobs[1].hash, plain->jobs[1].hash);
}

/* A chain of hooks over all jobs is no circle, and the check is fast. */
static void test_long_chain(void) {
    _cleanup_free_ char *text = NULL;
    _cleanup_(settings_freep) struct settings *s = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    for (int i = 0; i < 3000; i++)
        fprintf(f, "job j%d { command = {\"/j\"} on-success = {j%d} on-failure = {j%d} }\n", i, i + 1,
                i + 1);
    fprintf(f, "job j3000 { command = {\"/j\"} }\n");
    CU_ASSERT_EQUAL_FATAL(fclose(f), 0);
    s = config_parse(text);
    TEST_INT(s->n_jobs, 3001);
}

static CU_TestInfo tests[] = {
    {"defaults", test_defaults},
    {"retry-on", test_retry_on},
    {"empty-lists-are-defaults", test_empty_lists_are_defaults},
    {"success-on", test_success_on},
    {"hooks", test_hooks},
    {"hash", test_hash},
    {"long-chain", test_long_chain},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "settings-retry", .pTests = tests});
