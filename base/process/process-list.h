/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads one process, or all below it, from /proc. For base/process/ alone. -ENOTSUP: /proc is that of another
 * PID namespace. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
    pid_t pid, parent;
    uint64_t start_ticks;
    bool is_living; /* some thread of it runs */
    bool has_execed;
    bool in_tree;
};

struct process_list { /* sorted by pid */
    size_t n;
    bool is_incomplete; /* a process ended before it was read; its children may be missing from the list */
    struct process *items;
};

struct tree { /* all processes below root, without these children and their descendants */
    pid_t root;
    const pid_t *except;
    size_t n_except;
};

/* Reads a process. 0, -ESRCH, or another negative errno. */
int process_read(pid_t pid, struct process *ret);
/* Loads the tree; its processes have in_tree. The list may be incomplete. 0 or a negative errno. */
int process_list_load_tree(struct process_list *ret, const struct tree *tree);
/* Returns whether the child of this parent is left out of the tree. */
bool process_tree_excepts(const struct tree *tree, pid_t parent, pid_t pid);
/* Returns whether an error means that this process lacks descriptors or memory. It proves nothing about
 * other processes. */
bool process_error_is_ours(int error);
/* Appends a process. 0 or -ENOMEM. */
int process_list_add(struct process_list *p, const struct process *process);
void process_list_done(struct process_list *p);
