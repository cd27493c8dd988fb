/* SPDX-License-Identifier: MIT */

/* The types of options whose values are times, numbers and words. */

#include "conf/types/option-types.h"

#include <signal.h>
#include <string.h>

#include "base/duration.h"
#include "base/nearest.h"
#include "base/number.h"
#include "conf/hash.h"
#include "conf/value.h"

static const char *or_none(const struct option *option) {
    return option_is_optional(option) ? ", or \"\" for none" : "";
}

static bool is_none(const struct option *option, const char *text) {
    return *text == '\0' && option_is_optional(option);
}

static void hash_u64(uint64_t *hash, const struct option *option, uint64_t value, bool is_set) {
    if (is_set || option->hash == HASH)
        hash_add_number(hash, option->name, value);
}

/* ---- times and numbers ---- */

static bool parse_duration(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    char low[DURATION_TEXT_SIZE], high[DURATION_TEXT_SIZE];
    usec_t usec, min = (usec_t) option->min, max = (usec_t) option->max;
    int error = 0;

    if (is_none(option, text))
        usec = USEC_INFINITY;
    else
        error = duration_parse(text, &usec);
    if (error == -EINVAL)
        value_error(reader, option->name, 0, "must be a duration such as \"250ms\", \"30s\" or \"1h30m\"%s", or_none(option));
    else if (error < 0 || (usec != USEC_INFINITY && (usec < min || usec > max)))
        value_error(reader, option->name, 0, "must be between %s and %s%s", duration_format(min, low),
                    duration_format(max, high), or_none(option));
    else
        return *(usec_t *) at = usec, true;
    return false;
}

static void hash_duration(uint64_t *hash, const struct option *option, const void *at) {
    const usec_t *usec = at;

    hash_u64(hash, option, *usec, *usec != USEC_INFINITY);
}

const struct option_type option_duration = {.parse = parse_duration, .hash = hash_duration};

static bool parse_number(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    uint64_t value = 0;

    if (!is_none(option, text) &&
        (number_parse(text, (uint64_t) option->max, &value) < 0 || value < (uint64_t) option->min)) {
        value_error(reader, option->name, 0, "must be a decimal number from %" PRId64 " to %" PRId64 "%s", option->min,
                    option->max, option_is_optional(option) ? or_none(option) : ", without leading zeros");
        return false;
    }
    *(uint32_t *) at = (uint32_t) value;
    return true;
}

static void hash_number(uint64_t *hash, const struct option *option, const void *at) {
    const uint32_t *value = at;

    hash_u64(hash, option, *value, *value > 0);
}

const struct option_type option_number = {.parse = parse_number, .hash = hash_number};

static bool parse_integer(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    bool is_negative = text[0] == '-';
    int64_t most = is_negative ? -option->min : option->max;
    uint64_t value;

    if (is_none(option, text)) {
        *(int *) at = JOB_INHERIT;
        return true;
    }
    if (number_parse(text + is_negative, (uint64_t) most, &value) < 0 || (is_negative && value == 0)) {
        value_error(reader, option->name, 0, "must be a decimal number from %" PRId64 " to %" PRId64 "%s", option->min,
                    option->max, or_none(option));
        return false;
    }
    *(int *) at = is_negative ? -(int) value : (int) value;
    return true;
}

static void hash_integer(uint64_t *hash, const struct option *option, const void *at) {
    const int *value = at;

    hash_u64(hash, option, (uint64_t) (*value - option->min), *value != JOB_INHERIT);
}

const struct option_type option_integer = {.parse = parse_integer, .hash = hash_integer};

static bool parse_size(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    char least[SIZE_TEXT_SIZE];
    uint64_t value = 0;
    int error = is_none(option, text) ? 0 : size_parse(text, &value);

    if (error < 0 || value > (uint64_t) option->max || (value == 0 && !is_none(option, text)))
        value_error(reader, option->name, 0, "must be a size such as \"512M\" or \"2G\"%s", or_none(option));
    else if (value > 0 && value < (uint64_t) option->min)
        value_error(reader, option->name, 0, "is too small; make it at least %s", size_format((uint64_t) option->min, least));
    else
        return *(uint64_t *) at = value, true;
    return false;
}

static void hash_size(uint64_t *hash, const struct option *option, const void *at) {
    const uint64_t *value = at;

    hash_u64(hash, option, *value, *value > 0);
}

const struct option_type option_size = {.parse = parse_size, .hash = hash_size};

static bool parse_umask(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    size_t n = strspn(text, "01234567");
    mode_t mode = 0;

    if (n < 1 || n > 4 || text[n] != '\0' || (n == 4 && text[0] != '0')) {
        value_error(reader, option->name, 0, "must be octal, \"000\" to \"777\"");
        return false;
    }
    for (size_t i = 0; i < n; i++)
        mode = mode * 8 + (mode_t) (text[i] - '0');
    *(mode_t *) at = mode;
    return true;
}

