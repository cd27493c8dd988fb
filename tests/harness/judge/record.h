/* SPDX-License-Identifier: MIT */
#pragma once

/* Collects the events of all berthds of a cluster during a test, as the entries that their journals would
 * have. So every test of a cluster is also a test of `berth audit`. */

#include "cli/audit/check.h"
#include "tests/harness/host/host.h"

/* Returns the entries of all hosts and all their berthds. */
void record_read(struct entries *ret);
/* Runs the audit; a finding is a failed assertion and is printed with the entries. */
void record_audit(void);
