/* SPDX-License-Identifier: MIT */
#include "web/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/format.h"
#include "base/list.h"

#define BUCKETS 8192
#define UNSEEN_MSEC 30000 /* for which a claim may be absent from lists that were cut */
#define CLAIM_SIZE 40
#define RESULT_SIZE 24

struct bar {
    struct list link, by_claim; /* by begin; of its bucket */
    char claim[CLAIM_SIZE], result[RESULT_SIZE];
    json_int_t waited, held, end, seen; /* ms since 1970; 0: none */
    uint32_t permits;
    const char *pool, *host, *name; /* in texts */
    char texts[];
};

struct timeline {
    struct list bars; /* struct bar, oldest first */
    struct list buckets[BUCKETS];
    unsigned n, n_dropped;
};

int timeline_new(struct timeline **ret) {
    struct timeline *t = calloc(1, sizeof(*t));

    if (!t)
        return -ENOMEM;
    list_init(&t->bars);
    for (size_t i = 0; i < BUCKETS; i++)
        list_init(&t->buckets[i]);
    *ret = t;
    return 0;
}

static void bar_free(struct timeline *t, struct bar *b) {
    list_unlink(&b->link);
    list_unlink(&b->by_claim);
    free(b);
    t->n--;
}

struct timeline *timeline_free(struct timeline *t) {
    if (!t)
        return NULL;
    list_foreach_safe(b, &t->bars, struct bar, link)
        bar_free(t, b);
    free(t);
    return NULL;
}

/* --- bars --- */

static struct list *bucket_of(struct timeline *t, const char *claim) {
    unsigned hash = 5381;

    for (; *claim; claim++)
        hash = hash * 33 + (unsigned char) *claim;
    return &t->buckets[hash % BUCKETS];
}

/* Returns the bar that is not over, or NULL. */
static struct bar *find_open(struct timeline *t, const char *claim, const char *pool) {
    list_foreach(b, bucket_of(t, claim), struct bar, by_claim)
        if (b->end == 0 && strcmp(b->claim, claim) == 0 && strcmp(b->pool, pool) == 0)
            return b;
    return NULL;
}

static char *put(char **at, const char *text, size_t n) {
    char *begin = *at;

    memcpy(begin, text, n);
    *at += n;
    return begin;
}

static struct bar *bar_new(struct timeline *t, const json_t *claim, const char *pool) {
    const char *host = format_get_text(claim, "host"), *name = format_get_text(claim, "name");
    size_t n_pool = strlen(pool) + 1, n_host = strlen(host) + 1, n_name = strlen(name) + 1;
    struct bar *b = calloc(1, sizeof(*b) + n_pool + n_host + n_name);
    char *at;

    if (!b)
        return NULL;
    at = b->texts;
    b->pool = put(&at, pool, n_pool);
    b->host = put(&at, host, n_host);
    b->name = put(&at, name, n_name);
    (void) snprintf(b->claim, sizeof(b->claim), "%s", format_get_text(claim, "claim"));
    b->permits = (uint32_t) format_get_number(claim, "permits");
    list_append(&t->bars, &b->link);
    list_append(bucket_of(t, b->claim), &b->by_claim);
    if (++t->n > TIMELINE_BARS_MAX) {
        bar_free(t, list_first(&t->bars, struct bar, link));
        t->n_dropped++;
    }
    return b;
}

/* --- pictures --- */

static void see(struct timeline *t, const json_t *claim, const char *pool, bool holds, json_int_t now) {
    struct bar *b = find_open(t, format_get_text(claim, "claim"), pool);

    if (!b)
        b = bar_new(t, claim, pool);
    if (!b)
        return;
    b->seen = now;
    if (holds && b->held == 0)
        b->held = format_get_time(claim, "since");
    else if (!holds && b->waited == 0)
        b->waited = now - format_get_number(claim, "waiting_ms");
}

