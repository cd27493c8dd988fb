/* SPDX-License-Identifier: MIT */
#include "base/journal-read.h"

#include <errno.h>
#include <fts.h>
#include <glob.h>
#include <poll.h>
#include <string.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include "base/number.h"

#define FILES_MAX 4096 /* of one folder */

struct journal_reader {
    sd_journal *journal;
    bool at_begin, is_watched;
};

/* --- the files of a folder --- */

struct files {
    char **paths; /* ends in NULL */
    size_t n;
};

static void files_done(struct files *f) {
    for (size_t i = 0; i < f->n; i++)
        free(f->paths[i]);
    free(f->paths);
}

static int files_add(struct files *f, const char *path) {
    char **grown = f->n < FILES_MAX ? realloc(f->paths, (f->n + 2) * sizeof(*grown)) : NULL;

    if (!grown)
        return f->n < FILES_MAX ? -ENOMEM : -E2BIG;
    f->paths = grown;
    f->paths[f->n] = strdup(path);
    if (!f->paths[f->n])
        return -ENOMEM;
    f->paths[++f->n] = NULL;
    return 0;
}

static bool is_journal(const char *name) {
    const char *dot = strrchr(name, '.');

    return dot && (strcmp(dot, ".journal") == 0 || strcmp(dot, ".journal~") == 0);
}

static int files_visit(struct files *f, const FTSENT *entry) {
    switch (entry->fts_info) {
    case FTS_F:
        return is_journal(entry->fts_name) ? files_add(f, entry->fts_accpath) : 0;
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        return -entry->fts_errno;
    default: /* fts(3) may know more one day; folders and links are nothing to read */
        return entry->fts_level == FTS_ROOTLEVEL && entry->fts_info != FTS_D && entry->fts_info != FTS_DP ? -ENOTDIR : 0;
    }
}

static int files_find(struct files *f, const char *directory) {
    char *roots[] = {(char *) directory, NULL};
    FTS *fts = fts_open(roots, FTS_COMFOLLOW | FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    FTSENT *entry;
    int k = 0;

    if (!fts)
        return -errno;
    while (k == 0 && (entry = fts_read(fts)))
        k = files_visit(f, entry);
    (void) fts_close(fts);
    return k < 0 ? k : f->n > 0 ? 0 : -ENODATA;
}

static int open_directory(sd_journal **ret, const char *directory) {
    _cleanup_(files_done) struct files files = {};
    int k = files_find(&files, directory);

    k = k < 0 ? k : sd_journal_open_files(ret, (const char **) files.paths, 0);
    return k == -ENODATA && files.n > 0 ? -EBADMSG : k; /* a file too short to be one */
}

/* --- the reader --- */

/* Opening a journal that is not there, or that this user may not read, is no error of sd_journal_open(): it is empty then. */
static int find_anything(sd_journal *journal) {
    int k = sd_journal_seek_head(journal);

    k = k < 0 ? k : sd_journal_next(journal);
    return k < 0 ? k : k == 0 ? -ENODATA : 0;
}

/* Without rights the machine's journal is not refused: it is the user's own alone. */
static int check_rights(void) {
    static const char *const patterns[] = {"/var/log/journal/*/system.journal", "/run/log/journal/*/system.journal"};
    int k = 0;

    for (size_t i = 0; i < ELEMENTSOF(patterns); i++) {
        glob_t found;

        if (glob(patterns[i], GLOB_NOSORT, NULL, &found) != 0)
            continue;
        for (size_t n = 0; n < found.gl_pathc; n++)
            if (access(found.gl_pathv[n], R_OK) < 0 && errno == EACCES)
                k = -EACCES;
        globfree(&found);
    }
    return k;
}

int journal_reader_new(struct journal_reader **ret, const char *directory, bool merged) {
    _cleanup_(journal_reader_freep) struct journal_reader *r = calloc(1, sizeof(*r));
    int k;

    if (!r)
        return -ENOMEM;
    r->at_begin = true;
    if (directory)
        k = open_directory(&r->journal, directory);
    else if ((k = check_rights()) == 0)
        k = sd_journal_open(&r->journal, merged ? 0 : SD_JOURNAL_LOCAL_ONLY);
    if (k < 0)
        return k;
    k = find_anything(r->journal);
    k = k < 0 ? k : sd_journal_set_data_threshold(r->journal, 0); /* fields are not cut */
    if (k < 0)
        return k;
    *ret = steal_pointer(&r);
    return 0;
}

struct journal_reader *journal_reader_free(struct journal_reader *r) {
    if (!r)
        return NULL;
    if (r->journal)
        sd_journal_close(r->journal);
    free(r);
    return NULL;
}

int journal_reader_match(struct journal_reader *r, const char *match) {
    return sd_journal_add_match(r->journal, match, 0);
}

int journal_reader_next(struct journal_reader *r) {
    int k;

    if (r->at_begin) {
        k = sd_journal_seek_head(r->journal);
        if (k < 0)
            return k;
        r->at_begin = false;
    }
    k = sd_journal_next(r->journal);
    return k > 0 ? 1 : k;
}

int journal_reader_wait(struct journal_reader *r, usec_t usec, int reader_fd) {
    struct pollfd fds[] = {{.fd = sd_journal_get_fd(r->journal)}, {.fd = reader_fd}};
    usec_t now = clock_monotonic(), until = usec_add(now, usec), wake = USEC_INFINITY;
    int k = fds[0].fd < 0 ? fds[0].fd : sd_journal_get_events(r->journal);

    if (k < 0)
        return k;
    fds[0].events = (short) k;
    if (!r->is_watched) { /* what came before the descriptor was there is not told by it */
        r->is_watched = true;
        return 1;
    }
    k = sd_journal_get_timeout(r->journal, &wake);
    if (k < 0)
        return k;
    wake = wake < until ? wake : until;
    k = poll(fds, ELEMENTSOF(fds), wake == USEC_INFINITY ? -1 : (int) ((usec_sub(wake, now) + USEC_PER_MSEC - 1) / USEC_PER_MSEC));
    if (k < 0)
        return -errno;
    if (fds[1].revents & (POLLERR | POLLHUP | POLLNVAL))
        return -EPIPE;
    k = sd_journal_process(r->journal);
    return k < 0 ? k : k != SD_JOURNAL_NOP;
}

int journal_reader_get(struct journal_reader *r, const char *field, char **ret) {
    size_t size, name = strlen(field) + 1; /* with its '=' */
    const void *data;
    int k = sd_journal_get_data(r->journal, field, &data, &size);

    *ret = NULL;
    if (k == -ENOENT)
        return 0;
    if (k < 0)
        return k;
    if (size < name)
        return -EBADMSG;
    *ret = strndup((const char *) data + name, size - name);
    return *ret ? 0 : -ENOMEM;
}

int journal_reader_time(struct journal_reader *r, usec_t *ret_realtime) {
    _cleanup_free_ char *text = NULL;
    int k = journal_reader_get(r, "_SOURCE_REALTIME_TIMESTAMP", &text);

    if (k < 0)
        return k;
    if (text && number_parse(text, INT64_MAX, ret_realtime) == 0)
        return 0;
    return sd_journal_get_realtime_usec(r->journal, ret_realtime);
}

int journal_reader_cursor(struct journal_reader *r, char **ret) {
    return sd_journal_get_cursor(r->journal, ret);
}
