/* SPDX-License-Identifier: MIT */
#pragma once

/* The thread that writes a record file: one text at a time, appended and synced, or in the place of the
 * file. The event loop never waits for the disk. */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"

struct record_writer;

typedef void (*record_writer_fn)(int error, void *userdata); /* 0, or the negative errno of the write */

/* Nothing is opened yet. Negative errno. */
int record_writer_new(struct record_writer **ret, sd_event *event, const char *path, record_writer_fn fn,
                      void *userdata);
/* Waits until the text under way is written or this long has passed; fn is not called any more. */
struct record_writer *record_writer_free(struct record_writer *writer, usec_t patience);
bool record_writer_is_busy(const struct record_writer *writer);
/* Writes text, which is taken over. The writer must not be busy, and is until it calls fn. */
void record_writer_write(struct record_writer *writer, char *text, size_t size, bool replaces);
/* Blocks, this long at most, until it is not busy. fn is not called. False: it is busy still. *ret_error as
 * of fn. */
bool record_writer_wait(struct record_writer *writer, usec_t patience, int *ret_error);
