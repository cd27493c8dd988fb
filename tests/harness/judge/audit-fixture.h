/* SPDX-License-Identifier: MIT */
#pragma once

/* Makes up event logs of two hosts, ant and bee, for the audit, and checks the findings. Times are ms since
 * the beginning, by Redis's clock. Texts are borrowed for the life of the program. */

#include "cli/audit/check.h"

#define BASE (UINT64_C(1763640000) * USEC_PER_SEC) /* Redis's clock at millisecond 0 */

struct writer { /* a berthd */
    const char *host, *process, *boot;
    uint64_t seq;
    int64_t ahead; /* µs, its clock */
};
extern struct writer ant, bee;
extern struct entries record;
extern struct audit_report report;
extern struct audit_options options;

/* Begins an empty log of hosts that have just started. */
void audit_fixture_begin(void);
struct entry audit_fixture_entry(struct writer *w, long msec, const char *event, const char *run, const char *pools);
void audit_fixture_add(const struct entry *e);
void audit_fixture_add_event(struct writer *w, long msec, const char *event, const char *run, const char *pools);
void audit_fixture_limits(struct writer *w, long msec, const char *event, const char *text);
/* Sets a limit for grants after this millisecond. */
void audit_fixture_declare(struct writer *w, long msec, const char *event, const char *text);
void audit_fixture_up(struct writer *w, long msec, const char *text);
/* asked: millisecond of the ticket; granted: of the token. Logged 1 ms later. */
void audit_fixture_grant(struct writer *w, long asked, long granted, const char *run, const char *pools);
/* Gives the last entry the token of this run's grant. */
void audit_fixture_set_token(const char *run);
/* Ends and releases a run, before any grant of the next millisecond. */
void audit_fixture_end(struct writer *w, long msec, const char *run, const char *pools);
/* Logs as bee about a run on ant. */
void audit_fixture_reclaim(long msec, const char *run);
/* Runs the audit; expects no finding; expects one finding about this run ("-": none) with this text. */
void audit_fixture_check(void);
void audit_fixture_expect_proof(void);
void audit_fixture_expect_violation(enum audit_kind kind, const char *run, const char *text);
/* Two hosts, one permit: a on ant, then b on bee, then c on ant. */
void audit_fixture_add_good_runs(void);
/* Cleans up a suite. */
int audit_fixture_done(void);
