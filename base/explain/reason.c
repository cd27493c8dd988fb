/* SPDX-License-Identifier: MIT */

#include "base/explain/reason.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/format.h"

#define INT "%" JSON_INTEGER_FORMAT

const json_t *reason_claim(const json_t *list, const char *claim) {
    json_t *item;
    size_t i;

    json_array_foreach (list, i, item)
        if (strcmp(format_get_text(item, "claim"), claim) == 0)
            return item;
    return NULL;
}

const json_t *reason_pool(const json_t *pools, const char *name, const char *claim) {
    const json_t *first = NULL;
    json_t *pool;
    size_t i;

    json_array_foreach (pools, i, pool) {
        if (strcmp(format_get_text(pool, "name"), name) != 0)
            continue;
        if (reason_claim(json_object_get(pool, "queue"), claim) || reason_claim(json_object_get(pool, "holders"), claim))
            return pool;
        first = first ? first : pool;
    }
    return first;
}

/* --- why not yet --- */

bool reason_is_pools(const json_t *e) {
    static const char *const others[] = {"redis away", "connecting", "grace", "no-memory", "host-limit"};
    const char *why = format_get_text(e, "blocked_by");

    for (size_t i = 0; i < ELEMENTSOF(others); i++)
        if (strncmp(why, others[i], strlen(others[i])) == 0)
            return false;
    return strcmp(format_get_text(e, "state"), "waiting") == 0;
}

struct wait {
    const char *claim;
    const json_t *pool, *pools;
    json_int_t wants, limit, free, place; /* place 0: not known, or parked */
    bool is_held, is_granting; /* nothing but the pools keeps it waiting */
    char text[FORMAT_SIZE];
};

static const json_t *first_of(const json_t *pool) {
    json_t *waiter;
    size_t i;

    json_array_foreach (json_object_get(pool, "queue"), i, waiter)
        if (format_get_number(waiter, "position") == 1)
            return waiter;
    return NULL;
}

/* Returns another pool in which the claim waits; NULL: none is listed. */
static const char *other_queue(const struct wait *w, const char *claim) {
    json_t *pool;
    size_t i;

    json_array_foreach (w->pools, i, pool) {
        const json_t *waiter = pool == w->pool ? NULL : reason_claim(json_object_get(pool, "queue"), claim);
        json_int_t left = format_get_number(pool, "limit") - format_get_number(pool, "used");

        if (waiter &&
            (format_get_number(waiter, "position") > 1 || format_get_number(waiter, "permits") > left))
            return format_get_text(pool, "name");
    }
    return NULL;
}

/* Permits are free, but other claims are before it. */
static const char *write_behind(struct wait *w) {
    const json_t *first = first_of(w->pool);
    json_int_t needs = format_get_number(first, "permits");
    const char *other = first ? other_queue(w, format_get_text(first, "claim")) : NULL;
    int n = snprintf(w->text, sizeof(w->text), "place " INT ", " INT " free", w->place, w->free);

    if (first)
        n += snprintf(w->text + n, sizeof(w->text) - (size_t) n, "; the first, %.64s:%.64s,",
                      format_get_text(first, "host"), format_get_text(first, "name"));
    if (first && needs > w->free)
        snprintf(w->text + n, sizeof(w->text) - (size_t) n, " needs " INT, needs);
    else if (other)
        snprintf(w->text + n, sizeof(w->text) - (size_t) n, " waits for %.130s", other);
    else if (first && w->is_granting)
        snprintf(w->text + n, sizeof(w->text) - (size_t) n, " is about to start");
    else if (first)
        snprintf(w->text + n, sizeof(w->text) - (size_t) n, " is before it");
    return "head-needs";
}

static const char *write_full(struct wait *w) {
    json_int_t used = format_get_number(w->pool, "used");
    int n;

    if (w->free > 0)
        n = snprintf(w->text, sizeof(w->text), "needs " INT ", " INT " free", w->wants, w->free);
    else
        n = snprintf(w->text, sizeof(w->text), "full: " INT " of " INT " used", used, w->limit);
    if (w->place > 0)
        snprintf(w->text + n, sizeof(w->text) - (size_t) n, ", place " INT, w->place);
    return "full";
}

static const char *write_low(struct wait *w) {
    const json_t *override = json_object_get(w->pool, "override");
    const char *reason = format_get_text(override, "reason");
    char when[FORMAT_SIZE];
    int n;

    if (w->limit > 0)
        n = snprintf(w->text, sizeof(w->text), "limit " INT " is below " INT, w->limit, w->wants);
    else
        n = snprintf(w->text, sizeof(w->text), json_is_object(override) ? "paused" : "limit 0");
    if (json_is_string(json_object_get(override, "until")))
        n += snprintf(w->text + n, sizeof(w->text) - (size_t) n, ", ends %.64s",
                      format_when(override, "until", clock_realtime(), when));
    if (*reason)
        snprintf(w->text + n, sizeof(w->text) - (size_t) n, " (%.200s)", reason);
    return w->limit == 0 ? "paused" : "limit-below";
}

