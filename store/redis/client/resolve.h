/* SPDX-License-Identifier: MIT */
#pragma once

/* A host's name to its address without blocking the event loop: getaddrinfo(3) runs in a child process of its own. */

#include <arpa/inet.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define RESOLVE_ADDRESS_SIZE INET6_ADDRSTRLEN

struct redis_resolve;

/* address: numeric, IPv4 before IPv6; NULL: there is none, or not in time. Called once, never from inside a call. To be freed by
 * the owner, which it may do inside. */
typedef void (*redis_resolve_fn)(const char *address, void *userdata);

/* Whether a text is an address already. */
bool redis_resolve_is_address(const char *host);
/* 0 or a negative errno. */
int redis_resolve_new(struct redis_resolve **ret, sd_event *event, const char *host, usec_t timeout_usec, redis_resolve_fn fn,
                      void *userdata);
struct redis_resolve *redis_resolve_free(struct redis_resolve *r);
