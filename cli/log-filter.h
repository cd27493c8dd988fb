/* SPDX-License-Identifier: MIT */
#pragma once

/* Runs that `berth logs` has heard of, found by id, and streams that they write to. */

#include <stdbool.h>

#include "base/name.h"

struct known { /* a run, or a stream */
    char id[ID_TEXT_SIZE];
    bool is_wanted; /* of the job */
    bool is_active, is_listed;
    char run[ID_TEXT_SIZE];        /* of a stream */
    struct known *before, *after; /* in the list */
};

struct known_runs {
    struct known *first; /* a list of those that are wanted and active */
    void *tree;          /* all, by id */
};

struct known *known_runs_find(const struct known_runs *runs, const char *id); /* NULL: not heard of */
struct known *known_runs_add(struct known_runs *runs, const char *id);        /* or finds it; NULL: out of memory */
void known_runs_set(struct known_runs *runs, struct known *known, bool is_wanted, bool is_active);
void known_runs_done(struct known_runs *runs);
