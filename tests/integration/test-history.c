/* SPDX-License-Identifier: MIT */
/* `berth history` on real journal files. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/harness/child.h"
#include "tests/harness/journal-file.h"
#include "tests/harness/test.h"

#define RUN_A "0000000000000000000000000000000a"
#define RUN_B "0000000000000000000000000000000b"
#define RUN_C "0000000000000000000000000000000c"
#define RUN_D "0000000000000000000000000000000d"

static char folder[] = "/tmp/berth-history-XXXXXX", *out, *err;

static int berth(const char *words) {
    _cleanup_free_ char *copy = strdup(words);
    const char *build = getenv("BERTH_BUILD");
    char program[256], *argv[24] = {program}, *rest = copy, *word;
    struct child *c;
    size_t n = 1;
    int status;

    snprintf(program, sizeof(program), "%s/berth", build ? build : "build");
    while ((word = strsep(&rest, " ")))
        argv[n++] = word;
    c = child_start(argv, NULL);
    if (!c || !child_await(c, 20 * USEC_PER_SEC)) {
        CU_FAIL("berth does not end");
        child_free(c);
        return -1;
    }
    free(out);
    free(err);
    out = strdup(child_text(c, 1));
    err = strdup(child_text(c, 2));
    status = c->exit_code;
    child_free(c);
    return status;
}

/* Two boots of host ant; run c of host bee, whose end is told by ant. */
static bool make_journals(void) {
    struct journal_file ant, bee;
    char path[64];

    journal_file_begin(&ant, "ant", 1);
    journal_file_event(&ant, 0, "ready", "");
    journal_file_event(&ant, 10, "queued", "BERTH_RUN=" RUN_A " BERTH_JOB=dump BERTH_POOLS=db:2,net:1 BERTH_TICKET=5");
    journal_file_event(&ant, 1010, "granted",
                       "BERTH_RUN=" RUN_A " BERTH_JOB=dump BERTH_POOLS=db:2,net:1 BERTH_TOKEN=7 BERTH_WAIT_MS=1000");
    journal_file_event(&ant, 1020, "started", "BERTH_RUN=" RUN_A " BERTH_JOB=dump BERTH_POOLS=db:2,net:1 BERTH_WAIT_MS=1000");
    /* Anybody can write this; it is not of berthd. */
    journal_file_entry(&ant, 1500, "BERTH_EVENT=exited BERTH_RUN=" RUN_A " BERTH_RESULT=failure _SYSTEMD_UNIT=evil.service", "forged");
    journal_file_event(&ant, 3520, "exited", "BERTH_RUN=" RUN_A " BERTH_JOB=dump BERTH_RESULT=success BERTH_EXIT_CODE=0 BERTH_RUN_MS=2500");
    journal_file_restart(&ant, true);
    journal_file_event(&ant, 60000, "ready", "");
    journal_file_event(&ant, 60010, "granted", "BERTH_RUN=" RUN_B " BERTH_JOB=copy BERTH_POOLS=net:1 BERTH_TOKEN=9 BERTH_WAIT_MS=0");
    journal_file_event(&ant, 60020, "started", "BERTH_RUN=" RUN_B " BERTH_JOB=copy BERTH_POOLS=net:1");
    journal_file_event(&ant, 60030, "refused", "BERTH_RUN=" RUN_D " BERTH_JOB=dump BERTH_POOLS=db:2 BERTH_REASON=busy");
    journal_file_event(&ant, 90000, "reclaimed", "BERTH_RUN=" RUN_C " BERTH_JOB=dump BERTH_POOLS=db:2 BERTH_HOST=bee BERTH_TOKEN=8");
    snprintf(path, sizeof(path), "%s/ant", folder);
    if (!journal_file_write(&ant, path))
        return false;
    journal_file_begin(&bee, "bee", 2);
    journal_file_event(&bee, 30000, "granted", "BERTH_RUN=" RUN_C " BERTH_JOB=dump BERTH_POOLS=db:2 BERTH_TOKEN=8 BERTH_WAIT_MS=0");
    journal_file_event(&bee, 30010, "started", "BERTH_RUN=" RUN_C " BERTH_JOB=dump BERTH_POOLS=db:2");
    snprintf(path, sizeof(path), "%s/bee", folder);
    return journal_file_write(&bee, path);
}

/* Whether the journals are there; makes them for the first test that needs them. */
static bool prepare(void) {
    static bool made;

    if (!journal_file_possible())
        return false;
    if (!made)
        made = make_journals();
    return made;
}

static const char *text(const json_t *runs, size_t i, const char *key) {
    const char *value = json_string_value(json_object_get(json_array_get(runs, i), key));

    return value ? value : "-";
}

static long long number(const json_t *runs, size_t i, const char *key) {
    const json_t *value = json_object_get(json_array_get(runs, i), key);

    return json_is_integer(value) ? json_integer_value(value) : -1;
}

static json_t *history(const char *options) {
    char words[512];
    json_t *document;

    snprintf(words, sizeof(words), "history --json --directory=%s%s%s", folder, *options ? " " : "", options);
    TEST_INT(berth(words), 0);
    document = json_loads(out, 0, NULL);
    TEST_INT(json_integer_value(json_object_get(document, "schema")), 1);
    return document;
}

