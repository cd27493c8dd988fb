/* SPDX-License-Identifier: MIT */

/* Real documents of each verb with --json: they are as tests/data/json-schema.json describes them (berth(1), JSON).
 * The validator is that of python3-jsonschema, for tests/oracle/json_schema.py. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/harness/host/host.h"
#include "tests/harness/judge/journal-file.h"
#include "tests/harness/test.h"

#define NO_VALIDATOR 77
#define CONFIG                                                                                              \
    "pool \"db\" { limit = 3 description = \"the database\" }\npool \"net\" { limit = 1 }\n" \
    "pool \"cpu\" { limit = 1 scope = \"host\" }\npool \"tenant/*\" { limit = 1 }\n"                        \
    "job \"copy\" { command = {\"/bin/true\"} schedule = {\"30 2 * * *\"} zone = \"Europe/Berlin\" splay = \"5m\" }\n" \
    "job \"poll\" { command = {\"/bin/true\"} every = \"1h\" }\n"                                           \
    "job \"bad\" { command = {\"/bin/false\"} pools = {\"cpu\"} retry = 3 retry-delay = \"10m\" }\n"  \
    "job \"shared\" { command = {\"/bin/true\"} schedule = {\"@daily\"} on = \"any\" zone = \"UTC\" }\n"                   \
    "job \"each@\" { command = {\"/bin/true\"} instances = {\"a\"} }\n"

static char folder[48];
static struct host *ant, *bee;

static void up(void) {
    cluster_up_patient();
    (void) snprintf(folder, sizeof(folder), "%s/json", cluster.folder);
    TEST_INT(mkdir(folder, 0755), 0);
}

/* Adds a text to the documents of this kind, one on a line. */
static void keep_text(const char *kind, const char *text) {
    char path[96];
    FILE *f;

    (void) snprintf(path, sizeof(path), "%s/%s", folder, kind);
    f = fopen(path, "ae");
    CU_ASSERT_FATAL(f != NULL);
    (void) fputs(text, f);
    CU_ASSERT(fclose(f) == 0 && strchr(text, '{') != NULL);
}

/* Adds what a `berth` prints. */
static void keep(const char *kind, struct host *h, const char *words) {
    (void) berth(h, "%s", words);
    TEST_STRING(kind[0] == 'd' ? "" : berth_err, "");
    keep_text(kind, berth_out);
}

static void keep_all(struct host *h) {
    static const char *const rows[][2] = {
        {"pools", "pools --json"},
        {"pools", "pools db net tenant/* tenant/acme --json"},
        {"hosts", "hosts --json"},
        {"runs", "runs --json"},
        {"runs", "runs --all --json"},
        {"runs-cluster", "runs --cluster --json"},
        {"jobs", "jobs --json"},
        {"next", "next --json"},
        {"next", "next -e '30 2 * * *' -z Europe/Berlin --from 2027-03-27T12:00:00Z --json"},
        {"redis", "redis --json"},
        {"explain", "explain report --json"},
        {"explain", "explain import --json"},
        {"explain", "explain copy --json"},
        {"explain", "explain bad --json"},
    };
    char words[128];

    for (size_t i = 0; i < ELEMENTSOF(rows); i++)
        keep(rows[i][0], h, rows[i][1]);
    (void) snprintf(words, sizeof(words), "doctor --json -c %s --skip unit,journal,journal-rate,journal-age",
                    h->config);
    keep("doctor", h, words);
}

/* Prints the documents that are not as they should be, and fails the test. */
static void check_all(void) {
    char command[256];
    int status;

    (void) snprintf(command, sizeof(command),
                    "p=/usr/bin/python3; [ -x $p ] || p=python3; PYTHONDONTWRITEBYTECODE=1 "
                    "exec $p tests/oracle/json_schema.py tests/data/json-schema.json %s",
                    folder);
    status = system(command);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_VALIDATOR)
        TEST_SKIP("needs python3-jsonschema");
    TEST_INT(status, 0);
}

