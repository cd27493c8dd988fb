/* SPDX-License-Identifier: MIT */
#pragma once

/* Jobs of each host that are due each minute, where the clocks of hosts are in our hands: a minute lasts a
 * second. One catches up, one fails and is tried again and has a hook, one replaces its run, and one is
 * shared by all hosts. */

#include "tests/faults/load.h"

/* For the config of a host. */
const char *due_jobs(void);
/* Before the hosts are started. */
void due_up(struct load *l);
/* Lets a minute pass on all hosts if it is time to. Returns the next time. */
usec_t due_turn(struct load *l);
/* Awaits that each due time of the shared job is decided, and the end of all runs on the hosts that live. */
void due_settle(struct load *l);
/* Each due time was begun or its end was logged, each failed attempt is followed by the next one, each hook
 * was begun. What was begun twice is seen by the judge, as any run. `logs`: all that each host said. Adds to
 * ret->n_due, n_due_lost. */
void due_judge(const struct load *l, char *const logs[static LOAD_HOSTS], struct verdict *ret);
