/* SPDX-License-Identifier: MIT */
#include "runner/sets.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define KEY_SIZE 16

static const char *set_key(unsigned i, char buffer[static KEY_SIZE]) {
    (void) snprintf(buffer, KEY_SIZE, "set-%u", i);
    return buffer;
}

int sets_parse(struct sets *ret, const struct message *m) {
    char key[KEY_SIZE], error[PARAMETER_ERROR_SIZE];
    const char *set;

    ret->n = ret->size = 0;
    while (ret->n < PARAMETERS_MAX && (set = message_get(m, set_key(ret->n, key)))) {
        size_t n = strlen(set) + 1;

        if (n > PARAMETER_SIZE || parameter_check_set(set, error) < 0)
            return -EBADMSG;
        memcpy(ret->text + ret->size, set, n);
        ret->size = (uint16_t) (ret->size + n);
        ret->n++;
    }
    return message_get(m, set_key(PARAMETERS_MAX, key)) ? -EBADMSG : 0;
}

void sets_put(const struct sets *sets, struct message_writer *w) {
    const char *set = sets->text;
    char key[KEY_SIZE];

    for (unsigned i = 0; i < sets->n; i++, set += strlen(set) + 1)
        message_put(w, set_key(i, key), set);
}

char *const *sets_list(const struct sets *sets, const char *list[static PARAMETERS_MAX + 1]) {
    const char *set = sets->text;

    for (unsigned i = 0; i < sets->n; i++, set += strlen(set) + 1)
        list[i] = set;
    list[sets->n] = NULL;
    return (char *const *) list;
}
