/* SPDX-License-Identifier: MIT */

/* Another user attacks control.sock: berthd serves other clients, keeps its leases, and its memory and
 * processor time are bounded. A command also writes into its hold without end. */

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/socket.h"
#include "tests/harness/attack.h"
#include "tests/harness/host/host.h"
#include "tests/harness/memory.h"
#include "tests/harness/run-delay.h"
#include "tests/harness/stall.h"
#include "tests/harness/test.h"

#define NOBODY 65534
#define STREAMS_MAX 64
#define CALLS 5
/* ANSWER_MAX bounds the average time of root's CALLS. MEMORY_MAX (MiB) bounds berthd with the buffers of all
 * users, which are 64 MiB at most by default. Under ASan freed memory stays in quarantine, and programs need
 * three times the processor time. */
#if defined(__SANITIZE_ADDRESS__)
#define ANSWER_MAX (5 * USEC_PER_SEC)
#define MEMORY_MAX 1024
#else
#define ANSWER_MAX USEC_PER_SEC
#define MEMORY_MAX 150
#endif

static struct host *ant;
static struct attack *attacks[2];

static void up(void) {
    if (geteuid() != 0)
        return;
    stall_start();
    cluster_up_patient(); /* on a busy machine a frozen process resumes after 20 s or more */
    ant = host_up("ant", "pool \"db\" { limit = 4 }\njob \"short\" { %s  timeout = \"2s\" }\n", witness_at_gate("short", 0));
    TEST_INT(chmod(ant->runtime, 0755), 0);
    TEST_INT(chmod(cluster.folder, 0755), 0);
    TEST_INT(chmod(ant->socket, 0666), 0);
}

static void down(void) {
    for (size_t i = 0; i < ELEMENTSOF(attacks); i++)
        attacks[i] = attack_end(attacks[i]);
    if (geteuid() == 0)
        cluster_down();
}

static void begin(enum attack_kind kind, unsigned n) {
    attacks[0] = attack_start(kind, ant->socket, SOCK_STREAM, NOBODY);
    CU_ASSERT(attack_await(attacks[0], n));
}

/* On a busy machine berthd waits for a processor, and a machine may stand still: that time does not count. */
static void check_root_is_served(void) {
    usec_t begun = clock_boottime(), before = run_delay(ant->berthd->pid), taken;

    for (int i = 0; i < CALLS; i++)
        if (berth(ant, "runs") != 0)
            TEST_STRING(berth_err, "");
    taken = usec_sub(clock_boottime() - begun, run_delay(ant->berthd->pid) - before);
    taken = usec_sub(taken, stall_between(begun, USEC_INFINITY));
    if (taken >= CALLS * ANSWER_MAX)
        TEST_INT(taken, CALLS * ANSWER_MAX);
}

static unsigned descriptors(void) {
    char path[64];
    unsigned n = 0;
    DIR *d;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int) ant->berthd->pid);
    d = opendir(path);
    CU_ASSERT_FATAL(d != NULL);
    while (readdir(d))
        n++;
    (void) closedir(d);
    return n;
}

static void check_memory(void) {
    unsigned long mib = memory_kib(ant->berthd->pid, "VmHWM") / 1024; /* the peak */

    CU_ASSERT(mib > 0);
    if (mib > MEMORY_MAX)
        TEST_INT(mib, MEMORY_MAX);
}

static void check_leases(void) {
    TEST_INT(host_count(ant, "lease-lost", " "), 0);
    TEST_INT(host_count(ant, "fenced", " "), 0);
    TEST_INT(host_count(ant, "session-lost", " "), 0);
}

/* Two users attack: berthd refuses the first one after its first attempt, and that user continues. */
static void freeze(void) {
    struct child *holder;
    const char *line;
    usec_t begun;

    TEST_NEEDS_ROOT();
    holder = berth_at_gate(ant, "-p db", "holder", "started");
    attacks[1] = attack_start(ATTACK_FREEZE, ant->socket, SOCK_STREAM, NOBODY - 1);
    begin(ATTACK_FREEZE, 50);
    begun = clock_boottime();
    TEST_INT(berth(ant, "start short"), 0);
    while (clock_boottime() < begun + 2 * CLUSTER_LEASE_USEC)
        check_root_is_served();
    line = host_await(ant, "exited", "job=short result=timeout");
    CU_ASSERT(event_get_u64(line, "run_ms") >= 2000 && event_get_u64(line, "run_ms") < 6000);
    TEST_INT(host_count(ant, "exited", "job=holder"), 0);
    check_leases();
    CU_ASSERT(attack_sent(attacks[0]) > 0 && attack_sent(attacks[1]) > 0);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
}

