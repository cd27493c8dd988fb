/* SPDX-License-Identifier: MIT */

/* The cluster of a case, with the parts that its plan needs: proxies, a replica, small file systems, a
 * redis-server whose clock the test sets. */

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/faults/due.h"
#include "tests/faults/fault.h"
#include "tests/harness/host/host-clock.h"
#include "tests/harness/host/net.h"
#include "tests/harness/port.h"
#include "tests/harness/redis/redis-clock.h"
#include "tests/harness/test.h"

#define BED_USER 61357 /* nobody on this machine */
#define PROXY_PORT ((size_t) 7000) /* of the first host's proxy, in a network */

static char mounts[LOAD_HOSTS][80], folder[32];
static size_t n_mounts;

/* Returns options of a replicated server, which needs TCP. */
static const char *const *replicated(size_t which) {
    static char ports[2][8];
    static const char *words[2][8];

    snprintf(ports[which], sizeof(ports[which]), "%u", port_reserve());
    words[which][0] = "--port";
    words[which][1] = ports[which];
    words[which][2] = "--bind";
    words[which][3] = "127.0.0.1";
    words[which][4] = "--repl-diskless-sync-delay";
    words[which][5] = "0";
    return words[which];
}

/* Without proxies Redis listens on a network node of its own. */
static void prepare_network(const struct plan *p) {
    static const char *const listening[] = {"--port", "6379", "--bind", "0.0.0.0", "--protected-mode", "no", NULL};

    if (net_up() < 0)
        abort();
    (void) setenv("REDIS_NETWORK", net_path(BED_NODE_REDIS), 1);
    if (!(p->flags & FAULT_PROXY))
        cluster.redis_extra = listening;
}

static bool needs_user(const struct plan *p) {
    return (p->flags & FAULT_USER & ~FAULT_ALONE) != 0;
}

void bed_prepare(const struct plan *p) {
    static const char *const open_to_all[] = {"--unixsocketperm", "777", NULL};

    cluster.redis_extra = p->flags & FAULT_REPLICA ? replicated(0) : needs_user(p) ? open_to_all : NULL;
    if (p->flags & FAULT_NETWORK)
        prepare_network(p);
    if (p->flags & FAULT_CLOCK)
        redis_clock_own();
}

void bed_remove(void) {
    for (size_t i = 0; i < n_mounts; i++) {
        (void) umount2(mounts[i], MNT_DETACH);
        (void) rmdir(mounts[i]);
    }
    if (n_mounts > 0)
        (void) rmdir(folder);
    redis_clock_done();
}

/* Mounts are in a mount namespace of this program. */
static void mount_small(struct bed *b) {
    TEST_FATAL(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "no mount namespace");
    snprintf(folder, sizeof(folder), "%s", cluster.folder);
    for (size_t i = 0; i < LOAD_HOSTS; i++) {
        snprintf(mounts[i], sizeof(mounts[i]), "%s", b->load.hosts[i].host->runtime);
        (void) mkdir(mounts[i], 0755);
        TEST_FATAL(mount("tmpfs", mounts[i], "tmpfs", 0, "size=1m,nr_inodes=300,mode=0755") == 0, "no small file system");
        n_mounts++;
    }
}

/* In a network the proxy is on Redis's node. */
static void add_proxy(struct bed *b, size_t i, bool network) {
    char path[64];

    snprintf(path, sizeof(path), "%s/proxy-%zu.sock", cluster.folder, i);
    if (network)
        snprintf(path, sizeof(path), ":%zu", PROXY_PORT + i);
    TEST_FATAL(net_enter(network ? net_path(BED_NODE_REDIS) : NULL) == 0, "no network namespace");
    TEST_FATAL(proxy_start(&b->proxies[i], path, cluster.redis.socket) == 0, "no proxy");
    if (network)
        net_leave();
    b->load.hosts[i].host->redis = b->proxies[i].path;
}

/* Makes the host's programs and folder belong to BED_USER, and lets that user reach Redis. */
static void become_user(struct host *h) {
    h->uid = BED_USER;
    TEST_FATAL(mkdir(h->runtime, 0755) == 0 && chown(h->runtime, BED_USER, BED_USER) == 0 && chmod(cluster.redis.directory, 0755) == 0,
               "no folder for an ordinary user");
}

static void enter_network(struct bed *b, size_t i, bool proxy) {
    static char urls[LOAD_HOSTS][64];
    struct host *h = b->load.hosts[i].host;

    b->ports[i] = (unsigned) (proxy ? PROXY_PORT + i : 6379);
    snprintf(urls[i], sizeof(urls[i]), "redis://" NET_ADDRESS ":%u", BED_NODE_REDIS + 1, b->ports[i]);
    h->url = urls[i];
    h->network = net_path(BED_NODE(i));
}

void bed_up(struct bed *b, const struct plan *p) {
    load_up(&b->load, p->seed, p->has_schedules);
    b->load.focus = p->failpoint != NULL;
    b->mixed = p->n > 2;
    b->master = &cluster.redis;
    if (p->flags & FAULT_TMPFS)
        mount_small(b);
    if (p->flags & FAULT_REPLICA)
        TEST_FATAL(redis_server_start(&b->replica, replicated(1)) == 0, "no replica");
    for (size_t i = 0; i < LOAD_HOSTS; i++) {
        if (needs_user(p))
            become_user(b->load.hosts[i].host);
        if (p->flags & FAULT_PROXY)
            add_proxy(b, i, (p->flags & FAULT_NETWORK) != 0);
        if (p->flags & FAULT_NETWORK)
            enter_network(b, i, (p->flags & FAULT_PROXY) != 0);
        if (p->flags & FAULT_HOST_CLOCK)
            host_clock_give(b->load.hosts[i].host);
        load_reload(&b->load, i); /* writes the config; host_start() comes later */
    }
    if (p->has_schedules)
        due_up(&b->load);
    for (size_t i = 0; i < LOAD_HOSTS; i++) {
        if (i == 0 && p->failpoint)
            failpoint_name(p);
        host_launch(b->load.hosts[i].host);
        failpoint_forget();
    }
    for (size_t i = 0; i < LOAD_HOSTS; i++)
        host_await(b->load.hosts[i].host, "redis-connected", " ");
    host_end_grace(b->load.hosts[0].host);
    if (p->failpoint)
        failpoint_arm();
}

/* Runs after cluster_down(), because hosts end their sessions at the master. */
void bed_done(struct bed *b) {
    for (size_t i = 0; i < LOAD_HOSTS; i++)
        proxy_done(&b->proxies[i]);
    redis_server_done(&b->replica);
}
