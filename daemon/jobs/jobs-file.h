/* SPDX-License-Identifier: MIT */
#pragma once

/* berthd's memory of jobs over a reboot: STATE-DIRECTORY/jobs, a record file (base/record-file.h). If the
 * file cannot be written or the disk does not answer, berthd logs that once and does not wait: the runtime
 * directory has the same until the reboot. */

#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/journal/journal.h"
#include "base/record-file.h"

struct jobs_file;

struct jobs_file_handler {
    void (*on_record)(const char *key, const struct message *record,
                      void *reader); /* during jobs_file_open() */
    void *reader;
    /* All records put before this jobs_file_sync() are on the disk, or berthd waits for them no longer. */
    void (*on_synced)(uint64_t sync, void *userdata);
    void *userdata;
};

/* Makes the directory if its parent exists. Returns 0 or a negative errno, logged; go on with NULL. */
int jobs_file_open(struct jobs_file **ret, sd_event *event, const char *directory, struct journal *journal,
                   const struct jobs_file_handler *handler);
/* Returns whether an earlier berthd left a file there. */
bool jobs_file_is_there(const char *directory);
struct jobs_file *jobs_file_close(struct jobs_file *f);
DEFINE_CLEANUP(struct jobs_file, jobs_file_close)

/* With NULL these do nothing. A record for which memory lacks counts as one that cannot be written. record
 * NULL: removes the key. */
void jobs_file_put(struct jobs_file *f, const char *key, const struct message_writer *record);
/* Returns the number to wait for (on_synced); 0: do not wait. */
uint64_t jobs_file_sync(struct jobs_file *f);
/* Returns why the file cannot be written, or "". Valid until the next call. */
const char *jobs_file_error(const struct jobs_file *f);
