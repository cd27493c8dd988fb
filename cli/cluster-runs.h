/* SPDX-License-Identifier: MIT */
#pragma once

/* Runs of all hosts, from their claims. A run without pools has no claim and is left out. */

#include <jansson.h>
#include <stdbool.h>

/* If exactly one run has an id that begins with this word, prints its host on standard error and returns
 * true. */
bool cluster_runs_say_where(const char *word);
/* Calls io.berth.Pools (params: stolen) and checks that the reply has what these lists and explanations need. Returns 0, or an exit status
 * whose reason was printed. */
int cluster_runs_ask(json_t *params, json_t **ret);
/* *answer: of io.berth.Pools without names, which has 100 claims of each list. If that left some out, replaces it
 * by an answer with 1000 of each. Returns 0, or an exit status whose reason was printed. */
int cluster_runs_ask_more(json_t **answer, bool *ret_is_more);
