/* SPDX-License-Identifier: MIT */

/* Processes that are killed, or frozen for less or more than a lease. */

#include <signal.h>

#include "tests/faults/fault.h"
#include "tests/harness/test.h"

#define ALL 1000

/* --- berthd --- */

static void take_down(struct bed *b, struct injection *i, int signal) {
    struct load_host *h = &b->load.hosts[i->host];

    b->n_down[i->host]++;
    h->down = true;
    touch(b, i, 3);
    if (!h->host->berthd || h->host->berthd->ended)
        return;
    child_kill(h->host->berthd, SIGCONT);
    child_kill(h->host->berthd, signal);
    i->n_hit++;
}

static void await_down(struct bed *b, struct injection *i) {
    struct host *h = b->load.hosts[i->host].host;

    if (h->berthd && !h->berthd->ended && !child_await(h->berthd, HOST_PATIENCE))
        CU_FAIL("berthd does not end");
    h->abandoned = true;
}

static void kill_berthd(struct bed *b, struct injection *i) {
    take_down(b, i, SIGKILL);
    await_down(b, i);
}

static void terminate_berthd(struct bed *b, struct injection *i) {
    take_down(b, i, SIGTERM);
}

static void start_berthd(struct bed *b, struct injection *i) {
    await_down(b, i);
    b->n_down[i->host]--;
    revive(b, i->host);
}

static void kill_berthd_and_runner(struct bed *b, struct injection *i) {
    (void) hit(b, i, KIND_RUNNER, SIGKILL, ALL, false);
    kill_berthd(b, i);
}

static void kill_host(struct bed *b, struct injection *i) {
    kill_berthd_and_runner(b, i);
    (void) hit(b, i, KIND_GUARD, SIGKILL, ALL, false);
    (void) hit(b, i, KIND_RUN, SIGKILL, ALL, false);
    (void) hit(b, i, KIND_COMMAND, SIGKILL, ALL, false);
}

static void restart_twice(struct bed *b, struct injection *i) {
    kill_berthd(b, i);
    start_berthd(b, i);
    load_turn(&b->load, clock_boottime() + 30 * USEC_PER_MSEC);
    kill_berthd(b, i);
}

static void freeze_berthd(struct bed *b, struct injection *i) {
    b->load.hosts[i->host].frozen = true;
    touch(b, i, 2);
    (void) hit(b, i, KIND_BERTHD, SIGSTOP, 1, true);
}

static void thaw_berthd(struct bed *b, struct injection *i) {
    unpin(i);
    b->load.hosts[i->host].frozen = false;
}

/* --- other processes --- */

static void kill_runner(struct bed *b, struct injection *i) {
    touch(b, i, 1);
    (void) hit(b, i, KIND_RUNNER, SIGKILL, ALL, false);
}

static void freeze_runner(struct bed *b, struct injection *i) {
    touch(b, i, 1);
    (void) hit(b, i, KIND_RUNNER, SIGSTOP, ALL, true);
}

static void thaw(struct bed *b, struct injection *i) {
    (void) b;
    unpin(i);
}

static void kill_guards(struct bed *b, struct injection *i) {
    touch(b, i, 1);
    (void) hit(b, i, KIND_GUARD, SIGKILL, ALL, false);
}

static void freeze_guards(struct bed *b, struct injection *i) {
    touch(b, i, 1);
    (void) hit(b, i, KIND_GUARD, SIGSTOP, ALL, true);
}

static void kill_runs(struct bed *b, struct injection *i) {
    (void) hit(b, i, KIND_RUN, SIGKILL, 3, false);
}

static void freeze_runs(struct bed *b, struct injection *i) {
    touch(b, i, 1); /* a frozen `berth run` may get a grant, and starts its command when it wakes up */
    (void) hit(b, i, KIND_RUN, SIGSTOP, 3, true);
}

static void kill_commands(struct bed *b, struct injection *i) {
    (void) hit(b, i, KIND_COMMAND, SIGKILL, 2, false);
}

