/* SPDX-License-Identifier: MIT */
#pragma once

/* Words that name runs: a job's name or a label, else the first digits of a run's id. A name takes
 * precedence over an id. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/name.h"

/* --- some runs of a list --- */

/* Returns whether the word is the name, or the template of the instance `name`. */
bool choice_is_name(const char *word, const char *name);

struct choice {
    char **words;
    size_t n;
    unsigned char *matches; /* of each word: IS_NAME, IS_ID */
};

/* words: borrowed; none: all runs. Negative errno. */
int choice_new(struct choice *ret, char **words, size_t n);
void choice_done(struct choice *c);
/* Must be called for each run of the list before the next two. */
void choice_see(struct choice *c, const char *run, const char *name);
/* Returns a word that no run matches, or NULL. */
const char *choice_missing(const struct choice *c);
bool choice_has(const struct choice *c, const char *run, const char *name);

/* --- one run --- */

/* Returns whether a word that names nothing has digits of an id, and too few. */
bool choice_is_short_id(const char *word);

#define CANDIDATES_SHOWN 8

struct candidates {
    size_t n; /* may exceed CANDIDATES_SHOWN */
    struct candidate {
        char run[ID_TEXT_SIZE], name[NAME_MAX_LENGTH + 1];
    } items[CANDIDATES_SHOWN];
};

/* Adds a run that a word may mean, unless it is there already. */
void candidates_add(struct candidates *c, const char *run, const char *name);
/* Prints that a word is ambiguous. Returns EXIT_UNKNOWN_NAME. */
int candidates_explain(const struct candidates *c, const char *word);
