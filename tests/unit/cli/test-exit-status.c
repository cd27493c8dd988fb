/* SPDX-License-Identifier: MIT */

/* The exit status of each of berthd's errors and of each end of a run: the whole tables of berth(1). */

#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/start-jobs.h"
#include "tests/harness/capture.h"
#include "tests/harness/test.h"

static const char interface[] = ""
#include "daemon/api/io.berth.varlink.inc"
    ;

static const struct {
    const char *error;
    int status;
} errors[] = {
    {"NoSuchPool", 65},   {"NoSuchJob", 65}, {"NoSuchRun", 65}, {"NoSuchClaim", 65}, {"NoPermit", 75}, {"Failed", 125},  {"Skipped", 75},
    {"BadRequest", 64},   {"Away", 69},      {"NotAllowed", 77}, {"Stopping", 69},   {"Conflict", 70}, {"Internal", 70},
    {"ConfigRefused", 78}, {"Ambiguous", 65},    {"TooMany", 69},
};

static int status_of(const char *error, char **ret_said) {
    struct client_reply reply = CLIENT_REPLY_INIT;
    char name[80];
    struct capture c;
    int status;

    snprintf(name, sizeof(name), "%s", error);
    reply.error = name;
    reply.document = reply.params = json_object();
    capture_begin(&c);
    status = client_explain(&reply);
    *ret_said = capture_end(&c);
    TEST_INT(client_exit_status(&reply), status);
    client_reply_done(&reply);
    return status;
}

/* Each error of the interface is in the table, and the client has a sentence for it. */
static void test_errors(void) {
    size_t n = 0;

    for (const char *at = interface; (at = strstr(at, "\nerror ")); n++) {
        char name[64], full[80];
        _cleanup_free_ char *said = NULL;
        int status = 0;

        at += strlen("\nerror ");
        snprintf(name, sizeof(name), "%.*s", (int) strcspn(at, " ("), at);
        for (size_t i = 0; i < ELEMENTSOF(errors); i++)
            if (strcmp(errors[i].error, name) == 0)
                status = errors[i].status;
        if (status == 0)
            printf("no exit status is written down for %s\n", name);
        snprintf(full, sizeof(full), "io.berth.%s", name);
        TEST_INT(status_of(full, &said), status);
        CU_ASSERT_PTR_NULL(strstr(said, "berthd answered"));
        CU_ASSERT_PTR_NOT_NULL(strstr(said, "berth: "));
    }
    TEST_INT(n, ELEMENTSOF(errors));
}

static void test_errors_of_another_berthd(void) {
    static const char *const names[] = {"io.berth.New", "org.varlink.service.MethodNotFound", "org.varlink.service.InvalidParameter"};

    for (size_t i = 0; i < ELEMENTSOF(names); i++) {
        _cleanup_free_ char *said = NULL;

        TEST_INT(status_of(names[i], &said), 70);
        CU_ASSERT_PTR_NOT_NULL(strstr(said, names[i]));
    }
}

static void test_runs(void) {
    static const struct {
        const char *run;
        int status;
    } table[] = {
        {"{'result': 'success', 'exit_code': 0, 'token': 1, 'pools': {'db': 1}}", 0},
        {"{'result': 'failure', 'exit_code': 3, 'token': 1, 'pools': {'db': 1}}", 3},
        {"{'result': 'failure', 'exit_code': null, 'signal': 9, 'token': 1, 'pools': {'db': 1}}", 137},
        {"{'result': 'stopped', 'exit_code': null, 'signal': 15, 'token': 1, 'pools': {'db': 1}}", 143},
        {"{'result': 'stopped', 'exit_code': 0, 'signal': null, 'token': 1, 'pools': {'db': 1}}", 0},
        {"{'result': 'stopped', 'exit_code': null, 'signal': null, 'token': null, 'pools': {'db': 1}}", 75}, /* while it waited */
        {"{'result': 'queue-timeout', 'token': null, 'pools': {'db': 1}}", 75},
        {"{'result': 'not-started', 'token': null, 'pools': {'db': 1}}", 75},  /* refused */
        {"{'result': 'not-started', 'token': 1, 'pools': {'db': 1}}", 125},    /* granted */
        {"{'result': 'not-started', 'token': null, 'pools': {}}", 125},        /* needed no grant */
        {"{'result': 'timeout', 'signal': 15, 'token': 1, 'pools': {'db': 1}}", 124},
        {"{'result': 'lease-lost', 'signal': 9, 'token': 1, 'pools': {'db': 1}}", 76},
        {"{'result': 'guard-died', 'token': 1, 'pools': {'db': 1}}", 125},
        {"{'result': 'guard-died', 'exit_code': 0, 'token': 1, 'pools': {'db': 1}}", 125},
        {"{}", 125},
    };

    for (size_t i = 0; i < ELEMENTSOF(table); i++) {
        _cleanup_free_ char *text = strdup(table[i].run);
        json_t *run;
        int status;

        for (char *c = text; *c; c++)
            if (*c == '\'')
                *c = '"';
        run = json_loads(text, 0, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(run);
        status = run_exit_status(run);
        if (status != table[i].status)
            printf("%s is %d\n", text, status);
        TEST_INT(status, table[i].status);
        json_decref(run);
    }
}

static CU_TestInfo tests[] = {
    {"errors", test_errors},
    {"errors of another berthd", test_errors_of_another_berthd},
    {"runs", test_runs},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "exit status", .pTests = tests});
