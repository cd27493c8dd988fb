/* SPDX-License-Identifier: MIT */
#pragma once

/* What is known of a run on disk, below the runs directory:
 *
 *   RUN.guard   the record: what it was started with, its cgroup, its guard. The guard holds a lock (flock(2)) on it as long as it
 *               lives, so whoever comes later knows without a pid whether it does. Written before the guard is forked.
 *   RUN.sock    where the guard listens
 *   RUN.report  how it ended, until berthd has recorded it
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/demand.h"
#include "base/message.h"
#include "base/name.h"

#define RECORD_SUFFIX ".guard"
#define RECORD_PATH_SIZE 128
#define RECORD_CGROUP_MAX 512

struct record {
    char run[ID_TEXT_SIZE];
    char job[NAME_MAX_LENGTH + 1], namespace[NAME_MAX_LENGTH + 1], host[NAME_MAX_LENGTH + 1];
    char hash[17];
    char pools[DEMANDS_TEXT_SIZE];
    uint64_t token, ticket, queued;
    usec_t deadline;                             /* at the start; USEC_INFINITY: none */
    char cgroup[RECORD_CGROUP_MAX];              /* "": none */
    pid_t guard;                                 /* 0: not written yet */
    bool is_over;                                /* nothing of it runs any more; its guard still tells of the end */
};

/* From PROTOCOL_START or a record. 0 or -EBADMSG. */
int record_parse(struct record *ret, const struct message *m);
/* The fields that state, report and record have in common: run job token ticket pools queued. */
void record_put(const struct record *r, struct message_writer *w);

/* DIRECTORY/RUN + suffix, into a buffer of RECORD_PATH_SIZE. */
const char *record_path(char *buffer, const char *directory, const char *run, const char *suffix);

/* Makes it, locked: a descriptor, to be handed to the guard and closed by everybody else, or a negative errno. */
int record_create(const struct record *r, const char *directory);
/* Adds the guard's pid. 0 or a negative errno. */
int record_add_guard(int fd, pid_t pid);
/* Adds that the run is over. 0 or a negative errno. */
int record_add_over(int fd);
/* 0; -ENOENT: there is none; -EBADMSG: it is not a record; another negative errno. */
int record_load(struct record *ret, const char *directory, const char *run);
/* Whether its guard lives. 1, 0 (also if there is no record), or a negative errno. */
int record_is_locked(const char *directory, const char *run);
/* Calls `each` for every RUN of which there is a file with this suffix. A negative errno: not all could be seen. */
int record_each(const char *directory, const char *suffix, void (*each)(const char *run, void *userdata), void *userdata);
/* Removes record and socket, not the report. */
void record_remove(const char *directory, const char *run);

/* A report. */
void report_begin(struct message_writer *w, const struct record *r, const char *reason);
int report_write(const struct message_writer *w, const char *directory, const char *run);
/* 0, -ENOENT, or another negative errno. */
int report_load(struct message_writer *ret, const char *directory, const char *run);
