/* SPDX-License-Identifier: MIT */
#include "cli/run/options.h"

#include <string.h>

#include "cli/client.h"
#include "tests/harness/test.h"

#define ARGUMENTS_MAX 40
#define UNTOUCHED 0x55

/* A command line as words separated by spaces; "~" is the empty word. */
struct line {
    char text[2048];
    char *argv[ARGUMENTS_MAX + 1];
    int argc;
    struct run_options options;
    char error[RUN_OPTIONS_ERROR_SIZE];
};

static int parse(struct line *l, const char *text) {
    char *rest = l->text, *word;

    l->argc = 0;
    l->argv[l->argc++] = (char[]) {"run"};
    snprintf(l->text, sizeof(l->text), "%s", text);
    while ((word = strsep(&rest, " ")) && l->argc < ARGUMENTS_MAX)
        if (word[0])
            l->argv[l->argc++] = strcmp(word, "~") == 0 ? word + 1 : word;
    l->argv[l->argc] = NULL;
    memset(&l->options, UNTOUCHED, sizeof(l->options));
    return run_options_parse(l->argc, l->argv, &l->options, l->error);
}

static void refuses(const char *text, const char *error) {
    struct line l = {0};
    const unsigned char *byte = (const unsigned char *) &l.options;
    size_t n = 0;

    TEST_INT(parse(&l, text), RUN_OPTIONS_E_USAGE);
    TEST_STRING(l.error, error);
    while (n < sizeof(l.options) && byte[n] == UNTOUCHED)
        n++;
    TEST_INT(n, sizeof(l.options));
}

static void accepts(struct line *l, const char *text) {
    TEST_INT(parse(l, text), 0);
    TEST_STRING(l->error, "");
}

static void test_defaults(void) {
    char pools[DEMANDS_TEXT_SIZE];
    struct line l = {0};

    accepts(&l, "-p db -- sleep 1");
    TEST_STRING(demands_format(&l.options.pools, pools), "db:1");
    TEST_INT(l.options.nowait || l.options.verbose, false);
    TEST_INT(l.options.wait_usec == USEC_INFINITY && l.options.timeout_usec == USEC_INFINITY &&
                 l.options.stop_timeout_usec == USEC_INFINITY,
             true);
    TEST_INT(l.options.head_start_usec, 0);
    TEST_INT(l.options.on_lease_lost, ON_LEASE_LOST_STOP);
    TEST_INT(l.options.no_permit_status, 75);
    TEST_STRING(l.options.name, "sleep");
    TEST_STRING(l.options.command[0], "sleep");
    TEST_STRING(l.options.command[1], "1");
    CU_ASSERT_PTR_NULL(l.options.command[2]);
}

static void test_all(void) {
    char pools[DEMANDS_TEXT_SIZE];
    struct line l = {0};

    accepts(&l, "-p db:2 -pnet --wait 1m30s --timeout=2h --head-start 5s --name nightly --on-lease-lost continue "
                "--stop-timeout 0s -E 1 -v /usr/bin/env -p x");
    TEST_STRING(demands_format(&l.options.pools, pools), "db:2,net:1");
    TEST_INT(l.options.wait_usec, 90 * USEC_PER_SEC);
    TEST_INT(l.options.timeout_usec, 7200 * USEC_PER_SEC);
    TEST_INT(l.options.head_start_usec, 5 * USEC_PER_SEC);
    TEST_INT(l.options.stop_timeout_usec, 0);
    TEST_INT(l.options.on_lease_lost, ON_LEASE_LOST_CONTINUE);
    TEST_INT(l.options.no_permit_status, 1);
    TEST_INT(l.options.verbose, true);
    TEST_STRING(l.options.name, "nightly");
    TEST_STRING(l.options.command[0], "/usr/bin/env"); /* the first word that is not an option; the rest is its own */
    TEST_STRING(l.options.command[1], "-p");

    accepts(&l, "-nvE255 -p db -- -strange");
    TEST_INT(l.options.nowait && l.options.verbose, true);
    TEST_INT(l.options.no_permit_status, 255);
    TEST_STRING(l.options.command[0], "-strange");

    accepts(&l, "-p db --wait 0s --on-lease-lost stop -- -- x");
    TEST_INT(l.options.nowait && l.options.wait_usec == USEC_INFINITY, true); /* like -n: only what is free */
    TEST_STRING(l.options.command[0], "--");

    accepts(&l, "-p db - x"); /* a dash alone is no option */
    TEST_STRING(l.options.command[0], "-");
}

static void test_default_name(void) {
    struct line l = {0};

    accepts(&l, "-p db /usr/bin/pg_dump");
    TEST_STRING(l.options.name, "pg_dump");
    accepts(&l, "-p db ./a.b-c");
    TEST_STRING(l.options.name, "a.b-c");
    accepts(&l, "-p db ./.hidden");
    TEST_STRING(l.options.name, "_hidden");
    accepts(&l, "-p db -- -x");
    TEST_STRING(l.options.name, "_x");
    accepts(&l, "-p db [");
    TEST_STRING(l.options.name, "_");
    accepts(&l, "-p db gr\xc3\xbc\xc3\x9f");
    TEST_STRING(l.options.name, "gr____");
    accepts(&l, "-p db /usr/bin/");
    TEST_STRING(l.options.name, "command");
    accepts(&l, "-p db aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggg");
    TEST_STRING(l.options.name, "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg");
}

