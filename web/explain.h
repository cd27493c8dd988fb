/* SPDX-License-Identifier: MIT */
#pragma once

/* Why a claim waits, and when it probably starts, as in `berth explain --json`. Long queues get no estimate, so
 * that nobody can keep berth-web busy. */

#include <jansson.h>
#include <systemd/sd-event.h>

#include "web/board.h"

struct explain;

/* answer: owned by the callee; NULL: berthd did not answer, why has the reason. Called once, and frees the explain afterwards. */
typedef void (*explain_fn)(json_t *answer, const char *why, void *userdata);

/* Begins to explain the claim with this id. 0: fn follows; 1: *ret_answer (owned) has the answer; -ENOENT: the board lists no such
 * claim; -EBUSY: too many requests; another negative errno. */
int explain_new(struct explain **ret, json_t **ret_answer, sd_event *event, const struct board *board, const char *claim,
                explain_fn fn, void *userdata);
/* Cancels it: fn is not called. */
struct explain *explain_free(struct explain *e);
