/* SPDX-License-Identifier: MIT */
#pragma once

/* The hold of one granted `berth run` (holds/): a FIFO whose write end the client and its command inherit,
 * and a record of the claim beside it. The hold is over when the FIFO has hung up (no process has the write
 * end any more) and the command, if its pid is known, is gone (pidfd). It outlives berthd: a starting berthd
 * recovers the holds before it grants anything. */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/message.h"

struct hold;

struct hold_handler {
    void (*on_over)(struct hold *h, void *userdata); /* once; the hold may be freed in it */
    void *userdata;
    struct removals *removals; /* for files that cannot be removed at once; NULL: they stay then */
};

/* Makes holds/RUN and holds/RUN.claim (the record, a message written by the caller: run, claim, token, pools, deadline ...).
 * *ret_write_fd: for the client; the caller closes its copy once it was sent. Negative errno, and then no file is left. */
int hold_new(struct hold **ret, sd_event *event, const char *directory, const char *run, const struct message_writer *record,
             const struct hold_handler *handler, int *ret_write_fd);
/* Opens a hold found at start. on_over may follow in the next turn of the loop (no process has it any more).
 * The command's identity (pid, start time) is read from the record. */
int hold_open(struct hold **ret, sd_event *event, const char *directory, const char *run, const struct message *record,
              const struct hold_handler *handler);
/* Replaces the record (new token, pid known, ...). The identity of a command that is watched is added to it as fields boot, command-pid
 * and command-start. */
int hold_write_record(struct hold *h, const struct message_writer *record);
/* The client reported the pid of its command: the hold lasts until that is gone, too. The caller writes the
 * record. -ESRCH: it is not there (any more), -EPERM: it does not descend from the client; then the FIFO
 * alone decides. Another negative errno: it cannot be watched. */
int hold_watch_command(struct hold *h, pid_t client, pid_t pid);
/* The command, if it is known and lives; else 0. */
pid_t hold_get_command(const struct hold *h);
/* Removes both files and frees. hold_detach() frees and leaves the files, for a stopping berthd that leaves runs alone. */
struct hold *hold_free(struct hold *h);
struct hold *hold_detach(struct hold *h);

/* Calls found(run, record) for each holds/RUN.claim that is a valid record; removes debris (a FIFO without record and the like). */
int hold_recover(const char *directory, void (*found)(const char *run, const struct message *record, void *userdata), void *userdata);
