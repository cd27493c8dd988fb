/* SPDX-License-Identifier: MIT */
#pragma once

/* One check of `berth doctor` at a time, on facts that a test makes up. */

#include "cli/doctor/doctor.h"

extern struct facts doctor_facts;
extern struct report doctor_findings; /* of the last check */

/* Begins without facts, on a machine without files, at 2025-11-20T12:00:00Z. */
void check_begin(void);
/* Replaces a reply. json: with ' for ". */
void check_set(json_t **reply, const char *json);
/* Calls a check; its only finding begins with this text. */
void check_finds(void (*check)(const struct facts *f, struct report *r), enum severity severity,
                 const char *text);
void check_finds_nothing(void (*check)(const struct facts *f, struct report *r));
/* Frees the facts and the report. */
void check_done(void);
