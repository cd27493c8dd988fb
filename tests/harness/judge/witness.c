/* SPDX-License-Identifier: MIT */
#include "tests/harness/judge/witness.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/harness/child.h"
#include "tests/harness/test.h"

void witness_prepare(const char *folder) {
    char path[512];

    (void) mkdir(folder, 0777);
    snprintf(path, sizeof(path), "%s/locks", folder);
    (void) mkdir(path, 0777);
    /* For commands of any user. */
    (void) chmod(folder, 01777);
    (void) chmod(path, 01777);
}

void witness_done(struct witness *w) {
    free(w->runs);
    *w = (struct witness) {0};
}

static struct witness_run *add(struct witness *w) {
    if (w->n % 64 == 0) {
        struct witness_run *grown = realloc(w->runs, (w->n + 64) * sizeof(*grown));

        if (!grown)
            abort();
        w->runs = grown;
    }
    w->runs[w->n] = (struct witness_run) {0};
    return &w->runs[w->n++];
}

/* A child process (--child) ends under another pid than its start's: then the newest open run of that id. */
static struct witness_run *find_open(struct witness *w, const char *id, int pid) {
    struct witness_run *found = NULL;

    for (size_t i = w->n; i-- > 0;) {
        struct witness_run *r = &w->runs[i];

        if (strcmp(r->id, id) != 0 || r->end)
            continue;
        if (r->pid == pid)
            return r;
        if (!found)
            found = r;
    }
    return found;
}

static bool parse_pools(const char *text, struct demands *ret) {
    return strcmp(text, "-") == 0 || demands_parse(text, ret) == 0;
}

static bool read_start(struct witness *w, const char *line) {
    static char pools[DEMANDS_TEXT_SIZE], seen[DEMANDS_TEXT_SIZE];
    struct witness_run *r = add(w);
    char token[32];

    if (sscanf(line, "start %63s %d %" SCNu64 " %2240s %31s %64s %64s %2240s", r->id, &r->pid, &r->start, pools, token, r->name, r->host,
               seen) != 8)
        return false;
    r->token = strtoull(token, NULL, 10);
    return parse_pools(pools, &r->pools) && parse_pools(seen, &r->seen);
}

static bool read_end(struct witness *w, const char *line) {
    struct witness_run *r;
    char verb[16], id[64];
    uint64_t at;
    int pid, signal;

    if (sscanf(line, "%15s %63s %d %" SCNu64 " %d", verb, id, &pid, &at, &signal) != 5 || !(r = find_open(w, id, pid)))
        return false;
    if (strcmp(verb, "ignored") == 0) {
        r->n_ignored++;
        r->ignored = at;
    } else {
        r->end = at;
        r->signal = signal;
    }
    return true;
}

static int by_start(const void *a, const void *b) {
    const struct witness_run *x = a, *y = b;

    return x->start < y->start ? -1 : x->start > y->start;
}

void witness_read(struct witness *w, const char *folder) {
    _cleanup_fclose_ FILE *file = NULL;
    _cleanup_free_ char *line = NULL;
    char path[512];
    size_t size = 0;

    witness_done(w);
    snprintf(path, sizeof(path), "%s/records", folder);
    file = fopen(path, "re");
    while (file && getline(&line, &size, file) >= 0)
        if (!(strncmp(line, "start ", 6) == 0 ? read_start(w, line) : read_end(w, line))) {
            printf("not a record: %s", line);
            CU_FAIL("a witness wrote nonsense");
        }
    if (w->n)
        qsort(w->runs, w->n, sizeof(*w->runs), by_start);
}

/* Use is highest at some start, so each is checked. */
unsigned witness_max(const struct witness *w, const char *pool) {
    unsigned most = 0;

    for (size_t i = 0; i < w->n; i++) {
        unsigned used = 0, seen = demands_get(&w->runs[i].seen, pool);
        usec_t at = w->runs[i].start;

        for (size_t k = 0; k < w->n; k++)
            if (w->runs[k].start <= at && w->runs[k].end > at)
                used += demands_get(&w->runs[k].pools, pool);
        most = used > most ? used : most;
        most = seen > most ? seen : most;
    }
    return most;
}

size_t witness_count(const struct witness *w, const char *id) {
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++)
        n += strcmp(w->runs[i].id, id) == 0;
    return n;
}

const struct witness_run *witness_find(const struct witness *w, const char *id) {
    const struct witness_run *found = NULL;

    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->runs[i].id, id) == 0)
            found = &w->runs[i];
    return found;
}

static bool is_locked(int folder, const char *name) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    _cleanup_close_ int fd = openat(folder, name, O_RDWR | O_CLOEXEC);

    return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

