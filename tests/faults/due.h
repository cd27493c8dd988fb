/* SPDX-License-Identifier: MIT */
#pragma once

/* Jobs of each host that are due each minute, where a minute lasts a second on the hosts' clocks. One
 * catches up, one fails, is retried and has a hook, one replaces its run, and one is shared by all hosts. */

#include "tests/faults/load.h"

/* Returns text for the config of a host. */
const char *due_jobs(void);
/* To be called before the hosts are started. */
void due_up(struct load *l);
/* Lets a minute pass on all hosts if it is due. Returns the next time. */
usec_t due_turn(struct load *l);
/* Awaits that each due time of the shared job is decided, and the end of all runs on living hosts. */
void due_settle(struct load *l);
/* Checks that each due time was begun or its end was logged, that each failed attempt is followed by the
 * next one, and that each hook was begun. The judge sees what was begun twice. logs: all messages of each
 * host. Adds to ret->n_due, n_due_lost. */
void due_judge(const struct load *l, char *const logs[static LOAD_HOSTS], struct verdict *ret);
