/* SPDX-License-Identifier: MIT */
#pragma once

/* A private redis-server: its own temporary directory, a unix socket alone, nothing saved. If a test fails to stop it, PDEATHSIG
 * does. Blocking, for tests only. */

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct redis_server {
    char directory[64];
    char socket[96];     /* redis.sock in it */
    unsigned tls_port;   /* with BERTH_TEST_TLS: berth connects there, by tests/harness/redis/tls.h; else 0 */
    unsigned bus_port;   /* with BERTH_TEST_CLUSTER: the server is a cluster of one node; else 0 */
    pid_t pid;           /* 0: not running */
    redisContext *client; /* of redis_command() */
};

/* Starts it and waits until it answers. extra: more arguments for redis-server, NULL-terminated, or NULL; the first may be a
 * config file. 0 or a negative errno; the binary is $BERTH_REDIS_SERVER, or the first there is of redis-server, redis-check-rdb (see tests/deps.sh), valkey-server. */
int redis_server_start(struct redis_server *s, const char *const *extra);
/* Kills it, and starts it empty on the same socket; with `data` it is stopped by SHUTDOWN SAVE and comes back with what it had. */
int redis_server_restart(struct redis_server *s, bool data);
/* Stop only; start again only. */
void redis_server_kill(struct redis_server *s);
int redis_server_resume(struct redis_server *s);
/* Have the next snapshots fail, or succeed again. 0 or -EIO. */
int redis_server_break_snapshots(struct redis_server *s, bool broken);
/* Returns whether the server is idle: it sleeps, is frozen or does not run. */
bool redis_server_is_idle(const struct redis_server *s);
/* Stops the server and removes its directory; harmless on a zeroed or stopped one. */
void redis_server_done(struct redis_server *s);

/* One command, words separated by spaces with hiredis's format (%s, %b). The reply is to be freed; NULL when Redis is not there.
 * Connects again when the old connection is broken. */
redisReply *redis_command(struct redis_server *s, const char *format, ...);
/* The same for commands whose answer is a number (or a text that is one); -1 if it is not. */
long long redis_number(struct redis_server *s, const char *format, ...);

static inline void redis_reply_freep(redisReply **r) {
    if (*r)
        freeReplyObject(*r);
}
#define _cleanup_reply_ _cleanup_(redis_reply_freep)