static bool is_reason(const char *blocked_by, const char *what, const char *pool) {
    return strncmp(blocked_by, what, strlen(what)) == 0 && strcmp(blocked_by + strlen(what), pool) == 0;
}

/* What is known of a pool of the cluster then is only what this host holds and waits for. */
static bool is_away(const char *blocked_by) {
    return strncmp(blocked_by, "redis away", 10) == 0 || strncmp(blocked_by, "connecting", 10) == 0;
}

/* Writes the reason into w->text. Returns its code. */
static const char *write_reason(struct wait *w, const char *blocked_by) {
    const char *name = format_get_text(w->pool, "name");

    if (w->is_held) {
        snprintf(w->text, sizeof(w->text), "held");
        return "held";
    }
    if (is_reason(blocked_by, "host-limit: ", name)) {
        snprintf(w->text, sizeof(w->text), "host-limit: full on this host");
        return "host-limit";
    }
    if (is_reason(blocked_by, "no host defines it: ", name) || is_reason(blocked_by, "this host's config lacks it: ", name)) {
        snprintf(w->text, sizeof(w->text), "%.*s", (int) (strlen(blocked_by) - strlen(name) - 2), blocked_by);
        return "undefined";
    }
    if (is_away(blocked_by) && strcmp(format_get_text(w->pool, "scope"), "cluster") == 0) {
        snprintf(w->text, sizeof(w->text), "Redis alone knows");
        return "away";
    }
    if (w->wants > w->limit)
        return write_low(w);
    if (w->free < w->wants && (w->free <= 0 || w->place <= 1))
        return write_full(w);
    if (w->place > 1)
        return write_behind(w);
    snprintf(w->text, sizeof(w->text), "free: " INT " of " INT " used", format_get_number(w->pool, "used"),
             w->limit);
    return "free";
}

/* --- who is before it --- */

static int add_ahead(json_t *item, const struct wait *w) {
    json_t *ahead = json_array(), *waiter;
    int k = 0;
    size_t i;

    json_array_foreach (json_object_get(w->pool, "queue"), i, waiter) {
        json_int_t position = format_get_number(waiter, "position");

        if (position > 0 && position < w->place)
            k |= json_array_append(ahead, waiter);
    }
    k |= json_object_set_new(
        item, "ahead_more",
        json_integer(w->place > 0 ? w->place - 1 - (json_int_t) json_array_size(ahead) : 0));
    return k | json_object_set_new(item, "ahead", ahead);
}

static json_t *explain_pool(struct wait *w, const char *blocked_by) {
    const char *code = write_reason(w, blocked_by);
    json_t *item =
        json_pack("{s:O, s:O, s:I, s:I, s:O, s:I, s:O, s:o, s:{s:s, s:s}, s:O}", "pool",
                  json_object_get(w->pool, "name"), "scope", json_object_get(w->pool, "scope"), "wants",
                  w->wants, "limit", w->limit, "used", json_object_get(w->pool, "used"), "free",
                  w->free > 0 ? w->free : 0, "waiting", json_object_get(w->pool, "waiting"), "place",
                  w->place > 0 ? json_integer(w->place) : json_null(), "why", "code", code, "text", w->text,
                  "holders", json_object_get(w->pool, "holders"));

    if (item && add_ahead(item, w) < 0) {
        json_decref(item);
        return NULL;
    }
    return item;
}

int reason_add_pools(json_t *explained, const json_t *wants, const char *blocked_by, const json_t *pools) {
    const char *claim = format_get_text(explained, "run"), *name;
    json_t *list = json_array(), *permits;
    int k = 0;

    json_object_foreach ((json_t *) wants, name, permits) {
        const json_t *pool = reason_pool(pools, name, claim),
                     *waiter = reason_claim(json_object_get(pool, "queue"), claim);
        struct wait w = {.claim = claim, .pool = pool, .pools = pools, .wants = json_integer_value(permits)};

        if (!pool)
            continue;
        w.is_granting = reason_is_pools(explained);
        w.limit = format_get_number(pool, "limit");
        w.free = w.limit - format_get_number(pool, "used");
        w.is_held = reason_claim(json_object_get(pool, "holders"), claim) != NULL;
        w.place = waiter ? format_get_number(waiter, "position")
                         : format_get_number(json_object_get(explained, "position"), name);
        k |= json_array_append_new(list, explain_pool(&w, blocked_by));
    }
    return k | json_object_set_new(explained, "pools", list) ? -ENOMEM : 0;
}

