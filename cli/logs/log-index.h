/* SPDX-License-Identifier: MIT */
#pragma once

/* The runs whose events `berth logs` has read, found by id. */

#include <stdbool.h>

#include "base/name.h"

struct log_run {
    char id[ID_TEXT_SIZE];
    char job[NAME_MAX_LENGTH + 1];
    bool is_wanted; /* a run of the job */
};

struct log_index {
    void *tree; /* struct log_run */
};

void log_index_done(struct log_index *f);
/* Returns NULL if the id is not known. */
struct log_run *log_index_find(const struct log_index *f, const char *id);
/* Finds or adds; NULL: out of memory. */
struct log_run *log_index_add(struct log_index *f, const char *id);
