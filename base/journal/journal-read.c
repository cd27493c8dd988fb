/* SPDX-License-Identifier: MIT */
#include "base/journal/journal-read.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include "base/journal/journal-files.h"
#include "base/number.h"

struct source { /* a journal of one writer */
    sd_journal *journal;
    bool at_begin, has_entry;
    usec_t time; /* of its current entry, if it has one */
};

struct journal_reader {
    struct source *sources;
    size_t n, n_files; /* n_files: open at first */
    struct source *current;
    usec_t since; /* realtime; 0: from the first entry */
    struct pollfd *fds; /* one for each source, and reader_fd */
    bool is_watched;
};

/* --- opening --- */

static int add_source(struct journal_reader *r, sd_journal *journal) {
    struct source *grown = reallocarray(r->sources, r->n + 1, sizeof(*grown));

    if (!grown) {
        sd_journal_close(journal);
        return -ENOMEM;
    }
    r->sources = grown;
    grown[r->n++] = (struct source) {.journal = journal, .at_begin = true};
    return sd_journal_set_data_threshold(journal, 0); /* fields are not cut */
}

/* The library omits entries if one sd_journal has the files of several hosts (systemd 254 and later orders
 * by boots, github.com/systemd/systemd/issues/34169). So each writer has its own sd_journal, and the entries
 * are merged here. */
static int add_files(struct journal_reader *r, struct journal_files *files) {
    size_t n;
    int k = 0;

    journal_files_sort(files);
    for (size_t i = 0; i < files->n && k == 0; i += n) {
        _cleanup_free_ const char **paths = journal_files_of_writer(files, i, &n);
        sd_journal *journal;

        k = paths ? sd_journal_open_files(&journal, paths, 0) : -ENOMEM;
        k = k < 0 ? k : add_source(r, journal);
    }
    return k == -ENODATA ? -EBADMSG : k; /* a file too short for a journal */
}

static int open_directory(struct journal_reader *r, const char *directory) {
    _cleanup_(journal_files_done) struct journal_files files = {};
    int k = journal_files_find(&files, directory, NULL);

    return k < 0 ? k : files.n == 0 ? -ENODATA : add_files(r, &files);
}

/* Adds the journals collected from other hosts, beside the folders of this machine. */
static int open_others(struct journal_reader *r) {
    static const char *const folders[] = {"/var/log/journal", "/run/log/journal"};
    _cleanup_(journal_files_done) struct journal_files files = {};
    char own[SD_ID128_STRING_MAX];
    sd_id128_t id;
    int k = sd_id128_get_machine(&id);

    for (size_t i = 0; i < ELEMENTSOF(folders) && k >= 0; i++) {
        k = journal_files_find(&files, folders[i], sd_id128_to_string(id, own));
        k = k == -ENOENT ? 0 : k;
    }
    return k < 0 ? k : add_files(r, &files);
}

static int open_machine(struct journal_reader *r, bool merged) {
    sd_journal *journal;
    int k = sd_journal_open(&journal, SD_JOURNAL_LOCAL_ONLY);

    k = k < 0 ? k : add_source(r, journal);
    return k < 0 || !merged ? k : open_others(r);
}

/* Returns how many journal files this process has open; 0 without /proc. */
static size_t count_open_files(void) {
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;
    char path[PATH_MAX];
    size_t n = 0;

    while (directory && (entry = readdir(directory))) {
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, path, sizeof(path) - 1);

        path[length < 0 ? 0 : length] = '\0';
        n += strstr(path, ".journal") != NULL; /* "user.journal (deleted)" as well: it is still read */
    }
    if (directory)
        (void) closedir(directory);
    return n;
}

/* sd_journal_next(3) closes a file where it is damaged, and goes on with the others as if that file had ended. */
int journal_reader_check(const struct journal_reader *r) {
    return count_open_files() < r->n_files ? -EBADMSG : 0;
}

/* sd_journal_open() opens a missing or unreadable journal as an empty one. */
static int find_anything(const struct journal_reader *r) {
    int k = 0;

    for (size_t i = 0; i < r->n && k == 0; i++) {
        k = sd_journal_seek_head(r->sources[i].journal);
        k = k < 0 ? k : sd_journal_next(r->sources[i].journal);
    }
    if (k == 0)
        k = journal_reader_check(r);
    return k < 0 ? k : k == 0 ? -ENODATA : 0;
}

/* Without rights sd_journal shows the user's own journal only. */
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
    if (directory)
        k = open_directory(r, directory);
    else if ((k = check_rights()) == 0)
        k = open_machine(r, merged);
    r->n_files = count_open_files();
    k = k < 0 ? k : find_anything(r);
    if (k < 0)
        return k;
    r->fds = calloc(r->n + 1, sizeof(*r->fds));
    if (!r->fds)
        return -ENOMEM;
    *ret = steal_pointer(&r);
    return 0;
}

struct journal_reader *journal_reader_free(struct journal_reader *r) {
    if (!r)
        return NULL;
    for (size_t i = 0; i < r->n; i++)
        sd_journal_close(r->sources[i].journal);
    free(r->sources);
    free(r->fds);
    free(r);
    return NULL;
}

int journal_reader_match(struct journal_reader *r, const char *match) {
    int k = 0;

    for (size_t i = 0; i < r->n && k >= 0; i++)
        k = sd_journal_add_match(r->sources[i].journal, match, 0);
    return k;
}

int journal_reader_match_also(struct journal_reader *r, const char *match) {
    int k = 0;

    for (size_t i = 0; i < r->n && k >= 0; i++)
        k = sd_journal_add_disjunction(r->sources[i].journal);
    return k < 0 ? k : journal_reader_match(r, match);
}

