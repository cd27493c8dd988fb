/* SPDX-License-Identifier: MIT */
#include "tests/harness/host/net.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/harness/child.h"
#include "tests/harness/test.h"

#define PATIENCE (10 * USEC_PER_SEC)

static char paths[NET_NODES][48];

static int isolate(void) {
    return unshare(CLONE_NEWNET | CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? -errno : 0;
}

/* Asks once, in a child that may lose its namespaces. */
const char *net_lacks(void) {
    static const char *answer;
    static bool asked;
    int status = 0;
    pid_t pid;

    if (asked)
        return answer;
    asked = true;
    if (geteuid() != 0)
        return answer = "needs root";
    if (system("PATH=$PATH:/usr/sbin:/sbin; command -v ip >/dev/null && command -v nft >/dev/null") != 0)
        return answer = "needs ip (iproute2) and nft (nftables)";
    pid = fork();
    if (pid == 0)
        _exit(isolate() < 0);
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
        return answer = "no network namespace can be made";
    return NULL;
}

const char *net_path(size_t node) {
    return paths[node];
}

static bool run(const char *path, char *line) {
    char command[2048];
    char *argv[] = {(char *) "sh", (char *) "-c", command, NULL};
    struct child *c;
    bool ok;

    snprintf(command, sizeof(command), "PATH=$PATH:/usr/sbin:/sbin; %s", line);
    if (net_enter(path) < 0)
        return false;
    c = child_start(argv, NULL);
    net_leave();
    ok = c && child_await(c, PATIENCE) && c->exit_code == 0;
    if (!ok && c)
        printf("%s: status %d: %s%s\n", line, c->exit_code, child_text(c, 1), child_text(c, 2));
    child_free(c);
    return ok;
}

bool net_run(size_t node, const char *line, ...) {
    char text[1900];
    va_list args;

    va_start(args, line);
    vsnprintf(text, sizeof(text), line, args);
    va_end(args);
    return run(paths[node], text);
}

/* A namespace lives as long as this descriptor or a process in it. */
static int add_namespace(size_t node) {
    int fd;

    if (unshare(CLONE_NEWNET) < 0)
        return -errno;
    fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    net_leave();
    if (fd < 0)
        return -errno;
    snprintf(paths[node], sizeof(paths[node]), "/proc/%d/fd/%d", (int) getpid(), fd);
    return 0;
}

static bool add_node(size_t node) {
    char line[400];

    if (add_namespace(node) < 0)
        return false;
    snprintf(line, sizeof(line), "ip link add v%zu type veth peer name eth0 netns %s && ip link set v%zu master bridge up", node,
             paths[node], node);
    return run(NULL, line) &&
           net_run(node, "ip address add " NET_ADDRESS "/24 dev eth0 && ip link set lo up && ip link set eth0 up", node + 1);
}

int net_up(void) {
    char line[] = "ip link set lo up && ip link add bridge type bridge forward_delay 0 && ip link set bridge up";
    int r = isolate();

    if (r < 0) {
        printf("no network namespace: %s\n", strerror(-r));
        return r;
    }
    if (net_stay() < 0 || !run(NULL, line))
        return -EIO;
    for (size_t i = 0; i < NET_NODES; i++)
        if (!add_node(i)) {
            printf("no node %zu\n", i);
            return -EIO;
        }
    return 0;
}

/* /proc/net/tcp has addresses as the machine's own numbers, ports as people write them, both in hexadecimal. */
size_t net_ports(size_t node, size_t other, unsigned port, unsigned *ret, size_t size) {
    _cleanup_fclose_ FILE *f = NULL;
    char line[512], text[32];
    struct in_addr address;
    size_t n = 0;

    snprintf(text, sizeof(text), NET_ADDRESS, other + 1);
    if (inet_pton(AF_INET, text, &address) != 1 || net_enter(paths[node]) < 0)
        return 0;
    f = fopen("/proc/thread-self/net/tcp", "re");
    net_leave();
    while (f && n < size && fgets(line, sizeof(line), f)) {
        unsigned local, remote, remote_port, state;

        if (sscanf(line, " %*u: %*x:%x %x:%x %x", &local, &remote, &remote_port, &state) == 4 && remote == address.s_addr &&
            remote_port == port && state == 1)
            ret[n++] = local;
    }
    return n;
}

bool net_up_or_skip(void) {
    static bool is_up;

    if (!test_is_root())
        return false;
    if (!is_up && net_lacks()) {
        test_skip(net_lacks());
        return false;
    }
    if (!is_up)
        CU_ASSERT_FATAL(net_up() == 0);
    return is_up = true;
}

void net_cut(size_t node, size_t other) {
    CU_ASSERT_FATAL(net_run(node,
                            "nft 'add table inet f; add chain inet f in { type filter hook input priority 0; }; "
                            "add chain inet f out { type filter hook output priority 0; }; add rule inet f in ip "
                            "saddr " NET_ADDRESS " drop; add rule inet f out ip daddr " NET_ADDRESS " drop'",
                            other + 1, other + 1));
}

void net_heal(size_t node) {
    CU_ASSERT(net_run(node, "nft 'add table inet f; delete table inet f'"));
}
