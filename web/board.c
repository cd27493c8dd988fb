/* SPDX-License-Identifier: MIT */
#include "web/board.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/format.h"
#include "base/silence.h"

#define LIST_BYTES ((size_t) 24 * 1024) /* of the pools in one overview, and of the hosts */
#define EVENT_BYTES 1024
#define NEW_EVENTS_MAX 40 /* in one frame; further events count as missed */
#define LATE_MSEC 3000    /* a host is not late before this, */

struct board {
    struct board_texts texts;
    char namespace[128], host[128], version[64], why[128];
    json_t *picture;               /* the last one; NULL: none yet */
    json_t *items, *old_items;     /* pools by name for the page, now and in the frame before */
    json_t *rows, *old_rows;       /* hosts by session, likewise */
    size_t n_more_pools, n_more_hosts;
    usec_t drawn, away_since;      /* boottime and realtime; 0: never, not away */
    json_t *latest, *fresh;        /* events */
    json_int_t missed;             /* since the frame before */
};

int board_new(struct board **ret, const struct board_texts *texts) {
    struct board *b = calloc(1, sizeof(*b));

    if (!b)
        return -ENOMEM;
    b->texts = *texts;
    b->latest = json_array();
    b->fresh = json_array();
    if (!b->latest || !b->fresh) {
        board_free(b);
        return -ENOMEM;
    }
    *ret = b;
    return 0;
}

struct board *board_free(struct board *b) {
    if (!b)
        return NULL;
    json_decref(b->picture);
    json_decref(b->items);
    json_decref(b->old_items);
    json_decref(b->rows);
    json_decref(b->old_rows);
    json_decref(b->latest);
    json_decref(b->fresh);
    free(b);
    return NULL;
}

static json_int_t now_msec(void) {
    return (json_int_t) (clock_realtime() / USEC_PER_MSEC);
}

void board_set_version(struct board *b, const json_t *version) {
    (void) snprintf(b->namespace, sizeof(b->namespace), "%s", format_get_text(version, "namespace"));
    (void) snprintf(b->host, sizeof(b->host), "%s", format_get_text(version, "host"));
    (void) snprintf(b->version, sizeof(b->version), "%s", format_get_text(version, "version"));
}

/* --- lists for the page --- */

/* Returns a time in whole seconds, so that it is equal in the next picture. */
static json_int_t since_msec(json_int_t ago) {
    return (now_msec() - ago + 500) / 1000 * 1000;
}

/* Returns the oldest waiting claim {"claim", "since_ms"}; its time is that of the frame before. */
static json_t *json_oldest(const json_t *pool, const json_t *before) {
    const json_t *oldest = NULL, *shown = json_object_get(before, "oldest");
    json_int_t most = -1, since;
    json_t *waiter;
    size_t i;

    json_array_foreach (json_object_get(pool, "queue"), i, waiter)
        if (format_get_number(waiter, "waiting_ms") > most) {
            most = format_get_number(waiter, "waiting_ms");
            oldest = waiter;
        }
    if (!oldest)
        return json_null();
    since = shown && strcmp(format_get_text(shown, "claim"), format_get_text(oldest, "claim")) == 0
                ? format_get_number(shown, "since_ms")
                : since_msec(most);
    return json_pack("{s:s, s:I}", "claim", format_get_text(oldest, "claim"), "since_ms", since);
}

static json_t *pool_item(const json_t *pool, const json_t *before, _unused_ json_int_t late_msec) {
    static const char *const kept[] = {"name", "scope", "limit", "configured", "override", "used", "waiting",
                                       "limits_differ", "lowest", "description", "keys", "pattern"};
    json_t *item = json_object();

    for (size_t i = 0; i < ELEMENTSOF(kept); i++) {
        json_t *value = json_object_get(pool, kept[i]);

        if (value && !json_is_null(value))
            (void) json_object_set(item, kept[i], value);
    }
    (void) json_object_set_new(item, "oldest", json_oldest(pool, before));
    return item;
}