/* berthd also ends in time during the attack. */
static void freeze_and_stop(void) {
    usec_t begun;

    TEST_NEEDS_ROOT();
    begin(ATTACK_FREEZE, 50);
    begun = clock_boottime();
    host_stop(ant);
    CU_ASSERT(clock_boottime() - begun < 5 * USEC_PER_SEC);
    CU_ASSERT(attack_sent(attacks[0]) > 0);
}

static void silent(void) {
    TEST_NEEDS_ROOT();
    begin(ATTACK_SILENT, 4200);
    check_root_is_served();
    CU_ASSERT(descriptors() < 1024 + 100); /* user-connections, plus berthd's own */
    check_leases();
    check_memory();
}

static void halves(void) {
    TEST_NEEDS_ROOT();
    begin(ATTACK_HALVES, 4000);
    check_root_is_served();
    check_leases();
    check_memory();
}

static void slow_readers(void) {
    TEST_NEEDS_ROOT();
    begin(ATTACK_SLOW, 50000);
    check_root_is_served();
    check_leases();
    check_memory();
}

/* Returns the processor time of berthd in µs. */
static usec_t used(void) {
    char path[64], text[1024];
    unsigned long user = 0, system = 0;
    _cleanup_fclose_ FILE *f = NULL;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int) ant->berthd->pid);
    f = fopen(path, "re");
    CU_ASSERT_FATAL(f && fgets(text, sizeof(text), f));
    TEST_INT(sscanf(strrchr(text, ')'), ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system), 2);
    return (user + system) * USEC_PER_SEC / (usec_t) sysconf(_SC_CLK_TCK);
}

static void hold_writer(void) {
    struct child *writer;
    usec_t before, begun;

    TEST_NEEDS_ROOT();
    writer = berth_start(ant, "run -p db --name writer -- bash -c 'while :; do echo; done >&$BERTH_HOLD 2>/dev/null'");
    host_await(ant, "started", "job=writer");
    before = used();
    begun = clock_boottime();
    child_pass(begun + 2 * USEC_PER_SEC);
    CU_ASSERT(used() - before < (clock_boottime() - begun) / 20); /* a twentieth of a processor */
    child_kill(writer, SIGTERM);
    TEST_INT(berth_end(writer), 143);
    host_await(ant, "released", "job=writer");
}

/* Returns a stream of this method, or -1 if berthd allows no further one. */
static int open_stream(const char *method) {
    char call[96], reply[4096];
    int fd = socket_connect(ant->socket, SOCK_STREAM), n = snprintf(call, sizeof(call), "{\"method\":\"io.berth.%s\",\"more\":true}", method);
    ssize_t size;

    CU_ASSERT_FATAL(fd >= 0 && fcntl(fd, F_SETFL, 0) == 0); /* recv() waits */
    TEST_INT(send(fd, call, (size_t) n + 1, MSG_NOSIGNAL), n + 1);
    size = recv(fd, reply, sizeof(reply) - 1, 0);
    CU_ASSERT_FATAL(size > 0);
    reply[size] = '\0';
    return strstr(reply, "io.berth.TooMany") ? close_fd(fd) : fd;
}

/* Opens as many streams as berthd allows to this user. Returns their number. */
static unsigned open_streams(uid_t uid, const char *method, int fds[static STREAMS_MAX]) {
    unsigned n = 0;

    TEST_INT(seteuid(uid), 0);
    while (n < STREAMS_MAX && (fds[n] = open_stream(method)) >= 0)
        n++;
    TEST_INT(seteuid(0), 0);
    return n;
}

/* Four users who may only look take all streams that they can have. Root can still watch. */
static void streams(void) {
    static const char *const methods[] = {"Events", "Look"};
    int fds[4][STREAMS_MAX];
    unsigned n[4], sum;

    TEST_NEEDS_ROOT();
    for (size_t k = 0; k < ELEMENTSOF(methods); k++) {
        sum = 0;
        for (size_t i = 0; i < ELEMENTSOF(n); i++)
            sum += n[i] = open_streams(NOBODY - (uid_t) i, methods[k], fds[i]);
        TEST_INT(n[0], 16);
        TEST_INT(sum, 56);
        TEST_INT(berth(ant, "watch --cluster --timeout 1s"), 75);
        for (size_t i = 0; i < ELEMENTSOF(n); i++)
            while (n[i] > 0)
                close_fd(fds[i][--n[i]]);
    }
}

static CU_TestInfo tests[] = {
    {"freeze", freeze}, {"freeze and stop", freeze_and_stop}, {"silent", silent}, {"halves", halves}, {"slow readers", slow_readers},
    {"hold writer", hold_writer}, {"streams", streams}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "attacks on control", .pSetUpFunc = up, .pTearDownFunc = down, .pTests = tests});
