/* SPDX-License-Identifier: MIT */
#pragma once

/* Resolves a host name without blocking the event loop: getaddrinfo(3) runs in a child process. */

#include <arpa/inet.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define RESOLVE_ADDRESS_SIZE INET6_ADDRSTRLEN
#define RESOLVE_ADDRESSES_MAX 8

struct redis_addresses { /* numeric, in the resolver's order (RFC 6724) */
    size_t n;
    char items[RESOLVE_ADDRESSES_MAX][RESOLVE_ADDRESS_SIZE];
    char why[64]; /* there are none: the resolver's reason, or that it did not answer in time */
};

struct redis_resolve;

/* Called once, never from inside a call. The owner frees the resolver, also inside this call; the addresses are valid
 * until then. */
typedef void (*redis_resolve_fn)(const struct redis_addresses *addresses, void *userdata);

/* Returns whether a text is a numeric address. */
bool redis_resolve_is_address(const char *host);
/* 0 or a negative errno. */
int redis_resolve_new(struct redis_resolve **ret, sd_event *event, const char *host, usec_t timeout_usec, redis_resolve_fn fn,
                      void *userdata);
struct redis_resolve *redis_resolve_free(struct redis_resolve *resolve);
