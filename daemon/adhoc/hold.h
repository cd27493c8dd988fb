/* SPDX-License-Identifier: MIT */
#pragma once

/* The hold of one granted `berth run` (holds/): a FIFO whose write end the client and its command inherit,
 * and a record of the claim beside it. The hold is over when no process has the write end any more (the FIFO
 * has hung up) and the command is gone (its pidfd, if the pid is known). It outlives berthd: a starting berthd
 * recovers the holds before it grants anything. */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/message.h"

struct hold;

struct hold_handler {
    void (*on_over)(struct hold *h, void *userdata); /* once; the hold may be freed in it */
    void *userdata;
    struct removals *removals; /* retries to remove the files; NULL: a file that cannot be removed stays */
};

/* Makes the FIFO holds/RUN and the record holds/RUN.claim (run, claim, token, pools, deadline ...).
 * *ret_write_fd: for the client; the caller closes its copy after sending it. Negative errno: no file is left. */
int hold_new(struct hold **ret, sd_event *event, const char *directory, const char *run, const struct message_writer *record,
             const struct hold_handler *handler, int *ret_write_fd);
/* Opens a hold found at start. on_over is called in the next turn of the loop if the hold is over already. */
int hold_open(struct hold **ret, sd_event *event, const char *directory, const char *run, const struct message *record,
              const struct hold_handler *handler);
/* Replaces the record (new token, pid known ...). Adds the identity of a watched command to it. */
int hold_write_record(struct hold *h, const struct message_writer *record);
/* Makes the hold last until this command of the client has ended as well. Writes no record. Returns 0, or a
 * negative errno, and then the FIFO alone decides. -ESRCH: the command has ended; -EPERM: it does not
 * descend from the client; else it cannot be watched. */
int hold_watch_command(struct hold *h, pid_t client, pid_t pid);
/* Returns the pid of the command, which may have ended; 0: unknown. */
pid_t hold_get_pid(const struct hold *h);
/* Returns the command if it is known and lives, else 0. */
pid_t hold_get_command(const struct hold *h);
/* Returns whether the hold is over. True already before on_over is called. */
bool hold_is_released(const struct hold *h);
/* Removes both files and frees. */
struct hold *hold_free(struct hold *h);
/* Frees and leaves the files to the next berthd. */
struct hold *hold_detach(struct hold *h);
DEFINE_CLEANUP(struct hold, hold_detach)

/* Calls found() for each holds/RUN.claim that is a valid record, and removes all other files. */
int hold_recover(const char *directory, void (*found)(const char *run, const struct message *record, void *userdata), void *userdata);
