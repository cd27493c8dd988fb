/* SPDX-License-Identifier: MIT */

/* The texts of messages. Several clients may share one. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/control-internal.h"

#define ROOM_BYTES ((size_t) 512)

static int add(const char *bytes, size_t size, void *userdata) {
    struct control_text *t = userdata;
    size_t room = t->room ? t->room : ROOM_BYTES;
    char *data = t->data;

    while (room < t->size + size)
        room *= 2;
    if (room != t->room)
        data = t->failed ? NULL : realloc(t->data, room);
    if (!data) {
        t->failed = true;
        return -1;
    }
    memcpy(data + t->size, bytes, size);
    t->data = data;
    t->size += size;
    t->room = room;
    return 0;
}

static struct control_text *new(void) {
    struct control_text *t = calloc(1, sizeof(*t));

    if (t)
        t->n_refs = 1;
    return t;
}

/* jansson ignores some failures of its callback, so add() remembers them. */
struct control_text *control_text_of(const json_t *document) {
    struct control_text *t = new();

    if (!t || (json_dump_callback(document, add, t, JSON_COMPACT) == 0 && add("", 1, t) == 0 && !t->failed))
        return t;
    return control_text_unref(t);
}

/* --- written by a method --- */

static ssize_t on_write(void *cookie, const char *bytes, size_t size) {
    return add(bytes, size, cookie) < 0 ? 0 : (ssize_t) size;
}

/* open_memstream() would copy the text whenever it grows, and touch twice the memory. */
struct control_text *control_text_new(bool continues, FILE **ret_members) {
    struct control_text *t = new();

    if (!t)
        return NULL;
    t->continues = continues;
    t->f = fopencookie(t, "w", (cookie_io_functions_t){.write = on_write});
    if (!t->f)
        return control_text_unref(t);
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

/* --- references --- */

struct control_text *control_text_ref(struct control_text *t) {
    t->n_refs++;
    return t;
}

struct control_text *control_text_unref(struct control_text *t) {
    if (!t || --t->n_refs > 0)
        return NULL;
    if (t->f)
        (void) fclose(t->f);
    free(t->data);
    free(t);
    return NULL;
}
