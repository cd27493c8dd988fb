/* SPDX-License-Identifier: MIT */

/* Hosts and Redis as nodes of a real network: packets dropped both ways or one way, links and addresses that
 * go away, connections that are reset, forgotten, or lose a third of their packets. The kernel's TCP is
 * real; delays come from the proxy. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/faults/fault.h"
#include "tests/harness/host/net.h"
#include "tests/harness/test.h"

/* --- nft rules of a node --- */

#define CHAINS                                                                                                         \
    "add table inet f; add chain inet f in { type filter hook input priority 0; }; add chain inet f out { type "       \
    "filter hook output priority 0; }; "

static void harm(struct injection *i, size_t node, const char *rules) {
    if (net_run(node, "nft '" CHAINS "%s'", rules))
        i->n_hit++;
    else
        CU_FAIL("packets cannot be dropped");
}

static void heal(struct injection *i, size_t node) {
    (void) i;
    if (!net_run(node, "nft 'add table inet f; delete table inet f'")) /* another fault may have healed the node */
        CU_FAIL("packets are dropped for ever");
}

static void heal_one(struct bed *b, struct injection *i) {
    (void) b;
    heal(i, BED_NODE(i->host));
}

static void heal_redis(struct bed *b, struct injection *i) {
    (void) b;
    heal(i, BED_NODE_REDIS);
}

static void drop_one(struct bed *b, struct injection *i) {
    touch(b, i, 2);
    harm(i, BED_NODE(i->host), "add rule inet f in meta iif eth0 drop; add rule inet f out meta oif eth0 drop");
}

static void drop_requests(struct bed *b, struct injection *i) {
    touch(b, i, 2);
    harm(i, BED_NODE(i->host), "add rule inet f out meta oif eth0 drop");
}

static void drop_answers(struct bed *b, struct injection *i) {
    touch(b, i, 2);
    harm(i, BED_NODE(i->host), "add rule inet f in meta iif eth0 drop");
}

static void drop_all(struct bed *b, struct injection *i) {
    (void) b;
    harm(i, BED_NODE_REDIS, "add rule inet f in meta iif eth0 drop; add rule inet f out meta oif eth0 drop");
}

static void lose_some(struct bed *b, struct injection *i) {
    (void) b;
    harm(i, BED_NODE_REDIS, "add rule inet f in meta iif eth0 numgen random mod 10 < 3 drop");
}

static void refuse(struct bed *b, struct injection *i) {
    touch(b, i, 2);
    harm(i, BED_NODE_REDIS, "add rule inet f out meta oif eth0 accept");
    if (!net_run(BED_NODE_REDIS, "nft 'add rule inet f in ip saddr " NET_ADDRESS " tcp dport %u reject with tcp reset'",
                 BED_NODE(i->host) + 1, b->ports[i->host]))
        CU_FAIL("connections cannot be reset");
}

/* Drops only packets of the present connections, like a router that forgot them. */
static void forget_connections(struct bed *b, struct injection *i) {
    unsigned ports[16];
    size_t n = net_ports(BED_NODE(i->host), BED_NODE_REDIS, b->ports[i->host], ports, ELEMENTSOF(ports));

    touch(b, i, 2);
    CU_ASSERT(n >= 2 || b->n_down[i->host] > 0 || b->mixed);
    harm(i, BED_NODE(i->host), "add rule inet f out meta oif lo accept");
    for (size_t k = 0; k < n; k++)
        if (!net_run(BED_NODE(i->host),
                     "nft 'add rule inet f out tcp sport %u drop; add rule inet f in tcp dport %u drop'", ports[k],
                     ports[k]))
            CU_FAIL("a connection cannot be dropped");
}

/* Returns the port of a host's subscriber, from CLIENT LIST, or 0. */
static unsigned subscriber_port(struct bed *b, size_t host) {
    _cleanup_reply_ redisReply *reply = redis_command(b->master, "CLIENT LIST TYPE pubsub");
    char address[48];
    const char *at;

    snprintf(address, sizeof(address), " addr=" NET_ADDRESS ":", BED_NODE(host) + 1);
    at = reply && reply->type == REDIS_REPLY_STRING ? strstr(reply->str, address) : NULL;
    return at ? (unsigned) strtoul(at + strlen(address), NULL, 10) : 0;
}

