/* SPDX-License-Identifier: MIT */
#pragma once

/* What the page shows now: the last picture of berthd, the latest events, and since when berthd has been
 * away. Makes JSON of them, whole or as the difference to the frame before. No text is longer than a frame
 * may be. */

#include <jansson.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define BOARD_EVENTS_MAX 60  /* on a new page */
#define BOARD_CLAIMS_MAX 200 /* holders, and waiting claims, of one pool */

struct board;

struct board_texts { /* from the command line; borrowed */
    const char *title; /* NULL: none */
    bool has_actions, has_login;
};

int board_new(struct board **ret, const struct board_texts *texts);
struct board *board_free(struct board *b);
DEFINE_CLEANUP(struct board, board_free)

/* --- input; arguments are borrowed --- */

void board_set_version(struct board *b, const json_t *version);
void board_set_picture(struct board *b, const json_t *picture); /* of io.berth.Look, with hosts */
void board_set_away(struct board *b, const char *why);
void board_add_event(struct board *b, const json_t *event);
void board_add_missed(struct board *b, json_int_t missed);

/* --- output; each returns an owned value, NULL: no memory (or no such pool) --- */

/* Return the whole board, or the changes since the frame before. Both may be cut: members *_more count what
 * is missing. */
json_t *board_overview(const struct board *b);
json_t *board_changes(const struct board *b);
/* Returns one pool with its claims. */
json_t *board_pool(const struct board *b, const char *name);
/* Return the events since the frame before (NULL: none), or the latest events. */
json_t *board_new_events(const struct board *b);
json_t *board_latest_events(const struct board *b);
/* Returns why berthd is away and since when, {"why", "since_ms"}; NULL: it is not away. */
json_t *board_gone(const struct board *b);
/* Return replies as from berthd: Pools of one pool (name NULL: of all, without claims), Hosts. NULL: nothing
 * is known, or no such pool. */
json_t *board_pools_reply(const struct board *b, const char *name);
json_t *board_hosts_reply(const struct board *b);

/* Ends a frame: further changes belong to the next one. */
void board_begin_frame(struct board *b);

/* Returns the age of the picture; USEC_INFINITY: none. */
usec_t board_age(const struct board *b);
/* Returns the pools of the picture (borrowed); NULL: none. */
const json_t *board_pools(const struct board *b);
