/* SPDX-License-Identifier: MIT */
#pragma once

/* The runtime directory: berthd's memory over its own restart. Only this module knows the paths in it:
 *
 *     lock             record lock of the one berthd
 *     waiting/RUN      a queued run, so that a restarted berthd keeps its place
 *     holds/RUN        FIFO of a granted `berth run`; holds/RUN.claim: its record (daemon/adhoc/hold.h)
 *     jobs/JOB         last start, last result
 *     state/session    the session's id (store/redis)
 *     state/drained    exists while this host is drained
 *     state/overrides  limits of this host's pools that an operator set (store/memory)
 *     state/times      how long the last runs of each name held their permits (daemon/times-table.h)
 *     state/boot       the boot in which a berthd has read the state directory
 *
 * Each record is one message in a file, replaced in one step. No record must outlive a reboot, because
 * nothing that it describes does. If a record cannot be written, berthd logs that and goes on: at worst a
 * place in a queue is lost, never a permit. The folders belong to berthd; the runtime directory may be
 * root's. */

#include <stdbool.h>
#include <systemd/sd-id128.h>

#include "base/journal/journal.h"
#include "base/message.h"
#include "base/removals.h"
#include "daemon/jobs/job.h"
#include "daemon/runs/run.h"

#define STATE_PATH_SIZE (RUNTIME_DIRECTORY_MAX + NAME_MAX_LENGTH + 16)

struct state {
    char directory[RUNTIME_DIRECTORY_MAX + 1];
    struct journal *journal;
    struct removals *removals; /* retries to remove records */
    int lock_fd;               /* -1: not taken */
};

/* Makes the folders and takes the lock. journal and removals belong to the caller and must outlive it.
 * Returns 0 or a negative errno, logged. */
int state_open(struct state *state, const char *directory, struct journal *journal,
               struct removals *removals);
void state_close(struct state *state);

const char *state_holds_path(const struct state *state, char path[static STATE_PATH_SIZE]);
const char *state_session_path(const struct state *state, char path[static STATE_PATH_SIZE]);
const char *state_overrides_path(const struct state *state, char path[static STATE_PATH_SIZE]);
/* Returns the id of this boot; "": not known. */
#define STATE_BOOT_SIZE SD_ID128_STRING_MAX
const char *state_get_boot(char ret[static STATE_BOOT_SIZE]);

/* Returns whether this host is drained. state_set_drained() returns 0 or a negative errno. */
bool state_is_drained(const struct state *state);
int state_set_drained(const struct state *state, bool drained);

/* Returns whether a berthd of this boot has read what the state directory had of the boot before. Since then the
 * runtime directory alone counts. */
bool state_is_resumed(const struct state *state);
void state_set_resumed(const struct state *state);

/* The text of times_save(). Its loss only costs an estimate. state_load_times() returns a text to be freed,
 * or NULL. */
void state_save_times(const struct state *state, const char *text);
char *state_load_times(const struct state *state);

/* Waiting runs. */
void state_save_run(const struct state *state, struct run *run);
void state_remove_run(const struct state *state, struct run *run); /* idempotent */
/* Returns whether there is a record of the run. The event `started` is logged before the record is removed. So if a
 * running command has a record, the event may be missing and is logged again: it comes twice at worst. */
bool state_has_run(const struct state *state, struct run *run);
struct state_run_handler {
    void (*on_record)(const struct message *record, void *userdata);
    void (*on_error)(const char *path, int error, void *userdata); /* a record could not be read */
    void *userdata;
};
/* Calls the handler for each waiting run. Removes files that are no records. */
void state_each_run(const struct state *state, const struct state_run_handler *handler);
/* Adds the fields of a run. A guard's state and report have the same. */
void state_put_run(struct message_writer *w, const struct run *run);
/* Makes a run, in no table, from a record or a guard's state or report. Returns 0, -EBADMSG or -ENOMEM. */
int state_parse_run(const struct message *record, enum run_kind kind, const struct settings *settings,
                    struct run **ret);

/* The record of a job. */
void state_save_job(const struct state *state, const struct job *job);
/* Returns 0, also without a record; or a negative errno, logged: the record could not be read. */
int state_load_job(const struct state *state, struct job *job);
void state_remove_job(const struct state *state, const char *name);
/* Removes the records of all other jobs. */
void state_sweep_jobs(const struct state *state, bool (*is_defined)(const char *name, void *userdata),
                      void *userdata);
