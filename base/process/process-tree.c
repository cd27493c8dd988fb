/* SPDX-License-Identifier: MIT */
/* /proc is not consistent, so a walk is repeated until it finds nothing new. */

#include "base/process/process-tree.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/process/process-list.h"

/* A tree that changes faster than this is left to the next call. */
#define PASSES_MAX 64
#define STATUS_MAX 8192 /* bytes of /proc/PID/status, which has some 1500 */
/* Under hidepid= a picture of /proc is never complete. */
#define PASSES_INCOMPLETE_MAX 3

int process_start_time(pid_t pid, uint64_t *ret_ticks) {
    struct process process;
    int r = process_read(pid, &process);

    if (r == 0)
        *ret_ticks = process.start_ticks;
    return r;
}

bool process_is_in_own_namespace(pid_t pid) {
    _cleanup_free_ char *text = NULL;
    char path[40];
    const char *at;
    size_t size;

    (void) snprintf(path, sizeof(path), "/proc/%d/status", (int) pid);
    if (file_read(path, STATUS_MAX, &text, &size) < 0)
        return false;
    at = strstr(text, "\nNSpid:\t"); /* its pid here, then in each namespace inside: "NSpid:\t4711\t5" */
    return at && strspn(at + strlen("\nNSpid:\t"), "0123456789") == strcspn(at + strlen("\nNSpid:\t"), "\n");
}

int process_has_execed(pid_t pid) {
    struct process process;
    int r = process_read(pid, &process);

    return r < 0 ? r : process.has_execed;
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

/* Counts a process that has ended since it was signalled as new: its children have other parents now. */
static bool is_signalled(const struct process_list *signalled, const struct process *process) {
    for (size_t i = 0; i < signalled->n; i++)
        if (signalled->items[i].pid == process->pid && signalled->items[i].start_ticks == process->start_ticks &&
            signalled->items[i].is_living == process->is_living)
            return true;
    return false;
}

enum { PASS_DONE, PASS_INCOMPLETE, PASS_NEW };

/* One walk. PASS_DONE: no process was new; PASS_INCOMPLETE: none of those found was new; PASS_NEW: there
 * were new ones. */
static int process_tree_pass(const struct tree *tree, int signal, struct process_list *signalled, int *ret_living) {
    _cleanup_(process_list_done) struct process_list all = {0};
    int answer, living = 0, r = process_list_load_tree(&all, tree);

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
        r = process_list_add(signalled, process);
        if (r < 0)
            return r;
        answer = PASS_NEW;
    }
    *ret_living = living;
    return answer;
}

int process_tree_signal(pid_t root, int signal, const pid_t *except, size_t n_except) {
    _cleanup_(process_list_done) struct process_list signalled = {0};
    const struct tree tree = {root, except, n_except};
    int r = PASS_NEW, living = 0, incomplete = 0;

    for (int i = 0; r > PASS_DONE && incomplete < PASSES_INCOMPLETE_MAX && i < PASSES_MAX; i++) {
        r = process_tree_pass(&tree, signal, &signalled, &living);
        incomplete = r == PASS_INCOMPLETE ? incomplete + 1 : 0;
    }
    return r < 0 ? r : living;
}

int process_tree_list(pid_t root, const pid_t *except, size_t n_except, pid_t *ret, size_t n) {
    _cleanup_(process_list_done) struct process_list all = {0};
    int r, living = 0;

    r = process_list_load_tree(&all, &(struct tree) {root, except, n_except});
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

pid_t process_tree_find(pid_t root, const pid_t *except, size_t n_except) {
    _cleanup_(process_list_done) struct process_list all = {0};
    int r = process_list_load_tree(&all, &(struct tree) {root, except, n_except});
    pid_t found = 0;

    for (size_t i = 0; r == 0 && i < all.n; i++)
        if (all.items[i].in_tree && (found == 0 || all.items[i].is_living)) {
            found = all.items[i].pid;
            if (all.items[i].is_living)
                break;
        }
    return r < 0 ? r : found;
}

int process_tree_contains(pid_t root, const pid_t *except, size_t n_except, pid_t pid) {
    const struct tree tree = {root, except, n_except};

    while (pid != root) {
        struct process process;
        int r;

        if (pid <= 0)
            return 0;
        r = process_read(pid, &process);
        if (r < 0)
            return r == -ESRCH ? 0 : r;
        if (process_tree_excepts(&tree, process.parent, pid))
            return 0;
        pid = process.parent;
    }
    return 1;
}
