/* SPDX-License-Identifier: MIT */
#include "base/process/supervise-tree.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/process/cgroup.h"
#include "base/process/process-tree.h"
#include "base/text.h"

void supervise_tree_signal(const struct supervise_tree *tree, int pidfd, int signal) {
    /* Once to each: many programs end at once on a second TERM. All of the cgroup descends from this process,
     * so the cgroup is signalled only where /proc cannot be read. */
    if (process_tree_signal(getpid(), signal) >= 0 ||
        (tree->cgroup && cgroup_signal(tree->cgroup, signal) >= 0))
        return;
    if (pidfd >= 0)
        (void) pidfd_send_signal(pidfd, signal, NULL, 0);
}

void supervise_tree_kill(const struct supervise_tree *tree, int pidfd) {
    if (tree->cgroup)
        (void) cgroup_kill(tree->cgroup);
    if (process_tree_signal(getpid(), SIGKILL) < 0 && pidfd >= 0)
        (void) pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
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
    if (!cgroup)
        return 0;
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
    free(tree->cgroup);
}
