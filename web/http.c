/* SPDX-License-Identifier: MIT */
#include "web/http-internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define CONNECTIONS_MAX 1024 /* of one listener; more wait in its queue */
#define BACKLOG 128
#define MEMORY 8192u /* bytes of one connection */
#define SEND_BUFFER (32 * 1024) /* bytes in the kernel */
#define QUIET_SECONDS 30u       /* after which a client that neither reads nor sends is gone */
#define REQUEST_TIME (10 * USEC_PER_SEC)
#define SWEEP_TIME USEC_PER_SEC
#define COOKIE "berth-session"

/* --- the loop --- */

static void run(void *userdata) {
    struct http *h = userdata;
    usec_t next = USEC_INFINITY;

    for (size_t i = 0; i < h->n_servers; i++) {
        MHD_UNSIGNED_LONG_LONG msec;

        (void) MHD_run(h->servers[i].daemon);
        if (MHD_get_timeout(h->servers[i].daemon, &msec) == MHD_YES && msec * USEC_PER_MSEC < next)
            next = msec * USEC_PER_MSEC;
    }
    if (next == USEC_INFINITY)
        timer_off(&h->run);
    else
        timer_set_in(&h->run, next);
}

static int on_io(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
    run(((struct server *) userdata)->http);
    return 0;
}

/* Ends connections past their deadline. libmicrohttpd ends silent ones, but not one that sends a byte now
 * and then. */
static void sweep(void *userdata) {
    struct http *h = userdata;
    usec_t now = clock_boottime();

    list_foreach(p, &h->peers, struct peer, link)
        if (now > p->deadline) {
            p->deadline = USEC_INFINITY;
            (void) shutdown(p->fd, SHUT_RDWR);
        }
    timer_set_in(&h->sweep, SWEEP_TIME);
}

/* --- connections --- */

static void on_connection(void *userdata, struct MHD_Connection *connection, void **context,
                          enum MHD_ConnectionNotificationCode code) {
    struct server *server = userdata;
    const union MHD_ConnectionInfo *info;
    struct peer *p;
    int size = SEND_BUFFER;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        p = *context;
        if (p)
            list_unlink(&p->link);
        free(p);
        return;
    }
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    p = info ? calloc(1, sizeof(*p)) : NULL;
    *context = p;
    if (!p)
        return;
    p->fd = info->connect_fd;
    p->deadline = usec_add(clock_boottime(), REQUEST_TIME);
    (void) setsockopt(p->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    list_append(&server->http->peers, &p->link);
}

