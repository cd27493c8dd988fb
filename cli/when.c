/* SPDX-License-Identifier: MIT */
#include "cli/when.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"

#define DAY_SEC 86400
#define DAY ((usec_t) DAY_SEC * USEC_PER_SEC)
#define TEXT_MAX 64 /* longer than any valid time */

/* --- parts --- */

/* Takes exactly n digits. Returns their value; -1 if they are missing or above max. */
static int take_digits(const char **text, size_t n, int max) {
    int value = 0;

    for (size_t i = 0; i < n; i++) {
        if (!isdigit((unsigned char) (*text)[i]))
            return -1;
        value = value * 10 + ((*text)[i] - '0');
    }
    *text += n;
    return value <= max ? value : -1;
}

/* Takes a separator, then n digits. */
static int take(const char **text, char separator, size_t n, int max) {
    if (**text != separator)
        return -1;
    (*text)++;
    return take_digits(text, n, max);
}

static usec_t take_fraction(const char **text) {
    usec_t usec = 0, unit = USEC_PER_SEC / 10;

    if (**text != '.' || !isdigit((unsigned char) (*text)[1]))
        return 0;
    for ((*text)++; isdigit((unsigned char) **text); (*text)++, unit /= 10)
        usec += (usec_t) (**text - '0') * unit;
    return usec;
}

/* Takes "Z" or "+01:00". Stores seconds east of Greenwich. */
static int take_offset(const char **text, long *ret_east) {
    int sign = **text == '-' ? -1 : 1, hours, minutes;

    *ret_east = 0;
    if (**text == 'Z' || **text == 'z') {
        (*text)++;
        return 0;
    }
    hours = take(text, sign < 0 ? '-' : '+', 2, 23);
    minutes = hours < 0 ? -1 : take(text, ':', 2, 59);
    if (minutes < 0)
        return -EINVAL;
    *ret_east = (long) sign * (hours * 3600 + minutes * 60);
    return 0;
}

static bool take_word(const char **text, const char *word) {
    size_t n = strlen(word);

    if (strncmp(*text, word, n) != 0)
        return false;
    *text += n;
    return true;
}

/* --- a point of the calendar --- */

struct point {
    struct tm wall; /* as a wall clock shows it */
    usec_t fraction;
    bool has_offset; /* else local time */
    long east;
};

static long offset_at(time_t t) {
    struct tm tm = {};

    return localtime_r(&t, &tm) ? tm.tm_gmtoff : 0;
}

/* Returns the local time in seconds since 1970; when.h explains ambiguous and skipped times. Clocks change
 * at most once in two days, so the offset in force is that of a day before or of a day after. */
static time_t from_local(const struct tm *wall) {
    struct tm copy = *wall;
    time_t t = timegm(&copy), before = t - offset_at(t - DAY_SEC), after = t - offset_at(t + DAY_SEC);
    time_t first = before < after ? before : after, second = before < after ? after : before;

    if (offset_at(first) == t - first)
        return first;
    return offset_at(second) == t - second ? second : before;
}

static int point_to_usec(const struct point *p, usec_t *ret) {
    struct tm copy = p->wall;
    time_t seconds = p->has_offset ? timegm(&copy) - p->east : from_local(&p->wall);

    if (seconds < 0)
        return -EINVAL;
    *ret = (usec_t) seconds * USEC_PER_SEC + p->fraction;
    return 0;
}

/* Sets midnight, `days` days after the day of now. */
static void set_day(struct point *p, usec_t now, int days) {
    time_t seconds = (time_t) (now / USEC_PER_SEC);
    struct tm tm = {};

    if (p->has_offset ? gmtime_r(&seconds, &tm) : localtime_r(&seconds, &tm))
        p->wall = (struct tm) {.tm_year = tm.tm_year, .tm_mon = tm.tm_mon, .tm_mday = tm.tm_mday + days};
}

