/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,--wrap=strndup,--wrap=free,--wrap=fmemopen,--wrap=cfg_init,--wrap=regcomp */

/* Reading a config with each allocation failing once: no crash, nothing left behind, and an error is reported. Only calls from berth's own
 * objects are wrapped; libconfuse's inside are not (it asserts on some). */

#include <confuse.h>
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/settings.h"
#include "tests/harness/test.h"
#include "tests/harness/wrap-count.h"

WRAP(FAULT_MEMORY, NULL, FILE *, fmemopen, (void *buffer, size_t size, const char *mode), (buffer, size, mode))
WRAP(FAULT_MEMORY, REG_ESPACE, int, regcomp, (regex_t * regex, const char *text, int flags),
     (regex, text, flags))
WRAP(FAULT_MEMORY, NULL, cfg_t *, cfg_init, (cfg_opt_t *opts, cfg_flag_t flags), (opts, flags))

static const char good_a[] = "host = a lease = 60s\nredis { url = \"rediss://u@h\" password-file = \"/p\" "
                             "tls-ca = \"/ca\" tls-certificate = \"/c\" tls-key = \"/k\" tls-server-name = n }\n"
                             "pool p { limit = 2 } pool q { limit = 1 scope = host description = x users = {a, \"@b\"} }\n";
static const char good_b[] = "job j { command = {\"/j\", a, b} pools = {p, \"q\"} environment = {\"A=1\", \"B=2\"} output = \"/o\" user = u }\n"
                             "run-group = g job k { command = {\"/k\"} operators = {o} on-failure = {j} retry-on = {timeout, \"exit:2\"} }\n";
static const char good_c[] =
    "job \"t@\" { command = {\"/t\", \"%i\", \"%%\"} instances = {a, b} parameters = {\"A\", \"B=x|y\", "
    "\"C=~[a-c]+\"}"
    " environment = {\"A=%i\", \"C=abc\"} schedule = {\"@daily B=x\"} on-success = {\"u@%i\"} }\n"
    "job \"u@\" { command = {\"/u\"} instances = {a, b} }\n";
static const char bad_c[] =
    "job \"t@\" { command = {\"t\"} instances = {a, b} } job \"v@\" { command = {\"/%\"} instances = "
    "{\"/\"} }\n"
    "job w { command = {\"/w\"} parameters = {\"A=~(\", B, BB} schedule = {\"@daily C=1\"} every = 1d }";
static const char bad[] = "pool p { limit = 08 } pool p { limit = 2 scope = host }\nredis { url = \"unix:///s?db=1\" } redis { url = x }\n"
                          "job j { command = j pools = {pp, \"p:9\"} user = 0 description = \"${X}\" }\nlise = 3 job x { command = {a b} }\n"
                          "job r { command = {\"/r\"} retry-on = {exitt} success-on = {\"256\"} on-success = {nobody} on-failure = {r} }";

/* Fails each allocation of a parse in turn. The parse without a failure must return `expected`. */
static void fail_each(const struct settings_source *sources, size_t n, int expected) {
    unsigned fail_at = 0;
    bool failed = true;

    while (failed) {
        struct settings_errors errors = {};
        struct settings *s = NULL;
        long before = n_live;
        int r;

        fault_begin(FAULT_MEMORY, ++fail_at, 1);
        r = settings_parse(sources, n, "ant", &s, &errors);
        failed = fault_end();
        if (!failed) {
            TEST_INT(r, expected);
            CU_ASSERT(!errors.out_of_memory);
            CU_ASSERT((s != NULL) == (expected == 0));
            CU_ASSERT((errors.n > 0) == (expected != 0));
        } else {
            CU_ASSERT(r == -ENOMEM || (r == SETTINGS_E_INVALID && expected == SETTINGS_E_INVALID));
            CU_ASSERT(errors.out_of_memory);
            CU_ASSERT_PTR_NULL(s);
        }
        settings_free(s);
        settings_errors_done(&errors);
        if (n_live != before)
            CU_FAIL("something was left behind, or freed twice");
    }
    CU_ASSERT(fail_at > 20);
}

static void test_right(void) {
    fail_each((struct settings_source[]) {{"a", good_a, strlen(good_a)}, {"b", good_b, strlen(good_b)}}, 2, 0);
    fail_each((struct settings_source[]){{"c", good_c, strlen(good_c)}}, 1, 0);
}

static void test_wrong(void) {
    fail_each((struct settings_source[]) {{"a", bad, strlen(bad)}, {"b", good_a, strlen(good_a)}}, 2, SETTINGS_E_INVALID);
    fail_each((struct settings_source[]){{"c", bad_c, strlen(bad_c)}}, 1, SETTINGS_E_INVALID);
}

/* One more instance of a template: each allocation fails once, and the settings are as before. */
static void test_open(void) {
    static const char text[] = "pool \"p/*\" { limit = 1 scope = host }\njob \"t@\" { open-instances = true "
                               "command = {\"/t\", \"%i\"} "
                               "pools = {\"p/%i\"} environment = {\"A=%i\"} operators = {o} }";
    struct settings_errors errors = {};
    const struct job_settings *job;
    struct settings *s = NULL;
    long at_rest = n_live, before;
    unsigned fail_at = 0;
    bool failed = true;

    TEST_INT(settings_parse(&(struct settings_source){"o", text, strlen(text)}, 1, "ant", &s, &errors), 0);
    before = n_live;
    while (failed) {
        int r;

        fault_begin(FAULT_MEMORY, ++fail_at, 1);
        r = settings_open_job(s, "t@x", &job, &errors);
        failed = fault_end();
        TEST_INT(r, failed ? -ENOMEM : 0);
        settings_errors_done(&errors);
        if (failed) {
            CU_ASSERT_PTR_NULL(settings_find_job(s, "t@x"));
            TEST_INT(n_live, before);
        }
    }
    CU_ASSERT(fail_at > 10);
    settings_free(s);
    TEST_INT(n_live, at_rest);
}

static CU_TestInfo tests[] = {
    {"right", test_right},
    {"wrong", test_wrong},
    {"open instance", test_open},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "out-of-memory", .pTests = tests});
