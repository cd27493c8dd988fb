/* SPDX-License-Identifier: MIT */
#pragma once

/* The parts of the bench; each starts and stops its own servers. */

#include "tests/bench/report.h"

void bench_cost(struct report *r);     /* server time of each call, over holders and waiters */
void bench_floors(struct report *r);   /* server time of each call, beside scripts with its commands alone */
void bench_holders(struct report *r);  /* server time of a pair beside many holders */
void bench_keys(struct report *r);     /* server time of a key's calls, beside a plain pool's */
void bench_functions(struct report *r); /* the same scripts as Redis Functions */
void bench_pairs(struct report *r);    /* pairs a second through the store, beside peers */
void bench_handover(struct report *r); /* from a release to the next one's grant, and command */
void bench_waiting(struct report *r);  /* what waiting costs: calls, memory */
void bench_hosts(struct report *r);    /* thousands of hosts: load, lateness, recovery */
void bench_hosts_tls(struct report *r);
void bench_sessions(struct report *r); /* a hundred thousand sessions, without berthd */
void bench_commands(struct report *r); /* whole commands beside flock, sem, etcdctl */
void bench_flock(struct report *r);    /* hand-over from command to command, beside flock */
void bench_flock_busy(struct report *r);
void bench_hops(struct report *r);     /* where that time goes; a build with failpoints alone */
void bench_hops_busy(struct report *r);
void bench_daemon(struct report *r);   /* real daemons: hand-over, trigger to exec */
void bench_look(struct report *r);     /* what looking costs Redis */
void bench_viewers(struct report *r);  /* what a hundred viewers cost those who work */
void bench_watch(struct report *r);    /* what readers of events cost commands */
void bench_web(struct report *r);      /* berth-web with a thousand browsers */
void bench_memory(struct report *r);   /* of berthd with waiting claims, of a guard */
