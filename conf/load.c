/* SPDX-License-Identifier: MIT */

/* Reads the files of a config: PATH, then PATH.d/ *.conf. Their commands run with the rights of the caller or
 * of root, so a file that another user could have written or replaced is refused. Each file is opened first,
 * and then checked by its descriptor. */

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "conf/settings.h"

#define FILE_SIZE_MAX (1024 * 1024)
#define SUFFIX ".conf"

struct loader {
    struct settings_source *sources; /* file and text are owned */
    size_t n;
    struct settings_errors *errors;
};

static int add_error(struct loader *l, const char *path, const char *format, ...) _printf_(3, 4);
static int add_error(struct loader *l, const char *path, const char *format, ...) {
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    (void) vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return settings_errors_add(l->errors, "%s: %s", path, text);
}

/* ---- trust ---- */

/* Notes that neither root nor this user owns `what`. before: how the message begins. */
static int add_wrong_owner(struct loader *l, const char *path, const char *before, uid_t owner, const char *what) {
    char or_this[32] = "";

    if (geteuid() != 0)
        snprintf(or_this, sizeof(or_this), " or uid %u", (unsigned) geteuid());
    return add_error(l, path, "%sis owned by uid %u, and must be owned by root%s; run: chown %u %s", before, (unsigned) owner, or_this,
                     (unsigned) geteuid(), what);
}

/* 0, SETTINGS_E_INVALID (noted) or -ENOMEM. is: the type that it must have, S_IFREG or S_IFDIR. */
static int check_trust(struct loader *l, const char *path, const struct stat *st, mode_t is) {
    int r = 0;

    if ((st->st_mode & S_IFMT) != is)
        r = add_error(l, path, is == S_IFREG ? "is not a regular file; put a file there" : "is not a directory; put a directory there");
    else if (st->st_uid != 0 && st->st_uid != geteuid())
        r = add_wrong_owner(l, path, "", st->st_uid, path);
    else if (st->st_mode & (S_IWGRP | S_IWOTH))
        r = add_error(l, path, "is writable by group or others; run: chmod go-w %s", path);
    else
        return 0;
    return r < 0 ? r : SETTINGS_E_INVALID;
}

/* In a sticky directory only the owner of a file can replace it, and the owner is checked. */
static bool is_open_to_others(const struct stat *st) {
    return (st->st_mode & (S_IWGRP | S_IWOTH)) && !(st->st_mode & S_ISVTX);
}

/* Checks one directory above `path`. Returns as check_trust(). */
static int check_parent(struct loader *l, const char *path, const char *directory) {
    _cleanup_close_ int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char below[300];
    struct stat st;
    int r = 0;

    snprintf(below, sizeof(below), "lies below %s, which ", directory);

    if (fd < 0 || fstat(fd, &st) < 0)
        r = add_error(l, path, "%scannot be looked at: %s; put it elsewhere", below, strerror(errno));
    else if (st.st_uid != 0 && st.st_uid != geteuid())
        r = add_wrong_owner(l, path, below, st.st_uid, directory);
    else if (is_open_to_others(&st))
        r = add_error(l, path, "%sis writable by group or others; run: chmod go-w %s", below, directory);
    else
        return 0;
    return r < 0 ? r : SETTINGS_E_INVALID;
}

/* Checks all directories above an absolute path. */
static int check_parents(struct loader *l, const char *path, const char *absolute) {
    _cleanup_free_ char *directory = strdup(absolute);
    int r = directory ? check_parent(l, path, "/") : -ENOMEM;

    for (size_t i = 1; r == 0 && directory[i] != '\0'; i++)
        if (directory[i] == '/') {
            directory[i] = '\0';
            r = check_parent(l, path, directory);
            directory[i] = '/';
        }
    return r;
}

/* Checks the directories of the path as written and of the path without links: a user who can change any of
 * them chooses the file that is read. Returns as check_trust(). */
static int check_way(struct loader *l, const char *path) {
    _cleanup_free_ char *folder = path[0] == '/' ? NULL : realpath(".", NULL), *written = NULL, *real = realpath(path, NULL);
    int r;

    if (asprintf(&written, "%s%s%s", folder ? folder : "", path[0] == '/' ? "" : "/", path) < 0) {
        written = NULL;
        return -ENOMEM;
    }
    if (!real || (path[0] != '/' && !folder)) {
        r = errno == ENOMEM ? -ENOMEM : add_error(l, path, "cannot be found: %s; create it, or name another one with -c", strerror(errno));
        return r < 0 ? r : SETTINGS_E_INVALID;
    }
    r = check_parents(l, path, written);
    return r == 0 ? check_parents(l, path, real) : r;
}

