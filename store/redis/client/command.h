/* SPDX-License-Identifier: MIT */
#pragma once

/* The arguments of one Redis command while it is composed. A usual command needs no allocation: its arguments are stored in the
 * struct itself, so the struct must not be copied. An allocation that fails is remembered and reported by command_check(). */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

#define COMMAND_ITEMS_INLINE 32
#define COMMAND_BYTES_INLINE 640

struct redis_command {
    char **items;
    size_t n, size;                           /* number of arguments; capacity of `items` */
    bool failed;
    size_t used;                              /* bytes of `buffer` */
    char *inline_items[COMMAND_ITEMS_INLINE]; /* `items` of a short command */
    char buffer[COMMAND_BYTES_INLINE];        /* texts of a short command */
};

void command_add(struct redis_command *command, const char *text); /* copied */
void command_add_u64(struct redis_command *command, uint64_t number);
/* 0, or -ENOMEM if an argument could not be added. */
int command_check(const struct redis_command *command);
void command_done(struct redis_command *command);
#define _cleanup_command_ _cleanup_(command_done)
