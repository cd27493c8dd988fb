/* SPDX-License-Identifier: MIT */
/* `berth hosts`: the live hosts, and what differs between them. */
#include <errno.h>
#include <stdio.h>

#include "base/json/format.h"
#include "cli/output.h"
#include "cli/verbs.h"

#define INT "%" JSON_INTEGER_FORMAT

/* Formats what differs from the other hosts: "net 3, nightly has other due times". */
static const char *limits_text(const json_t *host, char buffer[static FORMAT_SIZE]) {
    const json_t *limits = json_object_get(host, "limits");
    size_t n = 0, i;
    json_t *l;

    buffer[0] = '\0';
    json_array_foreach(limits, i, l)
        if (n < FORMAT_SIZE)
            n += (size_t) snprintf(buffer + n, FORMAT_SIZE - n, "%s%.64s " INT, i > 0 ? ", " : "",
                                   format_get_text(l, "pool"), format_get_number(l, "limit"));
    json_array_foreach(json_object_get(host, "jobs_differ"), i, l)
        if (n < FORMAT_SIZE)
            n += (size_t) snprintf(buffer + n, FORMAT_SIZE - n, "%s%.64s has other due times", n > 0 ? ", " : "",
                                   json_string_value(l));
    return buffer;
}

static void add_host(struct table *t, const json_t *h) {
    bool drained = json_is_true(json_object_get(h, "drained")), silent = json_is_true(json_object_get(h, "silent"));
    char text[FORMAT_SIZE];

    table_cell(t, TABLE_PLAIN, "%s", format_get_text(h, "host"));
    table_cell(t, TABLE_PLAIN, "%s", format_get_text(h, "version"));
    table_cell(t, silent ? TABLE_BAD : TABLE_NOTICE, "%s", silent ? "silent" : drained ? "drained" : "");
    table_cell(t, TABLE_PLAIN, INT, format_get_number(h, "claims"));
    output_seen(t, h);
    table_cell(t, TABLE_NOTICE, "%s", limits_text(h, text));
}

static int print_hosts(const json_t *answer) {
    static const struct table_column columns[] = {
        {.name = "HOST"}, {.name = "VERSION"}, {.name = "STATE"}, {.name = "CLAIMS", .right = true},
        {.name = "SEEN"}, {.name = "DIFFERS"},
    };

    json_int_t silent_ms = output_silent_ms(answer);
    json_t *host;
    size_t i;

    output_caveats(answer);
    json_array_foreach (json_object_get(answer, "hosts"), i, host)
        if (format_get_number(host, "seen_ms") > silent_ms && json_object_set_new(host, "silent", json_true()) < 0)
            return output_error(-ENOMEM);
    return output_items(json_object_get(answer, "hosts"), columns, ELEMENTSOF(columns), add_host,
                        "no host is alive");
}

int verb_hosts(int argc, char **argv) {
    return output_reply(argc, argv, "io.berth.Hosts", print_hosts);
}