static json_t *host_item(const json_t *host, _unused_ const json_t *before, json_int_t late_msec) {
    json_int_t seen = format_get_number(host, "seen_ms");

    return json_pack(
        "{s:s, s:s, s:s, s:b, s:I, s:I, s:O*}", "host", format_get_text(host, "host"), "session",
        format_get_text(host, "session"), "version", format_get_text(host, "version"), "drained",
        json_is_true(json_object_get(host, "drained")), "claims", format_get_number(host, "claims"),
        "late_ms", seen > late_msec ? seen / 1000 * 1000 : 0, "limits", json_object_get(host, "limits"));
}

static bool is_busy(const json_t *item) {
    return format_get_number(item, "used") > 0 || format_get_number(item, "waiting") > 0 ||
           format_get_number(item, "claims") > 0 || format_get_number(item, "late_ms") > 0 ||
           json_is_true(json_object_get(item, "limits_differ")) ||
           json_is_true(json_object_get(item, "drained")) || json_object_get(item, "override");
}

/* Returns the time in ms after which a silent host is late. */
static json_int_t late_after(const json_t *picture) {
    json_int_t lease = format_get_number(json_object_get(picture, "redis"), "lease_ms"),
               msec = (json_int_t) silence_bound((uint64_t) lease, 0); /* the picture has no heartbeat */

    return msec > LATE_MSEC ? msec : LATE_MSEC;
}

/* Returns the items of a list by name. If there are too many, items without news are left out. */
static json_t *make_items(const json_t *picture, const char *list, const char *key, const json_t *before,
                          json_t *(*make)(const json_t *value, const json_t *before, json_int_t late_msec),
                          size_t *ret_more) {
    json_int_t late_msec = late_after(picture);
    json_t *items = json_object(), *value;
    size_t bytes = 0, i;

    *ret_more = 0;
    for (int busy = 1; busy >= 0; busy--)
        json_array_foreach (json_object_get(picture, list), i, value) {
            json_t *item = make(value, json_object_get(before, format_get_text(value, key)), late_msec);

            if (is_busy(item) != busy) {
                json_decref(item);
                continue;
            }
            bytes += json_dumpb(item, NULL, 0, JSON_COMPACT) + 1;
            if (bytes <= LIST_BYTES) {
                (void) json_object_set_new(items, format_get_text(value, key), item);
            } else {
                json_decref(item);
                ++*ret_more;
            }
        }
    return items;
}

/* Replaces a list. The first picture after a frame keeps the list of that frame as the old one. */
static void replace(json_t **now, json_t **old, json_t *items) {
    if (*old)
        json_decref(*now);
    else
        *old = *now;
    *now = items;
}

void board_set_picture(struct board *b, const json_t *picture) {
    json_decref(b->picture);
    b->picture = json_incref((json_t *) picture);
    b->drawn = clock_boottime();
    b->away_since = 0;
    replace(&b->items, &b->old_items,
            make_items(picture, "pools", "name", b->items, pool_item, &b->n_more_pools));
    replace(&b->rows, &b->old_rows,
            make_items(picture, "hosts", "session", b->rows, host_item, &b->n_more_hosts));
}

void board_set_away(struct board *b, const char *why) {
    if (b->away_since == 0)
        b->away_since = clock_realtime();
    (void) snprintf(b->why, sizeof(b->why), "%s", why);
}

void board_begin_frame(struct board *b) {
    json_decref(b->old_items);
    json_decref(b->old_rows);
    b->old_items = b->old_rows = NULL;
    (void) json_array_clear(b->fresh);
    b->missed = 0;
}

/* --- events --- */

void board_add_event(struct board *b, const json_t *event) {
    json_t *kept = json_copy((json_t *) event);

    if (kept && json_dumpb(kept, NULL, 0, JSON_COMPACT) > EVENT_BYTES)
        (void) json_object_del(kept, "fields");
    if (!kept || json_dumpb(kept, NULL, 0, JSON_COMPACT) > EVENT_BYTES) {
        json_decref(kept);
        board_add_missed(b, 1);
        return;
    }
    if (json_array_size(b->fresh) < NEW_EVENTS_MAX)
        (void) json_array_append(b->fresh, kept);
    else if (b->missed >= 0)
        b->missed++;
    if (json_array_size(b->latest) == BOARD_EVENTS_MAX)
        (void) json_array_remove(b->latest, 0);
    (void) json_array_append_new(b->latest, kept);
}

