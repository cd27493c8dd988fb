/* SPDX-License-Identifier: MIT */
/* Walks over the processes below one. /proc is not consistent, so a walk is repeated until it finds nothing new.
 *
 * A walk goes from a process to its children (/proc/PID/task/TID/children), because thousands of guards may have to stop
 * their trees at the same moment. Its cost depends on the tree, not on the machine. On a kernel without these files
 * (CONFIG_PROC_CHILDREN) it reads all processes. */

#include "base/process/process-tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"

/* A tree that changes faster than this is left to the next call. */
#define PASSES_MAX 64
/* Under hidepid= a picture of /proc is never complete. */
#define PASSES_INCOMPLETE_MAX 3
#define CHILDREN_MAX (1024 * 1024) /* bytes of pids of one thread's children */

struct process {
    pid_t pid, parent;
    uint64_t start_ticks;
    bool is_living; /* some thread of it runs */
    bool has_execed;
    bool in_tree;
};

struct processes { /* sorted by pid */
    size_t n, room;
    bool is_incomplete; /* a process ended before it was read; its children may be missing from the list */
    struct process *items;
};

static void processes_done(struct processes *p) {
    free(p->items);
    *p = (struct processes) {0};
}

#define FORKED_NOT_EXECED 0x40 /* PF_FORKNOEXEC of Linux' include/linux/sched.h */

/* Reads /proc/PID/stat: "pid (name) state ppid ... flags (9) ... num_threads (20) ... starttime (22) ...". A name may have
 * any bytes (proc(5)). */
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

static int processes_on_entry(const char *name, void *userdata) {
    struct processes *processes = userdata;
    struct process process;
    uint64_t pid;
    int r;

    if (number_parse(name, INT32_MAX, &pid) < 0)
        return 0;
    r = process_read((pid_t) pid, &process);
    if (r == 0)
        return processes_add(processes, &process);
    if (process_error_is_ours(r))
        return r;
    processes->is_incomplete = true;
    return 0;
}

/* Reads all processes of this machine that this process can see. */
static int processes_load(struct processes *ret) {
    int r = directory_each("/proc", processes_on_entry, ret);

    if (ret->n > 0)
        qsort(ret->items, ret->n, sizeof(*ret->items), process_compare);
    return r;
}

struct tree { /* all processes below root, without these children and their descendants */
    pid_t root;
    const pid_t *except;
    size_t n_except;
};

static bool tree_excepts(const struct tree *tree, pid_t parent, pid_t pid) {
    for (size_t i = 0; parent == tree->root && i < tree->n_except; i++)
        if (tree->except[i] == pid)
            return true;
    return false;
}

/* Marks the processes of the tree. False: some parent ended while the list was read, and its children may
 * belong to the tree. */
static bool processes_mark(struct processes *p, const struct tree *tree) {
    pid_t root = tree->root;
    bool is_complete, is_new;

    do {
        is_new = false;
        is_complete = !p->is_incomplete;
        for (size_t i = 0; i < p->n; i++) {
            struct process *process = &p->items[i], *parent;

            if (process->in_tree || process->pid == root)
                continue;
            parent = processes_find(p, process->parent);
            if (!parent && process->parent != 0 && process->parent != root)
                is_complete = false;
            if (process->parent == root ? !tree_excepts(tree, root, process->pid) : parent && parent->in_tree)
                process->in_tree = is_new = true;
        }
    } while (is_new);
    return is_complete;
}

int process_signal(pid_t pid, uint64_t start_ticks, int signal) {
    _cleanup_close_ int fd = pidfd_open(pid, 0);
    struct process now;
    int r;

    if (fd < 0)
        return -errno;
    /* The descriptor refers to one process from here on; checks that it is the intended one. */
    r = process_read(pid, &now);
    if (r < 0)
        return r;
    if (now.start_ticks != start_ticks)
        return -ESRCH;
    return pidfd_send_signal(fd, signal, NULL, 0) < 0 ? -errno : 0;
}

/* --- from a process to its children --- */

/* Adds the children of one thread: "PID PID " */
static int add_children_of_thread(struct processes *p, const struct tree *tree, pid_t parent, int tasks, const char *thread) {
    _cleanup_free_ char *text = NULL;
    _cleanup_close_ int fd = -1;
    char path[32], *rest, *word;
    size_t size;
    int r;

    snprintf(path, sizeof(path), "%.16s/children", thread);
    fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
    r = fd < 0 ? -errno : file_read_fd(fd, CHILDREN_MAX, &text, &size);
    for (rest = text; r == 0 && (word = strsep(&rest, " "));) {
        struct process child;
        uint64_t pid;

        if (number_parse(word, INT32_MAX, &pid) < 0 || tree_excepts(tree, parent, (pid_t) pid))
            continue;
        r = process_read((pid_t) pid, &child);
        child.in_tree = true;
        if (r == 0)
            r = processes_add(p, &child);
    }
    return r;
}

/* Adds the children of all threads. A thread that cannot be read has ended, and its children may have been
 * reparented to processes whose lists were read before. */
