/* SPDX-License-Identifier: MIT */
#pragma once

/* Explained runs: why each waits, behind whom, until when, and what would start it (berth(1), `berth explain --json`). Made of what
 * berthd replies: this asks nothing. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Returns the name of a member that an io.berth.Run must have and lacks; NULL: none. */
const char *explained_missing(const json_t *run);
/* Returns an explained run with what is known of the run, an io.berth.Run or an item of claims_as_runs(); NULL: no memory. */
json_t *explained_new(const json_t *run, const char *host);
/* Adds the pools that must be known to explain a list of runs, as keys: those that the runs want, and those whose claims may keep them
 * waiting. pools: of io.berth.Pools. -1: no memory. */
int explained_add_pools(json_t *names, const json_t *list, const json_t *pools);
/* Adds reasons, estimates (if they are wanted) and commands to each run of the list. answer: of io.berth.Pools for those pools, with
 * "usual"; NULL: they want none. most: how many claims "ahead" and "starts" list; the others are counted (reason.h). Negative: no
 * memory. */
int explained_fill(json_t *list, const json_t *answer, bool estimates, size_t most);
