/* SPDX-License-Identifier: MIT */

/* What `berth` prints and does for callers with different rights. */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/host/callers.h"

#define HAVE_OPERATE "root and members of group " OPERATORS " have it\n"

static void words(void) {
    NEEDS_OTHERS();
    caller_refused(RUNNER, "limit open 9", "berth: limit: you need the right to operate; " HAVE_OPERATE);
    caller_refused(OTHER, "grace --end", "berth: grace: you need the right to operate; " HAVE_OPERATE);
    caller_refused(OTHER, "run -p open -- true",
            "berth: run: you need the right to run; root, members of group " OPERATORS " and members of group " RUNNERS " have it\n");
    caller_refused(RUNNER, "start plain", "berth: start: you need the right to operate job plain; " HAVE_OPERATE);
    caller_refused(RUNNER, "stop db",
            "berth: stop: you need the right to operate job db; root, members of group " OPERATORS " and members of group " DBA " have it\n");
    caller_refused(RUNNER, "move 00112233445566778899aabbccddeeff --first",
            "berth: move: you need the right to operate; " HAVE_OPERATE);
    TEST_INT(berth_end(caller_start(JOB_OPERATOR, "start --wait db")), 0);
    TEST_INT(berth_end(caller_start(OTHER, "pools")), 0);
}

static void pools(void) {
    NEEDS_OTHERS();
    caller_refused(RUNNER, "run -p open -p narrow -- true",
            "berth: run: you need the right to run on pool narrow; root, members of group " OPERATORS " and members of group " USERS
            " have it\n");
    TEST_INT(berth_end(caller_start(POOL_USER, "run -p open -p narrow -- true")), 0);
    TEST_INT(berth_end(caller_start(OPERATOR, "run -p narrow -- true")), 0);
}

/* A pattern's options apply to its keys, except to a pool that the config defines by its full name. */
static void patterns(void) {
    NEEDS_OTHERS();
    host_set_config(callers_host, TOP "pool \"team/*\" { limit = 4 scope = \"host\" users = {\"@" USERS
                             "\"} head-start-max = \"1m\" }\n"
                             "pool \"team/all\" { limit = 4 scope = \"host\" }\n");
    TEST_INT(berth(callers_host, "reload"), 0);
    caller_refused(RUNNER, "run -p team/a -- true",
            "berth: run: you need the right to run on pool team/*; root, members of group " OPERATORS
            " and members of group " USERS " have it\n");
    caller_refused(RUNNER, "run -p team/all -p team/b -- true",
            "berth: run: you need the right to run on pool team/*; root, members of group " OPERATORS
            " and members of group " USERS " have it\n");
    caller_refused(POOL_USER, "run --head-start 61s -p team/a -- true",
            "berth: run: pool team/* allows a head start of at most 1m (head-start-max); for more you need "
            "the right to operate; " HAVE_OPERATE);
    TEST_INT(berth_end(caller_start(POOL_USER, "run --head-start 1m -p team/a -- true")), 0);
    TEST_INT(berth_end(caller_start(RUNNER, "run --head-start 61s -p team/all -- true")), 0);
    TEST_INT(berth_end(caller_start(OPERATOR, "run --head-start 61s -p team/a -- true")), 0);
}

static void head_start(void) {
    NEEDS_OTHERS();
    caller_refused(RUNNER, "run --head-start 300d -p open -- true",
            "berth: run: pool open allows a head start of at most 5m (head-start-max); for more you need the right to operate; " HAVE_OPERATE);
    TEST_INT(berth_end(caller_start(RUNNER, "run --head-start 5m -p open -- true")), 0);
    TEST_INT(berth_end(caller_start(OPERATOR, "run --head-start 300d -p open -- true")), 0);
    host_set_config(callers_host, TOP "pool open { limit = 1 scope = host head-start-max = 0s }\n");
    TEST_INT(berth(callers_host, "reload"), 0);
    TEST_INT(berth_end(caller_start(RUNNER, "run --head-start 1ms -p open -- true")), 77);
    TEST_INT(berth_end(caller_start(RUNNER, "run -p open -- true")), 0);
}

/* --- one's own runs --- */

static struct child *start_own(char run[static 64]) {
    struct child *c;

    host_mark(callers_host);
    c = caller_start(RUNNER, "run -p open --name own -- sleep 1000");
    snprintf(run, 64, "%s", event_get(host_await(callers_host, "started", "job=own"), "run"));
    return c;
}

