/* SPDX-License-Identifier: MIT */
#pragma once

/* The events of one run in the journal, and how runs end, in sentences. */

#include "base/journal/event.h"
#include "daemon/runs/run.h"

/* An event with the fields that all events of the run have. pools: memory for the text of one of them. */
struct event run_event(const struct run *run, enum event_type type, char pools[static DEMANDS_TEXT_SIZE]);
/* Writes an event of run_event() to the journal. */
#define run_log(run, event, ...) event_emit(run_events(run), (event), __VA_ARGS__)
struct events *run_events(const struct run *run);

void run_log_exited(const struct run *run, enum run_result result);
void run_log_stopping(const struct run *run,
                      enum event_type type); /* STOPPING or LEASE_LOST, with run->reason */
void run_log_stuck(const struct run *run, const char *what); /* a process that its kill has not ended */
#define RUN_SPARE_UNKNOWN INT64_MIN
/* The last process of the run ended that long before the end of its lease (negative: after). UNKNOWN: after
 * it, by an unknown time. */
void run_log_fenced(const struct run *run, int64_t spare_usec);

const char *
run_reason_text(const char *reason); /* a sentence for "lease-lost"; the reason itself if it is one */
