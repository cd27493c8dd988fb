/* SPDX-License-Identifier: MIT */

/* Finds the next due time (berth-schedule(7)). Between two changes of its offset a zone's clock runs like UTC. So the
 * search goes from change to change, and inside of such a segment over months, by bit sets.
 *
 * The search is bounded. A due time is at most 4 days from the local time that matches, and a zone has at most 96 changes
 * in that time (ZONE_CHANGES_APART). So the search walks once over the months up to the next local time that matches, and
 * over few segments around it. `except` skips all minutes up to the end of an hour or a day at once. */

#include <string.h>

#include "base/schedule/cron-text.h"
#include "base/schedule/schedule.h"

#define DAY 86400
#define LEFT_OUT_MAX 10000 /* due times, or hours and days of them, that `except` removes in a row */
#define NEVER INT64_MAX
#define ALL_MINUTES ((UINT64_C(1) << 60) - 1)
#define YEAR_LAST 2400 /* of SCHEDULE_END */

/* ---- local times ---- */

/* Returns the first whole minute of [low, end) that matches, as local time; NEVER: none. */
static int64_t first_match(const struct cron *cron, int64_t low, int64_t end) {
    struct civil at;

    civil_from_seconds((low + 59) / 60 * 60, &at); /* low >= 0 */
    while (at.year <= YEAR_LAST) {
        uint32_t days = cron_days(cron, at.year, at.month) >> at.day << at.day;

        for (; days != 0; days &= days - 1) {
            unsigned day = (unsigned) __builtin_ctz(days);
            unsigned hour = day == at.day ? at.hour : 0, minute = day == at.day ? at.minute : 0;
            uint64_t minutes = cron->minutes >> minute << minute;
            uint32_t hours = cron->hours >> hour << hour;

            /* The first hour may have no minute left. */
            if (hours >> hour & 1 && minutes == 0)
                hours &= hours - 1;
            if (hours == 0)
                continue;
            if ((unsigned) __builtin_ctz(hours) != hour)
                minutes = cron->minutes;
            int64_t found = (civil_to_days(at.year, at.month, day) * 24 + __builtin_ctz(hours)) * 3600 +
                            __builtin_ctzll(minutes) * 60;
            return found < end ? found : NEVER;
        }
        at = (struct civil){
            .year = at.month < 12 ? at.year : at.year + 1, .month = at.month % 12 + 1, .day = 1};
        if (civil_to_days(at.year, at.month, 1) * DAY >= end)
            return NEVER;
    }
    return NEVER;
}

/* ---- segments: from one change of the offset to the next ---- */

struct segment {
    int64_t begin, end; /* INT64_MIN, INT64_MAX: none */
    int64_t offset;
};

static struct segment segment_at(const struct zone *zone, int64_t t) {
    return (struct segment){zone_transition_before(zone, t), zone_transition_after(zone, t),
                            zone_offset(zone, t)};
}

/* Finds the first segment in which the clock shows `local` at `t` or later; INT64_MIN: at any time. False: there is
 * none. */
static bool find_segment(const struct zone *zone, int64_t local, int64_t t, struct segment *ret) {
    int64_t from = local - ZONE_OFFSET_MAX;

    for (struct segment s = segment_at(zone, t > from ? t : from);; s = segment_at(zone, s.end)) {
        if (local - s.offset >= s.begin && local - s.offset < s.end && local - s.offset >= t) {
            *ret = s;
            return true;
        }
        if (s.end > local + ZONE_OFFSET_MAX)
            return false;
    }
}

/* Returns the first matching local time that the gap at the segment's begin leaves out; NEVER: none. */
static int64_t find_left_out(const struct cron *cron, const struct zone *zone, const struct segment *s) {
    int64_t low = s->begin + zone_offset(zone, s->begin - 1), end = s->begin + s->offset, m;
    struct segment shown;

    for (;; low = shown.end + shown.offset) {
        m = low < end ? first_match(cron, low > 0 ? low : 0, end) : NEVER;
        if (m == NEVER || !find_segment(zone, m, INT64_MIN, &shown))
            return m;
    }
}

/* Returns the first match in this segment at `t` or later that the clock does not show earlier; NEVER: none. */
static int64_t find_in(const struct cron *cron, const struct zone *zone, const struct segment *s,
                       int64_t t) {
    int64_t low = t + s->offset, end = s->end == INT64_MAX ? INT64_MAX : s->end + s->offset, m;
    struct segment shown;

    for (;; low = shown.end + shown.offset) {
        m = low < end ? first_match(cron, low > 0 ? low : 0, end) : NEVER;
        if (m == NEVER || cron_is_every_hour(cron) || !find_segment(zone, m, INT64_MIN, &shown) ||
            shown.begin == s->begin)
            return m;
    }
}

/* ---- one entry ---- */

struct found {
    int64_t at;       /* NEVER: none */
    int64_t left_out; /* at the end of a gap: the first local time in the gap; else NEVER */
};

