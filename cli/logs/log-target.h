/* SPDX-License-Identifier: MIT */
#pragma once

/* What `berth logs` was asked for: jobs, templates and runs. */

#include <stdbool.h>

#include "base/journal/journal-read.h"
#include "cli/choice.h"

struct log_target {
    const char *name;  /* as it was typed; borrowed */
    const char *run;   /* NULL: all runs of the job; of the struct, or the name */
    bool is_undecided; /* the name of a job, or the first digits of a run */
    bool has_any;      /* the journal has an event or a line of it */
    bool is_over;      /* a run that has ended */
    struct candidates candidates;
};

struct log_targets {
    struct log_target *items;
    size_t n;
    const char *unit; /* of berthd; borrowed */
};

/* names, unit: borrowed. -ENOMEM. */
int log_targets_new(struct log_targets *ret, char **names, size_t n, const char *unit);
void log_targets_done(struct log_targets *t);

/* Adds the lines of processes that had ended to those that match. Must be the last that adds matches.
 * Negative errno. */
int log_targets_match(const struct log_targets *t, struct journal_reader *reader);
/* Adds the instances of templates that the journal has. More may come later. Negative errno. */
int log_targets_match_instances(struct log_targets *t, struct journal_reader *reader);
/* Reads entries until it is known whether names are jobs or runs, and goes back to the first. Negative
 * errno; or EXIT_UNKNOWN_NAME, after it printed which runs a name fits. */
int log_targets_decide(struct log_targets *t, struct journal_reader *reader);

/* Return whether one of the targets is this run, or this job, and note that the journal has it. */
bool log_targets_have_run(struct log_targets *t, const char *run);
bool log_targets_have_job(struct log_targets *t, const char *job);
void log_targets_end_run(struct log_targets *t, const char *run);
/* Returns whether all are runs that have ended. */
bool log_targets_are_over(const struct log_targets *t);
/* Returns a target that the journal does not have; NULL: none. */
const struct log_target *log_targets_missing(const struct log_targets *t);
