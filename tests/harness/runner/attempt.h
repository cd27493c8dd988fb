/* SPDX-License-Identifier: MIT */
#pragma once

/* Connects to a server by TLS with store/redis/client/dial.h, twice if the first connection comes up. */

#include "conf/settings.h"
#include "store/redis/client/dial.h"
#include "tests/harness/redis/tls.h"

struct attempt { /* at an address of the server */
    sd_event *event;
    struct redis_settings settings;
    struct redis_connection_options options;
    struct redis_dial dial;
    struct redis_connection *connection, *second;
    unsigned n_up, n_down;
    bool is_over, is_resumed;
    enum redis_error error;
    char text[SOCKET_REASON_SIZE], warning[SOCKET_REASON_SIZE], version[16];
};

/* Trusts ca.crt of the place. Options may be changed before attempt_run(). */
void attempt_begin(struct attempt *a, const struct tls_place *place, const char *host, unsigned port);
/* Runs until both connections are up, or one is down. */
void attempt_run(struct attempt *a);
void attempt_end(struct attempt *a);
/* Run the attempt, check its result, and free it. what: shown on failure; text: part of the reason. */
void attempt_expect_up(struct attempt *a, const char *what);
void attempt_expect_down(struct attempt *a, enum redis_error error, const char *text);
