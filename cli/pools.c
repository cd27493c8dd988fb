/* SPDX-License-Identifier: MIT */
/* `berth pools`: limits, holders and queues. */
#include <stdio.h>
#include <string.h>

#include "base/json/format.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/verbs.h"

#define CLAIMS_SHOWN 3 /* on the line of a pool; the rest as "+N" */
#define INT "%" JSON_INTEGER_FORMAT

/* Formats "web-03:pg-dump x2, ant:copy, +3". which: "holders" or "queue". all: their number, listed or
 * not. */
static const char *claims_text(const json_t *pool, const char *which, size_t all,
                               char buffer[static FORMAT_SIZE]) {
    const json_t *claims = json_object_get(pool, which);
    size_t n = 0, i;
    json_t *h;

    buffer[0] = '\0';
    json_array_foreach(claims, i, h) {
        json_int_t permits = format_get_number(h, "permits");

        if (i == CLAIMS_SHOWN)
            break;
        n += (size_t) snprintf(buffer + n, FORMAT_SIZE - n, "%s%.64s:%.64s", i > 0 ? ", " : "",
                               format_get_text(h, "host"), format_get_text(h, "name"));
        if (permits > 1)
            n += (size_t) snprintf(buffer + n, FORMAT_SIZE - n, " x" INT, permits);
    }
    if (n > 0 && all > i)
        snprintf(buffer + n, FORMAT_SIZE - n, ", +%zu", all - i);
    return buffer;
}

const char *override_text(const json_t *pool, char *buffer) {
    const json_t *o = json_object_get(pool, "override");
    const char *reason = format_get_text(o, "reason");
    char when[FORMAT_SIZE];

    if (!json_is_object(o))
        return "";
    snprintf(buffer, FORMAT_SIZE, json_is_string(json_object_get(o, "until")) ? INT ", ends %.64s" : INT,
             format_get_number(o, "limit"), format_when(o, "until", clock_realtime(), when));
    if (reason[0])
        snprintf(buffer + strlen(buffer), FORMAT_SIZE - strlen(buffer), " (%.200s)", reason);
    return buffer;
}

/* Formats the host that declares the lowest limit: "bee: 0". */
static const char *differ_text(const json_t *pool, char buffer[static FORMAT_SIZE]) {
    const json_t *lowest = json_object_get(pool, "lowest"), *limit = json_object_get(lowest, "limit");
    const char *host = format_get_text(lowest, "host");

    if (!json_is_object(lowest))
        return "yes"; /* in their scope */
    if (!*host)
        host = "a session without a host";
    if (json_is_integer(limit))
        snprintf(buffer, FORMAT_SIZE, "%.64s: " INT, host, json_integer_value(limit));
    else
        snprintf(buffer, FORMAT_SIZE, "%.64s", host);
    return buffer;
}

static void add_pool(struct table *t, const json_t *pool) {
    json_int_t limit = format_get_number(pool, "limit"), used = format_get_number(pool, "used"),
               waiting = format_get_number(pool, "waiting");
    bool differ = json_is_true(json_object_get(pool, "limits_differ"));
    bool is_pattern = json_is_integer(json_object_get(pool, "keys")); /* its limit is that of each key, its use that of all */
    char text[FORMAT_SIZE];

    table_cell(t, TABLE_PLAIN, "%s", format_get_text(pool, "name"));
    table_cell(t, TABLE_PLAIN, "%s", format_get_text(pool, "scope"));
    table_cell(t, limit == 0 ? TABLE_NOTICE : TABLE_PLAIN, INT, limit);
    table_cell(t, used > limit && !is_pattern ? TABLE_BAD : used > 0 ? TABLE_GOOD : TABLE_PLAIN, INT, used);
    table_cell(t, waiting > 0 ? TABLE_NOTICE : TABLE_PLAIN, INT, waiting);
    if (is_pattern)
        table_cell(t, TABLE_PLAIN, INT, format_get_number(pool, "keys"));
    else
        table_cell(t, TABLE_PLAIN, "%s", "");
    table_cell(t, differ ? TABLE_BAD : TABLE_PLAIN, "%s", differ ? differ_text(pool, text) : "");
    table_cell(t, TABLE_NOTICE, "%s", override_text(pool, text));
    table_cell(t, TABLE_PLAIN, "%s",
               claims_text(pool, "holders", json_array_size(json_object_get(pool, "holders")), text));
    table_cell(t, TABLE_PLAIN, "%s", claims_text(pool, "queue", (size_t) waiting, text));
}

static int print_pools(const json_t *pools) {
    static const struct table_column columns[] = {
        {.name = "POOL"}, {.name = "SCOPE", .drop = 1}, {.name = "LIMIT", .right = true},
        {.name = "USED", .right = true}, {.name = "WAITING", .right = true},
        {.name = "KEYS", .right = true, .drop = 2}, {.name = "DIFFER", .drop = TABLE_IF_EMPTY},
        {.name = "OVERRIDE", .drop = TABLE_IF_EMPTY}, {.name = "HOLDERS"}, {.name = "QUEUE"},
    };

    return output_items(pools, columns, ELEMENTSOF(columns), add_pool, "no pools are defined");
}

