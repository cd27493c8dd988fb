/* SPDX-License-Identifier: MIT */

/* Bounds the elements, depth and size of whole replies and pushes. reply.c bounds single values. */

#include "store/redis/client/reply-bounds.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "store/redis/client/compat.h"

/* The largest replies are those of `sync` and `hello`, which name claims and limits. */
const struct redis_bounds redis_bounds_reply  = {.elements = 65536, .depth = 6, .size = (size_t) 16 << 20};
const struct redis_bounds redis_bounds_push = {.elements = 16, .depth = 2, .size = (size_t) 64 << 10};

static redisReplyObjectFunctions defaults, bounded;

/* The first task of a reply has no parent. */
static struct redis_meter *meter_of(const redisReadTask *task) {
    struct redis_meter *m = task->privdata;

    if (!task->parent)
        m->elements = m->size = 0;
    return m;
}

static void *create_array(const redisReadTask *task, redis_elements n) {
    struct redis_meter *m = meter_of(task);
    size_t depth = 1;

    for (const redisReadTask *t = task->parent; t; t = t->parent)
        depth++;
    if (depth > m->bounds->depth) {
        (void) snprintf(m->excess, sizeof(m->excess), "lists more than %zu deep", m->bounds->depth);
        return NULL;
    }
    if (n > 0 && (size_t) n > m->bounds->elements - m->elements) {
        (void) snprintf(m->excess, sizeof(m->excess), "more than %zu elements", m->bounds->elements);
        return NULL;
    }
    m->elements += n > 0 ? (size_t) n : 0;
    return defaults.createArray(task, n);
}

static void note_size(struct redis_meter *m) {
    (void) snprintf(m->excess, sizeof(m->excess), "more than %zu KiB", m->bounds->size >> 10);
}

static void *create_string(const redisReadTask *task, char *text, size_t length) {
    struct redis_meter *m = meter_of(task);

    if (length > m->bounds->size - m->size) {
        note_size(m);
        return NULL;
    }
    m->size += length;
    return defaults.createString(task, text, length);
}

void redis_meter_attach(struct redis_meter *m, redisReader *reader) {
    if (!defaults.createArray) {
        defaults = bounded = *reader->fn;
        bounded.createArray = create_array;
        bounded.createString = create_string;
    }
    reader->fn = &bounded;
    reader->privdata = m;
}

static bool is_over(struct redis_meter *m, const redisReader *reader) {
    if (reader->len - reader->pos <= m->bounds->size)
        return false;
    note_size(m);
    return true;
}

int redis_meter_next(struct redis_meter *m, redisReader *reader, redisReply **ret, char *text, size_t size) {
    void *reply = NULL;
    bool is_read = redisReaderGetReply(reader, &reply) == REDIS_OK;

    *ret = reply;
    if (is_read && reply)
        return 1;
    if (is_read && !is_over(m, reader))
        return 0;
    if (m->excess[0])
        (void) snprintf(text, size, "Redis answered %s, closing the connection", m->excess);
    else
        (void) snprintf(text, size, "%s", reader->errstr);
    return -EBADMSG;
}
