/* SPDX-License-Identifier: MIT */
#pragma once

/* The runtime directory: what berthd remembers over its own restart. The only module that knows the paths in
 * it:
 *
 *     lock             flock of the one berthd
 *     waiting/RUN      a queued run, so that a restarted berthd keeps its place
 *     holds/RUN        FIFO of a granted `berth run`; holds/RUN.claim: what it holds (daemon/adhoc/hold.h)
 *     jobs/JOB         last start, last result
 *     state/session    the session's id (store/redis)
 *     state/drained    exists while the operator has drained this host
 *     state/times      how long the last runs of each name held their permits (daemon/times.h)
 *     state/boot       the boot whose first berthd took over what the state directory had
 *
 * Each record is one message in a file, replaced in one step. None needs to outlive a reboot, because
 * nothing that it describes does. A record that cannot be written is logged and the work goes on: at worst a
 * place in a queue is lost, never a permit. The folders belong to berthd; the runtime directory may belong
 * to root. */

#include <stdbool.h>

#include "base/journal/journal.h"
#include "base/message.h"
#include "base/removals.h"
#include "daemon/jobs/job.h"
#include "daemon/runs/run.h"

#define STATE_PATH_SIZE (RUNTIME_DIRECTORY_MAX + NAME_MAX_LENGTH + 16)

struct state {
    char directory[RUNTIME_DIRECTORY_MAX + 1];
    struct journal *journal;
    struct removals *removals; /* records that could not be removed yet */
    int lock_fd;               /* one berthd in a runtime directory; -1: not taken */
};

/* Makes the folders and takes the lock. journal, removals: the caller's, and kept. Negative errno: logged.
 */
int state_open(struct state *state, const char *directory, struct journal *journal,
               struct removals *removals);
void state_close(struct state *state);

const char *state_holds_path(const struct state *state, char path[static STATE_PATH_SIZE]);
const char *state_session_path(const struct state *state, char path[static STATE_PATH_SIZE]);

/* Whether the operator has drained this host. state_set_drained(): 0 or a negative errno. */
bool state_is_drained(const struct state *state);
int state_set_drained(const struct state *state, bool drained);

/* Whether a berthd of this boot has taken over what the state directory had of the boot before: since then
 * this directory knows better what runs and waits. */
bool state_is_resumed(const struct state *state);
void state_set_resumed(const struct state *state);

/* The text of times_save(). Losing it costs an estimate alone. state_load_times(): to be freed; NULL: nothing is remembered. */
void state_save_times(const struct state *state, const char *text);
char *state_load_times(const struct state *state);

/* Waiting runs. */
void state_save_run(const struct state *state, struct run *run);
void state_remove_run(const struct state *state, struct run *run); /* idempotent */
/* Whether there is a record of the run, of this or an earlier berthd. The event `started` is logged before
 * the record is removed. So for a command that runs a record means that the event may be missing: logging it
 * again gives it twice at worst, never not at all. */
bool state_has_run(const struct state *state, struct run *run);
struct state_run_handler {
    void (*on_record)(const struct message *record, void *userdata);
    void (*on_error)(const char *path, int error,
                     void *userdata); /* something is there and could not be read */
    void *userdata;
};
/* Calls the handler for each waiting run. Removes files that are no records. */
void state_each_run(const struct state *state, const struct state_run_handler *handler);
/* The fields of a run in a record; a guard's state and report have the same. */
void state_put_run(struct message_writer *w, const struct run *run);
/* A run as a record, a guard's state or its report describes it, in no table yet. -EBADMSG, -ENOMEM. */
int state_parse_run(const struct message *record, enum run_kind kind, const struct settings *settings,
                    struct run **ret);

/* What is remembered of a job. */
void state_save_job(const struct state *state, const struct job *job);
/* 0, also if nothing is remembered; negative errno: a record is there and could not be read (logged). */
int state_load_job(const struct state *state, struct job *job);
void state_remove_job(const struct state *state, const char *name);
/* Removes the records of all other jobs. */
void state_sweep_jobs(const struct state *state, bool (*is_defined)(const char *name, void *userdata),
                      void *userdata);
