/* SPDX-License-Identifier: MIT */

/* URLs of a Redis. Nothing is percent-decoded, because characters that would need it are not allowed. */

#include "conf/redis-url.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "base/number.h"

#define LETTERS_AND_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define HOST_MAX 253 /* RFC 1035, section 2.3.4, as text without the last dot */

const char *redis_url_explain(int answer) {
    switch (answer) {
    case REDIS_URL_E_SCHEME:
        return "must begin with redis://, rediss:// or unix://";
    case REDIS_URL_E_USER:
        return "has a user that is not of A-Z a-z 0-9 . _ -; use the option username";
    case REDIS_URL_E_PASSWORD:
        return "must not hold a password; write it to a file, and name the file in password-file";
    case REDIS_URL_E_HOST:
        return "must name a host or an address, IPv6 in [ ]";
    case REDIS_URL_E_HOSTS:
        return "must name at most 16 hosts, with a comma between";
    case REDIS_URL_E_PORT:
        return "has a port that is not 1 to 65535";
    case REDIS_URL_E_DB:
        return "has a database that is not 0 to 65535";
    case REDIS_URL_E_PATH:
        return "must hold the socket's absolute path, at most 107 bytes: unix:///run/redis.sock";
    case REDIS_URL_E_QUERY:
        return "may have ?db=N after the path, nothing else";
    }
    return "is right";
}

