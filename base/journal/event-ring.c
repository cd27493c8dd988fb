/* SPDX-License-Identifier: MIT */

/* Draws the numbers of events, and keeps the latest events. Readers take them by number, at their own speed. */

#include "base/journal/event-ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/name.h"

struct event_ring {
    char name[EVENT_RING_NAME_SIZE];
    uint64_t last;             /* BERTH_SEQ drawn last */
    struct kept_event **slots; /* of EVENT_RING_MAX, by BERTH_SEQ; NULL: nothing is kept */
    uint64_t first;            /* all from here to `last` are in slots */
    size_t bytes;
    struct list readers;       /* struct event_reader */
    size_t n_readers;
    usec_t left;               /* boottime at which the last reader left */
};

/* --- made and freed --- */

/* Returns the service's invocation id, or NULL. Children inherit INVOCATION_ID, so it counts only if the service manager
 * started this very process. */
static const char *invocation(void) {
    const char *pid = getenv("SYSTEMD_EXEC_PID"), *id = getenv("INVOCATION_ID");

    return pid && id && id_is_valid(id) && strtol(pid, NULL, 10) == getpid() ? id : NULL;
}

int event_ring_new(struct event_ring **ret) {
    struct event_ring *ring = calloc(1, sizeof(*ring));
    const char *given = invocation();
    char id[ID_TEXT_SIZE];

    if (!ring)
        return -ENOMEM;
    if (!given) {
        id_make(id);
        given = id;
    }
    memcpy(ring->name, given, EVENT_RING_NAME_SIZE - 1);
    list_init(&ring->readers);
    *ret = ring;
    return 0;
}

/* Drops the oldest event. */
static void ring_drop(struct event_ring *ring) {
    struct kept_event **slot = &ring->slots[ring->first++ % EVENT_RING_MAX];

    ring->bytes -= (*slot)->size;
    free(steal_pointer(slot));
}

static void ring_drop_before(struct event_ring *ring, uint64_t seq) {
    while (ring->first < seq)
        ring_drop(ring);
}

static void ring_forget(struct event_ring *ring) {
    ring_drop_before(ring, ring->last + 1);
    free(steal_pointer(&ring->slots));
}

struct event_ring *event_ring_free(struct event_ring *ring) {
    if (!ring)
        return NULL;
    if (ring->slots)
        ring_forget(ring);
    free(ring);
    return NULL;
}

/* --- filled --- */

uint64_t event_ring_draw(struct event_ring *ring) {
    return ++ring->last;
}

static struct kept_event *kept_event_new(uint64_t seq, enum event_type type, const char *message,
                                         const struct journal_field *fields, size_t n) {
    size_t size = sizeof(struct kept_event) + strlen(message) + 2;
    struct kept_event *event;
    char *text;

    for (size_t i = 0; i < n; i++)
        size += strlen(fields[i].name) + strlen(fields[i].value) + 2;
    event = malloc(size);
    if (!event)
        return NULL;
    text = (char *) (event + 1);
    *event = (struct kept_event) {
        .seq = seq, .realtime = clock_realtime(), .type = type, .size = size, .message = text};
    text = stpcpy(text, message) + 1;
    event->fields = text;
    for (size_t i = 0; i < n; i++) {
        text = stpcpy(text, fields[i].name);
        *text++ = '=';
        text = stpcpy(text, fields[i].value) + 1;
    }
    *text = '\0';
    return event;
}

/* Adds the event of number `last`. Slots have those from `first` to the one before it. */
static void ring_keep(struct event_ring *ring, struct kept_event *event) {
    if (!event) {
        ring_drop_before(ring, ring->last);
        ring->first = ring->last + 1;
        return;
    }
    while (ring->first < ring->last &&
           (ring->last - ring->first >= EVENT_RING_MAX || ring->bytes + event->size > EVENT_RING_BYTES))
        ring_drop(ring);
    ring->slots[ring->last % EVENT_RING_MAX] = event;
    ring->bytes += event->size;
}

void event_ring_add(struct event_ring *ring, enum event_type type, const char *message,
                    const struct journal_field *fields, size_t n) {
    if (!ring->slots)
        return;
    if (ring->n_readers == 0 && clock_boottime() >= usec_add(ring->left, EVENT_RING_KEEP)) {
        ring_drop_before(ring, ring->last);
        free(steal_pointer(&ring->slots));
        return;
    }
    ring_keep(ring, kept_event_new(ring->last, type, message, fields, n));
    list_foreach_safe(reader, &ring->readers, struct event_reader, link)
        reader->on_event(reader);
}

/* --- read --- */

int event_ring_join(struct event_ring *ring, struct event_reader *reader) {
    if (!ring->slots) {
        ring->slots = calloc(EVENT_RING_MAX, sizeof(struct kept_event *));
        if (!ring->slots)
            return -ENOMEM;
        ring->first = ring->last + 1;
        ring->bytes = 0;
    }
    list_init(&reader->link);
    list_append(&ring->readers, &reader->link);
    ring->n_readers++;
    return 0;
}

void event_ring_leave(struct event_ring *ring, struct event_reader *reader) {
    if (!reader->link.next || !list_is_linked(&reader->link))
        return;
    list_unlink(&reader->link);
    ring->n_readers--;
    ring->left = clock_boottime();
}

size_t event_ring_readers(const struct event_ring *ring) {
    return ring->n_readers;
}

const char *event_ring_name(const struct event_ring *ring) {
    return ring->name;
}

uint64_t event_ring_last(const struct event_ring *ring) {
    return ring->last;
}

uint64_t event_ring_first(const struct event_ring *ring) {
    return ring->slots ? ring->first : ring->last + 1;
}

const struct kept_event *event_ring_get(const struct event_ring *ring, uint64_t seq) {
    return ring->slots && seq >= ring->first && seq <= ring->last ? ring->slots[seq % EVENT_RING_MAX] : NULL;
}
