/* SPDX-License-Identifier: MIT */
#include "cli/import/fields.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/schedule/cron.h"

#define FIELD_TEXT_SIZE 192 /* 60 numbers with commas */

struct field_kind {
    const char *name;
    unsigned low, high; /* of the weekday 7 is another 0 */
    const char *names;  /* of three letters each */
};

static const struct field_kind kinds[5] = {
    {"minute", 0, 59, NULL},
    {"hour", 0, 23, NULL},
    {"day of month", 1, 31, NULL},
    {"month", 1, 12, "janfebmaraprmayjunjulaugsepoctnovdec"},
    {"weekday", 0, 7, "sunmontuewedthufrisat"},
};
enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY };

struct field {
    uint64_t values;
    bool begins_with_star;
    bool is_rewritten; /* berth does not accept the text as it is */
    unsigned random;   /* "a~b": b - a */
    char text[FIELD_TEXT_SIZE];
};

static uint64_t all_values(int kind) {
    unsigned high = kind == WEEKDAY ? 6 : kinds[kind].high;

    return ((UINT64_C(2) << high) - 1) & ~((UINT64_C(1) << kinds[kind].low) - 1);
}

/* Reads a number or a name at *text and moves past it. */
static bool take_value(const struct field_kind *kind, const char **text, bool is_end, unsigned *ret) {
    unsigned value = 0;
    size_t digits = strspn(*text, "0123456789");

    if (digits > 0 && digits <= 4) {
        for (size_t i = 0; i < digits; i++)
            value = value * 10 + (unsigned) ((*text)[i] - '0');
        *text += digits;
        *ret = value;
        return value >= kind->low && value <= kind->high;
    }
    for (unsigned i = 0; kind->names && kind->names[3 * i]; i++)
        if (strncasecmp(*text, kind->names + 3 * i, 3) == 0) {
            *text += 3;
            *ret = i + kind->low;
            if (is_end && kind == &kinds[WEEKDAY] && i == 0)
                *ret = 7; /* "fri-sun" */
            return true;
        }
    return false;
}

/* Adds every step-th value from first to last; a backward range wraps around. */
static void add_values(struct field *f, int kind, unsigned first, unsigned last, unsigned step) {
    unsigned low = kinds[kind].low, span = kinds[kind].high - low + 1;

    if (kind == WEEKDAY && first > last)
        span = 7;
    if (first > last) {
        last += span;
        f->is_rewritten = true;
    }
    for (unsigned i = first; i <= last; i += step) {
        unsigned value = (i - low) % span + low;

        f->values |= UINT64_C(1) << (kind == WEEKDAY ? value % 7 : value);
    }
}

static bool read_item(struct field *f, int kind, const char *item, const char *end) {
    unsigned first, last, step = 1;
    const char *text = item;
    bool is_one = false;

    if (*text == '*') {
        text++;
        first = kinds[kind].low;
        last = kind == WEEKDAY ? 6 : kinds[kind].high;
    } else {
        if (!take_value(&kinds[kind], &text, false, &first))
            return false;
        last = first;
        is_one = *text != '-';
        if (!is_one && (text++, !take_value(&kinds[kind], &text, true, &last)))
            return false;
    }
    if (*text == '/') {
        size_t digits = strspn(++text, "0123456789");

        if (sscanf(text, "%4u", &step) != 1 || digits > 4 || step == 0)
            return false;
        text += digits;
        if (is_one)
            last = kind == WEEKDAY ? 6 : kinds[kind].high;
        if (is_one || step > kinds[kind].high - kinds[kind].low + (kind != WEEKDAY))
            f->is_rewritten = true;
        if (is_one && first > last)
            last = first;
    }
    add_values(f, kind, first, last, step);
    return text == end;
}

/* Reads "a~b", "a~", "~b" or "~", which must be the whole field. */
static bool read_random(struct field *f, int kind) {
    unsigned first = kinds[kind].low, last = kinds[kind].high;
    const char *text = f->text;

    if (*text != '~' && !take_value(&kinds[kind], &text, false, &first))
        return false;
    if (*text++ != '~' || (*text && !take_value(&kinds[kind], &text, true, &last)))
        return false;
    if (*text || first > last || kind > HOUR)
        return false;
    f->values = UINT64_C(1) << first;
    f->random = last - first;
    f->is_rewritten = true;
    return true;
}

static bool read_field(struct field *f, int kind, const char *text) {
    bool has_star = false, has_more = false;

    if (strlen(text) >= sizeof(f->text))
        return false;
    memcpy(f->text, text, strlen(text) + 1);
    f->begins_with_star = *text == '*';
    if (strchr(text, '~'))
        return read_random(f, kind);
    for (const char *item = f->text;; item++) {
        const char *end = item + strcspn(item, ",");

        if (!read_item(f, kind, item, end))
            return false;
        has_star = has_star || *item == '*';
        has_more = has_more || *end;
        if (!*end)
            break;
        item = end;
    }
    f->is_rewritten = f->is_rewritten || (has_star && has_more);
    return true;
}

