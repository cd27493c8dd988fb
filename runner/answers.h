/* SPDX-License-Identifier: MIT */
#pragma once

/* berth-runner's messages to berthd (base/protocol.h). One that cannot be sent closes the connection: berthd
 * gets all states after its next hello. */

#include "runner/berthd-link.h"

void answer_hello(struct berthd_link *berthd);
/* verb: one of those with `run` alone. */
void answer_run(struct berthd_link *berthd, const char *verb, const char *run);
/* reason: a word; text: for people. */
void answer_refused(struct berthd_link *berthd, const char *run, const char *reason, const char *text);
/* The report of a run of which neither guard nor guard file nor report is left: no process of it runs.
 * killed: the token of the run that berthd wanted killed, or NULL. */
void answer_lost(struct berthd_link *berthd, const char *run, const char *killed);
/* what: a process of the run that its kill has not ended. */
void answer_stuck(struct berthd_link *berthd, const char *run, const char *what);
/* berthd has got the state of each run. */
void answer_recovered(struct berthd_link *berthd);
