/* SPDX-License-Identifier: MIT */
/* The command line without a berthd: words, options, exit statuses, messages. */
#include "cli/verbs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/json/format.h"
#include "cli/table.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

static char said[2][16384]; /* output of the last berth() */

static void take(int saved, int file, int fd, char *text, size_t size) {
    ssize_t n = pread(file, text, size - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    (void) dup2(saved, fd);
    close(saved);
    close(file);
}

/* Runs cli_main() with these words, split at '|'. */
static int berth(const char *words) {
    _cleanup_free_ char *copy = strdup(words);
    char *rest = copy, *argv[32] = {(char *) "berth"}, *word;
    int saved[2], files[2], argc = 1, status;

    while (*words && (word = strsep(&rest, "|")))
        argv[argc++] = word;
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        saved[i] = fcntl(i + 1, F_DUPFD_CLOEXEC, 10);
        files[i] = memfd_create("said", MFD_CLOEXEC);
        if (saved[i] < 0 || files[i] < 0 || dup2(files[i], i + 1) < 0)
            abort();
    }
    status = cli_main(argc, argv);
    fflush(stdout);
    for (int i = 0; i < 2; i++)
        take(saved[i], files[i], i + 1, said[i], sizeof(said[i]));
    return status;
}

static void refuses(const char *words, int status, const char *first_line) {
    char line[1024];

    TEST_INT(berth(words), status);
    TEST_STRING(said[0], "");
    snprintf(line, sizeof(line), "%.*s", (int) strcspn(said[1], "\n"), said[1]);
    TEST_STRING(line, first_line);
}

/* --- usage --- */

static void test_unknown(void) {
    refuses("polls", 64, "berth: unknown verb \"polls\"; did you mean \"pools\"? `berth help` lists them all");
    refuses("xyzzy-plugh", 64, "berth: unknown verb \"xyzzy-plugh\"; `berth help` lists them all");
    refuses("help|stat", 64, "berth: unknown verb \"stat\"; did you mean \"start\"? `berth help` lists them all");
    refuses("--sokcet|x|pools", 64, "berth: unknown option \"--sokcet\" before the verb; `berth help` lists them");
    refuses("--socket", 64, "berth: --socket needs a path");
    refuses("--socket=|pools", 64, "berth: --socket needs a path");
    refuses("", 64, "berth [--socket PATH] VERB ...");
    refuses("\033[2Jpools", 64, "berth: unknown verb \"?[2Jpools\"; `berth help` lists them all"); /* no control characters */
    refuses("--\033[2J|x", 64, "berth: unknown option \"--?[2J\" before the verb; `berth help` lists them");
    refuses("pools|--\033[2J", 64, "berth pools: unknown option --?[2J");
    refuses("pools|--jsno", 64, "berth pools: unknown option --jsno; did you mean --json?");
    refuses("logs|a|--follow", 64, "berth logs: unknown option --follow; did you mean -f?");
    refuses("audit|--confgi|x", 64, "berth audit: unknown option --confgi; did you mean -c?");
    refuses("runs|--nothing", 64, "berth runs: unknown option --nothing");
    refuses("runs|-x", 64, "berth runs: unknown option -x");
    refuses("runs|--json=yes", 64, "berth runs: --json takes no value");
    refuses("hosts|one|two", 64, "berth hosts: 2 arguments too many");
    refuses("start", 64, "berth start: JOB is missing");
    refuses("stop", 64, "berth stop: JOB|RUN|LABEL is missing");
    refuses("pause", 64, "berth pause: POOL is missing");
    refuses("resume", 64, "berth resume: POOL is missing");
    refuses("limit", 64, "berth limit: POOL is missing");
    refuses("revoke", 64, "berth revoke: RUN is missing");
    refuses("reload|now", 64, "berth reload: 1 argument too many");
    refuses("version|now", 64, "berth version: 1 argument too many");
    refuses("check-config|a|b", 64, "berth check-config: 1 argument too many");
    refuses("limit|db|3|--for", 64, "berth limit: --for needs a value");
    refuses("limit|db|3|--for|1s|--for=2s", 64, "berth limit: --for is given twice");
    /* The usage follows. */
    CU_ASSERT_PTR_NOT_NULL(strstr(said[1], "\nberth limit POOL N [--for DURATION] [--reason TEXT]\nberth limit POOL --clear\n"));
}

