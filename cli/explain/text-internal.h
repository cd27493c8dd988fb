/* SPDX-License-Identifier: MIT */
#pragma once

/* The parts of the text of `berth explain`. */

#include <jansson.h>
#include <stdio.h>

#define INT "%" JSON_INTEGER_FORMAT

/* Begins a line: "  label    pool  ". Only the first line of a list has its label. */
static inline void text_begin_line(FILE *f, const char **label, const char *pool, int width) {
    fprintf(f, "  %-8s ", *label);
    if (pool)
        fprintf(f, "%-*s  ", width, pool);
    *label = "";
}

/* next.c: prints what to do where no command starts the run. silent_ms: after which a host counts as silent. */
void next_print(FILE *f, const json_t *e, json_int_t silent_ms);
