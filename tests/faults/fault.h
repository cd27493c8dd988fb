/* SPDX-License-Identifier: MIT */
#pragma once

/* The table of faults. A fault has a begin and perhaps an end, between which the load continues. */

#include <stdbool.h>

#include "tests/faults/load.h"
#include "tests/harness/redis/proxy.h"

enum { /* what a fault needs, and what it excuses */
    FAULT_HOST = 1 << 0,     /* breaks one host: its waiting claims are excused */
    FAULT_REDIS = 1 << 1,    /* breaks Redis or the way to it for all */
    FAULT_PROXY = 1 << 2,    /* needs proxies */
    FAULT_REPLICA = 1 << 3,  /* needs a replica */
    FAULT_CLOCK = 1 << 4,    /* needs a redis-server with a clock of the test */
    FAULT_TMPFS = 1 << 5,    /* needs runtime directories on small file systems */
    FAULT_ALONE = 1 << 6,    /* not in mixes: breaks what another fault relies on, see the comment in the table */
    FAULT_NETWORK = 1 << 7,  /* needs hosts in networks of their own (tests/harness/host/net.h) */
    FAULT_DIRECT = 1 << 8 | FAULT_ALONE, /* ... and no proxy between */
    FAULT_HOST_CLOCK = 1 << 9, /* needs hosts with clocks of the test (tests/harness/host/host-clock.h) */
    FAULT_USER = 1 << 11 | FAULT_ALONE, /* needs hosts that are an ordinary user */
    FAULT_FULL = 1 << 10,     /* not in the slice */
};

#define PINNED_MAX 64

enum owed { OWED_MEMORY, OWED_REPLICAS, OWED_PASSWORD, OWED_SNAPSHOTS }; /* what Redis still gets to end a fault */
/* Nodes of the network. */
#define BED_NODE_REDIS ((size_t) 0)
#define BED_NODE(host) ((host) + 1)

struct injection {
    const struct fault *fault;
    usec_t at, until;         /* since the begin of the case; until 0: it has no end */
    size_t host;              /* that it hits */
    uint64_t random;          /* of its own random numbers */
    bool led_in, begun, ended;
    unsigned n_hit;           /* processes, connections ... */
    int pinned[PINNED_MAX];   /* pidfds of processes that it stopped */
    size_t n_pinned;
};

struct plan;

struct bed { /* what a case runs on */
    struct load load;
    struct proxy proxies[LOAD_HOSTS];
    bool frozen;                 /* it is */
    struct redis_server replica;
    struct redis_server *master; /* target of the hosts' proxies */
    bool owed[OWED_SNAPSHOTS + 1];
    bool limit_owed, pattern_owed; /* no host could restore the limit of db, of the pattern */
    bool mixed;                  /* there are other faults */
    unsigned ports[LOAD_HOSTS];  /* where each host finds Redis, in a network */
    unsigned n_down[LOAD_HOSTS]; /* faults that keep a berthd down */
};

struct fault {
    const char *name;
    const char *what;            /* text for the table */
    unsigned flags;
    unsigned msec;               /* between begin and end; 0: no end */
    void (*begin)(struct bed *b, struct injection *i);
    void (*end)(struct bed *b, struct injection *i);
    const char *lessons;         /* failures of other systems that berth does not have */
};

extern const struct fault faults_process[], faults_redis[], faults_memory[], faults_net[], faults_network[], faults_clock[], faults_host[],
    faults_scarce[], faults_keys[]; /* ended by a NULL name */
size_t faults_count(void);
/* Returns why the fault cannot be injected here; NULL: it can. */
const char *fault_lacks(const struct fault *f);
const struct fault *faults_get(size_t i);
const struct fault *faults_find(const char *name);

/* Processes of a host by kind: only descendants of this program. */
enum kind { KIND_BERTHD, KIND_RUNNER, KIND_GUARD, KIND_RUN, KIND_COMMAND };
/* Sends a signal to at most `most` of them; `pin` remembers them for unpin(). Returns how many were hit. */
unsigned hit(struct bed *b, struct injection *i, enum kind kind, int signal, unsigned most, bool pin);
void unpin(struct injection *i); /* SIGCONT */
/* Lowers the soft limit RLIMIT_... of each process. Returns their number. */
unsigned bound(struct bed *b, size_t host, enum kind kind, int resource, uint64_t most);
/* The host is broken until the end of the fault, and so many leases longer. */
void touch(struct bed *b, const struct injection *i, unsigned leases);
/* Restores the limit of db or of the pattern; if no host answers, after all faults. */
void restore_limit(struct bed *b, struct injection *i);
void restore_pattern(struct bed *b, struct injection *i);
/* Starts a host's berthd again unless another fault keeps it down. */
void revive(struct bed *b, size_t host);

/* Steps at which a build with failpoints can be made to fail (base/failpoint.h). */
struct failpoint {
    const char *name;
    const char *fault; /* fault without which the step is not reached, or NULL */
};
extern const struct failpoint failpoints[]; /* ended by a NULL name */
enum { FAILPOINT_ACTIONS = 3 };
struct failpoint_action {
    const char *name;
    const char *what; /* text for the table: "a process ..." */
    unsigned msec;    /* of load */
    bool keeps_reports; /* each `berth run` can report how its command ended */
};
extern const struct failpoint_action failpoint_actions[FAILPOINT_ACTIONS];
/* Finds step and action of "STEP:ACTION". Returns whether there are such. */
bool failpoint_find(const char *name, const struct failpoint **ret, const struct failpoint_action **ret_action);
/* Set and clear the failpoint with which host 0 is started. */
void failpoint_name(const struct plan *p);
void failpoint_forget(void);
/* Arms the failpoint. */
void failpoint_arm(void);
/* Returns whether the failpoint was reached. */
bool failpoint_is_over(void);

/* --- a case --- */

struct plan {
    char name[64];
    uint64_t seed;
    struct injection items[12];
    size_t n;
    const struct failpoint *failpoint; /* at which a process of host 0 fails once; NULL: none */
    const struct failpoint_action *action;
    unsigned flags;  /* of all of them together */
    usec_t until;    /* end of the load */
    bool has_schedules; /* with due times (tests/faults/due.h) */
    bool beside;     /* other programs load this machine: claims may wait a little longer */
};
void plan_alone(struct plan *p, const struct fault *f, uint64_t seed, unsigned times);
void plan_mix(struct plan *p, uint64_t seed);
/* Returns whether there is such a step. name: "STEP:ACTION". */
bool plan_failpoint(struct plan *p, const char *name, uint64_t seed);
void plan_print(const struct plan *p);

/* Called before the cluster starts and after its end. */
void bed_prepare(const struct plan *p);
void bed_up(struct bed *b, const struct plan *p);
void bed_done(struct bed *b);
void bed_remove(void);
/* Runs a case and judges it with CUnit's assertions. Prints a line "result ...", lines "margin ...", and
 * what went wrong. */
void plan_run(struct plan *p);
void plan_done(void); /* after cluster_down() */
