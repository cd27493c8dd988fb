/* SPDX-License-Identifier: MIT */
/* The command line of `berth run`. It has its own parser instead of getopt: one wording for each error, no
 * abbreviations that later options would make ambiguous, no global state. */
#include "cli/run/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/number.h"
#include "base/text.h"
#include "cli/client.h"
#include "cli/verbs.h"

struct parser {
    int argc, i;
    char **argv;
    unsigned seen; /* bits of options[] */
    struct run_options options;
    char *error;
};

static _printf_(2, 3) int fail(struct parser *p, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(p->error, RUN_OPTIONS_ERROR_SIZE, format, arguments);
    va_end(arguments);
    text_make_printable(p->error); /* the text may contain control characters */
    return RUN_OPTIONS_E_USAGE;
}

static int parse_duration(struct parser *p, const char *name, const char *value, usec_t *ret) {
    switch (duration_parse(value, ret)) {
    case 0:
        return 0;
    case -ERANGE:
        return fail(p, "%s %.100s: must be at most 3650d", name, value);
    default:
        return fail(p, "%s %.100s: must be a duration such as 500ms, 30s or 1h30m", name, value);
    }
}

static int on_pool(struct parser *p, const char *name, const char *value) {
    int r = demands_add(&p->options.pools, value);

    return r == 0 ? 0 : fail(p, "%s %.100s: %s", name, value, demands_explain(r));
}

static int on_nowait(struct parser *p, _unused_ const char *name, _unused_ const char *value) {
    p->options.nowait = true;
    return 0;
}

static int on_verbose(struct parser *p, _unused_ const char *name, _unused_ const char *value) {
    p->options.verbose = true;
    return 0;
}

static int on_wait(struct parser *p, const char *name, const char *value) {
    return parse_duration(p, name, value, &p->options.wait_usec);
}

static int on_timeout(struct parser *p, const char *name, const char *value) {
    int r = parse_duration(p, name, value, &p->options.timeout_usec);

    return r == 0 && p->options.timeout_usec == 0 ? fail(p, "%s %.100s: must be above 0s", name, value) : r;
}

static int on_head_start(struct parser *p, const char *name, const char *value) {
    return parse_duration(p, name, value, &p->options.head_start_usec);
}

static int on_stop_timeout(struct parser *p, const char *name, const char *value) {
    return parse_duration(p, name, value, &p->options.stop_timeout_usec);
}

static int on_name(struct parser *p, const char *name, const char *value) {
    if (!name_is_valid(value))
        return fail(p, "%s \"%.100s\" %s", name, value, name_explain(value));
    snprintf(p->options.name, sizeof(p->options.name), "%s", value);
    return 0;
}

static int on_lost(struct parser *p, const char *name, const char *value) {
    if (strcmp(value, "stop") == 0)
        p->options.on_lease_lost = ON_LEASE_LOST_STOP;
    else if (strcmp(value, "continue") == 0)
        p->options.on_lease_lost = ON_LEASE_LOST_CONTINUE;
    else
        return fail(p, "%s %.100s: must be stop or continue", name, value);
    return 0;
}

static int on_status(struct parser *p, const char *name, const char *value) {
    uint64_t status;

    if (number_parse(value, 255, &status) < 0)
        return fail(p, "%s %.100s: must be 0 to 255", name, value);
    p->options.no_permit_status = (int) status;
    return 0;
}

static int on_help(_unused_ struct parser *p, _unused_ const char *name, _unused_ const char *value) {
    return RUN_OPTIONS_HELP;
}

static const struct option {
    const char *name;
    bool has_value, repeatable;
    int (*fn)(struct parser *p, const char *name, const char *value);
} options[] = {
    {"-p", true, true, on_pool},
    {"-n", false, true, on_nowait},
    {"-v", false, true, on_verbose},
    {"-E", true, false, on_status},
    {"-h", false, true, on_help},
    {"--wait", true, false, on_wait},
    {"--timeout", true, false, on_timeout},
    {"--head-start", true, false, on_head_start},
    {"--name", true, false, on_name},
    {"--on-lease-lost", true, false, on_lost},
    {"--stop-timeout", true, false, on_stop_timeout},
    {"--help", false, true, on_help},
};

static const struct option *option_find(const char *text, size_t n) {
    for (size_t i = 0; i < ELEMENTSOF(options); i++)
        if (strlen(options[i].name) == n && strncmp(options[i].name, text, n) == 0)
            return &options[i];
    return NULL;
}