static bool make_journals(void) {
    struct journal_file f;
    char path[64];

    journal_file_begin(&f, "ant", 1);
    journal_file_event(&f, 0, "ready", "");
    journal_file_event(&f, 5, "config-loaded", "BERTH_LIMITS=db:3,net:1");
    for (int i = 1; i <= 3; i++) {
        char run[256];

        (void) snprintf(run, sizeof(run),
                        "BERTH_RUN=%032d BERTH_JOB=dump BERTH_POOLS=db:2,net:1 BERTH_TOKEN=%d BERTH_WAIT_MS=1000 "
                        "BERTH_EXIT_CODE=0 BERTH_RESULT=success BERTH_RUN_MS=500 BERTH_TRIGGER=retry BERTH_ATTEMPT=2",
                        i, i);
        journal_file_event(&f, i * 10000, "queued", run);
        journal_file_event(&f, i * 10000 + 1000, "granted", run);
        journal_file_event(&f, i * 10000 + 1100, "started", run);
        if (i == 3)
            break;
        journal_file_event(&f, i * 10000 + 1600, "exited", run);
        journal_file_event(&f, i * 10000 + 1610, "released", run);
    }
    (void) snprintf(path, sizeof(path), "%s/ant", journal_folder);
    return journal_file_write(&f, path);
}

static void keep_history(void) {
    static const char *const rows[][2] = {{"history", ""},
                                          {"history-stats", "--stats"},
                                          {"history-stats", "--stats --by pool"},
                                          {"history-use", "--use"}};
    char words[256];

    if (!journal_files_once(make_journals))
        return;
    for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
        (void) snprintf(words, sizeof(words),
                        "history --directory=%s --since 2025-11-20T11:59:00Z --until 2025-11-20T12:15:00Z %s --json",
                        journal_folder, rows[i][1]);
        keep(rows[i][0], NULL, words);
    }
    (void) snprintf(words, sizeof(words), "audit --directory=%s --json", journal_folder);
    keep("audit", NULL, words);
}

static void test_all(void) {
    usec_t until = clock_boottime() + HOST_PATIENCE;
    struct child *children[5];

    ant = host_up("ant", "%s", CONFIG);
    bee = host_up("bee", "%s", CONFIG);
    children[4] = berth_start(ant, "watch --cluster --json");
    while (!strchr(child_text(children[4], 1), '{') && clock_boottime() < until)
        (void) berth(ant, "run -p cpu -- true"); /* until it sees that */
    children[0] = berth_at_gate(ant, "-p db:3 -p tenant/acme", "import", "started");
    children[1] = berth_at_gate(ant, "-p db:2 -p net", "report", "queued");
    children[2] = berth_at_gate(bee, "-p db", "dump", "queued");
    children[3] = berth_at_gate(ant, "-p tenant/acme", "tail", "queued");
    TEST_INT(berth(ant, "start bad"), 0);
    host_await(ant, "exited", "job=bad");
    keep_all(ant);
    keep("move", ant, "move report --by 1m --json");
    keep("move", ant, "move report --first --json");
    TEST_INT(berth(ant, "limit net 0 --for 1h --reason backup"), 0);
    host_set_config(bee, "pool \"db\" { limit = 2 }\n");
    TEST_INT(berth(bee, "reload"), 0);
    TEST_INT(berth(bee, "pause db"), 0);
    TEST_INT(berth(bee, "drain"), 0);
    host_await_pool(ant, "db", "limit", 0);
    keep_all(ant);
    TEST_INT(berth(bee, "undrain"), 0);
    host_signal(ant, SIGSTOP);
    keep("doctor", ant, "doctor --json --only daemon,grace");
    host_signal(ant, SIGCONT);
    TEST_INT(berth(bee, "limit db --clear"), 0);
    TEST_INT(berth(bee, "limit net --clear"), 0);
    TEST_INT(berth(ant, "stop bad"), 0); /* its next attempt */
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < 4; i++)
        (void) berth_end(children[i]);
    keep("runs", ant, "runs --all --json");
    child_kill(children[4], SIGTERM);
    CU_ASSERT(child_await(children[4], HOST_PATIENCE));
    keep_text("watch", child_text(children[4], 1));
    child_free(children[4]);
    keep_history();
    check_all();
}

static CU_TestInfo tests[] = {{"documents of all verbs", test_all}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "json", .pInitFunc = journal_folder_make, .pCleanupFunc = journal_folder_remove,
             .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
