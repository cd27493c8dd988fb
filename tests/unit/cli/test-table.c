/* SPDX-License-Identifier: MIT */

/* Tables on terminals of several widths, and where there is none. */

#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/table.h"
#include "tests/harness/test.h"

#define ID "0123456789abcdef0123456789abcdef"

static const struct table_column columns[] = {
    {.name = "RUN", .digits = 8}, {.name = "NAME"}, {.name = "DUE", .drop = 1},
    {.name = "TRY", .right = true, .drop = 3}, {.name = "POOLS", .drop = 2},
    {.name = "RAN", .right = true}, {.name = "WHY"},
};

static void add(struct table *t, const char *name, const char *attempt, const char *why) {
    table_line(t);
    table_cell(t, TABLE_PLAIN, "%s", ID);
    table_cell(t, TABLE_PLAIN, "%s", name);
    table_cell(t, TABLE_PLAIN, "2027-05-01T12:00:00+00:00");
    table_cell(t, TABLE_PLAIN, "%s", attempt);
    table_cell(t, TABLE_PLAIN, "db:2");
    table_cell(t, TABLE_PLAIN, "3s");
    table_cell(t, TABLE_PLAIN, "%s", why);
}

static const struct table_column columns_of_pools[] = {
    {.name = "POOL"}, {.name = "SCOPE", .drop = 1}, {.name = "OVERRIDE", .drop = TABLE_IF_EMPTY}, {.name = "HOLDERS"},
};

static void add_pool(struct table *t, const char *override) {
    table_line(t);
    table_cell(t, TABLE_PLAIN, "db");
    table_cell(t, TABLE_PLAIN, "cluster");
    table_cell(t, TABLE_PLAIN, "%s", override);
    table_cell(t, TABLE_PLAIN, "ant:report-1, ant:report-2, bee:report-3");
}

static const char *override; /* NULL: the table has runs */

/* Prints a table with `fd` as standard output, closes `fd`, and returns the text that arrives at `from`. */
static const char *print(int fd, int from, const char *attempt, const char *why) {
    static char text[4096];
    _cleanup_(table_freep) struct table *t = NULL;
    int kept = dup(STDOUT_FILENO);
    size_t size = 0;
    ssize_t n;

    (void) fflush(stdout);
    CU_ASSERT(dup2(fd, STDOUT_FILENO) >= 0);
    if (override) {
        TEST_INT(table_new(&t, columns_of_pools, sizeof(columns_of_pools) / sizeof(columns_of_pools[0])), 0);
        add_pool(t, override);
    } else {
        TEST_INT(table_new(&t, columns, sizeof(columns) / sizeof(columns[0])), 0);
        add(t, "pg-dump", attempt, why);
        add(t, "nightly", "", "");
    }
    TEST_INT(table_print(t), 0);
    (void) fflush(stdout);
    CU_ASSERT(dup2(kept, STDOUT_FILENO) >= 0);
    (void) close(kept);
    (void) close(fd);
    while ((n = read(from, text + size, sizeof(text) - 1 - size)) > 0)
        size += (size_t) n;
    text[size] = '\0';
    return text;
}

static const char *print_on(unsigned short width, const char *attempt, const char *why) {
    struct winsize size = {.ws_col = width, .ws_row = 24};
    int master, slave;
    const char *text;

    CU_ASSERT_FATAL(openpty(&master, &slave, NULL, NULL, &size) == 0);
    text = print(slave, master, attempt, why);
    (void) close(master);
    return text;
}

static size_t widest(const char *text) {
    size_t most = 0, n = 0;

    for (; *text; text++) {
        if (*text == '\r' || *text == '\n')
            n = 0;
        else
            n += (*text & 0xC0) == 0x80 ? 0 : (unsigned char) *text >= 0xe3 ? 2 : 1; /* the latter: letters of Asia */
        most = n > most ? n : most;
    }
    return most;
}