/* Returns whether all claims of the pool are listed. */
static bool is_complete(const json_t *pool) {
    json_int_t used = 0;
    json_t *holder;
    size_t i;

    json_array_foreach (json_object_get(pool, "holders"), i, holder)
        used += format_get_number(holder, "permits");
    return used >= format_get_number(pool, "used") &&
           (json_int_t) json_array_size(json_object_get(pool, "queue")) >=
               format_get_number(pool, "waiting");
}

static void close_bars(struct timeline *t, const json_t *whole, json_int_t now) {
    list_foreach_safe(b, &t->bars, struct bar, link) {
        bool is_gone = b->end == 0 && b->seen != now;

        if (is_gone && (json_object_get(whole, b->pool) || now - b->seen > UNSEEN_MSEC))
            b->end = json_object_get(whole, b->pool) ? now : b->seen;
        if (b->end > 0 && b->end < now - (json_int_t) (TIMELINE_TIME / USEC_PER_MSEC))
            bar_free(t, b);
    }
}

void timeline_add_picture(struct timeline *t, const json_t *pools, usec_t realtime) {
    json_int_t now = (json_int_t) (realtime / USEC_PER_MSEC);
    json_t *whole = json_object(), *pool, *claim; /* pools whose claims are all listed */
    size_t i, j;

    json_array_foreach ((json_t *) pools, i, pool) {
        const char *name = format_get_text(pool, "name");

        json_array_foreach (json_object_get(pool, "holders"), j, claim)
            see(t, claim, name, true, now);
        json_array_foreach (json_object_get(pool, "queue"), j, claim)
            see(t, claim, name, false, now);
        if (is_complete(pool))
            (void) json_object_set_new(whole, name, json_true());
    }
    close_bars(t, whole, now);
    json_decref(whole);
}

void timeline_add_event(struct timeline *t, const json_t *event) {
    const json_t *fields = json_object_get(event, "fields");
    const char *run = format_get_text(fields, "BERTH_RUN"),
               *result = format_get_text(fields, "BERTH_RESULT");

    if (!*run || !*result || strcmp(result, "success") == 0)
        return;
    list_foreach(b, bucket_of(t, run), struct bar, by_claim)
        if (strcmp(b->claim, run) == 0)
            (void) snprintf(b->result, sizeof(b->result), "%s", result);
}

/* --- JSON --- */

static json_t *msec_or_null(json_int_t msec) {
    return msec == 0 ? json_null() : json_integer(msec);
}

static json_t *bar_to_json(const struct bar *b) {
    return json_pack("[s, s, s, I, o, o, o, s?]", b->claim, b->host, b->name, (json_int_t) b->permits,
                     msec_or_null(b->waited), msec_or_null(b->held), msec_or_null(b->end),
                     b->result[0] ? b->result : NULL);
}

json_t *timeline_to_json(const struct timeline *t, const char *pool, usec_t realtime) {
    json_int_t now = (json_int_t) (realtime / USEC_PER_MSEC);
    json_t *bars = json_array();
    unsigned n = 0, too_many; /* the oldest are left out */

    list_foreach(b, &((struct timeline *) t)->bars, struct bar, link)
        n += strcmp(b->pool, pool) == 0;
    too_many = n > TIMELINE_SHOWN_MAX ? n - TIMELINE_SHOWN_MAX : 0;
    n = 0;
    list_foreach(b, &((struct timeline *) t)->bars, struct bar, link)
        if (strcmp(b->pool, pool) == 0 && n++ >= too_many)
            (void) json_array_append_new(bars, bar_to_json(b));
    return json_pack("{s:i, s:s, s:I, s:I, s:I, s:o}", "schema", 1, "pool", pool, "now_ms", now, "from_ms",
                     now - (json_int_t) (TIMELINE_TIME / USEC_PER_MSEC), "dropped",
                     (json_int_t) t->n_dropped + too_many, "bars", bars);
}
