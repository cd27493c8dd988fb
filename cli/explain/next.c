/* SPDX-License-Identifier: MIT */
/* What to do where no command of `sooner` helps. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/format.h"
#include "cli/explain/text-internal.h"
#include "cli/wrap.h"

#define NB WRAP_NO_BREAK

static const struct step {
    const char *reason; /* how it begins */
    const char *text;
} steps[] = {
    {"redis away", "berth" NB "redis names the server; berthd connects again by itself"},
    {"connecting", "berth" NB "redis names the server; berthd goes on trying"},
    {"grace", "hosts report first what they hold; berth" NB "help" NB "grace says how to end it now"},
    {"no-memory", "give Redis more memory (berth" NB "doctor); berthd asks again by itself"},
    {"host-limit", "a run of this host must end, or raise host-limit and run berth" NB "reload"},
    {"no host defines it", "define the pool in a config again and run berth" NB "reload there, or stop the run"},
    {"this host's config lacks it", "define the pool again and run berth" NB "reload, or stop the run"},
    {"no berth-runner", "berth" NB "doctor says why; then systemctl" NB "status" NB "berth-runner"},
    {"recovering", "berthd has just started, and waits for guards; berth" NB "runs lists its runs"},
    {"drained", "berth" NB "undrain: until then this host begins nothing"},
    {"overlap", "an earlier run of the job must end first; berth" NB "runs lists it"},
};

/* Returns a holder whose host is silent, or NULL. */
static const json_t *find_silent(const json_t *pools, json_int_t silent_ms) {
    json_t *item, *holder;
    size_t i, k;

    json_array_foreach (pools, i, item)
        json_array_foreach (json_object_get(item, "holders"), k, holder)
            if (format_get_number(holder, "seen_ms") > silent_ms)
                return holder;
    return NULL;
}

/* Says how the limits that keep the run waiting are changed. */
static void print_limits(FILE *f, const char **label, const json_t *pools) {
    json_t *item;
    size_t i;

    json_array_foreach (pools, i, item) {
        const json_t *why = json_object_get(item, "why");
        const char *pool = format_get_text(item, "pool"), *code = format_get_text(why, "code");
        bool is_pause = strncmp(format_get_text(why, "text"), "paused", 6) == 0;

        if (strcmp(code, "paused") != 0 && strcmp(code, "limit-below") != 0)
            continue;
        text_begin_line(f, label, NULL, 0);
        fprintf(f, is_pause ? "berth" NB "resume" NB "%.130s ends the pause\n" : "berth" NB "limit" NB "%.130s shows who set the limit, or changes it\n", pool);
    }
}

void next_print(FILE *f, const json_t *e, json_int_t silent_ms) {
    const json_t *pools = json_object_get(e, "pools"), *silent = find_silent(pools, silent_ms);
    const char *label = "next", *why = format_get_text(e, "blocked_by");
    char text[FORMAT_SIZE];

    for (size_t i = 0; i < ELEMENTSOF(steps); i++)
        if (strncmp(why, steps[i].reason, strlen(steps[i].reason)) == 0) {
            text_begin_line(f, &label, NULL, 0);
            fprintf(f, "%s\n", steps[i].text);
        }
    if (json_array_size(json_object_get(e, "sooner")) == 0)
        print_limits(f, &label, pools);
    if (silent) {
        text_begin_line(f, &label, NULL, 0);
        fprintf(f, "%.64s was last seen %s ago; after a lease others get its permits\n", format_get_text(silent, "host"),
               format_duration(silent, "seen_ms", text));
    }
}