/* timegm(3) would turn the 31st of February into a day of March. */
static bool day_is_real(const struct tm *tm) {
    struct tm copy = *tm;

    return timegm(&copy) >= 0 && copy.tm_mday == tm->tm_mday && copy.tm_mon == tm->tm_mon;
}

static int take_date(const char **text, struct tm *tm) {
    tm->tm_year = take_digits(text, 4, 9999) - 1900;
    tm->tm_mon = take(text, '-', 2, 12) - 1;
    tm->tm_mday = take(text, '-', 2, 31);
    return tm->tm_year < 70 || tm->tm_mon < 0 || tm->tm_mday < 1 || !day_is_real(tm) ? -EINVAL : 0;
}

/* "14:00[:30[.5]]", and an offset unless one is known already. */
static int take_time(const char **text, struct point *p) {
    struct tm *tm = &p->wall;

    tm->tm_hour = take_digits(text, 2, 23);
    tm->tm_min = tm->tm_hour < 0 ? -1 : take(text, ':', 2, 59);
    if (tm->tm_min < 0)
        return -EINVAL;
    if (**text == ':') {
        tm->tm_sec = take(text, ':', 2, 60);
        p->fraction = take_fraction(text);
        if (tm->tm_sec < 0)
            return -EINVAL;
    }
    if (p->has_offset || **text == '\0')
        return 0;
    p->has_offset = true;
    return take_offset(text, &p->east);
}

static int parse_point(const char *text, usec_t now, usec_t *ret) {
    static const char *const days[] = {"yesterday", "today", "tomorrow"};
    size_t length = strlen(text);
    struct point p = {};
    char copy[TEXT_MAX];
    int k;

    if (length >= sizeof(copy))
        return -EINVAL;
    memcpy(copy, text, length + 1);
    p.has_offset = length > 4 && strcmp(copy + length - 4, " UTC") == 0;
    if (p.has_offset)
        copy[length - 4] = '\0';
    text = copy;
    for (int i = 0; i < (int) ELEMENTSOF(days); i++)
        if (strcmp(text, days[i]) == 0) {
            set_day(&p, now, i - 1);
            return point_to_usec(&p, ret);
        }
    if (strcspn(text, ":") == 2) { /* a time alone */
        set_day(&p, now, 0);
        k = strpbrk(text, "zZ+-") ? -EINVAL : take_time(&text, &p); /* today's date depends on the zone */
    } else {
        k = take_date(&text, &p.wall);
        if (k == 0 && (*text == ' ' || *text == 'T')) {
            text++;
            k = take_time(&text, &p);
        }
    }
    return k < 0 || *text != '\0' ? -EINVAL : point_to_usec(&p, ret);
}

/* --- a span before or after now --- */

static const struct unit {
    const char *name;
    usec_t usec;
} units[] = {
    {"usec", 1}, {"us", 1}, {"msec", 1000}, {"ms", 1000},
    {"seconds", USEC_PER_SEC}, {"second", USEC_PER_SEC}, {"sec", USEC_PER_SEC}, {"s", USEC_PER_SEC},
    {"minutes", 60 * USEC_PER_SEC}, {"minute", 60 * USEC_PER_SEC}, {"min", 60 * USEC_PER_SEC},
    {"months", 2629800 * USEC_PER_SEC}, {"month", 2629800 * USEC_PER_SEC}, {"M", 2629800 * USEC_PER_SEC}, /* 30.44 days */
    {"m", 60 * USEC_PER_SEC},
    {"hours", 3600 * USEC_PER_SEC}, {"hour", 3600 * USEC_PER_SEC}, {"hr", 3600 * USEC_PER_SEC}, {"h", 3600 * USEC_PER_SEC},
    {"days", DAY}, {"day", DAY}, {"d", DAY},
    {"weeks", 7 * DAY}, {"week", 7 * DAY}, {"w", 7 * DAY},
    {"years", 31557600 * USEC_PER_SEC}, {"year", 31557600 * USEC_PER_SEC}, {"y", 31557600 * USEC_PER_SEC}, /* 365.25 days */
};

