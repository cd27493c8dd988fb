/* SPDX-License-Identifier: MIT */
#pragma once

/* What berthds of a cluster said while a test ran, as the entries that their journals would have had: with it whatever a test does to a
 * cluster is a test of `berth audit`, too. */

#include "cli/audit/check.h"
#include "tests/harness/host.h"

/* Of all hosts, of all their berthds. */
void record_read(struct entries *ret);
/* What the audit finds is a failed assertion; told with the entries. */
void record_audit(void);