static size_t count_locked(const char *folder, int pid) {
    char path[512], suffix[32] = "";
    size_t n = 0;
    DIR *list;

    snprintf(path, sizeof(path), "%s/locks", folder);
    if (pid)
        snprintf(suffix, sizeof(suffix), "@%d", pid);
    list = opendir(path);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        const char *at = strrchr(entry->d_name, '@');

        if (entry->d_name[0] != '.' && at && (!pid || strcmp(at, suffix) == 0))
            n += is_locked(dirfd(list), entry->d_name);
    }
    if (list)
        (void) closedir(list);
    return n;
}

static struct witness_lock *find_lock(struct witness_watch *watch, int pid) {
    for (size_t i = watch->n; i-- > 0;)
        if (watch->locks[i].pid == pid && !watch->locks[i].gone)
            return &watch->locks[i];
    if (watch->n % 64 == 0) {
        struct witness_lock *grown = realloc(watch->locks, (watch->n + 64) * sizeof(*grown));

        if (!grown)
            abort();
        watch->locks = grown;
    }
    watch->locks[watch->n] = (struct witness_lock) {.pid = pid, .first = clock_boottime()};
    return &watch->locks[watch->n++];
}

void witness_watch_turn(struct witness_watch *watch, const char *folder) {
    char path[512];
    DIR *list;

    snprintf(path, sizeof(path), "%s/locks", folder);
    list = opendir(path);
    for (struct dirent *entry; list && (entry = readdir(list));) {
        const char *at = strrchr(entry->d_name, '@');
        usec_t before = clock_boottime(); /* a lock seen after this time was held then, however long this process stalls */
        struct witness_lock *lock;

        if (entry->d_name[0] == '.' || !at)
            continue;
        lock = find_lock(watch, (int) strtol(at + 1, NULL, 10));
        if (is_locked(dirfd(list), entry->d_name)) {
            lock->last = before;
            continue;
        }
        /* The file is locked before it gets this name, so a free lock means that the process is gone. */
        lock->gone = clock_boottime();
        (void) unlinkat(dirfd(list), entry->d_name, 0);
    }
    if (list)
        (void) closedir(list);
}

/* A pid may be used again, so takes the lock that was first seen at or after the start. */
static const struct witness_lock *lock_of(const struct witness_watch *watch, const struct witness_run *r) {
    for (size_t i = 0; i < watch->n; i++)
        if (watch->locks[i].pid == r->pid && (watch->locks[i].gone == 0 || watch->locks[i].gone >= r->start))
            return &watch->locks[i];
    return NULL;
}

void witness_watch_apply(const struct witness_watch *watch, struct witness *w) {
    for (size_t i = 0; i < w->n; i++) {
        struct witness_run *r = &w->runs[i];
        const struct witness_lock *lock = lock_of(watch, r);

        r->alive = r->end ? r->end : lock && lock->last > r->start ? lock->last : r->start;
        r->gone = r->end ? r->end : lock ? lock->gone : r->start;
    }
}

void witness_watch_done(struct witness_watch *watch) {
    free(watch->locks);
    *watch = (struct witness_watch) {0};
}

bool witness_is_alive(const char *folder, const struct witness_run *run) {
    return count_locked(folder, run->pid) > 0;
}

size_t witness_count_alive(const char *folder) {
    return count_locked(folder, 0);
}

/* Locked, but not yet written: the command has only just begun. */
static bool has_unwritten(const char *folder, size_t n) {
    struct witness w = {0};

    witness_read(&w, folder);
    for (size_t i = 0; i < w.n && n > 0; i++)
        n -= witness_is_alive(folder, &w.runs[i]);
    witness_done(&w);
    return n > 0;
}

void witness_await_alive(const char *folder, size_t n) {
    usec_t until = clock_boottime() + 20 * USEC_PER_SEC;
    size_t is;

    while (((is = witness_count_alive(folder)) != n || has_unwritten(folder, n)) && clock_boottime() < until)
        child_turn(clock_boottime() + 2 * USEC_PER_MSEC);
    if (is != n)
        printf("%zu commands are alive, not %zu\n", is, n);
    CU_ASSERT_FATAL(is == n);
}

void witness_await_start(const char *folder, const char *id) {
    usec_t until = clock_boottime() + 20 * USEC_PER_SEC;
    struct witness w = {0};
    bool started;

    for (;;) {
        witness_read(&w, folder);
        started = witness_find(&w, id) != NULL;
        witness_done(&w);
        if (started || clock_boottime() >= until)
            break;
        child_turn(clock_boottime() + 2 * USEC_PER_MSEC);
    }
    CU_ASSERT_FATAL(started);
}