/* Writes the values as a list: "0-2,22,23"; "*": all. */
static void write_values(struct field *f, int kind) {
    size_t n = 0;

    f->is_rewritten = true;
    if (f->values == all_values(kind)) {
        memcpy(f->text, "*", sizeof("*"));
        return;
    }
    for (unsigned first = 0, last; first < 60; first = last + 1) {
        last = first;
        if (!(f->values >> first & 1))
            continue;
        while (last < 59 && f->values >> (last + 1) & 1)
            last++;
        if (last == first + 1)
            last = first;
        n += (size_t) snprintf(f->text + n, sizeof(f->text) - n, "%s%u", n > 0 ? "," : "", first);
        if (last > first)
            n += (size_t) snprintf(f->text + n, sizeof(f->text) - n, "-%u", last);
    }
}

/* Translates the combination of day and weekday. In cronie both must match if one field begins with "*",
 * else either; in berth the values count. Returns why the text was changed, or NULL. */
static const char *join_days(struct field *day, struct field *weekday, bool *ret_both) {
    bool all_days = day->values == all_values(DAY), all_weekdays = weekday->values == all_values(WEEKDAY);

    *ret_both = false;
    if (all_days && all_weekdays)
        return NULL;
    if (day->begins_with_star || weekday->begins_with_star) {
        if (all_days || all_weekdays)
            return NULL;
        *ret_both = true;
        return "one of the fields begins with \"*\", so cron requires both day and weekday";
    }
    if (!all_days && !all_weekdays)
        return NULL;
    day->values = all_values(DAY);
    weekday->values = all_values(WEEKDAY);
    write_values(day, DAY);
    write_values(weekday, WEEKDAY);
    return "no field begins with \"*\", so either suffices for cron, and one of them has every day";
}

static void write_entry(const struct field f[static 5], bool both, char text[static IMPORT_SCHEDULE_SIZE]) {
    snprintf(text, IMPORT_SCHEDULE_SIZE, "%s %s %s %s %s%s", f[0].text, f[1].text, f[2].text, f[3].text,
             both ? "+" : "", f[4].text);
}

int import_schedule(char *const fields[5], struct import_schedule *ret) {
    struct field f[5] = {};
    char error[CRON_ERROR_SIZE];
    const char *why = NULL;
    struct cron cron;
    bool both;

    *ret = (struct import_schedule){};
    for (int i = 0; i < 5; i++)
        if (!read_field(&f[i], i, fields[i])) {
            snprintf(ret->note, sizeof(ret->note), "%s \"%.40s\" is read differently by different crons",
                     kinds[i].name, fields[i]);
            return -EINVAL;
        }
    for (int i = 0; i < 5; i++)
        if (f[i].is_rewritten)
            write_values(&f[i], i);
    why = join_days(&f[DAY], &f[WEEKDAY], &both);
    write_entry(f, both, ret->text);
    ret->splay_minutes = f[MINUTE].random + 60 * f[HOUR].random;
    if (cron_parse(ret->text, &cron, error) < 0) {
        snprintf(ret->note, sizeof(ret->note), "%s", error);
        return -EINVAL;
    }
    if (ret->splay_minutes > 0)
        why = "cron draws \"~\" when it reads the crontab; splay is drawn once for this host and job";
    for (int i = 0; i < 5 && !why; i++)
        if (f[i].is_rewritten)
            why = "the same times in berth's syntax; some crons read this line differently";
    if (why)
        snprintf(ret->note, sizeof(ret->note), "from \"%.30s %.30s %.30s %.30s %.30s\": %s", fields[0],
                 fields[1], fields[2], fields[3], fields[4], why);
    return 0;
}

int import_schedule_word(const char *word, struct import_schedule *ret) {
    static const char *const known[] = {"@hourly",  "@daily",  "@midnight", "@weekly",
                                        "@monthly", "@yearly", "@annually"};

    *ret = (struct import_schedule){};
    for (size_t i = 0; i < ELEMENTSOF(known); i++)
        if (strcasecmp(word, known[i]) == 0) {
            snprintf(ret->text, sizeof(ret->text), "%s", known[i]);
            return 0;
        }
    if (strcasecmp(word, "@every_minute") == 0) {
        snprintf(ret->text, sizeof(ret->text), "* * * * *");
        return 0;
    }
    snprintf(ret->note, sizeof(ret->note), "\"%.40s\" is read differently by different crons", word);
    return -EINVAL;
}
