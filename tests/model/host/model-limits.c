/* SPDX-License-Identifier: MIT */

/* The limit in force, and how overrides may change (R6, R14). */

#include <string.h>

#include "tests/model/rules/model-rules.h"

struct override {
    uint64_t version, until_usec;
    char limit[16], by[64], restore[64], reason[64];
};

static uint64_t number(const char *text) {
    return strtoull(text, NULL, 10);
}

static struct override parse_override(const char *text) {
    struct override o = {.limit = "-"};
    char *fields[6], copy[OVERRIDE_SIZE], *at = copy;

    if (!*text)
        return o;
    (void) snprintf(copy, sizeof(copy), "%s", text);
    for (size_t i = 0; i < ELEMENTSOF(fields); i++)
        fields[i] = at ? strsep(&at, "\t") : copy + strlen(copy);
    o.version = number(fields[0]);
    (void) snprintf(o.limit, sizeof(o.limit), "%.15s", fields[1]);
    o.until_usec = number(fields[2]);
    (void) snprintf(o.by, sizeof(o.by), "%.63s", fields[3]);
    (void) snprintf(o.restore, sizeof(o.restore), "%.63s", fields[4]);
    (void) snprintf(o.reason, sizeof(o.reason), "%.63s", fields[5]);
    return o;
}

static bool is_over(const struct world *w, const struct override *o) {
    return o->until_usec != 0 && o->until_usec <= world_redis_time(w) + 20;
}

static void restore_override(const struct world *w, struct override *o) {
    char limit[16], reason[64] = "";
    uint64_t until_usec;

    if (sscanf(o->restore, "%15s %" SCNu64 " %63s", limit, &until_usec, reason) >= 2) {
        (void) snprintf(o->limit, sizeof(o->limit), "%s", limit);
        o->until_usec = until_usec;
        if (is_over(w, o))
            until_usec = 0, limit[0] = '\0';
    } else {
        limit[0] = '\0';
    }
    if (!limit[0]) {
        (void) snprintf(o->limit, sizeof(o->limit), "-");
        o->until_usec = 0;
    }
    o->restore[0] = '\0';
}

static bool is_overridden(const struct world *w, unsigned pool, uint32_t *ret) { /* until a heartbeat ends it */
    struct override o = parse_override(w->redis.now.overrides[pool]);

    *ret = (uint32_t) number(o.limit);
    return strcmp(o.limit, "-") != 0;
}

static bool is_declared(const struct world *w, unsigned pool, uint32_t *ret) {
    uint32_t lowest = UINT32_MAX;

    for (unsigned s = 1; s <= w->n_sessions; s++)
        if (w->redis.now.sessions[s].live && w->redis.now.sessions[s].is_declared[pool] &&
            w->redis.now.sessions[s].limits[pool] < lowest)
            lowest = w->redis.now.sessions[s].limits[pool];
    *ret = lowest;
    return lowest < UINT32_MAX;
}

uint32_t rules_limit(const struct world *w, unsigned pool) {
    bool is_key = model_is_key(w, pool);
    uint32_t limit;

    if (is_overridden(w, pool, &limit) || (is_key && is_overridden(w, POOL_PATTERN, &limit)) || is_declared(w, pool, &limit) ||
        (is_key && is_declared(w, POOL_PATTERN, &limit)))
        return limit;
    return 0;
}

/* --- overrides --- */

struct cause { /* the call that is being judged */
    enum redis_script script;
    char **args;
    size_t n_args;
    const char *word;
};

static bool is_reported_by_hello(const struct world *w, const struct cause *e, unsigned pool, const struct override *o) {
    if (e->script != REDIS_SCRIPT_HELLO)
        return false;
    for (size_t i = HELLO_LIMITS + 1 + 2 * number(e->args[HELLO_LIMITS]); i + 6 < e->n_args; i += 7)
        if (strcmp(e->args[i], model_pool(w, pool)) == 0 && number(e->args[i + 1]) == o->version && strcmp(e->args[i + 2], o->limit) == 0)
            return true;
    return false;
}

/* The overrides of a hello are set before any override ends, as their own time may be over, too. */
static struct override newest_known(const struct world *w, const struct cause *e, unsigned pool, const struct override *old) {
    struct override newest = *old;
    char text[OVERRIDE_SIZE];

    if (e->script != REDIS_SCRIPT_HELLO)
        return newest;
    for (size_t i = HELLO_LIMITS + 1 + 2 * number(e->args[HELLO_LIMITS]); i + 6 < e->n_args; i += 7)
        if (strcmp(e->args[i], model_pool(w, pool)) == 0 && number(e->args[i + 1]) > newest.version) {
            (void) snprintf(text, sizeof(text), "%.24s\t%.15s\t%.24s\t%.24s\t%.50s\t%.50s", e->args[i + 1], e->args[i + 2], e->args[i + 3],
                            e->args[i + 4], e->args[i + 5], e->args[i + 6]);
            newest = parse_override(text);
        }
    return newest;
}

static void check_override(struct world *w, const struct cause *e, unsigned pool, const struct override *old, const struct override *o) {
    bool ours = e->script == REDIS_SCRIPT_OVERRIDE && strcmp(e->word, "ok") == 0 && strcmp(e->args[3], model_pool(w, pool)) == 0;
    struct override want = *old;

    if (is_over(w, &want))
        restore_override(w, &want);
    if (ours && strcmp(e->args[6], "set") == 0)
        (void) snprintf(want.limit, sizeof(want.limit), "%.15s", e->args[7]);
    else if (ours && strcmp(e->args[6], "pause") == 0)
        (void) snprintf(want.limit, sizeof(want.limit), "0");
    else if (ours && strcmp(e->args[6], "clear") == 0)
        (void) snprintf(want.limit, sizeof(want.limit), "-");
    else if (ours)
        restore_override(w, &want);
    if (ours && number(e->args[4]) != old->version)
        model_fail(w, "R6: an override of %s replaced version %" PRIu64 ", it named %s", model_pool(w, pool), old->version, e->args[4]);
    if (is_reported_by_hello(w, e, pool, o))
        return;
    if (!ours && !is_over(w, old))
        model_fail(w, "the override of %s changed to %s by itself", model_pool(w, pool), o->limit);
    else if (strcmp(o->limit, want.limit) != 0)
        model_fail(w, "the override of %s is %s, must be %s", model_pool(w, pool), o->limit, want.limit);
}

void limits_apply(struct world *w, enum redis_script script, char **args, size_t n_args, const char *word, const redisReply *state) {
    const struct cause cause = {.script = script, .args = args, .n_args = n_args, .word = word};

    for (unsigned p = 0; p < w->setup.n_pools; p++) {
        const char *text = reply_word(reply_at(state, 7 + (w->setup.has_keys && p > 0 ? p + 2 : p)));

        if (strcmp(text, w->redis.now.overrides[p]) != 0) {
            struct override before = parse_override(w->redis.now.overrides[p]),
                            old = newest_known(w, &cause, p, &before), o = parse_override(text);

            if (o.version <= before.version)
                model_fail(w, "R6: an override of %s with version %" PRIu64 " came after %" PRIu64, model_pool(w, p), o.version, before.version);
            check_override(w, &cause, p, &old, &o);
            (void) snprintf(w->redis.now.overrides[p], sizeof(w->redis.now.overrides[p]), "%s", text);
        }
    }
}
