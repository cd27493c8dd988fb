/* SPDX-License-Identifier: MIT */
/* Walks over the processes below one. /proc gives no consistent picture, so a walk is repeated until it shows nothing new. */

#include "base/process-tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>

#include "base/cleanup.h"
#include "base/number.h"

/* A tree that changes faster than it can be read: the caller comes again. */
#define PASSES_MAX 64
/* Where /proc hides other users' processes (hidepid=), a picture is never complete. */
#define PASSES_INCOMPLETE_MAX 3

struct process {
    pid_t pid, parent;
    uint64_t start_ticks;
    bool is_living; /* some thread of it runs */
    bool has_execed;
    bool in_tree;
};

struct processes { /* sorted by pid */
    size_t n, room;
    bool is_incomplete; /* one ended between being listed and being read; it may have left a child that was not listed yet */
    struct process *items;
};

static void processes_done(struct processes *p) {
    free(p->items);
    *p = (struct processes) {0};
}

#define FORKED_NOT_EXECED 0x40 /* PF_FORKNOEXEC of Linux' include/linux/sched.h */

/* /proc/PID/stat: "pid (name) state ppid ... flags (9) ... num_threads (20) ... starttime (22) ..."; a name may hold
 * anything (proc(5)). */
static int process_read(pid_t pid, struct process *ret) {
    _cleanup_close_ int fd = -1;
    char path[32], text[1024], *rest, state;
    unsigned long long start;
    unsigned flags;
    long threads;
    ssize_t n;
    int parent;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? -ESRCH : -errno;
    n = read(fd, text, sizeof(text) - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    rest = strrchr(text, ')');
    if (!rest || sscanf(rest + 1, " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu", &state,
                        &parent, &flags, &threads, &start) != 5)
        return -ESRCH;
    /* A first thread that has ended shows as a zombie while others go on. */
    *ret = (struct process) {.pid = pid, .parent = parent, .start_ticks = start,
                             .is_living = (state != 'Z' && state != 'X') || threads > 1,
                             .has_execed = !(flags & FORKED_NOT_EXECED)};
    return 0;
}

int process_start_time(pid_t pid, uint64_t *ret_ticks) {
    struct process process;
    int r = process_read(pid, &process);

    if (r == 0)
        *ret_ticks = process.start_ticks;
    return r;
}

int process_has_execed(pid_t pid) {
    struct process process;
    int r = process_read(pid, &process);

    return r < 0 ? r : process.has_execed;
}

static int processes_add(struct processes *p, const struct process *process) {
    if (p->n == p->room) {
        size_t room = p->room ? 2 * p->room : 256;
        struct process *more = reallocarray(p->items, room, sizeof(*more));

        if (!more)
            return -ENOMEM;
        p->items = more;
        p->room = room;
    }
    p->items[p->n++] = *process;
    return 0;
}

static int process_compare(const void *a, const void *b) {
    pid_t x = ((const struct process *) a)->pid, y = ((const struct process *) b)->pid;

    return (x > y) - (x < y);
}

static struct process *processes_find(const struct processes *p, pid_t pid) {
    struct process key = {.pid = pid};

    return p->n > 0 ? bsearch(&key, p->items, p->n, sizeof(key), process_compare) : NULL;
}

bool process_error_is_ours(int error) {
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

/* All processes of this machine, as far as this process sees them. */
static int processes_load(struct processes *ret) {
    DIR *directory = opendir("/proc");
    struct dirent *entry;
    int r = 0;

    if (!directory)
        return -errno;
    while (r == 0 && (errno = 0, entry = readdir(directory))) {
        struct process process;
        uint64_t pid;

        if (number_parse(entry->d_name, INT32_MAX, &pid) < 0)
            continue;
        r = process_read((pid_t) pid, &process);
        if (r == 0) {
            r = processes_add(ret, &process);
        } else if (!process_error_is_ours(r)) {
            ret->is_incomplete = true;
            r = 0;
        }
    }
    if (r == 0 && errno != 0)
        r = -errno;
    (void) closedir(directory);
    if (ret->n > 0)
        qsort(ret->items, ret->n, sizeof(*ret->items), process_compare);
    return r;
}

static bool is_excepted(const struct process *p, pid_t root, const pid_t *except, size_t n_except) {
    for (size_t i = 0; p->parent == root && i < n_except; i++)
        if (except[i] == p->pid)
            return true;
    return false;
}

/* Marks what is below root. False if some process's parent was not seen, so that it may belong there all the same: its
 * parent ended while the list was read. */
static bool processes_mark(struct processes *p, pid_t root, const pid_t *except, size_t n_except) {
    bool is_complete = !p->is_incomplete, is_new = true;

    while (is_new) {
        is_new = false;
        is_complete = !p->is_incomplete;
        for (size_t i = 0; i < p->n; i++) {
            struct process *process = &p->items[i], *parent;

            if (process->in_tree || process->pid == root)
                continue;
            parent = processes_find(p, process->parent);
            if (!parent && process->parent != 0 && process->parent != root)
                is_complete = false;
            if (process->parent == root ? !is_excepted(process, root, except, n_except) : parent && parent->in_tree)
                process->in_tree = is_new = true;
        }
    }
    return is_complete;
}

int process_signal(pid_t pid, uint64_t start_ticks, int signal) {
    _cleanup_close_ int fd = -1;
    struct process now;
    int r;

    fd = pidfd_open(pid, 0);
    if (fd < 0)
        return -errno;
    /* From here on the descriptor is one process for good; is it the one that was meant? */
    r = process_read(pid, &now);
    if (r < 0)
        return r;
    if (now.start_ticks != start_ticks)
        return -ESRCH;
    return pidfd_send_signal(fd, signal, NULL, 0) < 0 ? -errno : 0;
}

static bool is_signalled(const struct processes *signalled, const struct process *process) {
    for (size_t i = 0; i < signalled->n; i++)
        if (signalled->items[i].pid == process->pid && signalled->items[i].start_ticks == process->start_ticks)
            return true;
    return false;
}

enum { PASS_DONE, PASS_INCOMPLETE, PASS_NEW };

/* One walk. PASS_DONE: all had been signalled; PASS_INCOMPLETE: all that was seen had been; PASS_NEW: there were others. */
static int process_tree_pass(pid_t root, int signal, const pid_t *except, size_t n_except, struct processes *signalled,
                             int *ret_living) {
    _cleanup_(processes_done) struct processes all = {0};
    int r, living = 0;
    int answer;

    r = processes_load(&all);
    if (r < 0)
        return r;
    answer = processes_mark(&all, root, except, n_except) ? PASS_DONE : PASS_INCOMPLETE;
    for (size_t i = 0; i < all.n; i++) {
        struct process *process = &all.items[i];

        if (!process->in_tree)
            continue;
        living += process->is_living;
        if (is_signalled(signalled, process))
            continue;
        /* One that has ended counts as new, too: it may have forked after the list was made. */
        r = process->is_living ? process_signal(process->pid, process->start_ticks, signal) : 0;
        if (process_error_is_ours(r))
            return r;
        r = processes_add(signalled, process);
        if (r < 0)
            return r;
        answer = PASS_NEW;
    }
    *ret_living = living;
    return answer;
}

int process_tree_signal_except(pid_t root, int signal, const pid_t *except, size_t n_except) {
    _cleanup_(processes_done) struct processes signalled = {0};
    int r = PASS_NEW, living = 0, incomplete = 0;

    for (int i = 0; r > PASS_DONE && incomplete < PASSES_INCOMPLETE_MAX && i < PASSES_MAX; i++) {
        r = process_tree_pass(root, signal, except, n_except, &signalled, &living);
        incomplete = r == PASS_INCOMPLETE ? incomplete + 1 : 0;
    }
    return r < 0 ? r : living;
}

int process_tree_signal(pid_t root, int signal) {
    return process_tree_signal_except(root, signal, NULL, 0);
}

int process_tree_count(pid_t root) {
    _cleanup_(processes_done) struct processes all = {0};
    int r, living = 0;

    r = processes_load(&all);
    if (r < 0)
        return r;
    (void) processes_mark(&all, root, NULL, 0);
    for (size_t i = 0; i < all.n; i++)
        living += all.items[i].in_tree && all.items[i].is_living;
    return living;
}

int process_tree_contains(pid_t root, pid_t pid) {
    while (pid != root) {
        struct process process;
        int r;

        if (pid <= 0)
            return 0;
        r = process_read(pid, &process);
        if (r < 0)
            return r == -ESRCH ? 0 : r;
        pid = process.parent;
    }
    return 1;
}