/* --- what would start it now --- */

static json_t *names_of(const json_t *claims) {
    json_t *names = json_array(), *claim;
    size_t i;

    json_array_foreach (claims, i, claim)
        (void) json_array_append_new(
            names, json_sprintf("%s:%s", format_get_text(claim, "host"), format_get_text(claim, "name")));
    return names;
}

/* Adds a command if it starts the run. stops: the holder that the command stops, or NULL. */
static int try_command(json_t *sooner, const struct queue *q, const char *claim,
                       const struct queue_change *change, json_t *words, const json_t *stops) {
    _cleanup_(json_decrefp) json_t *started = NULL, *command = words;

    if (!command)
        return -ENOMEM;
    if (!queue_starts(q, change, claim, &started))
        return 0;
    return json_array_append_new(
        sooner, json_pack("{s:O, s:o, s:o*}", "do", command, "starts", names_of(started), "stops",
                          stops ? json_sprintf("%s:%s", format_get_text(stops, "host"),
                                               format_get_text(stops, "name"))
                                : NULL));
}

static int try_limit(json_t *sooner, const struct queue *q, const char *claim, const json_t *pool) {
    const char *name = format_get_text(pool, "name");
    const json_t *override = json_object_get(pool, "override"),
                 *configured = json_object_get(pool, "configured");
    struct queue_change change = {.pool = name};

    if (json_is_object(override) && format_get_number(override, "limit") == 0 &&
        json_is_integer(configured)) {
        change.limit = json_integer_value(configured);
        return try_command(sooner, q, claim, &change, json_pack("[s, s, s]", "berth", "resume", name), NULL);
    }
    change.limit = queue_lowest_limit(q, name, claim);
    if (change.limit < 0)
        return 0;
    return try_command(sooner, q, claim, &change,
                       json_pack("[s, s, s, o]", "berth", "limit", name, json_sprintf(INT, change.limit)),
                       NULL);
}

static bool is_first(const json_t *explained) {
    json_t *item;
    size_t i;

    json_array_foreach (json_object_get(explained, "pools"), i, item)
        if (format_get_number(item, "place") > 1)
            return false;
    return true;
}

/* Adds the move to the front, if it starts the run at once or sooner. */
static int try_move(json_t *sooner, const struct estimate_view *view, const json_t *explained) {
    const char *claim = format_get_text(explained, "run");
    const struct queue_change change = {.first = claim};
    const json_t *now = json_object_get(explained, "estimate");
    _cleanup_(estimate_done) struct estimate e = {};
    json_t *words = json_pack("[s, s, s, s]", "berth", "move", claim, "--first");

    if (queue_starts(view->q, &change, claim, NULL) || !json_is_object(now))
        return try_command(sooner, view->q, claim, &change, words, NULL);
    if (!words || estimate_make(&e, view, &change, claim) < 0) {
        json_decref(words);
        return -ENOMEM;
    }
    if (e.is_known && e.mid_ms < format_get_number(now, "mid_ms"))
        return json_array_append_new(sooner, json_pack("{s:o, s:[], s:I, s:I}", "do", words, "starts",
                                                       "low_ms", e.low_ms, "high_ms", e.high_ms));
    json_decref(words);
    return 0;
}

/* Adds the command that stops one holder, if that starts the run: alone, or with a move to the front. */
static int try_end(json_t *sooner, const struct queue *q, const char *claim) {
    const json_t *alone = queue_enough(q, claim, false),
                 *holder = alone ? alone : queue_enough(q, claim, true);
    const char *ended = format_get_text(holder, "claim");
    const struct queue_change change = {.ended = ended, .first = alone ? NULL : claim};

    if (!holder)
        return 0;
    return try_command(sooner, q, claim, &change,
                       alone ? json_pack("[s, s, s]", "berth", "revoke", ended)
                             : json_pack("[s, s, s, s, s]", "berth", "steal", ended, "--for", claim),
                       holder);
}

int reason_add_sooner(json_t *explained, const struct estimate_view *view, const json_t *pools) {
    const char *claim = format_get_text(explained, "run");
    json_t *sooner = json_array(), *item;
    int k = 0;
    size_t i;

    json_array_foreach (json_object_get(explained, "pools"), i, item) {
        const char *code = format_get_text(json_object_get(item, "why"), "code");

        if (view && strcmp(code, "held") != 0 && strcmp(code, "free") != 0 && strcmp(code, "undefined") != 0)
            k |= try_limit(sooner, view->q, claim, reason_pool(pools, format_get_text(item, "pool"), claim));
    }
    if (view && !is_first(explained))
        k |= try_move(sooner, view, explained);
    if (view)
        k |= try_end(sooner, view->q, claim);
    return k | json_object_set_new(explained, "sooner", sooner) ? -ENOMEM : 0;
}
