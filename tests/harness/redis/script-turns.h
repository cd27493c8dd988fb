/* SPDX-License-Identifier: MIT */
#pragma once

/* Calls of the scripts of turns. Pool @b, with one permit, belongs to a job that s1 and s2 define. */

#include "tests/harness/redis/script.h"

#define TAKEN "ok $ 0 H * * * 0 * " /* the reply to a turn that is granted, up to the attempt */

/* As script_begin() and script_end(), with two sessions that declare @b. */
void script_begin_turns(void);
void script_end_turns(void);
/* Returns the due time that is this many seconds after Redis's time of script_begin_turns(). */
uint64_t script_due_in(int64_t after);
/* Calls the script turn; overlap: "skip", "queue", "allow". */
const char *script_turn_as(const char *session, const char *id, uint64_t due, const char *overlap);
const char *script_turn(const char *session, const char *id, uint64_t due);
/* Calls the script turned. */
const char *script_turned(const char *session, const char *words);
