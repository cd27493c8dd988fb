/* SPDX-License-Identifier: MIT */
#include "cli/audit/names.h"

#include <errno.h>
#include <search.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

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

int audit_name_add_scope(struct audit_name *name, size_t order, bool is_host) {
    bool is_known = name->named_by == order || (name->n_scopes > 0 && name->scopes[name->n_scopes - 1].is_host == is_host);

    name->named_by = order;
    if (is_known)
        return 0;
    if (!array_grow(name->scopes, name->n_scopes))
        return -ENOMEM;
    name->scopes[name->n_scopes++] = (struct audit_scope) {order, is_host};
    return 0;
}

bool audit_name_is_host(const struct audit_name *name, size_t order) {
    size_t i = name->n_scopes - 1;

    while (i > 0 && name->scopes[i].order > order)
        i--;
    return name->scopes[i].is_host;
}

static void free_name(void *name) {
    free(((struct audit_name *) name)->scopes);
    free(name);
}

void audit_names_done(struct audit_names *names) {
    tdestroy(names->tree, free_name);
    names->tree = NULL;
}