static void test_wide(void) {
    const char *text = print_on(132, "2/4", "pool full: db");

    CU_ASSERT(strstr(text, ID) && strstr(text, "DUE") && strstr(text, "TRY") && strstr(text, "POOLS"));
    CU_ASSERT(widest(text) > 80);
}

static void test_narrow(void) {
    const char *text = print_on(80, "2/4", "pool full: db");

    TEST_INT(widest(text) <= 80, 1);
    CU_ASSERT(!strstr(text, "89abcdef") && strstr(text, "01234567 "));
    CU_ASSERT(strstr(text, "DUE") && strstr(text, "TRY") && strstr(text, "pool full: db"));
    text = print_on(60, "2/4", "pool full: db");
    TEST_INT(widest(text) <= 60, 1);
    CU_ASSERT(!strstr(text, "DUE") && strstr(text, "POOLS") && strstr(text, "2/4") && strstr(text, "pool full: db"));
    text = print_on(43, "2/4", "pool full: db");
    CU_ASSERT(!strstr(text, "POOLS") && strstr(text, "2/4") && strstr(text, "pool full: db"));
    TEST_INT(widest(text) <= 43, 1);
}

/* A column without a value in any line is dropped first. */
static void test_empty(void) {
    const char *text = print_on(59, "", "");

    CU_ASSERT(!strstr(text, "TRY") && strstr(text, "DUE") && strstr(text, "POOLS"));
    TEST_INT(widest(text) <= 59, 1);
}

/* Some columns are important if they have a value: others are left out, and long texts are cut. */
static void test_kept(void) {
    const char *text;

    override = "3, ends in 1h59m (a migration)";
    text = print_on(50, "", "");
    CU_ASSERT(strstr(text, "OVERRIDE") && strstr(text, "3, ends in") && !strstr(text, "SCOPE") && strstr(text, "ant:report-1"));
    TEST_INT(widest(text) <= 50, 1);
    override = "";
    text = print_on(50, "", "");
    CU_ASSERT(!strstr(text, "OVERRIDE") && strstr(text, "bee:report-3"));
    override = NULL;
}

static void test_cut(void) {
    CU_ASSERT_FATAL(setenv("LC_ALL", "C", 1) == 0);
    const char *text = print_on(40, "2/4", "the config no longer has this pool: a-long-name-of-a-pool");

    TEST_INT(widest(text) <= 40, 1);
    CU_ASSERT(strstr(text, "01234567") && strstr(text, "the config") && strstr(text, "..."));
    CU_ASSERT(strstr(text, "pg-dump") && strstr(text, "nightly")); /* short texts stay whole */
    CU_ASSERT_FATAL(setenv("LC_ALL", "C.UTF-8", 1) == 0);
    text = print_on(40, "2/4", "the config nö lönger has this pööl: a-löng-näme-of-a-pool");
    TEST_INT(widest(text) <= 40, 1);
    CU_ASSERT(strstr(text, "the config nö l") && strstr(text, "…") && !strstr(text, "\\x"));
    text = print_on(40, "2/4", "東京東京東京東京東京東京東京東京東京");
    TEST_INT(widest(text) <= 40, 1);
    CU_ASSERT(strstr(text, "東京東") && strstr(text, "…") && !strstr(text, "\\x"));
    CU_ASSERT_FATAL(unsetenv("LC_ALL") == 0);
}

/* A pipe gets all columns in full. */
static void test_pipe(void) {
    int fds[2];
    const char *text;

    CU_ASSERT_FATAL(pipe(fds) == 0);
    text = print(fds[1], fds[0], "", "");
    CU_ASSERT(strstr(text, ID) && strstr(text, "DUE") && strstr(text, "TRY"));
    (void) close(fds[0]);
}

static CU_TestInfo tests[] = {
    {"wide", test_wide}, {"narrow", test_narrow}, {"empty", test_empty}, {"kept", test_kept}, {"cut", test_cut}, {"pipe", test_pipe}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "table", .pTests = tests});
