/* SPDX-License-Identifier: MIT */
#pragma once

/* The references for the scripts, called on Redis directly: the floor (an empty script), the same commands without a script, and other
 * people's semaphores. Their algorithms are reimplemented from their published descriptions. */

#include "tests/harness/redis.h"

struct peer {
    const char *name;
    const char *command;   /* whose server time counts: as in rig_server_usec() */
    size_t holders_max;    /* more of them would take minutes */
    /* Fills the semaphore with so many holders, that last. */
    void (*prepare)(struct redis_server *s, size_t holders);
    /* Append the commands of one acquire and one release; the number of answers to come. */
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

/* What ours cannot go below as scripts of these commands (peer-floor.c); the last two are single calls. */
extern const struct peer peer_floor, peer_floor_grant, peer_floor_beat;

/* n acquires in pipelines of `depth`, then the releases of each pipeline; answers are read and errors end the program. */
void peer_run(const struct peer *p, struct redis_server *s, unsigned n, unsigned depth);
/* Server µs of one acquire and its release. */
double peer_cost(const struct peer *p, struct redis_server *s, unsigned n);
/* The connection for more commands, made when it is needed. */
redisContext *peer_connect(struct redis_server *s);

/* For peers: the answer to a command that must work, freed; a script that must be there; its name. */
void peer_check(redisReply *reply);
void peer_load(struct redis_server *s, const char *text);
const char *peer_sha(redisContext *c, const char *text);
