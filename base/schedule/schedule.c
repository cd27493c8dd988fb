/* SPDX-License-Identifier: MIT */

#include "base/schedule/schedule.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"

#define BLANKS " \t"
#define NAME_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define TEXT_MAX 4096

static const char *const month_names[] = {"January",   "February", "March",    "April",
                                          "May",       "June",     "July",     "August",
                                          "September", "October",  "November", "December"};

static int fail(char error[static CRON_ERROR_SIZE], const char *format, ...) _printf_(2, 3);
static int fail(char error[static CRON_ERROR_SIZE], const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(error, CRON_ERROR_SIZE, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

/* ---- entries ---- */

static void free_entry(struct schedule_entry *entry) {
    text_free_list(entry->set);
    free(entry->text);
}

static void free_setp(char ***set) {
    text_free_list(*set);
}

static int check_set(char *const *set, size_t n, const char *text, char error[static CRON_ERROR_SIZE]) {
    size_t length = strspn(text, NAME_LETTERS);

    if (length == 0 || text[length] != '=' || isdigit((unsigned char) text[0]))
        return fail(error, "\"%.60s\" is not NAME=VALUE, NAME of A-Z 0-9 _, not beginning with a digit",
                    text);
    for (size_t i = 0; i < n; i++)
        if (strncmp(set[i], text, length + 1) == 0)
            return fail(error, "%.*s is given twice; keep one", (int) (length < 60 ? length : 60), text);
    return 0;
}

/* Parses what follows the fields: NAME=VALUEs with blanks between them. */
static int parse_set(const char *text, char ***ret, char error[static CRON_ERROR_SIZE]) {
    _cleanup_(free_setp) char **set = calloc(strlen(text) / 2 + 2, sizeof(*set));
    size_t n = 0, length;

    if (!set)
        return -ENOMEM;
    for (text += strspn(text, BLANKS); *text; text += length + strspn(text + length, BLANKS)) {
        int r;

        length = strcspn(text, BLANKS);
        set[n] = strndup(text, length);
        if (!set[n])
            return -ENOMEM;
        r = check_set(set, n, set[n], error);
        n++;
        if (r < 0)
            return r;
    }
    *ret = steal_pointer(&set);
    return 0;
}

/* Returns where the word with the first '=' begins, or the end of a text without '='. */
static size_t fields_size(const char *text) {
    size_t n = strcspn(text, "=");

    if (text[n] == '\0')
        return n;
    while (n > 0 && !strchr(BLANKS, text[n - 1]))
        n--;
    return n;
}

static int parse_entry(const char *text, struct schedule_entry *ret, char error[static CRON_ERROR_SIZE]) {
    size_t n = fields_size(text);
    char fields[TEXT_MAX];
    int r;

    if (strlen(text) >= sizeof(fields))
        return fail(error, "it has more than %d bytes; write several entries", TEXT_MAX - 1);
    while (n > 0 && strchr(BLANKS, text[n - 1]))
        n--;
    memcpy(fields, text, n);
    fields[n] = '\0';
    r = cron_parse(fields + strspn(fields, BLANKS), &ret->cron, error);
    return r < 0 || text[n] == '\0' ? r : parse_set(text + n, &ret->set, error);
}

int schedule_add(struct schedule *schedule, const char *text, char error[static CRON_ERROR_SIZE]) {
    struct schedule_entry entry = {}, *more;
    int r;

    if (schedule->n_entries == SCHEDULE_ENTRIES_MAX)
        return fail(error, "there are more than %d entries; write lists such as 0,30 or several jobs",
                    SCHEDULE_ENTRIES_MAX);
    r = parse_entry(text, &entry, error);
    if (r < 0)
        return r;
    entry.text = strdup(text);
    more = realloc(schedule->entries, (schedule->n_entries + 1) * sizeof(*more));
    if (more)
        schedule->entries = more;
    if (!more || !entry.text) {
        free_entry(&entry);
        return -ENOMEM;
    }
    schedule->entries[schedule->n_entries++] = entry;
    return 0;
}

/* ---- exceptions ---- */

/* n digits at *p */
static bool read_digits(const char **p, unsigned n, unsigned *ret) {
    unsigned value = 0;

    for (unsigned i = 0; i < n; i++, (*p)++) {
        if (**p < '0' || **p > '9')
            return false;
        value = value * 10 + (unsigned) (**p - '0');
    }
    *ret = value;
    return true;
}

static bool skip(const char **p, char c) {
    if (**p != c)
        return false;
    (*p)++;
    return true;
}

/* "2026-12-24" */
static bool read_date(const char **p, struct civil *ret) {
    unsigned year;

    *ret = (struct civil){};
    if (!read_digits(p, 4, &year) || !skip(p, '-') || !read_digits(p, 2, &ret->month) || !skip(p, '-') ||
        !read_digits(p, 2, &ret->day))
        return false;
    ret->year = year;
    return true;
}

static int check_date(const struct civil *date, char error[static CRON_ERROR_SIZE]) {
    const char *ending = date->day % 10 == 1 && date->day != 11 ? "st"
                         : date->day == 22                      ? "nd"
                         : date->day == 23                      ? "rd"
                                                                : "th";

    if (date->month < 1 || date->month > 12)
        return fail(error, "month %02u; months are 01 to 12", date->month);
    if (date->day < 1 || date->day > 31)
        return fail(error, "day %02u; days are 01 to 31", date->day);
    if (date->day > civil_month_length(date->year, date->month))
        return fail(error, "%s %04d has no %u%s", month_names[date->month - 1], (int) date->year, date->day,
                    ending);
    return 0;
}

static int parse_dates(const char *text, struct schedule_except *ret, char error[static CRON_ERROR_SIZE]) {
    struct civil first, last;
    const char *p = text;
    bool is_range;

    if (!read_date(&p, &first))
        goto refuse;
    last = first;
    is_range = skip(&p, '/');
    if ((is_range && !read_date(&p, &last)) || *p != '\0')
        goto refuse;
    if (check_date(&first, error) < 0 || check_date(&last, error) < 0)
        return -EINVAL;
    *ret = (struct schedule_except){.is_date = true,
                                    .first_day = civil_to_days(first.year, first.month, first.day),
                                    .last_day = civil_to_days(last.year, last.month, last.day)};
    return ret->last_day < ret->first_day
               ? fail(error, "it ends before it begins; write the earlier date first")
               : 0;
refuse:
    return fail(error, "write five fields of schedule, \"2026-12-24\" or \"2026-12-24/2027-01-02\"");
}

int schedule_add_except(struct schedule *schedule, const char *text, char error[static CRON_ERROR_SIZE]) {
    struct schedule_except except = {}, *more;
    int r;

    if (schedule->n_excepts == SCHEDULE_EXCEPT_MAX)
        return fail(error,
                    "there are more than %d exceptions; write ranges such as \"2026-12-24/2027-01-02\"",
                    SCHEDULE_EXCEPT_MAX);
    text += strspn(text, BLANKS);
    /* Fields have blanks between them. */
    if (text[0] == '@' || strpbrk(text, BLANKS))
        r = cron_parse(text, &except.cron, error);
    else
        r = parse_dates(text, &except, error);
    if (r < 0)
        return r;
    more = realloc(schedule->excepts, (schedule->n_excepts + 1) * sizeof(*more));
    if (!more)
        return -ENOMEM;
    schedule->excepts = more;
    schedule->excepts[schedule->n_excepts++] = except;
    return 0;
}

void schedule_done(struct schedule *schedule) {
    for (size_t i = 0; i < schedule->n_entries; i++)
        free_entry(&schedule->entries[i]);
    free(schedule->entries);
    free(schedule->excepts);
    *schedule = (struct schedule){};
}

/* ---- texts of times ---- */

const char *schedule_format(const struct zone *zone, int64_t at, char buffer[static SCHEDULE_TEXT_SIZE]) {
    int32_t offset = zone_offset(zone, at), minutes = (abs(offset) + 30) / 60;
    struct civil c;

    civil_from_seconds(at + offset, &c);
    snprintf(buffer, SCHEDULE_TEXT_SIZE, "%04" PRId64 "-%02u-%02uT%02u:%02u:%02u%c%02d:%02d", c.year,
             c.month, c.day, c.hour, c.minute, c.second, offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
    return buffer;
}

/* "Z", "+02:00": seconds to add to UTC */
static bool read_offset(const char **p, int64_t *ret) {
    unsigned hours = 0, minutes = 0;
    bool is_west = **p == '-';

    if (skip(p, 'Z') || skip(p, 'z'))
        return *ret = 0, true;
    if (!(skip(p, '-') || skip(p, '+')) || !read_digits(p, 2, &hours) || !skip(p, ':') ||
        !read_digits(p, 2, &minutes))
        return false;
    *ret = (int64_t) (hours * 3600 + minutes * 60) * (is_west ? -1 : 1);
    return hours < 24 && minutes < 60;
}

static bool read_clock(const char **p, struct civil *time) {
    if (!read_digits(p, 2, &time->hour) || !skip(p, ':') || !read_digits(p, 2, &time->minute) ||
        !skip(p, ':') || !read_digits(p, 2, &time->second))
        return false;
    if (skip(p, '.')) {
        if (!isdigit((unsigned char) **p))
            return false;
        while (isdigit((unsigned char) **p))
            (*p)++;
    }
    return time->hour < 24 && time->minute < 60 && time->second <= 60; /* 60: a leap second */
}

int schedule_parse_time(const char *text, int64_t *ret) {
    char error[CRON_ERROR_SIZE];
    const char *p = text;
    struct civil time;
    int64_t offset;

    if (!read_date(&p, &time) || !(skip(&p, 'T') || skip(&p, 't') || skip(&p, ' ')) ||
        !read_clock(&p, &time) || !read_offset(&p, &offset))
        return -EINVAL;
    if (*p != '\0' || check_date(&time, error) < 0)
        return -EINVAL;
    *ret = civil_to_seconds(&time) - offset;
    return 0;
}

/* ---- spreading ---- */

#define FNV_OFFSET UINT64_C(0xcbf29ce484222325) /* http://www.isthe.com/chongo/tech/comp/fnv/ */
#define FNV_PRIME UINT64_C(0x100000001b3)

/* fmix64 of MurmurHash3: each bit of the input changes half of the output's. */
static uint64_t mix(uint64_t h) {
    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ h >> 33;
}

/* Returns the upper 64 bits of the product. */
static uint64_t multiply_high(uint64_t a, uint64_t b) {
    uint64_t a_low = (uint32_t) a, b_low = (uint32_t) b;
    uint64_t middle = (a >> 32) * b_low + (a_low * b_low >> 32);
    uint64_t other = a_low * (b >> 32) + (uint32_t) middle;

    return (a >> 32) * (b >> 32) + (middle >> 32) + (other >> 32);
}

uint64_t schedule_spread(uint64_t x, const char *const *texts) {
    uint64_t hash = FNV_OFFSET;

    for (size_t i = 0; texts[i]; i++) {
        if (i > 0)
            hash *= FNV_PRIME; /* a NUL byte */
        for (const char *p = texts[i]; *p; p++)
            hash = (hash ^ (unsigned char) *p) * FNV_PRIME;
    }
    return multiply_high(x, mix(hash));
}
