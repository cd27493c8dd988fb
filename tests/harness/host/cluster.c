/* SPDX-License-Identifier: MIT */

/* The functions of host.h that set up and tear down a cluster. */

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/host/host.h"
#include "tests/harness/place.h"
#include "tests/harness/judge/record.h"
#include "tests/harness/stall.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define CONNECT_PATIENCE (5 * USEC_PER_SEC)

struct cluster cluster;

void cluster_up(void) {
    cluster = (struct cluster) {.build = place_programs(), .lease = CLUSTER_LEASE, .heartbeat = CLUSTER_HEARTBEAT,
                                .redis_extra = cluster.redis_extra, .master = &cluster.redis};
    /* Like /run the folder is in memory, because renames on a disk may take long. */
    snprintf(cluster.folder, sizeof(cluster.folder), "%s/berth-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(cluster.folder) || chmod(cluster.folder, 0755) < 0)
        abort();
    snprintf(cluster.witness, sizeof(cluster.witness), "%s/witness", cluster.folder);
    snprintf(cluster.command, sizeof(cluster.command), "%s/tests/tools/witness %s", cluster.build, cluster.witness);
    witness_prepare(cluster.witness);
    test_gate_make(&cluster.gate, "gate");
    snprintf(cluster.at_gate, sizeof(cluster.at_gate), "%s --gate %s", cluster.command, cluster.gate.path);
    if (redis_server_start(&cluster.redis, cluster.redis_extra) < 0)
        abort();
}

void cluster_up_patient(void) {
    cluster_up();
    cluster.lease = "30s";
    cluster.heartbeat = "2s";
}

void cluster_up_without_redis(void) {
    cluster_up();
    redis_server_kill(&cluster.redis);
}

/* --- what is left --- */

static bool is_empty(const char *path, const char *part) {
    char folder[160];
    bool empty = true;
    DIR *list;

    snprintf(folder, sizeof(folder), "%s/%s", path, part);
    list = opendir(folder);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            printf("left behind: %s/%s\n", folder, entry->d_name);
            empty = false;
        }
    if (list)
        (void) closedir(list);
    return empty;
}

/* Names the keys of claims, queues and sessions that are left in Redis, and returns their number. The meta
 * data of a namespace stay, as do versions of overrides and marks of shared jobs (R6, R16, R18). */
static unsigned cluster_leftovers(void) {
    _cleanup_reply_ redisReply *reply = redis_command(cluster.master, "KEYS *");
    unsigned n = 0;

    for (size_t i = 0; reply && reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        const char *key = reply->element[i]->str, *part = strstr(key, "}:");

        if (part && (strcmp(part, "}:meta") == 0 || strcmp(part, "}:overrides") == 0 ||
                     strcmp(part, "}:marks") == 0 || (strncmp(part, "}:pool:@", 8) == 0 && strstr(part, ":turns"))))
            continue;
        printf("left in Redis: %s\n", key);
        n++;
    }
    return n;
}

/* A berthd that was stopped in order leaves nothing of a run. */
static void check_files(const struct host *h) {
    static const char *const folders[] = {"waiting", "holds", "runner/runs"};

    for (size_t i = 0; i < ELEMENTSOF(folders); i++)
        if (!is_empty(h->runtime, folders[i]))
            CU_FAIL("files were left behind");
}

static void check_sanitizers(struct host *h) {
    h->mark = 0;
    if (strstr(host_log(h), "Sanitizer") || strstr(host_log(h), "runtime error:") || (h->log.data && strstr(h->log.data, "Sanitizer"))) {
        printf("%s: %s\n%s\n", h->name, h->log.data ? h->log.data : "", child_text(h->berthd, 2));
        CU_FAIL("a sanitizer found something");
    }
}

/* Returns whether the last that a host said of Redis is that it lost the connection or the session. */
static bool is_away(const struct host *h) {
    static const char *const events[] = {"redis-connected:", "redis-lost:", "session-lost:", "namespace-differs:", "lease-differs:",
                                         "host-name-taken:"};
    const char *last = NULL, *text;
    size_t which = 1;

    if (!h->has_redis || !h->berthd)
        return false;
    text = child_text(h->berthd, 2);
    for (size_t i = 0; i < ELEMENTSOF(events); i++)
        for (const char *at = text; (at = strstr(at, events[i])); at++)
            if ((at == text || at[-1] == '\n') && at >= last) {
                last = at;
                which = i;
            }
    return which == 1 || which == 2;
}

/* Returns whether a host has no session in the cluster's Redis: it is connecting, unless it is refused. */
static bool is_connecting(const struct host *h) {
    return !h->url && !h->redis && h->berthd && !h->berthd->ended && !h->abandoned && cluster.redis.pid > 0 && is_away(h);
}

/* A berthd that is stopped before hello does not end the session of an earlier berthd, or that of a lost
 * connection, whose keys would be left in Redis. */
static void await_sessions(void) {
    usec_t until = clock_boottime() + CONNECT_PATIENCE;

    for (size_t i = 0; i < cluster.n_hosts; i++)
        while (is_connecting(cluster.hosts[i]) && clock_boottime() < until)
            child_turn(until);
}

static const char *last_lines(const char *text) {
    const char *at = text + strlen(text);

    for (unsigned n = 0; at > text; at--)
        if (at[-1] == '\n' && ++n > 6)
            break;
    return at;
}

void cluster_down(void) {
    bool abandoned = false, leaves_keys = false;

    test_gate_done(&cluster.gate);
    for (size_t i = 0; i < cluster.n_hosts; i++)
        child_kill(cluster.hosts[i]->berthd, SIGCONT); /* the test may have stopped it */
    await_sessions();
    for (size_t i = 0; i < cluster.n_hosts; i++) /* all at once, to save time */
        child_kill(cluster.hosts[i]->berthd, SIGTERM);
    for (size_t i = 0; i < cluster.n_hosts; i++) {
        struct host *h = cluster.hosts[i];

        abandoned = abandoned || h->abandoned;
        if (h->berthd && !h->berthd->ended && !child_await(h->berthd, HOST_PATIENCE)) {
            printf("%s does not end; it said:\n%s", h->name, child_text(h->berthd, 2));
            CU_FAIL("berthd does not end");
        }
        if (h->berthd && !h->abandoned)
            TEST_INT(h->berthd->exit_code, 0);
        leaves_keys = leaves_keys || h->abandoned || (h->url && is_away(h)); /* it cannot say goodbye */
    }
    if (!leaves_keys && cluster.master->pid > 0 && cluster_leftovers() > 0) {
        for (size_t i = 0; i < cluster.n_hosts; i++)
            printf("%s said at last: %s", cluster.hosts[i]->name, last_lines(child_text(cluster.hosts[i]->berthd, 2)));
        CU_FAIL("keys were left in Redis");
    }
    redis_server_done(&cluster.redis);
    stall_stop(); /* its watchers are no leftovers */
    if (cluster.on_stopped)
        cluster.on_stopped();
    if (child_sweep(abandoned ? 2 * CLUSTER_LEASE_USEC : 5 * USEC_PER_SEC) > 0)
        CU_FAIL("processes were left behind");
    record_audit();
    for (size_t i = 0; i < cluster.n_hosts; i++) {
        struct host *h = cluster.hosts[i];

        if (h->berthd && !h->abandoned)
            check_files(h); /* after the guards have ended */
        if (h->berthd)
            check_sanitizers(h);
        h->berthd = child_free(h->berthd);
        free(h->log.data);
        free(h);
    }
    child_free_all();
    berth_forget();
    place_remove(cluster.folder);
    cluster.n_hosts = 0;
}
