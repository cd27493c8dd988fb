/* SPDX-License-Identifier: MIT */
#pragma once

/* Runs of all hosts, from their claims in the pools. Runs without pools have no claims and are left out. */

#include <jansson.h>
#include <stdbool.h>

/* Returns the name of a member that a Pool, or a claim in it, must have and lacks; NULL: none. With such pools
 * no other function of base/explain may be called. */
const char *claims_missing(const json_t *pools);
/* pools: of io.berth.Pools. Returns an array (owned) of {"run", "name", "host", "state" ("waiting" or
 * "holding"), "pools" {name: permits}, "position" {name: place} of a waiting run, "wait_ms", "since"};
 * waiting runs come first; NULL: no memory. A run that holds permits of a host pool and waits for others is
 * "waiting". */
json_t *claims_as_runs(const json_t *pools);
/* Returns whether all claims are listed. A pool lists at most 100 holders and 100 waiting claims. */
bool claims_are_complete(const json_t *pools);
