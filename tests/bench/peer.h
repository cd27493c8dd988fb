/* SPDX-License-Identifier: MIT */
#pragma once

/* References for the scripts, called on Redis directly: an empty script, the same commands without a script,
 * and other semaphores, written from their published descriptions. */

#include "tests/harness/redis/redis.h"

struct peer {
    const char *name;
    const char *command;   /* whose server time counts: as in rig_server_usec() */
    size_t holders_max;    /* more of them would take minutes */
    /* Fills the semaphore with so many holders. */
    void (*prepare)(struct redis_server *s, size_t holders);
    /* Append the commands of one acquire and one release. Return the number of replies to come. */
    unsigned (*acquire)(redisContext *c, unsigned number);
    unsigned (*release)(redisContext *c, unsigned number);
};

extern const struct peer peer_empty;        /* `return 1`, twice */
extern const struct peer peer_arguments;    /* the same with the arguments of our calls */
extern const struct peer peer_commands;     /* what our scripts call in their fast paths, without a script */
extern const struct peer peer_basic;        /* "Redis in Action" 6.3.1 */
extern const struct peer peer_fair;         /* 6.3.2 */
extern const struct peer peer_fair_script;  /* 6.3.2 as one script a call */
extern const struct peer peer_counter;      /* Redisson's RSemaphore, by its description */

/* The floor of our scripts (peer-floor.c); the last two are single calls. */
extern const struct peer peer_floor, peer_floor_grant, peer_floor_beat;

/* Our own scripts (peer-ours.c), of the first host of a rig, which must not run meanwhile. The last three are single calls:
 * claims of the pool "full" that wait, and releases that grant them in this order. */
struct rig;
extern const struct peer peer_ours, peer_ours_functions, peer_ours_wait, peer_ours_grant, peer_ours_beat;
void peer_ours_use(struct rig *g);

/* Sends n acquires in pipelines of `depth`, then the releases of each pipeline. An error ends the
 * program. */
void peer_run(const struct peer *p, struct redis_server *s, unsigned n, unsigned depth);
/* Returns the server time of one acquire and its release, µs. */
double peer_cost(const struct peer *p, struct redis_server *s, unsigned n);
/* Returns the connection for more commands. */
redisContext *peer_connect(struct redis_server *s);

/* For peers: runs a command that must work; loads a script; returns its name. */
void peer_check(redisReply *reply);
void peer_load(struct redis_server *s, const char *text);
const char *peer_sha(redisContext *c, const char *text);
