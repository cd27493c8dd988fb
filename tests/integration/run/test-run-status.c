/* SPDX-License-Identifier: MIT */

/* The exit status of `berth run` and of the other verbs: every row of the table in berth(1). */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define POOLS "pool \"db\" { limit = 2 }\npool \"net\" { limit = 2 host-limit = 1 }\npool \"shut\" { limit = 0 }\n"
#define JOBS "job \"nap\" { command = {\"/bin/sleep\", \"60\"} pools = {\"db\"} }\n"

static struct host *ant;

static void up(void) {
    cluster_up();
    ant = host_up("ant", POOLS JOBS);
}

static void the_commands_own(void) {
    TEST_INT(berth(ant, "run -p db -- true"), 0);
    TEST_INT(berth(ant, "run -p db -- sh -c 'exit 7'"), 7);
    TEST_INT(berth(ant, "run -p db -- sh -c 'kill -KILL $$'"), 137);
    TEST_INT(berth(ant, "run -p db -- sh -c 'kill -TERM $$'"), 143);
    TEST_INT(berth(ant, "run -p db -- sh -c 'exit 75'"), 75);
    TEST_INT(berth(ant, "run -p db -- sh -c 'echo out; echo err >&2'"), 0);
    TEST_STRING(berth_out, "out\n");
    TEST_STRING(berth_err, "err\n");
}

static void command_that_cannot_be_run(void) {
    /* With a folder in PATH that cannot be read, the command might exist: 126. */
    static char path[128] = "PATH=/usr/bin:/bin", *const environment[] = {path, NULL};
    char script[96];
    const char *why;

    ant->environment = environment;
    TEST_INT(berth(ant, "run -p db -- /nonexistent/command"), 127);
    TEST_INT(berth(ant, "run -p db -- no-such-command-in-path"), 127);
    why = host_await(ant, "exited", "job=no-such-command-in-path result=not-started");
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "was not started: its command or its interpreter does not exist"));
    TEST_STRING(berth_err, "berth: no-such-command-in-path: command not found\n");
    snprintf(path, sizeof(path), "PATH=/usr/bin:%s", ant->runtime);
    snprintf(script, sizeof(script), "%s/crlf-script", ant->runtime);
    CU_ASSERT_FATAL(file_write_atomic(script, "#!/bin/sh\r\n", 11, 0755) == 0);
    TEST_INT(berth(ant, "run -p db -- %s", script), 127);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "/crlf-script: its interpreter or loader does not exist"));
    TEST_INT(berth(ant, "run -p db -- crlf-script"), 127);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "berth: crlf-script: its interpreter or loader does not exist"));
    TEST_INT(berth(ant, "run -p db -- /etc/passwd"), 126);
    why = host_await(ant, "exited", "job=passwd result=not-started");
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "was not started: its command cannot be executed"));
    TEST_INT(berth(ant, "run -p db -- /tmp"), 126);
    host_await_pool(ant, "db", "used", 0);
}

static void wrong_usage(void) {
    static const char *const words[] = {
        "run -- true", "run -p db", "run -p db --", "run -p db:0 -- true", "run -p db:x -- true", "run -p 'd b' -- true",
        "run -p 'd{b' -- true", "run -p 'd\"b' -- true", "run -p 'd\nb' -- true", "run -p db -p db -- true", "run -p db --wait -- true",
        "run -p db --wait 5 -- true", "run -p db --name 'a b' -- true", "run -p db --name 'm\xc3\xbc' -- true", "run -p db -E -1 -- true",
        "run -p db -E 256 -- true", "run -p db --nonsense -- true", "run -p db --on-lease-lost maybe -- true", "run -p db:3 -- true",
        "run -p net:2 -- true", "run -p db --stop-timeout 1h -- true", "nonsense", "limit", "limit db --for 5m",
        "limit db -1", "limit db many",
        "revoke", "grace", "start", "stop", "pause", "pools --nonsense", "limit db 1 --for soon",
    };

    for (size_t i = 0; i < ELEMENTSOF(words); i++)
        if (berth(ant, "%s", words[i]) != 64 || !*berth_err) {
            printf("berth %s: %s\n", words[i], berth_err);
            CU_FAIL("wrong usage is not 64 with a message");
        }
    TEST_INT(host_pool(ant, "db", "waiting"), 0);
}