static void test_runs(void) {
    json_t *document, *runs;

    if (!prepare())
        return;
    document = history("");
    runs = json_object_get(document, "runs");
    TEST_INT(json_array_size(runs), 4);
    TEST_STRING(text(runs, 0, "run"), RUN_A);
    TEST_STRING(text(runs, 0, "name"), "dump");
    TEST_STRING(text(runs, 0, "host"), "ant");
    TEST_STRING(text(runs, 0, "result"), "success");
    TEST_INT(number(runs, 0, "exit_code"), 0);
    TEST_INT(number(runs, 0, "wait_ms"), 1000);
    TEST_INT(number(runs, 0, "run_ms"), 2500);
    TEST_INT(number(runs, 0, "token"), 7);
    TEST_INT(json_integer_value(json_object_get(json_object_get(json_array_get(runs, 0), "pools"), "db")), 2);
    TEST_STRING(text(runs, 1, "run"), RUN_C);
    TEST_STRING(text(runs, 1, "host"), "bee");
    TEST_STRING(text(runs, 1, "result"), "reclaimed");
    TEST_STRING(text(runs, 2, "run"), RUN_B);
    TEST_STRING(text(runs, 2, "result"), "-");
    CU_ASSERT(strncmp(text(runs, 2, "started"), "2025-11-20T12:01:00.", 20) == 0);
    TEST_STRING(text(runs, 2, "ended"), "-");
    TEST_STRING(text(runs, 3, "result"), "not-started");
    json_decref(document);
}

static void chooses(const char *options, const char *expected) {
    json_t *document = history(options), *run;
    char found[16] = "";
    size_t i;

    json_array_foreach(json_object_get(document, "runs"), i, run)
        strncat(found, json_string_value(json_object_get(run, "run")) + 31, 1);
    TEST_STRING(found, expected);
    json_decref(document);
}

static void test_filters(void) {
    if (!prepare())
        return;
    chooses("--job dump", "acd");
    chooses("--pool net", "ab");
    chooses("--job dump --pool db --until 2025-11-20T12:00:20Z", "a");
    chooses("--since 2025-11-20T12:00:10Z", "cbd");
    chooses("--since 2025-11-20T13:00:10+01:00 --until 2025-11-20T12:01:00Z", "c");
    chooses("--since -1m", "b"); /* it has not ended */
    chooses("--unit evil.service", "a");
}

static void test_table(void) {
    char words[128];

    if (!prepare())
        return;
    snprintf(words, sizeof(words), "history --directory %s/ant --pool net", folder);
    TEST_INT(berth(words), 0);
    CU_ASSERT(strstr(out, "2025-11-20T12:00:01Z " RUN_A " dump ant  db:2,net:1   1.0s 2.5s success") != NULL);
    CU_ASSERT(strstr(out, "2025-11-20T12:01:00Z " RUN_B " copy ant  net:1") != NULL);
    CU_ASSERT(strstr(out, "running") != NULL);
    snprintf(words, sizeof(words), "history --directory %s --job nothing", folder);
    TEST_INT(berth(words), 0);
    TEST_STRING(out, "");
    TEST_STRING(err, "the journal has no such run\n");
}

static void test_no_journal(void) {
    char words[128], path[64];
    FILE *f;

    TEST_INT(berth("history --directory /nonexistent"), 65);
    TEST_STRING(err, "berth history: /nonexistent: cannot be read: No such file or directory\n");
    snprintf(path, sizeof(path), "%s/empty", folder);
    (void) mkdir(path, 0755);
    snprintf(words, sizeof(words), "history --directory %s", path);
    TEST_INT(berth(words), 65);
    CU_ASSERT(strstr(err, "no journal is there") != NULL);
    snprintf(path, sizeof(path), "%s/empty/x.journal", folder);
    f = fopen(path, "we");
    fputs("this is no journal", f);
    fclose(f);
    TEST_INT(berth(words), 65);
    CU_ASSERT(strstr(err, "cannot be read") != NULL);
    if (prepare()) { /* nor is it left out beside good ones */
        snprintf(words, sizeof(words), "history --directory %s", folder);
        TEST_INT(berth(words), 65);
    }
    TEST_INT(unlink(path), 0);
    snprintf(path, sizeof(path), "%s/empty", folder);
    TEST_INT(rmdir(path), 0);
    TEST_INT(berth("history -m --directory /tmp"), 64);
    TEST_INT(berth("history --since yesterday"), 64);
    TEST_INT(berth("history --pool -x"), 64);
}

static int init(void) {
    return mkdtemp(folder) ? 0 : 1;
}

static int done(void) {
    char *argv[] = {(char *) "rm", (char *) "-r", folder, NULL};
    struct child *c = child_start(argv, NULL);

    (void) child_await(c, 10 * USEC_PER_SEC);
    child_free(c);
    free(out);
    free(err);
    return 0;
}

static CU_TestInfo tests[] = {
    {"runs", test_runs}, {"filters", test_filters}, {"table", test_table}, {"no-journal", test_no_journal}, CU_TEST_INFO_NULL};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "history", .pInitFunc = init, .pCleanupFunc = done, .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
