/* SPDX-License-Identifier: MIT */

/* Connections between hosts and Redis: cut, half-open, one-way, late, truncated, doubled; of one host or
 * all. */

#include <signal.h>

#include "tests/faults/fault.h"

static void harm(struct bed *b, struct injection *i, enum proxy_mode mode, bool all, bool subscriber_only) {
    for (size_t h = 0; h < LOAD_HOSTS; h++)
        if (all || h == i->host)
            proxy_set(&b->proxies[h], mode, draw_between(&i->random, 30, 150) * USEC_PER_MSEC, subscriber_only);
    if (!all)
        touch(b, i, 2);
    i->n_hit++;
}

static void heal(struct bed *b, struct injection *i) {
    for (size_t h = 0; h < LOAD_HOSTS; h++)
        if ((i->fault->flags & FAULT_REDIS) || h == i->host)
            proxy_set(&b->proxies[h], PROXY_PASS, 0, false);
}

static void cut_one(struct bed *b, struct injection *i) {
    harm(b, i, PROXY_CUT, false, false);
}
/* Nobody but berth-runner can stop the commands. */
static void cut_beside_frozen(struct bed *b, struct injection *i) {
    (void) hit(b, i, KIND_RUN, SIGSTOP, PINNED_MAX / 2, true);
    (void) hit(b, i, KIND_GUARD, SIGSTOP, PINNED_MAX / 2, true);
    harm(b, i, PROXY_CUT, false, false);
}
static void heal_and_thaw(struct bed *b, struct injection *i) {
    heal(b, i);
    unpin(i);
}
static void cut_all(struct bed *b, struct injection *i) {
    harm(b, i, PROXY_CUT, true, false);
}
static void cut_subscriber(struct bed *b, struct injection *i) {
    harm(b, i, PROXY_CUT, false, true);
}
static void hole_one(struct bed *b, struct injection *i) {
    harm(b, i, PROXY_HOLE, false, false);
}
static void hole_all(struct bed *b, struct injection *i) {
    harm(b, i, PROXY_HOLE, true, false);
}
static void hole_subscriber(struct bed *b, struct injection *i) {
    harm(b, i, PROXY_HOLE, false, true);
}
static void deaf_one(struct bed *b, struct injection *i) {
    harm(b, i, PROXY_DEAF, false, false);
}
static void mute_one(struct bed *b, struct injection *i) {
    harm(b, i, PROXY_MUTE, false, false);
}
static void hold_one(struct bed *b, struct injection *i) {
    harm(b, i, PROXY_HOLD, false, false);
}
static void delay_all(struct bed *b, struct injection *i) {
    harm(b, i, PROXY_DELAY, true, false);
}
static void truncate_one(struct bed *b, struct injection *i) {
    harm(b, i, PROXY_TRUNCATE, false, false);
}
static void lose_answers(struct bed *b, struct injection *i) {
    harm(b, i, PROXY_LOSE_ANSWER, false, false);
}
static void double_requests(struct bed *b, struct injection *i) {
    harm(b, i, PROXY_DOUBLE, false, false);
}
static void double_answers(struct bed *b, struct injection *i) {
    harm(b, i, PROXY_ECHO, false, false);
}
static void drop_some(struct bed *b, struct injection *i) {
    harm(b, i, PROXY_DROP_SOME, false, false);
}
static void garbage(struct bed *b, struct injection *i) {
    harm(b, i, PROXY_GARBAGE, false, false);
}

#define ONE (FAULT_HOST | FAULT_PROXY)
#define ALL (FAULT_REDIS | FAULT_PROXY)

const struct fault faults_net[] = {
    {"cut-one-short", "connections of one host cut for half a lease", ONE, 1000, cut_one, heal, "redisson/redisson#6026"},
    {"cut-one-long", "connections of one host cut for longer than a lease", ONE, 3500, cut_one, heal, "hashicorp/consul#9788"},
    {"cut-frozen", "connections of one host cut, its guards and `berth run` frozen, for longer than a lease", ONE | FAULT_ALONE, 3500,
     cut_beside_frozen, heal_and_thaw, "etcd-io/etcd#11456"},
    {"cut-all-short", "connections of all hosts cut for half a lease", ALL, 1000, cut_all, heal, NULL},
    {"cut-all-long", "connections of all hosts cut for longer than a lease", ALL, 3500, cut_all, heal, NULL},
    {"cut-subscriber", "the subscriber's connection of one host cut", ONE, 1500, cut_subscriber, heal,
     "redisson/redisson#6026 StackExchange/StackExchange.Redis#517"},
    {"half-open-one", "nothing goes through for one host, nothing is closed", ONE, 3500, hole_one, heal, NULL},
    {"half-open-all", "nothing goes through for any host, nothing is closed", ALL, 3000, hole_all, heal, NULL},
    {"half-open-subscriber", "pushes of one host swallowed, nothing is closed", ONE, 2500, hole_subscriber, heal, "redisson/redisson#5762"},
    {"one-way-requests-lost", "requests of one host swallowed", ONE, 2500, deaf_one, heal, NULL},
    {"one-way-answers-lost", "answers to one host swallowed, requests reach Redis", ONE, 2500, mute_one, heal,
     "redisson/redisson#1966 etcd-io/etcd#22082"},
    {"held-back", "all of one host's packets kept back, then delivered late", ONE, 2500, hold_one, heal, "swarthy/redis-semaphore#175"},
    {"delayed-all", "all packets 30 to 150 ms late", ALL, 2500, delay_all, heal, NULL},
    {"truncated", "answers cut in the middle, connection closed", ONE, 1500, truncate_one, heal, NULL},
    {"answers-lost", "answers lost with their connection", ONE, 1500, lose_answers, heal, "redisson/redisson#1966 concourse/pool-resource#20"},
    {"requests-doubled", "requests reach Redis twice", ONE, 1000, double_requests, heal, "rails/solid_queue#761 dv/redis-semaphore#65"},
    {"answers-doubled", "answers come twice", ONE, 1000, double_answers, heal, NULL},
    {"answers-dropped", "every fourth answer dropped, connection stays", ONE, 1500, drop_some, heal, NULL},
    {"garbage", "answers followed by what is no answer", ONE, 1000, garbage, heal, NULL},
    {0},
};