/* Returns what follows the prefix, or NULL: the text does not begin with it. */
static const char *after(const char *text, const char *prefix) {
    size_t n = strlen(prefix);

    return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

static int parse_db(const char *text, unsigned *ret) {
    uint64_t db;

    if (number_parse(text, REDIS_DB_MAX, &db) < 0)
        return REDIS_URL_E_DB;
    *ret = (unsigned) db;
    return 0;
}

static int parse_port(const char *text, size_t n, uint16_t *ret) {
    char digits[6] = "";
    uint64_t port;

    if (n >= sizeof(digits))
        return REDIS_URL_E_PORT;
    memcpy(digits, text, n);
    if (number_parse(digits, UINT16_MAX, &port) < 0 || port == 0)
        return REDIS_URL_E_PORT;
    *ret = (uint16_t) port;
    return 0;
}

/* Parses what stands before '@': n bytes. */
static int parse_user(const char *text, size_t n, struct redis_url *url) {
    if (memchr(text, ':', n))
        return REDIS_URL_E_PASSWORD;
    if (n == 0 || strspn(text, LETTERS_AND_DIGITS "._-") != n)
        return REDIS_URL_E_USER;
    url->username = strndup(text, n);
    return url->username ? 0 : -ENOMEM;
}

bool redis_url_is_host(const char *text) {
    size_t length = strlen(text);
    struct in6_addr in6;

    if (inet_pton(AF_INET6, text, &in6) == 1)
        return true;
    return length > 0 && length <= HOST_MAX && strspn(text, LETTERS_AND_DIGITS ".-_") == length && text[0] != '-' &&
           text[0] != '.';
}

/* Parses host[:port] in n bytes. */
static int parse_address(const char *text, size_t n, char **ret_host, uint16_t *ret_port) {
    const char *host = text, *rest;
    size_t length;

    if (n > 0 && text[0] == '[') {
        const char *end = memchr(text, ']', n);
        char address[INET6_ADDRSTRLEN] = "";
        struct in6_addr in6;

        host++;
        length = end ? (size_t) (end - host) : 0;
        if (length == 0 || length >= sizeof(address))
            return REDIS_URL_E_HOST;
        memcpy(address, host, length);
        if (inet_pton(AF_INET6, address, &in6) != 1)
            return REDIS_URL_E_HOST;
        rest = end + 1;
    } else {
        length = strspn(text, LETTERS_AND_DIGITS ".-_");
        if (length == 0 || length > HOST_MAX || length > n || text[0] == '-' || text[0] == '.')
            return REDIS_URL_E_HOST;
        rest = host + length;
    }
    if (rest < text + n) {
        int r;

        if (*rest != ':')
            return REDIS_URL_E_HOST;
        rest++;
        r = parse_port(rest, (size_t) (text + n - rest), ret_port);
        if (r != 0)
            return r;
    }
    *ret_host = strndup(host, length);
    return *ret_host ? 0 : -ENOMEM;
}

int redis_url_get_host(const char *hosts, size_t i, char *ret_host, size_t size, uint16_t *ret_port) {
    char *host = NULL;
    int r;

    while (hosts && i-- > 0) {
        hosts = strchr(hosts, ',');
        hosts = hosts ? hosts + 1 : NULL;
    }
    if (!hosts)
        return -ENOENT;
    r = parse_address(hosts, strcspn(hosts, ","), &host, ret_port);
    if (r == 0)
        (void) snprintf(ret_host, size, "%s", host);
    free(host);
    return r;
}

/* Parses host[:port][,host[:port]...] in n bytes. */
static int parse_hosts(const char *text, size_t n, struct redis_url *url) {
    const char *comma = memchr(text, ',', n);
    size_t first = comma ? (size_t) (comma - text) : n;
    int r = parse_address(text, first, &url->host, &url->port);

    if (r != 0 || !comma)
        return r;
    url->others = strndup(comma + 1, n - first - 1);
    if (!url->others)
        return -ENOMEM;
    for (size_t i = 0; r == 0; i++) {
        char host[REDIS_HOST_SIZE];
        uint16_t port;

        r = redis_url_get_host(url->others, i, host, sizeof(host), &port);
        if (r == 0 && i + 2 > REDIS_HOSTS_MAX)
            r = REDIS_URL_E_HOSTS;
    }
    return r == -ENOENT ? 0 : r;
}

/* Parses [user@][host[:port][,...]][/db]. */
static int parse_network(const char *text, struct redis_url *url) {
    const char *slash = strchr(text, '/'), *at;
    size_t n = slash ? (size_t) (slash - text) : strlen(text);
    int r;

    /* The last '@' counts, so that no part of a password gets into a log as part of a host name. A password may hold a '/'. */
    at = strrchr(text, '@');
    if (at && at > text + n)
        return REDIS_URL_E_PASSWORD;
    url->port = REDIS_PORT_DEFAULT;
    if (at) {
        r = parse_user(text, (size_t) (at - text), url);
        if (r != 0)
            return r;
        n -= (size_t) (at + 1 - text);
        text = at + 1;
    }
    r = n > 0 ? parse_hosts(text, n, url) : 0;
    if (r == 0 && slash && slash[1] != '\0')
        r = parse_db(slash + 1, &url->db);
    return r;
}

/* Parses /path[?db=N]. */
static int parse_unix(const char *text, struct redis_url *url) {
    size_t n = strcspn(text, "?");
    const char *db;
    int r;

    if (text[0] != '/' || n < 2 || n >= sizeof(((struct sockaddr_un *) NULL)->sun_path))
        return REDIS_URL_E_PATH;
    if (text[n] == '?') {
        db = after(text + n, "?db=");
        if (!db)
            return REDIS_URL_E_QUERY;
        r = parse_db(db, &url->db);
        if (r != 0)
            return r;
    }
    url->unix_path = strndup(text, n);
    return url->unix_path ? 0 : -ENOMEM;
}

int redis_url_parse(const char *text, struct redis_url *ret) {
    struct redis_url url = {};
    const char *rest;
    int r;

    if ((rest = after(text, "unix://"))) {
        r = parse_unix(rest, &url);
    } else if ((rest = after(text, "redis://")) || (rest = after(text, "rediss://"))) {
        url.tls = text[5] == 's';
        r = parse_network(rest, &url);
    } else {
        r = REDIS_URL_E_SCHEME;
    }
    if (r != 0) {
        redis_url_done(&url);
        return r;
    }
    *ret = url;
    return 0;
}

void redis_url_done(struct redis_url *url) {
    free(url->unix_path);
    free(url->host);
    free(url->others);
    free(url->username);
    *url = (struct redis_url) {};
}
