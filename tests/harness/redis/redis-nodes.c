/* SPDX-License-Identifier: MIT */
#include "tests/harness/redis/redis-nodes.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/harness/host/net.h"
#include "tests/harness/port.h"

#define SLOTS 16384
#define UP_LIMIT (60 * USEC_PER_SEC)

/* Of a command that must work. */
static void must(redisReply *reply) {
    if (!reply || reply->type == REDIS_REPLY_ERROR) {
        printf("a node of the cluster: %s\n", reply ? reply->str : "no answer");
        abort();
    }
    freeReplyObject(reply);
}

static bool is_up(struct redis_server *s) {
    _cleanup_reply_ redisReply *reply = redis_command(s, "CLUSTER INFO");

    return reply && reply->type == REDIS_REPLY_STRING && strstr(reply->str, "cluster_state:ok") &&
           strstr(reply->str, "cluster_known_nodes:3") && strstr(reply->str, "cluster_slots_assigned:16384");
}

static int start_server(struct redis_nodes *nodes, struct redis_server *server, unsigned i) {
    size_t network = nodes->is_apart && i != nodes->alone;
    const char *extra[] = {"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout",
                           nodes->timeout ? nodes->timeout : "2000", "--cluster-require-full-coverage", "no", "--protected-mode", "no",
                           "--repl-diskless-sync-delay", "0", "--bind", nodes->hosts[i], "--cluster-port", nodes->buses[i], "--port",
                           nodes->ports[i], getenv("BERTH_TEST_TLS") ? "--tls-cluster" : NULL, "yes", "--tls-replication",
                           "yes", NULL};
    int r;

    (void) snprintf(nodes->hosts[i], sizeof(nodes->hosts[i]), nodes->is_apart ? NET_ADDRESS : "127.0.0.1", network + 1);
    (void) snprintf(nodes->ports[i], sizeof(nodes->ports[i]), "%u", port_reserve());
    (void) snprintf(nodes->buses[i], sizeof(nodes->buses[i]), "%u", port_reserve());
    if (nodes->is_apart)
        (void) setenv("REDIS_NETWORK", net_path(network), 1);
    r = redis_server_start(server, extra);
    (void) unsetenv("REDIS_NETWORK");
    if (r < 0)
        printf("a node does not start: %s\n", strerror(-r));
    return r;
}

static int start_node(struct redis_nodes *nodes, unsigned i) {
    int r = start_server(nodes, &nodes->servers[i], i);

    if (r < 0)
        return r;
    must(redis_command(&nodes->servers[i], "CLUSTER SET-CONFIG-EPOCH %u", i + 1));
    must(redis_command(&nodes->servers[i], "CLUSTER ADDSLOTSRANGE %u %u", i * SLOTS / NODES, (i + 1) * SLOTS / NODES - 1));
    must(redis_command(&nodes->servers[i], "CLUSTER MEET %s %u %s", nodes->hosts[0], redis_nodes_port(nodes, 0), nodes->buses[0])); /* the first: itself */
    return 0;
}

struct redis_server *redis_nodes_get(struct redis_nodes *nodes, unsigned i) {
    return i == NODES ? &nodes->replica : &nodes->servers[i];
}

static int learn_id(struct redis_nodes *nodes, unsigned i) {
    _cleanup_reply_ redisReply *id = redis_command(redis_nodes_get(nodes, i), "CLUSTER MYID");

    if (!id || id->type != REDIS_REPLY_STRING)
        return -EIO;
    (void) snprintf(nodes->ids[i], sizeof(nodes->ids[i]), "%s", id->str);
    return 0;
}

unsigned redis_nodes_port(struct redis_nodes *nodes, unsigned i) {
    const struct redis_server *server = redis_nodes_get(nodes, i);

    return server->tls_port > 0 ? server->tls_port : (unsigned) strtoul(nodes->ports[i], NULL, 10);
}

int redis_nodes_start(struct redis_nodes *nodes) {
    usec_t end = usec_add(clock_monotonic(), UP_LIMIT);

    for (unsigned i = 0; i < NODES; i++) {
        int r = start_node(nodes, i);

        if (r < 0)
            return r;
    }
    for (unsigned i = 0; i < NODES; i++) {
        while (!is_up(&nodes->servers[i])) {
            if (clock_monotonic() > end) {
                printf("node %u does not know in time that the cluster is up\n", i);
                return -ETIMEDOUT;
            }
            (void) poll(NULL, 0, 10);
        }
        if (learn_id(nodes, i) < 0)
            return -EIO;
    }
    return 0;
}

static bool is_in_sync(struct redis_server *s) {
    _cleanup_reply_ redisReply *info = redis_command(s, "INFO replication");

    return info && info->type == REDIS_REPLY_STRING && strstr(info->str, "master_link_status:up");
}

int redis_nodes_await_replica(struct redis_nodes *nodes, unsigned i) {
    usec_t end = usec_add(clock_monotonic(), UP_LIMIT);

    while (!is_in_sync(redis_nodes_get(nodes, i))) {
        if (clock_monotonic() > end)
            return -ETIMEDOUT;
        (void) poll(NULL, 0, 10);
    }
    return 0;
}