static int fail_unknown(struct parser *p, const char *text, size_t n) {
    const char *known[ELEMENTSOF(options)], *near;
    char written[NAME_MAX_LENGTH] = "";

    for (size_t i = 0; i < ELEMENTSOF(options); i++)
        known[i] = options[i].name;
    if (n < sizeof(written))
        memcpy(written, text, n);
    near = n > 2 && n < sizeof(written) ? option_nearest("run", written, known, ELEMENTSOF(options)) : NULL;
    if (near)
        return fail(p, "unknown option %.*s (did you mean %s?)", (int) (n < 100 ? n : 100), text, near);
    return fail(p, "unknown option %.*s", (int) (n < 100 ? n : 100), text);
}

/* value: the one written with the option; NULL: the next argument. */
static int apply(struct parser *p, const struct option *o, const char *value) {
    unsigned bit = 1U << (o - options);

    if (o->has_value && !value) {
        if (p->i + 1 >= p->argc)
            return fail(p, "%s needs a value", o->name);
        value = p->argv[++p->i];
    }
    if (p->seen & bit && !o->repeatable)
        return fail(p, "%s is given twice", o->name);
    p->seen |= bit;
    return o->fn(p, o->name, value);
}

static int parse_long(struct parser *p, const char *text) {
    size_t n = strcspn(text, "=");
    const struct option *o = option_find(text, n);

    if (!o)
        return fail_unknown(p, text, n);
    if (text[n] == '\0')
        return apply(p, o, NULL);
    return o->has_value ? apply(p, o, text + n + 1) : fail(p, "%s takes no value", o->name);
}

/* "-nv", "-p db", "-pdb" */
static int parse_short(struct parser *p, const char *text) {
    for (const char *c = text + 1; *c; c++) {
        char name[3] = {'-', *c, '\0'};
        const struct option *o = option_find(name, 2);
        int r;

        if (!o)
            return fail_unknown(p, name, 2);
        if (o->has_value)
            return apply(p, o, c[1] ? c + 1 : NULL);
        r = apply(p, o, NULL);
        if (r != 0)
            return r;
    }
    return 0;
}

/* Derives the name from the command's basename; characters that a name may not have become '_'. */
static void default_name(const char *command, char name[static NAME_MAX_LENGTH + 1]) {
    const char *slash = strrchr(command, '/');
    size_t n = 0;

    for (const char *c = slash ? slash + 1 : command; *c && n < NAME_MAX_LENGTH; c++) {
        char one[2] = {*c, '\0'};
        bool fits = name_is_valid(one) || (n > 0 && (*c == '.' || *c == '-'));

        name[n++] = fits ? *c : '_';
    }
    name[n] = '\0';
    if (n == 0)
        snprintf(name, NAME_MAX_LENGTH + 1, "command");
}

static int check(struct parser *p) {
    struct run_options *o = &p->options;

    if (o->nowait && o->wait_usec != USEC_INFINITY)
        return fail(p, "-n and --wait exclude each other");
    if (o->wait_usec == 0) { /* --wait 0s is -n: free permits or none */
        o->nowait = true;
        o->wait_usec = USEC_INFINITY;
    }
    if (o->pools.n == 0)
        return fail(p, "which pool? -p POOL[:PERMITS]");
    o->command = p->argv + p->i;
    if (p->i >= p->argc || o->command[0][0] == '\0')
        return fail(p, "which command? -- COMMAND [ARG...]");
    if (o->name[0] == '\0')
        default_name(o->command[0], o->name);
    return 0;
}

int run_options_parse(int argc, char **argv, struct run_options *ret, char ret_error[static RUN_OPTIONS_ERROR_SIZE]) {
    struct parser p = {
        .argc = argc,
        .argv = argv,
        .error = ret_error,
        .options = {.wait_usec = USEC_INFINITY,
                    .timeout_usec = USEC_INFINITY,
                    .stop_timeout_usec = USEC_INFINITY,
                    .no_permit_status = EXIT_NO_PERMIT},
    };
    int r;

    ret_error[0] = '\0';
    for (p.i = 1; p.i < argc; p.i++) {
        const char *text = argv[p.i];

        if (text[0] != '-' || text[1] == '\0')
            break;
        if (strcmp(text, "--") == 0) {
            p.i++;
            break;
        }
        r = text[1] == '-' ? parse_long(&p, text) : parse_short(&p, text);
        if (r != 0)
            return r;
    }
    r = check(&p);
    if (r == 0)
        *ret = p.options;
    return r;
}
