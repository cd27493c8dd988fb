/* SPDX-License-Identifier: MIT */

/* What `berth explain` prints for people, on terminals of several widths and into a pipe. */

#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/explain/text.h"
#include "tests/harness/test.h"

static const char waiting[] =
    "{'run': '7ee3bb47000000000000000000000000', 'name': 'pg-dump-of-the-largest-database', 'host': "
    "'ant-01', 'state': 'waiting', 'wait_ms': 192000, 'blocked_by': 'pool full: db', 'pools': [{'pool': "
    "'db', 'wants': 2, 'why': {'code': 'paused', 'text': 'paused%s: the file system of the database is "
    "being checked, which takes until the evening, and until then nobody may write to it'}, 'ahead': [], "
    "'ahead_more': 0, 'holders': [{'claim': '63c3199d000000000000000000000000', 'host': 'bee-01', "
    "'name': 'backup-of-all-other-databases', 'permits': 2, 'seen_ms': 99999, 'since': "
    "'2026-11-20T10:02:00.000000Z', 'usual': {'runs': 57, 'q': [1, 180000, 3, 4, 5, 6, 480000, 8], "
    "'overdue': false}}, {'claim': '73c3199d000000000000000000000000', 'host': 'ant-01', 'name': 'x', 'permits': 1, "
    "'seen_ms': 0, 'since': '2026-11-20T10:02:00.000000Z', 'usual': null}]}], 'estimate': null, 'no_estimate': 'cow:dump has run only 3 times', 'sooner': "
    "[{'do': ['berth', 'steal', '63c3199d000000000000000000000000', '--for', "
    "'7ee3bb47000000000000000000000000'], 'starts': ['a', 'b'], 'stops': "
    "'bee-01:backup-of-all-other-databases'}]}";

/* Prints with `fd` as standard output, closes it, and returns the text that arrives at `from`. */
static const char *print(int fd, int from, const char *reason) {
    static char text[8192];
    json_t *e = NULL;
    char json[4096];
    int kept = dup(STDOUT_FILENO);
    size_t size = 0;
    ssize_t n;

    snprintf(json, sizeof(json), waiting, reason);
    for (char *c = json; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    e = json_loads(json, 0, NULL);
    CU_ASSERT_FATAL(e != NULL);
    (void) fflush(stdout);
    CU_ASSERT(dup2(fd, STDOUT_FILENO) >= 0);
    explain_print(e, 22500);
    (void) fflush(stdout);
    CU_ASSERT(dup2(kept, STDOUT_FILENO) >= 0);
    (void) close(kept);
    (void) close(fd);
    json_decref(e);
    while (size < sizeof(text) - 1 && (n = read(from, text + size, sizeof(text) - 1 - size)) > 0)
        size += (size_t) n;
    text[size] = '\0';
    (void) close(from);
    return text;
}

static const char *print_on(unsigned short width, const char *reason) {
    struct winsize size = {.ws_col = width, .ws_row = 24};
    int master, slave;

    CU_ASSERT_FATAL(openpty(&master, &slave, NULL, NULL, &size) == 0);
    return print(slave, master, reason);
}

static const char *print_to_pipe(const char *reason) {
    int fds[2];

    CU_ASSERT_FATAL(pipe(fds) == 0);
    return print(fds[1], fds[0], reason);
}

/* Makes each space and end of a line one space. */
static void squeeze(char *text) {
    char *to = text;

    for (char *from = text; *from; from++)
        if (!strchr(" \r\n", *from))
            *to++ = *from;
        else if (to > text && to[-1] != ' ')
            *to++ = ' ';
    *to = '\0';
}

static size_t widest(const char *text) {
    size_t most = 0;

    for (size_t n; *text; text += n + (text[n] != '\0')) {
        n = strcspn(text, "\r\n");
        most = n > most ? n : most;
    }
    return most;
}

/* Lines continue below their text, and no word is lost. */
static void test_narrow(void) {
    static const unsigned short widths[] = {40, 60, 80, 132};
    char whole[8192], narrow[8192];

    (void) snprintf(whole, sizeof(whole), "%s", print_to_pipe(""));
    CU_ASSERT(widest(whole) > 132);
    squeeze(whole);
    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
        (void) snprintf(narrow, sizeof(narrow), "%s", print_on(widths[i], ""));
        if (widths[i] >= 60) /* below, a single word is wider */
            TEST_INT(widest(narrow) <= widths[i], 1);
        CU_ASSERT_PTR_NOT_NULL(strstr(narrow, "\n             "));
        squeeze(narrow);
        TEST_STRING(narrow, whole);
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(
        print_on(80, ""), "\n  blocked  db  paused: the file system of the database is being checked, which\r\n"
                          "             takes until the evening, and until then nobody may write to it\r\n"));
}

/* The permits of a list are below each other, also below a long name. */
static void test_columns(void) {
    char text[8192];
    const char *first, *second;

    (void) snprintf(text, sizeof(text), "%s", print_to_pipe(""));
    first = strstr(text, "63c3199d  ");
    second = strstr(text, "73c3199d  ");
    CU_ASSERT_FATAL(first && second);
    TEST_INT(strstr(first, " x2  ") - first, strstr(second, " x1  ") - second);
}

/* No line ends within a command, because somebody may copy it. */
static void test_commands(void) {
    static const unsigned short widths[] = {20, 40, 60, 80, 132};

    for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
        CU_ASSERT_PTR_NOT_NULL(strstr(print_on(widths[i], ""), "berth steal 63c3199d --for 7ee3bb47"));
    CU_ASSERT_PTR_NOT_NULL(strstr(print_to_pipe(""), "\n  sooner   berth steal 63c3199d --for 7ee3bb47  stops bee-01:"));
}

/* The reason of an override is what somebody wrote into Redis. */
static void test_control(void) {
    CU_ASSERT_PTR_NOT_NULL(strstr(print_to_pipe("\\u001b[2J\xc2\x9b"), "db  paused?[2J??: the file"));
}

static CU_TestInfo tests[] = {{"narrow", test_narrow}, {"columns", test_columns}, {"commands", test_commands}, {"control", test_control}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "explain-text", .pTests = tests});
