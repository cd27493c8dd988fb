/* SPDX-License-Identifier: MIT */
/* Two pictures of a cluster, compared. A sample is an object: `claims` by id, `pools` and `hosts` by name.
 */
#include "cli/watch/sample.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/format.h"
#include "base/pool-name.h"
#include "cli/watch/event-line.h"

#define MESSAGE_SIZE 512

static const char *const events[] = {"seen-held",  "seen-freed", "seen-waiting",  "seen-gone",
                                     "seen-limit", "seen-host",  "seen-host-gone"};

bool sample_is_event(const char *name) {
    for (size_t i = 0; i < ELEMENTSOF(events); i++)
        if (strcmp(events[i], name) == 0)
            return true;
    return false;
}

bool sample_is_whole(const json_t *picture) {
    return !json_is_true(json_object_get(picture, "stale")) &&
           format_get_number(json_object_get(picture, "redis"), "grace_ms") == 0;
}

/* --- a sample --- */

/* Adds claims of a pool. A claim that holds permits of one pool and waits in another was granted while
 * berthd read the pools. */
static int add_claims(json_t *claims, const json_t *list, const char *pool, bool holds) {
    json_t *item;
    size_t i;
    int k = 0;

    json_array_foreach (list, i, item) {
        const char *id = format_get_text(item, "claim");
        json_t *claim = json_object_get(claims, id);

        if (!claim) {
            claim = json_pack("{s:s, s:s, s:b, s:{}}", "host", format_get_text(item, "host"), "name",
                              format_get_text(item, "name"), "holds", holds, "pools");
            k |= json_object_set_new(claims, id, claim);
        }
        if (holds)
            k |= json_object_set_new(claim, "holds", json_true());
        k |= json_object_set(json_object_get(claim, "pools"), pool, json_object_get(item, "permits"));
    }
    return k;
}

json_t *sample_new(const json_t *picture) {
    json_t *sample = json_pack("{s:{}, s:{}, s:{}}", "claims", "pools", "hosts"), *item;
    size_t i;
    int k = sample ? 0 : -1;

    json_array_foreach (json_object_get(picture, "pools"), i, item) {
        const char *name = format_get_text(item, "name");

        if (strcmp(format_get_text(item, "scope"), "cluster") != 0) /* of this host, whose events show more */
            continue;
        k |= json_object_set_new(json_object_get(sample, "pools"), name,
                                 json_pack("{s:O, s:O}", "complete", json_object_get(item, "complete"),
                                           "limit", json_object_get(item, "limit")));
        k |= add_claims(json_object_get(sample, "claims"), json_object_get(item, "holders"), name, true);
        k |= add_claims(json_object_get(sample, "claims"), json_object_get(item, "queue"), name, false);
    }
    json_array_foreach (json_object_get(picture, "hosts"), i, item)
        k |= json_object_set_new(json_object_get(sample, "hosts"), format_get_text(item, "host"),
                                 json_true());
    if (k == 0)
        return sample;
    json_decref(sample);
    return NULL;
}

/* Returns whether the sample has all claims of at least one of these pools. Then a claim of all of them that
 * is not in the sample does not exist any more. A key is only listed while it has claims. */
static bool sees_one_of(const json_t *sample, json_t *pools) {
    const json_t *known = json_object_get(sample, "pools"), *pool;
    char pattern[POOL_NAME_SIZE];
    const char *name;
    json_t *permits;

    json_object_foreach (pools, name, permits) {
        pool = json_object_get(known, name);
        if (!pool && pool_name_pattern(name, pattern))
            pool = json_object_get(known, pattern);
        if (json_is_true(json_object_get(pool, "complete")))
            return true;
    }
    return false;
}

/* --- a comparison --- */

struct comparison {
    json_t *lines;
    const char *at;
    char time[CLOCK_TEXT_SIZE];
};

/* Returns a new line (borrowed), or NULL. */
static json_t *add_line(struct comparison *c, const char *event, const char *message) {
    json_t *line = event_line_new(c->time, c->at, event, message);

    if (json_object_set_new(line, "sampled", json_true()) == 0 && json_array_append(c->lines, line) == 0) {
        json_decref(line);
        return line;
    }
    json_decref(line);
    return NULL;
}

static int add_claim(struct comparison *c, const char *event, const char *id, const json_t *claim,
                     const char *what) {
    const char *host = format_get_text(claim, "host"), *name = format_get_text(claim, "name");
    char message[MESSAGE_SIZE];
    json_t *line;

    (void) snprintf(message, sizeof(message), "%s:%s %s", host, name, what);
    line = add_line(c, event, message);
    return line
               ? json_object_update_new(line, json_pack("{s:s, s:s, s:s, s:O}", "host", host, "job", name,
                                                        "run", id, "pools", json_object_get(claim, "pools")))
               : -1;
}

