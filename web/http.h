/* SPDX-License-Identifier: MIT */
#pragma once

/* HTTP/1.1 by libmicrohttpd on an event loop. Only http.c and answer.c use that library. The handler
 * receives whole and allowed requests as texts, and answers with a text or a stream. */

#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "web/request.h"

struct http;
struct exchange; /* one request and its answer */

struct http_request { /* borrowed until the answer */
    enum route route;
    const char *rest;    /* of the path */
    const char *pool;    /* ?pool=; "": none */
    const char *user;    /* from the header of the proxy; NULL: none, or not over the unix socket */
    const char *session; /* the cookie; NULL: none */
    const char *etag;    /* If-None-Match; NULL: none */
    const char *accept;  /* NULL: none */
    const char *body;
    size_t n_body;
};

struct http_answer {
    unsigned status;
    const char *type; /* Content-Type */
    const char *body;
    size_t n_body;
    bool is_static;     /* body stays valid as long as the program runs; else it is copied */
    const char *etag;   /* NULL: none, and caches must not store the answer */
    const char *cookie; /* Set-Cookie; NULL: none */
    const char *allow;  /* Allow, for 405 */
};

struct http_handler {
    /* Answers with http_answer() or http_stream(), now or later (http_wait() first). */
    void (*on_request)(struct exchange *x, const struct http_request *request, void *userdata);
    /* Called at the end of the exchange, answered or not. */
    void (*on_end)(struct exchange *x, void *userdata);
    void *userdata;
};

/* site, handler: copied. */
int http_new(struct http **ret, sd_event *event, const struct site *site, const struct http_handler *handler);
/* Serves a listening socket. fd: stolen. is_unix: the header that names a user is trusted there. Negative
 * errno. */
int http_listen(struct http *h, int fd, bool is_unix);
struct http *http_free(struct http *h);
DEFINE_CLEANUP(struct http, http_free)

/* Data of the handler; initially NULL. */
void exchange_set_data(struct exchange *x, void *data);
void *exchange_data(const struct exchange *x);

void http_answer(struct exchange *x, const struct http_answer *answer);
/* Suspends the exchange until http_answer(). */
void http_wait(struct exchange *x);
/* Answers with a stream. read: as reader_read() in web/stream.h; if it returned 0, http_wake() calls it
 * again. */
void http_stream(struct exchange *x, ssize_t (*read)(void *userdata, char *buffer, size_t size), void *userdata);
void http_wake(struct exchange *x);
