/* SPDX-License-Identifier: MIT */
#pragma once

/* Calls that fail, for test programs whose name ends in -wrap: the "wrap:" line at their top lists the names that the linker sends
 * to __wrap_NAME() (Makefile). Only calls from berth's own objects are, not those within libraries. */

#include <errno.h>
#include <stdbool.h>

enum fault_kind { FAULT_MEMORY, FAULT_ZEROED_MEMORY, FAULT_DESCRIPTOR };

static struct {
    enum fault_kind kind;
    unsigned n, from, count; /* calls of this kind so far; those from `from` on (1: the first) fail, so many; count 0: none does */
} fault;

static inline void fault_begin(enum fault_kind kind, unsigned from, unsigned count) {
    fault.kind = kind;
    fault.n = 0;
    fault.from = from;
    fault.count = count;
}

static inline bool fault_is_met(void) {
    return fault.n >= fault.from;
}

/* Ends the fault. Returns whether there were so many calls that the first failure was among them. */
static inline bool fault_end(void) {
    fault.count = 0;
    return fault_is_met();
}

static inline bool fault_meets(enum fault_kind kind) {
    if (kind != fault.kind || fault.count == 0 || ++fault.n < fault.from || fault.n >= fault.from + fault.count)
        return false;
    errno = kind == FAULT_DESCRIPTOR ? EMFILE : ENOMEM;
    return true;
}

/* type NAME(parameters), which returns value where it fails. */
#define WRAP(kind, value, type, name, parameters, arguments)                              \
    type __real_##name parameters;                                                        \
    type __wrap_##name parameters;                                                        \
    type __wrap_##name parameters {                                                       \
        return fault_meets(kind) ? (type) (value) : __real_##name arguments;              \
    }
