/* SPDX-License-Identifier: MIT */
#include "web/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/pool-name.h"

#define PARTS_MAX 5 /* of one frame for one reader */

struct part { /* a text that readers share */
    unsigned n_refs;
    size_t size;
    char data[];
};

struct channel { /* one pool whose claims somebody follows */
    struct list link;
    char pool[POOL_NAME_SIZE];
    unsigned n_readers;
    uint64_t version;  /* number of the frame in which the text last changed */
    struct part *part; /* NULL: not made yet */
};

struct reader {
    struct list link;
    struct stream *stream;
    struct channel *channel; /* NULL: none */
    uint64_t frame, version; /* the last ones read, of the board and of its channel; 0: none */
    struct part *parts[PARTS_MAX];
    size_t n_parts, i_part, offset; /* of the frame that it is reading */
    usec_t begun;
    bool waits;
    void (*wake)(void *userdata);
    void *userdata;
};

struct stream {
    const struct board *board;
    uint64_t frame; /* number of the newest */
    struct part *changes, *events, *gone; /* of the newest frame; NULL: nothing */
    struct part *whole, *latest;          /* made for the first reader that needs them */
    struct list readers, channels;        /* struct reader, struct channel */
    unsigned n_readers;
};

/* --- parts --- */

static struct part *part_unref(struct part *p) {
    if (p && --p->n_refs == 0)
        free(p);
    return NULL;
}

static struct part *part_ref(struct part *p) {
    if (p)
        p->n_refs++;
    return p;
}

/* json: stolen; NULL: no part. Returns NULL also without memory; the next frame is whole again. */
static struct part *part_new(uint64_t frame, const char *event, json_t *json) {
    char head[64];
    int n_head = snprintf(head, sizeof(head), "id: %" PRIu64 "\nevent: %s\ndata: ", frame, event);
    size_t n = json ? json_dumpb(json, NULL, 0, JSON_COMPACT) : 0;
    struct part *p = n > 0 ? malloc(sizeof(*p) + (size_t) n_head + n + 2) : NULL;

    if (p) {
        p->n_refs = 1;
        memcpy(p->data, head, (size_t) n_head);
        (void) json_dumpb(json, p->data + n_head, n, JSON_COMPACT);
        memcpy(p->data + n_head + n, "\n\n", 2);
        p->size = (size_t) n_head + n + 2;
    }
    json_decref(json);
    return p;
}

/* --- channels --- */

static struct channel *channel_find(struct stream *s, const char *pool) {
    list_foreach(c, &s->channels, struct channel, link)
        if (strcmp(c->pool, pool) == 0)
            return c;
    return NULL;
}

static bool is_same_text(const struct part *a, const struct part *b) {
    const char *x = memchr(a->data, '\n', a->size), *y = memchr(b->data, '\n', b->size); /* after the id */
    size_t n = a->size - (size_t) (x - a->data);

    return n == b->size - (size_t) (y - b->data) && memcmp(x, y, n) == 0;
}

static void channel_make(struct channel *c, struct stream *s) {
    json_t *pool = board_pool(s->board, c->pool);
    struct part *part = part_new(s->frame, "pool", pool ? pool : json_pack("{s:s, s:b}", "name", c->pool, "unknown", true));

    if (part && (!c->part || !is_same_text(part, c->part))) {
        part_unref(c->part);
        c->part = part;
        c->version = s->frame;
    } else {
        part_unref(part);
    }
}

/* Makes the channels at the head of the list and moves them to its end, so that all have their turn. */
static void make_channels(struct stream *s) {
    for (unsigned i = 0; i < STREAM_DETAILS_MAX && !list_is_empty(&s->channels); i++) {
        struct channel *c = list_first(&s->channels, struct channel, link);

        channel_make(c, s);
        list_unlink(&c->link);
        list_append(&s->channels, &c->link);
    }
}

static void channel_leave(struct channel *c) {
    if (!c || --c->n_readers > 0)
        return;
    list_unlink(&c->link);
    part_unref(c->part);
    free(c);
}

static int channel_join(struct stream *s, const char *pool, struct channel **ret) {
    struct channel *c = channel_find(s, pool);

    if (!c) {
        c = calloc(1, sizeof(*c));
        if (!c)
            return -ENOMEM;
        (void) snprintf(c->pool, sizeof(c->pool), "%s", pool);
        list_append(&s->channels, &c->link);
        channel_make(c, s);
    }
    c->n_readers++;
    *ret = c;
    return 0;
}

