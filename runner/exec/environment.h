/* SPDX-License-Identifier: MIT */
#pragma once

/* A list of variables as execve(2) takes it, and the text of an environment-file. No I/O. */

#include <stddef.h>

#define ENVIRONMENT_FILE_MAX 65536 /* bytes */

struct environment { /* begin with {} */
    char **items;    /* NAME=value, NULL-terminated; NULL: none yet */
    size_t n;
};

/* Add a variable or replace the one of that name. Return 0 or -ENOMEM. */
int environment_add(struct environment *e, const char *entry); /* "NAME=value" */
int environment_set(struct environment *e, const char *name, const char *value);
void environment_done(struct environment *e);

struct environment_error {
    unsigned line;       /* from 1 */
    const char *problem; /* static */
};

/* Adds the lines NAME=VALUE of a text. A value is the rest of the line, without quotes that surround all of
 * it; nothing else in it is special. Blank lines and lines that begin with '#' are skipped. Returns 0,
 * -ENOMEM, or -EBADMSG: a line has another form, and only the lines before it were added. */
int environment_parse(struct environment *e, const char *text, size_t size,
                      struct environment_error *ret_error);
