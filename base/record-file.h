/* SPDX-License-Identifier: MIT */
#pragma once

/* A small key-value file that survives a crash of the machine. Messages (base/message.h) are appended, and the last one
 * of a key counts. The file is replaced (renamed, file and folder synced) when most of it is old. A thread writes and
 * syncs, so a disk that hangs does not stop the event loop. */

#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/message.h"

struct record_file;

struct record_file_handler {
    /* Called by record_file_open() for the last record of each key. */
    void (*on_record)(const char *key, const struct message *record, void *userdata);
    /* All that was put before this record_file_sync() is on the disk (error 0), or could not be written. */
    void (*on_synced)(uint64_t sync, int error, void *userdata);
    /* The file is damaged. text: what was lost, for people; valid during the call. */
    void (*on_damage)(const char *text, void *userdata);
    void *userdata;
};

/* Reads the file, which may be missing, and starts the writer. Negative errno. */
int record_file_open(struct record_file **ret, sd_event *event, const char *path, const struct record_file_handler *handler);
/* Blocks until all is written, 5 s at most. */
struct record_file *record_file_close(struct record_file *file);
DEFINE_CLEANUP(struct record_file, record_file_close)

/* Puts a record, which the next sync writes. NULL: forgets the key. 0, -EINVAL, or -ENOMEM without any effect. */
int record_file_put(struct record_file *file, const char *key, const struct message_writer *record);
/* Begins to write what was put, and returns a number for on_synced. Calls in one turn of the loop share one sync. 0:
 * nothing was put since the last call, and that did not fail. A call after a failed one writes its records, too. */
uint64_t record_file_sync(struct record_file *file);
