/* SPDX-License-Identifier: MIT */

#include "base/explain/reason.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/format.h"

#define INT "%" JSON_INTEGER_FORMAT

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
    const struct listed *listed;
    const struct listed_pool *of; /* the pool */
    const json_t *pool;           /* the same, as berthd replied it */
    json_int_t wants, limit, free, place; /* place 0: not known, or parked */
    json_int_t grace_ms; /* for how long the grace period goes on */
    bool is_held, is_granting; /* nothing but the pools keeps it waiting */
    char text[FORMAT_SIZE];
};

/* Returns another pool in which the claim waits; NULL: none is listed. */
static const char *other_queue(const struct wait *w, const char *claim) {
    for (size_t i = 0; i < listed_count(w->listed); i++) {
        const struct listed_pool *p = listed_at(w->listed, i);
        const json_t *waiter = p == w->of ? NULL : listed_waiter(p, claim);
        json_int_t left = format_get_number(p->json, "limit") - format_get_number(p->json, "used");

        if (waiter &&
            (format_get_number(waiter, "position") > 1 || format_get_number(waiter, "permits") > left))
            return format_get_text(p->json, "name");
    }
    return NULL;
}

/* Permits are free, but other claims are before it. */
static const char *write_behind(struct wait *w) {
    const json_t *first = w->of->head;
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

/* What is known of a pool then is only what hosts have reported so far. */
static const char *write_grace(struct wait *w) {
    char left[FORMAT_SIZE];

    if (w->grace_ms > 0)
        snprintf(w->text, sizeof(w->text), "grace period: nothing is granted for up to %.64s", format_msec(w->grace_ms, left));
    else
        snprintf(w->text, sizeof(w->text), "grace period: nothing is granted");
    return "grace";
}

/* Writes the reason into w->text. Returns its code. */
static const char *write_reason(struct wait *w, const char *blocked_by) {
    const char *name = format_get_text(w->pool, "name");
    bool is_cluster = strcmp(format_get_text(w->pool, "scope"), "cluster") == 0;

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
    if (strcmp(blocked_by, "grace") == 0 && is_cluster)
        return write_grace(w);
    if (is_away(blocked_by) && is_cluster) {
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

static int add_ahead(json_t *item, const struct wait *w, size_t most) {
    json_t *ahead = json_array(), *waiter;
    int k = 0;
    size_t i;

    json_array_foreach (json_object_get(w->pool, "queue"), i, waiter) {
        json_int_t position = format_get_number(waiter, "position");

        if (w->place <= 1 || json_array_size(ahead) >= most)
            break;
        if (position > 0 && position < w->place)
            k |= json_array_append(ahead, waiter);
    }
    k |= json_object_set_new(
        item, "ahead_more",
        json_integer(w->place > 0 ? w->place - 1 - (json_int_t) json_array_size(ahead) : 0));
    return k | json_object_set_new(item, "ahead", ahead);
}

static json_t *explain_pool(struct wait *w, const char *blocked_by, size_t most) {
    const char *code = write_reason(w, blocked_by);
    json_t *item =
        json_pack("{s:O, s:O, s:I, s:I, s:O, s:I, s:O, s:o, s:{s:s, s:s}, s:O}", "pool",
                  json_object_get(w->pool, "name"), "scope", json_object_get(w->pool, "scope"), "wants",
                  w->wants, "limit", w->limit, "used", json_object_get(w->pool, "used"), "free",
                  w->free > 0 ? w->free : 0, "waiting", json_object_get(w->pool, "waiting"), "place",
                  w->place > 0 ? json_integer(w->place) : json_null(), "why", "code", code, "text", w->text,
                  "holders", w->of->holders ? w->of->holders : json_object_get(w->pool, "holders"));

    if (item && add_ahead(item, w, most) < 0) {
        json_decref(item);
        return NULL;
    }
    return item;
}

int reason_add_pools(json_t *explained, const json_t *wants, const char *blocked_by, const struct listed *listed, const json_t *answer,
                     size_t most) {
    const char *claim = format_get_text(explained, "run"), *name;
    json_t *list = json_array(), *permits;
    int k = 0;

    json_object_foreach ((json_t *) wants, name, permits) {
        const struct listed_pool *of = listed_find(listed, name, claim);
        const json_t *waiter = listed_waiter(of, claim);
        struct wait w = {.of = of, .listed = listed, .wants = json_integer_value(permits)};

        if (!of)
            continue;
        w.pool = of->json;
        w.grace_ms = format_get_number(json_object_get(answer, "redis"), "grace_ms");
        w.is_granting = reason_is_pools(explained);
        w.limit = format_get_number(w.pool, "limit");
        w.free = w.limit - format_get_number(w.pool, "used");
        w.is_held = listed_holder(of, claim) != NULL;
        w.place = waiter ? format_get_number(waiter, "position")
                         : format_get_number(json_object_get(explained, "position"), name);
        k |= json_array_append_new(list, explain_pool(&w, blocked_by, most));
    }
    return k | json_object_set_new(explained, "pools", list) ? -ENOMEM : 0;
}

/* --- what would start it now --- */

struct sooner { /* the commands that are looked for */
    const json_t *explained;
    const char *claim;
    struct queue *q;
    size_t most; /* names of claims that start */
    json_t *list;
};

static json_t *names_of(const json_t *claims, size_t most) {
    size_t n = json_array_size(claims);
    json_t *names = json_array();

    for (size_t i = 0; i < n && i < most; i++) {
        const json_t *claim = json_array_get(claims, i);

        (void) json_array_append_new(
            names, json_sprintf("%s:%s", format_get_text(claim, "host"), format_get_text(claim, "name")));
    }
    return names;
}

static json_t *count_more(const json_t *claims, size_t most) {
    size_t n = json_array_size(claims);

    return n > most ? json_integer((json_int_t) (n - most)) : NULL;
}

/* Adds a command if it starts the run. stops: the holder that the command stops, or NULL. */
static int try_command(const struct sooner *s, const struct queue_change *change, json_t *words, const json_t *stops) {
    _cleanup_(json_decrefp) json_t *started = NULL, *command = words;

    if (!command)
        return -ENOMEM;
    if (!queue_starts(s->q, change, s->claim, &started))
        return 0;
    return json_array_append_new(
        s->list, json_pack("{s:O, s:o, s:o*, s:o*}", "do", command, "starts", names_of(started, s->most), "starts_more",
                           count_more(started, s->most), "stops",
                           stops ? json_sprintf("%s:%s", format_get_text(stops, "host"), format_get_text(stops, "name"))
                                 : NULL));
}

static int try_limit(const struct sooner *s, const json_t *pool) {
    const char *name = format_get_text(pool, "name");
    const json_t *override = json_object_get(pool, "override"),
                 *configured = json_object_get(pool, "configured");
    struct queue_change change = {.pool = name};

    if (json_is_object(override) && format_get_number(override, "limit") == 0 &&
        json_is_integer(configured)) {
        change.limit = json_integer_value(configured);
        return try_command(s, &change, json_pack("[s, s, s]", "berth", "resume", name), NULL);
    }
    change.limit = queue_lowest_limit(s->q, name, s->claim);
    if (change.limit < 0)
        return 0;
    return try_command(s, &change,
                       json_pack("[s, s, s, o]", "berth", "limit", name, json_sprintf(INT, change.limit)), NULL);
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
static int try_move(const struct sooner *s, struct estimator *estimator) {
    const struct queue_change change = {.first = s->claim};
    const json_t *now = json_object_get(s->explained, "estimate");
    _cleanup_(estimate_done) struct estimate e = {};
    json_t *words = json_pack("[s, s, s, s]", "berth", "move", s->claim, "--first");

    if (queue_starts(s->q, &change, s->claim, NULL) || !json_is_object(now))
        return try_command(s, &change, words, NULL);
    if (!words || estimate_make(&e, estimator, &change, s->claim) < 0) {
        json_decref(words);
        return -ENOMEM;
    }
    if (e.is_known && e.mid_ms < format_get_number(now, "mid_ms"))
        return json_array_append_new(s->list, json_pack("{s:o, s:[], s:I, s:I}", "do", words, "starts",
                                                        "low_ms", e.low_ms, "high_ms", e.high_ms));
    json_decref(words);
    return 0;
}

/* Adds the command that stops one holder, if that starts the run: alone, or with a move to the front. */
static int try_end(const struct sooner *s) {
    const json_t *alone = queue_enough(s->q, s->claim, false),
                 *holder = alone ? alone : queue_enough(s->q, s->claim, true);
    const char *ended = format_get_text(holder, "claim");
    const struct queue_change change = {.ended = ended, .first = alone ? NULL : s->claim};

    if (!holder)
        return 0;
    return try_command(s, &change,
                       alone ? json_pack("[s, s, s]", "berth", "revoke", ended)
                             : json_pack("[s, s, s, s, s]", "berth", "steal", ended, "--for", s->claim),
                       holder);
}

int reason_add_sooner(json_t *explained, struct queue *q, struct estimator *estimator, const struct listed *listed, size_t most) {
    const struct sooner s = {.explained = explained, .claim = format_get_text(explained, "run"), .q = q, .most = most, .list = json_array()};
    json_t *item;
    int k = 0;
    size_t i;

    json_array_foreach (json_object_get(explained, "pools"), i, item) {
        const char *code = format_get_text(json_object_get(item, "why"), "code");

        if (q && strcmp(code, "held") != 0 && strcmp(code, "free") != 0 && strcmp(code, "undefined") != 0)
            k |= try_limit(&s, listed_find(listed, format_get_text(item, "pool"), s.claim)->json);
    }
    if (q && !is_first(explained))
        k |= try_move(&s, estimator);
    if (q)
        k |= try_end(&s);
    return k | json_object_set_new(explained, "sooner", s.list) ? -ENOMEM : 0;
}
