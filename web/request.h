/* SPDX-License-Identifier: MIT */
#pragma once

/* Which requests are served. Pure: texts of a request in, a route or a refusal out. */

#include <stdbool.h>
#include <stddef.h>

#define REQUEST_TEXT_SIZE 256
#define REQUEST_HOSTS_MAX 16
#define REQUEST_BODY_MAX 4096 /* bytes */

enum route {
    ROUTE_PAGE,
    ROUTE_STYLE,
    ROUTE_SCRIPT,
    ROUTE_ICON,
    ROUTE_PLAIN,
    ROUTE_OVERVIEW,
    ROUTE_POOL, /* rest: the pool's name */
    ROUTE_HOSTS,
    ROUTE_EXPLAIN, /* rest: the claim */
    ROUTE_TIMELINE,
    ROUTE_STREAM,
    ROUTE_METRICS,
    ROUTE_HEALTH,
    ROUTE_USER,
    ROUTE_DO,
    ROUTE_LOGIN,
    ROUTE_LOGOUT,
};

struct site { /* options of this server */
    const char *hosts[REQUEST_HOSTS_MAX]; /* names besides those of loopback */
    size_t n_hosts;
    const char *prefix; /* "/berth", or "" */
    const char *user_header; /* NULL: none */
    bool has_actions;
    bool metrics_only;
};

struct request { /* NULL: the header is missing */
    const char *method;
    const char *path; /* decoded, without the query */
    const char *host, *origin, *fetch_site, *content_type, *x_berth;
    bool has_body;
};

struct verdict {
    unsigned status; /* 200: go on; else `text` has the reason */
    enum route route;
    const char *rest; /* of the path */
    char text[REQUEST_TEXT_SIZE];
};

/* Decides about a request from its headers alone. */
void request_judge(const struct site *site, const struct request *request, struct verdict *ret);