static void terminate_commands(struct bed *b, struct injection *i) {
    (void) hit(b, i, KIND_COMMAND, SIGTERM, 2, false);
}

static void freeze_commands(struct bed *b, struct injection *i) {
    (void) hit(b, i, KIND_COMMAND, SIGSTOP, 2, true);
}

/* A process that is frozen when a deadline passes cannot stop a command, so long freezes of guards and
 * `berth run` are not mixed with faults that lose leases. */
const struct fault faults_process[] = {
    {"berthd-killed", "berthd killed, started again at once", FAULT_HOST, 20, kill_berthd, start_berthd, "hashicorp/nomad#6980 hashicorp/nomad#4302"},
    {"berthd-killed-twice", "berthd killed, and again 30 ms after its start", FAULT_HOST, 100, restart_twice, start_berthd, "hashicorp/nomad#6980"},
    {"berthd-away-short", "berthd killed, away for half a lease", FAULT_HOST, 1000, kill_berthd, start_berthd, NULL},
    {"berthd-away-long", "berthd killed, away for longer than a lease", FAULT_HOST, 3200, kill_berthd, start_berthd,
     "hashicorp/consul#9788 PrefectHQ/prefect#9895 hiero-ledger/hiero-json-rpc-relay#4725"},
    {"berthd-stopped", "berthd stopped in order, started after a lease", FAULT_HOST, 2000, terminate_berthd, start_berthd, "Supervisor/supervisor#729"},
    {"berthd-frozen-short", "berthd frozen for less than a lease", FAULT_HOST, 800, freeze_berthd, thaw_berthd, "PrefectHQ/prefect#21064"},
    {"berthd-frozen-long", "berthd frozen for longer than a lease", FAULT_HOST, 3500, freeze_berthd, thaw_berthd,
     "hashicorp/consul#9788 swarthy/redis-semaphore#175"},
    {"runner-killed", "berth-runner killed", FAULT_HOST, 0, kill_runner, NULL, NULL},
    {"runner-frozen-short", "berth-runner frozen for less than a lease", FAULT_HOST, 800, freeze_runner, thaw, NULL},
    {"runner-frozen-long", "berth-runner frozen for longer than a lease", FAULT_HOST, 3500, freeze_runner, thaw, NULL},
    {"berthd-and-runner-killed", "berthd and berth-runner killed", FAULT_HOST, 300, kill_berthd_and_runner, start_berthd, NULL},
    {"host-killed", "every process of a host killed", FAULT_HOST, 3000, kill_host, start_berthd, "hiero-ledger/hiero-json-rpc-relay#4725"},
    {"guard-killed", "all guards of a host killed", FAULT_HOST, 0, kill_guards, NULL, "hashicorp/consul#2022 aptible/supercronic#88"},
    {"guard-frozen-short", "all guards frozen for 300 ms", FAULT_HOST, 300, freeze_guards, thaw, NULL},
    {"guard-frozen-long", "all guards frozen for longer than a lease", FAULT_HOST | FAULT_ALONE, 3500, freeze_guards, thaw, NULL},
    {"run-killed", "`berth run` killed, running and waiting ones", 0, 0, kill_runs, NULL, "concourse/pool-resource#20 PrefectHQ/prefect#18839"},
    {"run-frozen-short", "`berth run` frozen for 300 ms", FAULT_HOST, 300, freeze_runs, thaw, NULL},
    {"run-frozen-long", "`berth run` frozen for longer than a lease", FAULT_HOST | FAULT_ALONE, 3500, freeze_runs, thaw, "etcd-io/etcd#11456"},
    {"command-killed", "commands killed", 0, 0, kill_commands, NULL, "rails/solid_queue#546"},
    {"command-terminated", "commands ended by TERM from somebody else", 0, 0, terminate_commands, NULL, NULL},
    {"command-frozen-short", "commands frozen for less than a lease", 0, 800, freeze_commands, thaw, NULL},
    {"command-frozen-long", "commands frozen for longer than a lease", 0, 3500, freeze_commands, thaw, NULL},
    {0},
};
