/* SPDX-License-Identifier: MIT */
#pragma once

/* Records of two hosts, ant and bee, that a test makes up for the audit, and what it is to say of them. Times are in ms from the begin,
 * by Redis's clock. Texts that are given live as long as the program. */

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

/* An empty record of hosts that were just started. */
void audit_fixture_begin(void);
struct entry audit_fixture_entry(struct writer *w, long msec, const char *event, const char *run, const char *pools);
void audit_fixture_add(const struct entry *e);
void audit_fixture_add_event(struct writer *w, long msec, const char *event, const char *run, const char *pools);
void audit_fixture_limits(struct writer *w, long msec, const char *event, const char *text);
/* In force for what is granted after this millisecond. */
void audit_fixture_declare(struct writer *w, long msec, const char *event, const char *text);
void audit_fixture_up(struct writer *w, long msec, const char *text);
/* asked: milliseconds, its ticket; granted: its token. Heard of 1 ms later. */
void audit_fixture_grant(struct writer *w, long asked, long granted, const char *run, const char *pools);
/* The last entry is of the grant of this run. */
void audit_fixture_set_token(const char *run);
/* Given back before anything that is granted in the millisecond after. */
void audit_fixture_end(struct writer *w, long msec, const char *run, const char *pools);
/* Told by bee of a run on ant. */
void audit_fixture_reclaim(long msec, const char *run);
/* Asks the audit; it finds nothing; it finds one thing, of this run ("-": none), told with this text in it. */
void audit_fixture_check(void);
void audit_fixture_expect_proof(void);
void audit_fixture_expect_violation(enum audit_kind kind, const char *run, const char *text);
/* Two hosts, one permit: a on ant, then b on bee, then c on ant. */
void audit_fixture_add_good_runs(void);
/* Suite clean-up. */
int audit_fixture_done(void);
