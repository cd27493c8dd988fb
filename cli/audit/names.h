/* SPDX-License-Identifier: MIT */
#pragma once

/* Names that the audit has heard of, found by text. (A module of its own, because search.h has a struct entry, too.) */

#include <stdbool.h>
#include <stddef.h>

struct audit_limit;

struct audit_name {
    const char *text; /* a copy */
    const char *host; /* on which it is told of apart from others; NULL: on all. The caller's */
    size_t index;     /* of what has that name among the caller's; SIZE_MAX: not set */
    /* Of a pool. */
    const void *told_by;             /* the last entry of the host that tells what it is; NULL: none does */
    bool told_as_host;
    const struct audit_limit *given; /* by the user; these two: where host is NULL */
    bool given_as_host;
};

struct audit_names {
    void *tree;
};

/* NULL: not heard of. */
struct audit_name *audit_names_find(const struct audit_names *names, const char *text, const char *host);
/* Or finds it; NULL: out of memory. */
struct audit_name *audit_names_add(struct audit_names *names, const char *text, const char *host);
void audit_names_done(struct audit_names *names);
