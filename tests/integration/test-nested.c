/* SPDX-License-Identifier: MIT */

/* `berth run` outside the tree of the run around it: with that run's hold handed over it goes ahead under its permits, and keeps to
 * its deadline; without, or with anything else, it is an ordinary claim. */

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/socket.h"
#include "tests/harness/host.h"
#include "tests/harness/test.h"
#include "tests/harness/witness.h"

#define POOLS "pool \"db\" { limit = 1 }\npool \"disk\" { limit = 1 }\n"

static struct host *ant;
static struct child *outer;
static char run[64];

static void begin(void) {
    ant = host_up("ant", POOLS);
    outer = berth_start(ant, "run -p db --name outer -- %s --id outer --exit 3", cluster.at_gate);
    snprintf(run, sizeof(run), "%s", event_get(host_await(ant, "started", "job=outer"), "run"));
}

static void up(void) {
    cluster_up_patient();
    begin();
}

static void up_for_a_lease(void) {
    cluster_up();
    begin();
}

static void end_outer(void) {
    gate_open(&cluster.gate);
    TEST_INT(berth_end(outer), 3);
    host_await(ant, "released", "job=outer");
}

/* A `berth run` beside the outer one, of which it knows the run; descriptor 9 is opened as `hold` says. */
static struct child *start_beside(const char *hold, const char *words) {
    char script[1024], named[80], socket[128];
    char *argv[] = {(char *) "sh", (char *) "-c", script, NULL};
    char *environment[] = {named, (char *) "BERTH_HOLD=9", socket, NULL};

    snprintf(named, sizeof(named), "BERTH_RUN=%s", run);
    snprintf(socket, sizeof(socket), "BERTH_SOCKET=%s", ant->socket);
    snprintf(script, sizeof(script), "exec %s && exec %s/berth run %s", hold, cluster.build, words);
    return child_start(argv, environment);
}

/* As whoever was given it: the very FIFO. `berth run` and its command have it as number 20. */
static const char *hold_of(const struct child *c) {
    static char text[64];

    snprintf(text, sizeof(text), "9>/proc/%d/fd/20", (int) c->pid);
    return text;
}

static void await_begun(struct child *c) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (!strstr(child_text(c, 1), "begun") && !c->ended && clock_boottime() < until)
        child_turn(until);
    TEST_FATAL(strstr(child_text(c, 1), "begun") != NULL, "it has not begun");
}

static unsigned count_fds(void) {
    char path[64];
    unsigned n = 0;
    DIR *d;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int) ant->berthd->pid);
    d = opendir(path);
    TEST_FATAL(d != NULL, "no berthd");
    while (readdir(d))
        n++;
    (void) closedir(d);
    return n;
}

/* Clients that have gone are closed in a moment. A leak would be one for each; berthd itself may have been in the middle of something when
 * it was counted before, such as watching a command that it has just called started. */
static void await_fds(unsigned n) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (count_fds() > n + 5 && clock_boottime() < until)
        child_turn(clock_boottime() + USEC_PER_MSEC);
    CU_ASSERT(count_fds() <= n + 5);
}

static void handed_over(void) {
    unsigned before = count_fds();

    for (int i = 0; i < 20; i++) {
        TEST_INT(berth_end(start_beside(hold_of(outer), "-v -p db -- sh -c 'exit 4'")), 4);
        CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "berth: nested: "));
    }
    await_fds(before);
    TEST_INT(host_pool(ant, "db", "used"), 1);
    end_outer();
}

/* What a script needs to hand it over. */
static void environment(void) {
    char expected[160];

    TEST_INT(berth(ant, "run -p disk --name env -- sh -c 'readlink /proc/self/fd/$BERTH_HOLD'"), 0);
    snprintf(expected, sizeof(expected), "%s/holds/%s\n", ant->runtime, event_get(host_await(ant, "started", "job=env"), "run"));
    TEST_STRING(berth_out, expected);
    end_outer();
}

static void not_handed_over(void) {
    struct child *other;

    TEST_INT(berth_end(start_beside("9>&-", "-n -p db -- true")), 75); /* whoever knows the name alone */
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "busy"));
    TEST_INT(berth_end(start_beside("9>/dev/null", "-n -p db -- true")), 75);
    other = berth_start(ant, "run -p disk --name other -- %s --id other --for 60000", cluster.command);
    host_await(ant, "started", "job=other");
    witness_await_start(cluster.witness, "other");
    TEST_INT(berth_end(start_beside(hold_of(other), "-n -p db -- true")), 75); /* a hold, but not that one */
    child_kill(other, SIGTERM);
    TEST_INT(berth_end(other), 143);
    end_outer();
    TEST_INT(berth_end(start_beside("9>&-", "-n -p db -- true")), 0); /* the run is over: an ordinary claim */
}

