/* SPDX-License-Identifier: MIT */

#include "base/schedule/cron.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/schedule/cron-text.h"

#define TEXT_MAX 1024
#define BLANKS " \t"
#define ALL_DAYS UINT32_C(0xfffffffe)
#define ALL_WEEKDAYS 0x7f
#define ALL_HOURS UINT32_C(0xffffff)
#define EACH_SEVENTH UINT64_C(0x10204081) /* bits 0, 7, 14, 21, 28 */
#define YEARS_FIRST 2000 /* 28 years in a row without a turn of the century have all combinations of dates and weekdays */
#define YEARS 28

static const struct {
    const char *word, *fields;
} words[] = {{"@hourly", "0 * * * *"},  {"@daily", "0 0 * * *"},   {"@midnight", "0 0 * * *"},
             {"@weekly", "0 0 * * 0"},  {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
             {"@annually", "0 0 1 1 *"}};

/* ---- dates ---- */

/* Return whether some values are missing. */
static bool cron_restricts_days(const struct cron *cron) {
    return cron->days != ALL_DAYS;
}

static bool cron_restricts_weekdays(const struct cron *cron) {
    return cron->weekdays != ALL_WEEKDAYS;
}

bool cron_is_every_hour(const struct cron *cron) {
    return cron->hours == ALL_HOURS;
}

/* length: of the month */
static uint32_t days_by_number(const struct cron *cron, unsigned length) {
    uint32_t days = cron->days;

    for (unsigned n = 0; cron->last_days >> n != 0; n++)
        if (cron->last_days >> n & 1 && n < length)
            days |= UINT32_C(1) << (length - n);
    return days;
}

/* first: the weekday of the first day */
static uint32_t days_by_weekday(const struct cron *cron, unsigned first, unsigned length) {
    uint64_t days = 0;

    for (unsigned weekday = 0; weekday < 7; weekday++) {
        unsigned day = 1 + (weekday + 7 - first) % 7;

        if (cron->weekdays >> weekday & 1)
            days |= EACH_SEVENTH << day;
        if (cron->last_weekdays >> weekday & 1)
            days |= UINT64_C(1) << (day + (length - day) / 7 * 7);
        for (unsigned n = 0; n < 5; n++)
            if (cron->nth_weekdays[n] >> weekday & 1)
                days |= UINT64_C(1) << (day + 7 * n);
    }
    return (uint32_t) days;
}

uint32_t cron_days(const struct cron *cron, int64_t year, unsigned month) {
    unsigned length = civil_month_length(year, month), first;
    uint32_t all = (uint32_t) ((UINT64_C(2) << length) - 2), by_number, by_weekday;

    if (!(cron->months >> month & 1))
        return 0;
    if (!cron_restricts_days(cron) && !cron_restricts_weekdays(cron))
        return all;
    first = (unsigned) (((civil_to_days(year, month, 1) + 4) % 7 + 7) % 7);
    by_number = days_by_number(cron, length) & all;
    by_weekday = days_by_weekday(cron, first, length) & all;
    if (!cron_restricts_weekdays(cron))
        return by_number;
    if (!cron_restricts_days(cron))
        return by_weekday;
    return cron->needs_both ? by_number & by_weekday : by_number | by_weekday;
}

static bool cron_matches_date(const struct cron *cron, const struct civil *date) {
    return cron_days(cron, date->year, date->month) >> date->day & 1;
}

bool cron_matches(const struct cron *cron, const struct civil *time) {
    return cron->minutes >> time->minute & 1 && cron->hours >> time->hour & 1 &&
           cron_matches_date(cron, time);
}

/* ---- refused fields ---- */

static int fail_both(const struct cron *cron, const char *day_step, const char *weekday_step,
                     const char *weekday, char error[static CRON_ERROR_SIZE]) {
    if (cron->needs_both || !cron_restricts_days(cron) || !cron_restricts_weekdays(cron) ||
        (!day_step && !weekday_step))
        return 0;
    if (day_step)
        snprintf(error, CRON_ERROR_SIZE,
                 "crons differ in what \"%.*s\" and a weekday mean together; write 1-31%.*s for either of "
                 "the two, or +%.60s for both",
                 (int) strcspn(day_step, ","), day_step, (int) strcspn(day_step, ",") - 1, day_step + 1,
                 weekday);
    else
        snprintf(error, CRON_ERROR_SIZE,
                 "crons differ in what a day of month and \"%.*s\" mean together; write 0-6%.*s for either "
                 "of the two, or +%.60s for both",
                 (int) strcspn(weekday_step, ","), weekday_step, (int) strcspn(weekday_step, ",") - 1,
                 weekday_step + 1, weekday);
    return -EINVAL;
}

static bool comes(const struct cron *cron) {
    for (int64_t year = YEARS_FIRST; year < YEARS_FIRST + YEARS; year++)
        for (unsigned month = 1; month <= 12; month++)
            if (cron_days(cron, year, month) != 0)
                return true;
    return false;
}

/* Refuses fields that match no date. Dates repeat after 400 years. */
static int fail_never(const struct cron *cron, char error[static CRON_ERROR_SIZE]) {
    static const char *const months[] = {"January",   "February", "March",    "April",
                                         "May",       "June",     "July",     "August",
                                         "September", "October",  "November", "December"};
    unsigned month = (unsigned) __builtin_ctz(cron->months),
             day = cron->days != 0 ? (unsigned) __builtin_ctz(cron->days) : 0;

    if (comes(cron))
        return 0;
    if (cron->months == 1U << month && cron->last_days == 0 && day > civil_month_length(YEARS_FIRST, month))
        snprintf(error, CRON_ERROR_SIZE, "never comes: %s has no %u%s", months[month - 1], day,
                 day == 31 ? "st" : "th");
    else
        snprintf(error, CRON_ERROR_SIZE, "never comes: no such day in 400 years");
    return -EINVAL;
}

/* ---- text ---- */

static int parse_fields(char *const fields[static CRON_FIELDS], struct cron *cron,
                        char error[static CRON_ERROR_SIZE]) {
    const char *steps[CRON_FIELDS];
    int r;

    for (int i = 0; i < CRON_FIELDS; i++) {
        const char *text = fields[i];

        if (i == CRON_WEEKDAY && *text == '+') {
            cron->needs_both = true;
            text++;
        }
        if (!cron_read_field(i, text, cron, &steps[i], error))
            return -EINVAL;
    }
    r = fail_both(cron, steps[CRON_DAY], steps[CRON_WEEKDAY], fields[CRON_WEEKDAY], error);
    return r < 0 ? r : fail_never(cron, error);
}

static int fail_word(const char *text, char error[static CRON_ERROR_SIZE]) {
    const char *known[ELEMENTSOF(words)], *near;

    for (size_t i = 0; i < ELEMENTSOF(words); i++)
        known[i] = words[i].word;
    near = nearest(text, known, ELEMENTSOF(known));
    if (strcasecmp(text, "@reboot") == 0)
        snprintf(error, CRON_ERROR_SIZE, "write at-start = true");
    else if (strncasecmp(text, "@every", 6) == 0)
        snprintf(error, CRON_ERROR_SIZE, "write every = \"%.40s\"",
                 text[6 + strspn(text + 6, BLANKS)] ? text + 6 + strspn(text + 6, BLANKS) : "5m");
    else if (near)
        snprintf(error, CRON_ERROR_SIZE, "there is no such word; did you mean \"%s\"?", near);
    else
        snprintf(error, CRON_ERROR_SIZE,
                 "there is no such word; there are @hourly, @daily, @weekly, @monthly and @yearly");
    return -EINVAL;
}

static const char *find_word(const char *text) {
    for (size_t i = 0; i < ELEMENTSOF(words); i++)
        if (strcasecmp(text, words[i].word) == 0)
            return words[i].fields;
    return NULL;
}

/* Splits the copy in place. Returns how many fields there are; those beyond CRON_FIELDS are counted only. */
static size_t split(char *copy, char *ret[static CRON_FIELDS]) {
    size_t n = 0;
    char *rest;

    for (char *field = strtok_r(copy, BLANKS, &rest); field; field = strtok_r(NULL, BLANKS, &rest), n++)
        if (n < CRON_FIELDS)
            ret[n] = field;
    return n;
}

int cron_parse(const char *text, struct cron *ret, char error[static CRON_ERROR_SIZE]) {
    char copy[TEXT_MAX], *fields[CRON_FIELDS];
    struct cron cron = {};
    size_t n;
    int r;

    if (text[0] == '@') {
        const char *of_word = find_word(text);

        if (!of_word)
            return fail_word(text, error);
        text = of_word;
    }
    if (strlen(text) >= sizeof(copy)) {
        snprintf(error, CRON_ERROR_SIZE, "it has more than %d bytes; write several entries", TEXT_MAX - 1);
        return -EINVAL;
    }
    memcpy(copy, text, strlen(text) + 1);
    n = split(copy, fields);
    if (n == CRON_FIELDS + 1)
        snprintf(error, CRON_ERROR_SIZE,
                 "6 fields; berth has no seconds: for less than a minute use every = \"10s\"");
    else if (n != CRON_FIELDS)
        snprintf(error, CRON_ERROR_SIZE, "%zu field%s; minute, hour, day of month, month, weekday are 5", n,
                 n == 1 ? "" : "s");
    if (n != CRON_FIELDS)
        return -EINVAL;
    r = parse_fields(fields, &cron, error);
    if (r == 0)
        *ret = cron;
    return r;
}
