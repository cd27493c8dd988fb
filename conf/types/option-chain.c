/* SPDX-License-Identifier: MIT */

/* The types of options of retries and hooks: how a run ends, exit statuses, names of jobs. */

#include "conf/types/option-types.h"

#include <stdarg.h>
#include <string.h>

#include "base/job-name.h"
#include "base/nearest.h"
#include "base/number.h"
#include "base/text.h"
#include "conf/value.h"

#define STATUS_MAX 255

/* Notes 'job "x": retry-on "exit:300": ' and the text. */
static void note(const struct value_reader *reader, const struct option *option, size_t index,
                 const char *format, ...) _printf_(4, 5);
static void note(const struct value_reader *reader, const struct option *option, size_t index,
                 const char *format, ...) {
    const struct parsed_option *written = value_option(reader, option->name);
    struct settings_place place = {written->place.file, written->values[index].line};
    char text[512];
    va_list arguments;

    if (notes_is_spoiled(reader->notes, &place))
        return;
    va_start(arguments, format);
    (void) vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    value_note(reader, &place, "%s \"%.200s\": %s", option->name, written->values[index].text, text);
}

/* ---- exit statuses ---- */

enum { RANGE_E_INVALID = 1, RANGE_E_STATUS, RANGE_E_BACKWARDS }; /* named answers */

static int parse_status(const char *text, size_t size, uint64_t *ret) {
    char digits[8];
    int r;

    if (size == 0 || strspn(text, "0123456789") < size)
        return RANGE_E_INVALID;
    if (size >= sizeof(digits))
        return RANGE_E_STATUS;
    memcpy(digits, text, size);
    digits[size] = '\0';
    r = number_parse(digits, STATUS_MAX, ret);
    return r == 0 ? 0 : r == -ERANGE ? RANGE_E_STATUS : RANGE_E_INVALID;
}

/* Parses "24" or "0-1". 0 or a named answer. */
static int parse_range(const char *text, int *ret_first, int *ret_last) {
    size_t n = strcspn(text, "-");
    uint64_t first, last;
    int answer = parse_status(text, n, &first);

    last = first;
    if (answer == 0 && text[n] == '-')
        answer = parse_status(text + n + 1, strlen(text + n + 1), &last);
    if (answer != 0)
        return answer;
    *ret_first = (int) first;
    *ret_last = (int) last;
    return last < first ? RANGE_E_BACKWARDS : 0;
}

/* Returns whether the text is a range; if not, that is noted. prefix: what stands before it in the value. */
static bool read_range(const struct value_reader *reader, const struct option *option, size_t index,
                       const char *prefix, const char *text, int *ret_first, int *ret_last) {
    switch (parse_range(text, ret_first, ret_last)) {
    case 0:
        return true;
    case RANGE_E_STATUS:
        note(reader, option, index, "statuses are 0 to 255");
        return false;
    case RANGE_E_BACKWARDS:
        note(reader, option, index, "runs backwards; write %s%d-%d", prefix, *ret_last, *ret_first);
        return false;
    default:
        note(reader, option, index, "write an exit status or a range of them, such as \"%s24\" or \"%s0-1\"",
             prefix, prefix);
        return false;
    }
}

static void parse_statuses(const struct value_reader *reader, const struct option *option, void *at) {
    struct exit_statuses *statuses = at;
    const char *text;
    int first, last;

    if (value_option(reader, option->name)->n_values == 0)
        statuses->bits[0] = 1; /* status 0 */
    for (size_t i = 0; i < value_option(reader, option->name)->n_values; i++)
        if ((text = value_get(reader, option->name, i, false)) &&
            read_range(reader, option, i, "", text, &first, &last))
            for (int status = first; status <= last; status++)
                statuses->bits[status / 64] |= UINT64_C(1) << (status % 64);
}

const struct option_type option_statuses = {.parse_list = parse_statuses};

/* ---- retry-on ---- */

static const struct {
    const char *name;
    enum retry_kind kind;
    bool is_default;
} words[] = {
    {"failure", RETRY_FAILURE, true},
    {"timeout", RETRY_TIMEOUT, true},
    {"lease-lost", RETRY_LEASE_LOST, true},
    {"guard-died", RETRY_GUARD_DIED, true},
    {"host-lost", RETRY_HOST_LOST, true},
    {"not-started", RETRY_NOT_STARTED, false},
    {"queue-timeout", RETRY_QUEUE_TIMEOUT, false},
};

static void note_unknown_end(const struct value_reader *reader, const struct option *option, size_t index,
                             const char *text) {
    const char *known[ELEMENTSOF(words) + 2] = {"exit:N", "signal:NAME"}, *near;

    if (strcmp(text, "stopped") == 0) {
        note(reader, option, index, "a run that was stopped is never retried; remove it");
        return;
    }
    for (size_t i = 0; i < ELEMENTSOF(words); i++)
        known[i + 2] = words[i].name;
    near = nearest(text, known, ELEMENTSOF(known));
    if (near)
        note(reader, option, index, "did you mean \"%s\"?", near);
    else
        note(reader, option, index,
             "there are failure, exit:N, exit:N-M, signal:NAME, timeout, lease-lost, guard-died, host-lost,"
             " not-started and queue-timeout");
}

