/* SPDX-License-Identifier: MIT */
#include "tests/harness/redis/sentinel-bed.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/harness/host/net.h"
#include "tests/harness/port.h"
#include "tests/harness/redis/tls.h"

#define NODES SENTINEL_BED_NODES
#define NAME SENTINEL_BED_MASTER
#define LIMIT (60 * USEC_PER_SEC)
#define MEMORY "/dev/shm"
#define LOG_SHOWN 40 /* lines */
#define WORDS_MAX 32

static const char *sentinel_port(const struct sentinel_bed *bed, unsigned i) {
    return bed->ports[NODES + i];
}

static const char *config_of(const struct sentinel_bed *bed, unsigned i) {
    static char paths[NODES][64];

    (void) snprintf(paths[i], sizeof(paths[i]), "%s/%u.conf", bed->directory, i);
    return paths[i];
}

const char *sentinel_bed_address(const struct sentinel_bed *bed, int node) {
    static char text[40];

    (void) snprintf(text, sizeof(text), "%s:%s", bed->hosts[node], bed->ports[node]);
    return text;
}

/* --- starting --- */

/* In the network of its number. */
static int start(const struct sentinel_bed *bed, unsigned i, struct redis_server *server,
                 const char *const *extra) {
    int r;

    if (bed->is_apart)
        (void) setenv("REDIS_NETWORK", net_path(i % NODES > 0), 1);
    r = redis_server_start(server, extra);
    (void) unsetenv("REDIS_NETWORK");
    return r;
}

/* Begins the arguments of a node or, from NODES on, of a sentinel. The texts stay. Returns how many there are. */
static size_t add_address(const struct sentinel_bed *bed, unsigned i, const char **words) {
    static char files[3][96];
    const char *const all[] = {"--bind", bed->hosts[i], "--protected-mode", "no", bed->is_tls ? "--tls-port" : "--port", bed->ports[i],
                               "--tls-replication", "yes", "--tls-auth-clients", "no", "--tls-cert-file", files[0],
                               "--tls-key-file", files[1], "--tls-ca-cert-file", files[2]};
    static const char *const names[] = {"server.crt", "server.key", "ca.crt"};
    size_t n = bed->is_tls ? ELEMENTSOF(all) : 6;

    for (size_t f = 0; bed->is_tls && f < ELEMENTSOF(names); f++)
        (void) snprintf(files[f], sizeof(files[f]), "%s", tls_place_path(tls_shared_place(), names[f]));
    memcpy(words, all, n * sizeof(*words));
    return n;
}

static int start_node(struct sentinel_bed *bed, unsigned i) {
    const char *const own[] = {"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
                               "--min-replicas-to-write", "1", i > 0 ? "--replicaof" : NULL, bed->hosts[0], bed->ports[0], NULL};
    const char *extra[WORDS_MAX];
    size_t n = add_address(bed, i, extra);

    memcpy(&extra[n], own, sizeof(own));
    return start(bed, i, &bed->nodes[i], extra);
}

/* A sentinel writes its state to its config, and waits for the disk each time. */
static int write_config(const struct sentinel_bed *bed, const char *path) {
    FILE *f = fopen(path, "we");

    if (!f)
        return -errno;
    fprintf(f,
            "sentinel monitor " NAME " %s %s 2\nsentinel down-after-milliseconds " NAME " 1000\n"
            "sentinel failover-timeout " NAME " 2000\n",
            bed->hosts[0], bed->ports[0]);
    return fclose(f) == 0 ? 0 : -EIO;
}

/* The periods are short, so that a sentinel soon knows the others. A sentinel that does not hear of a promotion
 * within four publish-periods makes the new master a replica again; the leader may need a second to notice it.
 * A sentinel that had no processor for two seconds does nothing for tilt-period, by default 30 s. */
