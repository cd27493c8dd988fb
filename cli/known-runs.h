/* SPDX-License-Identifier: MIT */
#pragma once

/* Runs that `berth logs` has heard of, found by id, and streams that they write to. */

#include <stdbool.h>

#include "base/name.h"

struct known { /* a run, or a stream */
    char id[ID_TEXT_SIZE];
    bool is_wanted; /* of the job */
    bool is_active;
    char run[ID_TEXT_SIZE]; /* of a stream */
    struct known *next;
};

struct known_runs {
    struct known *first; /* newest first */
    void *tree;          /* the same by id */
};

struct known *known_runs_find(const struct known_runs *runs, const char *id); /* NULL: not heard of */
struct known *known_runs_add(struct known_runs *runs, const char *id);        /* or finds it; NULL: out of memory */
void known_runs_done(struct known_runs *runs);
