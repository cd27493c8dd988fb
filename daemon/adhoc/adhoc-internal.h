/* SPDX-License-Identifier: MIT */
#pragma once

/* Shared by adhoc.c (the hold of a run, from its start to its end) and client.c (the clients); not included
 * elsewhere. */

#include "base/timer.h"
#include "daemon/adhoc/adhoc.h"

struct adhoc {
    sd_event *event;
    struct journal *journal;
    struct run_table *runs;
    const struct state *state;
    struct adhoc_options options;
    struct adhoc_handler handler;
    usec_t report_window_end;
    struct timer report_window;
    usec_t clients_due; /* until then the clients of recovered runs come back */
};

#define adhoc_call(adhoc, callback, ...) (adhoc)->handler.callback(__VA_ARGS__, (adhoc)->handler.userdata)

/* --- adhoc.c --- */
/* Ends a run whose hold is released and whose report has come, or is not awaited. */
void adhoc_finish(struct adhoc *adhoc, struct run *run);
/* Replaces the record of the hold, if there is one. */
void adhoc_write_record(struct adhoc *adhoc, struct run *run);

/* --- client.c --- */
/* Ends the run unless its client has come back when clients_due is reached. */
void adhoc_arm_client_due(struct adhoc *adhoc, struct run *run);
