/* SPDX-License-Identifier: MIT */
#pragma once

/* Runs of all hosts, from their claims. A run without pools has no claim and is left out. */

#include <jansson.h>
#include <stdbool.h>

/* If exactly one run has an id that begins with this word, prints its host on standard error and returns
 * true. */
bool cluster_runs_say_where(const char *word);
