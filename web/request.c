/* SPDX-License-Identifier: MIT */
#include "web/request.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/text.h"

enum methods { READ, POST }; /* READ: GET, and HEAD except of a stream */

static const struct {
    const char *path;
    bool is_folder; /* a name follows */
    enum methods methods;
    enum route route;
} routes[] = {
    {"/", false, READ, ROUTE_PAGE},
    {"/berth.css", false, READ, ROUTE_STYLE},
    {"/berth.js", false, READ, ROUTE_SCRIPT},
    {"/icon.svg", false, READ, ROUTE_ICON},
    {"/plain", false, READ, ROUTE_PLAIN},
    {"/metrics", false, READ, ROUTE_METRICS},
    {"/healthz", false, READ, ROUTE_HEALTH},
    {"/api/1/overview", false, READ, ROUTE_OVERVIEW},
    {"/api/1/pools/", true, READ, ROUTE_POOL},
    {"/api/1/hosts", false, READ, ROUTE_HOSTS},
    {"/api/1/explain/", true, READ, ROUTE_EXPLAIN},
    {"/api/1/timeline", false, READ, ROUTE_TIMELINE},
    {"/api/1/stream", false, READ, ROUTE_STREAM},
    {"/api/1/user", false, READ, ROUTE_USER},
    {"/api/1/do", false, POST, ROUTE_DO},
    {"/api/1/login", false, POST, ROUTE_LOGIN},
    {"/api/1/logout", false, POST, ROUTE_LOGOUT},
};

static void refuse(struct verdict *v, unsigned status, const char *format, ...) _printf_(3, 4);
static void refuse(struct verdict *v, unsigned status, const char *format, ...) {
    va_list arguments;

    v->status = status;
    va_start(arguments, format);
    (void) vsnprintf(v->text, sizeof(v->text), format, arguments);
    va_end(arguments);
    text_make_printable(v->text); /* parts of it are from the request */
}

/* --- the host --- */

/* Returns the length of a host without its port. */
static size_t host_length(const char *host) {
    const char *end = host[0] == '[' ? strchr(host, ']') : NULL;

    return end ? (size_t) (end + 1 - host) : strcspn(host, ":");
}

static bool is_name(const char *host, size_t n, const char *name) {
    return strlen(name) == n && strncasecmp(host, name, n) == 0;
}

/* Returns whether the host is an address of 127.0.0.0/8 in its usual form. */
static bool is_loopback(const char *host, size_t n) {
    char text[INET_ADDRSTRLEN];
    struct in_addr address;

    if (n >= sizeof(text))
        return false;
    memcpy(text, host, n);
    text[n] = '\0';
    return inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

/* Returns whether a value of Host names loopback or one of the site's names; a port is not compared. */
static bool is_host_known(const struct site *site, const char *host) {
    size_t n = host_length(host);
    const char *port = host + n;

    if (n == 0 || (*port && (*port != ':' || strspn(port + 1, "0123456789") != strlen(port + 1))))
        return false;
    for (size_t i = 0; i < site->n_hosts; i++)
        if (is_name(host, n, site->hosts[i]))
            return true;
    return is_name(host, n, "localhost") || is_name(host, n, "[::1]") || is_loopback(host, n);
}

/* --- the page that sends the request --- */

/* Returns whether an Origin names the same host and port as Host. */
static bool is_same_origin(const char *origin, const char *host) {
    const char *authority = strstr(origin, "://");

    return authority && strcasecmp(authority + strlen("://"), host) == 0;
}

/* Refuses a request from a page of another site: it has the Origin of that site, and a form cannot send
 * JSON. */
static void judge_post(const struct request *q, struct verdict *v) {
    size_t n = q->content_type ? strcspn(q->content_type, "; \t") : 0;

    if (n != strlen("application/json") || strncasecmp(q->content_type, "application/json", n) != 0)
        refuse(v, 415, "this request must have Content-Type: application/json");
    else if (!q->x_berth || strcmp(q->x_berth, "1") != 0)
        refuse(v, 403, "this request lacks the header X-Berth: 1");
    else if (q->origin && !is_same_origin(q->origin, q->host))
        refuse(v, 403, "this request comes from another page (Origin %.120s)", q->origin);
    else if (q->fetch_site && strcmp(q->fetch_site, "same-origin") != 0)
        refuse(v, 403, "this request comes from another page (Sec-Fetch-Site %.40s)", q->fetch_site);
    else if (!q->fetch_site && !q->origin)
        refuse(v, 403, "this request has no Origin: the page that sent it is unknown");
}

static void judge_method(const struct site *site, const struct request *q, enum methods methods, struct verdict *v) {
    bool is_get = strcmp(q->method, "GET") == 0;
    bool is_head = strcmp(q->method, "HEAD") == 0 && v->route != ROUTE_STREAM;

    if (methods == READ && !is_get && !is_head)
        refuse(v, 405, "this path takes GET");
    else if (methods == READ && q->has_body)
        refuse(v, 415, "a GET takes no body");
    else if (methods == POST && strcmp(q->method, "POST") != 0)
        refuse(v, 405, "this path takes POST");
    else if (methods == POST && !site->has_actions)
        refuse(v, 403, "this server allows no actions: see berth-web(8), ACTIONS");
    else if (methods == POST)
        judge_post(q, v);
}

/* Returns the path below the prefix, or NULL. */
static const char *cut_prefix(const struct site *site, const char *path) {
    size_t n = strlen(site->prefix);

    if (n == 0 || strncmp(path, site->prefix, n) != 0)
        return n == 0 ? path : NULL;
    return path[n] == '/' ? path + n : NULL;
}

void request_judge(const struct site *site, const struct request *q, struct verdict *ret) {
    const char *path = cut_prefix(site, q->path);

    *ret = (struct verdict) {.status = 200, .rest = ""};
    if (!q->host || !is_host_known(site, q->host)) {
        refuse(ret, 421, "this server is not called \"%.120s\": --host adds a name", q->host ? q->host : "");
        return;
    }
    for (size_t i = 0; path && i < ELEMENTSOF(routes); i++) {
        size_t n = strlen(routes[i].path);

        if (routes[i].is_folder ? strncmp(path, routes[i].path, n) != 0 || !path[n]
                                : strcmp(path, routes[i].path) != 0)
            continue;
        ret->route = routes[i].route;
        if (site->metrics_only && ret->route != ROUTE_METRICS && ret->route != ROUTE_HEALTH)
            break;
        ret->rest = path + n;
        judge_method(site, q, routes[i].methods, ret);
        return;
    }
    refuse(ret, 404, "there is no such page");
}