static int add_children(struct processes *p, const struct tree *tree, pid_t parent) {
    char path[32];
    DIR *tasks;
    struct dirent *entry;
    int r = 0;

    snprintf(path, sizeof(path), "/proc/%d/task", (int) parent);
    tasks = opendir(path);
    if (!tasks)
        r = -errno;
    while (tasks && (errno = 0, entry = readdir(tasks))) {
        int k = entry->d_name[0] == '.' ? 0 : add_children_of_thread(p, tree, parent, dirfd(tasks), entry->d_name);

        r = k < 0 && !process_error_is_ours(r) ? k : r;
    }
    if (tasks)
        (void) closedir(tasks);
    if (r < 0 && !process_error_is_ours(r))
        p->is_incomplete = true;
    return process_error_is_ours(r) ? r : 0;
}

/* Drops a process that was found below two parents, as an orphan may be. */
static void processes_make_unique(struct processes *p) {
    size_t n = 0;

    if (p->n > 0)
        qsort(p->items, p->n, sizeof(*p->items), process_compare);
    for (size_t i = 0; i < p->n; i++)
        if (n == 0 || p->items[n - 1].pid != p->items[i].pid)
            p->items[n++] = p->items[i];
    p->n = n;
}

static int processes_load_below(struct processes *ret, const struct tree *tree) {
    int r = add_children(ret, tree, tree->root);

    for (size_t i = 0; r == 0 && i < ret->n; i++) {
        struct process now;
        int k;

        r = add_children(ret, tree, ret->items[i].pid);
        if (r < 0)
            break;
        /* A process that lives after its list was read had all its children in it. */
        k = process_read(ret->items[i].pid, &now);
        if (process_error_is_ours(k))
            r = k;
        else if (k < 0 || now.start_ticks != ret->items[i].start_ticks)
            ret->is_incomplete = true;
        else
            ret->items[i].is_living = now.is_living;
    }
    processes_make_unique(ret);
    return r;
}

/* Loads the tree; its processes have in_tree. */
static int processes_load_tree(struct processes *ret, const struct tree *tree) {
    int r;

    if (access("/proc/thread-self/children", F_OK) == 0)
        return processes_load_below(ret, tree);
    r = processes_load(ret);
    if (r == 0 && !processes_mark(ret, tree))
        ret->is_incomplete = true;
    return r;
}

/* --- signals --- */

/* Counts a process that has ended since it was signalled as new: its children have other parents now. */
static bool is_signalled(const struct processes *signalled, const struct process *process) {
    for (size_t i = 0; i < signalled->n; i++)
        if (signalled->items[i].pid == process->pid && signalled->items[i].start_ticks == process->start_ticks &&
            signalled->items[i].is_living == process->is_living)
            return true;
    return false;
}

enum { PASS_DONE, PASS_INCOMPLETE, PASS_NEW };

/* One walk. PASS_DONE: no process was new; PASS_INCOMPLETE: none of those found was new; PASS_NEW: there
 * were new ones. */
static int process_tree_pass(const struct tree *tree, int signal, struct processes *signalled, int *ret_living) {
    _cleanup_(processes_done) struct processes all = {0};
    int answer, living = 0, r = processes_load_tree(&all, tree);

    if (r < 0)
        return r;
    answer = all.is_incomplete ? PASS_INCOMPLETE : PASS_DONE;
    for (size_t i = 0; i < all.n; i++) {
        struct process *process = &all.items[i];

        if (!process->in_tree)
            continue;
        living += process->is_living;
        if (is_signalled(signalled, process))
            continue;
        /* A process that has ended counts as new: it may have forked after the list was read. */
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
    const struct tree tree = {root, except, n_except};
    int r = PASS_NEW, living = 0, incomplete = 0;

    for (int i = 0; r > PASS_DONE && incomplete < PASSES_INCOMPLETE_MAX && i < PASSES_MAX; i++) {
        r = process_tree_pass(&tree, signal, &signalled, &living);
        incomplete = r == PASS_INCOMPLETE ? incomplete + 1 : 0;
    }
    return r < 0 ? r : living;
}

int process_tree_signal(pid_t root, int signal) {
    return process_tree_signal_except(root, signal, NULL, 0);
}

int process_tree_list(pid_t root, pid_t *ret, size_t n) {
    _cleanup_(processes_done) struct processes all = {0};
    int r, living = 0;

    r = processes_load_tree(&all, &(struct tree) {.root = root});
    if (r < 0)
        return r;
    for (size_t i = 0; i < all.n; i++)
        if (all.items[i].in_tree && all.items[i].is_living) {
            if ((size_t) living < n)
                ret[living] = all.items[i].pid;
            living++;
        }
    return living;
}

pid_t process_tree_find(pid_t root) {
    _cleanup_(processes_done) struct processes all = {0};
    int r = processes_load_tree(&all, &(struct tree) {.root = root});
    pid_t found = 0;

    for (size_t i = 0; r == 0 && i < all.n; i++)
        if (all.items[i].in_tree && (found == 0 || all.items[i].is_living)) {
            found = all.items[i].pid;
            if (all.items[i].is_living)
                break;
        }
    return r < 0 ? r : found;
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
