/* SPDX-License-Identifier: MIT */
#include "store/redis/client/moved.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/number.h"

/* A host reaches the resolver and messages: it has letters, digits and these alone. */
static bool is_host(const char *text, size_t n) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:";

    return n < MOVED_HOST_SIZE && strspn(text, allowed) >= n;
}

int moved_parse(const char *error, struct moved *ret) {
    const char *host, *colon;
    uint64_t port;
    size_t n;

    if (strncmp(error, "MOVED ", strlen("MOVED ")) != 0)
        return -EBADMSG;
    host = strchr(error + strlen("MOVED "), ' ');
    colon = host ? strrchr(++host, ':') : NULL;
    if (!colon || number_parse(colon + 1, UINT16_MAX, &port) < 0 || port == 0)
        return -EBADMSG;
    n = (size_t) (colon - host);
    if (!is_host(host, n))
        return -EBADMSG;
    memcpy(ret->host, host, n);
    ret->host[n] = '\0';
    ret->port = (uint16_t) port;
    return 0;
}
