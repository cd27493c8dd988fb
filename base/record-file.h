/* SPDX-License-Identifier: MIT */
#pragma once

/* A small key-value file that outlives a crash of the machine: messages (base/message.h) are appended, the
 * last one of a key counts, and the file is rewritten (renamed, file and folder synced) once most of it is
 * old. A thread of its own writes and syncs, so a disk that hangs does not stop the event loop. */

#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/message.h"

struct record_file;

struct record_file_handler {
    /* At record_file_open(), for the last record of each key. */
    void (*on_record)(const char *key, const struct message *record, void *userdata);
    /* All that was put before this record_file_sync() is on the disk (error 0), or could not be written. */
    void (*on_synced)(uint64_t sync, int error, void *userdata);
    /* The file, or a part of it, is not readable: what was kept, what was lost. Text until the return. */
    void (*on_damage)(const char *text, void *userdata);
    void *userdata;
};

/* Reads the file, which may be missing, and begins to write. Negative errno: it cannot be read or made; the
 * caller may go on without. */
int record_file_open(struct record_file **ret, sd_event *event, const char *path, const struct record_file_handler *handler);
/* Blocks until all is written, 5 s at most. */
struct record_file *record_file_close(struct record_file *file);
DEFINE_CLEANUP(struct record_file, record_file_close)

/* Keeps a record; it is written with the next sync. NULL: forgets the key. 0 or -ENOMEM: nothing changed. */
int record_file_put(struct record_file *file, const char *key, const struct message_writer *record);
/* Writes what was put, and returns a number for on_synced; calls of one turn of the loop share one sync. 0:
 * nothing was put since the last one. A failed sync is tried again with the next one. */
uint64_t record_file_sync(struct record_file *file);
