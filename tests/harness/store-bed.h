/* SPDX-License-Identifier: MIT */
#pragma once

/* A test bed for any `struct store`: one or more hosts' stores on one event loop, claims that note what their listener received, and
 * waiting for something to become true with a deadline. tests/harness/store-suite.c runs on it. */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "store/store.h"
#include "tests/harness/capture.h"
#include "tests/harness/test.h"

#define BED_HOSTS_MAX 3
#define BED_DEADLINE_USEC (20 * USEC_PER_SEC) /* for anything awaited; a test that works is far below */

/* What each kind of store provides. */
struct store_fixture {
    /* How many hosts can share the same pools: 1 (scope host) to BED_HOSTS_MAX. Claims are spread over them. */
    unsigned n_hosts;
    bool host_scope; /* scope in snapshots */
    unsigned n_seeds; /* of the random test */
    /* Makes the store of host number `host` (0 first), named host_name, not started. All of one bed share their pools; nothing of
     * an earlier bed may be left in them (is_first: the first one of a bed, forget what was). 0 or a negative errno. */
    int (*make)(void *userdata, unsigned host, const char *host_name, bool is_first, sd_event *event, struct events *events,
                const struct store_listener *listener, struct store **ret);
    /* Whether those whom the stores ask have nothing to do, so that no answer is on its way but what can be read. Needed where the clock is the
     * test's (clock_file_own()): time passes there only while nobody has anything to do, and then as fast as it can. May be NULL. */
    bool (*is_idle)(void *userdata);
    /* After all stores of a bed were emptied, stopped and freed: whether nothing that grows is left (R16), with CU_ASSERTs.
     * May be NULL. */
    void (*check_empty)(void *userdata);
    void *userdata;
};

struct bed;

struct probe { /* a claim, and the callbacks that its listener got */
    struct claim claim;
    struct list link;                     /* on bed->probes */
    struct bed *bed;
    unsigned host;
    struct demands demands;
    unsigned n_waiting, n_granted, n_refused, n_lost, n_released, n_moved; /* calls of the listener */
    bool was_parked;
    enum store_refusal refusal;
    char refused_pool[POOL_NAME_SIZE];
    enum store_loss loss;
    uint64_t ticket, token;               /* from the last callback; the claim's own belong to the owner again after its end */
    unsigned grant_number;                /* 1: the first grant in this bed */
};

struct bed {
    const struct store_fixture *fixture;
    const struct store_pool *pools;       /* as declared at first */
    size_t n_pools;
    struct store_listener listener;
    sd_event *event;
    sd_event_source *timer;
    struct journal *journal;
    struct events *events;
    struct capture capture;               /* of the events; they are printed if an assertion fails */
    unsigned n_failures;                  /* of assertions before this bed */
    struct store *stores[BED_HOSTS_MAX];
    char hosts[BED_HOSTS_MAX][NAME_MAX_LENGTH + 1];
    unsigned n_hosts;
    unsigned n_states;                    /* calls of on_state */
    unsigned n_grants;
    unsigned n_committed, n_turns_refused, n_opened; /* of claims with turns */
    bool in_call;                         /* a call into a store is on the stack: no listener may be called */
    struct list probes;
    void (*on_granted)(struct probe *p);  /* extra ear; may be NULL */
};

/* Stores with these pools declared, not started. On failure the test has failed and false is returned. */
bool bed_init(struct bed *b, const struct store_fixture *fixture, const struct store_pool *pools, size_t n);
/* Starts all and waits until they are ready; a grace is ended. */
bool bed_start(struct bed *b);
/* The host dies: its store goes without a bye. And comes back in its place, not started. */
void bed_die(struct bed *b, unsigned host);
void bed_come_back(struct bed *b, unsigned host);
/* Whether all stores that there are are ready. */
bool bed_all_ready(const struct bed *b);
/* Releases everything, checks that nothing is left, stops and frees. */
void bed_done(struct bed *b);

/* Runs the loop once, until `end` (boottime) at the latest; false when that is over. */
bool bed_turn(struct bed *b, usec_t end);
/* Runs the loop until the condition holds; fails the test when the deadline passes. */
#define BED_UNTIL(b, condition)                                            \
    do {                                                                   \
        usec_t _end = usec_add(clock_boottime(), BED_DEADLINE_USEC);       \
        while (!(condition) && bed_turn((b), _end))                        \
            ;                                                              \
        CU_assertImplementation((condition), __LINE__, "awaited: " #condition, __FILE__, "", CU_FALSE); \
    } while (0)

/* Makes a claim "db:2,net" of a host (modulo the number of hosts), not requested yet. Never NULL; owned by
 * the bed. */
struct probe *bed_probe(struct bed *b, unsigned host, const char *pools);
void probe_ask(struct probe *p);
/* Request a claim and wait until it is granted; waits or is parked; is refused. */
void probe_grant(struct probe *p);
void probe_wait(struct probe *p);
void probe_refuse(struct probe *p, enum store_refusal refusal);
/* Checks that a waiting claim is not granted even after all earlier calls are answered. */
void probe_still_waits(struct probe *p);
/* Gives back; the second one waits until that was answered. */
void probe_release(struct probe *p);
void probe_end(struct probe *p);

/* These wait for the answer. */
int bed_declare(struct bed *b, unsigned host, const struct store_pool *pools, size_t n);
int bed_override(struct bed *b, unsigned host, const struct store_override *o);
int bed_move(struct bed *b, unsigned host, struct store_move *move); /* the answer */
int bed_revoke(struct bed *b, unsigned host, const char *claim);
/* To be freed; the next one waits until every store has answered, so that all asked before is known there. */
struct snapshot *bed_inspect(struct bed *b, unsigned host);
void bed_settle(struct bed *b);
/* In a snapshot; NULL: not there. */
const struct snapshot_pool *snapshot_find(const struct snapshot *s, const char *pool);
/* Returns a pool from a snapshot of host 0. */
uint32_t bed_used(struct bed *b, const char *pool);
uint32_t bed_limit(struct bed *b, const char *pool);
/* How many events were written whose line begins so ("limit-changed:"); whether there was one; whether any says this anywhere. */
unsigned bed_count_events(struct bed *b, const char *begin);
bool bed_has_event(struct bed *b, const char *begin);
bool bed_says(struct bed *b, const char *part);
