/* SPDX-License-Identifier: MIT */
#pragma once

/* Facts that berthd sends about a run: its trigger, which attempt it is, and the run that a hook was started
 * for. The command gets each fact as a variable of its environment. Only the fields in the table of
 * runner/facts.c become variables, and no fact reaches a path or an argument. */

#include <stdint.h>

#include "base/message.h"

#define FACTS_MAX 26
#define FACTS_SIZE 3072 /* of all values, each with its NUL */

struct facts {              /* may be copied */
    uint16_t at[FACTS_MAX]; /* offset of each value in the text; 0: the fact is not known */
    uint16_t size;          /* of the text, whose first byte belongs to no value; 0: no fact is known */
    char text[FACTS_SIZE];
};

/* Reads the facts of a message and ignores other fields. Returns 0, or -EBADMSG: a value is not of its kind,
 * or the values together are too long. */
int facts_parse(struct facts *ret, const struct message *m);
/* Adds the known facts, under the names of their fields. */
void facts_put(const struct facts *f, struct message_writer *w);
/* Calls `each` with the variable and the value of each known fact until one call does not return 0. Returns
 * what the last call returned. */
int facts_each(const struct facts *f, int (*each)(const char *variable, const char *value, void *userdata),
               void *userdata);