static void more_than_it_holds(void) {
    TEST_INT(berth_end(start_beside(hold_of(outer), "-p disk -- true")), 64);
    TEST_INT(berth_end(start_beside(hold_of(outer), "-n -p disk -- true")), 0);
    TEST_INT(berth_end(start_beside(hold_of(outer), "--wait 5s -p db -p disk -- true")), 75);
    end_outer();
}

/* What is inside holds the permits, too; and it is stopped with the run, wherever it is. */
static void outlives_and_is_stopped(void) {
    struct child *inner = start_beside(hold_of(outer), "-p db -- sh -c 'echo begun; exec sleep 1000'");

    await_begun(inner);
    gate_open(&cluster.gate);
    TEST_INT(berth_end(outer), 3);
    host_await(ant, "exited", "job=outer result=failure exit_code=3");
    TEST_INT(berth(ant, "run -n -p db -- true"), 75);
    TEST_INT(host_count(ant, "released", "job=outer"), 0);
    TEST_INT(berth(ant, "stop %s", run), 0);
    TEST_INT(berth_end(inner), 143);
    host_await(ant, "released", "job=outer");
    TEST_INT(berth(ant, "run -n -p db -- true"), 0);
}

/* Nobody else would end it before the permits are somebody else's. */
static void lease_lost(void) {
    struct child *inner =
        start_beside(hold_of(outer), "-p db --on-lease-lost continue -- sh -c 'trap \"\" TERM; echo begun; while :; do read x; done'");
    usec_t begin;

    await_begun(inner);
    begin = clock_boottime();
    redis_server_kill(&cluster.redis);
    TEST_INT(berth_end(inner), 76);
    CU_ASSERT(clock_boottime() - begin < 2 * CLUSTER_LEASE_USEC); /* a busy machine may show it late; nobody else would end it ever */
    TEST_INT(berth_end(outer), 76);
    host_await(ant, "exited", "job=outer result=lease-lost");
}

/* And deadlines reach it, also from the next berthd. */
static void berthd_restarts(void) {
    struct child *inner = start_beside(hold_of(outer), "-v -p db -- sh -c 'echo begun; exec sleep 1000'");
    usec_t begin;

    await_begun(inner);
    host_kill(ant);
    host_start(ant);
    host_await(ant, "redis-connected", " ");
    begin = clock_boottime();
    while (clock_boottime() < begin + CLUSTER_LEASE_USEC) /* longer than what the one before had granted */
        child_turn(begin + CLUSTER_LEASE_USEC);
    CU_ASSERT(!inner->ended);
    CU_ASSERT(!outer->ended);
    TEST_INT(berth(ant, "stop %s", run), 0);
    TEST_INT(berth_end(inner), 143);
    TEST_INT(berth_end(outer), 143);
    host_await(ant, "released", "job=outer");
}

/* Ten descriptors with one call, again and again. */
static void flood(void) {
    static const char call[] = "{\"method\":\"io.berth.Version\"}";
    unsigned before = count_fds();

    for (int i = 0; i < 200; i++) {
        union {
            struct cmsghdr align;
            char space[CMSG_SPACE(10 * sizeof(int))];
        } control = {0};
        char copy[sizeof(call)];
        struct iovec iov = {memcpy(copy, call, sizeof(call)), sizeof(call)};
        struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control.space)};
        struct cmsghdr *h = CMSG_FIRSTHDR(&message);
        _cleanup_close_ int fd = socket_connect(ant->socket, SOCK_STREAM);

        TEST_FATAL(fd >= 0, "no connection");
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(10 * sizeof(int));
        for (size_t k = 0; k < 10; k++)
            memcpy(CMSG_DATA(h) + k * sizeof(int), &fd, sizeof(int));
        TEST_INT(sendmsg(fd, &message, MSG_NOSIGNAL), (ssize_t) sizeof(call));
    }
    await_fds(before);
    end_outer();
}

static CU_TestInfo tests[] = {
    {"handed over", handed_over},
    {"environment", environment},
    {"not handed over", not_handed_over},
    {"more than it holds", more_than_it_holds},
    {"outlives and is stopped", outlives_and_is_stopped},
    {"berthd restarts", berthd_restarts},
    {"flood", flood},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo of_leases[] = {
    {"lease lost", lease_lost},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "nested", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests},
        {.pName = "nested, leases", .pSetUpFunc = up_for_a_lease, .pTearDownFunc = cluster_down, .pTests = of_leases},
        CU_SUITE_INFO_NULL,
    };

    return test_main(argc, argv, suites);
}
