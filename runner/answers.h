/* SPDX-License-Identifier: MIT */
#pragma once

/* berth-runner's messages to berthd (base/protocol.h). If one cannot be sent, the connection is closed, and
 * berthd receives all states after its next hello. */

#include "runner/berthd-link.h"

void answer_hello(struct berthd_link *berthd);
/* verb: one whose only field is `run`. */
void answer_run(struct berthd_link *berthd, const char *verb, const char *run);
/* reason: a word; text: for people. */
void answer_refused(struct berthd_link *berthd, const char *run, const char *reason, const char *text);
/* Reports the end of a run that has no process, guard, guard file or report. killed: the token in berthd's
 * `kill`, or NULL. */
void answer_lost(struct berthd_link *berthd, const char *run, const char *killed);
/* Reports that a run was killed before its guard had noted a grant: its command has not run. */
void answer_not_begun(struct berthd_link *berthd, const char *run);
/* what: a process of the run that survived its kill, for people. */
void answer_stuck(struct berthd_link *berthd, const char *run, const char *what);
/* Tells berthd that it has received the state of each run. */
void answer_recovered(struct berthd_link *berthd);
