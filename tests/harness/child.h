/* SPDX-License-Identifier: MIT */
#pragma once

/* Programs that a test starts: their output is collected in memory and their end is seen through a pidfd, all in one poll loop
 * without threads. Whoever waits for one of them reads all of them, so that nobody's pipe runs full. The test program is made a
 * subreaper: what a child leaves behind becomes ours, and is found. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"

struct child_text { /* always NUL-terminated once something was read; data may be NULL before */
    char *data;
    size_t size;
};

struct child {
    struct child *next;
    pid_t pid;
    int pidfd;
    int fds[2];                  /* what it writes to standard output and standard error; -1: closed */
    struct child_text output[2]; /* of these */
    int recorded;                /* the pipe that a recorder of it reads; -1: none */
    bool ended;
    int exit_code;               /* -1: ended by a signal */
    int signal;                  /* 0: exited */
};

/* argv[0] is a path or is looked up in PATH. environment: NULL-terminated NAME=value, added to ours without BERTH_*; NULL: none. Standard
 * input is /dev/null. NULL with a failed assertion if it cannot be started. */
struct child *child_start(char *const argv[], char *const environment[]);
/* As a user, for root, with supplementary groups "60,29" ("": none); the user's primary group is that of nobody. argv[0] is a path; it may
 * lie where that user has no way to, such as in a clone below /root. */
struct child *child_start_as(uid_t uid, const char *groups, char *const argv[], char *const environment[]);
struct child *child_start_as_nobody(char *const argv[], char *const environment[]);
/* What it writes to standard error also goes to a file, each line with the time when it came (realtime in µs) before it. */
struct child *child_start_recorded(char *const argv[], char *const environment[], const char *path);
/* With more wishes: a controlling terminal of its own as all three standard descriptors (its output comes as output[0]; *ret_master
 * is ours to write to), for programs that read the terminal. */
struct child *child_start_on_terminal(char *const argv[], char *const environment[], int *ret_master);

/* Reads what there is, waiting for something until `until` (boottime) at the latest. */
void child_turn(usec_t until);
/* Turns until it has ended, within so many µs. Whether it has. */
bool child_await(struct child *c, usec_t within);
/* Whether anything of the text was read so far; "" if nothing was. */
const char *child_text(const struct child *c, int which /* 1 or 2 */);
/* Through the pidfd: never hits another process. */
void child_kill(struct child *c, int signal);
/* Kills and waits for it if it has not ended. Returns NULL. */
struct child *child_free(struct child *c);
void child_free_all(void); /* those of a test that ended early */

/* Descendants of this program that are alive but are not in the list of children: what somebody left behind. Waits until there are
 * none for up to `within`; the number of those that are left then, after naming and killing them. */
unsigned child_sweep(usec_t within);

/* The process that started another one; 0 if that is gone. */
pid_t child_parent(pid_t pid);
