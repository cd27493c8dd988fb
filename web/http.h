/* SPDX-License-Identifier: MIT */
#pragma once

/* HTTP/1.1 by libmicrohttpd on an event loop, and nothing of it outside of http.c and answer.c: requests that are whole and allowed go up
 * as texts, answers come down as texts or as a stream. */

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
    const char *user;    /* of the header that a proxy sets; NULL: none, or not over the unix socket */
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
    bool is_static;     /* body stays valid as long as the program runs; otherwise it is copied */
    const char *etag;   /* NULL: none, not to be stored */
    const char *cookie; /* Set-Cookie; NULL: none */
    const char *allow;  /* of 405 */
};

struct http_handler {
    /* Answers with http_answer() or http_stream(), now or later (http_wait() first). */
    void (*on_request)(struct exchange *x, const struct http_request *request, void *userdata);
    /* The exchange ends, answered or not. */
    void (*on_end)(struct exchange *x, void *userdata);
    void *userdata;
};

/* site, handler: copied. */
int http_new(struct http **ret, sd_event *event, const struct site *site, const struct http_handler *handler);
/* Serves a listening socket, which it owns. is_unix: the header that names a user is believed there. Negative errno. */
int http_listen(struct http *h, int fd, bool is_unix);
struct http *http_free(struct http *h);
DEFINE_CLEANUP(struct http, http_free)

/* What the handler keeps with an exchange; NULL at first. */
void exchange_set_data(struct exchange *x, void *data);
void *exchange_data(const struct exchange *x);

void http_answer(struct exchange *x, const struct http_answer *answer);
/* The answer follows later, by http_answer(). */
void http_wait(struct exchange *x);
/* Answers with a stream. read: as reader_read() in web/stream.h; after 0 it is called again by http_wake(). */
void http_stream(struct exchange *x, ssize_t (*read)(void *userdata, char *buffer, size_t size), void *userdata);
void http_wake(struct exchange *x);