void board_add_missed(struct board *b, json_int_t missed) {
    b->missed = missed < 0 || b->missed < 0 ? -1 : b->missed + missed;
}

static json_t *json_events(json_t *events, json_int_t missed, bool is_whole) {
    return json_pack("{s:b, s:I, s:O}", "whole", is_whole, "missed", missed, "events", events);
}

json_t *board_new_events(const struct board *b) {
    return json_array_size(b->fresh) == 0 && b->missed == 0 ? NULL : json_events(b->fresh, b->missed, false);
}

json_t *board_latest_events(const struct board *b) {
    return json_events(b->latest, 0, true);
}

/* --- the overview --- */

static json_t *json_values(const json_t *items, const json_t *before, bool is_whole) {
    json_t *list = json_array(), *item;
    const char *key;

    json_object_foreach ((json_t *) items, key, item)
        if (is_whole || !json_equal(item, json_object_get(before, key)))
            (void) json_array_append(list, item);
    return list;
}

static json_t *json_gone_keys(const json_t *items, const json_t *before) {
    json_t *list = json_array(), *item;
    const char *key;

    json_object_foreach ((json_t *) before, key, item)
        if (!json_object_get(items, key))
            (void) json_array_append_new(list, json_string(key));
    return list;
}

static json_t *json_overview(const struct board *b, bool is_whole) {
    const json_t *old_items = b->old_items ? b->old_items : b->items, *old_rows = b->old_rows ? b->old_rows : b->rows;
    json_t *o = json_pack("{s:i, s:b, s:I, s:I, s:O*, s:b, s:b, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I}", "schema", 1,
                          "whole", is_whole, "now_ms", now_msec(), "age_ms",
                          b->drawn == 0 ? (json_int_t) -1 : (json_int_t) (board_age(b) / USEC_PER_MSEC), "redis",
                          json_object_get(b->picture, "redis"), "stale",
                          json_is_true(json_object_get(b->picture, "stale")), "recovering",
                          json_is_true(json_object_get(b->picture, "recovering")), "pools",
                          json_values(b->items, old_items, is_whole), "pools_gone",
                          json_gone_keys(b->items, old_items), "hosts", json_values(b->rows, old_rows, is_whole),
                          "hosts_gone", json_gone_keys(b->rows, old_rows), "pools_more",
                          (json_int_t) b->n_more_pools, "hosts_more", (json_int_t) b->n_more_hosts, "hosts_n",
                          (json_int_t) json_array_size(json_object_get(b->picture, "hosts")), "malformed",
                          (json_int_t) json_array_size(json_object_get(b->picture, "malformed")));

    if (o && is_whole) {
        (void) json_object_set_new(o, "host", json_string(b->host));
        (void) json_object_set_new(o, "namespace", json_string(b->namespace));
        (void) json_object_set_new(o, "version", json_string(b->version));
        (void) json_object_set_new(o, "title", b->texts.title ? json_string(b->texts.title) : json_null());
        (void) json_object_set_new(o, "actions", json_boolean(b->texts.has_actions));
        (void) json_object_set_new(o, "login", json_boolean(b->texts.has_login));
    }
    return o;
}

json_t *board_overview(const struct board *b) {
    return json_overview(b, true);
}

json_t *board_changes(const struct board *b) {
    return json_overview(b, false);
}

json_t *board_gone(const struct board *b) {
    return b->away_since == 0 ? NULL
                              : json_pack("{s:s, s:I, s:I, s:I}", "why", b->why, "since_ms",
                                          (json_int_t) (b->away_since / USEC_PER_MSEC), "now_ms", now_msec(), "age_ms",
                                          b->drawn == 0 ? (json_int_t) -1
                                                        : (json_int_t) (board_age(b) / USEC_PER_MSEC));
}

