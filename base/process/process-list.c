/* SPDX-License-Identifier: MIT */
/* A walk goes from a process to its children (/proc/PID/task/TID/children), because thousands of guards may
 * have to stop their trees at the same moment. Its cost depends on the tree, not on the machine. On a kernel
 * without these files (CONFIG_PROC_CHILDREN) it reads all processes. */

#include "base/process/process-list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"

#define CHILDREN_MAX (1024 * 1024) /* bytes of pids of one thread's children */

void process_list_done(struct process_list *p) {
    free(p->items);
    *p = (struct process_list) {0};
}

#define FORKED_NOT_EXECED 0x40 /* PF_FORKNOEXEC of Linux' include/linux/sched.h */

/* Returns whether /proc is that of this process's PID namespace. In another one its pids are other processes. */
static bool is_own_proc(void) {
    static pid_t known;
    char text[16];
    uint64_t pid;
    ssize_t n;

    if (known == getpid())
        return true;
    n = readlink("/proc/self", text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    if (n >= 0 && (number_parse(text, INT32_MAX, &pid) < 0 || (pid_t) pid != getpid()))
        return false;
    known = getpid();
    return true;
}

/* Reads /proc/PID/stat: "pid (name) state ppid ... flags (9) ... num_threads (20) ... starttime (22) ...". A
 * name may have any bytes (proc(5)). */
int process_read(pid_t pid, struct process *ret) {
    _cleanup_close_ int fd = -1;
    char path[32], text[1024], *rest, state;
    unsigned long long start;
    unsigned flags;
    long threads;
    ssize_t n;
    int parent;

    if (!is_own_proc())
        return -ENOTSUP;
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

int process_list_add(struct process_list *p, const struct process *process) {
    if (!array_grow(p->items, p->n))
        return -ENOMEM;
    p->items[p->n++] = *process;
    return 0;
}

static int process_compare(const void *a, const void *b) {
    pid_t x = ((const struct process *) a)->pid, y = ((const struct process *) b)->pid;

    return (x > y) - (x < y);
}

static struct process *find(const struct process_list *p, pid_t pid) {
    struct process key = {.pid = pid};

    return p->n > 0 ? bsearch(&key, p->items, p->n, sizeof(key), process_compare) : NULL;
}

bool process_error_is_ours(int error) {
    return error == -EMFILE || error == -ENFILE || error == -ENOMEM;
}

static int on_entry(const char *name, void *userdata) {
    struct process_list *processes = userdata;
    struct process process;
    uint64_t pid;
    int r;

    if (number_parse(name, INT32_MAX, &pid) < 0)
        return 0;
    r = process_read((pid_t) pid, &process);
    if (r == 0)
        return process_list_add(processes, &process);
    if (process_error_is_ours(r))
        return r;
    processes->is_incomplete = true;
    return 0;
}

/* Reads all processes of this machine that this process can see. */
static int load_all(struct process_list *ret) {
    int r = directory_each("/proc", on_entry, ret);

    if (ret->n > 0)
        qsort(ret->items, ret->n, sizeof(*ret->items), process_compare);
    return r;
}

bool process_tree_excepts(const struct tree *tree, pid_t parent, pid_t pid) {
    for (size_t i = 0; parent == tree->root && i < tree->n_except; i++)
        if (tree->except[i] == pid)
            return true;
    return false;
}

/* Marks the processes of the tree. False: some parent ended while the list was read, and its children may
 * belong to the tree. */
static bool mark_tree(struct process_list *p, const struct tree *tree) {
    pid_t root = tree->root;
    bool is_complete, is_new;

    do {
        is_new = false;
        is_complete = !p->is_incomplete;
        for (size_t i = 0; i < p->n; i++) {
            struct process *process = &p->items[i], *parent;

            if (process->in_tree || process->pid == root)
                continue;
            parent = find(p, process->parent);
            if (!parent && process->parent != 0 && process->parent != root)
                is_complete = false;
            if (process->parent == root ? !process_tree_excepts(tree, root, process->pid) : parent && parent->in_tree)
                process->in_tree = is_new = true;
        }
    } while (is_new);
    return is_complete;
}

/* --- from a process to its children --- */

/* Adds the children of one thread: "PID PID " */
static int add_children_of_thread(struct process_list *p, const struct tree *tree, pid_t parent, int tasks, const char *thread) {
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

        if (number_parse(word, INT32_MAX, &pid) < 0 || process_tree_excepts(tree, parent, (pid_t) pid))
            continue;
        r = process_read((pid_t) pid, &child);
        child.in_tree = true;
        if (r == 0)
            r = process_list_add(p, &child);
    }
    return r;
}

/* Adds the children of all threads. A thread that cannot be read has ended, and its children may have been
 * reparented to processes whose lists were read before. */
static int add_children(struct process_list *p, const struct tree *tree, pid_t parent) {
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
static void make_unique(struct process_list *p) {
    size_t n = 0;

    if (p->n > 0)
        qsort(p->items, p->n, sizeof(*p->items), process_compare);
    for (size_t i = 0; i < p->n; i++)
        if (n == 0 || p->items[n - 1].pid != p->items[i].pid)
            p->items[n++] = p->items[i];
    p->n = n;
}

static int load_below(struct process_list *ret, const struct tree *tree) {
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
    make_unique(ret);
    return r;
}

int process_list_load_tree(struct process_list *ret, const struct tree *tree) {
    int r;

    if (!is_own_proc())
        return -ENOTSUP;
    if (access("/proc/thread-self/children", F_OK) == 0)
        return load_below(ret, tree);
    r = load_all(ret);
    if (r == 0 && !mark_tree(ret, tree))
        ret->is_incomplete = true;
    return r;
}
