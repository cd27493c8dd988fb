/* SPDX-License-Identifier: MIT */
#pragma once

/* Server-sent events. A frame is made each second, and all readers share its texts. No reader has a queue: a
 * slow one gets the newest whole frame when it reads again. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "web/board.h"

#define STREAM_READERS_MAX 1000
#define STREAM_DETAILS_MAX 8                 /* pools whose claims one frame can have; others take turns */
#define STREAM_TAKE_TIME (30 * USEC_PER_SEC) /* for a reader to finish a frame */

struct stream;
struct reader;

int stream_new(struct stream **ret, const struct board *board);
/* All readers must have been freed. */
struct stream *stream_free(struct stream *s);
DEFINE_CLEANUP(struct stream, stream_free)

/* Makes the next frame of the board and wakes the readers that wait for one. */
void stream_make_frame(struct stream *s);
/* Returns the number of readers. */
unsigned stream_readers(const struct stream *s);

/* pool: the one whose claims it follows; "": none. wake: called when a reader whose reader_read() returned 0
 * can read again. -EUSERS: too many readers. */
int reader_new(struct reader **ret, struct stream *s, const char *pool, void (*wake)(void *userdata), void *userdata);
struct reader *reader_free(struct reader *r);
/* Copies the next bytes. Returns their number; 0: none yet, wake() follows; -ETIME: the frame took too
 * long. */
ssize_t reader_read(struct reader *r, char *buffer, size_t size);
