/* SPDX-License-Identifier: MIT */

/* The pools of the config. */

#include <string.h>

#include "conf/settings-read.h"

/* Returns whether the config makes the pool one of the cluster; a wrong scope does not. */
static bool is_meant_for_cluster(const struct pool_settings *pool, const struct value_reader *reader) {
    const char *scope = value_get(reader, "scope", 0, false);

    return pool->scope == POOL_SCOPE_CLUSTER && (scope ? strcmp(scope, "cluster") == 0 : value_is_missing(reader, "scope"));
}

static void check_scope(const struct settings *s, struct pool_settings *pool, const struct value_reader *reader) {
    struct settings_place place = value_place(reader, "scope");

    if (!is_meant_for_cluster(pool, reader))
        pool->scope = POOL_SCOPE_HOST;
    else if (!s->redis && !reader->notes->incomplete && !notes_is_spoiled(reader->notes, &place))
        value_note(reader, &place, "scope \"cluster\" needs a Redis; add a redis section, or write scope = \"host\"");
}

static void read_pool(const struct settings *s, struct pool_settings *pool, const struct parsed_section *section,
                      struct notes *notes) {
    const struct value_reader reader = {section, notes};

    pool->place = section->place;
    settings_read_pool_title(&reader, pool->name);
    option_read_section(&reader, pool); /* a wrong limit stays 0: demands of a paused pool are not checked */
    if (value_is_missing(&reader, "limit"))
        value_note(&reader, &section->place, "limit is missing; write limit = N, 0 pauses the pool");
    check_scope(s, pool, &reader);
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