static void test_values(void) {
    refuses("limit|db|--for|5m", 64, "berth limit: a limit is missing");
    refuses("pause|db|--for|5", 64, "berth pause: --for 5: must be a duration such as 30s, 10m or 1h30m");
    refuses("limit|db|010", 64, "berth limit: 010: a limit is a number from 0 to 1000000");
    refuses("limit|db|--|-1", 64, "berth limit: -1: a limit is a number from 0 to 1000000");
    refuses("limit|db|1000001", 64, "berth limit: 1000001: a limit is a number from 0 to 1000000");
    refuses("limit|db|3|--reason|St\xf6rung", 64, "berth limit: --reason: the text is not UTF-8");
    refuses("pause|db|--reason=\xff", 64, "berth pause: --reason: the text is not UTF-8");
    refuses("revoke|abcd|--reason|\xff", 64, "berth revoke: --reason: the text is not UTF-8");
    refuses("move|abcd|--first|--reason|\xff", 64, "berth move: --reason: the text is not UTF-8");
    refuses("watch|--since|\xff", 64, "berth watch: --since: the text is not UTF-8");
    refuses("next|\xff", 64, "berth next: the name of a job has a character that is not one of A-Z a-z 0-9 . _ -; use 1 to 64 of A-Z a-z 0-9 . _ -, "
                              "not beginning with '.' or '-'");
    refuses("limit|db|3|--for|5", 64, "berth limit: --for 5: must be a duration such as 30s, 10m or 1h30m");
    refuses("limit|db|3|--for|0s", 64, "berth limit: --for 0s: must be a duration such as 30s, 10m or 1h30m");
    refuses("limit|db|3|--for|4000d", 64, "berth limit: --for 4000d: must be at most 3650d");
    refuses("limit|db|3|--clear", 64, "berth limit: --clear takes a pool and nothing else");
    refuses("limit|db|--clear|--reason|x", 64, "berth limit: --clear takes a pool and nothing else");
    refuses("limit|d b|3", 64, "berth limit: the name of a pool has a space");
    refuses("pools|d\"b", 64, "berth pools: the name of a pool has a character that is not one of A-Z a-z 0-9 . _ -");
    refuses("pause|db|.db", 64, "berth pause: the name of a pool begins with '.' or '-'");
    refuses("start|", 64, "berth start: the name of a job is empty; use 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with '.' or '-'");
    refuses("stop|a\nb", 64, "berth stop: the name of a job or run has a character that is not one of A-Z a-z 0-9 . _ -; use 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with '.' or '-'");
    refuses("revoke|db", 64, "berth revoke: db: not a run's id or its first digits (at least 4); see `berth pools POOL`");
    refuses("revoke|012", 64, "berth revoke: 012: not a run's id or its first digits (at least 4); see `berth pools POOL`");
    refuses("history|a b", 64, "berth history: the name of a job or run has a space; use 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with '.' or '-'");
    refuses("history|--since|soon", 64, "berth history: --since soon: must be a time such as today, -2h, \"2 hours ago\", 14:00, "
            "\"2026-11-20 14:00\" or 2026-11-20T13:00:00Z");
    refuses("grace", 64, "berth grace: --end is missing; `berth help grace` explains the risk");
}

static void test_away(void) {
    static const char *const verbs[] = {"pools", "watch", "hosts", "jobs", "runs", "start|a", "stop|a", "reload", "grace|--end", "pause|db",
                                        "resume|db", "pause|db|net", "limit|db", "limit|db|3", "limit|db|--clear", "revoke|0123456789abcdef0123456789abcdef",
                                        "revoke|0123", "pools|--json", "start|a|b|--wait", "run|-p|db|true"};

    for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
        char words[256];

        snprintf(words, sizeof(words), "--socket|/nonexistent/sock|%s", verbs[i]);
        TEST_INT(berth(words), 69);
        TEST_STRING(said[0], "");
        CU_ASSERT_PTR_NOT_NULL(strstr(said[1], "/nonexistent/sock does not exist (is berthd running?"));
    }
    TEST_INT(berth("--socket=/nonexistent/sock|version"), 0);
    TEST_STRING(said[0], "berth " VERSION "\n");
    TEST_STRING(said[1], "");
}

