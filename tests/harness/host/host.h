/* SPDX-License-Identifier: MIT */
#pragma once

/* A cluster of hosts on this machine for end-to-end tests: a folder, a private Redis, and a berthd with its runner for each host. Tests
 * use it through CUnit's set-up and tear-down:
 *
 *     {.pName = "fairness", .pSetUpFunc = cluster_up, .pTearDownFunc = cluster_down, .pTests = tests}
 *
 * What takes too long, and what is left over at the end (processes, files of runs, keys in Redis), is a failed assertion. Awaiting is
 * fatal for the test: it goes on with its tear-down. All times are µs. */

#include <jansson.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/harness/child.h"
#include "tests/harness/redis/redis.h"

#define HOST_PATIENCE (20 * USEC_PER_SEC) /* bound of each wait without a deadline of its own */
#define CLUSTER_LEASE "3s"
#define CLUSTER_HEARTBEAT "500ms"
#define CLUSTER_LEASE_USEC (3 * USEC_PER_SEC)

struct host {
    char name[32];
    const char *called;    /* host name in its config; NULL: as `name` */
    const char *namespace; /* in its config; NULL: "test" */
    char config[64], runtime[64], socket[80]; /* paths */
    bool has_redis;
    const char *redis;     /* socket in its config; NULL: that of the cluster's Redis */
    /* Descriptors "7,8" passed to berthd as by a service manager, and their names "control:other" (tests/tools/activate); NULL: none. */
    const char *passed, *passed_names;
    const char *url;       /* of Redis in its config, if not a socket; or NULL */
    const char *redis_options; /* beside it; or NULL */
    const char *network;   /* network namespace of berthd (net_path()), or NULL */
    unsigned uid;          /* user of berthd and `berth`; 0: as this program */
    char *const *environment; /* environment of both, NULL-terminated; or NULL */
    struct child *berthd;  /* the present or last one; NULL: none yet */
    struct child_text log; /* of those before it */
    size_t mark;           /* begin of the search for events */
    bool abandoned;        /* killed and not started again: leftovers are no failure */
    char event[4096];      /* the last line found */
    unsigned n_launched;   /* the messages of the n-th berthd are in FOLDER/NAME.N.record */
};

/* A FIFO for `witness --gate`, in the cluster's folder. Opening it ends all present and later waits at it. */
struct test_gate {
    char path[80];
    int fd;
};
void test_gate_make(struct test_gate *g, const char *name);
void test_gate_open(struct test_gate *g);
static inline void test_gate_done(struct test_gate *g) {
    g->fd = close_fd(g->fd);
}

struct cluster {
    char folder[32];          /* short, for the sockets */
    char witness[48];         /* folder for tests/tools/witness */
    const char *build;        /* place_programs() */
    char command[384];        /* "BUILD/tests/tools/witness FOLDER" */
    struct test_gate gate;         /* a gate of each cluster */
    char at_gate[512];        /* `command` that runs until it opens */
    struct redis_server redis;
    unsigned broken;          /* 1 << enum audit_kind: rules that are broken here on purpose; the audit may find that, and nothing else */
    struct redis_server *master; /* its keys are checked at the end; `redis` until a failover */
    const char *lease, *heartbeat; /* of hosts whose config is written from now on; "3s", "500ms" */
    const char *const *redis_extra; /* before cluster_up(): more arguments of redis-server, or NULL */
    void (*on_stopped)(void); /* called after the end of all berthds, before the checks; or NULL */
    struct host *hosts[8];
    size_t n_hosts;
};
extern struct cluster cluster;

void cluster_up(void);           /* with a Redis */
void cluster_up_patient(void); /* a lease that no busy machine loses, for tests that are not about leases */
void cluster_up_without_redis(void); /* redis_server_resume(&cluster.redis) starts it */
/* Stops all, checks what is left, and has the audit check the hosts' events. */
void cluster_down(void);

/* Return `command = {...}` and `output = "null"` of a job in a config, until the next call: a witness with
 * these words behind its folder, or with this id and exit status until the cluster's gate opens. */
const char *witness_command(const char *words);
const char *witness_at_gate(const char *id, int status);

/* --- hosts --- */

