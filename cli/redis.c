/* SPDX-License-Identifier: MIT */
/* `berth redis`: what berthd knows about its Redis, a line for each subject. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>

#include "base/json/format.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "cli/wrap.h"

#define INT "%" JSON_INTEGER_FORMAT
#define INDENT 11 /* of the text behind a subject */
#define WIDTH 80
#define LINE_SIZE 1024

/* Prints text behind a subject, with lines of at most 80 columns, also into a pipe. */
static void print_line(const char *subject, const char *format, ...) _printf_(2, 3);
static void print_line(const char *subject, const char *format, ...) {
    char text[LINE_SIZE];
    va_list ap;

    va_start(ap, format);
    (void) vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    printf("%-*s", INDENT, subject);
    wrap_print(stdout, text, INDENT, &(struct wrap) {.width = MIN((size_t) WIDTH, table_terminal_width()), .indent = INDENT});
}

static bool is_known(const json_t *answer, const char *key) {
    const json_t *value = json_object_get(answer, key);

    return value && !json_is_null(value);
}

static void print_state(const json_t *answer) {
    const char *reason = format_get_text(answer, "reason");
    char since[FORMAT_SIZE];

    if (strcmp(format_get_text(answer, "state"), "connected") == 0)
        return;
    if (!*reason) {
        print_line("state", strcmp(format_get_text(answer, "state"), "connecting") == 0
                                ? "connecting for the first time"
                                : "not connected yet: berthd is recovering the runs of this host");
        return;
    }
    print_line("state", "%s (lost %s): %s", format_get_text(answer, "state"),
               format_when(answer, "since", clock_realtime(), since), reason);
}

static void print_server(const json_t *answer) {
    const json_t *tls = json_object_get(answer, "tls");
    const char *address = format_get_text(answer, "address"), *name = format_get_text(answer, "server"),
               *until = format_get_text(tls, "until");
    char version[FORMAT_SIZE] = "", slot[FORMAT_SIZE] = "", master[FORMAT_SIZE] = "", secured[FORMAT_SIZE] = "";

    if (*name)
        (void) snprintf(version, sizeof(version), " (%s %s)", name, format_get_text(answer, "version"));
    if (json_is_object(tls))
        (void) snprintf(secured, sizeof(secured), ", %s%s%s", format_get_text(tls, "version"),
                        *until ? ", certificate until " : "", until);
    if (is_known(answer, "slot"))
        (void) snprintf(slot, sizeof(slot), ", the node of slot " INT, format_get_number(answer, "slot"));
    if (is_known(answer, "master_name"))
        (void) snprintf(master, sizeof(master), ", master %s of the sentinels",
                        format_get_text(answer, "master_name"));
    if (*address)
        print_line("server", "%s%s%s%s%s", address, version, slot, master, secured);
}

static void print_role(const json_t *answer) {
    json_int_t replicas = format_get_number(answer, "replicas");
    char good[FORMAT_SIZE] = "";

    if (!is_known(answer, "role"))
        return;
    if (is_known(answer, "good_replicas"))
        (void) snprintf(good, sizeof(good), " (" INT " in time for min-replicas-to-write)",
                        format_get_number(answer, "good_replicas"));
    print_line("role", "%s, " INT " replica%s%s", format_get_text(answer, "role"), replicas,
               replicas == 1 ? "" : "s", good);
}

static void print_limits_of_server(const json_t *answer) {
    char all[FORMAT_SIZE] = "";

    if (is_known(answer, "policy"))
        print_line("memory", "%s", format_get_text(answer, "policy"));
    if (is_known(answer, "clients_max"))
        (void) snprintf(all, sizeof(all), " of " INT, format_get_number(answer, "clients_max"));
    if (is_known(answer, "clients"))
        print_line("clients", INT "%s", format_get_number(answer, "clients"), all);
}

static void print_calls(const json_t *answer) {
    json_int_t scripts = format_get_number(answer, "scripts");

    if (is_known(answer, "rtt_ms"))
        print_line("round trip", "%.*fms (of heartbeats: median of the last 20)",
                   json_number_value(json_object_get(answer, "rtt_ms")) < 10 ? 2 : 0,
                   json_number_value(json_object_get(answer, "rtt_ms")));
    if (is_known(answer, "scripts") && scripts > 0)
        print_line("scripts", INT " loaded", scripts);
    else if (is_known(answer, "scripts"))
        print_line("scripts", "sent by their text: Redis refuses SCRIPT");
}

static double seconds(const json_t *answer, const char *key) {
    return (double) format_get_number(answer, key) / 1000;
}

static void print_times(const json_t *answer) {
    char grace[FORMAT_SIZE], margin[FORMAT_SIZE];

    if (format_get_number(answer, "grace_ms") > 0)
        print_line("grace", "nothing is granted for up to %s", format_duration(answer, "grace_ms", grace));
    else if (is_known(answer, "grace_ms"))
        print_line("grace", "none");
    if (format_get_number(answer, "margin_ms") > 0)
        print_line("margin", "grace lasts %s longer than a lease", format_duration(answer, "margin_ms", margin));
    print_line("outage", "jobs go on for %.4gs without Redis (lease %.4gs, heartbeat %.4gs, stop-timeout %.4gs)",
               seconds(answer, "outage_ms"), seconds(answer, "lease_ms"), seconds(answer, "heartbeat_ms"),
               seconds(answer, "stop_timeout_ms"));
}

static void print_answer(const json_t *answer) {
    const json_t *warnings = json_object_get(answer, "warnings");
    json_t *warning;
    size_t i;

    print_state(answer);
    print_server(answer);
    print_role(answer);
    print_limits_of_server(answer);
    print_calls(answer);
    print_times(answer);
    json_array_foreach(warnings, i, warning)
        print_line("warning", "%s", json_is_string(warning) ? json_string_value(warning) : "?");
}

int verb_redis(int argc, char **argv) {
    _cleanup_json_ json_t *answer = NULL;
    bool json = false, accept = false;
    const struct verb_option options[] = {OPTION_FLAG("--json", &json), OPTION_FLAG("--accept", &accept)};
    int status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), &status) < 0)
        return status;
    if (accept)
        return client_call("io.berth.AcceptNamespace", NULL, NULL);
    status = client_call("io.berth.Redis", NULL, &answer);
    if (status != 0)
        return status;
    if (json)
        status = output_json(answer);
    else
        print_answer(answer);
    if (status != 0)
        return status;
    if (strcmp(format_get_text(answer, "state"), "connected") != 0)
        return EXIT_AWAY;
    return json_array_size(json_object_get(answer, "warnings")) > 0 ? 1 : 0;
}