static int hurry(struct sentinel_bed *bed, unsigned i) {
    _cleanup_reply_ redisReply *reply =
        redis_command(&bed->sentinels[i], "SENTINEL DEBUG info-period 200 publish-period 1000 tilt-period 1000");

    return reply && reply->type == REDIS_REPLY_STATUS ? 0 : -EIO;
}

static int start_sentinel(struct sentinel_bed *bed, unsigned i) {
    const char *extra[WORDS_MAX] = {config_of(bed, i)};
    size_t n = 1 + add_address(bed, NODES + i, &extra[1]);
    int r = write_config(bed, extra[0]);

    extra[n++] = "--sentinel";
    extra[n] = NULL;
    if (r >= 0)
        r = start(bed, i, &bed->sentinels[i], extra);
    if (r < 0)
        return r;
    return hurry(bed, i);
}

static void write_options(struct sentinel_bed *bed) {
    (void) snprintf(bed->options, sizeof(bed->options),
                    "sentinels = {\"%s:%s\", \"%s:%s\", \"%s:%s\"}\nmaster = " NAME "\n", bed->hosts[NODES],
                    sentinel_port(bed, 0), bed->hosts[NODES + 1], sentinel_port(bed, 1),
                    bed->hosts[NODES + 2], sentinel_port(bed, 2));
}

static int start_all(struct sentinel_bed *bed) {
    int r = 0;

    (void) snprintf(bed->directory, sizeof(bed->directory), "%s/berth-sentinels-XXXXXX",
                    access(MEMORY, W_OK) == 0 ? MEMORY : "/tmp");
    if (!mkdtemp(bed->directory)) {
        bed->directory[0] = '\0';
        return -errno;
    }
    for (unsigned i = 0; i < 2 * NODES; i++) {
        (void) snprintf(bed->ports[i], sizeof(bed->ports[i]), "%u", port_reserve());
        (void) snprintf(bed->hosts[i], sizeof(bed->hosts[i]), bed->is_apart ? NET_ADDRESS : "127.0.0.1",
                        (size_t) (i % NODES > 0) + 1);
    }
    write_options(bed);
    for (unsigned i = 0; i < NODES && r >= 0; i++)
        r = start_node(bed, i);
    for (unsigned i = 0; i < NODES && r >= 0; i++)
        r = start_sentinel(bed, i);
    return r < 0 ? r : sentinel_bed_await_settled(bed, 0);
}

/* Its port is an argument, which redis_server_resume() passes again. */
int sentinel_bed_move_sentinel(struct sentinel_bed *bed, unsigned i) {
    int r;

    redis_server_kill(&bed->sentinels[i]);
    (void) snprintf(bed->ports[NODES + i], sizeof(bed->ports[0]), "%u", port_reserve());
    write_options(bed);
    r = redis_server_resume(&bed->sentinels[i]);
    return r < 0 ? r : hurry(bed, i);
}

int sentinel_bed_start(struct sentinel_bed *bed) {
    *bed = (struct sentinel_bed){};
    return start_all(bed);
}

int sentinel_bed_start_tls(struct sentinel_bed *bed) {
    *bed = (struct sentinel_bed){.is_tls = true};
    return start_all(bed);
}

int sentinel_bed_start_apart(struct sentinel_bed *bed) {
    *bed = (struct sentinel_bed){.is_apart = true};
    return start_all(bed);
}

void sentinel_bed_done(struct sentinel_bed *bed) {
    for (unsigned i = 0; i < NODES; i++) {
        redis_server_done(&bed->sentinels[i]);
        redis_server_done(&bed->nodes[i]);
        (void) unlink(config_of(bed, i));
    }
    (void) rmdir(bed->directory);
}

/* --- waiting --- */

/* Returns the value of a name in a list of names and values; "": none. */
static const char *value_of(const redisReply *list, const char *name) {
    for (size_t i = 0; list && list->type == REDIS_REPLY_ARRAY && i + 1 < list->elements; i += 2)
        if (strcmp(list->element[i]->str, name) == 0)
            return list->element[i + 1]->str;
    return "";
}