/* Adds a host with this text (printf) after the common part of the config, without starting it. */
struct host *host_add(const char *name, const char *config, ...) _printf_(2, 3);
/* As host_add(), for a config without a redis section. */
struct host *host_add_alone(const char *name, const char *config, ...) _printf_(2, 3);
/* Replaces the config's text (for a reload). */
void host_set_config(struct host *h, const char *config, ...) _printf_(2, 3);
/* Starts a program as this host's user. */
struct child *host_spawn(const struct host *h, char *const argv[], char *const environment[]);
/* Starts berthd, and awaits nothing. */
void host_launch(struct host *h);
/* The same with this control socket, as its service manager passes it. */
void host_launch_on(struct host *h, int fd);
/* Starts berthd and awaits `ready`. */
void host_start(struct host *h);
/* Ends the grace period, also if a busy machine was without Redis for a moment. */
void host_end_grace(struct host *h);
/* Awaits `redis-connected` and ends the grace of a new namespace. */
void host_open(struct host *h);
/* host_add(), host_start(), and host_open() if it is the first one. */
struct host *host_up(const char *name, const char *config, ...) _printf_(2, 3);
/* SIGTERM, and awaits its end with status 0. */
void host_stop(struct host *h);
/* SIGKILL to berthd alone, its runner and guards live; awaits its end. */
void host_kill(struct host *h);
void host_signal(struct host *h, int signal);

/* --- events --- */

/* Events are searched from the mark on; to be set before their cause. */
void host_mark(struct host *h);
/* Returns all messages of berthd since the mark. */
const char *host_log(struct host *h);
/* Awaits the first line since the mark of this event with all of "key=value key=value" (printf). Returns the
 * line, until the next call for this host. Fatal after HOST_PATIENCE. */
const char *host_await(struct host *h, const char *event, const char *fields, ...) _printf_(3, 4);
const char *host_await_within(struct host *h, usec_t within, const char *event, const char *fields, ...) _printf_(4, 5);
/* Returns how many there are since the mark, without waiting. */
unsigned host_count(struct host *h, const char *event, const char *fields, ...) _printf_(3, 4);
/* Awaits this number of events. Fatal if none comes for HOST_PATIENCE. */
void host_await_count(struct host *h, unsigned n, const char *event, const char *fields);
/* Returns a field of an event's line, until the next call; "": none. */
const char *event_get(const char *line, const char *key);
uint64_t event_get_u64(const char *line, const char *key);
/* Calls fn for each such line since the mark. */
void host_each(struct host *h, const char *event, void (*fn)(const char *line, void *userdata), void *userdata);

/* --- the command line --- */

/* Starts `berth WORDS` for this host (NULL: for none). WORDS (printf) are split at spaces; words 'in single
 * quotes' may have spaces. */
struct child *berth_start(struct host *h, const char *words, ...) _printf_(2, 3);
/* Starts `berth run OPTIONS --name NAME` of a witness with that id that runs until the cluster's gate opens; awaits this event of it. */
struct child *berth_at_gate(struct host *h, const char *options, const char *name, const char *event);
/* Awaits the end of a `berth` and frees it. Returns the exit status, 128+N for signal N; -1 with a failed
 * assertion if it does not end. */
int berth_end(struct child *c);
/* Runs `berth` to its end; its output is in berth_out and berth_err until the next call. */
int berth(struct host *h, const char *words, ...) _printf_(2, 3);
extern char *berth_out, *berth_err;
void berth_forget(void); /* frees these two */
/* `berth VERB --json`, to be json_decref'ed. */
json_t *berth_json(struct host *h, const char *words, ...) _printf_(2, 3);
/* Returns the number of runs; SIZE_MAX: berthd does not answer. */
size_t berth_count_runs(struct host *h);
/* Returns the value (borrowed) at a path, "redis.state", "runs.0.name", "pools.name=db.holders.0.host" (the
 * item whose name is db); NULL: none. The others check a value; a missing number is -1. */
json_t *berth_at(const json_t *json, const char *path);
long long berth_number_at(const json_t *json, const char *path);
#define AT_STRING(json, path, expected) TEST_STRING(json_string_value(berth_at(json, path)), expected)
#define AT_INT(json, path, expected) TEST_INT(berth_number_at(json, path), expected)
#define AT_NULL(json, path) CU_ASSERT(json_is_null(berth_at(json, path)))
/* Return a number of a pool in `berth pools --json` ("used", "waiting", "limit"); await that it has this
 * value. */
long long host_pool(struct host *h, const char *pool, const char *what);
void host_await_pool(struct host *h, const char *pool, const char *what, long long value);
/* Awaits that berthd is connected to Redis and has a session there. Only then Redis has answered its first heartbeat; when berthd logs
 * `redis-connected`, it still refuses `berth run -n`. */
void host_await_redis(struct host *h);

/* Fatal: ends the test. */
#define TEST_FATAL(condition, text) CU_assertImplementation(condition, __LINE__, text, __FILE__, "", CU_TRUE)
