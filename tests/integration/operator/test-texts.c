/* SPDX-License-Identifier: MIT */

/* The errors of verbs that show, move and check: their exact texts and exit statuses. */

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 2 }\npool \"net\" { limit = 2 }\njob \"pg-dump\" { command = {\"/bin/true\"} }\n"

static struct host *ant;

/* Checks what `berth` (printf) says and its status. */
#define SAYS(status, text, ...)                            \
    do {                                                   \
        TEST_INT(berth(ant, __VA_ARGS__), status);         \
        TEST_STRING(berth_err, text);                      \
    } while (0)

static void id_of(char id[static 33]) {
    snprintf(id, 33, "%s", event_get(ant->event, "run"));
}

static void test_words(void) {
    char holder[33], waiter[33], other[33], text[400];
    struct child *children[4];

    ant = host_up("ant", POOLS);
    children[0] = berth_at_gate(ant, "-p db:2", "holder", "started");
    id_of(holder);
    children[1] = berth_at_gate(ant, "-p db", "a", "queued");
    id_of(waiter);
    children[2] = berth_at_gate(ant, "-p net:2", "other", "started");
    children[3] = berth_at_gate(ant, "-p net", "n", "queued");
    id_of(other);

    snprintf(text, sizeof(text), "berth: no such job: %.3s (known: pg-dump); a run needs 4 digits at least\n", waiter);
    SAYS(65, text, "explain %.3s", waiter);
    SAYS(65, "berth: no such job: pgdump (did you mean \"pg-dump\"? known: pg-dump)\n", "explain pgdump");
    SAYS(65, "berth: no run 00112233 on this host, nor among the first 1000 claims of a pool; ask its host\n",
         "explain 00112233");
    SAYS(64, "berth explain: JOB|RUN|LABEL is missing\nberth explain JOB|RUN|LABEL [--no-estimate] [--json]\n",
         "explain");

    snprintf(text, sizeof(text),
             "berth: no run %.3s holds permits or waits for permits; `berth pools POOL` lists those that do; a run needs "
             "4 digits at least\n",
             waiter);
    SAYS(65, text, "move %.3s --first", waiter);
    snprintf(text, sizeof(text), "berth: %.8s and %.8s have no queue in common\n", waiter, other);
    SAYS(64, text, "move a --before n");
    snprintf(text, sizeof(text), "berth: %.8s holds its permits already, so it waits in no queue\n", holder);
    SAYS(64, text, "move holder --first");
    SAYS(64, "berth steal: --for is missing: who gets the permits\nberth steal RUN --for RUN [--reason TEXT] [--yes]\n",
         "steal holder");

    SAYS(65, "berth history: /nonexistent: cannot be read: No such file or directory\n",
         "history --directory /nonexistent");
    snprintf(text, sizeof(text), "berth history: %s: no journal found; name a folder that has *.journal files\n", cluster.folder);
    SAYS(65, text, "history --directory %s", cluster.folder);
    if (berth(NULL, "history") == 65 && strstr(berth_err, "has no journal")) {
        TEST_STRING(berth_err, "berth history: this machine has no journal; --directory DIR names a copy of one "
                               "(`berth runs --all` lists what berthd remembers)\n");
        SAYS(65, "berth audit: this machine has no journal; --directory DIR names a copy of one\n", "audit");
        SAYS(65, "berth logs: this machine has no journal; --directory DIR names a copy of one\n", "logs pg-dump");
    }
    SAYS(78, "/nonexistent: cannot be opened: No such file or directory; create it, or name another one with -c\n",
         "check-config -c /nonexistent");
    SAYS(64, "berth check-config: name the file once: FILE or -c FILE\nberth check-config [FILE | -c FILE]\n",
         "check-config -c /nonexistent /nonexistent");
    SAYS(64, "berth: no check \"redis-polcy\" (did you mean \"redis-policy\"? --list has all)\n",
         "doctor --only redis-polcy");
    SAYS(70, "berth: /nonexistent/x.tmp: No such file or directory\n", "metrics --output /nonexistent/x");
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < ELEMENTSOF(children); i++)
        TEST_INT(berth_end(children[i]), 0);
}

static void test_away(void) {
    static const char *const verbs[] = {"explain x",       "watch",   "move x --first",
                                        "steal x --for y", "metrics", "runs"};
    char text[300];

    ant = host_add("ant", POOLS);
    snprintf(text, sizeof(text),
             "berth: cannot reach berthd: %s does not exist (is berthd running? --socket names another)\n", ant->socket);
    for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
        SAYS(69, text, "%s", verbs[i]);
}

static CU_TestInfo tests[] = {{"words", test_words}, {"berthd is away", test_away}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "texts", .pSetUpFunc = cluster_up_patient, .pTearDownFunc = cluster_down,
             .pTests = tests});
