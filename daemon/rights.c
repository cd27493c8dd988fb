/* SPDX-License-Identifier: MIT */
#include "daemon/rights.h"

#include <stdarg.h>
#include <string.h>

#define NAMED_MAX 8 /* accounts that a refusal names; it counts the others */

const char *right_name(enum right right) {
    static const char *const names[] = {[RIGHT_LOOK] = "look", [RIGHT_RUN] = "run", [RIGHT_OPERATE] = "operate"};

    return right < ELEMENTSOF(names) && names[right] ? names[right] : "?";
}

/* --- decisions --- */

static bool matches(const struct account *a, const struct caller *c) {
    if (!a->is_known)
        return false;
    return a->is_group ? caller_has_group(c, a->id) : c->peer.uid == a->id;
}

static bool is_among(const struct accounts *accounts, const struct caller *c) {
    for (size_t i = 0; i < accounts->n; i++)
        if (matches(&accounts->items[i], c))
            return true;
    return false;
}

enum right rights_get(const struct settings *s, const struct caller *c) {
    if (c->peer.uid == 0 || c->peer.uid == geteuid() || matches(&s->operate_group, c))
        return RIGHT_OPERATE;
    return matches(&s->run_group, c) ? RIGHT_RUN : RIGHT_LOOK;
}

bool rights_cover_pool(const struct settings *s, const struct caller *c, const struct pool_settings *pool) {
    enum right right = rights_get(s, c);

    if (right == RIGHT_OPERATE)
        return true;
    return right == RIGHT_RUN && (pool->users.n == 0 || is_among(&pool->users, c));
}

bool rights_cover_job(const struct settings *s, const struct caller *c, const struct job_settings *job) {
    return rights_get(s, c) == RIGHT_OPERATE || (job && is_among(&job->operators, c));
}

bool rights_cover_run(const struct settings *s, const struct caller *c, const struct run *run) {
    if (run->kind == RUN_KIND_JOB)
        return rights_cover_job(s, c, settings_find_job(s, run->name));
    return rights_get(s, c) == RIGHT_OPERATE || (rights_get(s, c) == RIGHT_RUN && run->adhoc.uid == c->peer.uid);
}

/* --- words --- */

struct list_text { /* "a, b and c": an item is written when the next one shows what precedes it */
    char *buffer;
    size_t n, n_items;
    char item[NAME_MAX_LENGTH + 64];
};

static void put(struct list_text *t, const char *before) {
    int n = snprintf(t->buffer + t->n, RIGHTS_TEXT_SIZE - t->n, "%s%s", before, t->item);

    t->n = t->n + (size_t) n < RIGHTS_TEXT_SIZE ? t->n + (size_t) n : RIGHTS_TEXT_SIZE - 1;
}

static void add(struct list_text *t, const char *format, ...) _printf_(2, 3);
static void add(struct list_text *t, const char *format, ...) {
    va_list arguments;

    if (t->n_items > 0)
        put(t, t->n_items > 1 ? ", " : "");
    t->n_items++;
    va_start(arguments, format);
    (void) vsnprintf(t->item, sizeof(t->item), format, arguments);
    va_end(arguments);
}

static void add_account(struct list_text *t, const struct account *a) {
    if (a->is_known)
        add(t, "%s %s", a->is_group ? "members of group" : "user", a->name);
}

static void add_accounts(struct list_text *t, const struct accounts *accounts) {
    for (size_t i = 0; i < accounts->n && i < NAMED_MAX; i++)
        add_account(t, &accounts->items[i]);
    if (accounts->n > NAMED_MAX)
        add(t, "%zu more", accounts->n - NAMED_MAX);
}

const char *rights_format_holders(const struct settings *s, enum right right, const struct accounts *besides,
                                  char buffer[static RIGHTS_TEXT_SIZE]) {
    struct list_text t = {.buffer = buffer};

    buffer[0] = '\0';
    add(&t, "root");
    if (geteuid() != 0 && !s->operate_group.is_known) /* berthd of a user, not of the system */
        add(&t, "uid %u", (unsigned) geteuid());
    add_account(&t, &s->operate_group);
    if (right == RIGHT_RUN && !besides)
        add_account(&t, &s->run_group);
    if (besides)
        add_accounts(&t, besides);
    put(&t, t.n_items > 1 ? " and " : "");
    snprintf(t.item, sizeof(t.item), t.n_items > 1 ? " have it" : " has it");
    put(&t, "");
    return buffer;
}
