/* SPDX-License-Identifier: MIT */
#include "cli/audit/names.h"

#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int compare_names(const void *a, const void *b) {
    const struct audit_name *x = a, *y = b;
    int c = strcmp(x->text, y->text);

    return c != 0 ? c : x->host && y->host ? strcmp(x->host, y->host) : (x->host != NULL) - (y->host != NULL);
}

struct audit_name *audit_names_find(const struct audit_names *names, const char *text, const char *host) {
    struct audit_name key = {.text = text, .host = host}, **found = tfind(&key, &names->tree, compare_names);

    return found ? *found : NULL;
}

struct audit_name *audit_names_add(struct audit_names *names, const char *text, const char *host) {
    struct audit_name *name = audit_names_find(names, text, host);
    size_t size = strlen(text) + 1;

    if (name)
        return name;
    name = malloc(sizeof(*name) + size);
    if (!name)
        return NULL;
    *name = (struct audit_name) {.text = memcpy(name + 1, text, size), .host = host, .index = SIZE_MAX};
    if (tsearch(name, &names->tree, compare_names))
        return name;
    free(name);
    return NULL;
}

void audit_names_done(struct audit_names *names) {
    tdestroy(names->tree, free);
    names->tree = NULL;
}
