/* SPDX-License-Identifier: MIT */
#include "cli/explain/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/explain/reason.h"
#include "base/explain/start.h"
#include "base/json/format.h"
#include "base/name.h"
#include "base/text.h"
#include "cli/explain/text-internal.h"
#include "cli/table.h"
#include "cli/wrap.h"

#define COMMAND_WIDTH 28
#define TEXT_COLUMN 13 /* at which a line that is too wide continues */

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

static void print_state(FILE *f, const json_t *e) {
    const char *state = format_get_text(e, "state"), *why = format_get_text(e, "blocked_by"), *reason = format_get_text(e, "reason");
    char text[FORMAT_SIZE];

    if (strcmp(state, "waiting") == 0)
        fprintf(f, "waiting for %s", format_duration(e, "wait_ms", text));
    else if (strcmp(state, "running") == 0)
        fprintf(f, "running, began %s%s%.200s", format_when(e, "started", clock_realtime(), text),
               *format_get_text(e, "stuck") ? "; its guard does not answer: " : "", format_get_text(e, "stuck"));
    else if (strcmp(state, "holding") == 0)
        fprintf(f, "has held its permits since %s", format_when(e, "since", clock_realtime(), text));
    else if (strcmp(state, "starting") == 0)
        fprintf(f, "has its permits and is being started%s%s%s%.200s", *why ? "; " : "", why,
               *format_get_text(e, "stuck") ? "; its guard does not answer: " : "", format_get_text(e, "stuck"));
    else if (strcmp(state, "stopping") == 0)
        fprintf(f, "is being stopped%s%.200s",
               *format_get_text(e, "stuck") ? "; killed, and there is still " : "",
               format_get_text(e, "stuck"));
    else if (strcmp(state, "done") == 0)
        fprintf(f, "is over: %s", format_result(e, "result", "exit_code", "signal", text));
    else
        fprintf(f, "%s%s%s", state, *why ? ": " : "", why);
    if (strcmp(state, "done") == 0 && json_is_string(json_object_get(e, "ended")))
        fprintf(f, ", %s", format_when(e, "ended", clock_realtime(), text));
    if (*reason && strcmp(reason, format_get_text(e, "result")) != 0)
        fprintf(f, " (%.200s)", reason);
    fprintf(f, "\n");
}

/* --- a list of claims --- */

#define WHO_SIZE (2 * 64 + 2)

static int format_who(const json_t *claim, char buffer[static WHO_SIZE]) {
    return snprintf(buffer, WHO_SIZE, "%.64s:%.64s", format_get_text(claim, "host"), format_get_text(claim, "name"));
}

/* Returns the width of the column of hosts and names in a list. */
static int who_width(const json_t *pools, const char *list) {
    int width = 20;
    json_t *item, *claim;
    char who[WHO_SIZE];
    size_t i, k;

    json_array_foreach (pools, i, item)
        json_array_foreach (json_object_get(item, list), k, claim) {
            int n = k < EXPLAIN_SHOWN ? format_who(claim, who) : 0;

            width = n > width ? n : width;
        }
    return width < 40 ? width : 40;
}

static void print_who(FILE *f, const json_t *claim, int width) {
    json_int_t permits = format_get_number(claim, "permits");
    char who[WHO_SIZE];

    (void) format_who(claim, who);
    fprintf(f, "%.8s  %-*s x" INT "  ", format_get_text(claim, "claim"), width, who, permits);
}

static void print_ahead(FILE *f, const json_t *pools, int width) {
    int of_who = who_width(pools, "ahead");
    const char *label = "before";
    char text[FORMAT_SIZE];
    json_t *item, *waiter;
    size_t i, k;

    json_array_foreach (pools, i, item) {
        const json_t *ahead = json_object_get(item, "ahead");
        json_int_t more = format_get_number(item, "ahead_more");

        json_array_foreach (ahead, k, waiter) {
            if (k == EXPLAIN_SHOWN)
                break;
            text_begin_line(f, &label, k == 0 ? format_get_text(item, "pool") : "", width);
            print_who(f, waiter, of_who);
            fprintf(f, "waits %s\n", format_duration(waiter, "waiting_ms", text));
        }
        more += (json_int_t) (json_array_size(ahead) - k);
        if (more > 0) {
            text_begin_line(f, &label, k == 0 ? format_get_text(item, "pool") : "", width);
            fprintf(f, "and " INT " more\n", more);
        }
    }
}

/* Prints how long such runs usually hold: from 5 to 95 %. */
static void print_usual(FILE *f, const json_t *usual) {
    enum { LOW = 1, HIGH = 6 };
    const json_t *q = json_object_get(usual, "q");
    json_int_t runs = format_get_number(usual, "runs");
    char low[FORMAT_SIZE], high[FORMAT_SIZE];

    if (runs < RUN_TIMES_ENOUGH)
        return;
    if (json_is_true(json_object_get(usual, "overdue")))
        fprintf(f, ", longer than ever");
    else
        fprintf(f, ", usual %s-%s", format_msec(json_integer_value(json_array_get(q, LOW)), low),
               format_msec(json_integer_value(json_array_get(q, HIGH)), high));
}

