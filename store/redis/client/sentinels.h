/* SPDX-License-Identifier: MIT */
#pragma once

/* Asks all sentinels of the config at once for the master, each by a connection of its own; sentinel-poll.h decides
 * from their answers. The connections stay for the next question, because a failover takes several. */

#include "conf/redis-url.h"
#include "conf/settings.h"
#include "store/redis/client/dial.h"
#include "store/redis/client/sentinel-poll.h"

struct sentinels_handler {
    /* master: valid during the call. */
    void (*on_found)(const struct moved *master, void *userdata);
    /* The sentinels name no master, or cannot be asked. text: valid during the call. */
    void (*on_none)(enum redis_error error, const char *text, void *userdata);
    void *userdata;
};

struct sentinel {
    struct sentinels *sentinels;
    struct redis_settings settings; /* borrows the texts of sentinels->settings */
    struct redis_connection_options options;
    struct redis_dial dial;
    struct redis_connection *connection;
    char host[REDIS_HOST_SIZE];
    char where[SENTINEL_WHERE_SIZE]; /* "host:port", for people */
    bool is_dialing;
    bool has_answered;               /* or has failed, in this question */
    bool is_refusing;                /* its answer was an error; a new connection reads the password again */
};

struct sentinels {
    sd_event *event;
    struct redis_dial *dial; /* of the master: its settings, and the TLS context */
    struct sentinels_handler handler;
    struct defer defer; /* decides */
    struct timer late;  /* decides without the sentinels that have not answered */
    struct redis_settings settings; /* a copy, while n > 0 */
    bool is_asking;
    struct sentinel_poll poll;
    size_t n;
    struct sentinel *items[REDIS_HOSTS_MAX];
};

/* The dial must outlive the sentinels. 0 or a negative errno; sentinels_done() in any case. */
int sentinels_init(struct sentinels *sentinels, struct redis_dial *dial, const struct sentinels_handler *handler);
void sentinels_done(struct sentinels *sentinels);
/* Begins a question to all; ends an earlier one. Calls the handler once, never from inside this call. */
void sentinels_ask(struct sentinels *sentinels);
/* Ends the question without a call of the handler. */
void sentinels_stop(struct sentinels *sentinels);
/* The same; closes the connections. The next question uses the settings of that time. */
void sentinels_close(struct sentinels *sentinels);
