/* SPDX-License-Identifier: MIT */
#pragma once

/* The scripts of store/redis/lua by themselves, on a private redis-server. A call is a line of words ("~": an empty one,
 * "$": the epoch, "!": an id for a new one, "_": a space in one) without its serial number, which is script_serial. A
 * reply is shown as one line, lists in brackets. It is compared with a pattern of fnmatch(3) in which "$" is the epoch. */

#include <inttypes.h>
#include <stdbool.h>

#include "store/redis/client/script.h"
#include "tests/harness/redis/redis.h"
#include "tests/harness/test.h"

#define META "berth:{t}:meta"
#define NONE "berth:{t}:none"
#define PUSHES "{t}pushes" /* of script_say_failing(); in the same slot */
#define LEASE 30000000 /* µs */

extern struct redis_server script_server;
extern char script_epoch[32];
extern const char *script_serial; /* of each call; by default the epoch, so that "$" is both in a pattern */
extern char script_shown[1 << 16]; /* the last reply */

/* Returns whether calls of the script have a serial number, behind their epoch. */
static inline bool script_has_serial(enum redis_script script) {
    return script != REDIS_SCRIPT_HELLO && script != REDIS_SCRIPT_BYE && script != REDIS_SCRIPT_PROBE &&
           script != REDIS_SCRIPT_INSPECT;
}

/* Runs a plain command that must work. */
void script_tell(const char *command);
/* Calls a script: "claim s1 1 $ ..."; the reply as text, until the next call. */
const char *script_say(const char *line);
/* As script(), but the at-th call of Redis fails without effect. Earlier pushes are in the list PUSHES. */
const char *script_say_failing(const char *line, unsigned at);
const char *script_sayf(const char *format, ...) _printf_(1, 2);
void script_expect(const char *file, unsigned line, const char *actual, const char *pattern);
#define EXPECT(actual, pattern) script_expect(__FILE__, __LINE__, (actual), (pattern))
/* A word of the last reply as a number, from 0. */
uint64_t script_number(unsigned index);
void script_learn_epoch(void);
void script_learn_new_epoch(void); /* and it must be one */

/* Makes a namespace without grace and with two hosts: s1 and s2, connection 1, with db = 4 and net = 2.
 * Their hellos were counts 1 and 2. */
void script_begin(void);
/* R16: ends all sessions with bye; checks that nothing that grows is left. */
void script_end(void);
/* hello of a session whose host has the same name, with n limits: "db 2 net 1" */
const char *script_hello(const char *session, int connection, unsigned n, const char *limits);
/* pools: "db 2 100 net 1 100" (pool, permits, queue-limit) */
const char *script_claim(const char *session, const char *id, const char *pools);
/* Of several claims, "a b c", with one permit each, no head start, and a queue limit of 100. */
const char *script_claims(const char *session, const char *pool, const char *ids);
/* Makes Redis another one with the same data, as a failover does. */
void script_fail_over(void);
const char *script_beat(const char *session, uint64_t dead, uint64_t known);
long long script_used(const char *pool);
long long script_claims_of(const char *session);
/* Returns a field of a hash ("meta", "claims"), until the next call; "nothing": none. */
const char *script_field(const char *key, const char *field);
/* 'W', 'P', 'H', or '-': no such claim */
char script_state(const char *id);

/* Starts the server, runs the suites, stops it. */
int script_main(int argc, char **argv, CU_SuiteInfo *suites);
