/* SPDX-License-Identifier: MIT */
#pragma once

/* How long the last runs of each name held their permits, from which `berth explain` estimates a start. Only
 * runs that ended by themselves count (success, failure, timeout). Plain data that the manager feeds; it
 * reads no clock. There are two texts: all durations, for the next berthd, and a summary, for other hosts
 * (store_publish()). */

#include <stdbool.h>

#include "base/clock.h"
#include "base/name.h"
#include "base/run-times.h"

#define TIMES_NAMES_MAX 128 /* the names with the latest runs */
#define TIMES_TEXT_MAX ((size_t) 128 * 1024)

struct times_name {
    char name[NAME_MAX_LENGTH + 1];
    uint32_t n, next;          /* durations; next: the place of the next one, the oldest if all are used */
    uint32_t msec[RUN_TIMES_MAX]; /* at most 49 days */
    uint64_t last;             /* number of its last run among all runs */
};

struct times { /* all zero: nothing is known */
    struct times_name names[TIMES_NAMES_MAX];
    size_t n;
    uint64_t n_runs;
};

struct times_summary { /* of one name */
    char name[NAME_MAX_LENGTH + 1];
    uint32_t n; /* RUN_TIMES_MAX at most */
    uint32_t q_msec[RUN_TIMES_QUANTILES];
    uint64_t cap_msec; /* a run cannot take longer; 0: no such bound */
};

/* Adds a run of that name that ended. Returns how many of them are known now. */
uint32_t times_add(struct times *t, const char *name, usec_t held_usec);
/* Percentile p of n sorted durations is interpolated at p * (n + 1), within the first and the last. */
void times_summarize(const struct times_name *name, struct times_summary *ret);

/* times_save() returns all durations as a text, to be freed; NULL: no memory. times_load() adds those of a
 * text and returns 0, -EBADMSG or -ENOMEM. */
char *times_save(const struct times *t);
int times_load(struct times *t, const char *text);

/* Returns the summaries as lines, the latest names first, in at most max bytes with the NUL, to be freed;
 * NULL: no memory. cap_usec: the longest time of a run of that name; USEC_INFINITY: no such bound. */
char *times_format(const struct times *t, size_t max, usec_t (*cap_usec)(const char *name, void *userdata),
                 void *userdata);
/* Reads the first line of such a text, which is not trusted. Returns the rest, or NULL if the line is
 * malformed. */
const char *times_read(const char *text, struct times_summary *ret);