static usec_t take_unit(const char **text) {
    size_t n = strspn(*text, "abcdefghijklmnopqrstuvwxyzM");

    for (size_t i = 0; i < ELEMENTSOF(units); i++)
        if (strlen(units[i].name) == n && strncmp(*text, units[i].name, n) == 0) {
            *text += n;
            return units[i].usec;
        }
    return 0;
}

static void skip_spaces(const char **text) {
    *text += strspn(*text, " ");
}

/* Takes "1 week 2d". Stops before a word that is not a number. */
static int take_span(const char **text, usec_t *ret) {
    usec_t unit, value;
    int n = 0;

    for (*ret = 0; isdigit((unsigned char) **text); n++) {
        for (value = 0; isdigit((unsigned char) **text); (*text)++) {
            if (value > UINT32_MAX)
                return -EINVAL;
            value = value * 10 + (usec_t) (**text - '0');
        }
        skip_spaces(text);
        unit = take_unit(text);
        if (unit == 0 || value > USEC_INFINITY / unit)
            return -EINVAL;
        *ret = usec_add(*ret, value * unit);
        skip_spaces(text);
    }
    return n > 0 ? 0 : -EINVAL;
}

static int parse_span(const char *text, usec_t now, usec_t *ret) {
    char sign = *text == '-' || *text == '+' ? *text++ : '\0';
    usec_t span;

    if (take_span(&text, &span) < 0)
        return -EINVAL;
    if (sign == '\0')
        sign = take_word(&text, "ago") ? '-' : take_word(&text, "left") ? '+' : '\0';
    if (sign == '\0' || *text != '\0')
        return -EINVAL;
    *ret = sign == '-' ? usec_sub(now, span) : usec_add(now, span);
    return 0;
}

static int parse_epoch(const char *text, usec_t *ret) {
    usec_t seconds = 0, fraction;
    int n = 0;

    for (; isdigit((unsigned char) *text) && n < 12; text++, n++)
        seconds = seconds * 10 + (usec_t) (*text - '0');
    fraction = take_fraction(&text);
    if (n == 0 || *text != '\0')
        return -EINVAL;
    *ret = seconds * USEC_PER_SEC + fraction;
    return 0;
}

int when_parse(const char *text, usec_t now, usec_t *ret_realtime) {
    if (strcmp(text, "now") == 0) {
        *ret_realtime = now;
        return 0;
    }
    if (text[0] == '@')
        return parse_epoch(text + 1, ret_realtime);
    return parse_span(text, now, ret_realtime) == 0 ? 0 : parse_point(text, now, ret_realtime);
}

/* --- as text --- */

static bool break_down(usec_t realtime, bool utc, struct tm *ret) {
    time_t seconds = (time_t) (realtime / USEC_PER_SEC);

    return utc ? gmtime_r(&seconds, ret) : localtime_r(&seconds, ret);
}

const char *when_format(usec_t realtime, bool utc, char buffer[static WHEN_TEXT_SIZE]) {
    struct tm tm;

    if (!break_down(realtime, utc, &tm) || strftime(buffer, WHEN_TEXT_SIZE, utc ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%d %H:%M:%S", &tm) == 0)
        buffer[0] = '\0';
    return buffer;
}

const char *when_format_exactly(usec_t realtime, bool utc, char buffer[static 2 * WHEN_TEXT_SIZE]) {
    char zone[24] = "Z";
    struct tm tm;
    size_t n;

    if (!break_down(realtime, utc, &tm) || (n = strftime(buffer, WHEN_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &tm)) == 0) {
        buffer[0] = '\0';
        return buffer;
    }
    if (!utc)
        snprintf(zone, sizeof(zone), "%c%02ld:%02ld", tm.tm_gmtoff < 0 ? '-' : '+', labs(tm.tm_gmtoff) / 3600,
                 labs(tm.tm_gmtoff) / 60 % 60);
    snprintf(buffer + n, 2 * WHEN_TEXT_SIZE - n, ".%06u%s", (unsigned) (realtime % USEC_PER_SEC), zone);
    return buffer;
}
