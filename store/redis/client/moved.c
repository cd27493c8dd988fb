/* SPDX-License-Identifier: MIT */

#include "store/redis/client/moved.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/number.h"

#define SLOTS 16384

/* Returns whether a host has only letters, digits and these: it reaches the resolver and messages. */
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

/* CRC-16/XMODEM, as the specification of Redis Cluster requires. */
static unsigned crc16(const char *text, size_t n) {
    unsigned crc = 0;

    for (size_t i = 0; i < n; i++) {
        crc ^= (unsigned) (unsigned char) text[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1) & 0xffff;
    }
    return crc;
}

unsigned moved_slot(const char *key) {
    const char *open = strchr(key, '{'), *close = open ? strchr(open, '}') : NULL;

    if (close && close > open + 1)
        return crc16(open + 1, (size_t) (close - open - 1)) % SLOTS;
    return crc16(key, strlen(key)) % SLOTS;
}
