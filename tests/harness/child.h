/* SPDX-License-Identifier: MIT */
#pragma once

/* Child programs of a test. One poll loop without threads collects their output in memory and sees their end
 * by pidfds. Waiting for one reads the output of all, so that no pipe fills up. The test program becomes a
 * subreaper, so that it finds orphans of its children. */

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
    int fds[2];                  /* standard output and standard error; -1: closed */
    struct child_text output[2]; /* collected from fds */
    int recorded;                /* the pipe that a recorder of it reads; -1: none */
    bool ended;
    int exit_code;               /* -1: ended by a signal */
    int signal;                  /* 0: exited */
};

/* argv[0] is a path or is looked up in PATH. environment: NULL-terminated NAME=value, added to this
 * program's without BERTH_*; NULL: none. Standard input is /dev/null. NULL with a failed assertion on
 * failure. */
struct child *child_start(char *const argv[], char *const environment[]);
/* Starts a program as another user, for root, with supplementary groups "60,29" ("": none); the primary
 * group is that of nobody. argv[0] may be a path that the user cannot access. */
struct child *child_start_as(uid_t uid, const char *groups, char *const argv[], char *const environment[]);
struct child *child_start_as_nobody(char *const argv[], char *const environment[]);
/* Copies its standard error to a file, each line after the time when it came (realtime in µs). */
struct child *child_start_recorded(char *const argv[], char *const environment[], const char *path);
/* The same with options: a controlling terminal of its own as all three standard descriptors (its output is
 * output[0]; *ret_master is writable by the caller). */
struct child *child_start_on_terminal(char *const argv[], char *const environment[], int *ret_master);

/* Waits for output until `until` (boottime) or for 250 ms, and reads all. */
void child_turn(usec_t until);
/* Time to wait for children. A turn counts as TURN_MAX at most: if one takes longer, the machine is overloaded or was paused, and the
 * children were, too. */
#define TURN_MAX (500 * USEC_PER_MSEC)
struct patience {
    usec_t left, seen; /* seen: boottime */
};
struct patience patience_of(usec_t within);
/* As child_turn(). Returns false without a turn if no time is left. */
bool patience_turn(struct patience *p);
/* Lets time pass until `until` (boottime), and reads all output meanwhile. */
void child_pass(usec_t until);
/* Waits for the end with this patience. Returns whether the program has ended. */
bool child_await(struct child *c, usec_t within);
/* Returns whether this text was read so far. */
const char *child_text(const struct child *c, int which /* 1 or 2 */);
/* Sends a signal through the pidfd, so never to another process. */
void child_kill(struct child *c, int signal);
/* Kills the program if it lives, and waits for its end. Returns NULL. */
struct child *child_free(struct child *c);
void child_free_all(void); /* for a test that ended early */

/* Reaps orphans that have ended, as child_sweep() does. Not for a test that waits for children of its
 * own. */
void child_reap_orphans(void);
/* Waits, `within` at most, until this program has no living descendants besides the listed children. Names
 * and kills the others, and returns their number. */
unsigned child_sweep(usec_t within);

/* Returns the parent of a process; 0 if the process has ended. */
pid_t child_parent(pid_t pid);
