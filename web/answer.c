/* SPDX-License-Identifier: MIT */
#include "web/http-internal.h"

#include <sys/socket.h>

#define STREAM_BLOCK 4096

/* The page may contact only this server. No other site may embed it or read from it. */
static const char *const headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

static void add_headers(struct MHD_Response *response, const struct http_answer *a) {
    for (size_t i = 0; i < ELEMENTSOF(headers); i++)
        (void) MHD_add_response_header(response, headers[i][0], headers[i][1]);
    (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, a->type);
    (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, a->etag ? "no-cache" : "no-store");
    if (a->etag)
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, a->etag);
    if (a->cookie)
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_SET_COOKIE, a->cookie);
    if (a->allow)
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, a->allow);
}

enum MHD_Result answer_queue(struct exchange *x, unsigned status, struct MHD_Response *response) {
    enum MHD_Result result = response ? MHD_queue_response(x->connection, status, response) : MHD_NO;

    x->is_answered = true;
    if (response)
        MHD_destroy_response(response);
    if (result == MHD_NO && x->peer)
        (void) shutdown(x->peer->fd, SHUT_RDWR);
    return result;
}

void http_wake(struct exchange *x) {
    if (!list_is_linked(&x->waiting))
        return;
    list_unlink(&x->waiting);
    MHD_resume_connection(x->connection);
    timer_set_in(&x->server->http->run, 0);
}

void http_wait(struct exchange *x) {
    list_append(&x->server->http->waiting, &x->waiting);
    MHD_suspend_connection(x->connection);
}

void http_answer(struct exchange *x, const struct http_answer *a) {
    enum MHD_ResponseMemoryMode mode = a->is_static ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY;
    struct MHD_Response *response = MHD_create_response_from_buffer(a->n_body, (void *) a->body, mode);

    if (response)
        add_headers(response, a);
    if (x->peer)
        x->peer->deadline = usec_add(clock_boottime(), ANSWER_TIME);
    if (!list_is_linked(&x->waiting)) {
        (void) answer_queue(x, a->status, response);
        return;
    }
    x->response = response;
    x->status = a->status;
    http_wake(x);
}

static ssize_t on_read(void *userdata, _unused_ uint64_t position, char *buffer, size_t size) {
    struct exchange *x = userdata;
    ssize_t n = x->read(x->read_userdata, buffer, size);

    if (n < 0)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (n == 0)
        http_wait(x);
    return n;
}

void http_stream(struct exchange *x, ssize_t (*read)(void *userdata, char *buffer, size_t size), void *userdata) {
    const struct http_answer a = {.type = "text/event-stream"};
    struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, on_read, x, NULL);

    x->read = read;
    x->read_userdata = userdata;
    if (x->peer)
        x->peer->deadline = USEC_INFINITY; /* frames have their own time limit */
    if (response) {
        add_headers(response, &a);
        (void) MHD_add_response_header(response, "X-Accel-Buffering", "no"); /* nginx passes on each frame */
    }
    (void) answer_queue(x, MHD_HTTP_OK, response);
}

void exchange_set_data(struct exchange *x, void *data) {
    x->data = data;
}

void *exchange_data(const struct exchange *x) {
    return x->data;
}
