/* SPDX-License-Identifier: MIT */
#include "runner/sets.h"

#include <errno.h>
#include <string.h>

int sets_parse(struct sets *ret, const struct message *m) {
    char error[PARAMETER_ERROR_SIZE];
    const char *set;

    ret->n = ret->size = 0;
    while (ret->n < PARAMETERS_MAX && (set = message_get_nth(m, "set", ret->n))) {
        size_t n = strlen(set) + 1;

        if (n > PARAMETER_SIZE || parameter_check_set(set, error) < 0)
            return -EBADMSG;
        memcpy(ret->text + ret->size, set, n);
        ret->size = (uint16_t) (ret->size + n);
        ret->n++;
    }
    return message_get_nth(m, "set", PARAMETERS_MAX) ? -EBADMSG : 0;
}

void sets_put(const struct sets *sets, struct message_writer *w) {
    const char *set = sets->text;

    for (unsigned i = 0; i < sets->n; i++, set += strlen(set) + 1)
        message_put_nth(w, "set", i, set);
}

char *const *sets_list(const struct sets *sets, const char *list[static PARAMETERS_MAX + 1]) {
    const char *set = sets->text;

    for (unsigned i = 0; i < sets->n; i++, set += strlen(set) + 1)
        list[i] = set;
    list[sets->n] = NULL;
    return (char *const *) list;
}
