/* SPDX-License-Identifier: MIT */

/* The rule for the years after the last transition of a file: "CET-1CEST,M3.5.0,M10.5.0/3". */

#include <string.h>

#include "base/schedule/civil.h"
#include "base/schedule/zone-data.h"

#define DAY 86400
#define HOURS_MAX 167 /* of the time of a change, RFC 9636, 3.3.1 */

enum rule_day { RULE_JULIAN, RULE_ZERO_BASED, RULE_MONTH }; /* Jn: 29 February is not counted; n; Mm.w.d */

struct rule_change {
    enum rule_day kind;
    int day;         /* Jn, n; of Mm.w.d the weekday */
    int month, week; /* week 5: the last */
    int32_t time;    /* s after midnight; may be negative */
};

struct rule {
    int32_t standard, summer; /* offsets */
    bool has_summer;
    struct rule_change begin, end; /* of summer */
};

/* ---- text ---- */

static bool skip(const char **p, char c) {
    if (**p != c)
        return false;
    (*p)++;
    return true;
}

/* At most three digits. */
static bool read_number(const char **p, int min, int max, int *ret) {
    int value = 0, n = 0;

    for (; n < 3 && **p >= '0' && **p <= '9'; n++, (*p)++)
        value = value * 10 + (**p - '0');
    *ret = value;
    return n > 0 && value >= min && value <= max;
}

/* [+-]hh[:mm[:ss]] in seconds */
static bool read_time(const char **p, int hours_max, int32_t *ret) {
    bool is_negative = **p == '-';
    int hours, minutes = 0, seconds = 0;

    if (is_negative || **p == '+')
        (*p)++;
    if (!read_number(p, 0, hours_max, &hours))
        return false;
    if (skip(p, ':') && !read_number(p, 0, 59, &minutes))
        return false;
    if (**p == ':' && skip(p, ':') && !read_number(p, 0, 59, &seconds))
        return false;
    *ret = (hours * 3600 + minutes * 60 + seconds) * (is_negative ? -1 : 1);
    return true;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* "CEST" or "<+0530>" */
static bool skip_name(const char **p) {
    size_t n = 0;

    if (skip(p, '<')) {
        n = strcspn(*p, ">");
        *p += n;
        return n > 0 && skip(p, '>');
    }
    while (is_letter((*p)[n]))
        n++;
    *p += n;
    return n >= 3;
}

static bool read_day(const char **p, struct rule_change *ret) {
    if (skip(p, 'J')) {
        ret->kind = RULE_JULIAN;
        return read_number(p, 1, 365, &ret->day);
    }
    if (!skip(p, 'M')) {
        ret->kind = RULE_ZERO_BASED;
        return read_number(p, 0, 365, &ret->day);
    }
    ret->kind = RULE_MONTH;
    return read_number(p, 1, 12, &ret->month) && skip(p, '.') && read_number(p, 1, 5, &ret->week) &&
           skip(p, '.') && read_number(p, 0, 6, &ret->day);
}

static bool read_change(const char **p, struct rule_change *ret) {
    *ret = (struct rule_change){.time = 2 * 3600};
    return skip(p, ',') && read_day(p, ret) && (!skip(p, '/') || read_time(p, HOURS_MAX, &ret->time));
}

/* POSIX counts offsets westwards. */
static bool read_offset(const char **p, int32_t *ret) {
    int32_t west;

    if (!read_time(p, 24, &west))
        return false;
    *ret = -west;
    return true;
}

static bool parse(const char *text, struct rule *ret) {
    const char *p = text;

    *ret = (struct rule){};
    if (!skip_name(&p) || !read_offset(&p, &ret->standard))
        return false;
    if (*p == '\0')
        return true;
    ret->has_summer = true;
    ret->summer = ret->standard + 3600;
    if (!skip_name(&p) || (*p != ',' && !read_offset(&p, &ret->summer)))
        return false;
    return read_change(&p, &ret->begin) && read_change(&p, &ret->end) && *p == '\0';
}

/* ---- years ---- */

static int64_t month_day(const struct rule_change *change, int64_t year) {
    int64_t first = civil_to_days(year, (unsigned) change->month, 1);
    int weekday = (int) ((first + 4) % 7 + 7) % 7; /* of the first */
    int day = (change->day - weekday + 7) % 7 + 7 * (change->week - 1);

    if (day >= (int) civil_month_length(year, (unsigned) change->month))
        day -= 7;
    return first + day;
}

static int64_t change_day(const struct rule_change *change, int64_t year) {
    int64_t first = civil_to_days(year, 1, 1);

    if (change->kind == RULE_MONTH)
        return month_day(change, year);
    if (change->kind == RULE_ZERO_BASED)
        return first + change->day;
    return first + change->day - 1 + (change->day >= 60 && civil_month_length(year, 2) == 29);
}

/* before: the offset that holds until then */
static struct zone_change at_year(const struct rule_change *change, int64_t year, int32_t before,
                                  int32_t after) {
    return (struct zone_change){change_day(change, year) * DAY + change->time - before, after};
}

/* Adds a change, unless the next one is at the same instant: a summer that begins when the one before ends has no end. */
static int add_before(struct zone *zone, const struct zone_change *change, const struct zone_change *next,
                      int64_t after) {
    if (change->at <= after || change->at >= next->at)
        return 0;
    return zone_add_change(zone, change->at, change->offset);
}

static int add_year(struct zone *zone, const struct rule *rule, int64_t year, int64_t after) {
    struct zone_change begin = at_year(&rule->begin, year, rule->standard, rule->summer);
    struct zone_change end = at_year(&rule->end, year, rule->summer, rule->standard);
    bool is_north = begin.at < end.at;
    struct zone_change next = is_north ? at_year(&rule->begin, year + 1, rule->standard, rule->summer)
                                       : at_year(&rule->end, year + 1, rule->summer, rule->standard);
    int r = add_before(zone, is_north ? &begin : &end, is_north ? &end : &begin, after);

    return r != 0 ? r : add_before(zone, is_north ? &end : &begin, &next, after);
}

int zone_add_rule(struct zone *zone, const char *text, int64_t after, bool is_all) {
    struct civil first = {.year = ZONE_YEAR_FIRST};
    struct rule rule;
    int r = 0;

    if (!parse(text, &rule))
        return ZONE_E_INVALID;
    if (is_all)
        zone->first_offset = rule.standard;
    else if (after > ZONE_TIME_FIRST)
        civil_from_seconds(after, &first);
    for (int64_t year = first.year - 1; rule.has_summer && year <= ZONE_YEAR_LAST && r == 0; year++)
        r = add_year(zone, &rule, year, after);
    return r;
}