static int add_host(struct comparison *c, const char *event, const char *host, const char *what) {
    char message[MESSAGE_SIZE];
    json_t *line;

    (void) snprintf(message, sizeof(message), "%s %s", host, what);
    line = add_line(c, event, message);
    return json_object_set_new(line, "host", json_string(host));
}

static bool holds(const json_t *claim) {
    return json_is_true(json_object_get(claim, "holds"));
}

/* berthd reads a pool's holders before its queue, so a claim that is granted in between is in neither. A
 * waiting claim is gone if two samples in a row miss it: the first one keeps it as `missed`. */
static int compare_gone(struct comparison *c, const char *id, json_t *claim, json_t *now) {
    int k;

    if (holds(claim))
        return sees_one_of(now, json_object_get(claim, "pools"))
                   ? add_claim(c, "seen-freed", id, claim, "no longer holds its permits")
                   : 0;
    if (!sees_one_of(now, json_object_get(claim, "pools")))
        return 0;
    if (json_object_get(claim, "missed"))
        return add_claim(c, "seen-gone", id, claim, "no longer waits");
    k = json_object_set(json_object_get(now, "claims"), id, claim);
    return k | json_object_set_new(claim, "missed", json_true());
}

/* before: NULL if the claim is new. */
static int compare_claim(struct comparison *c, const char *id, const json_t *before, json_t *claim) {
    int k = 0;

    if (before) /* a claim's pools do not change, but one may have been read before its grant */
        k = json_object_update_missing(json_object_get(claim, "pools"), json_object_get(before, "pools"));
    if (before && holds(before) && !holds(claim)) /* its session expired, and it waits again */
        k |= add_claim(c, "seen-freed", id, claim, "no longer holds its permits");
    if (holds(claim) && !(before && holds(before)))
        k |= add_claim(c, "seen-held", id, claim, "holds permits");
    if (!holds(claim) && (!before || holds(before)))
        k |= add_claim(c, "seen-waiting", id, claim, "waits for permits");
    return k;
}

static int compare_claims(struct comparison *c, const json_t *before, json_t *now) {
    json_t *old = json_object_get(before, "claims"), *new = json_object_get(now, "claims"), *claim;
    const char *id;
    int k = 0;

    json_object_foreach (new, id, claim)
        if (json_object_get(old, id) || sees_one_of(before, json_object_get(claim, "pools")))
            k |= compare_claim(c, id, json_object_get(old, id), claim);
    json_object_foreach (old, id, claim)
        if (!json_object_get(new, id))
            k |= compare_gone(c, id, claim, now);
    return k;
}

/* Adds a line about a pool. */
static int add_pool(struct comparison *c, const char *event, const char *pool, const char *message,
                    const char *key, json_t *value) {
    json_t *line = add_line(c, event, message);

    return json_object_set_new(line, key, value) |
           json_object_set_new(line, "pools", json_pack("{s:n}", pool));
}

static int compare_pools(struct comparison *c, const json_t *before, json_t *now) {
    const char *name;
    json_t *pool;
    int k = 0;

    json_object_foreach (json_object_get(now, "pools"), name, pool) {
        const json_t *old = json_object_get(json_object_get(before, "pools"), name);
        json_int_t limit = format_get_number(pool, "limit"), was = format_get_number(old, "limit");
        char message[MESSAGE_SIZE];

        (void) snprintf(message, sizeof(message), "%s: not all claims are listed; some changes are not seen",
                        name);
        if (!json_is_true(json_object_get(pool, "complete")) &&
            !json_is_false(json_object_get(old, "complete")))
            k |= add_pool(c, "gap", name, message, "missed", json_null());
        if (!old || limit == was)
            continue;
        (void) snprintf(message, sizeof(message),
                        "%s: the limit is %" JSON_INTEGER_FORMAT ", was %" JSON_INTEGER_FORMAT, name, limit,
                        was);
        k |= add_pool(c, "seen-limit", name, message, "limit", json_integer(limit));
    }
    return k;
}

static int compare_hosts(struct comparison *c, const json_t *before, json_t *now) {
    json_t *old = json_object_get(before, "hosts"), *new = json_object_get(now, "hosts"), *value;
    const char *host;
    int k = 0;

    json_object_foreach (new, host, value)
        if (!json_object_get(old, host))
            k |= add_host(c, "seen-host", host, "has joined");
    json_object_foreach (old, host, value)
        if (!json_object_get(new, host))
            k |= add_host(c, "seen-host-gone", host, "has gone");
    return k;
}

json_t *sample_compare(const json_t *before, json_t *now, const char *at, usec_t realtime) {
    struct comparison c = {.lines = json_array(), .at = at};
    int k = c.lines ? 0 : -1;

    (void) clock_format(realtime, c.time);
    k |= compare_pools(&c, before, now);
    if (before)
        k |= compare_hosts(&c, before, now) | compare_claims(&c, before, now);
    if (k == 0)
        return c.lines;
    json_decref(c.lines);
    return NULL;
}
