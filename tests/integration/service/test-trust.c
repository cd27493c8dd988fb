/* SPDX-License-Identifier: MIT */

/* Mistakes of other systems: a socket that is open to the whole network namespace, trust in a pid file, a
 * control interface on which callers name the command. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/protocol.h"
#include "base/socket.h"
#include "runner/guard-file.h"
#include "tests/harness/host/host.h"
#include "tests/harness/runner/runner.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

static struct host *ant;

/* --- CVE-2020-15257: abstract sockets --- */

/* Returns whether the socket of this inode has an abstract name. */
static bool is_abstract(unsigned long inode) {
    _cleanup_fclose_ FILE *f = fopen("/proc/net/unix", "re");
    char line[512], name[256];
    unsigned long number;

    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%*s %*s %*s %*s %*s %*s %lu %255s", &number, name) == 2 && number == inode && name[0] == '@')
            return true;
    return false;
}

/* Adds the sockets of a process to *all, and those with abstract names to *abstract. */
static void count_sockets(const char *pid, unsigned *all, unsigned *abstract) {
    char path[64], target[64];
    DIR *list;

    snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
    list = opendir(path);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        ssize_t n = readlinkat(dirfd(list), entry->d_name, target, sizeof(target) - 1);

        if (n <= 8 || strncmp(target, "socket:[", 8) != 0)
            continue;
        target[n] = '\0';
        ++*all;
        *abstract += is_abstract(strtoul(target + 8, NULL, 10));
    }
    if (list)
        (void) closedir(list);
}

static bool descends_from_us(pid_t pid) {
    while (pid > 1 && pid != getpid()) {
        _cleanup_fclose_ FILE *f = NULL;
        char path[64], line[512], *after;

        snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        f = fopen(path, "re");
        if (!f || !fgets(line, sizeof(line), f) || !(after = strrchr(line, ')')) || sscanf(after, ") %*c %d", &pid) != 1)
            return false;
    }
    return pid == getpid();
}

static void sockets_are_files(void) {
    unsigned all = 0, abstract = 0, processes = 0;
    struct child *run;
    DIR *proc;

    cluster_up_patient();
    ant = host_up("ant", "pool \"db\" { limit = 2 }\njob \"nap\" { %s pools = {\"db\"} }\n", witness_at_gate("nap", 0));
    TEST_INT(berth(ant, "start nap"), 0);
    run = berth_start(ant, "run -p db -- %s", cluster.at_gate);
    witness_await_alive(cluster.witness, 2);
    proc = opendir("/proc");
    for (struct dirent *entry; proc && (entry = readdir(proc));) /* berthd, the runner, a guard, `berth run`, Redis, this program */
        if (strtol(entry->d_name, NULL, 10) > 0 && descends_from_us((pid_t) strtol(entry->d_name, NULL, 10))) {
            processes++;
            count_sockets(entry->d_name, &all, &abstract);
        }
    if (proc)
        (void) closedir(proc);
    CU_ASSERT(processes >= 7);
    CU_ASSERT(all >= 8);
    TEST_INT(abstract, 0);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(run), 0);
    host_await(ant, "exited", "job=nap");
    cluster_down();
}

/* The test above sees an abstract socket. */
static void abstract_socket_is_seen(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    unsigned all = 0, abstract = 0;
    char self[16];

    snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "berth-test-%d", (int) getpid());
    TEST_FATAL(bind(fd, (struct sockaddr *) &address, sizeof(address)) == 0 && listen(fd, 1) == 0, "no abstract socket");
    snprintf(self, sizeof(self), "%d", (int) getpid());
    count_sockets(self, &all, &abstract);
    TEST_INT(abstract, 1);
}

/* --- CVE-2018-16888: trust in a pid file --- */

/* A guard file names a process that was never the guard. No process holds the lock of the file, so the
 * runner does not use the pid. */