/* Adds a match for "FIELD=value", if the value is wanted. name: its offset. */
static int match_value(struct source *s, const char *data, size_t size, size_t name,
                       bool (*is_wanted)(const char *value, void *userdata), void *userdata) {
    _cleanup_free_ char *match = NULL;

    if (size <= name || memchr(data, '\0', size))
        return 0;
    match = strndup(data, size);
    if (!match)
        return -ENOMEM;
    return is_wanted(match + name, userdata) ? sd_journal_add_match(s->journal, match, 0) : 0;
}

int journal_reader_match_values(struct journal_reader *r, const char *field,
                                bool (*is_wanted)(const char *value, void *userdata), void *userdata) {
    int k = 0;

    for (size_t i = 0; i < r->n && k >= 0; i++) {
        const void *data;
        size_t size;

        k = sd_journal_query_unique(r->sources[i].journal, field);
        while (k >= 0 && (k = sd_journal_enumerate_unique(r->sources[i].journal, &data, &size)) > 0)
            k = match_value(&r->sources[i], data, size, strlen(field) + 1, is_wanted, userdata);
    }
    return k;
}

/* --- one entry after the other --- */

static int source_begin(struct source *s, usec_t since) {
    if (!s->at_begin)
        return 0;
    s->at_begin = false;
    return since > 0 ? sd_journal_seek_realtime_usec(s->journal, since) : sd_journal_seek_head(s->journal);
}

static int source_next(struct source *s, usec_t since) {
    int k = source_begin(s, since);

    k = k < 0 ? k : sd_journal_next(s->journal);
    s->has_entry = k > 0;
    sd_journal_restart_data(s->journal);
    return k > 0 ? sd_journal_get_realtime_usec(s->journal, &s->time) : k;
}

/* Finds the earliest next entry of all sources. When no source has one, all that were at their end are read
 * again. */
int journal_reader_next(struct journal_reader *r) {
    int k = r->current ? source_next(r->current, r->since) : 0;
    struct source *first = NULL;

    for (int again = 0; again < 2 && !first; again++)
        for (size_t i = 0; i < r->n && k >= 0; i++) {
            struct source *s = &r->sources[i];

            if (again > 0)
                k = source_next(s, r->since);
            if (s->has_entry && (!first || s->time < first->time))
                first = s;
        }
    r->current = first;
    return k < 0 ? k : first != NULL;
}

void journal_reader_since(struct journal_reader *r, usec_t realtime) {
    r->since = realtime;
}

void journal_reader_rewind(struct journal_reader *r) {
    for (size_t i = 0; i < r->n; i++) {
        r->sources[i].at_begin = true;
        r->sources[i].has_entry = false;
    }
    r->current = NULL;
}

/* Fills fds, and *until with the time limit of the wait. */
static int watch(struct journal_reader *r, usec_t *until) {
    for (size_t i = 0; i < r->n; i++) {
        usec_t wake = USEC_INFINITY;
        int fd = sd_journal_get_fd(r->sources[i].journal), k = fd < 0 ? fd : sd_journal_get_events(r->sources[i].journal);

        if (k < 0)
            return k;
        r->fds[i] = (struct pollfd) {.fd = fd, .events = (short) k};
        k = sd_journal_get_timeout(r->sources[i].journal, &wake);
        if (k < 0)
            return k;
        *until = wake < *until ? wake : *until;
    }
    return 0;
}

int journal_reader_wait(struct journal_reader *r, usec_t usec, int reader_fd) {
    usec_t now = clock_monotonic(), until = usec_add(now, usec);
    bool has_changed = false;
    int k = watch(r, &until);

    if (k < 0)
        return k;
    if (!r->is_watched) { /* entries from before the first wait cause no event */
        r->is_watched = true;
        return 1;
    }
    r->fds[r->n] = (struct pollfd) {.fd = reader_fd};
    k = poll(r->fds, r->n + 1, until == USEC_INFINITY ? -1 : (int) ((usec_sub(until, now) + USEC_PER_MSEC - 1) / USEC_PER_MSEC));
    if (k < 0)
        return -errno;
    if (r->fds[r->n].revents & (POLLERR | POLLHUP | POLLNVAL))
        return -EPIPE;
    for (size_t i = 0; i < r->n && k >= 0; i++) {
        k = sd_journal_process(r->sources[i].journal);
        has_changed |= k > 0; /* SD_JOURNAL_NOP is 0 */
    }
    return k < 0 ? k : has_changed;
}

/* --- the current entry --- */

int journal_reader_get(struct journal_reader *r, const char *field, char **ret) {
    size_t size, name = strlen(field) + 1; /* with its '=' */
    const void *data;
    int k = sd_journal_get_data(r->current->journal, field, &data, &size);

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

int journal_reader_field(struct journal_reader *r, const char **ret_data, size_t *ret_length, size_t *ret_size) {
    const char *equals;
    const void *data;
    size_t size;
    int k = sd_journal_enumerate_data(r->current->journal, &data, &size);

    if (k <= 0)
        return k;
    equals = memchr(data, '=', size);
    if (!equals)
        return -EBADMSG;
    *ret_data = data;
    *ret_length = (size_t) (equals - *ret_data);
    *ret_size = size;
    return k;
}

int journal_reader_time(struct journal_reader *r, usec_t *ret_realtime) {
    _cleanup_free_ char *text = NULL;
    int k = journal_reader_get(r, "_SOURCE_REALTIME_TIMESTAMP", &text);

    if (k < 0)
        return k;
    if (text && number_parse(text, INT64_MAX, ret_realtime) == 0)
        return 0;
    return sd_journal_get_realtime_usec(r->current->journal, ret_realtime);
}

int journal_reader_cursor(struct journal_reader *r, char **ret) {
    return sd_journal_get_cursor(r->current->journal, ret);
}