/* --- one pool --- */

static const json_t *find_pool(const struct board *b, const char *name) {
    json_t *pool;
    size_t i;

    json_array_foreach (json_object_get(b->picture, "pools"), i, pool)
        if (strcmp(format_get_text(pool, "name"), name) == 0)
            return pool;
    return NULL;
}

static json_t *json_holder(const json_t *claim) {
    json_t *pid = json_object_get(claim, "pid"), *usual = json_object_get(claim, "usual");

    return json_pack("{s:s, s:s, s:s, s:I, s:s, s:O*, s:O*}", "claim", format_get_text(claim, "claim"),
                     "host", format_get_text(claim, "host"), "name", format_get_text(claim, "name"),
                     "permits", format_get_number(claim, "permits"), "since",
                     format_get_text(claim, "since"), "pid", json_is_integer(pid) ? pid : NULL, "usual",
                     json_is_object(usual) ? usual : NULL);
}

static json_t *json_waiter(const json_t *claim) {
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "claim", format_get_text(claim, "claim"), "host",
                     format_get_text(claim, "host"), "name", format_get_text(claim, "name"), "permits",
                     format_get_number(claim, "permits"), "position", format_get_number(claim, "position"),
                     "since_ms", since_msec(format_get_number(claim, "waiting_ms")));
}

static json_t *json_claims(const json_t *claims, json_t *(*make)(const json_t *claim)) {
    json_t *list = json_array();

    for (size_t i = 0; i < json_array_size(claims) && i < BOARD_CLAIMS_MAX; i++)
        (void) json_array_append_new(list, make(json_array_get(claims, i)));
    return list;
}

json_t *board_pool(const struct board *b, const char *name) {
    const json_t *pool = find_pool(b, name), *holders = json_object_get(pool, "holders"),
                 *queue = json_object_get(pool, "queue");

    if (!pool)
        return NULL;
    return json_pack("{s:s, s:O*, s:O*, s:O*, s:o, s:o}", "name", name, "limit", json_object_get(pool, "limit"), "used",
                     json_object_get(pool, "used"), "waiting", json_object_get(pool, "waiting"), "holders",
                     json_claims(holders, json_holder), "queue", json_claims(queue, json_waiter));
}

/* --- berthd's replies --- */

static void put_age(const struct board *b, json_t *reply) {
    if (reply && !json_object_get(reply, "age_ms"))
        (void) json_object_set_new(reply, "age_ms", json_integer((json_int_t) (board_age(b) / USEC_PER_MSEC)));
}

static json_t *without_claims(const json_t *pool) {
    json_t *copy = json_copy((json_t *) pool);

    if (copy) {
        (void) json_object_set_new(copy, "holders", json_array());
        (void) json_object_set_new(copy, "queue", json_array());
    }
    return copy;
}

json_t *board_pools_reply(const struct board *b, const char *name) {
    const json_t *wanted = name ? find_pool(b, name) : NULL;
    json_t *reply, *list, *pool;
    size_t i;

    if (!b->picture || (name && !wanted))
        return NULL;
    reply = json_copy(b->picture);
    (void) json_object_del(reply, "hosts");
    list = json_array();
    if (wanted)
        (void) json_array_append(list, (json_t *) wanted);
    else
        json_array_foreach (json_object_get(b->picture, "pools"), i, pool)
            (void) json_array_append_new(list, without_claims(pool));
    if (json_object_set_new(reply, "pools", list) < 0) {
        json_decref(reply);
        return NULL;
    }
    put_age(b, reply);
    return reply;
}

json_t *board_hosts_reply(const struct board *b) {
    json_t *reply = b->picture ? json_copy(b->picture) : NULL;

    (void) json_object_del(reply, "pools");
    (void) json_object_del(reply, "complete");
    put_age(b, reply);
    return reply;
}

usec_t board_age(const struct board *b) {
    return b->drawn == 0 ? USEC_INFINITY : usec_sub(clock_boottime(), b->drawn);
}

const json_t *board_pools(const struct board *b) {
    return json_object_get(b->picture, "pools");
}