static void print_holders(FILE *f, const json_t *pools, int width, json_int_t silent_ms) {
    int of_who = who_width(pools, "holders");
    const char *label = "holders";
    char text[FORMAT_SIZE];
    json_t *item, *holder;
    size_t i, k;

    json_array_foreach (pools, i, item) {
        const json_t *holders = json_object_get(item, "holders");

        if (strcmp(format_get_text(json_object_get(item, "why"), "code"), "held") == 0)
            continue;
        json_array_foreach (holders, k, holder) {
            if (k == EXPLAIN_SHOWN)
                break;
            text_begin_line(f, &label, k == 0 ? format_get_text(item, "pool") : "", width);
            print_who(f, holder, of_who);
            fprintf(f, "%s", format_when(holder, "since", clock_realtime(), text));
            print_usual(f, json_object_get(holder, "usual"));
            if (format_get_number(holder, "seen_ms") > silent_ms)
                fprintf(f, ", its host is silent");
            fprintf(f, "\n");
        }
        if (json_array_size(holders) > k) {
            text_begin_line(f, &label, "", width);
            fprintf(f, "and %zu more\n", json_array_size(holders) - k);
        }
    }
}

/* --- the rest --- */

static void print_blocked(FILE *f, const json_t *e, const json_t *pools, int width) {
    const char *label = "blocked", *why = format_get_text(e, "blocked_by");
    json_t *item;
    size_t i;

    if (!reason_is_pools(e) && strncmp(why, "host-limit", 10) != 0 && strcmp(why, "grace") != 0) { /* the lines of pools have these */
        text_begin_line(f, &label, NULL, width);
        fprintf(f, "%s\n", why);
    }
    json_array_foreach (pools, i, item) {
        text_begin_line(f, &label, format_get_text(item, "pool"), width);
        fprintf(f, "%s\n", format_get_text(json_object_get(item, "why"), "text"));
    }
}

static void print_moved(FILE *f, const json_t *e) {
    const json_t *moved = json_object_get(e, "moved");
    const char *label = "moved";
    char when[FORMAT_SIZE], text[FORMAT_SIZE];
    usec_t now = clock_realtime(), at;

    if (!json_is_object(moved))
        return;
    text_begin_line(f, &label, NULL, 0);
    at = (usec_t) format_get_time(moved, "at") * USEC_PER_MSEC; /* by Redis's clock, which may be ahead */
    fprintf(f, "%s by an operator: its head start is %s now\n",
           format_when(moved, "at", now > at ? now : at, when),
           format_duration(moved, "head_start_ms", text));
}

static void print_wants(FILE *f, const json_t *pools) {
    const char *label = "wants";
    json_t *item;
    size_t i;

    text_begin_line(f, &label, NULL, 0);
    json_array_foreach (pools, i, item)
        fprintf(f, "%s%s:" INT, i > 0 ? " " : "", format_get_text(item, "pool"),
               format_get_number(item, "wants"));
    fprintf(f, "%s\n", json_array_size(pools) > 1 ? ", all at once" : "");
}

/* --- the start --- */

/* Names the first holder that has held for longer than ever. */
static void print_overdue(FILE *f, const json_t *pools) {
    const char *label = "";
    json_t *item, *holder;
    size_t i, k;

    json_array_foreach (pools, i, item)
        json_array_foreach (json_object_get(item, "holders"), k, holder)
            if (json_is_true(json_object_get(json_object_get(holder, "usual"), "overdue"))) {
                text_begin_line(f, &label, NULL, 0);
                fprintf(f, "later if %.64s:%.64s continues; its end is not known\n",
                       format_get_text(holder, "host"), format_get_text(holder, "name"));
                return;
            }
}

/* Prints "57, 64 and 12", in the order of the names. */
static void print_runs(FILE *f, const json_t *basis) {
    size_t n = json_array_size(basis), shown = n > EXPLAIN_SHOWN ? EXPLAIN_SHOWN : n;

    for (size_t i = 0; i < shown; i++)
        fprintf(f, "%s" INT, i == 0 ? "" : i + 1 == n ? " and " : ", ", format_get_number(json_array_get(basis, i), "runs"));
    if (n > shown)
        fprintf(f, " and more");
}