static void unknown_names(void) {
    static const char *const words[] = {
        "run -p dbb -- true", "start napp", "stop nobody", "limit dbb 1", "pause dbb", "resume dbb", "pools dbb",
        "revoke 00000000000000000000000000000000", "stop 00000000000000000000000000000000",
    };

    for (size_t i = 0; i < ELEMENTSOF(words); i++)
        if (berth(ant, "%s", words[i]) != 65 || !*berth_err) {
            printf("berth %s: %s\n", words[i], berth_err);
            CU_FAIL("an unknown name is not 65 with a message");
        }
    TEST_INT(berth(ant, "run -p dbb -- true"), 65);
    CU_ASSERT(strstr(berth_err, "db") && strstr(berth_err, "net")); /* the known ones */
    TEST_INT(berth(ant, "start napp"), 65);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "nap"));
}

static void nothing_done(void) {
    static const char *const words[] = {"version", "jobs", "pools", "hosts", "help", "help run", "run --help", "--help",
                                        "jobs --json", "runs --json --all", "hosts --json", "pools db --json"};

    for (size_t i = 0; i < ELEMENTSOF(words); i++)
        if (berth(ant, "%s", words[i]) != 0 || !*berth_out || *berth_err) {
            printf("berth %s: %s\n", words[i], berth_err);
            CU_FAIL("not 0, or no result, or a message");
        }
    TEST_INT(berth(ant, "runs"), 0);
    TEST_INT(berth(ant, "runs --all"), 0);
    TEST_INT(berth(ant, "reload"), 0);
}

static void not_reachable(void) {
    static const char *const words[] = {"run -p db -- true", "run -n -p db -- true", "start nap", "stop nap", "jobs", "runs", "pools", "hosts",
                                        "limit db 1", "pause db", "resume db", "grace --end", "reload"};

    host_stop(ant);
    for (size_t i = 0; i < ELEMENTSOF(words); i++)
        TEST_INT(berth(ant, "%s", words[i]), 69);
}

/* Known from redisson/redisson#757 and redisson/redisson#5019. */
static void no_permit(void) {
    struct child *holder = berth_start(ant, "run -p db:2 -- sleep 60");
    char run[64];

    snprintf(run, sizeof(run), "%s", event_get(host_await(ant, "started", " "), "run"));
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    host_await(ant, "refused", " ");
    TEST_INT(berth(ant, "run -n -E 9 -p db -- true"), 9);
    TEST_INT(berth(ant, "run -n -E 0 -p db -- false"), 0);
    TEST_INT(berth(ant, "run --wait 100ms -p db -- true"), 75);
    host_await(ant, "withdrawn", "result=queue-timeout");
    TEST_INT(berth(ant, "run --wait 100ms -E 10 -p db -- true"), 10);
    TEST_INT(berth(ant, "run -n -p shut -- true"), 75);
    TEST_INT(berth(ant, "run --wait 0s -p shut -- true"), 75);
    TEST_INT(host_pool(ant, "db", "waiting"), 0);
    TEST_INT(berth(ant, "stop %s", run), 0);
    TEST_INT(berth_end(holder), 143); /* `berth stop` */
}

static void no_permit_in_grace_or_without_redis(void) {
    TEST_INT(redis_server_restart(&cluster.redis, false), 0);
    host_await(ant, "grace-begun", " ");
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    redis_server_kill(&cluster.redis);
    host_await(ant, "redis-lost", " ");
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    CU_ASSERT_PTR_EQUAL(strstr(berth_err, "berth: no permit: redis away: "), berth_err); /* not queue-timeout */
    TEST_INT(berth(ant, "run --wait 100ms -p db -- true"), 75);
    TEST_INT(berth(ant, "limit db 1"), 69);
}

static void time_limit(void) {
    TEST_INT(berth(ant, "run -p db --timeout 100ms -- sleep 60"), 124);
    host_await(ant, "exited", "result=timeout");
    TEST_INT(berth(ant, "run -p db --timeout 100ms --stop-timeout 100ms -- %s --ignore-term --for 60000", cluster.command), 124);
    TEST_INT(witness_count_alive(cluster.witness), 0);
}

