/* SPDX-License-Identifier: MIT */
#pragma once

/* A list of variables as execve(2) takes it, and the text of an environment-file. No I/O. */

#include <stddef.h>

#define ENVIRONMENT_FILE_MAX 65536 /* bytes */

struct environment { /* begin with {} */
    char **items;    /* NAME=value, NULL-terminated; NULL: none yet */
    size_t n;
};

/* Add a variable, in the place of an earlier one of that name. 0 or -ENOMEM. */
int environment_add(struct environment *e, const char *entry); /* "NAME=value" */
int environment_set(struct environment *e, const char *name, const char *value);
void environment_done(struct environment *e);

struct environment_error {
    unsigned line;       /* from 1 */
    const char *problem; /* static */
};

/* Adds the lines NAME=VALUE of a text. A value is what follows '=' up to the end of the line, as it stands,
 * but without quotes that surround all of it. Blank lines and lines that begin with '#' are skipped. 0;
 * -ENOMEM; or -EBADMSG: a line is something else, and the lines before it were added. */
int environment_parse(struct environment *e, const char *text, size_t size,
                      struct environment_error *ret_error);