static void add_holder(struct table *t, const json_t *h) {
    char text[FORMAT_SIZE];

    table_cell(t, TABLE_PLAIN, "%s", format_get_text(h, "claim"));
    table_cell(t, TABLE_PLAIN, "%s", format_get_text(h, "host"));
    table_cell(t, TABLE_PLAIN, "%s", format_get_text(h, "name"));
    table_cell(t, TABLE_PLAIN, INT, format_get_number(h, "permits"));
    table_cell(t, TABLE_PLAIN, INT, format_get_number(h, "token"));
    if (json_is_integer(json_object_get(h, "pid")))
        table_cell(t, TABLE_PLAIN, INT, format_get_number(h, "pid"));
    else
        table_cell(t, TABLE_PLAIN, "%s", "");
    table_cell(t, TABLE_PLAIN, "%s", format_when(h, "since", clock_realtime(), text));
    output_seen(t, h);
}

static int print_holders(const json_t *holders, const char *pool) {
    static const struct table_column columns[] = {
        {.name = "HOLDER", .digits = 8}, {.name = "HOST"}, {.name = "NAME"}, {.name = "PERMITS", .right = true},
        {.name = "TOKEN", .right = true}, {.name = "PID", .right = true}, {.name = "SINCE"},
        {.name = "SEEN"},
    };
    char text[FORMAT_SIZE];

    snprintf(text, sizeof(text), "no holders of %.129s", pool);
    return output_items(holders, columns, ELEMENTSOF(columns), add_holder, text);
}

static void add_waiter(struct table *t, const json_t *w) {
    char text[FORMAT_SIZE];

    if (json_is_null(json_object_get(w, "position")))
        table_cell(t, TABLE_PLAIN, "%s", "");
    else if (format_get_number(w, "position") > 0)
        table_cell(t, TABLE_PLAIN, INT, format_get_number(w, "position"));
    else
        table_cell(t, TABLE_NOTICE, "parked"); /* needs more than the limit in force */
    table_cell(t, TABLE_PLAIN, "%s", format_get_text(w, "claim"));
    table_cell(t, TABLE_PLAIN, "%s", format_get_text(w, "host"));
    table_cell(t, TABLE_PLAIN, "%s", format_get_text(w, "name"));
    table_cell(t, TABLE_PLAIN, INT, format_get_number(w, "permits"));
    table_cell(t, TABLE_PLAIN, "%s", format_duration(w, "waiting_ms", text));
}

static int print_queue(const json_t *queue) {
    static const struct table_column columns[] = {
        {.name = "POSITION", .right = true}, {.name = "WAITING CLAIM", .digits = 8}, {.name = "HOST"},
        {.name = "NAME"}, {.name = "PERMITS", .right = true}, {.name = "FOR", .right = true},
    };

    return output_items(queue, columns, ELEMENTSOF(columns), add_waiter, "no waiting claims");
}

static int print_each_pool(const json_t *pools) {
    json_t *pool;
    int r = 0;
    size_t i;

    json_array_foreach(pools, i, pool) {
        if (json_array_size(json_object_get(pool, "holders")) +
                json_array_size(json_object_get(pool, "queue")) ==
            0)
            continue;
        printf("\n%s:\n", format_get_text(pool, "name"));
        r = print_holders(json_object_get(pool, "holders"), format_get_text(pool, "name"));
        if (r == 0 && json_array_size(json_object_get(pool, "queue")) > 0)
            r = print_queue(json_object_get(pool, "queue"));
        if (r != 0)
            break;
    }
    return r;
}

int verb_pools(int argc, char **argv) {
    _cleanup_json_ json_t *answer = NULL;
    bool json = false;
    const struct verb_option options[] = {OPTION_FLAG("--json", &json)};
    json_t *wanted;
    int words, status;

    words = options_parse(argc, argv, options, ELEMENTSOF(options), &status);
    if (words < 0)
        return status;
    wanted = json_array();
    for (int i = 1; i <= words; i++) {
        status = options_check_pool(argv[0], argv[i]);
        if (status != 0) {
            json_decref(wanted);
            return status;
        }
        (void) json_array_append_new(wanted, json_string(argv[i]));
    }
    status = client_call("io.berth.Pools", json_pack("{s:o}", "pools", wanted), &answer);
    if (status != 0)
        return status;
    if (json)
        return output_json(answer);
    output_caveats(answer);
    status = print_pools(json_object_get(answer, "pools"));
    return status == 0 && words > 0 ? print_each_pool(json_object_get(answer, "pools")) : status;
}
