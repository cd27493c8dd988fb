/* SPDX-License-Identifier: MIT */
#pragma once

/* Names, found by text. They have their own file because search.h, too, defines a struct entry. */

#include <stdbool.h>
#include <stddef.h>

struct audit_limit;

struct audit_name {
    const char *text; /* a copy */
    const char *host; /* borrowed; the only host on which the name has this meaning; NULL: all hosts */
    size_t index;     /* set by the caller; SIZE_MAX: not set */
    /* Of a pool. */
    const void *logged_by; /* the last entry of the host that shows its scope; NULL: none */
    bool logged_as_host;
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
void audit_names_done(struct audit_names *names);
