/* SPDX-License-Identifier: MIT */
#pragma once

/* For adhoc.c (the hold of a run, from start to end) and client.c (the clients) alone. */

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
    usec_t clients_due; /* until then the clients of recovered runs may reconnect */
};

#define adhoc_call(adhoc, callback, ...) (adhoc)->handler.callback(__VA_ARGS__, (adhoc)->handler.userdata)

/* --- adhoc.c --- */
/* Ends a run whose hold is released and whose report has come or is no longer awaited. */
void adhoc_finish(struct adhoc *adhoc, struct run *run);
/* Writes the record of the hold again, if there is a hold. */
void adhoc_write_record(struct adhoc *adhoc, struct run *run);

/* --- client.c --- */
/* Arms the end of the run at clients_due, in case that its client does not reconnect. */
void adhoc_arm_client_due(struct adhoc *adhoc, struct run *run);
