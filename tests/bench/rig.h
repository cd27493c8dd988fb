/* SPDX-License-Identifier: MIT */
#pragma once

/* Many simulated hosts in one process, each with its own store on one private redis-server. Some hosts share
 * an event loop, and an epoll turns those loops that have something to do: sd-event polls again for each
 * event, which with thousands of connections on one loop would be most of the measured time. An error ends
 * the program with a message. */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "store/store.h"
#include "tests/harness/redis/redis.h"

struct rig;
struct rig_host;

struct slot { /* a claim that is requested repeatedly */
    struct claim claim;
    char id[ID_TEXT_SIZE];
    struct demand_ref demand;
    struct rig_host *host;
    usec_t at;       /* the bench's */
};

struct rig_loop {
    sd_event *event;
    bool touched;          /* one of its hosts was called from outside the loop */
};

struct rig_host {
    struct rig *rig;
    struct rig_loop *loop;
    struct store *store;
    usec_t beat;           /* boottime of the last answered heartbeat */
    usec_t worst_gap;      /* between two of them, since rig_forget_gaps() */
};

/* "busy" never has a queue, "full" soon has one. A rig with one pool has the first. */
#define RIG_POOLS 2
#define RIG_FULL_LIMIT 10
extern const struct store_pool rig_pools[RIG_POOLS];

struct rig_options {
    size_t n_hosts;
    usec_t lease_usec;     /* 0: an hour, so that no heartbeat comes between */
    const struct store_pool *pools;
    size_t n_pools;
    const char *const *redis; /* more arguments of redis-server, or NULL */
    const char *prefix;    /* of the hosts' names; NULL: "host" */
    bool has_default_timeouts; /* timeouts of a config with this lease, else 20 s */
};

struct rig {
    struct redis_server server;
    unsigned port; /* with BENCH_TCP; else 0 */
    struct rig_loop *loops;
    size_t n_loops;
    int epoll;
    struct journal *journal;
    struct events *events;
    struct rig_host *hosts;
    size_t n_hosts;
    bool singly;           /* each claim and each release is a call of its own */
    struct rig_options options;
    uint64_t n_granted, n_waiting, n_released; /* since the start */
    /* Also called; may be NULL. */
    void (*on_granted)(struct slot *s);
    void (*on_released)(struct slot *s);
    void (*on_waiting)(struct slot *s);
    void *userdata;
};

_Noreturn void rig_fail(const char *format, ...) _printf_(1, 2);
/* Starts the server and all hosts, and ends the grace of the new namespace. */
void rig_up(struct rig *g, const struct rig_options *options);
void rig_down(struct rig *g);
/* Starts hosts of another process, a child of the one whose rig this is, on its server. The child ends by _exit(). */
void rig_join(struct rig *g, const struct rig *of, const struct rig_options *options);
/* Runs one turn of the loop, at most for this time. */
void rig_turn(struct rig *g, usec_t at_most);
#define RIG_UNTIL(g, condition)                                                  \
    do {                                                                         \
        usec_t _end = clock_boottime() + 300 * USEC_PER_SEC;                     \
        while (!(condition)) {                                                   \
            rig_turn((g), USEC_PER_SEC);                                         \
            if (clock_boottime() > _end)                                         \
                rig_fail("%s:%d: not in time: %s", __FILE__, __LINE__, #condition); \
        }                                                                        \
    } while (0)
void rig_run_for(struct rig *g, usec_t time);
size_t rig_count_state(const struct rig *g, enum store_state state);
void rig_forget_gaps(struct rig *g);

/* Returns n slots of pool:permits, spread over the hosts from `host` on; to be freed. */
struct slot *rig_slots(struct rig *g, size_t n, size_t host, const char *pool, uint32_t permits);
/* To be called after a call into a host's store from outside its loop. */
void rig_touch(struct rig_host *h);
void slot_ask(struct slot *s);
void slot_release(struct slot *s);
/* Requests all, some thousand at a time, and waits until each is granted or queued; releases or withdraws
 * all. */
void rig_ask_all(struct rig *g, struct slot *slots, size_t n);
void rig_release_all(struct rig *g, struct slot *slots, size_t n);

/* Returns the server time (INFO commandstats) since rig_reset_stats() of commands with this name, in µs, and
 * the number of calls. "*": all commands but INFO and CONFIG. */
void rig_reset_stats(struct redis_server *s);
double rig_server_usec(struct redis_server *s, const char *command, uint64_t *ret_calls);
/* Returns the CPU time of the server so far, s. */
double rig_server_cpu(struct redis_server *s);

/* Returns a quantile of an array, and sorts the array. q: 0.5 is the median. */
double quantile(double *values, size_t n, double q);
/* Returns the round whose ratio to its own yardstick is the median: the two sides of a ratio are never from
 * different speeds of the machine. */
size_t median_round(const double *cost, const double *yardstick, size_t n);
