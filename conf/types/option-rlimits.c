/* SPDX-License-Identifier: MIT */

/* The type of `limits`: limits of setrlimit(2) by name. */

#include "conf/types/option-types.h"

#include <string.h>
#include <sys/resource.h>

#include "base/nearest.h"
#include "base/number.h"
#include "conf/hash.h"
#include "conf/value.h"

static const struct resource {
    const char *name;
    int resource;
    bool is_size;              /* bytes */
    bool is_bounded;           /* the kernel refuses RLIM_INFINITY */
} resources[] = {
    {"as", RLIMIT_AS, true, false},           {"core", RLIMIT_CORE, true, false},         {"cpu", RLIMIT_CPU, false, false},
    {"data", RLIMIT_DATA, true, false},       {"fsize", RLIMIT_FSIZE, true, false},       {"locks", RLIMIT_LOCKS, false, false},
    {"memlock", RLIMIT_MEMLOCK, true, false}, {"msgqueue", RLIMIT_MSGQUEUE, true, false}, {"nice", RLIMIT_NICE, false, false},
    {"nofile", RLIMIT_NOFILE, false, true},   {"nproc", RLIMIT_NPROC, false, false},      {"rss", RLIMIT_RSS, true, false},
    {"rtprio", RLIMIT_RTPRIO, false, false},  {"rttime", RLIMIT_RTTIME, false, false},    {"sigpending", RLIMIT_SIGPENDING, false, false},
    {"stack", RLIMIT_STACK, true, false},
};

static const struct resource *find_resource(const char *name, size_t n) {
    for (size_t i = 0; i < ELEMENTSOF(resources); i++)
        if (strlen(resources[i].name) == n && memcmp(resources[i].name, name, n) == 0)
            return &resources[i];
    return NULL;
}

static void note_unknown(const struct value_reader *reader, const struct option *option, size_t index, const char *name, size_t n_name) {
    const char *names[ELEMENTSOF(resources)], *near;
    char written[32], known[256];
    size_t n = 0;

    snprintf(written, sizeof(written), "%.*s", (int) (n_name < sizeof(written) ? n_name : 0), name);
    for (size_t i = 0; i < ELEMENTSOF(resources); i++) {
        names[i] = resources[i].name;
        n += (size_t) snprintf(known + n, sizeof(known) - n, "%s%s", i > 0 ? ", " : "", names[i]); /* they fit */
    }
    near = nearest(written, names, ELEMENTSOF(names));
    value_error(reader, option->name, index, "is no limit of setrlimit(2); %s%s%s", near ? "did you mean \"" : "there are ", near ? near : known,
                near ? "\"?" : "");
}

/* 0 or a negative errno. */
static int parse_amount(const struct resource *resource, const char *text, uint64_t *ret) {
    if (strcmp(text, "unlimited") == 0 && !resource->is_bounded) {
        *ret = RLIM_INFINITY;
        return 0;
    }
    if (resource->is_size)
        return size_parse(text, ret);
    return number_parse(text, INT64_MAX, ret);
}

static void read_limit(struct rlimits *limits, const struct value_reader *reader, const struct option *option, size_t index) {
    const char *text = value_get(reader, option->name, index, false);
    size_t n = text ? strcspn(text, "=") : 0;
    const struct resource *resource;
    uint64_t value;

    if (!text)
        return;
    resource = find_resource(text, n);
    if (n == 0 || text[n] == '\0')
        value_error(reader, option->name, index, "must be NAME=VALUE, such as \"nofile=1024\" or \"core=0\"");
    else if (!resource)
        note_unknown(reader, option, index, text, n);
    else if (parse_amount(resource, text + n + 1, &value) < 0 || (value > INT64_MAX && value != RLIM_INFINITY) ||
             (value == RLIM_INFINITY && strcmp(text + n + 1, "unlimited") != 0))
        value_error(reader, option->name, index, "must be %s%s", resource->is_size ? "a size such as \"64M\" or \"2G\"" : "a decimal number",
                    resource->is_bounded ? "; the kernel knows no unlimited nofile" : ", or unlimited");
    else
        limits->items[limits->n++] = (struct rlimit_setting) {resource->resource, value};
}

/* Returns whether an earlier value of the list has the same name; then it is noted. */
static bool is_twice(const struct value_reader *reader, const struct option *option, size_t index) {
    const struct parsed_value *values = value_option(reader, option->name)->values;
    size_t n = strcspn(values[index].text, "=");

    if (!find_resource(values[index].text, n))
        return false;
    for (size_t i = 0; i < index; i++)
        if (strncmp(values[i].text, values[index].text, n) == 0 && values[i].text[n] == '=') {
            value_error(reader, option->name, index, "sets a limit twice, first in line %d; keep one", values[i].line);
            return true;
        }
    return false;
}

static int compare(const void *a, const void *b) {
    const struct rlimit_setting *x = a, *y = b;

    return x->resource - y->resource;
}

static void parse_rlimits(const struct value_reader *reader, const struct option *option, void *at) {
    size_t n = value_option(reader, option->name)->n_values;
    struct rlimits *limits = at;

    if (n == 0)
        return;
    limits->items = calloc(n, sizeof(*limits->items));
    if (!limits->items) {
        reader->notes->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (!is_twice(reader, option, i))
            read_limit(limits, reader, option, i);
    qsort(limits->items, limits->n, sizeof(*limits->items), compare);
}

static void hash_rlimits(uint64_t *hash, _unused_ const struct option *option, const void *at) {
    const struct rlimits *limits = at;
    char key[24];

    for (size_t i = 0; i < limits->n; i++) {
        snprintf(key, sizeof(key), "limit-%d", limits->items[i].resource);
        hash_add_number(hash, key, limits->items[i].value);
    }
}

static void free_rlimits(void *at) {
    struct rlimits *limits = at;

    free(limits->items);
}

const struct option_type option_rlimits = {.parse_list = parse_rlimits, .hash = hash_rlimits, .done = free_rlimits};
