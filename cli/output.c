/* SPDX-License-Identifier: MIT */
#include "cli/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json/format.h"
#include "base/silence.h"
#include "cli/client.h"
#include "cli/verbs.h"

#define AGE_SHOWN 1000 /* ms; older answers have a note */
#define MALFORMED_SHOWN 10

void output_seen(struct table *t, const json_t *item) {
    char text[FORMAT_SIZE];

    if (json_is_integer(json_object_get(item, "seen_ms")))
        table_cell(t, TABLE_PLAIN, "%s ago", format_duration(item, "seen_ms", text));
    else
        table_cell(t, TABLE_PLAIN, "%s", "not known");
}

json_int_t output_silent_ms(const json_t *reply) {
    json_int_t lease = format_get_number(json_object_get(reply, "redis"), "lease_ms");

    return lease > 0 ? (json_int_t) silence_bound((uint64_t) lease, 0) : INT64_MAX; /* the picture has no heartbeat */
}

int output_error(int r) {
    fprintf(stderr, "berth: %s\n", strerror(-r));
    return EXIT_INTERNAL;
}

int output_json(const json_t *answer) {
    size_t flags = (isatty(STDOUT_FILENO) ? JSON_INDENT(2) : JSON_COMPACT) | JSON_REAL_PRECISION(12);

    if (json_dumpf(answer, stdout, flags) < 0)
        return EXIT_INTERNAL;
    fputs("\n", stdout);
    return 0;
}

int output_table(struct table *t, const char *nothing) {
    int r;

    if (table_is_empty(t)) {
        fprintf(stderr, "%s\n", nothing);
        return 0;
    }
    r = table_print(t);
    if (r == 0)
        return 0;
    fprintf(stderr, "berth: cannot print the table: %s\n", strerror(-r));
    return EXIT_INTERNAL;
}

int output_items(const json_t *items, const struct table_column *columns, size_t n,
                 void (*add)(struct table *t, const json_t *item), const char *nothing) {
    _cleanup_(table_freep) struct table *t = NULL;
    int r = table_new(&t, columns, n);
    json_t *item;
    size_t i;

    if (r < 0)
        return output_error(r);
    json_array_foreach(items, i, item) {
        table_line(t);
        add(t, item);
    }
    return output_table(t, nothing);
}

/* Prints values in Redis that no berthd wrote. */
static void print_malformed(const json_t *answer) {
    const json_t *list = json_object_get(answer, "malformed");
    json_t *item;
    size_t i;

    json_array_foreach(list, i, item) {
        if (i == MALFORMED_SHOWN) {
            fprintf(stderr, "berth: and %zu more; --json lists them\n", json_array_size(list) - i);
            return;
        }
        fprintf(stderr, "berth: malformed in Redis: %s %s: %s\n", format_get_text(item, "key"),
                format_get_text(item, "id"), format_get_text(item, "record"));
    }
}

void output_caveats(const json_t *answer) {
    const json_t *redis = json_object_get(answer, "redis");
    char text[FORMAT_SIZE];

    if (json_is_true(json_object_get(answer, "recovering")))
        fputs("berth: berthd is recovering: not all runs of this host are known yet\n", stderr);
    if (*format_get_text(answer, "state_error"))
        fprintf(stderr,
                "berth: cannot use the state directory (%s): after a reboot berthd does not know what it began "
                "or which jobs are broken\n",
                format_get_text(answer, "state_error"));
    if (json_is_true(json_object_get(answer, "stale"))) {
        const char *since = format_when(redis, "since", clock_realtime(), text),
                   *error = format_get_text(redis, "error");

        if (*error) /* otherwise no attempt has failed yet */
            fprintf(stderr, "berth: Redis is away (lost %s; last error: %s)", since, error);
        else
            fputs("berth: berthd is connecting to Redis", stderr);
        fputs(": showing what this host knows\n", stderr);
    } else if (format_get_number(redis, "grace_ms") > 0)
        fprintf(stderr, "berth: grace period: nothing is granted for up to %s; what hosts have not reported since is missing here\n",
                format_msec(format_get_number(redis, "grace_ms"), text));
    if (format_get_number(answer, "age_ms") >= AGE_SHOWN)
        fprintf(stderr, "berth: seen %s ago\n", format_msec(format_get_number(answer, "age_ms"), text));
    print_malformed(answer);
}

int output_reply(int argc, char **argv, const char *method, int (*print)(const json_t *answer)) {
    _cleanup_json_ json_t *answer = NULL;
    bool json = false;
    const struct verb_option options[] = {OPTION_FLAG("--json", &json)};
    int status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), &status) < 0)
        return status;
    status = client_call(method, NULL, &answer);
    if (status != 0)
        return status;
    return json ? output_json(answer) : print(answer);
}