/* ---- one file ---- */

static int add_source(struct loader *l, const char *path, char *text, size_t size) {
    struct settings_source *more = realloc(l->sources, (l->n + 1) * sizeof(*more));
    char *file = strdup(path);

    if (more)
        l->sources = more;
    if (!more || !file) {
        free(file);
        free(text);
        return -ENOMEM;
    }
    l->sources[l->n++] = (struct settings_source) {.file = file, .text = text, .size = size};
    return 0;
}

/* Reads one file. name: for openat(2); path: for messages. 0 (also if the file was refused) or -ENOMEM. */
static int load_file(struct loader *l, int directory, const char *name, const char *path) {
    /* O_NONBLOCK: open() does not wait for the writer of a FIFO, which is refused below. */
    _cleanup_close_ int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    char *text = NULL;
    size_t size = 0;
    int r;

    if (fd < 0 || fstat(fd, &st) < 0)
        return add_error(l, path, "cannot be opened: %s; %s", strerror(errno),
                         errno == EACCES           ? "let this user read it, or run this as root"
                         : directory == AT_FDCWD ? "create it, or name another one with -c"
                                                 : "mend it, or remove it");
    r = check_trust(l, path, &st, S_IFREG);
    if (r == 0 && directory == AT_FDCWD) /* that of drop-ins is checked with their directory */
        r = check_way(l, path);
    if (r != 0)
        return r < 0 ? r : 0;
    r = file_read_fd(fd, FILE_SIZE_MAX, &text, &size);
    if (r == -ENOMEM)
        return r;
    if (r == -EFBIG)
        return add_error(l, path, "is larger than 1 MiB; split it");
    if (r < 0)
        return add_error(l, path, "cannot be read: %s; repair it, or name another one with -c", strerror(-r));
    return add_source(l, path, text, size);
}

/* ---- drop-ins ---- */

static int is_drop_in(const struct dirent *entry) {
    size_t n = strlen(entry->d_name);

    return entry->d_name[0] != '.' && n > strlen(SUFFIX) && strcmp(entry->d_name + n - strlen(SUFFIX), SUFFIX) == 0;
}

/* Compares bytes, whatever the locale. */
static int compare_names(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int load_entry(struct loader *l, int fd, const char *directory, const char *name) {
    _cleanup_free_ char *path = NULL;

    if (asprintf(&path, "%s/%s", directory, name) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    return load_file(l, fd, name, path);
}

static int load_directory(struct loader *l, const char *path) {
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct dirent **entries;
    struct stat st;
    int n, r;

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return add_error(l, path, "cannot be opened: %s; make it readable, or remove it", strerror(errno));
    r = check_trust(l, path, &st, S_IFDIR);
    if (r == 0)
        r = check_way(l, path);
    if (r != 0)
        return r < 0 ? r : 0;
    n = scandirat(fd, ".", &entries, is_drop_in, compare_names);
    if (n < 0)
        return errno == ENOMEM ? -ENOMEM : add_error(l, path, "cannot be read: %s; repair or remove it", strerror(errno));
    for (int i = 0; i < n; i++) {
        if (r == 0)
            r = load_entry(l, fd, path, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return r;
}

/* ---- all of it ---- */

static int load_all(struct loader *l, const char *path) {
    _cleanup_free_ char *directory = NULL;
    int r = load_file(l, AT_FDCWD, path, path);

    if (r < 0)
        return r;
    if (asprintf(&directory, "%s.d", path) < 0) {
        directory = NULL;
        return -ENOMEM;
    }
    return load_directory(l, directory);
}

static void loader_done(struct loader *l) {
    for (size_t i = 0; i < l->n; i++) {
        free((char *) l->sources[i].file);
        free((char *) l->sources[i].text);
    }
    free(l->sources);
}

int settings_load(const char *path, struct settings **ret, struct settings_errors *errors) {
    _cleanup_(settings_freep) struct settings *s = NULL;
    struct loader l = {.errors = errors};
    size_t n_errors = errors->n;
    int r = load_all(&l, path);

    /* With a file missing, errors in the others would mislead. */
    if (r == 0 && errors->n > n_errors)
        r = SETTINGS_E_INVALID;
    if (r == 0)
        r = settings_parse(l.sources, l.n, NULL, &s, errors);
    if (r == 0)
        *ret = steal_pointer(&s);
    if (r == -ENOMEM)
        errors->out_of_memory = true;
    loader_done(&l);
    return r;
}
