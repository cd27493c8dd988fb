/* SPDX-License-Identifier: MIT */
#pragma once

/* What the page shows now: the last picture of berthd, the latest events, and since when berthd is away. It makes JSON of
 * them, whole or as the difference to the picture before. No text is longer than a frame may be. */

#include <jansson.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define BOARD_EVENTS_MAX 60  /* that a new page shows */
#define BOARD_CLAIMS_MAX 200 /* holders, and waiting claims, of one pool */

struct board;

struct board_texts { /* what the command line says; borrowed */
    const char *title; /* NULL: none */
    bool has_actions, has_login;
};

int board_new(struct board **ret, const struct board_texts *texts);
struct board *board_free(struct board *b);
DEFINE_CLEANUP(struct board, board_free)

/* --- what is new; arguments are borrowed --- */

void board_set_version(struct board *b, const json_t *version);
void board_set_picture(struct board *b, const json_t *picture); /* of io.berth.Look, with hosts */
void board_set_away(struct board *b, const char *why);
void board_add_event(struct board *b, const json_t *event);
void board_add_missed(struct board *b, json_int_t missed);

/* --- what is shown; each returns an owned value, NULL: no memory (or no such pool) --- */

/* The whole board, or only what has changed since the frame before. Both may be cut: members that end in _more count what is missing. */
json_t *board_overview(const struct board *b);
json_t *board_changes(const struct board *b);
/* One pool with its claims. */
json_t *board_pool(const struct board *b, const char *name);
/* Events since the frame before, or the latest. */
json_t *board_new_events(const struct board *b);
json_t *board_latest_events(const struct board *b);
/* Why berthd is away and since when, {"why", "since_ms"}; NULL: it is there. */
json_t *board_gone(const struct board *b);
/* As berthd answered: Pools of one pool (NULL: of all, without claims), Hosts. NULL: nothing is known, or no such pool. */
json_t *board_pools_reply(const struct board *b, const char *name);
json_t *board_hosts_reply(const struct board *b);

/* What changes from now on belongs to the next frame. */
void board_begin_frame(struct board *b);

bool board_is_away(const struct board *b);
usec_t board_age(const struct board *b); /* of the picture; USEC_INFINITY: no picture */
/* Borrowed; NULL: none. */
const json_t *board_pools(const struct board *b);
