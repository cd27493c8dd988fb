/* SPDX-License-Identifier: MIT */

#include "tests/harness/tzif.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(FILE *f, uint64_t value, unsigned n) {
    while (n-- > 0)
        fputc(n < 8 ? (int) (value >> (8 * n) & 0xff) : 0, f);
}

static void put_header(FILE *f, const struct tzif *t, size_t n_times, size_t n_types, size_t n_leaps) {
    fwrite("TZif", 1, 4, f);
    fputc(t->version ? t->version : '2', f);
    put(f, 0, 15 - 8);
    put(f, 0, 8);
    put(f, 0, 4); /* UTC marks */
    put(f, 0, 4); /* standard marks */
    put(f, n_leaps, 4);
    put(f, n_times, 4);
    put(f, n_types, 4);
    put(f, 4, 4);
}

static void put_type(FILE *f, int32_t offset) {
    put(f, (uint32_t) offset, 4);
    put(f, 0, 2);
}

uint8_t *tzif_make(const struct tzif *t, size_t *ret_size) {
    char *text = NULL;
    FILE *f = open_memstream(&text, ret_size);

    if (!f)
        exit(1);
    put_header(f, t, 0, 1, 0); /* the block that is skipped */
    put_type(f, 0);
    fwrite("XXX", 1, 4, f);
    put_header(f, t, t->n_times, t->n_times + 1, t->leaps);
    for (size_t i = 0; i < t->n_times; i++)
        put(f, (uint64_t) t->times[i], 8);
    for (size_t i = 0; i < t->n_times; i++)
        fputc((int) i + 1, f);
    put_type(f, t->first_offset);
    for (size_t i = 0; i < t->n_times; i++)
        put_type(f, t->offsets[i]);
    fwrite("XXX", 1, 4, f);
    for (uint32_t i = 0; i < t->leaps; i++)
        put(f, 0, 12);
    fprintf(f, "\n%s\n", t->footer ? t->footer : "");
    if (fclose(f) != 0)
        exit(1);
    return (uint8_t *) text;
}
