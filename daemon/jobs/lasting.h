/* SPDX-License-Identifier: MIT */
#pragma once

/* berthd's memory of jobs over a reboot: STATE-DIRECTORY/jobs, a record file (base/record-file.h). If the
 * file cannot be written or the disk does not answer, berthd logs that once and does not wait: the runtime
 * directory has the same until the reboot. */

#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/journal/journal.h"
#include "base/record-file.h"

struct lasting;

struct lasting_handler {
    void (*on_record)(const char *key, const struct message *record,
                      void *reader); /* during lasting_open() */
    void *reader;
    /* All records put before this lasting_sync() are on the disk, or berthd waits for them no longer. */
    void (*on_synced)(uint64_t sync, void *userdata);
    void *userdata;
};

/* Makes the directory if its parent exists. Returns 0 or a negative errno, logged; go on with NULL. */
int lasting_open(struct lasting **ret, sd_event *event, const char *directory, struct journal *journal,
                 const struct lasting_handler *handler);
/* Whether an earlier berthd left a file there. */
bool lasting_is_there(const char *directory);
struct lasting *lasting_close(struct lasting *lasting);
DEFINE_CLEANUP(struct lasting, lasting_close)

/* With NULL these do nothing. A record for which memory lacks counts as one that cannot be written. record
 * NULL: removes the key. */
void lasting_put(struct lasting *lasting, const char *key, const struct message_writer *record);
/* Returns the number to wait for (on_synced); 0: do not wait. */
uint64_t lasting_sync(struct lasting *lasting);
/* Returns why the file cannot be written, or "". Valid until the next call. */
const char *lasting_error(const struct lasting *lasting);
