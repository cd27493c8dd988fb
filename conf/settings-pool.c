/* SPDX-License-Identifier: MIT */

/* The pools of the config. */

#include <string.h>

#include "conf/settings-read.h"
#include "base/text.h"

#define QUEUE_LIMIT_MAX 1000000
#define QUEUE_LIMIT_DEFAULT 10000
#define HEAD_START_MAX_DEFAULT (300 * USEC_PER_SEC) /* nobody who has waited for five minutes longer is overtaken */

static const char *const scopes[] = {[POOL_SCOPE_CLUSTER] = "cluster", [POOL_SCOPE_HOST] = "host"};

static void read_pool(const struct settings *s, struct pool_settings *pool, const struct parsed_section *section, struct notes *notes) {
    const struct value_reader r = {section, notes};
    struct settings_place place = value_place(&r, POOL_SCOPE);
    /* The default; but one that is wrong asks for no Redis. */
    unsigned scope = value_is_missing(&r, POOL_SCOPE) ? POOL_SCOPE_CLUSTER : POOL_SCOPE_HOST;

    pool->place = section->place;
    settings_read_title(&r, pool->name);
    /* A wrong limit stays 0, at which nothing is too heavy. */
    (void) value_number(&r, POOL_LIMIT, POOL_LIMIT_MAX, &pool->limit);
    if (value_is_missing(&r, POOL_LIMIT))
        value_note(&r, &section->place, "limit is missing; write limit = N, 0 pauses the pool");
    value_choice(&r, POOL_SCOPE, scopes, ELEMENTSOF(scopes), &scope);
    pool->scope = (enum pool_scope) scope;
    (void) value_number(&r, POOL_HOST_LIMIT, POOL_LIMIT_MAX, &pool->host_limit);
    pool->queue_limit = QUEUE_LIMIT_DEFAULT;
    (void) value_number(&r, POOL_QUEUE_LIMIT, QUEUE_LIMIT_MAX, &pool->queue_limit);
    settings_read_accounts(&r, POOL_USERS, &pool->users);
    pool->head_start_max_usec = HEAD_START_MAX_DEFAULT;
    value_duration(&r, POOL_HEAD_START_MAX, 0, VALUE_DURATION_MAX, &pool->head_start_max_usec);
    value_text(&r, POOL_DESCRIPTION, "", &pool->description);

    if (pool->scope == POOL_SCOPE_CLUSTER && !s->redis && !notes->incomplete && !notes_is_spoiled(notes, &place))
        value_note(&r, &place, "scope \"cluster\" needs a Redis; add a redis section, or write scope = \"host\"");
}

static int compare(const void *a, const void *b, void *settings) {
    const struct pool_settings *x = a, *y = b;
    int r = strcmp(x->name, y->name);

    return r != 0 ? r : settings_compare_places(settings, &x->place, &y->place);
}

void settings_read_pools(struct settings *s, const struct parsed *parsed, struct notes *notes) {
    size_t n = settings_count(parsed, SECTION_POOL);

    if (n == 0)
        return;
    s->pools = calloc(n, sizeof(*s->pools));
    if (!s->pools) {
        notes->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < parsed->n_sections; i++)
        if (parsed->sections[i].kind == SECTION_POOL)
            read_pool(s, &s->pools[s->n_pools++], &parsed->sections[i], notes);
    qsort_r(s->pools, n, sizeof(*s->pools), compare, s);
    for (size_t i = 1; i < n; i++)
        if (*s->pools[i].name != '\0' && strcmp(s->pools[i - 1].name, s->pools[i].name) == 0)
            settings_note_twice(notes, "pool", s->pools[i].name, &s->pools[i - 1].place, &s->pools[i].place);
}

void pool_settings_done(struct pool_settings *pool) {
    accounts_done(&pool->users);
    free(pool->description);
}
