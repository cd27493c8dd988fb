/* SPDX-License-Identifier: MIT */
/* Notifications of berthd, as its service manager receives them (sd_notify(3)). */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define CONFIG                                                                                                        \
    "pool \"here\" { limit = 1 scope = \"host\" }\n"                                                                  \
    "job \"slow\" { command = {\"/bin/sleep\", \"1000\"} pools = {\"here\"} overlap = \"allow\" stop-timeout = \"1s\" }\n"

static struct host *ant;
static int manager = -1;
static char address[64], variable[96];
static char *const environment[] = {variable, NULL};

static void up(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};

    cluster_up_patient();
    snprintf(address, sizeof(address), "%s/notify", cluster.folder);
    snprintf(variable, sizeof(variable), "NOTIFY_SOCKET=%s", address);
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", address);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_FATAL(manager >= 0 && bind(manager, (struct sockaddr *) &name, sizeof(name)) == 0);
    ant = host_add_alone("ant", CONFIG);
    ant->environment = environment;
    host_start(ant);
}

static void down(void) {
    cluster_down();
    manager = close_fd(manager);
}

/* The next notification with this text in it. */
static const char *await(const char *wanted) {
    static char text[512];
    usec_t until = usec_add(clock_boottime(), HOST_PATIENCE);

    do {
        struct pollfd fd = {.fd = manager, .events = POLLIN};
        ssize_t n;

        CU_ASSERT_FATAL(poll(&fd, 1, (int) (usec_sub(until, clock_boottime()) / USEC_PER_MSEC)) == 1);
        n = recv(manager, text, sizeof(text) - 1, 0);
        CU_ASSERT_FATAL(n >= 0);
        text[n] = '\0';
    } while (!strstr(text, wanted));
    return text;
}

static void test_life(void) {
    usec_t before, sent = 0;

    TEST_STRING(await("READY"), "READY=1");
    TEST_STRING(await("STATUS=0"), "STATUS=0 running, 0 waiting");
    TEST_INT(berth(ant, "start slow slow"), 0);
    TEST_STRING(await("STATUS=1 running, 1"), "STATUS=1 running, 1 waiting");

    before = clock_monotonic();
    TEST_INT(berth(ant, "reload"), 0);
    TEST_INT(sscanf(await("RELOADING"), "RELOADING=1\nMONOTONIC_USEC=%" SCNu64, &sent), 1);
    CU_ASSERT(before <= sent && sent <= clock_monotonic());
    TEST_STRING(await("READY"), "READY=1");
    TEST_INT(berth(ant, "drain"), 0);
    TEST_STRING(await("STATUS"), "STATUS=Drained; 1 running, 0 waiting");

    /* A stop, as its ExecStop announces it: the longest stop timeout, and 15 s. */
    host_signal(ant, SIGUSR1);
    host_stop(ant);
    TEST_STRING(await("STOPPING"), "STOPPING=1\nEXTEND_TIMEOUT_USEC=16000000");
}

/* A config that is refused is no reload that goes on for ever. */
static void test_refused_reload(void) {
    await("READY");
    host_set_config(ant, "pool \"here\" { limt = 1 }\n");
    TEST_INT(berth(ant, "reload"), 78);
    await("RELOADING");
    TEST_STRING(await("READY"), "READY=1");
}

/* Whether one with this text has come; all that has come is read. */
static bool has_come(const char *wanted) {
    char text[512];
    bool found = false;
    ssize_t n;

    while ((n = recv(manager, text, sizeof(text) - 1, MSG_DONTWAIT)) >= 0) {
        text[n] = '\0';
        found |= strstr(text, wanted) != NULL;
    }
    return found;
}

/* A reload of a berthd that does not know yet what runs makes it no readier than it is. */
static void test_reload_while_recovering(void) {
    usec_t until = usec_add(clock_boottime(), HOST_PATIENCE);
    int pid = 0, status;
    const char *line;
    pid_t guard;

    TEST_INT(berth(ant, "start slow"), 0);
    line = strstr(host_await(ant, "started", "job=slow"), "process ");
    CU_ASSERT_FATAL(line && sscanf(line, "process %d", &pid) == 1);
    guard = child_parent(pid);
    CU_ASSERT_FATAL(guard > 1 && kill(guard, SIGSTOP) == 0);
    host_kill(ant);
    (void) has_come("READY");
    host_launch(ant);
    do
        status = berth(ant, "reload");
    while (status == 69 && clock_boottime() < until);
    TEST_INT(status, 0);
    CU_ASSERT(!has_come("READY"));
    TEST_STRING(await("STATUS"), "STATUS=Recovering: waiting for berth-runner and guards; 0 running, 0 waiting");
    TEST_INT(host_count(ant, "ready", " "), 0);
    TEST_INT(kill(guard, SIGCONT), 0);
    TEST_STRING(await("READY"), "READY=1");
    TEST_INT(berth(ant, "stop slow"), 0);
    host_await(ant, "exited", "job=slow");
}

static CU_TestInfo tests[] = {
    {"life", test_life},
    {"refused-reload", test_refused_reload},
    {"a reload while recovering", test_reload_while_recovering},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "notify", .pSetUpFunc = up, .pTearDownFunc = down, .pTests = tests});
