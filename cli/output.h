/* SPDX-License-Identifier: MIT */
#pragma once

/* Results on standard output: JSON as berthd sent it, or a table. An int is 0, or EXIT_INTERNAL
 * after an error message. */

#include <jansson.h>

#include "cli/table.h"

/* document: has "schema" already. */
int output_json(const json_t *document);
/* nothing: printed on standard error if the table is empty. */
int output_table(struct table *t, const char *nothing);
/* Prints a table with a line for each item. */
int output_items(const json_t *items, const struct table_column *columns, size_t n,
                 void (*add)(struct table *t, const json_t *item), const char *nothing);
/* Adds a cell with the time since the host of an item was last seen. */
void output_seen(struct table *t, const json_t *item);
/* Returns after which time a host counts as silent, by a reply of Pools or Hosts; INT64_MAX: the lease is not known. */
json_int_t output_silent_ms(const json_t *reply);
/* Prints a negative errno. Returns EXIT_INTERNAL. */
int output_error(int error);
/* Prints on standard error what restricts a reply of Pools, Hosts, Jobs or Runs: Redis is away, grace
 * period... */
void output_caveats(const json_t *reply);
/* A whole verb whose only option is --json: calls a method without parameters and prints its reply. */
int output_reply(int argc, char **argv, const char *method, int (*print)(const json_t *reply));
