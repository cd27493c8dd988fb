/* SPDX-License-Identifier: MIT */

#include "base/schedule/cron-text.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/nearest.h"

#define SHOWN_MAX 60 /* bytes of a text in an error */

static const char *const months[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                     "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const weekdays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

static const struct cron_field cron_fields[CRON_FIELDS] = {
    [CRON_MINUTE] = {"minute", "minutes", "hour has minutes", 0, 59, NULL},
    [CRON_HOUR] = {"hour", "hours", "day has hours", 0, 23, NULL},
    [CRON_DAY] = {"day of month", "days", "month has days", 1, 31, NULL},
    [CRON_MONTH] = {"month", "months", "year has months", 1, 12, months},
    [CRON_WEEKDAY] = {"weekday", "weekdays", "week has days", 0, 6, weekdays},
};

struct reader {
    const struct cron_field *field;
    struct cron *cron;
    const char *item; /* up to the next comma */
    size_t size;
    char *error;
};

static bool fail(const struct reader *reader, const char *format, ...) _printf_(2, 3);
static bool fail(const struct reader *reader, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(reader->error, CRON_ERROR_SIZE, format, arguments);
    va_end(arguments);
    return false;
}

static int shown(size_t n) {
    return n < SHOWN_MAX ? (int) n : SHOWN_MAX;
}

static bool is(const struct reader *reader, int field) {
    return reader->field == &cron_fields[field];
}

/* ---- values ---- */

/* The text of a value, which may be invalid, and its number. */
struct value {
    const char *at;
    size_t n;
    unsigned number;
    bool is_word;
};

static int find_word(const struct reader *reader, const struct value *value) {
    size_t n_words = reader->field->max - reader->field->min + 1;

    for (size_t i = 0; reader->field->words && value->n == 3 && i < n_words; i++)
        if (strncasecmp(reader->field->words[i], value->at, 3) == 0)
            return (int) i;
    return -1;
}

static bool fail_value(const struct reader *reader, const struct value *value) {
    const struct cron_field *field = reader->field;
    size_t n_words = field->max - field->min + 1;
    char text[SHOWN_MAX + 1];
    const char *near;

    snprintf(text, sizeof(text), "%.*s", shown(value->n), value->at);
    for (char *p = text; *p; p++)
        *p = (char) tolower((unsigned char) *p);
    near = field->words ? nearest(text, field->words, n_words) : NULL;
    if (near)
        return fail(reader, "%s \"%.*s\"; did you mean \"%s\"?", field->name, shown(value->n), value->at,
                    near);
    if (value->n > 0 && strspn(text, "0123456789") == strlen(text))
        return fail(reader, "%s %s; %s are %u to %u", field->name, text, field->plural, field->min,
                    is(reader, CRON_WEEKDAY) ? 7 : field->max);
    return fail(reader, "%s \"%.*s\"; %s are %u to %u%s%s%s", field->name, shown(value->n), value->at,
                field->plural, field->min, is(reader, CRON_WEEKDAY) ? 7 : field->max,
                field->words ? " or " : "", field->words ? field->words[0] : "",
                field->words ? ", ..." : "");
}

/* Reads a number of one or two digits, or a name. */
static bool read_value(const struct reader *reader, const char *at, size_t n, struct value *ret) {
    unsigned max = is(reader, CRON_WEEKDAY) ? 7 : reader->field->max;
    int word;

    *ret = (struct value){.at = at, .n = n};
    word = find_word(reader, ret);
    if (word >= 0) {
        ret->number = reader->field->min + (unsigned) word;
        ret->is_word = true;
        return true;
    }
    if (n < 1 || n > 2 || !isdigit((unsigned char) at[0]) || !isdigit((unsigned char) at[n - 1]))
        return fail_value(reader, ret);
    ret->number = n == 1 ? (unsigned) (at[0] - '0') : (unsigned) ((at[0] - '0') * 10 + at[1] - '0');
    return (ret->number >= reader->field->min && ret->number <= max) || fail_value(reader, ret);
}

/* Formats a number in the way of another value: as a word or as digits. */
static const char *bound_text(const struct reader *reader, const struct value *like, unsigned number,
                              char buffer[static 4]) {
    if (like->is_word)
        return reader->field->words[number - reader->field->min];
    snprintf(buffer, 4, "%u", number % 100);
    return buffer;
}

static void add_value(const struct reader *reader, unsigned value) {
    struct cron *cron = reader->cron;

    if (is(reader, CRON_MINUTE))
        cron->minutes |= UINT64_C(1) << value;
    else if (is(reader, CRON_HOUR))
        cron->hours |= UINT32_C(1) << value;
    else if (is(reader, CRON_DAY))
        cron->days |= UINT32_C(1) << value;
    else if (is(reader, CRON_MONTH))
        cron->months = (uint16_t) (cron->months | 1U << value);
    else
        cron->weekdays = (uint8_t) (cron->weekdays | 1U << value % 7);
}

static void add_range(const struct reader *reader, unsigned first, unsigned last, unsigned step) {
    for (unsigned value = first; value <= last; value += step)
        add_value(reader, value);
}

/* ---- items ---- */

/* Reads the number after a slash, 1 to the field's span. */
static bool read_step(const struct reader *reader, const char *at, size_t n, unsigned *ret) {
    unsigned span = reader->field->max - reader->field->min + 1, step = 0;
    size_t i;

    for (i = 0; i < n && step <= 9999 && isdigit((unsigned char) at[i]); i++)
        step = step * 10 + (unsigned) (at[i] - '0');
    if (n == 0 || (i < n && step <= 9999))
        return fail(reader, "step \"%.*s\"; write a number from 1 to %u", shown(n), at, span);
    if (step == 0)
        return fail(reader, "step 0; steps are 1 to %u", span);
    if (step > span)
        return fail(reader, "step %.*s is longer than the %s (%u)", shown(n), at, reader->field->whole,
                    span);
    *ret = step;
    return true;
}

/* Proposes "22-23,0-2" for 22-2: the range split at the end of the field. */
static bool fail_backwards(const struct reader *reader, const struct value *first, const struct value *last,
                           const char *step_text, size_t step_size, unsigned step) {
    const struct cron_field *field = reader->field;
    unsigned span = field->max - field->min + 1, passed = (span - (first->number - field->min)) % step;
    unsigned again = field->min + (passed > 0 ? step - passed : 0);
    char high[4], low[4], second[32] = "";
    const char *end = bound_text(reader, first, field->max, high),
               *begin = bound_text(reader, last, again % (field->max + 1), low);
    int n = shown(step_size);

    if (again < last->number)
        snprintf(second, sizeof(second), ",%s-%.*s%.*s", begin, shown(last->n), last->at, n, step_text);
    else if (again == last->number)
        snprintf(second, sizeof(second), ",%.*s", shown(last->n), last->at);
    if (first->number == field->max)
        return fail(reader, "%s %.*s runs backwards; write %.*s%s", field->name, shown(reader->size),
                    reader->item, shown(first->n), first->at, second);
    return fail(reader, "%s %.*s runs backwards; write %.*s-%s%.*s%s", field->name, shown(reader->size),
                reader->item, shown(first->n), first->at, end, n, step_text, second);
}

/* Reads v, v-v or v-v/n. dash, slash: offsets in the item; its size: none. */
static bool read_range(const struct reader *reader, size_t dash, size_t slash, unsigned step) {
    struct value first, last;
    char buffer[4];

    if (!read_value(reader, reader->item, dash < slash ? dash : slash, &first))
        return false;
    last = first;
    if (dash < slash && !read_value(reader, reader->item + dash + 1, slash - dash - 1, &last))
        return false;
    if (dash >= slash && slash < reader->size)
        return fail(reader, "%s %.*s; write %.*s-%s%.*s", reader->field->name, shown(reader->size),
                    reader->item, shown(first.n), first.at,
                    bound_text(reader, &first, reader->field->max, buffer), shown(reader->size - slash),
                    reader->item + slash);
    if (is(reader, CRON_WEEKDAY) && dash < slash && last.is_word && last.number == 0)
        last.number = 7;
    if (first.number > last.number)
        return fail_backwards(reader, &first, &last, reader->item + slash, reader->size - slash, step);
    add_range(reader, first.number, last.number, step);
    return true;
}

/* "L", "L-3" */
static bool read_last_day(const struct reader *reader) {
    unsigned n = 0;

    if (reader->size > 1 && (reader->item[1] != '-' || reader->size < 3 || reader->size > 4))
        return fail(reader, "day of month \"%.*s\"; write L, or L-1 to L-30", shown(reader->size),
                    reader->item);
    for (size_t i = 2; i < reader->size; i++) {
        if (!isdigit((unsigned char) reader->item[i]))
            return fail(reader, "day of month \"%.*s\"; write L, or L-1 to L-30", shown(reader->size),
                        reader->item);
        n = n * 10 + (unsigned) (reader->item[i] - '0');
    }
    if (reader->size > 1 && (n < 1 || n > 30))
        return fail(reader, "day of month %.*s; L-1 to L-30 are days before the last", shown(reader->size),
                    reader->item);
    reader->cron->last_days |= UINT32_C(1) << n;
    return true;
}

/* "fri#1" */
static bool read_nth_weekday(const struct reader *reader, size_t hash) {
    struct value value;
    char k = reader->size == hash + 2 ? reader->item[hash + 1] : '0';
    uint8_t *nth;

    if (!read_value(reader, reader->item, hash, &value))
        return false;
    if (k < '1' || k > '5')
        return fail(reader, "weekday %.*s; \"#\" takes one number from 1 to 5", shown(reader->size),
                    reader->item);
    nth = &reader->cron->nth_weekdays[k - '1'];
    *nth = (uint8_t) (*nth | 1U << value.number % 7);
    return true;
}

/* "friL" */
static bool read_last_weekday(const struct reader *reader) {
    struct value value;

    if (reader->size == 1)
        return fail(reader, "\"%.1s\" in weekday; write the weekday before it: friL", reader->item);
    if (!read_value(reader, reader->item, reader->size - 1, &value))
        return false;
    reader->cron->last_weekdays = (uint8_t) (reader->cron->last_weekdays | 1U << value.number % 7);
    return true;
}

static const char *find(const struct reader *reader, const char *letters) {
    for (size_t i = 0; i < reader->size; i++)
        if (strchr(letters, reader->item[i]))
            return reader->item + i;
    return NULL;
}

static size_t position(const struct reader *reader, const char *letter) {
    const char *at = find(reader, letter);

    return at ? (size_t) (at - reader->item) : reader->size;
}

/* Refuses syntax of other crons that berth does not have. */
static bool check_dialect(const struct reader *reader) {
    const char *at = find(reader, "?");

    if (at)
        return fail(reader, "\"?\" in %s; write *", reader->field->name);
    if (is(reader, CRON_DAY) && find(reader, "Ww"))
        return fail(reader, "\"W\" is not supported; name the days");
    at = find(reader, "~");
    if (at)
        return fail(reader, "\"~\" in %s is not supported; write one time, and splay = \"30m\" or the like",
                    reader->field->name);
    if (reader->item[0] == 'H' && (reader->size == 1 || strchr("/(", reader->item[1])))
        return fail(reader, "\"H\" in %s is not supported; write one time, and splay = \"30m\" or the like",
                    reader->field->name);
    return true;
}

static bool read_item(const struct reader *reader, const char **ret_step) {
    size_t slash = position(reader, "/"), dash = position(reader, "-"), hash = position(reader, "#");
    unsigned step = 1;

    if (!check_dialect(reader))
        return false;
    if (is(reader, CRON_DAY) && tolower((unsigned char) reader->item[0]) == 'l')
        return read_last_day(reader);
    if (is(reader, CRON_WEEKDAY) && hash < reader->size)
        return read_nth_weekday(reader, hash);
    if (is(reader, CRON_WEEKDAY) && tolower((unsigned char) reader->item[reader->size - 1]) == 'l')
        return read_last_weekday(reader);
    if (slash < reader->size &&
        !read_step(reader, reader->item + slash + 1, reader->size - slash - 1, &step))
        return false;
    if (reader->item[0] != '*')
        return read_range(reader, dash, slash, step);
    if (slash != 1 && reader->size > 1)
        return fail(reader, "%s \"%.*s\"; write * or */2 and the like", reader->field->name,
                    shown(reader->size), reader->item);
    add_range(reader, reader->field->min, reader->field->max, step);
    if (step > 1 && !*ret_step)
        *ret_step = reader->item;
    return true;
}

bool cron_read_field(int field, const char *text, struct cron *cron, const char **ret_step,
                     char error[static CRON_ERROR_SIZE]) {
    struct reader reader = {.field = &cron_fields[field], .cron = cron};
    bool is_list = strchr(text, ',') != NULL;

    reader.error = error;
    *ret_step = NULL;
    for (const char *at = text;; at += reader.size + 1) {
        reader.item = at;
        reader.size = strcspn(at, ",");
        if (reader.size == 0)
            return fail(&reader, "%s \"%.*s\" has an empty place; remove a comma or write a value",
                        reader.field->name, shown(strlen(text)), text);
        if (is_list && reader.size == 1 && *at == '*')
            return fail(&reader, "\"*\" beside other values; write * alone");
        if (!read_item(&reader, ret_step))
            return false;
        if (at[reader.size] == '\0')
            return true;
    }
}
