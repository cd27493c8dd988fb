/* SPDX-License-Identifier: MIT */

/* io.berth.Ended, called by hand: when berthd replies, and what berthd accepts without an earlier report. */

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/client.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

static struct host *ant;
static struct client *client;
static char run[64];
static int hold;

/* Makes a client that has its permits and has reported no command. */
static void up(void) {
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;

    cluster_up_without_redis();
    ant = host_add_alone("ant", "pool \"own\" { limit = 1 scope = \"host\" }\n");
    host_start(ant);
    client_set_socket(ant->socket);
    client = NULL;
    hold = -1;
    TEST_FATAL(client_connect(&client) == 0, "no connection");
    TEST_INT(client_send(client, "io.berth.Hold", json_pack("{s:[s], s:s}", "pools", "own", "name", "raw"), CLIENT_MORE), 0);
    while (hold < 0) {
        client_reply_done(&reply);
        TEST_FATAL(client_receive(client, &reply) == 0 && !reply.error, "no grant");
        hold = steal_fd(&reply.fd);
    }
    snprintf(run, sizeof(run), "%s", json_string_value(json_object_get(reply.params, "run")));
}

static void down(void) {
    client = client_free(client);
    hold = close_fd(hold);
    cluster_down();
    client_set_socket(NULL);
}

/* The report is answered at once, though the hold is open: a process of the command may still have it. */
static void answered_before_the_hold_is_over(void) {
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;

    TEST_INT(client_send(client, "io.berth.Ended", json_pack("{s:s, s:i, s:i}", "run", run, "code", 3, "pid", 4711), CLIENT_ONEWAY), 0);
    TEST_FATAL(client_receive(client, &reply) == 0, "no answer");
    TEST_STRING(json_string_value(json_object_get(reply.params, "state")), "over");
    TEST_INT(reply.continues, false);
    host_await(ant, "exited", "job=raw result=failure exit_code=3");
    TEST_INT(host_pool(ant, "own", "used"), 1);
    client = client_free(client);
    TEST_INT(berth(ant, "jobs"), 0);
    TEST_INT(host_count(ant, "released", " "), 0);
    hold = close_fd(hold);
    host_await(ant, "released", "job=raw");
    TEST_INT(host_count(ant, "exited", " "), 1);
}

/* The earlier berthd may have received the start without recording it. */
static void reported_to_the_next_berthd(void) {
    usec_t started = clock_boottime();
    const char *line;

    client = client_free(client);
    host_kill(ant);
    host_start(ant);
    TEST_INT(client_call("io.berth.Ended", json_pack("{s:s, s:i, s:i, s:I, s:I}", "run", run, "code", 4, "pid", 4711, "started_usec",
                                                    (json_int_t) started, "ended_usec", (json_int_t) (started + 5000)), NULL), 0);
    host_await(ant, "started", "job=raw");
    line = host_await(ant, "exited", "job=raw result=failure exit_code=4");
    CU_ASSERT(event_get_u64(line, "run_ms") == 5 || event_get_u64(line, "run_ms") == 4); /* not until now */
    /* Reported again: the reply may have been lost. */
    TEST_INT(client_call("io.berth.Ended", json_pack("{s:s, s:i}", "run", run, "code", 5), NULL), 0);
    hold = close_fd(hold);
    host_await(ant, "released", "job=raw");
    TEST_INT(host_count(ant, "exited", " "), 1);
    TEST_INT(client_call("io.berth.Ended", json_pack("{s:s, s:i}", "run", run, "code", 4), NULL), 0); /* also of a run that is over */
}

/* While its own client is there, no other client may report its end; nor may a client of a hold that is over. */
static void reported_by_another(void) {
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
    pid_t pid = fork();
    int status;

    if (pid == 0 && freopen("/dev/null", "w", stderr))
        _exit(client_call("io.berth.Ended", json_pack("{s:s, s:i}", "run", run, "code", 0), NULL));
    TEST_INT(waitpid(pid, &status, 0), pid);
    TEST_INT(WEXITSTATUS(status), 65);
    client = client_free(client);
    host_kill(ant);
    hold = close_fd(hold);
    host_start(ant);
    TEST_INT(client_connect(&client), 0);
    TEST_INT(client_send(client, "io.berth.Hold", json_pack("{s:[s], s:s, s:s}", "pools", "own", "name", "raw", "run", run), CLIENT_MORE),
             0);
    TEST_FATAL(client_receive(client, &reply) == 0, "no answer");
    TEST_STRING(reply.error, "io.berth.NoSuchRun");
    host_await(ant, "exited", "job=raw result=not-started");
    host_await(ant, "released", "job=raw");
}

static CU_TestInfo tests[] = {
    {"answered before the hold is over", answered_before_the_hold_is_over},
    {"reported to the next berthd", reported_to_the_next_berthd},
    {"reported by another", reported_by_another},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "ended", .pSetUpFunc = up, .pTearDownFunc = down, .pTests = tests});
