/* SPDX-License-Identifier: MIT */
#pragma once

/* The files of a run below the runs directory:
 *
 *   RUN.guard   the guard file: the start message, the cgroup and the guard's pid. The runner writes it
 *               before it forks the guard. A prepared guard adds the grant before its command runs. The
 *               guard keeps a lock (flock(2)) on it: a later runner needs no pid to know that it lives.
 *   RUN.sock    the socket on which the guard listens
 *   RUN.report  the end of the run, until berthd has recorded it (runner/report.h)
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/demand.h"
#include "base/message.h"
#include "base/name.h"
#include "runner/facts.h"
#include "runner/sets.h"

#define GUARD_FILE_SUFFIX ".guard"
#define GUARD_FILE_PATH_SIZE 128
#define GUARD_FILE_CGROUP_MAX 512

struct guard_file {
    char run[ID_TEXT_SIZE];
    char job[NAME_MAX_LENGTH + 1], namespace[NAME_MAX_LENGTH + 1], host[NAME_MAX_LENGTH + 1];
    char hash[17];
    char pools[DEMANDS_TEXT_SIZE];
    char scopes[DEMAND_POOLS_MAX + 1]; /* a letter for each pool, which only berthd reads */
    uint64_t token, ticket;
    usec_t queued, queued_boottime;
    usec_t deadline;                    /* at the start; USEC_INFINITY: none */
    char cgroup[GUARD_FILE_CGROUP_MAX]; /* "": none */
    pid_t guard;                        /* 0: not written yet */
    struct facts facts;
    struct sets sets;
    bool is_prepared; /* not granted: the command has not run; no token, ticket and deadline yet */
    bool is_over;     /* no process of the command is left; the guard still reports the end */
};

/* Reads a PROTOCOL_START or PROTOCOL_PREPARE message, or a guard file. Returns 0 or -EBADMSG. */
int guard_file_parse(struct guard_file *ret, const struct message *m);
/* Adds the fields that state, report and guard file have in common: run job token ticket pools scopes
 * queued queued-boot, the facts and the sets. */
void guard_file_put(const struct guard_file *record, struct message_writer *w);

/* Writes DIRECTORY/RUN + suffix to a buffer of GUARD_FILE_PATH_SIZE. */
const char *guard_file_path(char *buffer, const char *directory, const char *run, const char *suffix);

/* Creates the file, locked. Returns a negative errno, or a descriptor, which only the guard may keep. */
int guard_file_create(const struct guard_file *record, const char *directory);
/* Adds the guard's pid. 0 or a negative errno. */
int guard_file_add_guard(int fd, pid_t pid);
/* Adds token, ticket and deadline to the file of a prepared run. 0 or a negative errno. */
int guard_file_add_grant(int fd, const struct guard_file *record);
/* Adds that no process of the run is left. 0 or a negative errno. */
int guard_file_add_over(int fd);
/* 0; -ENOENT: there is no file; -EBADMSG: it is not a guard file; another negative errno. */
int guard_file_load(struct guard_file *ret, const char *directory, const char *run);
/* Reads a message of this verb from a file. Returns 0, -ENOENT, -EBADMSG, or another negative errno. */
int guard_file_load_message(struct message *m, const char *path, const char *verb);
/* Returns whether the guard lives: 1, 0 (also if there is no file), or a negative errno. */
int guard_file_is_locked(const char *directory, const char *run);
/* Calls `each` for every RUN that has a file with this suffix. Returns 0, or a negative errno if it may have
 * missed some. */
int guard_file_each(const char *directory, const char *suffix, void (*each)(const char *run, void *userdata), void *userdata);
/* Removes guard file and socket, not the report. */
void guard_file_remove(const char *directory, const char *run);