static void drop_subscriber(struct bed *b, struct injection *i) {
    unsigned port = subscriber_port(b, i->host);
    char rules[160];

    if (port == 0) {
        CU_FAIL("the host has no subscription");
        return;
    }
    snprintf(rules, sizeof(rules), "add rule inet f out tcp sport %u drop; add rule inet f in tcp dport %u drop", port, port);
    touch(b, i, 2);
    harm(i, BED_NODE(i->host), rules);
}

/* --- links and addresses --- */

static void change(struct injection *i, size_t node, const char *line) {
    if (net_run(node, "%s", line))
        i->n_hit += !i->ended;
    else
        CU_FAIL("the network cannot be changed");
}

static void link_down(struct bed *b, struct injection *i) {
    touch(b, i, 2);
    change(i, BED_NODE(i->host), "ip link set eth0 down");
}

static void link_up(struct bed *b, struct injection *i) {
    (void) b;
    change(i, BED_NODE(i->host), "ip link set eth0 up");
}

static void redis_link_down(struct bed *b, struct injection *i) {
    (void) b;
    change(i, BED_NODE_REDIS, "ip link set eth0 down");
}

static void redis_link_up(struct bed *b, struct injection *i) {
    (void) b;
    change(i, BED_NODE_REDIS, "ip link set eth0 up");
}

static void lose_address(struct bed *b, struct injection *i) {
    touch(b, i, 2);
    change(i, BED_NODE(i->host), "ip address flush dev eth0");
}

static void give_address(struct bed *b, struct injection *i) {
    char line[96];

    (void) b;
    snprintf(line, sizeof(line), "ip address flush dev eth0 && ip address add " NET_ADDRESS "/24 dev eth0", BED_NODE(i->host) + 1);
    change(i, BED_NODE(i->host), line);
}

/* Gives the host another address. Its old connections keep an address that no host has. */
static void move_address(struct bed *b, struct injection *i) {
    char line[96];

    touch(b, i, 2);
    snprintf(line, sizeof(line), "ip address flush dev eth0 && ip address add " NET_ADDRESS "/24 dev eth0", BED_NODE(i->host) + 101);
    change(i, BED_NODE(i->host), line);
}

#define ONE (FAULT_HOST | FAULT_NETWORK)
#define ONE_FULL (ONE | FAULT_FULL)
#define ALL_FULL (FAULT_REDIS | FAULT_NETWORK | FAULT_FULL)

const struct fault faults_network[] = {
    {"net-cut-short", "packets of one host dropped both ways for half a lease", ONE_FULL, 1000, drop_one, heal_one, "redisson/redisson#6026"},
    {"net-cut-long", "packets of one host dropped both ways for longer than a lease", ONE, 3500, drop_one, heal_one, "hashicorp/consul#9788"},
    {"net-requests-dropped", "packets from one host to Redis dropped", ONE_FULL, 3000, drop_requests, heal_one, NULL},
    {"net-answers-dropped", "packets from Redis to one host dropped", ONE_FULL, 3000, drop_answers, heal_one, "redisson/redisson#1966"},
    {"net-cut-all", "Redis cut off from all hosts for longer than a lease", ALL_FULL, 3000, drop_all, heal_redis, NULL},
    {"net-forgotten", "connections of one host dropped without a reset for longer than a lease, new ones pass", ONE_FULL, 3500, forget_connections,
     heal_one, "StackExchange/StackExchange.Redis#517"},
    {"net-subscriber-dropped", "packets of one host's subscription dropped", ONE_FULL | FAULT_DIRECT, 2500, drop_subscriber, heal_one,
     "redisson/redisson#5762"},
    {"net-reset", "connections of one host reset", ONE_FULL, 1500, refuse, heal_redis, NULL},
    {"net-lossy", "a third of the packets to Redis lost", ALL_FULL, 2500, lose_some, heal_redis, NULL},
    {"net-link-down", "the link of one host down for longer than a lease", ONE_FULL, 3500, link_down, link_up, NULL},
    {"net-redis-link-down", "the link of Redis down", ALL_FULL, 2500, redis_link_down, redis_link_up, NULL},
    {"net-address-lost", "the address of one host gone and back", ONE_FULL, 2500, lose_address, give_address, NULL},
    {"net-address-moved", "one host moved to another address and back", ONE_FULL, 2500, move_address, give_address, NULL},
    {0},
};
