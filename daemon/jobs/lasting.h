/* SPDX-License-Identifier: MIT */
#pragma once

/* What berthd remembers of jobs over a reboot: STATE-DIRECTORY/jobs, a record file (base/record-file.h). If
 * it cannot be written, or the disk does not answer, that is logged once until it works again, and nobody
 * waits for it: the runtime directory has the same for as long as the machine is up. */

#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/journal/journal.h"
#include "base/record-file.h"

struct lasting;

struct lasting_handler {
    void (*on_record)(const char *key, const struct message *record,
                      void *reader); /* during lasting_open() */
    void *reader;
    /* All that was put before this lasting_sync() is on the disk, or will not be: go on. */
    void (*on_synced)(uint64_t sync, void *userdata);
    void *userdata;
};

/* Makes the directory if its parent is there. Negative errno: logged; go on with NULL. */
int lasting_open(struct lasting **ret, sd_event *event, const char *directory, struct journal *journal,
                 const struct lasting_handler *handler);
/* Whether an earlier berthd has left anything there. */
bool lasting_is_there(const char *directory);
struct lasting *lasting_close(struct lasting *lasting);
DEFINE_CLEANUP(struct lasting, lasting_close)

/* Of NULL, these do nothing. A record that lacks memory counts as one that cannot be written. record NULL:
 * forgets the key. */
void lasting_put(struct lasting *lasting, const char *key, const struct message_writer *record);
/* The number to wait for; 0: do not wait. */
uint64_t lasting_sync(struct lasting *lasting);
/* "": it works. Else why not, until the next call. */
const char *lasting_error(const struct lasting *lasting);
