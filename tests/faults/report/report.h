/* SPDX-License-Identifier: MIT */
#pragma once

/* Collects the results of cases and writes doc/faults.md. */

#include "tests/faults/fault.h"

struct report_row {
    char name[64];
    unsigned cases, failed, injected, hits;
    unsigned unproved, broken; /* cases whose journals do not prove the rules; those that break one on purpose */
    uint64_t runs, overlaps, worst_overlap, longest_idle;
};

struct report_doubt { /* what `berth audit` could not prove of cases of this name, for this reason */
    char name[64], why[128];
    unsigned n, cases;
};

struct report {
    uint64_t seed, mixes;
    usec_t since;
    struct report_row rows[512];
    size_t n;
    struct report_doubt doubts[256];
    size_t n_doubts;
    usec_t *margins;
    size_t n_margins;
    unsigned again;   /* cases run once more because the machine stood still */
    uint64_t doubled, lost, jobs;
};

/* Gives the name the next row. */
void report_expect(struct report *r, const char *name);
/* text: output of a case. */
void report_add(struct report *r, const char *name, bool ok, const char *text);
void report_print(const struct report *r);
/* Returns 0 or a negative errno, printed. */
int report_write(struct report *r, const char *path);
void report_done(struct report *r);
