/* SPDX-License-Identifier: MIT */
#pragma once

/* The events of one run in the journal, and its end in words. */

#include "base/journal/event.h"
#include "daemon/runs/run.h"

/* Returns an event with the fields that all events of the run have. pools: memory for one of them. */
struct event run_event(const struct run *run, enum event_type type, char pools[static DEMANDS_TEXT_SIZE]);
/* Writes an event of run_event() to the journal. */
#define run_log(run, event, ...) event_emit(run_events(run), (event), __VA_ARGS__)
struct events *run_events(const struct run *run);

void run_log_exited(const struct run *run, enum run_result result);
/* type: STOPPING or LEASE_LOST. The event has run->reason. */
void run_log_stopping(const struct run *run, enum event_type type);
void run_log_guard_silent(const struct run *run, const char *what); /* its guard does not answer */
void run_log_stuck(const struct run *run, const char *what); /* a process that survived its kill */
#define RUN_SPARE_UNKNOWN INT64_MIN
/* spare: how long before the end of the lease the last process ended. Negative: after; UNKNOWN: after, by an
 * unknown time. */
void run_log_fenced(const struct run *run, int64_t spare_usec);

/* Returns a sentence for a word like "lease-lost". A reason that is a sentence stays as it is. */
const char *run_reason_text(const char *reason);
