/* SPDX-License-Identifier: MIT */
#include "store/redis/client/command.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(struct redis_command *command) {
    size_t size = 2 * command->size;
    char **items;

    if (command->n < command->size)
        return true;
    if (command->size == 0) {
        command->items = command->inline_items;
        command->size = COMMAND_ITEMS_INLINE;
        return true;
    }
    items = reallocarray(command->items == command->inline_items ? NULL : command->items, size, sizeof(*items));
    if (!items)
        return false;
    if (command->items == command->inline_items)
        memcpy(items, command->inline_items, sizeof(command->inline_items));
    command->items = items;
    command->size = size;
    return true;
}

static void append(struct redis_command *command, const char *text, size_t length) {
    char *copy = NULL;

    if (command->failed)
        return;
    if (make_room(command)) {
        if (length < sizeof(command->buffer) - command->used) {
            copy = command->buffer + command->used;
            command->used += length + 1;
        } else {
            copy = malloc(length + 1);
        }
    }
    if (!copy) {
        command->failed = true;
        return;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    command->items[command->n++] = copy;
}

void command_add(struct redis_command *command, const char *text) {
    append(command, text, strlen(text));
}

void command_add_u64(struct redis_command *command, uint64_t number) {
    char text[24];
    size_t at = sizeof(text);

    do {
        text[--at] = (char) ('0' + number % 10);
        number /= 10;
    } while (number > 0);
    append(command, text + at, sizeof(text) - at);
}

int command_check(const struct redis_command *command) {
    return command->failed ? -ENOMEM : 0;
}

static bool is_inside(const struct redis_command *command, const char *text) {
    return text >= command->buffer && text < command->buffer + sizeof(command->buffer);
}

void command_done(struct redis_command *command) {
    for (size_t i = 0; i < command->n; i++)
        if (!is_inside(command, command->items[i]))
            free(command->items[i]);
    if (command->items != command->inline_items)
        free(command->items);
    command->items = NULL;
    command->n = command->size = command->used = 0;
    command->failed = false;
}
