/* SPDX-License-Identifier: MIT */
#pragma once

/* When a job is due: cron entries, exceptions and a zone. Pure: no clock, no file. Times are seconds since 1970 UTC. They
 * are whole minutes of the zone's clock, except at ends of gaps and in zones with odd offsets. */

#include "base/cleanup.h"
#include "base/schedule/cron.h"
#include "base/schedule/zone.h"

#define SCHEDULE_ENTRIES_MAX 64
#define SCHEDULE_EXCEPT_MAX 64
#define SCHEDULE_END INT64_C(13569465600)   /* 2400-01-01: no due time is later */
#define SCHEDULE_TEXT_SIZE 40

struct schedule_entry {
    struct cron cron;
    char **set;                  /* NAME=VALUE, NULL-terminated; owned. NULL: none */
    char *text;                  /* as written in the config; owned */
};

struct schedule_except {
    bool is_date;
    struct cron cron;            /* is_date: unused */
    int64_t first_day, last_day; /* since 1970, both included */
};

struct schedule {                /* all zero: never due */
    struct schedule_entry *entries;
    size_t n_entries;
    int64_t period;              /* s: without entries, due at multiples of this since 1970; 0: by entries */
    struct schedule_except *excepts;
    size_t n_excepts;
};

/* Add one text of `schedule` or `except`. 0; -EINVAL with an error as cron_parse(); -ENOMEM. */
int schedule_add(struct schedule *schedule, const char *text, char error[static CRON_ERROR_SIZE]);
int schedule_add_except(struct schedule *schedule, const char *text, char error[static CRON_ERROR_SIZE]);
void schedule_done(struct schedule *schedule);
static inline bool schedule_is_empty(const struct schedule *schedule) {
    return schedule->n_entries == 0 && schedule->period == 0;
}

/* GAP: the clock left out the wanted time. FOLD: the clock shows the time twice, and this is the first of the two. Both only
 * for entries of a time of day. */
enum schedule_shift { SCHEDULE_SHIFT_NONE, SCHEDULE_SHIFT_GAP, SCHEDULE_SHIFT_FOLD };

struct schedule_due {
    int64_t at;
    size_t entry;                /* the first one that matches, whose NAME=VALUEs count; of a period: 0 */
    enum schedule_shift shift;
    int64_t wanted;              /* GAP: the first matching local time that the clock left out */
};

/* Finds the first due time later than `after`. Returns false if none is before SCHEDULE_END, or `except` removes the
 * next 10000 times of the entries (an hour or day that it removes as a whole counts once). Takes 10 ms at most. */
bool schedule_next(const struct schedule *schedule, const struct zone *zone, int64_t after,
                   struct schedule_due *ret);
#define SCHEDULE_NONE_LEFT "except leaves none of the next 10000 times of schedule" /* then, if it has excepts */
/* Formats "2027-03-28T03:00:00+02:00", as in BERTH_DUE. */
const char *schedule_format(const struct zone *zone, int64_t at, char buffer[static SCHEDULE_TEXT_SIZE]);
/* Parses any RFC 3339 time. 0 or -EINVAL. */
int schedule_parse_time(const char *text, int64_t *ret);

/* Returns a part of x that depends on the texts: floor(x * H / 2^64), where H is the 64-bit FNV-1a of the texts joined by
 * NUL bytes, finished with murmur3's fmix64. texts: NULL-terminated. */
uint64_t schedule_spread(uint64_t x, const char *const *texts);
