/* SPDX-License-Identifier: MIT */
#pragma once

/* One attempt of store/redis/client/dial.h to connect to a server by TLS, twice if the first connection
 * comes up. */

#include "conf/settings.h"
#include "store/redis/client/dial.h"
#include "tests/harness/tls.h"

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
/* Until both connections are up, or one is down. */
void attempt_run(struct attempt *a);
void attempt_end(struct attempt *a);
/* Run it, check its end, and end it. what: shown if it fails; text: part of the reason. */
void attempt_expect_up(struct attempt *a, const char *what);
void attempt_expect_down(struct attempt *a, enum redis_error error, const char *text);
