/* SPDX-License-Identifier: MIT */
#pragma once

/* Names, found by text. names.c alone includes <search.h>, which defines another struct entry. */

#include <stdbool.h>
#include <stddef.h>

struct audit_limit;

struct audit_scope { /* of a pool on a host, from this entry on */
    size_t order; /* in the log */
    bool is_host;
};

struct audit_name {
    const char *text; /* a copy */
    const char *host; /* borrowed; the only host on which the name has this meaning; NULL: all hosts */
    size_t index;     /* set by the caller; SIZE_MAX: not set */
    /* Of a pool. */
    struct audit_scope *scopes; /* as the host's entries show them; owned */
    size_t n_scopes;
    size_t named_by; /* order of the last entry of the host that shows its scope; 0: none */
    const struct audit_limit *given; /* by the user; these two only if host is NULL */
    bool given_as_host;
};

struct audit_names {
    void *tree;
};

/* Returns NULL if the name is not known. */
struct audit_name *audit_names_find(const struct audit_names *names, const char *text, const char *host);
/* Finds or adds; NULL: out of memory. */
struct audit_name *audit_names_add(struct audit_names *names, const char *text, const char *host);
/* Notes that the entry at this place of the log shows this scope, unless it has shown one before. 0 or -ENOMEM. */
int audit_name_add_scope(struct audit_name *name, size_t order, bool is_host);
/* Returns whether the scope is host at this place of the log. Before the first entry that shows a scope, that
 * scope counts. The name has at least one. */
bool audit_name_is_host(const struct audit_name *name, size_t order);
void audit_names_done(struct audit_names *names);
