/* SPDX-License-Identifier: MIT */
#pragma once

/* The thread that writes a record file: it appends and syncs one text at a time, or replaces the file by it. The event
 * loop never waits for the disk. */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"

struct record_writer;

typedef void (*record_writer_fn)(int error, void *userdata); /* 0, or the negative errno of the write */

/* Starts the thread, and opens no file yet. Negative errno. */
int record_writer_new(struct record_writer **ret, sd_event *event, const char *path, record_writer_fn fn,
                      void *userdata);
/* Ends the thread, once the text under way is written. Does not wait for that, and calls no fn. */
struct record_writer *record_writer_free(struct record_writer *writer);
bool record_writer_is_busy(const struct record_writer *writer);
/* Writes text, which is taken over. The writer must not be busy; it is until it calls fn. */
void record_writer_write(struct record_writer *writer, char *text, size_t size, bool replaces);
/* Blocks until the writer is not busy, at most this long, and calls no fn. False: it is busy. *ret_error: as for fn. */
bool record_writer_wait(struct record_writer *writer, usec_t patience, int *ret_error);
