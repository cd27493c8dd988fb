/* SPDX-License-Identifier: MIT */
#pragma once

/* A job's memory of attempts, restarts and health, for daemon/jobs and daemon/state/state.c alone. */

#include "base/message.h"
#include "daemon/jobs/health.h"

struct job_attempts {
    bool is_known;                /* health was read from a record, or written to one */
    char first_run[ID_TEXT_SIZE]; /* of the latest chain; "": none */
    usec_t first_queued_realtime;
    uint32_t n_quick; /* restart: ends in a row that came soon after their start */
    bool is_stopped;  /* restart: until `berth start`, or the next start of the service */
    struct health health;
};

/* Returns whether the job has an option of retries, restarts or hooks. Without one, none of this is used or
 * recorded. */
bool attempts_are_used(const struct job_settings *settings);
/* Add the fields of a record: all, or only the health, which outlasts a reboot. */
void attempts_put(const struct job_attempts *attempts, struct message_writer *w);
void attempts_put_health(const struct health *health, struct message_writer *w);
void attempts_read(struct job_attempts *attempts, const struct message *record);