static void test_help(void) {
    struct line l = {0};

    TEST_INT(parse(&l, "--help"), RUN_OPTIONS_HELP);
    TEST_INT(parse(&l, "-p db -h"), RUN_OPTIONS_HELP);
    accepts(&l, "-p db x --help"); /* the command's */
}

static void test_pools(void) {
    refuses("x", "which pool? -p POOL[:PERMITS]");
    refuses("-p", "-p needs a value");
    refuses("-p db:0 x", "-p db:0: permits must be 1 to 1000, in all pools together");
    refuses("-p db:1001 x", "-p db:1001: permits must be 1 to 1000, in all pools together");
    refuses("-p db:999 -p net:2 x", "-p net:2: permits must be 1 to 1000, in all pools together");
    refuses("-p db: x", "-p db:: must be POOL or POOL:PERMITS");
    refuses("-p db:2x x", "-p db:2x: must be POOL or POOL:PERMITS");
    refuses("-p db:+2 x", "-p db:+2: must be POOL or POOL:PERMITS");
    refuses("-p ~ x", "-p : must name a pool with 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with '.' or '-' (or NAME/KEY)");
    refuses("-p .db x", "-p .db: must name a pool with 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with '.' or '-' (or NAME/KEY)");
    refuses("-p d{b x", "-p d{b: must name a pool with 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with '.' or '-' (or NAME/KEY)");
    refuses("-p d\nb x", "-p d?b: must name a pool with 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with '.' or '-' (or NAME/KEY)");
    refuses("-p db -p db:2 x", "-p db:2: names a pool twice; ask for all its permits at once, POOL:PERMITS");
}

static void test_too_many_pools(void) {
    char text[512] = "";

    for (int i = 0; i <= DEMAND_POOLS_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "-pp%d ", i);
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "x");
    refuses(text, "-p p32: names more than 32 pools");
}

static void test_durations(void) {
    refuses("-p db --wait 5 x", "--wait 5: must be a duration such as 500ms, 30s or 1h30m");
    refuses("-p db --wait= x", "--wait : must be a duration such as 500ms, 30s or 1h30m");
    refuses("-p db --wait", "--wait needs a value");
    refuses("-p db --wait -5s x", "--wait -5s: must be a duration such as 500ms, 30s or 1h30m");
    refuses("-p db --timeout soon x", "--timeout soon: must be a duration such as 500ms, 30s or 1h30m");
    refuses("-p db --timeout 0s x", "--timeout 0s: must be above 0s");
    refuses("-p db --timeout 4000d x", "--timeout 4000d: must be at most 3650d");
    refuses("-p db --head-start x x", "--head-start x: must be a duration such as 500ms, 30s or 1h30m");
    refuses("-p db --stop-timeout 1.5s x", "--stop-timeout 1.5s: must be a duration such as 500ms, 30s or 1h30m");
    refuses("-p db --wait 1s --wait 2s x", "--wait is given twice");
}

static void test_others(void) {
    refuses("-p db -n --wait 5s x", "-n and --wait exclude each other");
    refuses("-p db -E -1 x", "-E -1: must be 0 to 255");
    refuses("-p db -E 256 x", "-E 256: must be 0 to 255");
    refuses("-p db -E 0x1 x", "-E 0x1: must be 0 to 255");
    refuses("-p db -E 1 -E 2 x", "-E is given twice");
    refuses("-p db -E", "-E needs a value");
    refuses("-p db --name a/b x", "--name \"a/b\" has a character that is not one of A-Z a-z 0-9 . _ -");
    refuses("-p db --name ~ x", "--name \"\" is empty");
    refuses("-p db --name=-x x", "--name \"-x\" begins with '.' or '-'");
    refuses("-p db --on-lease-lost die x", "--on-lease-lost die: must be stop or continue");
    refuses("-p db", "which command? -- COMMAND [ARG...]");
    refuses("-p db --", "which command? -- COMMAND [ARG...]");
    refuses("-p db -- ~", "which command? -- COMMAND [ARG...]");
    refuses("~", "which pool? -p POOL[:PERMITS]");
}

static void test_unknown(void) {
    refuses("-p db --tiemout 5s x", "unknown option --tiemout (did you mean --timeout?)");
    refuses("-p db --wiat=5s x", "unknown option --wiat (did you mean --wait?)");
    refuses("-p db --wai 5s x", "unknown option --wai (did you mean --wait?)"); /* no abbreviations */
    refuses("-p db --frobnicate x", "unknown option --frobnicate");
    refuses("--pool db x", "unknown option --pool (did you mean -p?)");
    refuses("-p db --no-wait x", "unknown option --no-wait (did you mean -n?)");
    refuses("-p db -x y", "unknown option -x");
    refuses("-p db -nx y", "unknown option -x");
    refuses("-p db --help=me x", "--help takes no value");
    refuses("-p db --=5 x", "unknown option --");
    refuses("-p db --\x1b[31m x", "unknown option --?[31m");
}

static CU_TestInfo tests[] = {
    {"defaults", test_defaults},
    {"all", test_all},
    {"default name", test_default_name},
    {"help", test_help},
    {"pools", test_pools},
    {"too many pools", test_too_many_pools},
    {"durations", test_durations},
    {"others", test_others},
    {"unknown", test_unknown},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "run options", .pTests = tests});
