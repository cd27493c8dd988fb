/* SPDX-License-Identifier: MIT */
#pragma once

/* Shared by http.c (connections and requests) and answer.c (answers); not included elsewhere. */

#include <microhttpd.h>

#include "base/list.h"
#include "base/timer.h"
#include "web/http.h"

#define LISTENERS_MAX 4
#define ANSWER_TIME (60 * USEC_PER_SEC) /* for a client to read an answer that is not a stream */

struct server { /* one listening socket */
    struct http *http;
    struct MHD_Daemon *daemon;
    sd_event_source *source;
    bool is_unix;
};

struct peer { /* one connection */
    struct list link;
    int fd;          /* borrowed */
    usec_t deadline; /* boottime: of the request, then of its answer */
};

struct http {
    sd_event *event;
    struct site site;
    struct http_handler handler;
    struct server servers[LISTENERS_MAX];
    size_t n_servers;
    struct list peers;   /* struct peer */
    struct list waiting; /* struct exchange */
    struct timer run, sweep;
};

struct exchange {
    struct server *server;
    struct MHD_Connection *connection;
    struct peer *peer;
    struct verdict verdict;
    char *body;
    size_t n_body;
    bool is_handed_over, is_answered; /* is_handed_over: the handler has the request */
    struct list waiting;       /* of http: suspended */
    struct MHD_Response *response; /* to be queued when libmicrohttpd calls again */
    unsigned status;
    ssize_t (*read)(void *userdata, char *buffer, size_t size);
    void *read_userdata, *data;
};

/* --- answer.c --- */
/* Queues an answer. response: stolen; NULL: no memory, which ends the connection. */
enum MHD_Result answer_queue(struct exchange *x, unsigned status, struct MHD_Response *response);