static unsigned count_running(const struct redis_server *servers) {
    unsigned n = 0;

    for (unsigned i = 0; i < NODES; i++)
        n += servers[i].pid > 0;
    return n;
}

static unsigned count_healthy(struct redis_server *sentinel) {
    _cleanup_reply_ redisReply *replicas = redis_command(sentinel, "SENTINEL REPLICAS " NAME);
    unsigned n = 0;

    for (size_t i = 0; replicas && replicas->type == REDIS_REPLY_ARRAY && i < replicas->elements; i++)
        n += strcmp(value_of(replicas->element[i], "flags"), "slave") == 0 &&
             strcmp(value_of(replicas->element[i], "master-link-status"), "ok") == 0;
    return n;
}

static bool is_settled(struct sentinel_bed *bed, unsigned i, int master) {
    struct redis_server *sentinel = &bed->sentinels[i];
    _cleanup_reply_ redisReply *view = NULL;

    if (sentinel->pid == 0)
        return true;
    view = redis_command(sentinel, "SENTINEL MASTER " NAME);
    return strcmp(value_of(view, "port"), bed->ports[master]) == 0 && strcmp(value_of(view, "flags"), "master") == 0 &&
           strcmp(value_of(view, "num-other-sentinels"), "2") == 0 &&
           count_healthy(sentinel) == count_running(bed->nodes) - 1;
}

int sentinel_bed_await_settled(struct sentinel_bed *bed, int master) {
    usec_t end = usec_add(clock_monotonic(), LIMIT);

    for (unsigned i = 0; i < NODES; i++)
        while (!is_settled(bed, i, master)) {
            if (clock_monotonic() > end)
                return -ETIMEDOUT;
            (void) poll(NULL, 0, 10);
        }
    return 0;
}

void sentinel_bed_show_logs(const struct sentinel_bed *bed) {
    char command[120];

    for (unsigned i = 0; i < NODES; i++) {
        printf("--- sentinel %u, port %s; node %u has port %s\n", i, sentinel_port(bed, i), i, bed->ports[i]);
        (void) fflush(stdout);
        (void) snprintf(command, sizeof(command), "grep -v 'saved on disk' %s/redis.log | tail -n %d",
                        bed->sentinels[i].directory, LOG_SHOWN);
        if (system(command) != 0)
            printf("no log\n");
    }
}

bool sentinel_bed_tell(struct sentinel_bed *bed, const char *command) {
    bool ok = true;

    for (unsigned i = 0; i < NODES; i++) {
        _cleanup_reply_ redisReply *reply =
            bed->sentinels[i].pid > 0 ? redis_command(&bed->sentinels[i], command) : NULL;

        ok = ok && (bed->sentinels[i].pid == 0 || (reply && reply->type != REDIS_REPLY_ERROR));
    }
    return ok;
}

int sentinel_bed_find_master(struct sentinel_bed *bed, int former) {
    for (int i = 0; i < NODES; i++) {
        _cleanup_reply_ redisReply *role =
            i != former && bed->nodes[i].pid > 0 ? redis_command(&bed->nodes[i], "ROLE") : NULL;

        if (role && role->type == REDIS_REPLY_ARRAY && strcmp(role->element[0]->str, "master") == 0)
            return i;
    }
    return -1;
}

/* On a busy machine sentinels abandon a failover; then orders it again. */
int sentinel_bed_fail_over(struct sentinel_bed *bed, int former) {
    usec_t end = usec_add(clock_monotonic(), LIMIT);
    int master;

    while ((master = sentinel_bed_find_master(bed, former)) < 0 && clock_monotonic() < end) {
        _cleanup_reply_ _unused_ redisReply *reply = redis_command(&bed->sentinels[0], "SENTINEL FAILOVER " NAME);

        (void) poll(NULL, 0, 10);
    }
    return master;
}
