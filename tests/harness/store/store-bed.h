/* SPDX-License-Identifier: MIT */
#pragma once

/* A test bed for any `struct store`: the stores of one or more hosts on one event loop, claims that note the
 * calls of their listener, and waits with a deadline. tests/harness/store/store-suite.c runs on it. */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "store/store.h"
#include "tests/harness/capture.h"
#include "tests/harness/test.h"

#define BED_HOSTS_MAX 3
#define BED_DEADLINE_USEC (20 * USEC_PER_SEC) /* bound of each wait, far above what a good test takes */

/* Provided by each kind of store. */
struct store_fixture {
    /* How many hosts can share the same pools: 1 (scope host) to BED_HOSTS_MAX. Claims are spread over them. */
    unsigned n_hosts;
    bool host_scope; /* scope in snapshots */
    unsigned n_seeds; /* of the random test */
    /* Makes the store of host number `host` (0 first), named host_name, not started. All of one bed share their pools; nothing of
     * an earlier bed may be left in them (is_first: the first one of a bed, forget what was). 0 or a negative errno. */
    int (*make)(void *userdata, unsigned host, const char *host_name, bool is_first, sd_event *event, struct events *events,
                const struct store_listener *listener, struct store **ret);
    /* Returns whether the servers of the stores are idle, so that no reply is on its way but what can be
     * read. Needed where the clock is the test's (clock_file_own()), on which time passes only while all is
     * idle. May be NULL. */
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
    char id[ID_TEXT_SIZE];
    struct demands demands;
    struct demand_ref refs[DEMAND_POOLS_MAX]; /* of the claim, into demands */
    unsigned n_waiting, n_granted, n_refused, n_lost, n_released, n_moved; /* calls of the listener */
    bool was_parked;
    enum store_refusal refusal;
    char refused_pool[POOL_NAME_SIZE];
    enum store_loss loss;
    uint64_t ticket, token;               /* from the last callback; after the end those of the claim belong to the owner */
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
    bool in_call;                         /* during a call into a store: no listener may be called */
    struct list probes;
    void (*on_granted)(struct probe *p);  /* also called; may be NULL */
};

/* Makes stores with these pools declared, not started. Returns false after a failed assertion. */
bool bed_init(struct bed *b, const struct store_fixture *fixture, const struct store_pool *pools, size_t n);
/* Ends the grace period, if there is one. */
void bed_end_grace(struct bed *b, unsigned host);
/* Starts all stores, ends the grace period, and waits until they are ready. */
bool bed_start(struct bed *b);
/* Free the store of a host without bye; make it again, not started. */
void bed_die(struct bed *b, unsigned host);
void bed_come_back(struct bed *b, unsigned host);
/* Returns whether all existing stores are ready. */
bool bed_all_ready(const struct bed *b);
/* Releases everything, checks that nothing is left, stops and frees. */
void bed_done(struct bed *b);

/* Runs the loop once, until `end` (boottime) at the latest. Returns false after that. */
bool bed_turn(struct bed *b, usec_t end);
/* Runs the loop until the condition holds; fails the test at the deadline. */
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
/* Release a claim; the second one waits for the reply. */
void probe_release(struct probe *p);
void probe_end(struct probe *p);
/* Returns the shortest duration of n hand-overs of the permit of pool "one" from host to host. */
usec_t bed_hand_over(struct bed *b, unsigned n);

/* These wait for the reply. */
int bed_declare(struct bed *b, unsigned host, const struct store_pool *pools, size_t n);
int bed_override(struct bed *b, unsigned host, const struct store_override *o);
int bed_move(struct bed *b, unsigned host, struct store_move *move); /* the answer */
int bed_revoke(struct bed *b, unsigned host, const char *claim);
/* To be freed; the next one waits until every store has answered, so that all asked before is known there. */
struct snapshot *bed_inspect(struct bed *b, unsigned host);
void bed_settle(struct bed *b);
/* Return numbers of a pool in a snapshot of host 0. */
uint32_t bed_used(struct bed *b, const char *pool);
uint32_t bed_limit(struct bed *b, const char *pool);
/* How many events were written whose line begins so ("limit-changed:"); whether there was one; whether any says this anywhere. */
unsigned bed_count_events(struct bed *b, const char *begin);
bool bed_has_event(struct bed *b, const char *begin);
bool bed_says(struct bed *b, const char *part);
