/* SPDX-License-Identifier: MIT */
#pragma once

/* The runs of which `berth logs` has read, found by id, and the streams that they write to. */

#include <stdbool.h>

#include "base/list.h"
#include "base/name.h"

struct log_source { /* a run or a stream */
    struct list link;       /* on log_index.active */
    char id[ID_TEXT_SIZE];
    char run[ID_TEXT_SIZE]; /* of a stream */
    char machine[ID_TEXT_SIZE]; /* of a run that has begun */
    bool is_wanted;         /* a run of the job */
    bool is_active;         /* has begun and is not over */
};

struct log_index {
    struct list active; /* struct log_source: those that are wanted and active */
    void *tree;         /* all, by id */
};

void log_index_init(struct log_index *f);
void log_index_done(struct log_index *f);
/* Returns NULL if the id is not known. */
struct log_source *log_index_find(const struct log_index *f, const char *id);
/* Finds or adds; NULL: out of memory. */
struct log_source *log_index_add(struct log_index *f, const char *id);
void log_index_set(struct log_index *f, struct log_source *source, bool is_wanted, bool is_active);