static void own_runs(void) {
    char run[64], stop[80];
    struct child *c;

    NEEDS_OTHERS();
    c = start_own(run);
    snprintf(stop, sizeof(stop), "stop %s", run);
    caller_refused(POOL_USER, stop, "berth: stop: you need the right to operate to stop a run of another user; " HAVE_OPERATE);
    caller_refused(JOB_OPERATOR, stop, "berth: stop: you need the right to operate to stop a run of another user; " HAVE_OPERATE);
    CU_ASSERT(!c->ended);
    TEST_INT(berth_end(caller_start(RUNNER, stop)), 0);
    TEST_INT(berth_end(c), 143);
    c = start_own(run);
    snprintf(stop, sizeof(stop), "stop %s", run);
    TEST_INT(berth_end(caller_start(OPERATOR, stop)), 0);
    TEST_INT(berth_end(c), 143);
}

static void write_file(const char *path, const char *a, const char *b, const char *c) {
    FILE *f = fopen(path, "we");

    TEST_FATAL(f != NULL, "no file");
    fprintf(f, "%s%s%s\n", a, b, c);
    TEST_INT(fclose(f), 0);
}

/* A user who loses the right keeps the run and receives its end, but starts nothing more. */
static void right_lost(void) {
    char go[80], script[80], words[200];
    struct child *c;

    NEEDS_OTHERS();
    snprintf(go, sizeof(go), "%s/go", cluster.folder);
    TEST_INT(mkfifo(go, 0666), 0);
    TEST_INT(chmod(go, 0666), 0);
    snprintf(script, sizeof(script), "%s/script", cluster.folder);
    write_file(script, "read line <", go, "; exit 3");
    snprintf(words, sizeof(words), "run -p open --name late -- sh %s", script);
    c = caller_start(RUNNER, words);
    host_await(callers_host, "started", "job=late");
    host_set_config(callers_host, "run-group = \"\"\n" POOLS JOBS);
    TEST_INT(berth(callers_host, "reload"), 0);
    TEST_INT(berth_end(caller_start(RUNNER, "run -p open -- true")), 77);
    write_file(go, "now", "", "");
    TEST_INT(berth_end(c), 3);
    host_await(callers_host, "exited", "job=late exit_code=3");
}

/* --- inside a run --- */

/* A command has the rights of its own user, not those of the job's operators or of its starter. */
static void nested(void) {
    char copy[256];

    NEEDS_OTHERS();
    snprintf(copy, sizeof(copy), "cp %s/berth %s/berth-verbs %s && chmod 0755 %s %s/berth %s/berth-verbs", cluster.build, cluster.build,
             cluster.folder, cluster.folder, cluster.folder, cluster.folder);
    TEST_INT(system(copy), 0);
    host_set_config(callers_host, TOP POOLS JOBS
                    "job \"outer\" { pools = {\"open\"} user = \"nobody\" group = \"" RUNNERS "\" operators = {\"@" DBA "\"} output = \"null\"\n"
                    "command = {\"/bin/sh\", \"-c\", '"
                    "b=\"%s/berth --socket %s\"; "
                    "$b run -p open -- true || exit 1; "
                    "$b stop outer; [ $? -eq 77 ] || exit 2; "
                    "$b start db; [ $? -eq 77 ] || exit 3; "
                    "$b run -n -p narrow -- true; [ $? -eq 77 ] || exit 4; "
                    "$b limit open 9; [ $? -eq 77 ] || exit 5; "
                    "$b run -p open -- $b stop $BERTH_RUN; [ $? -eq 77 ] || exit 6; "
                    "exit 42'} }\n", cluster.folder, callers_host->socket);
    TEST_INT(berth(callers_host, "reload"), 0);
    TEST_INT(berth_end(caller_start(JOB_OPERATOR, "start --wait outer")), 42);
    snprintf(copy, sizeof(copy), "rm %s/berth %s/berth-verbs", cluster.folder, cluster.folder);
    TEST_INT(system(copy), 0);
}

/* --- the config --- */

static void check_config(void) {
    host_set_config(callers_host, POOLS "job j { command = {\"/bin/true\"}\noperators = {\"berth-no-user\"} }\n");
    TEST_INT(berth(callers_host, "check-config %s", callers_host->config), 78);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, ":9: job \"j\": operators: there is no user \"berth-no-user\" on this machine"));
    TEST_INT(berth(callers_host, "reload"), 0); /* berthd goes on without the user, and warns */
    CU_ASSERT_PTR_NOT_NULL(strstr(host_log(callers_host), "operators: there is no user \"berth-no-user\" on this machine"));
}

static CU_TestInfo tests[] = {
    {"words", words},
    {"pools", pools},
    {"patterns", patterns},
    {"head start", head_start},
    {"own runs", own_runs},
    {"right lost", right_lost},
    {"nested", nested},
    {"check-config", check_config},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "rights of users", .pSetUpFunc = callers_up, .pTearDownFunc = cluster_down,
             .pTests = tests});
