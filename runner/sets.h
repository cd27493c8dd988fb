/* SPDX-License-Identifier: MIT */
#pragma once

/* What the trigger of a run sets (conf/parameter.h), as fields of a message: set-0, set-1 and so on, each
 * NAME=VALUE. */

#include <stdint.h>

#include "base/message.h"
#include "conf/parameter.h"

struct sets { /* may be copied */
    uint16_t n;
    uint16_t size;                              /* of the text */
    char text[PARAMETERS_MAX * PARAMETER_SIZE]; /* the sets, each with its NUL */
};

/* Returns 0, or -EBADMSG: no trigger can set one of them (parameter_check_set()). */
int sets_parse(struct sets *ret, const struct message *m);
void sets_put(const struct sets *sets, struct message_writer *w);
/* Writes pointers into the text, and NULL behind them. Returns the list. */
char *const *sets_list(const struct sets *sets, const char *list[static PARAMETERS_MAX + 1]);
