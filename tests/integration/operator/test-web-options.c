/* SPDX-License-Identifier: MIT */

/* What berth-web says of a wrong command line. */

#include <stdio.h>
#include <string.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define ARGUMENTS_MAX 6

/* Returns the exit status; *ret_said: on standard error, valid until the next call. */
static int run_web(const char *const *arguments, const char *credentials, const char **ret_said) {
    static char said[1024];
    char program[256], folder[128];
    char *argv[ARGUMENTS_MAX + 2] = {program}, *environment[] = {credentials ? folder : NULL, NULL};
    struct child *web;
    int status;

    snprintf(program, sizeof(program), "%s/berth-web", cluster.build);
    snprintf(folder, sizeof(folder), "CREDENTIALS_DIRECTORY=%s", credentials ? credentials : "");
    for (size_t i = 0; arguments[i]; i++)
        argv[i + 1] = (char *) (uintptr_t) arguments[i];
    web = child_start(argv, environment);
    TEST_FATAL(web && child_await(web, HOST_PATIENCE), "berth-web does not end");
    status = web->exit_code;
    snprintf(said, sizeof(said), "%s", child_text(web, 2));
    *ret_said = said;
    child_free(web);
    return status;
}

static void test_usage(void) {
    static const struct {
        const char *arguments[ARGUMENTS_MAX + 1], *said;
    } wrong[] = {
        {{NULL}, "nothing to listen on: --listen, --unix, or berth-web.socket"},
        {{"--actions"}, "nothing to listen on: --listen, --unix, or berth-web.socket"},
        {{"--listen", "9737"}, "--listen must be ADDRESS:PORT, e.g. 127.0.0.1:9737: 9737"},
        {{"--listen", "::1:9737"}, "--listen must be ADDRESS:PORT, e.g. 127.0.0.1:9737: ::1:9737"},
        {{"--listen", "localhost:9737"}, "--listen must be ADDRESS:PORT, e.g. 127.0.0.1:9737: localhost:9737"},
        {{"--path", "berth"}, "--path must begin with /: berth"},
        {{"--host", ""}, "--host needs a name"},
        {{"--user-header", "X-Remote-User"}, "--user-header has no use without --actions"},
        {{"--title", "shop", "more"}, "one argument too many: more"},
    };

    for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
        const char *said;
        char expected[160];

        snprintf(expected, sizeof(expected), "berth-web: %s\n", wrong[i].said);
        TEST_INT(run_web(wrong[i].arguments, NULL, &said), 64);
        TEST_STRING(said, expected);
        }
}

/* getopt names the option first. */
static void test_unknown(void) {
    static const char *const unknown[] = {"--colour", NULL};
    const char *said;

    TEST_INT(run_web(unknown, NULL, &said), 64);
    CU_ASSERT(strstr(said, "--colour") && strstr(said, "\nberth-web: try `berth-web --help`\n"));
}

static void test_token(void) {
    static const char *const acts[] = {"--actions", "--unix", "/nonexistent/web.sock", NULL};
    char path[160], expected[256];
    const char *said;
    FILE *f;

    snprintf(path, sizeof(path), "%s/web-token", cluster.folder);
    f = fopen(path, "we");
    TEST_FATAL(f && fputs("0123456789abcdef\n", f) >= 0 && fclose(f) == 0, "no token");
    TEST_INT(run_web(acts, cluster.folder, &said), 64);
    snprintf(expected, sizeof(expected), "berth-web: %s: a token has at least 32 characters\n", path);
    TEST_STRING(said, expected);
    TEST_INT(run_web(acts, NULL, &said), 70);
    TEST_STRING(said, "berth-web: /nonexistent/web.sock: No such file or directory\n");
}

static CU_TestInfo tests[] = {{"usage", test_usage}, {"unknown", test_unknown}, {"token", test_token}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "web-options", .pSetUpFunc = cluster_up_without_redis, .pTearDownFunc = cluster_down,
             .pTests = tests});
