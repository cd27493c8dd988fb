/* SPDX-License-Identifier: MIT */
#include "base/process/supervise-tree.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process/cgroup.h"
#include "base/process/process-list.h"
#include "base/process/process-tree.h"
#include "base/text.h"

void supervise_tree_signal(const struct supervise_tree *tree, int pidfd, int signal) {
    /* Once to each: many programs end at once on a second TERM. All of the cgroup descends from this process,
     * so the cgroup is signalled only where /proc cannot be read. */
    if (process_tree_signal(getpid(), signal, tree->others, tree->n_others) >= 0 ||
        (tree->cgroup && cgroup_signal(tree->cgroup, signal) >= 0))
        return;
    if (pidfd >= 0)
        (void) pidfd_send_signal(pidfd, signal, NULL, 0);
}

void supervise_tree_kill(const struct supervise_tree *tree, int pidfd) {
    if (tree->cgroup)
        (void) cgroup_kill(tree->cgroup);
    if (process_tree_signal(getpid(), SIGKILL, tree->others, tree->n_others) < 0 && pidfd >= 0)
        (void) pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
}

/* A shell that became this process by exec may have left it children, such as the reader of `exec > >(tee log)`. That
 * one ends after this process does, so nobody may wait for its end. */
static int find_others(struct supervise_tree *tree) {
    _cleanup_(process_list_done) struct process_list all = {0};
    pid_t self = getpid();
    siginfo_t info;
    int r;

    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
        return 0; /* there are no children */
    r = process_list_load_tree(&all, &(struct tree) {.root = self});
    if (r < 0)
        return process_error_is_ours(r) ? r : 0;
    tree->others = calloc(all.n + 1, sizeof(*tree->others));
    if (!tree->others)
        return -ENOMEM;
    for (size_t i = 0; i < all.n; i++)
        if (all.items[i].in_tree && all.items[i].parent == self)
            tree->others[tree->n_others++] = all.items[i].pid;
    return 0;
}

void supervise_tree_reaped(struct supervise_tree *tree, pid_t pid) {
    for (size_t i = 0; i < tree->n_others; i++)
        if (tree->others[i] == pid) {
            tree->others[i] = tree->others[--tree->n_others];
            return;
        }
}

bool supervise_tree_is_of_others(const struct supervise_tree *tree) {
    const struct tree own = {getpid(), tree->others, tree->n_others};
    _cleanup_(process_list_done) struct process_list all = {0};

    if (tree->n_others == 0 || process_list_load_tree(&all, &own) < 0 || all.is_incomplete)
        return false;
    for (size_t i = 0; i < all.n; i++)
        if (all.items[i].in_tree)
            return false;
    return true;
}

/* A group that cannot be read counts as populated. */
bool supervise_tree_is_cgroup_empty(struct supervise_tree *tree) {
    int r = tree->events_fd >= 0 ? cgroup_read_events(tree->events_fd) : 0;

    /* Another program removed the group. Its file stays readable and would keep the loop busy. */
    if (r == -ENODEV)
        tree->source = sd_event_source_disable_unref(tree->source);
    return r == 0 || r == -ENODEV;
}

void supervise_tree_remove(struct supervise_tree *tree) {
    tree->source = sd_event_source_disable_unref(tree->source);
    tree->events_fd = close_fd(tree->events_fd);
    if (tree->cgroup)
        (void) cgroup_remove(tree->cgroup);
}

int supervise_tree_init(struct supervise_tree *tree, sd_event *event, const char *cgroup,
                        sd_event_io_handler_t on_change, void *userdata) {
    int r;

    *tree = (struct supervise_tree) {.events_fd = -1};
    r = find_others(tree);
    if (r < 0 || !cgroup)
        return r;
    r = text_copy(&tree->cgroup, cgroup);
    if (r < 0)
        return r;
    tree->events_fd = cgroup_open_events(cgroup);
    if (tree->events_fd < 0)
        return tree->events_fd;
    return sd_event_add_io(event, &tree->source, tree->events_fd, EPOLLPRI, on_change, userdata);
}

void supervise_tree_done(struct supervise_tree *tree) {
    sd_event_source_disable_unref(tree->source);
    close_fd(tree->events_fd);
    free(tree->others);
    free(tree->cgroup);
}
