/* SPDX-License-Identifier: MIT */
#pragma once

/* Runs of all hosts, from their claims in the pools. Runs without pools have no claims and are left out. */

#include <jansson.h>
#include <stdbool.h>

/* pools: of io.berth.Pools. Returns an array (owned) of {"run", "name", "host", "state" ("waiting" or
 * "holding"), "pools" {name: permits}, "position" {name: place} of a waiting one, "wait_ms", "since"}, those
 * that wait first; NULL: no memory. A run that holds permits of its host alone and waits for others is
 * "waiting". */
json_t *cluster_runs(const json_t *pools);
/* Returns whether all claims are listed. A pool lists at most 100 holders and 100 waiting claims. */
bool cluster_is_complete(const json_t *pools);

/* Prints on standard error where the only run is whose id begins with this word. Returns whether there is
 * one. */
bool cluster_say_where(const char *word);
