/* SPDX-License-Identifier: MIT */
#pragma once

/* hello opens or continues the session and declares limits. */

#include <stdbool.h>

#include "base/clock.h"

struct store_redis;

struct hello {
    usec_t sent;      /* boottime of the last one */
    bool must_be_known; /* the last one asked Redis to refuse a session that is not there */
    bool declare_due; /* limits changed since, or could not be sent */
    char refused[24]; /* the last refusal, logged already; "": not refused */
};

void hello_send(struct store_redis *store);
/* Forgets a refusal. */
void hello_reset(struct store_redis *store);
bool hello_is_of_another_namespace(const struct store_redis *store);
bool hello_is_refused(const struct store_redis *store);
/* Sends changed declared limits, now or as soon as the link is live. */
void hello_declare(struct store_redis *store);
/* Sends limits that hello_declare() could not. */
void hello_declare_due(struct store_redis *store);
