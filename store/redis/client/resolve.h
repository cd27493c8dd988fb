/* SPDX-License-Identifier: MIT */
#pragma once

/* Resolves a host name without blocking the event loop: getaddrinfo(3) runs in a child process. */

#include <arpa/inet.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define RESOLVE_ADDRESS_SIZE INET6_ADDRSTRLEN

struct redis_resolve;

/* address: numeric, IPv4 before IPv6; NULL: none, or not in time. Called once, never from inside a call. The owner frees the resolver,
 * also inside this call. */
typedef void (*redis_resolve_fn)(const char *address, void *userdata);

/* Returns whether a text is a numeric address. */
bool redis_resolve_is_address(const char *host);
/* 0 or a negative errno. */
int redis_resolve_new(struct redis_resolve **ret, sd_event *event, const char *host, usec_t timeout_usec, redis_resolve_fn fn,
                      void *userdata);
struct redis_resolve *redis_resolve_free(struct redis_resolve *resolve);
