/* SPDX-License-Identifier: MIT */
#pragma once

/* The scripts of store/redis/lua, compiled in. */

enum redis_script {
    REDIS_SCRIPT_HELLO, REDIS_SCRIPT_BYE, REDIS_SCRIPT_HEARTBEAT, REDIS_SCRIPT_CLAIM, REDIS_SCRIPT_CLAIMS, REDIS_SCRIPT_RELEASE,
    REDIS_SCRIPT_RELEASES, REDIS_SCRIPT_SYNC,
    REDIS_SCRIPT_VERIFY, REDIS_SCRIPT_OVERRIDE, REDIS_SCRIPT_REVOKE, REDIS_SCRIPT_MOVE, REDIS_SCRIPT_TURN, REDIS_SCRIPT_TURNED,
    REDIS_SCRIPT_INSPECT, REDIS_SCRIPT_PROBE,
    REDIS_SCRIPTS
};

#define REDIS_SHA_SIZE 41 /* 40 hex digits: what SCRIPT LOAD returns and EVALSHA takes */

const char *redis_script_name(enum redis_script script);
const char *redis_script_sha(enum redis_script script);
/* Returns the text that Redis gets: with the included parts, without comments. */
const char *redis_script_text(enum redis_script script);