static bool read_signal(const struct value_reader *reader, const struct option *option, size_t index,
                        const char *name, struct retry_rule *ret) {
    const char *near;

    ret->kind = RETRY_SIGNAL;
    ret->first = ret->last = option_find_signal(name, &near);
    if (ret->first == 0 && near)
        note(reader, option, index, "did you mean \"signal:%s\"?", near);
    else if (ret->first == 0)
        note(reader, option, index,
             "there is no such signal; write for instance \"signal:KILL\" or \"signal:SEGV\"");
    return ret->first != 0;
}

static bool read_word(const struct value_reader *reader, const struct option *option, size_t index,
                      const char *text, struct retry_rule *ret) {
    for (size_t i = 0; i < ELEMENTSOF(words); i++)
        if (strcmp(text, words[i].name) == 0) {
            ret->kind = words[i].kind;
            return true;
        }
    note_unknown_end(reader, option, index, text);
    return false;
}

/* Returns whether the value is right. */
static bool read_rule(const struct value_reader *reader, const struct option *option, size_t index,
                      struct retry_rule *ret) {
    const char *text = value_get(reader, option->name, index, false);

    *ret = (struct retry_rule){.is_negated = text && text[0] == '!'};
    if (!text)
        return false;
    text += ret->is_negated;
    if (strncmp(text, "exit:", 5) == 0) {
        ret->kind = RETRY_EXIT;
        return read_range(reader, option, index, ret->is_negated ? "!exit:" : "exit:", text + 5, &ret->first,
                          &ret->last);
    }
    if (strncmp(text, "signal:", 7) == 0)
        return read_signal(reader, option, index, text + 7, ret);
    return read_word(reader, option, index, text, ret);
}

static void set_default_rules(struct retry_rules *rules) {
    for (size_t i = 0; i < ELEMENTSOF(words); i++)
        if (words[i].is_default)
            rules->items[rules->n++].kind = words[i].kind;
}

static void parse_retry_on(const struct value_reader *reader, const struct option *option, void *at) {
    size_t n = value_option(reader, option->name)->n_values;
    struct retry_rules *rules = at;

    rules->items = calloc(n + ELEMENTSOF(words), sizeof(*rules->items));
    if (!rules->items) {
        reader->notes->out_of_memory = true;
        return;
    }
    if (n == 0)
        set_default_rules(rules);
    for (size_t i = 0; i < n; i++)
        rules->n += read_rule(reader, option, i, &rules->items[rules->n]);
}

static void free_retry_on(void *at) {
    struct retry_rules *rules = at;

    free(rules->items);
}

const struct option_type option_retry_on = {.parse_list = parse_retry_on, .done = free_retry_on};

/* ---- names of jobs and hosts ---- */

/* Returns whether an earlier value of the list is the same; then it is noted. */
static bool is_twice(const struct value_reader *reader, const struct option *option, size_t index) {
    const struct parsed_value *values = value_option(reader, option->name)->values;

    for (size_t i = 0; i < index; i++)
        if (strcmp(values[i].text, values[index].text) == 0) {
            value_error(reader, option->name, index, "is listed twice, first in line %d; keep one",
                        values[i].line);
            return true;
        }
    return false;
}

static bool is_job_name(const struct value_reader *reader, const struct option *option, size_t index,
                        const char *text) {
    if (job_name_parse(text) != JOB_NAME_INVALID)
        return !is_twice(reader, option, index);
    value_error(reader, option->name, index, "%s; " NAME_RULE, job_name_explain(text));
    return false;
}

static bool is_host_name(const struct value_reader *reader, const struct option *option, size_t index,
                         const char *text) {
    if (name_is_valid(text))
        return !is_twice(reader, option, index);
    value_error(reader, option->name, index, "%s; " NAME_RULE, name_explain(text));
    return false;
}

static void parse_names(const struct value_reader *reader, const struct option *option, void *at,
                        bool (*is_name)(const struct value_reader *reader, const struct option *option,
                                        size_t index, const char *text)) {
    size_t n = value_option(reader, option->name)->n_values, n_copied = 0;
    char ***field = at, **list = n > 0 ? calloc(n + 1, sizeof(*list)) : NULL;

    *field = list;
    reader->notes->out_of_memory |= n > 0 && !list;
    for (size_t i = 0; list && i < n; i++) {
        const char *text = value_get(reader, option->name, i, false);

        if (!text || !is_name(reader, option, i, text))
            continue;
        list[n_copied] = value_copy(reader, text);
        n_copied += list[n_copied] != NULL;
    }
}

static void parse_job_names(const struct value_reader *reader, const struct option *option, void *at) {
    parse_names(reader, option, at, is_job_name);
}

static void parse_hosts(const struct value_reader *reader, const struct option *option, void *at) {
    parse_names(reader, option, at, is_host_name);
}

const struct option_type option_job_names = {.parse_list = parse_job_names, .done = option_free_list};
const struct option_type option_hosts = {.parse_list = parse_hosts, .done = option_free_list};