static struct found find_entry(const struct cron *cron, const struct zone *zone, int64_t after) {
    int64_t t = after < 0 ? 0 : after < SCHEDULE_END ? after + 1 : SCHEDULE_END, m;

    while (t < SCHEDULE_END) {
        struct segment s = segment_at(zone, t);

        if (t == s.begin && !cron_is_every_hour(cron)) {
            int64_t left_out = find_left_out(cron, zone, &s);

            if (left_out != NEVER)
                return (struct found){t, left_out};
        }
        m = find_in(cron, zone, &s, t);
        if (m != NEVER)
            return (struct found){m - s.offset < SCHEDULE_END ? m - s.offset : NEVER, NEVER};
        /* No instant this long before the next match is due. */
        t = s.end;
        m = t < SCHEDULE_END ? first_match(cron, t - ZONE_OFFSET_MAX, SCHEDULE_END + ZONE_OFFSET_MAX)
                             : NEVER;
        if (m == NEVER)
            break;
        if (m - ZONE_OFFSET_MAX > t)
            t = m - ZONE_OFFSET_MAX;
    }
    return (struct found){NEVER, NEVER};
}

static enum schedule_shift shift_of(const struct cron *cron, const struct zone *zone,
                                    const struct found *found) {
    struct segment again;

    if (found->left_out != NEVER)
        return SCHEDULE_SHIFT_GAP;
    if (!cron_is_every_hour(cron) &&
        find_segment(zone, found->at + zone_offset(zone, found->at), found->at + 1, &again))
        return SCHEDULE_SHIFT_FOLD;
    return SCHEDULE_SHIFT_NONE;
}

/* ---- exceptions ---- */

/* Returns for how long one exception removes all minutes from `local` on, at most to the end of the day or of its dates;
 * 0: it does not remove `local`. */
static int64_t left_out_for(const struct schedule_except *except, int64_t local, const struct civil *civil) {
    int64_t of_hour = civil->minute * 60 + civil->second, of_day = civil->hour * 3600 + of_hour;
    int64_t day = (local - of_day) / DAY;
    uint64_t left = ~except->cron.minutes >> civil->minute; /* from this minute on; never 0 */
    unsigned minutes = left ? (unsigned) __builtin_ctzll(left) : 0;

    if (except->is_date)
        return day >= except->first_day && day <= except->last_day ? (except->last_day + 1) * DAY - local
                                                                   : 0;
    if (minutes == 0 || !cron_matches(&except->cron, civil))
        return 0;
    if (cron_is_every_hour(&except->cron) && except->cron.minutes == ALL_MINUTES)
        return DAY - of_day;
    return minutes * 60 - civil->second;
}

/* Returns the first instant, `at` or later, that `except` may leave. */
static int64_t skip_left_out(const struct schedule *schedule, const struct zone *zone, int64_t at) {
    int64_t local = at + zone_offset(zone, at), most = 0, change;
    struct civil civil;

    if (schedule->n_excepts == 0)
        return at;
    civil_from_seconds(local, &civil);
    for (size_t i = 0; i < schedule->n_excepts; i++) {
        int64_t length = left_out_for(&schedule->excepts[i], local, &civil);

        if (length > most)
            most = length;
    }
    change = zone_transition_after(zone, at);
    return change - at < most ? change : at + most;
}

/* ---- all entries ---- */

/* Finds the next multiple of the period, without regard to the zone. */
static bool next_multiple(int64_t period, int64_t after, struct schedule_due *ret) {
    int64_t from = after < 0 ? -1 : after < SCHEDULE_END ? after : SCHEDULE_END;

    *ret = (struct schedule_due){.at = from < 0 ? 0 : (from / period + 1) * period};
    return ret->at < SCHEDULE_END;
}

bool schedule_next(const struct schedule *schedule, const struct zone *zone, int64_t after,
                   struct schedule_due *ret) {
    struct found next[SCHEDULE_ENTRIES_MAX];
    int64_t from = after;

    if (schedule->period > 0)
        return next_multiple(schedule->period, after, ret);
    if (schedule->n_entries == 0)
        return false;
    for (size_t i = 0; i < schedule->n_entries; i++)
        next[i].at = INT64_MIN;
    for (unsigned n = 0; n < LEFT_OUT_MAX;) {
        size_t first = 0;
        int64_t left;

        for (size_t i = 0; i < schedule->n_entries; i++) {
            if (next[i].at <= from) {
                next[i] = find_entry(&schedule->entries[i].cron, zone, from);
                n++;
            }
            if (next[i].at < next[first].at)
                first = i;
        }
        if (next[first].at == NEVER)
            return false;
        left = skip_left_out(schedule, zone, next[first].at);
        if (left == next[first].at) {
            *ret =
                (struct schedule_due){.at = left,
                                      .entry = first,
                                      .shift = shift_of(&schedule->entries[first].cron, zone, &next[first]),
                                      .wanted = next[first].left_out == NEVER ? 0 : next[first].left_out};
            return true;
        }
        from = left - 1;
    }
    return false;
}
