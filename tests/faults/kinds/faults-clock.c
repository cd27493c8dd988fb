/* SPDX-License-Identifier: MIT */

/* Clocks of hosts: suspend and resume, and wall clocks that are set. */

#include <signal.h>

#include "tests/faults/fault.h"
#include "tests/harness/host/host-clock.h"
#include "tests/harness/test.h"

#define ALL 1000

/* Stops all processes of the host, commands included. A deadline may pass in the jump before guards wake
 * up. */
static void suspend(struct bed *b, struct injection *i) {
    static const enum kind kinds[] = {KIND_COMMAND, KIND_RUN, KIND_GUARD, KIND_RUNNER, KIND_BERTHD};

    touch(b, i, 2);
    b->load.hosts[i->host].frozen = true;
    for (size_t k = 0; k < ELEMENTSOF(kinds); k++)
        (void) hit(b, i, kinds[k], SIGSTOP, ALL, true);
}

static void wake(struct bed *b, struct injection *i, usec_t jump) {
    host_clock_jump(b->load.hosts[i->host].host, jump);
    unpin(i);
    b->load.hosts[i->host].frozen = false;
}

static void wake_early(struct bed *b, struct injection *i) {
    wake(b, i, draw_between(&i->random, 100, 400) * USEC_PER_MSEC);
}

static void wake_late(struct bed *b, struct injection *i) {
    static const usec_t jumps[] = {LOAD_LEASE, 5 * LOAD_LEASE, 3600 * USEC_PER_SEC, 7 * 24 * 3600 * USEC_PER_SEC};

    wake(b, i, jumps[draw_between(&i->random, 0, ELEMENTSOF(jumps) - 1)]);
}

static void step(struct bed *b, struct injection *i) {
    static const int64_t steps[] = {1000000, -1000000, LOAD_LEASE / 2, -(int64_t) LOAD_LEASE / 2, 3600000000, -3600000000};

    host_clock_step(b->load.hosts[i->host].host, steps[draw_between(&i->random, 0, ELEMENTSOF(steps) - 1)]);
    i->n_hit++;
}

static void correct(struct bed *b, struct injection *i) {
    host_clock_step(b->load.hosts[i->host].host, 0);
}

static void step_all(struct bed *b, struct injection *i) {
    for (size_t h = 0; h < LOAD_HOSTS; h++)
        host_clock_step(b->load.hosts[h].host, ((int64_t) h - 1) * 3600000000);
    i->n_hit++;
}

static void correct_all(struct bed *b, struct injection *i) {
    (void) i;
    for (size_t h = 0; h < LOAD_HOSTS; h++)
        host_clock_step(b->load.hosts[h].host, 0);
}

/* The clock of one host jumps, so a reply of a moment ago is a lease old for that host. During a real
 * suspend the other hosts would send heartbeats. Here they have no time for one, so the jumps are not
 * mixed with other faults. */
const struct fault faults_clock[] = {
    {"suspended-short", "a host suspended for less than a lease", FAULT_HOST | FAULT_HOST_CLOCK | FAULT_ALONE | FAULT_FULL, 400, suspend, wake_early, NULL},
    {"suspended-long", "a host suspended for a lease to a week", FAULT_HOST | FAULT_HOST_CLOCK | FAULT_ALONE, 900, suspend, wake_late,
     "swarthy/redis-semaphore#24"},
    {"wall-clock-stepped", "the wall clock of a host set by 1 s, half a lease or an hour, and corrected", FAULT_HOST_CLOCK, 1500, step, correct,
     "mperham/sidekiq#4090"},
    {"wall-clocks-apart", "the wall clocks of hosts an hour apart, and corrected", FAULT_HOST_CLOCK | FAULT_FULL, 1500, step_all, correct_all,
     "mperham/sidekiq#4090"},
    {0},
};
