/* SPDX-License-Identifier: MIT */
#pragma once

/* A cluster of three masters: private redis-servers on loopback, or in networks of their own. Blocking, for tests
 * only. */

#include <stdbool.h>

#include "tests/harness/redis/redis.h"

#define NODES 3

struct redis_nodes {
    struct redis_server servers[NODES];
    struct redis_server replica; /* of one of them, after redis_nodes_add_replica() */
    char hosts[NODES + 1][16];   /* addresses; the last: the replica's */
    char ports[NODES + 1][8];
    char buses[NODES + 1][8];
    char ids[NODES + 1][41];
    const char *timeout; /* of nodes, ms; NULL: 2000 */
    bool is_apart;       /* after net_up(): node `alone` is in network node 0, the others are in 1; to be set before */
    unsigned alone;
};

/* Starts the nodes and waits until each knows that the cluster is up. 0 or a negative errno. */
int redis_nodes_start(struct redis_nodes *nodes);
void redis_nodes_done(struct redis_nodes *nodes);
/* Starts a replica of a node, and waits until it has the node's data. 0 or a negative errno. */
int redis_nodes_add_replica(struct redis_nodes *nodes, unsigned of);

/* A node by its number; NODES: the replica. */
struct redis_server *redis_nodes_get(struct redis_nodes *nodes, unsigned i);
/* Returns the port by which nodes reach this one, and berth: with BERTH_TEST_TLS by TLS. */
unsigned redis_nodes_port(struct redis_nodes *nodes, unsigned i);
/* Waits until a node is a replica again that has its master's data. 0 or a negative errno. */
int redis_nodes_await_replica(struct redis_nodes *nodes, unsigned i);

/* Return the slot of a key, and the node that has it. */
unsigned redis_nodes_slot(struct redis_nodes *nodes, const char *key);
unsigned redis_nodes_owner(struct redis_nodes *nodes, unsigned slot);

/* Begin to move a slot; move one of its keys (false: none is left); end the move, so that all nodes know
 * it. */
void redis_nodes_begin_move(struct redis_nodes *nodes, unsigned slot, unsigned from, unsigned to);
bool redis_nodes_move_key(struct redis_nodes *nodes, unsigned slot, unsigned from, unsigned to);
void redis_nodes_end_move(struct redis_nodes *nodes, unsigned slot, unsigned from, unsigned to);