/* Prints the local times of the span. */
static void print_clock(FILE *f, json_int_t low_ms, json_int_t high_ms) {
    time_t now = (time_t) (clock_realtime() / USEC_PER_SEC), from = now + low_ms / 1000,
           to = now + (high_ms + 999) / 1000;
    bool is_far = high_ms >= 24 * 3600 * 1000;
    char texts[2][64] = {"", ""};
    struct tm tm;

    if (high_ms < 60 * 1000)
        return;
    for (size_t i = 0; i < 2; i++)
        if (localtime_r(i == 0 ? &from : &to, &tm))
            (void) strftime(texts[i], sizeof(texts[i]), is_far ? "%a %H:%M" : "%H:%M", &tm);
    fprintf(f, " (%s to %s)", texts[0], texts[1]);
}

static void print_start(FILE *f, const json_t *e, const json_t *pools) {
    const json_t *estimate = json_object_get(e, "estimate"), *basis = json_object_get(estimate, "basis");
    json_int_t low = format_get_number(estimate, "low_ms"), high = format_get_number(estimate, "high_ms");
    const char *label = "start", *why = format_get_text(e, "no_estimate");
    char span[START_SPAN_SIZE];

    if (!json_is_object(estimate) && (!*why || !reason_is_pools(e)))
        return;
    text_begin_line(f, &label, NULL, 0);
    if (!json_is_object(estimate)) {
        fprintf(f, "not known: %s\n", why);
        return;
    }
    fprintf(f, "%s", start_format_span(low, high, span));
    print_clock(f, low, high);
    fprintf(f, "%s\n", high > 0 ? " with 8 chances of 10" : "");
    if (json_is_true(json_object_get(estimate, "open")))
        print_overdue(f, pools);
    if (json_array_size(basis) == 0)
        return;
    text_begin_line(f, &label, NULL, 0);
    fprintf(f, "from the last ");
    print_runs(f, basis);
    fprintf(f, " runs; if no limit changes,\n");
    text_begin_line(f, &label, NULL, 0);
    fprintf(f, "no host dies and nobody gets a head start\n");
}

/* Prints a command in a column of a width. No line ends within it. */
static void print_command(FILE *f, const json_t *words, int width) {
    json_t *word;
    size_t i;

    json_array_foreach (words, i, word) {
        const char *text = json_string_value(word);
        int n = id_is_valid(text) ? 8 : (int) strlen(text); /* the first digits of an id suffice */

        fprintf(f, "%s%.*s", i > 0 ? WRAP_NO_BREAK : "", n, text);
        width -= n + (i > 0);
    }
    fprintf(f, "%*s", width > 0 ? width : 0, "");
}

static void print_sooner(FILE *f, const json_t *sooner) {
    const char *label = "sooner";
    json_t *item;
    size_t i;

    json_array_foreach (sooner, i, item) {
        const char *stops = format_get_text(item, "stops");
        json_int_t n = (json_int_t) json_array_size(json_object_get(item, "starts")) + format_get_number(item, "starts_more");
        char span[START_SPAN_SIZE];

        text_begin_line(f, &label, NULL, 0);
        print_command(f, json_object_get(item, "do"), COMMAND_WIDTH);
        fprintf(f, "  ");
        if (*stops)
            fprintf(f, "stops %s, then ", stops);
        if (n == 0)
            fprintf(f, "then %s\n", start_format_span(format_get_number(item, "low_ms"),
                                                  format_get_number(item, "high_ms"), span));
        else if (n > 1)
            fprintf(f, "starts it and " INT " more\n", n - 1);
        else
            fprintf(f, "starts it\n");
    }
}

static void print_all(FILE *f, const json_t *e, json_int_t silent_ms) {
    const json_t *pools = json_object_get(e, "pools");
    int width = pool_width(pools);

    fprintf(f, "%s  run %.8s on %s, ", format_get_text(e, "name"), format_get_text(e, "run"), format_get_text(e, "host"));
    print_state(f, e);
    if (strcmp(format_get_text(e, "state"), "waiting") != 0 || json_array_size(pools) == 0) {
        next_print(f, e, silent_ms);
        return;
    }
    print_wants(f, pools);
    print_moved(f, e);
    print_blocked(f, e, pools, width);
    print_ahead(f, pools, width);
    print_holders(f, pools, width, silent_ms);
    print_start(f, e, pools);
    print_sooner(f, json_object_get(e, "sooner"));
    next_print(f, e, silent_ms);
}

int explain_print(const json_t *e, json_int_t silent_ms) {
    const struct wrap wrap = {.width = table_terminal_width(), .indent = TEXT_COLUMN};
    _cleanup_free_ char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    if (f)
        print_all(f, e, silent_ms);
    if (!f || fclose(f) != 0)
        return -ENOMEM;
    for (char *at = text, *line; (line = strsep(&at, "\n")) && at;) {
        text_make_printable(line); /* Redis has reasons that anybody may have written */
        wrap_print(stdout, line, 0, &wrap);
    }
    return 0;
}