static void hash_umask(uint64_t *hash, const struct option *option, const void *at) {
    const mode_t *mode = at;

    hash_u64(hash, option, *mode, true);
}

const struct option_type option_umask = {.parse = parse_umask, .hash = hash_umask};

/* ---- words ---- */

static bool parse_bool(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0) {
        value_error(reader, option->name, 0, "must be true or false");
        return false;
    }
    *(bool *) at = text[0] == 't';
    return true;
}

static void hash_bool(uint64_t *hash, const struct option *option, const void *at) {
    const bool *value = at;

    hash_u64(hash, option, *value, *value);
}

const struct option_type option_bool = {.parse = parse_bool, .hash = hash_bool};

/* "a", "b" or "c" */
static const char *list_words(const char *const *words, size_t n, char *buffer, size_t size) {
    size_t length = 0;

    buffer[0] = '\0';
    for (size_t i = 0; i < n && length < size; i++)
        length += (size_t) snprintf(buffer + length, size - length, "%s\"%s\"", i == 0 ? "" : i + 1 < n ? ", " : " or ",
                                    words[i]);
    return buffer;
}

static bool parse_choice(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    const char *const *words = option->type->words, *near;
    char known[128];
    unsigned n = 0;

    for (; words[n]; n++)
        if (strcmp(text, words[n]) == 0) {
            *(unsigned *) at = n;
            return true;
        }
    near = nearest(text, words, n);
    value_error(reader, option->name, 0, "must be %s%s%s%s", list_words(words, n, known, sizeof(known)),
                near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    return false;
}

static void hash_choice(uint64_t *hash, const struct option *option, const void *at) {
    const unsigned *value = at;

    hash_u64(hash, option, *value, *value > 0);
}

#define CHOICE(...) {.parse = parse_choice, .hash = hash_choice, .words = (const char *const[]) {__VA_ARGS__, NULL}}
_Static_assert(sizeof(enum pool_scope) == sizeof(unsigned), "enums of choices are written as unsigned");

const struct option_type option_scope = CHOICE([POOL_SCOPE_CLUSTER] = "cluster", [POOL_SCOPE_HOST] = "host");
const struct option_type option_overlap =
    CHOICE([JOB_OVERLAP_SKIP] = "skip", [JOB_OVERLAP_QUEUE] = "queue", [JOB_OVERLAP_ALLOW] = "allow",
           [JOB_OVERLAP_REPLACE] = "replace");
const struct option_type option_on = CHOICE([JOB_ON_EACH] = "each", [JOB_ON_ANY] = "any");
const struct option_type option_on_lease_lost =
    CHOICE([ON_LEASE_LOST_STOP] = "stop", [ON_LEASE_LOST_CONTINUE] = "continue");
const struct option_type option_restart =
    CHOICE([JOB_RESTART_NO] = "no", [JOB_RESTART_ALWAYS] = "always", [JOB_RESTART_ON_FAILURE] = "on-failure");
const struct option_type option_io_class =
    CHOICE([JOB_IO_CLASS_NONE] = "", [JOB_IO_CLASS_REALTIME] = "realtime", [JOB_IO_CLASS_BEST_EFFORT] = "best-effort",
           [JOB_IO_CLASS_IDLE] = "idle");
const struct option_type option_tls_minimum = CHOICE([TLS_MINIMUM_1_2] = "1.2", [TLS_MINIMUM_1_3] = "1.3");

int option_find_signal(const char *name, const char **ret_near) {
    const char *names[32];
    size_t n = 0;

    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (int signal = 1; signal < 32; signal++) {
        const char *known = sigabbrev_np(signal);

        if (known && strcmp(known, name) == 0)
            return signal;
        if (known)
            names[n++] = known;
    }
    *ret_near = nearest(name, names, n);
    return 0;
}

static bool parse_signal(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    const char *near;
    int signal = option_find_signal(text, &near);

    if (signal == 0) {
        value_error(reader, option->name, 0, "is not the name of a signal; %s%s%s",
                    near ? "did you mean \"" : "write for instance \"TERM\", \"INT\" or \"HUP\"", near ? near : "", near ? "\"?" : "");
        return false;
    }
    *(int *) at = signal;
    return true;
}

static void hash_signal(uint64_t *hash, const struct option *option, const void *at) {
    const int *signal = at;

    hash_u64(hash, option, (uint64_t) *signal, true);
}

const struct option_type option_signal = {.parse = parse_signal, .hash = hash_signal};
