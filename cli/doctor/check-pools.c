/* SPDX-License-Identifier: MIT */
/* Checks of pools and queues. */
#include <string.h>

#include "base/json/format.h"
#include "cli/doctor/doctor.h"

#define INT "%" JSON_INTEGER_FORMAT
#define WAITS_MIN 10           /* of this host; with fewer no usual wait is known */
#define WAITS_MANY 10          /* usual waits; a longer wait is reported */
#define WAIT_LEAST (60 * 1000) /* ms; a shorter wait is not reported */

#define foreach_pool(f, i, pool) json_array_foreach (json_object_get((f)->pools, "pools"), i, pool)

static json_int_t number(const json_t *object, const char *key) {
    return format_get_number(object, key);
}

/* --- overcommitted --- */

static bool has_override(const json_t *pool) {
    return json_is_object(json_object_get(pool, "override"));
}

/* berthd logs overcommitted where runs were restored beyond the limit, and not where the limit was lowered.
 */
static enum severity severity_of(const struct facts *f, const json_t *pool) {
    double logged = 0;

    if (has_override(pool))
        return SEVERITY_NOTE;
    (void) facts_metric(f, "berth_overcommitted_total", &logged);
    return logged > 0 ? SEVERITY_CRIT : SEVERITY_WARN;
}

void doctor_overcommitted(const struct facts *f, struct report *r) {
    json_t *pool;
    size_t i;

    foreach_pool(f, i, pool) {
        const char *name = format_get_text(pool, "name");
        enum severity severity = severity_of(f, pool);

        if (json_is_integer(json_object_get(pool, "keys")) || number(pool, "used") <= number(pool, "limit"))
            continue; /* a pattern's count is that of all its keys */
        report_add(r, severity, "%s: " INT " permits are in use, the limit is " INT "%s", name,
                   number(pool, "used"), number(pool, "limit"),
                   severity == SEVERITY_NOTE ? " by an override" : "");
        report_about(r, NULL, name, NULL);
        report_measure(r, (double) number(pool, "used"), (double) number(pool, "limit"));
        report_do(r, severity == SEVERITY_CRIT
                         ? "runs were restored above the limit after Redis lost data; find one to stop:"
                     : severity == SEVERITY_NOTE
                         ? "nothing is granted until use is below the limit; the holders:"
                         : "was the limit lowered? Nothing is granted until use is below it; the holders:");
        report_command(r, "berth", "pools", name);
    }
}

/* --- paused --- */

void doctor_paused(const struct facts *f, struct report *r) {
    json_t *pool;
    size_t i;

    foreach_pool(f, i, pool) {
        const json_t *override = json_object_get(pool, "override");
        const char *name = format_get_text(pool, "name"), *reason = format_get_text(override, "reason");
        bool is_paused = number(override, "limit") == 0;

        if (!json_is_object(override) || *format_get_text(override, "until"))
            continue; /* it ends by itself */
        if (is_paused)
            report_add(r, SEVERITY_NOTE, "%s: paused until somebody resumes it%s%s", name,
                       *reason ? ": " : "", reason);
        else
            report_add(r, SEVERITY_NOTE,
                       "%s: the limit is overridden with " INT " until the override is cleared%s%s", name,
                       number(override, "limit"), *reason ? ": " : "", reason);
        report_about(r, NULL, name, NULL);
        report_do(r, "to end it:");
        if (is_paused)
            report_command(r, "berth", "resume", name);
        else
            report_command(r, "berth", "limit", name, "--clear");
    }
}

/* --- impossible --- */

/* Returns the highest limit that is in force or that a live host declares. */
static json_int_t highest_limit(const struct facts *f, const json_t *pool) {
    json_int_t highest = number(pool, "limit"), configured = number(pool, "configured");
    const char *name = format_get_text(pool, "name");
    json_t *host, *limit;
    size_t i, k;

    if (configured > highest)
        highest = configured;
    json_array_foreach (json_object_get(f->hosts, "hosts"), i, host)
        json_array_foreach (json_object_get(host, "limits"), k, limit)
            if (strcmp(format_get_text(limit, "pool"), name) == 0 && number(limit, "limit") > highest)
                highest = number(limit, "limit");
    return highest;
}