static const char *header(const struct exchange *x, const char *name) {
    return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

/* --- requests --- */

static void refuse(struct exchange *x, unsigned status, const char *text) {
    char line[REQUEST_TEXT_SIZE + 1];
    int n = snprintf(line, sizeof(line), "%s\n", text);
    const struct http_answer a = {.status = status,
                                  .type = "text/plain; charset=utf-8",
                                  .body = line,
                                  .n_body = (size_t) n,
                                  .allow = status != 405                        ? NULL
                                           : x->verdict.route >= ROUTE_DO ? "POST"
                                                                                : "GET, HEAD"};

    http_answer(x, &a);
}

static struct peer *peer_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

/* Begins an exchange after its headers. Returns it with a verdict; NULL: no memory. */
static struct exchange *begin(struct server *server, struct MHD_Connection *connection, const char *path,
                              const char *method) {
    struct exchange *x = calloc(1, sizeof(*x));
    struct request q = {.method = method, .path = path};
    const char *length;

    if (!x)
        return NULL;
    list_init(&x->waiting);
    x->server = server;
    x->connection = connection;
    x->peer = peer_of(connection);
    q.host = header(x, MHD_HTTP_HEADER_HOST);
    q.origin = header(x, "Origin");
    q.fetch_site = header(x, "Sec-Fetch-Site");
    q.content_type = header(x, MHD_HTTP_HEADER_CONTENT_TYPE);
    q.x_berth = header(x, "X-Berth");
    length = header(x, MHD_HTTP_HEADER_CONTENT_LENGTH);
    q.has_body = header(x, MHD_HTTP_HEADER_TRANSFER_ENCODING) || (length && strcmp(length, "0") != 0);
    request_judge(&server->http->site, &q, &x->verdict);
    if (x->verdict.status == 200 && length && strtoull(length, NULL, 10) > REQUEST_BODY_MAX) {
        x->verdict.status = 413;
        (void) snprintf(x->verdict.text, sizeof(x->verdict.text), "a body has at most %d bytes", REQUEST_BODY_MAX);
    }
    return x;
}

/* Returns false if the body is too long, or without memory. */
static bool add_body(struct exchange *x, const char *data, size_t size) {
    char *body;

    if (x->n_body + size > REQUEST_BODY_MAX)
        return false;
    body = realloc(x->body, x->n_body + size + 1);
    if (!body)
        return false;
    memcpy(body + x->n_body, data, size);
    x->body = body;
    x->n_body += size;
    x->body[x->n_body] = '\0';
    return true;
}

/* Passes a whole request to the handler. */
static void hand_over(struct exchange *x) {
    const struct http *h = x->server->http;
    const char *pool = MHD_lookup_connection_value(x->connection, MHD_GET_ARGUMENT_KIND, "pool");
    const struct http_request request = {
        .route = x->verdict.route,
        .rest = x->verdict.rest,
        .pool = pool ? pool : "",
        .user = x->server->is_unix && h->site.user_header ? header(x, h->site.user_header) : NULL,
        .session = MHD_lookup_connection_value(x->connection, MHD_COOKIE_KIND, COOKIE),
        .etag = header(x, MHD_HTTP_HEADER_IF_NONE_MATCH),
        .accept = header(x, MHD_HTTP_HEADER_ACCEPT),
        .body = x->body ? x->body : "",
        .n_body = x->n_body};

    if (x->peer)
        x->peer->deadline = usec_add(clock_boottime(), ANSWER_TIME);
    x->is_handed_over = true;
    h->handler.on_request(x, &request, h->handler.userdata);
}

/* Called after the headers, with each piece of a body, at the end, and again after http_wake(). */
static enum MHD_Result on_access(void *userdata, struct MHD_Connection *connection, const char *url,
                                 const char *method, _unused_ const char *version, const char *data, size_t *size,
                                 void **context) {
    struct exchange *x = *context;

    if (!x) {
        *context = x = begin(userdata, connection, url, method);
        if (x && x->verdict.status != 200)
            refuse(x, x->verdict.status, x->verdict.text);
        return x ? MHD_YES : MHD_NO;
    }
    if (*size > 0) {
        if (!x->is_answered && !add_body(x, data, *size)) /* the rest is read and dropped */
            x->verdict.status = 413;
        *size = 0;
        return MHD_YES;
    }
    if (x->response)
        return answer_queue(x, x->status, steal_pointer(&x->response));
    if (x->is_answered || x->is_handed_over)
        return MHD_YES;
    if (x->verdict.status != 200)
        refuse(x, x->verdict.status, "the body is too long");
    else
        hand_over(x);
    return MHD_YES;
}

static void on_completed(void *userdata, _unused_ struct MHD_Connection *connection, void **context,
                         _unused_ enum MHD_RequestTerminationCode code) {
    struct http *h = ((struct server *) userdata)->http;
    struct exchange *x = *context;

    *context = NULL;
    if (!x)
        return;
    if (x->peer) /* for the next request of this connection */
        x->peer->deadline = usec_add(clock_boottime(), REQUEST_TIME);
    if (x->is_handed_over)
        h->handler.on_end(x, h->handler.userdata);
    list_unlink(&x->waiting);
    if (x->response)
        MHD_destroy_response(x->response);
    free(x->body);
    free(x);
}

/* --- begin and end --- */

static void on_log(_unused_ void *userdata, _unused_ const char *format, _unused_ va_list arguments) {
    /* Messages of libmicrohttpd concern single clients. */
}

int http_new(struct http **ret, sd_event *event, const struct site *site, const struct http_handler *handler) {
    _cleanup_(http_freep) struct http *h = calloc(1, sizeof(*h));
    int r;

    if (!h)
        return -ENOMEM;
    list_init(&h->peers);
    list_init(&h->waiting);
    h->event = sd_event_ref(event);
    h->site = *site;
    h->handler = *handler;
    r = timer_init(&h->run, event, SD_EVENT_PRIORITY_NORMAL, run, h);
    if (r == 0)
        r = timer_init(&h->sweep, event, SD_EVENT_PRIORITY_NORMAL, sweep, h);
    if (r < 0)
        return r;
    timer_set_in(&h->sweep, SWEEP_TIME);
    *ret = steal_pointer(&h);
    return 0;
}

int http_listen(struct http *h, int fd, bool is_unix) {
    struct server *server = &h->servers[h->n_servers];
    const union MHD_DaemonInfo *info;
    int r;

    if (h->n_servers == LISTENERS_MAX) {
        close_fd(fd);
        return -E2BIG;
    }
    *server = (struct server) {.http = h, .is_unix = is_unix};
    server->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_access, server,
        MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_LISTEN_BACKLOG_SIZE,
        (unsigned) BACKLOG, MHD_OPTION_CONNECTION_LIMIT, (unsigned) CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) MEMORY, MHD_OPTION_CONNECTION_TIMEOUT, QUIET_SECONDS,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, server, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (!server->daemon) {
        close_fd(fd);
        return -EIO;
    }
    info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    r = info ? sd_event_add_io(h->event, &server->source, info->epoll_fd, EPOLLIN, on_io, server) : -EIO;
    if (r < 0) {
        MHD_stop_daemon(server->daemon);
        return r;
    }
    h->n_servers++;
    timer_set_in(&h->run, 0);
    return 0;
}

struct http *http_free(struct http *h) {
    if (!h)
        return NULL;
    while (!list_is_empty(&h->waiting)) /* libmicrohttpd cannot stop with suspended connections */
        http_wake(list_first(&h->waiting, struct exchange, waiting));
    for (size_t i = 0; i < h->n_servers; i++) {
        sd_event_source_disable_unref(h->servers[i].source);
        MHD_stop_daemon(h->servers[i].daemon);
    }
    timer_done(&h->run);
    timer_done(&h->sweep);
    sd_event_unref(h->event);
    free(h);
    return NULL;
}
