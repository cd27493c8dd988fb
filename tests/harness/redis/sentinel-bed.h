/* SPDX-License-Identifier: MIT */
#pragma once

/* A master with two replicas, and three sentinels that watch them: private redis-servers, on loopback or in
 * networks of their own. Blocking, for tests only. */

#include "tests/harness/redis/redis.h"

#define SENTINEL_BED_NODES 3
#define SENTINEL_BED_MASTER "fleet" /* the master's name */

struct sentinel_bed {
    char directory[40]; /* of the configs that the sentinels write */
    struct redis_server nodes[SENTINEL_BED_NODES]; /* the first is the master at first */
    struct redis_server sentinels[SENTINEL_BED_NODES];
    char ports[2 * SENTINEL_BED_NODES][8];  /* of the nodes, then of the sentinels */
    char hosts[2 * SENTINEL_BED_NODES][16]; /* their addresses */
    bool is_apart;                          /* in networks */
    bool is_tls;                            /* without a plain port */
    char options[160]; /* for the redis section of a config: the sentinels, and the master's name */
};

/* Starts all, and waits until each sentinel knows the replicas and the other sentinels. 0 or a negative errno. */
int sentinel_bed_start(struct sentinel_bed *bed);
/* The same by TLS, between the servers, too, with the certificate of tls_shared_place(). */
int sentinel_bed_start_tls(struct sentinel_bed *bed);
/* As sentinel_bed_start(), after net_up(): the first node and the first sentinel are in network node 0, all
 * others in 1. */
int sentinel_bed_start_apart(struct sentinel_bed *bed);
/* Moves a sentinel to another port, and changes `options`. 0 or a negative errno. */
int sentinel_bed_move_sentinel(struct sentinel_bed *bed, unsigned i);
void sentinel_bed_done(struct sentinel_bed *bed);
/* "ADDRESS:PORT" of a node, as berth shows it. Until the next call. */
const char *sentinel_bed_address(const struct sentinel_bed *bed, int node);
/* Prints the ends of the sentinels' logs. */
void sentinel_bed_show_logs(const struct sentinel_bed *bed);
/* Sends a command to each running sentinel. Returns whether all succeeded. */
bool sentinel_bed_tell(struct sentinel_bed *bed, const char *command);
/* Returns the index of the node that calls itself a master, other than `former`; -1: none. */
int sentinel_bed_find_master(struct sentinel_bed *bed, int former);
/* Orders a failover from this node, and waits for the new master. Returns its index, or -1 after a
 * minute. */
int sentinel_bed_fail_over(struct sentinel_bed *bed, int former);
/* Waits until each sentinel knows this node as the master, with its replicas that run. 0 or a negative errno. */
int sentinel_bed_await_settled(struct sentinel_bed *bed, int master);