/* No line is wider than a terminal of 80 columns. */
static void fits(const char *text) {
    for (const char *line = text; *line; line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n'))
        if (strcspn(line, "\n") > 79) {
            printf("%.*s\n", (int) strcspn(line, "\n"), line);
            CU_FAIL("is wider than 79 columns");
        }
}

static void program_fits(const char *program) {
    const char *build = place_build();
    char path[256], text[8192];
    size_t n;
    FILE *f;

    snprintf(path, sizeof(path), "'%s/%s' --help", build, program);
    f = popen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    n = fread(text, 1, sizeof(text) - 1, f);
    text[n] = '\0';
    TEST_INT(pclose(f), 0);
    CU_ASSERT(n > 200);
    fits(text);
}

/* Each verb that `berth help` lists has its own help, however the user asks for it. */
static void test_help(void) {
    _cleanup_free_ char *list = NULL;
    char *rest, *line;
    int n = 0;

    TEST_INT(berth("help"), 0);
    fits(said[0]);
    rest = list = strdup(said[0]);
    while ((line = strsep(&rest, "\n"))) {
        char verb[32], words[64], usage[64];
        _cleanup_free_ char *help = NULL;

        if (sscanf(line, "  %31s", verb) != 1 || strncmp(line, "  ", 2) != 0)
            continue;
        n++;
        snprintf(words, sizeof(words), "help|%s", verb);
        TEST_INT(berth(words), 0);
        help = strdup(said[0]);
        fits(help);
        snprintf(usage, sizeof(usage), "berth %s", verb);
        CU_ASSERT_PTR_EQUAL(strstr(help, usage), help);
        snprintf(words, sizeof(words), "%s|--help", verb);
        TEST_INT(berth(words), 0);
        TEST_STRING(said[0], help);
        TEST_STRING(said[1], "");
    }
    CU_ASSERT(n > 20);
    TEST_INT(berth("--help"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(said[0], "BERTH_SOCKET"));
    TEST_INT(berth("--version"), 0);
    TEST_STRING(said[0], "berth " VERSION "\n");
    program_fits("berthd");
    program_fits("berth-runner");
}

static void test_check_config(void) {
    char path[] = "/tmp/berth-cli-XXXXXX", words[64], expected[256];
    int fd = mkstemp(path);

    TEST_INT(fchmod(fd, 0600), 0);
    snprintf(words, sizeof(words), "check-config|%s", path);
    CU_ASSERT(dprintf(fd, "pool \"a\" { limit = 1 scope = \"host\" }\n") > 0);
    TEST_INT(berth(words), 0);
    snprintf(expected, sizeof(expected), "%s: 1 pool, 0 jobs, ok\n", path);
    TEST_STRING(said[0], expected);
    TEST_STRING(said[1], "");
    CU_ASSERT(dprintf(fd, "pool \"b\" { limit = x }\npool \"c\" { limit = y }\n") > 0);
    TEST_INT(berth(words), 78);
    TEST_STRING(said[0], "");
    snprintf(expected, sizeof(expected), "%s:2: ", path);
    CU_ASSERT_PTR_NOT_NULL(strstr(said[1], expected)); /* all errors at once */
    snprintf(expected, sizeof(expected), "%s:3: ", path);
    CU_ASSERT_PTR_NOT_NULL(strstr(said[1], expected));
    close(fd);
    (void) unlink(path);
    TEST_INT(berth(words), 78);
    CU_ASSERT_PTR_NOT_NULL(strstr(said[1], "No such file"));
}

/* --- words --- */

static void duration(json_int_t msec, const char *expected) {
    char text[FORMAT_SIZE];

    TEST_STRING(format_msec(msec, text), expected);
}

static void test_words(void) {
    json_auto_t *o =
        json_pack("{s:{s:i, s:i}, s:s, s:n, s:i}", "pools", "db", 2, "net", 1, "at", "2026-11-20T11:00:00.5Z", "none", "ms", 61000);
    usec_t eleven = (usec_t) 1795172400 * USEC_PER_SEC; /* 2026-11-20T11:00:00Z */
    char text[FORMAT_SIZE];

    duration(0, "0ms");
    duration(-5, "0ms");
    duration(999, "999ms");
    duration(1000, "1.0s");
    duration(9999, "9.9s");
    duration(10000, "10s");
    duration(60000, "1m0s");
    duration(3599999, "59m59s");
    duration(3600000, "1h0m");
    duration(86399999, "23h59m");
    duration(90000000, "1d1h");
    TEST_STRING(format_pools(o, "pools", text), "db:2 net:1");
    TEST_STRING(format_pools(o, "none", text), "");
    TEST_STRING(format_pools(o, "missing", text), "");
    TEST_STRING(format_duration(o, "ms", text), "1m1s");
    TEST_STRING(format_duration(o, "none", text), "");
    TEST_STRING(format_when(o, "at", eleven + 5 * USEC_PER_SEC, text), "4.5s ago");
    TEST_STRING(format_when(o, "at", eleven - 3600 * USEC_PER_SEC, text), "in 1h0m");
    TEST_STRING(format_when(o, "none", eleven, text), "");
    TEST_STRING(format_when(o, "missing", eleven, text), "");
}

static void result(const char *run, const char *expected) {
    json_auto_t *o = json_loads(run, 0, NULL);
    char text[FORMAT_SIZE];

    CU_ASSERT_PTR_NOT_NULL_FATAL(o);
    TEST_STRING(format_result(o, "result", "exit_code", "signal", text), expected);
}

static void test_results(void) {
    result("{\"result\": \"success\", \"exit_code\": 0, \"signal\": null}", "success");
    result("{\"result\": \"failure\", \"exit_code\": 3, \"signal\": null}", "failure (exit 3)");
    result("{\"result\": \"failure\", \"exit_code\": null, \"signal\": 9}", "failure (signal 9)");
    result("{\"result\": \"stopped\", \"exit_code\": null, \"signal\": 15}", "stopped (signal 15)");
    result("{\"result\": \"stopped\", \"exit_code\": 0, \"signal\": null}", "stopped");
    result("{\"result\": \"stopped\", \"exit_code\": null, \"signal\": null}", "stopped");
    result("{\"result\": \"timeout\", \"exit_code\": null, \"signal\": 15}", "timeout (signal 15)");
    result("{\"result\": \"lease-lost\", \"exit_code\": 0, \"signal\": null}", "lease-lost");
    result("{}", "");
}

/* --- the table --- */

static void print_table(struct table *t) {
    int saved, file;

    fflush(stdout);
    saved = dup(1);
    file = memfd_create("table", MFD_CLOEXEC);
    (void) dup2(file, 1);
    TEST_INT(table_print(t), 0);
    fflush(stdout);
    take(saved, file, 1, said[0], sizeof(said[0]));
}

static const struct table_column columns[] = {{.name = "NAME"}, {.name = "N", .right = true}};

static void test_table(void) {
    _cleanup_(table_freep) struct table *t = NULL;

    TEST_INT(table_new(&t, columns, ELEMENTSOF(columns)), 0);
    CU_ASSERT(table_is_empty(t));
    table_line(t);
    table_cell(t, TABLE_GOOD, "a\033[31mb");
    table_cell(t, TABLE_BAD, "%d", 7);
    table_line(t);
    table_cell(t, TABLE_PLAIN, "%s", "");
    table_cell(t, TABLE_PLAIN, "1000");
    CU_ASSERT(!table_is_empty(t));
    print_table(t);
    /* No colours without a terminal, and no escape sequences from names. */
    TEST_STRING(said[0], "NAME          N\n"
                         "a\\x1b[31mb    7\n"
                         "-          1000\n");
}

static void shows(const char *locale, const char *name, const char *expected) {
    _cleanup_(table_freep) struct table *t = NULL;

    TEST_INT(setenv("LC_ALL", locale, 1), 0);
    TEST_INT(table_new(&t, columns, ELEMENTSOF(columns)), 0);
    table_line(t);
    table_cell(t, TABLE_PLAIN, "%s", name);
    table_cell(t, TABLE_PLAIN, "1");
    print_table(t);
    TEST_STRING(strchr(said[0], '\n') + 1, expected);
    (void) unsetenv("LC_ALL");
}

/* A terminal with UTF-8 shows letters of all languages; its columns count, not bytes. Another one gets ASCII. */
static void test_letters(void) {
    shows("C.UTF-8", "gr\303\266\303\237er", "gr\303\266\303\237er 1\n");
    shows("C.UTF-8", "\346\235\261", "\346\235\261   1\n");        /* two columns */
    shows("C.UTF-8", "abcdo\314\210", "abcdo\314\210 1\n");          /* a combining mark */
    shows("C.UTF-8", "a\342\200\256b", "a\\xe2\\x80\\xaeb 1\n"); /* right to left */
    shows("C.UTF-8", "a\303", "a\\xc3 1\n");
    shows("C.UTF-8", "a\300\257", "a\\xc0\\xaf 1\n"); /* an overlong '/' */
    shows("C.UTF-8", "a\302\233b", "a\\xc2\\x9bb 1\n");
    shows("C.UTF-8", "a\\xb", "a\\xb 1\n");
    shows("C", "\303\266", "\\xc3\\xb6 1\n");
}

static CU_TestInfo tests[] = {
    {"unknown", test_unknown},   {"values", test_values},
    {"away", test_away},         {"help", test_help},
    {"check-config", test_check_config}, {"words", test_words},
    {"results", test_results},   {"table", test_table},
    {"letters", test_letters},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "cli", .pTests = tests});
