/* SPDX-License-Identifier: MIT */

#include "cli/explain/text.h"

#include <stdio.h>
#include <string.h>

#include "cli/explain/reason.h"
#include "cli/format.h"

#define INT "%" JSON_INTEGER_FORMAT
#define SHOWN 5 /* claims of a list; the rest as a number */

/* Begins a line: "  label    pool  ". Only the first line of a list has its label. */
static void begin_line(const char **label, const char *pool, int width) {
    printf("  %-8s ", *label);
    if (pool)
        printf("%-*s  ", width, pool);
    *label = "";
}

static int pool_width(const json_t *pools) {
    json_t *item;
    size_t i;
    int width = 0;

    json_array_foreach (pools, i, item) {
        int n = (int) strlen(format_get_text(item, "pool"));

        width = n > width ? n : width;
    }
    return width < 24 ? width : 24;
}

/* --- the first line --- */

static void print_state(const json_t *e) {
    const char *state = format_get_text(e, "state"), *why = format_get_text(e, "blocked_by");
    char text[FORMAT_SIZE];

    if (strcmp(state, "waiting") == 0)
        printf("waiting for %s", format_duration(e, "wait_ms", text));
    else if (strcmp(state, "running") == 0)
        printf("running, began %s", format_when(e, "started", clock_realtime(), text));
    else if (strcmp(state, "holding") == 0)
        printf("has held its permits since %s", format_when(e, "since", clock_realtime(), text));
    else if (strcmp(state, "starting") == 0)
        printf("has its permits and is being started");
    else if (strcmp(state, "stopping") == 0)
        printf("is being stopped");
    else if (strcmp(state, "done") == 0)
        printf("is over: %s", format_result(e, "result", "exit_code", "signal", text));
    else
        printf("%s%s%s", state, *why ? ": " : "", why);
    if (strcmp(state, "done") == 0 && json_is_string(json_object_get(e, "ended")))
        printf(", %s", format_when(e, "ended", clock_realtime(), text));
    if (*format_get_text(e, "reason"))
        printf(" (%.200s)", format_get_text(e, "reason"));
    printf("\n");
}

/* --- a list of claims --- */

static void print_who(const json_t *claim) {
    json_int_t permits = format_get_number(claim, "permits");
    char who[2 * 64 + 2];

    snprintf(who, sizeof(who), "%.64s:%.64s", format_get_text(claim, "host"),
             format_get_text(claim, "name"));
    printf("%.8s  %-20s x" INT "  ", format_get_text(claim, "claim"), who, permits);
}

static void print_ahead(const json_t *pools, int width) {
    const char *label = "before";
    char text[FORMAT_SIZE];
    json_t *item, *waiter;
    size_t i, k;

    json_array_foreach (pools, i, item) {
        const json_t *ahead = json_object_get(item, "ahead");
        json_int_t more = format_get_number(item, "ahead_more");

        json_array_foreach (ahead, k, waiter) {
            if (k == SHOWN)
                break;
            begin_line(&label, k == 0 ? format_get_text(item, "pool") : "", width);
            print_who(waiter);
            printf("waits %s\n", format_duration(waiter, "waiting_ms", text));
        }
        more += (json_int_t) (json_array_size(ahead) - k);
        if (more > 0) {
            begin_line(&label, k == 0 ? format_get_text(item, "pool") : "", width);
            printf("and " INT " more\n", more);
        }
    }
}

static void print_holders(const json_t *pools, int width) {
    const char *label = "holders";
    char text[FORMAT_SIZE];
    json_t *item, *holder;
    size_t i, k;

    json_array_foreach (pools, i, item) {
        const json_t *holders = json_object_get(item, "holders");

        if (strcmp(format_get_text(json_object_get(item, "why"), "code"), "held") == 0)
            continue;
        json_array_foreach (holders, k, holder) {
            if (k == SHOWN)
                break;
            begin_line(&label, k == 0 ? format_get_text(item, "pool") : "", width);
            print_who(holder);
            printf("%s\n", format_when(holder, "since", clock_realtime(), text));
        }
        if (json_array_size(holders) > k) {
            begin_line(&label, "", width);
            printf("and %zu more\n", json_array_size(holders) - k);
        }
    }
}

/* --- the rest --- */

static void print_blocked(const json_t *e, const json_t *pools, int width) {
    const char *label = "blocked";
    json_t *item;
    size_t i;

    if (!reason_is_pools(e)) {
        begin_line(&label, NULL, width);
        printf("%s\n", format_get_text(e, "blocked_by"));
    }
    json_array_foreach (pools, i, item) {
        begin_line(&label, format_get_text(item, "pool"), width);
        printf("%s\n", format_get_text(json_object_get(item, "why"), "text"));
    }
}

static void print_wants(const json_t *pools) {
    const char *label = "wants";
    json_t *item;
    size_t i;

    begin_line(&label, NULL, 0);
    json_array_foreach (pools, i, item)
        printf("%s%s:" INT, i > 0 ? " " : "", format_get_text(item, "pool"),
               format_get_number(item, "wants"));
    printf("%s\n", json_array_size(pools) > 1 ? ", all at once" : "");
}

static void print_sooner(const json_t *sooner) {
    const char *label = "sooner";
    json_t *item, *word;
    size_t i, k;

    json_array_foreach (sooner, i, item) {
        const char *stops = format_get_text(item, "stops");
        size_t n = json_array_size(json_object_get(item, "starts"));
        char command[FORMAT_SIZE] = "";

        json_array_foreach (json_object_get(item, "do"), k, word)
            snprintf(command + strlen(command), sizeof(command) - strlen(command), "%s%.*s",
                     k > 0 ? " " : "", *stops && k == 2 ? 8 : 130,
                     json_string_value(word)); /* an id's first digits do */
        begin_line(&label, NULL, 0);
        printf("%-28s  ", command);
        if (*stops)
            printf("stops %s, then ", stops);
        if (n > 1)
            printf("starts it and %zu more\n", n - 1);
        else
            printf("starts it\n");
    }
}

void explain_print(const json_t *e) {
    const json_t *pools = json_object_get(e, "pools");
    int width = pool_width(pools);

    printf("%s  run %.8s on %s, ", format_get_text(e, "name"), format_get_text(e, "run"),
           format_get_text(e, "host"));
    print_state(e);
    if (strcmp(format_get_text(e, "state"), "waiting") != 0 || json_array_size(pools) == 0)
        return;
    print_wants(pools);
    print_blocked(e, pools, width);
    print_ahead(pools, width);
    print_holders(pools, width);
    print_sooner(json_object_get(e, "sooner"));
}
