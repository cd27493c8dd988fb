/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=malloc,--wrap=strdup,--wrap=reallocarray,--wrap=asprintf */

/* The text of an environment-file: what each line means, which lines are refused, and each allocation
 * failing once. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "runner/exec/environment.h"
#include "tests/harness/test.h"
#include "tests/harness/wrap.h"

WRAP(FAULT_MEMORY, NULL, void *, malloc, (size_t size), (size))
WRAP(FAULT_MEMORY, NULL, char *, strdup, (const char *text), (text))
WRAP(FAULT_MEMORY, NULL, void *, reallocarray, (void *p, size_t n, size_t size), (p, n, size))

int __wrap_asprintf(char **ret, const char *format, ...) _printf_(2, 3);
int __wrap_asprintf(char **ret, const char *format, ...) {
    va_list arguments;
    int r;

    if (fault_meets(FAULT_MEMORY))
        return -1;
    va_start(arguments, format);
    r = vasprintf(ret, format, arguments);
    va_end(arguments);
    return r;
}

/* Returns all items, one a line. */
static const char *shown(const struct environment *e) {
    static char text[1024];
    size_t n = 0;

    text[0] = '\0';
    for (size_t i = 0; i < e->n; i++)
        n += (size_t) snprintf(text + n, sizeof(text) - n, "%s\n", e->items[i]);
    return text;
}

static void means(const char *text, const char *expected) {
    struct environment_error error = {0, NULL};
    struct environment e = {0};

    TEST_INT(environment_parse(&e, text, strlen(text), &error), 0);
    TEST_STRING(shown(&e), expected);
    CU_ASSERT(!e.items || !e.items[e.n]);
    environment_done(&e);
}

static void test_lines(void) {
    means("", "");
    means("\n\n \t\n# A=1\n#\n", "");
    means("A=1\n", "A=1\n");
    means("A=1", "A=1\n");
    means("_a9=\nB=  x \t\n", "_a9=\nB=  x \t\n");
    means("A=\"x y\"\nB='x \"y\" '\nC=\"\"\nD=''\nE=x\"y\"\nF=\"a\"b\"\n",
          "A=x y\nB=x \"y\" \nC=\nD=\nE=x\"y\"\nF=a\"b\n");
    means("A=$HOME `id` $(id) \\n # no comment\n", "A=$HOME `id` $(id) \\n # no comment\n");
    means("A=1\nB=2\nA=3\nAB=4\n", "A=3\nB=2\nAB=4\n");
    means("A=\xc3\xa4\xff=\n", "A=\xc3\xa4\xff=\n");
    means("BERTH=1\nLD_PRELOAD=x\n", "BERTH=1\nLD_PRELOAD=x\n"); /* the file is root's or the user's own */
}

static void refuses(const char *text, size_t size, unsigned line, const char *problem) {
    struct environment_error error = {0, NULL};
    struct environment e = {0};

    TEST_INT(environment_parse(&e, text, size, &error), -EBADMSG);
    TEST_INT(error.line, line);
    TEST_STRING(error.problem, problem);
    environment_done(&e);
}

static void test_refused(void) {
    static const struct {
        const char *text;
        unsigned line;
        const char *problem;
    } wrong[] = {
        {"A=1\n\nexport B=2\n", 3, "no NAME=VALUE"},
        {"A\n", 1, "no NAME=VALUE"},
        {"=1\n", 1, "no NAME=VALUE"},
        {"1A=1\n", 1, "no NAME=VALUE"},
        {" A=1\n", 1, "no NAME=VALUE"},
        {"A =1\n", 1, "no NAME=VALUE"},
        {"A-B=1\n", 1, "no NAME=VALUE"},
        {"\xc3\xa4=1\n", 1, "no NAME=VALUE"},
        {"#\nBERTH_RUN=1\n", 2, "a name of berth's own, BERTH_..."},
        {"A=\"x\n", 1, "a quote that is not closed"},
        {"A=\"\n", 1, "a quote that is not closed"},
        {"A='x\" \n", 1, "a quote that is not closed"},
        {"A=1\r\n", 1, "a control character"},
        {"A=\033[2J", 1, "a control character"},
        {"A=\177\n", 1, "a control character"},
    };

    for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
        refuses(wrong[i].text, strlen(wrong[i].text), wrong[i].line, wrong[i].problem);
    refuses("A=1\nB=1\0LD_PRELOAD=x\n", 21, 2, "a NUL byte");
    refuses("\0", 1, 1, "a NUL byte");
}

static void test_set(void) {
    struct environment e = {0};

    TEST_INT(environment_set(&e, "A", "1=2"), 0);
    TEST_INT(environment_add(&e, "AB=2"), 0);
    TEST_INT(environment_set(&e, "A", ""), 0);
    TEST_STRING(shown(&e), "A=\nAB=2\n");
    environment_done(&e);
    CU_ASSERT_PTR_NULL(e.items);
}

static int fill(struct environment *e) {
    static const char text[] = "A=1\nB=\"2\"\nA=3\n";
    struct environment_error error;
    int r = environment_set(e, "FIRST", "1");

    return r == 0 ? environment_parse(e, text, strlen(text), &error) : r;
}

static void test_each_allocation_fails(void) {
    for (unsigned nth = 1;; nth++) {
        struct environment e = {0};
        bool was_met;
        int r;

        fault_begin(FAULT_MEMORY, nth, 1);
        r = fill(&e);
        was_met = fault_end();
        TEST_INT(r, was_met ? -ENOMEM : 0);
        environment_done(&e);
        if (!was_met) {
            CU_ASSERT(nth > 8);
            return;
        }
    }
}

static CU_TestInfo tests[] = {
    {"lines", test_lines}, {"refused", test_refused},
    {"set", test_set},     {"each-allocation-fails", test_each_allocation_fails},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "environment-file", .pTests = tests});
