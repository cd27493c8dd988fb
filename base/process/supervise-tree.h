/* SPDX-License-Identifier: MIT */
#pragma once

/* For supervise.c: the tree of a command, as a whole. That is every descendant of this process but the children
 * that it had before, and also its cgroup if it has one. */

#include <stdbool.h>
#include <systemd/sd-event.h>

struct supervise_tree {
    pid_t *others; /* children of this process that a program before its exec made, until they are reaped */
    size_t n_others;
    char *cgroup; /* directory; NULL: none */
    int events_fd; /* its cgroup_open_events(); -1: no cgroup */
    sd_event_source *source;
};

/* cgroup: or NULL; on_change is called when it empties or fills. 0 or a negative errno; done in any case. */
int supervise_tree_init(struct supervise_tree *tree, sd_event *event, const char *cgroup,
                        sd_event_io_handler_t on_change, void *userdata);
void supervise_tree_done(struct supervise_tree *tree);
/* Sends a signal once to every process. pidfd: of the command, which is signalled alone if neither /proc nor the
 * cgroup can be read; -1: it has ended. */
void supervise_tree_signal(const struct supervise_tree *tree, int pidfd, int signal);
void supervise_tree_kill(const struct supervise_tree *tree, int pidfd);
/* Notes that a child was reaped. */
void supervise_tree_reaped(struct supervise_tree *tree, pid_t pid);
/* To be called if this process has children. Returns whether all of them are `others`; false if that is
 * unknown. */
bool supervise_tree_is_of_others(const struct supervise_tree *tree);
/* Returns whether no process is in the cgroup; true also without one. */
bool supervise_tree_is_cgroup_empty(struct supervise_tree *tree);
/* Stops watching the cgroup, and removes it. */
void supervise_tree_remove(struct supervise_tree *tree);
