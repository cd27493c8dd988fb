/* SPDX-License-Identifier: MIT */
/* The facts of a run: from fields of a message to variables, and nothing besides. */

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runner/facts.h"
#include "tests/harness/test.h"

#define RUN "0123456789abcdef0123456789abcdef"

static struct message m; /* large */
static struct message_writer w;

static int parse(struct facts *ret, const char *fields) {
    char text[MESSAGE_SIZE_MAX];

    snprintf(text, sizeof(text), "start\n%s", fields);
    TEST_INT(message_parse(&m, text, strlen(text)), 0);
    return facts_parse(ret, &m);
}

static int add_variable(const char *variable, const char *value, void *userdata) {
    char *text = userdata;

    (void) snprintf(text + strlen(text), 4096 - strlen(text), "%s=%s\n", variable, value);
    return 0;
}

static void test_all(void) {
    static const char fields[] =
        "trigger=hook\ndue=2027-03-28T03:00:00+02:00\nattempt=2\nfirst-run=" RUN
        "\ndepth=1\nof-job=a\nof-instance=db1\n"
        "of-run=" RUN "\nof-first-run=" RUN
        "\nof-result=failure\nof-exit-code=3\nof-signal=TERM\nof-reason=$(id); `x` \"y\"\n"
        "of-host=h\nof-trigger=at-start\nof-due=2027-03-28T03:00:00Z\nof-queued=2027-03-28T03:00:00.123Z\n"
        "of-started=2027-03-28T03:00:00Z\nof-ended=2027-03-28T03:00:00Z\nof-wait-ms=0\nof-run-ms=12\nof-"
        "attempt=1\nof-bad=4\n"
        "of-since=2027-03-28T03:00:00Z\nof-event=broken\n";
    static struct facts facts, again;
    char variables[4096] = "";

    TEST_INT(parse(&facts, fields), 0);
    message_begin(&w, "start");
    facts_put(&facts, &w);
    TEST_INT(w.error, 0);
    TEST_INT(w.size, strlen("start\n") + strlen(fields));
    CU_ASSERT(memcmp(w.text + strlen("start\n"), fields, strlen(fields)) == 0);
    TEST_INT(message_parse(&m, w.text, w.size), 0);
    TEST_INT(facts_parse(&again, &m), 0);
    CU_ASSERT(memcmp(&facts, &again, sizeof(facts)) == 0);
    TEST_INT(facts_each(&facts, add_variable, variables), 0);
    CU_ASSERT(strstr(variables, "BERTH_TRIGGER=hook\nBERTH_DUE=2027-03-28T03:00:00+02:00\nBERTH_ATTEMPT=2\n"
                                "BERTH_FIRST_RUN=" RUN "\nBERTH_DEPTH=1\nBERTH_OF_JOB=a\n") == variables);
    CU_ASSERT(strstr(variables, "\nBERTH_OF_REASON=$(id); `x` \"y\"\n") != NULL);
    CU_ASSERT(strstr(variables, "\nBERTH_OF_SINCE=2027-03-28T03:00:00Z\nBERTH_OF_EVENT=broken\n") != NULL);
}

static void test_unknown(void) {
    struct facts facts;
    char variables[4096] = "";

    TEST_INT(parse(&facts, "run=" RUN "\nof-path=/tmp\nld-preload=/tmp/x.so\nberth-run=1\nof-exit=1\n"), 0);
    TEST_INT(facts_each(&facts, add_variable, variables), 0);
    TEST_STRING(variables, "");
    message_begin(&w, "state");
    facts_put(&facts, &w);
    TEST_INT(w.size, strlen("state\n"));
}

static void test_wrong(void) {
    static const char *const wrong[] = {
        "trigger=\n",       "trigger=Hook\n",
        "trigger=a b\n",    "due=today\n",
        "due=\n",           "attempt=\n",
        "attempt=-1\n",     "attempt=01\n",
        "first-run=1\n",    "first-run=0123456789ABCDEF0123456789ABCDEF\n",
        "depth=x\n",        "of-job=../x\n",
        "of-job=\n",        "of-host=a b\n",
        "of-signal=term\n", "of-exit-code=18446744073709551616\n",
        "of-event=$(id)\n",
    };
    struct facts facts = {.size = 7};

    for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
        if (parse(&facts, wrong[i]) != -EBADMSG)
            TEST_STRING(wrong[i], "refused");
    TEST_INT(facts.size, 7); /* untouched */
}

static void test_long(void) {
    char fields[1024];
    struct facts facts;

    memset(fields, 'x', sizeof(fields));
    memcpy(fields, "of-reason=", 10);
    memcpy(fields + 10 + 512, "\n", 2);
    TEST_INT(parse(&facts, fields), 0);
    memcpy(fields + 10 + 512, "x\n", 3);
    TEST_INT(parse(&facts, fields), -EBADMSG);
}

static CU_TestInfo tests[] = {
    {"all", test_all},   {"unknown", test_unknown}, {"wrong", test_wrong},
    {"long", test_long}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "facts", .pTests = tests});