/* Known from hashicorp/consul#4439. */
static void signals_while_waiting(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct child *holder = berth_start(ant, "run -p db:2 -- sleep 60");

    host_await(ant, "started", " ");
    for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
        struct child *c = berth_start(ant, "run -p db --name s%d -- true", signals[i]);

        host_await(ant, "queued", "job=s%d", signals[i]);
        child_kill(c, signals[i]);
        TEST_INT(berth_end(c), 128 + signals[i]);
        host_await(ant, "withdrawn", "job=s%d", signals[i]);
    }
    TEST_INT(host_pool(ant, "db", "waiting"), 0);
    child_kill(holder, SIGTERM); /* passed on */
    TEST_INT(berth_end(holder), 143);
}

static void signals_while_running(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1};

    for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
        struct child *c = berth_start(ant, "run -p db --name s%d -- %s --for 60000", signals[i], cluster.command);

        host_await(ant, "started", "job=s%d", signals[i]);
        witness_await_alive(cluster.witness, 1);
        child_kill(c, signals[i]);
        TEST_INT(berth_end(c), 128 + signals[i]);
    }
}

static void config_errors(void) {
    host_set_config(ant, "pool \"db\" { limit = 1 }\njob \"j\" { command = {\"/bin/true\"} on = any }\n");
    TEST_INT(berth(ant, "check-config %s", ant->config), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, ": 1 pool, 1 job, ok\n")); /* the pool of the job is not counted */
    host_set_config(ant, "pool \"db\" { limit = many }\n");
    TEST_INT(berth(ant, "check-config %s", ant->config), 78);
    TEST_INT(berth(ant, "reload"), 78);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "limit"));
    host_await(ant, "config-refused", " ");
    TEST_INT(berth(ant, "run -p net -- true"), 0); /* the old config stays in force */
}

static int as_nobody(const char *verb, const char *argument) {
    char program[300], socket[128];
    char *argv[] = {program, (char *) verb, (char *) argument, NULL};
    char *environment[] = {socket, NULL};

    snprintf(program, sizeof(program), "%s/berth", cluster.build);
    snprintf(socket, sizeof(socket), "BERTH_SOCKET=%s", ant->socket);
    return berth_end(child_start_as_nobody(argv, environment));
}

static void not_allowed(void) {
    TEST_NEEDS_ROOT();
    TEST_INT(as_nobody("pause", "db"), 77); /* by the mode of the socket */
    TEST_INT(chmod(ant->socket, 0666), 0);
    TEST_INT(as_nobody("pause", "db"), 77);
    TEST_INT(as_nobody("pools", NULL), 0); /* everybody may look */
}

static int run_an_hour_ahead(const char *option, const char *value, const char *err) {
    char program[128];
    char *const argv[] = {(char *) "unshare", (char *) "--time", (char *) "--boottime", (char *) "3600", program, (char *) "--socket",
                          ant->socket, (char *) "run", (char *) "-p", (char *) "db", (char *) option, (char *) value, (char *) "--",
                          (char *) "true", NULL};
    struct child *c;

    (void) snprintf(program, sizeof(program), "%s/berth", cluster.build);
    c = child_start(argv, NULL);
    CU_ASSERT(child_await(c, HOST_PATIENCE));
    TEST_STRING(child_text(c, 2), err);
    return berth_end(c);
}

/* In another time namespace CLOCK_BOOTTIME differs, so a deadline of berthd means another instant there. */
static void another_clock(void) {
    TEST_NEEDS_ROOT();
    TEST_INT(run_an_hour_ahead("--on-lease-lost", "stop",
                               "berth: berthd is in another time namespace, so its deadlines are wrong here: run berth outside of this "
                               "one, or give --on-lease-lost continue\n"), 64);
    TEST_INT(host_pool(ant, "db", "used"), 0);
    TEST_INT(run_an_hour_ahead("--on-lease-lost", "continue", ""), 0);
}

static CU_TestInfo tests[] = {
    {"the command's own", the_commands_own},
    {"126, 127: command that cannot be run", command_that_cannot_be_run},
    {"64: wrong usage", wrong_usage},
    {"64: another clock", another_clock},
    {"65: unknown names", unknown_names},
    {"0: only looked", nothing_done},
    {"69: not reachable", not_reachable},
    {"75: no permit", no_permit},
    {"75: no permit in grace or without Redis", no_permit_in_grace_or_without_redis},
    {"124: time limit", time_limit},
    {"128+N: signals while waiting", signals_while_waiting},
    {"128+N: signals while running", signals_while_running},
    {"78: config errors", config_errors},
    {"77: not allowed", not_allowed},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "exit status", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
