/* SPDX-License-Identifier: MIT */
#include "cli/when.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"

/* So many digits, and what follows them. -1: they are not there, or above max. */
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

/* A number behind its separator. */
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

/* "Z" or "+01:00" at the end: seconds east of Greenwich. */
static int take_zone(const char **text, int *ret_east) {
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
    *ret_east = sign * (hours * 3600 + minutes * 60);
    return 0;
}

/* No 31st of February, which timegm(3) would turn into a day of March. */
static int day_is_real(const struct tm *tm) {
    struct tm copy = *tm;

    copy.tm_hour = 12;
    return timegm(&copy) >= 0 && copy.tm_mday == tm->tm_mday && copy.tm_mon == tm->tm_mon;
}

static int parse_date(const char *text, usec_t *ret) {
    struct tm tm = {.tm_isdst = -1};
    usec_t fraction = 0;
    bool local;
    time_t seconds;
    int east = 0;

    tm.tm_year = take_digits(&text, 4, 9999) - 1900;
    tm.tm_mon = take(&text, '-', 2, 12) - 1;
    tm.tm_mday = take(&text, '-', 2, 31);
    if (tm.tm_year < 70 || tm.tm_mon < 0 || tm.tm_mday < 1 || !day_is_real(&tm))
        return -EINVAL;
    local = *text == ' ';
    tm.tm_hour = take(&text, local ? ' ' : 'T', 2, 23);
    tm.tm_min = tm.tm_hour < 0 ? -1 : take(&text, ':', 2, 59);
    if (tm.tm_min < 0)
        return -EINVAL;
    if (!local || *text == ':') {
        tm.tm_sec = take(&text, ':', 2, 60);
        fraction = tm.tm_sec < 0 ? 0 : take_fraction(&text);
    }
    if (tm.tm_sec < 0 || (!local && take_zone(&text, &east) < 0) || *text != '\0')
        return -EINVAL;
    seconds = local ? mktime(&tm) : timegm(&tm) - east;
    if (seconds < 0)
        return -EINVAL;
    *ret = (usec_t) seconds * USEC_PER_SEC + fraction;
    return 0;
}

int when_parse(const char *text, usec_t now, usec_t *ret_realtime) {
    usec_t ago;

    if (text[0] != '-')
        return parse_date(text, ret_realtime);
    if (duration_parse(text + 1, &ago) < 0)
        return -EINVAL;
    *ret_realtime = usec_sub(now, ago);
    return 0;
}
