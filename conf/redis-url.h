/* SPDX-License-Identifier: MIT */
#pragma once

/* The URL of a Redis: redis://[user@][host[:port][,host[:port]...]][/db], rediss://..., unix:///path[?db=N].
 * Without a host, sentinels name it. */

#include <inttypes.h>
#include <stdbool.h>

#include "base/cleanup.h"

#define REDIS_PORT_DEFAULT 6379
#define REDIS_SENTINEL_PORT_DEFAULT 26379
#define REDIS_DB_MAX 65535
#define REDIS_HOSTS_MAX 16
#define REDIS_HOST_SIZE 256 /* of the longest valid host, with its NUL */

struct redis_url {
    bool tls;
    char *unix_path; /* or NULL */
    char *host;      /* or NULL; an IPv6 address without its brackets */
    uint16_t port;   /* 0: a unix socket */
    char *others;    /* "host[:port],...", the hosts after the first; or NULL */
    unsigned db;
    char *username; /* or NULL */
};

enum { /* named answers of redis_url_parse() */
    REDIS_URL_E_SCHEME = 1,
    REDIS_URL_E_USER,
    REDIS_URL_E_PASSWORD,
    REDIS_URL_E_HOST,
    REDIS_URL_E_HOSTS,
    REDIS_URL_E_PORT,
    REDIS_URL_E_DB,
    REDIS_URL_E_PATH,
    REDIS_URL_E_QUERY,
};

/* 0 (the caller calls redis_url_done()), a REDIS_URL_E_* or -ENOMEM (ret is untouched). */
int redis_url_parse(const char *text, struct redis_url *ret);
/* Returns, for an error text, what is wrong and what to write instead. */
const char *redis_url_explain(int answer);
/* Returns whether a text is a host name or a numeric address, IPv6 without brackets. */
bool redis_url_is_host(const char *text);
/* Finds host number i, from 0, of "host[:port],...". hosts may be NULL. *ret_port stays as it is if the text
 * has no port. 0, -ENOENT: there are not so many hosts; a REDIS_URL_E_* or -ENOMEM. */
int redis_url_get_host(const char *hosts, size_t i, char *ret_host, size_t size, uint16_t *ret_port);
void redis_url_done(struct redis_url *url);
