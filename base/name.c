/* SPDX-License-Identifier: MIT */
#include "base/name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define NAME_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

bool name_is_valid(const char *text) {
    size_t n = strspn(text, NAME_CHARACTERS);

    return n > 0 && n <= NAME_MAX_LENGTH && text[n] == '\0' && text[0] != '.' && text[0] != '-';
}

const char *name_explain(const char *text) {
    size_t n = strspn(text, NAME_CHARACTERS);

    if (text[0] == '\0')
        return "is empty";
    if (text[n] == ' ')
        return "has a space";
    if (text[n] != '\0')
        return "has a character that is not one of A-Z a-z 0-9 . _ -";
    if (text[0] == '.' || text[0] == '-')
        return "begins with '.' or '-'";
    return "is longer than 64 characters";
}

void name_copy_first(const char *text, size_t length, char ret[static NAME_FIRST_SIZE]) {
    (void) snprintf(ret, NAME_FIRST_SIZE, "%.*s", length > NAME_MAX_LENGTH ? NAME_MAX_LENGTH + 1 : (int) length, text);
}

bool id_is_valid(const char *text) {
    return strspn(text, "0123456789abcdef") == ID_TEXT_SIZE - 1 && text[ID_TEXT_SIZE - 1] == '\0';
}

bool id_prefix_is_valid(const char *text) {
    size_t n = strspn(text, "0123456789abcdef");

    return n >= ID_PREFIX_MIN && n < ID_TEXT_SIZE && text[n] == '\0';
}

bool id_begins_with(const char *id, const char *text) {
    return id_prefix_is_valid(text) && strncmp(id, text, strlen(text)) == 0;
}

void id_make(char ret[static ID_TEXT_SIZE]) {
    unsigned char bytes[(ID_TEXT_SIZE - 1) / 2];
    ssize_t n;

    /* Requests of up to 256 bytes are never cut short (getrandom(2)). */
    do
        n = getrandom(bytes, sizeof(bytes), 0);
    while (n < 0 && errno == EINTR);
    if (n < 0) { /* only if a filter of system calls forbids it */
        (void) dprintf(STDERR_FILENO, "no random number for an id, exiting: %s\n", strerror(errno));
        _exit(70);
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        ret[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
        ret[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
    }
    ret[ID_TEXT_SIZE - 1] = '\0';
}
