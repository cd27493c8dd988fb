/* SPDX-License-Identifier: MIT */
#pragma once

/* The latest events of this berthd, for readers in the same process. Nothing is kept before the first reader joins. The
 * ring keeps EVENT_RING_MAX events and EVENT_RING_BYTES at most; the oldest goes first. It is freed EVENT_RING_KEEP after
 * the last reader left, so a reader that returns before that misses nothing. */

#include "base/journal/event.h"
#include "base/list.h"

#define EVENT_RING_MAX 4096
#define EVENT_RING_BYTES ((size_t) 4 << 20)
#define EVENT_RING_KEEP (600 * USEC_PER_SEC)
#define EVENT_RING_NAME_SIZE 9 /* with its NUL */

struct event_ring;

struct kept_event { /* as the journal has it */
    uint64_t seq;
    usec_t realtime;
    enum event_type type;
    size_t size;         /* bytes of all of it */
    const char *message; /* UTF-8 */
    const char *fields;  /* "BERTH_JOB=pg-dump", NUL, the next one, NUL; an empty text ends them */
};

struct event_reader { /* embedded in its owner */
    struct list link;
    /* Called after each event, also after one that could not be kept. It must emit no event. It may leave. */
    void (*on_event)(struct event_reader *reader);
};

/* -ENOMEM, or an error of getrandom(2). */
int event_ring_new(struct event_ring **ret);
struct event_ring *event_ring_free(struct event_ring *ring);
DEFINE_CLEANUP(struct event_ring, event_ring_free)

/* Returns the next BERTH_SEQ; the first is 1. */
uint64_t event_ring_draw(struct event_ring *ring);
/* Keeps the event of the last drawn BERTH_SEQ, if there is a reader. Drops all kept events if there is no memory. */
void event_ring_add(struct event_ring *ring, enum event_type type, const char *message,
                    const struct journal_field *fields, size_t n);

/* 0 or -ENOMEM. The reader gets events from now on. */
int event_ring_join(struct event_ring *ring, struct event_reader *reader);
/* Does nothing for a reader that has not joined. */
void event_ring_leave(struct event_ring *ring, struct event_reader *reader);
size_t event_ring_readers(const struct event_ring *ring);

/* Returns 8 hex digits that no other berthd has: those of the service's invocation id, or random ones. */
const char *event_ring_name(const struct event_ring *ring);
uint64_t event_ring_last(const struct event_ring *ring);  /* BERTH_SEQ of the latest event; 0: none */
uint64_t event_ring_first(const struct event_ring *ring); /* BERTH_SEQ of the oldest kept one; last + 1: none */
/* Returns the event, borrowed until the next one is emitted, or NULL if it is not kept. */
const struct kept_event *event_ring_get(const struct event_ring *ring, uint64_t seq);