static void forged_pid(void) {
    struct guard_file record = {.job = "a", .namespace = "test", .host = "ant", .hash = "0123456789abcdef", .deadline = USEC_INFINITY};
    struct test_runner t;
    struct message m;
    char directory[128];
    pid_t victim = fork();
    int fd;

    if (victim == 0) {
        (void) pause();
        _exit(0);
    }
    test_runner_init(&t, "job \"a\" { command = {\"/bin/true\"} }", getuid());
    test_runner_end(&t, SIGKILL);
    snprintf(record.run, sizeof(record.run), "%s", test_runner_id('1'));
    snprintf(directory, sizeof(directory), "%s/run/" PROTOCOL_RUNS, t.directory);
    fd = guard_file_create(&record, directory);
    TEST_FATAL(fd >= 0 && guard_file_add_guard(fd, victim) == 0, "no record");
    (void) close(fd);
    test_runner_start(&t);
    t.fd = test_runner_connect(&t);
    test_runner_hello(&t, t.fd);
    test_await(t.fd, &m, PROTOCOL_REPORT); /* the lock shows that there is no guard */
    TEST_FIELD(&m, "run", test_runner_id('1'));
    TEST_FIELD(&m, "lost", "1");
    TEST_INT(waitpid(victim, NULL, WNOHANG), 0); /* the victim lives */
    test_say(t.fd, PROTOCOL_DONE, "run", test_runner_id('1'));
    (void) kill(victim, SIGKILL);
    (void) waitpid(victim, NULL, 0);
    test_runner_done(&t);
}

/* --- CVE-2017-11610: a control interface runs any command that a caller names --- */

static void ask(const char *text, char *answer, size_t size) {
    _cleanup_close_ int fd = socket_connect(ant->socket, SOCK_STREAM);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t n = 0;
    ssize_t got;

    TEST_FATAL(fd >= 0 && write(fd, text, strlen(text) + 1) == (ssize_t) strlen(text) + 1, "no control socket");
    while (n + 1 < size && (n == 0 || answer[n - 1] != '\0') && poll(&p, 1, 10000) > 0 && (got = read(fd, answer + n, size - 1 - n)) > 0)
        n += (size_t) got;
    answer[n] = '\0';
}

static bool is_refused(const char *answer) {
    bool refused = strstr(answer, "org.varlink.service.InvalidParameter") || strstr(answer, "org.varlink.service.MethodNotFound");

    if (!refused)
        printf("answered: %s\n", answer);
    return refused;
}

/* berthd starts only jobs of the config, also for root, and no call changes a job. */
static void nothing_else_is_run(void) {
    static const char *const extras[] = {
        "command", "argv", "exec", "environment", "user", "output", "directory", "umask",
    };
    static const char *const methods[] = {"Start", "Hold", "Started", "Stop", "Run", "Exec", "Eval"};
    char text[512], answer[4096], mark[128];

    cluster_up_patient();
    snprintf(mark, sizeof(mark), "%s/mark", cluster.folder);
    ant = host_up("ant", "pool \"db\" { limit = 1 }\njob \"nap\" { command = {\"/bin/true\"} output = \"null\" }\n");
    for (size_t i = 0; i < ELEMENTSOF(methods); i++)
        for (size_t k = 0; k < ELEMENTSOF(extras); k++) {
            snprintf(text, sizeof(text),
                     "{\"method\": \"io.berth.%s\", \"parameters\": {\"job\": \"nap\", \"%s\": [\"/usr/bin/touch\", \"%s\"]}%s}",
                     methods[i], extras[k], mark, strcmp(methods[i], "Hold") == 0 ? ", \"more\": true" : "");
            ask(text, answer, sizeof(answer));
            CU_ASSERT(is_refused(answer));
        }
    ask("{\"method\": \"io.berth.Start\", \"parameters\": {\"job\": \"/usr/bin/touch\"}}", answer, sizeof(answer));
    CU_ASSERT(strstr(answer, "\"error\"") != NULL);
    TEST_INT(access(mark, F_OK), -1);
    TEST_INT(host_count(ant, "started", " "), 0);
    ask("{\"method\": \"io.berth.Start\", \"parameters\": {\"job\": \"nap\"}}", answer, sizeof(answer));
    CU_ASSERT(strstr(answer, "\"error\"") == NULL);
    host_await(ant, "exited", "job=nap result=success");
    cluster_down();
}

static CU_TestInfo tests[] = {
    {"sockets are files", sockets_are_files},
    {"an abstract socket would be seen", abstract_socket_is_seen},
    {"a forged pid", forged_pid},
    {"nothing else is run", nothing_else_is_run},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "trust", .pTests = tests});
