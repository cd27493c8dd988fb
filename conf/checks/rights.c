/* SPDX-License-Identifier: MIT */

/* Looks up the users and groups to which the config gives rights. */

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>

#include "conf/syntax/notes.h"

/* Returns 0, or the errno of a failed lookup. A missing account is no failure (getpwnam(3) lists its values
 * of errno). */
static int find(struct account *a) {
    const struct passwd *user;
    const struct group *group;

    errno = 0;
    if (a->is_group && (group = getgrnam(a->name))) {
        a->id = group->gr_gid;
        a->is_known = true;
    } else if (!a->is_group && (user = getpwnam(a->name))) {
        a->id = user->pw_uid;
        a->is_known = true;
    }
    if (a->is_known || errno == ENOENT || errno == ESRCH || errno == EBADF || errno == EPERM)
        return 0;
    return errno;
}

static void find_or_note(struct account *a, struct notes *notes, const char *where) {
    const char *kind = a->is_group ? "group" : "user";
    int error;

    if (!a->name || a->name[0] == '\0')
        return;
    error = find(a);
    if (a->is_known || !a->place.file)
        return;
    if (error)
        notes_add(notes, &a->place, "%s: %s \"%s\" cannot be looked up: %s; it matches nobody until a reload finds it", where, kind, a->name,
                  strerror(error));
    else
        notes_add(notes, &a->place, "%s: there is no %s \"%s\" on this machine, so it matches nobody; make it, or remove it here", where,
                  kind, a->name);
}

static void find_all(struct accounts *accounts, struct notes *notes, const char *section, const char *title, const char *option) {
    char where[POOL_NAME_SIZE + 40];

    snprintf(where, sizeof(where), "%s \"%s\": %s", section, title, option);
    for (size_t i = 0; i < accounts->n; i++)
        find_or_note(&accounts->items[i], notes, where);
}

int settings_find_accounts(struct settings *s, struct settings_errors *missing) {
    struct notes notes = {};
    int r;

    find_or_note(&s->run_group, &notes, "run-group");
    find_or_note(&s->operate_group, &notes, "operate-group");
    for (size_t i = 0; i < s->n_pools; i++)
        find_all(&s->pools[i].users, &notes, "pool", s->pools[i].name, "users");
    for (size_t i = 0; i < s->n_jobs; i++)
        find_all(&s->jobs[i].operators, &notes, "job", s->jobs[i].name, "operators");
    for (size_t i = 0; i < s->open.n_templates; i++)
        find_all(&s->open.templates[i].operators, &notes, "job", s->open.templates[i].name, "operators");
    r = notes.out_of_memory ? -ENOMEM : 0;
    notes_finish(&notes, s->files, s->n_files, missing);
    notes_done(&notes);
    return r;
}