/* --- frames --- */

int stream_new(struct stream **ret, const struct board *board) {
    struct stream *s = calloc(1, sizeof(*s));

    if (!s)
        return -ENOMEM;
    s->board = board;
    s->frame = 1;
    list_init(&s->readers);
    list_init(&s->channels);
    *ret = s;
    return 0;
}

static void drop_frame(struct stream *s) {
    s->changes = part_unref(s->changes);
    s->events = part_unref(s->events);
    s->gone = part_unref(s->gone);
    s->whole = part_unref(s->whole);
    s->latest = part_unref(s->latest);
}

struct stream *stream_free(struct stream *s) {
    if (!s)
        return NULL;
    drop_frame(s);
    free(s);
    return NULL;
}

void stream_make_frame(struct stream *s) {
    drop_frame(s);
    s->frame++;
    if (s->n_readers == 0)
        return;
    s->gone = part_new(s->frame, "gone", board_gone(s->board));
    if (!s->gone)
        s->changes = part_new(s->frame, "overview", board_changes(s->board));
    s->events = part_new(s->frame, "event", board_new_events(s->board));
    make_channels(s);
    list_foreach_safe(r, &s->readers, struct reader, link)
        if (r->waits) {
            r->waits = false;
            r->wake(r->userdata);
        }
}

unsigned stream_readers(const struct stream *s) {
    return s->n_readers;
}

/* --- readers --- */

int reader_new(struct reader **ret, struct stream *s, const char *pool, void (*wake)(void *userdata), void *userdata) {
    struct reader *r;
    int k;

    if (s->n_readers >= STREAM_READERS_MAX)
        return -EUSERS;
    r = calloc(1, sizeof(*r));
    if (!r)
        return -ENOMEM;
    k = *pool ? channel_join(s, pool, &r->channel) : 0;
    if (k < 0) {
        free(r);
        return k;
    }
    r->stream = s;
    r->wake = wake;
    r->userdata = userdata;
    list_append(&s->readers, &r->link);
    s->n_readers++;
    *ret = r;
    return 0;
}

static void drop_parts(struct reader *r) {
    for (size_t i = 0; i < r->n_parts; i++)
        part_unref(r->parts[i]);
    r->n_parts = r->i_part = r->offset = 0;
}

struct reader *reader_free(struct reader *r) {
    if (!r)
        return NULL;
    drop_parts(r);
    channel_leave(r->channel);
    list_unlink(&r->link);
    r->stream->n_readers--;
    free(r);
    return NULL;
}

static void add_part(struct reader *r, struct part *part) {
    if (part)
        r->parts[r->n_parts++] = part_ref(part);
}

/* Takes the next frame for a reader. Frames are not kept: a reader that missed one gets the whole board. */
static void take_frame(struct reader *r) {
    struct stream *s = r->stream;
    bool is_next = r->frame > 0 && s->frame == r->frame + 1;

    if (r->frame == s->frame)
        return;
    if (!is_next && !s->whole)
        s->whole = part_new(s->frame, "overview", board_overview(s->board));
    if (!is_next && !s->latest)
        s->latest = part_new(s->frame, "event", board_latest_events(s->board));
    add_part(r, is_next ? s->changes : s->whole);
    add_part(r, s->gone);
    if (r->channel && r->version != r->channel->version) {
        add_part(r, r->channel->part);
        r->version = r->channel->version;
    }
    add_part(r, is_next ? s->events : s->latest);
    r->frame = s->frame;
    r->begun = clock_boottime();
}

ssize_t reader_read(struct reader *r, char *buffer, size_t size) {
    size_t n = 0;

    if (r->n_parts > 0 && clock_boottime() - r->begun > STREAM_TAKE_TIME)
        return -ETIME;
    if (r->n_parts == 0)
        take_frame(r);
    while (r->i_part < r->n_parts && n < size) {
        const struct part *part = r->parts[r->i_part];
        size_t left = part->size - r->offset, taken = left < size - n ? left : size - n;

        memcpy(buffer + n, part->data + r->offset, taken);
        n += taken;
        r->offset += taken;
        if (r->offset == part->size) {
            r->i_part++;
            r->offset = 0;
        }
    }
    if (r->i_part == r->n_parts)
        drop_parts(r);
    r->waits = n == 0;
    return (ssize_t) n;
}