/* A replica that knows no other master asks nobody for a vote. */
static bool knows_all(struct redis_server *s) {
    _cleanup_reply_ redisReply *info = redis_command(s, "CLUSTER INFO");

    return info && info->type == REDIS_REPLY_STRING && strstr(info->str, "cluster_known_nodes:4") && strstr(info->str, "cluster_state:ok");
}

static bool knows_replica(struct redis_nodes *nodes, unsigned i) {
    _cleanup_reply_ redisReply *list = redis_command(&nodes->servers[i], "CLUSTER NODES");
    const char *line = list && list->type == REDIS_REPLY_STRING ? strstr(list->str, nodes->ids[NODES]) : NULL;

    return line && strcspn(line, "\n") > strcspn(line, " ") && memmem(line, strcspn(line, "\n"), " slave ", 7);
}

int redis_nodes_add_replica(struct redis_nodes *nodes, unsigned of) {
    usec_t end = usec_add(clock_monotonic(), UP_LIMIT);
    bool is_replica = false;
    int r = start_server(nodes, &nodes->replica, NODES);

    if (r < 0)
        return r;
    must(redis_command(&nodes->replica, "CLUSTER MEET %s %u %s", nodes->hosts[of], redis_nodes_port(nodes, of), nodes->buses[of]));
    while (!is_replica || !is_in_sync(&nodes->replica) || !knows_all(&nodes->replica)) {
        _cleanup_reply_ redisReply *reply = is_replica ? NULL : redis_command(&nodes->replica, "CLUSTER REPLICATE %s", nodes->ids[of]);

        is_replica = is_replica || (reply && reply->type == REDIS_REPLY_STATUS); /* not known yet */
        if (clock_monotonic() > end)
            return -ETIMEDOUT;
        (void) poll(NULL, 0, 10);
    }
    if (learn_id(nodes, NODES) < 0)
        return -EIO;
    for (unsigned i = 0; i < NODES; i++) /* also the nodes that elect it */
        while (!knows_replica(nodes, i)) {
            if (clock_monotonic() > end)
                return -ETIMEDOUT;
            (void) poll(NULL, 0, 10);
        }
    return 0;
}

void redis_nodes_done(struct redis_nodes *nodes) {
    redis_server_done(&nodes->replica);
    for (unsigned i = 0; i < NODES; i++)
        redis_server_done(&nodes->servers[i]);
}

unsigned redis_nodes_slot(struct redis_nodes *nodes, const char *key) {
    return (unsigned) redis_number(&nodes->servers[0], "CLUSTER KEYSLOT %s", key);
}

unsigned redis_nodes_owner(struct redis_nodes *nodes, unsigned slot) {
    unsigned node = 0;
    _cleanup_reply_ redisReply *slots = redis_command(&nodes->servers[0], "CLUSTER SLOTS");

    for (size_t i = 0; slots && i < slots->elements; i++) {
        const redisReply *range = slots->element[i];

        if (range->element[0]->integer > slot || range->element[1]->integer < slot)
            continue;
        for (unsigned k = 0; k <= NODES; k++)
            if (strcmp(range->element[2]->element[2]->str, nodes->ids[k]) == 0)
                node = k;
    }
    return node;
}

void redis_nodes_begin_move(struct redis_nodes *nodes, unsigned slot, unsigned from, unsigned to) {
    must(redis_command(&nodes->servers[to], "CLUSTER SETSLOT %u IMPORTING %s", slot, nodes->ids[from]));
    must(redis_command(&nodes->servers[from], "CLUSTER SETSLOT %u MIGRATING %s", slot, nodes->ids[to]));
}

bool redis_nodes_move_key(struct redis_nodes *nodes, unsigned slot, unsigned from, unsigned to) {
    _cleanup_reply_ redisReply *keys = redis_command(&nodes->servers[from], "CLUSTER GETKEYSINSLOT %u 1", slot);

    if (!keys || keys->type != REDIS_REPLY_ARRAY || keys->elements == 0)
        return false;
    must(redis_command(&nodes->servers[from], getenv("BERTH_TEST_ACL") ? "MIGRATE 127.0.0.1 %u %s 0 60000 AUTH2 tester x"
                                                                       : "MIGRATE 127.0.0.1 %u %s 0 60000",
                       redis_nodes_port(nodes, to), keys->element[0]->str));
    return true;
}

void redis_nodes_end_move(struct redis_nodes *nodes, unsigned slot, unsigned from, unsigned to) {
    must(redis_command(&nodes->servers[to], "CLUSTER SETSLOT %u NODE %s", slot, nodes->ids[to]));
    must(redis_command(&nodes->servers[from], "CLUSTER SETSLOT %u NODE %s", slot, nodes->ids[to]));
    for (unsigned i = 0; i < NODES; i++)
        if (i != to && i != from)
            must(redis_command(&nodes->servers[i], "CLUSTER SETSLOT %u NODE %s", slot, nodes->ids[to]));
}
