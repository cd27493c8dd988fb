/* SPDX-License-Identifier: MIT */
/* Options and words of a verb. `berth run` has its own parser, because a command follows its options. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/job-name.h"
#include "base/name.h"
#include "base/nearest.h"
#include "base/pool-name.h"
#include "base/text.h"
#include "cli/client.h"
#include "cli/verbs.h"
#include "cli/when.h"

#define OPTIONS_MAX 16
#define TEXT_MAX 512

static void print_error(const char *verb, const char *format, va_list arguments) _printf_(2, 0);
static void print_error(const char *verb, const char *format, va_list arguments) {
    char text[TEXT_MAX];

    (void) vsnprintf(text, sizeof(text), format, arguments);
    text_make_printable(text);
    fprintf(stderr, "berth%s%s: %s\n", verb ? " " : "", verb ? verb : "", text);
}

int options_refuse(const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    print_error(NULL, format, arguments);
    va_end(arguments);
    return EXIT_USAGE;
}

int options_wrong_usage(const char *verb, const char *format, ...) {
    const struct verb *v = verb_find(verb);
    const char *end = v ? strstr(v->help, "\n\n") : NULL;
    va_list arguments;

    va_start(arguments, format);
    print_error(verb, format, arguments);
    va_end(arguments);
    if (v)
        fprintf(stderr, "%.*s\n", (int) (end ? end - v->help : 0), v->help);
    return EXIT_USAGE;
}

int options_check_name(const char *verb, const char *kind, const char *name) {
    return name_is_valid(name) ? 0
                               : options_wrong_usage(verb, "the name of a %s %s", kind, name_explain(name));
}

int options_check_job(const char *verb, const char *kind, const char *name) {
    if (job_name_parse(name) != JOB_NAME_INVALID)
        return 0;
    return options_wrong_usage(verb, "the name of a %s %s; " NAME_RULE, kind, job_name_explain(name));
}

int options_check_pool(const char *verb, const char *name) {
    if (pool_name_parse(name) != POOL_NAME_INVALID)
        return 0;
    return options_wrong_usage(verb, "the name of a pool %s", pool_name_explain(name));
}

int options_parse_msec(const char *verb, const char *option, const char *text, json_int_t *ret) {
    usec_t usec;
    int r = duration_parse(text, &usec);

    if (r == -ERANGE)
        return options_wrong_usage(verb, "%s %.100s: must be at most 3650d", option, text);
    if (r < 0 || usec == 0)
        return options_wrong_usage(verb, "%s %.100s: must be a duration such as 30s, 10m or 1h30m", option,
                                   text);
    *ret = (json_int_t) (usec / USEC_PER_MSEC);
    return 0;
}

int options_parse_when(const char *verb, const char *option, const char *text, usec_t *ret) {
    if (!text || when_parse(text, clock_realtime(), ret) == 0)
        return 0;
    return options_wrong_usage(
        verb,
        "%s %.100s: must be a time such as today, -2h, \"2 hours ago\", 14:00, \"2026-11-20 14:00\" or "
        "2026-11-20T13:00:00Z",
        option, text);
}

static int unknown_option(const char *verb, const char *word, size_t length, const struct verb_option *options, size_t n_options) {
    const char *known[OPTIONS_MAX + 1] = {"--help"}, *near;
    char name[NAME_MAX_LENGTH + 1];

    for (size_t i = 0; i < n_options && i < OPTIONS_MAX; i++)
        known[i + 1] = options[i].name;
    snprintf(name, sizeof(name), "%.*s", (int) length, word);
    near = option_nearest(verb, name, known, (n_options < OPTIONS_MAX ? n_options : OPTIONS_MAX) + 1);
    return near ? options_wrong_usage(verb, "unknown option %s; did you mean %s?", name, near)
                : options_wrong_usage(verb, "unknown option %s", name);
}

static int take_value(const char *verb, const struct verb_option *o, const char *value) {
    if (o->list && o->list->n == STRING_LIST_MAX)
        return options_wrong_usage(verb, "%s is given more than %d times", o->name, STRING_LIST_MAX);
    if (!o->list && *o->value)
        return options_wrong_usage(verb, "%s is given twice", o->name);
    if (o->is_text && !text_is_utf8(value))
        return options_wrong_usage(verb, "%s: the text is not UTF-8", o->name);
    if (o->list)
        o->list->items[o->list->n++] = value;
    else
        *o->value = value;
    return 0;
}

/* Takes the option at argv[*i] and moves *i past its value. Returns 0 or EXIT_USAGE. */
static int take_option(int argc, char **argv, int *i, const struct verb_option *options, size_t n_options) {
    const char *word = argv[*i];
    size_t length = strcspn(word, "=");

    for (size_t k = 0; k < n_options; k++) {
        const struct verb_option *o = &options[k];

        if (strlen(o->name) != length || strncmp(o->name, word, length) != 0)
            continue;
        if (o->flag) {
            if (word[length] == '=')
                return options_wrong_usage(argv[0], "%s takes no value", o->name);
            *o->flag = true;
            return 0;
        }
        if (word[length] == '=')
            return take_value(argv[0], o, word + length + 1);
        if (*i + 1 == argc)
            return options_wrong_usage(argv[0], "%s needs a value", o->name);
        return take_value(argv[0], o, argv[++*i]);
    }
    return unknown_option(argv[0], word, length, options, n_options);
}

/* Names the word after the first n of the usage: "berth start JOB... [--wait]". */
static int missing_word(const struct verb *verb, int n) {
    const char *word = verb->help;

    for (int i = 0; i < n + 2; i++) /* "berth", the verb */
        word += strcspn(word, " \n") + 1;
    return options_wrong_usage(verb->name, "%.*s is missing", (int) strcspn(word, " .\n"), word);
}

static int count_words(const struct verb *verb, int n) {
    if (n < verb->min_words)
        return missing_word(verb, n);
    if (n > verb->max_words)
        return options_wrong_usage(verb->name, "%d argument%s too many", n - verb->max_words,
                                   n - verb->max_words == 1 ? "" : "s");
    return 0;
}

int options_parse(int argc, char **argv, const struct verb_option *options, size_t n_options,
                  int *ret_status) {
    const struct verb *verb = verb_find(argv[0]);
    bool only_words = false;
    int n = 0;

    *ret_status = 0;
    for (int i = 1; i < argc && *ret_status == 0; i++) {
        if (only_words || argv[i][0] != '-' || argv[i][1] == '\0') {
            argv[++n] = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            fputs(verb->help, stdout);
            return -1;
        } else {
            *ret_status = take_option(argc, argv, &i, options, n_options);
        }
    }
    if (*ret_status == 0)
        *ret_status = count_words(verb, n);
    return *ret_status == 0 ? n : -1;
}
