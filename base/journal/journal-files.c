/* SPDX-License-Identifier: MIT */
#include "base/journal/journal-files.h"

#include <errno.h>
#include <fts.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define SEARCHES_MAX 10 /* of a folder that changes meanwhile */

/* Forgets all files but the first ones. */
static void cut(struct journal_files *f, size_t n) {
    while (f->n > n)
        free(f->items[--f->n].path);
}

void journal_files_done(struct journal_files *f) {
    cut(f, 0);
    free(f->items);
    *f = (struct journal_files) {};
}

static bool is_journal(const char *name) {
    const char *dot = strrchr(name, '.');

    return dot && (strcmp(dot, ".journal") == 0 || strcmp(dot, ".journal~") == 0);
}

static int add(struct journal_files *f, const char *path) {
    struct journal_file_path *grown = f->n < JOURNAL_FILES_MAX ? reallocarray(f->items, f->n + 1, sizeof(*grown)) : NULL;
    const char *name = strrchr(path, '/'), *end;

    if (!grown)
        return f->n < JOURNAL_FILES_MAX ? -ENOMEM : -E2BIG;
    f->items = grown;
    name = name ? name + 1 : path;
    end = strchr(name, '@');
    if (!end || end[1 + strspn(end + 1, "0123456789abcdef-")] != '.') /* not a name that journald or systemd-journal-remote gives when it rotates */
        end = strrchr(name, '.');
    grown[f->n] = (struct journal_file_path) {.path = strdup(path), .source = (size_t) (end - path)};
    if (!grown[f->n].path)
        return -ENOMEM;
    f->n++;
    return 0;
}

static int visit(struct journal_files *f, FTS *fts, FTSENT *entry, const char *except) {
    switch (entry->fts_info) {
    case FTS_F:
        return is_journal(entry->fts_name) ? add(f, entry->fts_accpath) : 0;
    case FTS_D:
        if (except && entry->fts_level == 1 && strncmp(entry->fts_name, except, strlen(except)) == 0)
            (void) fts_set(fts, entry, FTS_SKIP);
        return 0;
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS: /* a file that was renamed meanwhile may be missed: it would be left out silently */
        return entry->fts_errno == ENOENT && entry->fts_level > FTS_ROOTLEVEL ? -EAGAIN : -entry->fts_errno;
    default: /* folders, links and unknown kinds are not read */
        return entry->fts_level == FTS_ROOTLEVEL && entry->fts_info != FTS_DP ? -ENOTDIR : 0;
    }
}

static int search(struct journal_files *f, const char *directory, const char *except) {
    char *roots[] = {(char *) directory, NULL};
    FTS *fts = fts_open(roots, FTS_COMFOLLOW | FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    int k = 0;

    if (!fts)
        return -errno;
    while (k == 0) {
        FTSENT *entry;

        errno = 0;
        entry = fts_read(fts);
        if (!entry) {
            k = -errno;
            break;
        }
        k = visit(f, fts, entry, except);
    }
    (void) fts_close(fts);
    return k;
}

int journal_files_find(struct journal_files *f, const char *directory, const char *except) {
    size_t n = f->n;
    int k = -EAGAIN;

    for (unsigned i = 0; i < SEARCHES_MAX && k == -EAGAIN; i++) {
        cut(f, n);
        k = search(f, directory, except);
    }
    return k;
}

static bool is_same_writer(const struct journal_file_path *x, const struct journal_file_path *y) {
    return x->source == y->source && memcmp(x->path, y->path, x->source) == 0;
}

static int compare(const void *a, const void *b) {
    const struct journal_file_path *x = a, *y = b;
    int k = memcmp(x->path, y->path, x->source < y->source ? x->source : y->source);

    if (k == 0 && x->source != y->source)
        return x->source < y->source ? -1 : 1;
    return k != 0 ? k : strcmp(x->path, y->path);
}

void journal_files_sort(struct journal_files *f) {
    if (f->n > 0)
        qsort(f->items, f->n, sizeof(*f->items), compare);
}

const char **journal_files_of_writer(const struct journal_files *f, size_t first, size_t *ret_n) {
    const char **paths;
    size_t n = 1;

    while (first + n < f->n && is_same_writer(&f->items[first], &f->items[first + n]))
        n++;
    paths = calloc(n + 1, sizeof(*paths));
    for (size_t i = 0; paths && i < n; i++)
        paths[i] = f->items[first + i].path;
    *ret_n = n;
    return paths;
}