void doctor_impossible(const struct facts *f, struct report *r) {
    json_t *pool, *waiter;
    size_t i, k;

    foreach_pool(f, i, pool) {
        json_int_t highest = highest_limit(f, pool);
        const char *name = format_get_text(pool, "name");

        json_array_foreach (json_object_get(pool, "queue"), k, waiter) {
            const char *run = format_get_text(waiter, "claim");

            if (number(waiter, "permits") <= highest)
                continue;
            report_add(r, SEVERITY_WARN,
                       "%s: %s on %s (run %.8s) wants " INT " permits, no host declares more than " INT,
                       name, format_get_text(waiter, "name"), format_get_text(waiter, "host"), run,
                       number(waiter, "permits"), highest);
            report_about(r, format_get_text(waiter, "host"), name, run);
            report_measure(r, (double) number(waiter, "permits"), (double) highest);
            report_do(r, "it waits forever; raise the limit in the configs, or stop it on its host:");
            report_command(r, "berth", "stop", run);
        }
    }
}

/* --- long-queue --- */

/* Returns in ms how long at most 95 % of this host's runs waited for the pool; 0: it had too few, or no such
 * bound is known. */
static double usual_wait_ms(const struct facts *f, const char *pool) {
    const json_t *samples = json_object_get(json_object_get(f->metrics, "metrics"), "berth_wait_seconds");
    json_int_t all = 0, sum = 0;
    json_t *sample, *count;
    size_t i, k;

    json_array_foreach (samples, i, sample) {
        const json_t *counts = json_object_get(sample, "counts");

        if (strcmp(format_get_text(json_object_get(sample, "labels"), "pool"), pool) != 0)
            continue;
        json_array_foreach (counts, k, count)
            all += json_integer_value(count);
        json_array_foreach (counts, k, count) {
            sum += json_integer_value(count);
            if (all >= WAITS_MIN && sum * 100 >= all * 95)
                return 1000 * json_number_value(json_array_get(json_object_get(sample, "bounds"), k));
        }
    }
    return 0;
}

static const json_t *find_oldest(const json_t *pool) {
    const json_t *oldest = NULL;
    json_t *waiter;
    size_t k;

    json_array_foreach (json_object_get(pool, "queue"), k, waiter)
        if (number(waiter, "position") > 0 &&
            (!oldest || number(waiter, "waiting_ms") > number(oldest, "waiting_ms")))
            oldest = waiter;
    return oldest;
}

void doctor_long_queue(const struct facts *f, struct report *r) {
    json_t *pool;
    size_t i;

    foreach_pool(f, i, pool) {
        const char *name = format_get_text(pool, "name"), *host;
        const json_t *oldest = find_oldest(pool);
        double bound = WAITS_MANY * usual_wait_ms(f, name), waits = (double) number(oldest, "waiting_ms");
        char text[FORMAT_SIZE], usual[FORMAT_SIZE];

        if (bound == 0 || waits <= bound || waits <= WAIT_LEAST)
            continue;
        host = format_get_text(oldest, "host");
        report_add(r, SEVERITY_WARN,
                   "%s: %s on %s has waited for %s; most runs of this host waited at most %s",
                   name, format_get_text(oldest, "name"), host, format_msec((json_int_t) waits, text),
                   format_msec((json_int_t) (bound / WAITS_MANY), usual));
        report_about(r, host, name, format_get_text(oldest, "claim"));
        report_measure(r, waits / 1000, bound / 1000);
        report_do(r, "to see what it waits for:");
        report_command(r, "berth", "explain", format_get_text(oldest, "claim"));
    }
}
