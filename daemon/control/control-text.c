/* SPDX-License-Identifier: MIT */

/* The texts of messages. Several clients may share one, and each piece is freed when all of them have it. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/control-internal.h"

#define PIECE_MIN ((size_t) 512)
#define PIECE_MAX ((size_t) 64 * 1024)

/* Adds a piece twice as large as the last one. -1: no memory. */
static int add_piece(struct control_text *t) {
    size_t room = !t->last ? PIECE_MIN : t->last->room < PIECE_MAX ? 2 * t->last->room : PIECE_MAX;
    struct control_piece *p = t->failed ? NULL : malloc(sizeof(*p) + room);

    if (!p) {
        t->failed = true;
        return -1;
    }
    *p = (struct control_piece){.n_refs = 1, .room = room};
    *(t->last ? &t->last->next : &t->first) = p;
    t->last = p;
    return 0;
}

static int add(const char *bytes, size_t size, void *userdata) {
    struct control_text *t = userdata;

    while (size > 0) {
        size_t room = t->last ? t->last->room - t->last->size : 0, n = size < room ? size : room;

        if (n == 0 && add_piece(t) < 0)
            return -1;
        if (n == 0)
            continue;
        memcpy(t->last->bytes + t->last->size, bytes, n);
        t->last->size += n;
        t->size += n;
        bytes += n;
        size -= n;
    }
    return 0;
}

/* jansson ignores some failures of its callback, so add() remembers them. */
struct control_text *control_text_of(const json_t *document) {
    struct control_text *t = calloc(1, sizeof(*t));

    if (!t || (json_dump_callback(document, add, t, JSON_COMPACT) == 0 && add("", 1, t) == 0 && !t->failed))
        return t;
    return control_text_free(t);
}

/* --- written by a method --- */

static ssize_t on_write(void *cookie, const char *bytes, size_t size) {
    return add(bytes, size, cookie) < 0 ? 0 : (ssize_t) size;
}

/* open_memstream() would copy the text whenever it grows, and touch twice the memory. */
struct control_text *control_text_new(bool continues, FILE **ret_members) {
    struct control_text *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->continues = continues;
    t->f = fopencookie(t, "w", (cookie_io_functions_t){.write = on_write});
    if (!t->f)
        return control_text_free(t);
    (void) fputs("{\"parameters\":{", t->f);
    *ret_members = t->f;
    return t;
}

int control_text_finish(struct control_text *t) {
    (void) fputs(t->continues ? "},\"continues\":true}" : "}}", t->f);
    (void) fputc('\0', t->f);
    if (fclose(steal_pointer(&t->f)) != 0)
        t->failed = true;
    return t->failed ? -ENOMEM : 0;
}

struct control_text *control_text_free(struct control_text *t) {
    if (!t)
        return NULL;
    if (t->f)
        (void) fclose(t->f);
    control_piece_unref(t->first);
    free(t);
    return NULL;
}

/* --- pieces --- */

struct control_piece *control_piece_ref(struct control_piece *p) {
    p->n_refs++;
    return p;
}

struct control_piece *control_piece_unref(struct control_piece *p) {
    while (p && --p->n_refs == 0) {
        struct control_piece *next = p->next;

        free(p);
        p = next;
    }
    return NULL;
}
