/* SPDX-License-Identifier: MIT */

/* Runs of `berth run`, asked for: by whom, inside of what, and clients that come back or go. What is held is in manager-hold.c. */

#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/failpoint.h"
#include "base/process/process-tree.h"
#include "base/protocol.h"
#include "daemon/manager-internal.h"

/* --- asking --- */

static int check_pools(struct manager *m, const struct manager_hold *hold, const char **ret_text) {
    char text[DURATION_TEXT_SIZE];

    for (size_t i = 0; i < hold->pools->n; i++) {
        const struct demand *d = &hold->pools->items[i];
        const struct pool_settings *p = settings_find_pool(m->settings, d->pool);

        if (!p) {
            *ret_text = d->pool;
            return MANAGER_E_UNKNOWN;
        }
        /* A limit of 0 pauses the pool: its claims wait (R2). */
        if ((p->limit > 0 && d->permits > p->limit) || (p->host_limit > 0 && d->permits > p->host_limit)) {
            snprintf(m->text, sizeof(m->text), "%u permits of pool \"%s\" are more than its %s of %u", d->permits, d->pool,
                     p->limit > 0 && d->permits > p->limit ? "limit" : "host-limit",
                     p->limit > 0 && d->permits > p->limit ? p->limit : p->host_limit);
            *ret_text = m->text;
            return MANAGER_E_INVALID;
        }
    }
    if (hold->stop_timeout_usec != USEC_INFINITY && hold->on_lease_lost == ON_LEASE_LOST_STOP &&
        settings_needs_cluster(m->settings, hold->pools) &&
        hold->stop_timeout_usec > settings_stop_timeout_max(m->settings)) {
        snprintf(m->text, sizeof(m->text), "the lease allows a stop timeout of at most %s",
                 duration_format(settings_stop_timeout_max(m->settings), text));
        *ret_text = m->text;
        return MANAGER_E_INVALID;
    }
    return 0;
}

static bool covers(const struct run *outer, const struct demands *wanted) {
    struct demands held;

    run_get_pools(outer, &held);
    for (size_t i = 0; i < wanted->n; i++)
        if (demands_get(&held, wanted->items[i].pool) < wanted->items[i].permits)
            return false;
    return true;
}

/* Who ends all below him before the run's lease is over; 0: nobody is there. */
static pid_t supervisor_of(const struct run *r) {
    return r->kind == RUN_KIND_JOB ? executor_guard_pid(r) : r->adhoc.client_pid;
}

static bool is_below(pid_t root, pid_t pid) {
    return root > 0 && process_tree_contains(root, pid) > 0;
}

/* Below the command, too: after a restart of berthd the run's `berth run` may not be back yet. */
static bool is_inside(const struct run *outer, pid_t pid) {
    return is_below(supervisor_of(outer), pid) || is_below(outer->adhoc.hold ? hold_get_command(outer->adhoc.hold) : 0, pid);
}

/* The run around a client, if it holds its permits and the client's process is inside. NULL: there is none. */
static struct run *find_outer(struct manager *m, const struct manager_hold *hold) {
    struct run *outer = hold->nested ? manager_find_run(m, hold->nested) : NULL;

    /* The name alone proves nothing: everybody may look at it. */
    return outer && outer->granted && !run_is_over(outer) && is_inside(outer, hold->pid) ? outer : NULL;
}

/* Each takes memory and up to three descriptors, and lasts as long as the client's user likes. */
static int check_quota(struct manager *m, uid_t uid, const char **ret_text) {
    size_t n = 0;

    if (uid == 0 || uid == geteuid())
        return 0;
    run_table_foreach(r, &m->runs, RUN_STATE_PENDING, RUN_STATE_STOPPING)
            n += r->kind == RUN_KIND_ADHOC && r->adhoc.uid == uid;
    if (n < m->settings->user_runs)
        return 0;
    snprintf(m->text, sizeof(m->text), "your user has %zu runs of `berth run` waiting and running, as many as user-runs = %u allows", n,
             m->settings->user_runs);
    *ret_text = m->text;
    return MANAGER_E_QUOTA;
}

static int new_adhoc(struct manager *m, const struct manager_hold *hold, struct run **ret) {
    struct run_spec spec = {.kind = RUN_KIND_ADHOC, .name = hold->name, .pools = hold->pools};
    struct run *r = NULL;
    int k;

    k = run_new(&r, &spec, m->settings);
    if (k < 0)
        return k;
    r->adhoc.uid = hold->uid;
    r->adhoc.client_pid = hold->pid;
    r->terms.nowait = hold->nowait;
    r->terms.queue_timeout_usec = hold->wait_usec;
    r->terms.head_start_usec = hold->head_start_usec;
    r->terms.on_lease_lost = hold->on_lease_lost;
    r->terms.stop_timeout_usec =
        hold->stop_timeout_usec == USEC_INFINITY ? settings_stop_timeout_default(m->settings) : hold->stop_timeout_usec;
    r->queued.realtime = clock_realtime();
    r->queued.boottime = clock_boottime();
    k = run_table_add(&m->runs, r, RUN_STATE_PENDING);
    if (k < 0) {
        run_free(r);
        return k;
    }
    *ret = r;
    return 0;
}

int manager_hold(struct manager *m, const struct manager_hold *hold, struct run **ret, bool *ret_nested, const char **ret_text) {
    struct run *outer;
    int k;

    *ret_nested = false;
    if (m->phase >= MANAGER_PHASE_STOPPING)
        return MANAGER_E_STOPPING;
    k = check_pools(m, hold, ret_text);
    if (k != 0)
        return k;
    outer = find_outer(m, hold);
    if (outer && covers(outer, hold->pools)) {
        *ret = outer;
        *ret_nested = true;
        return 0;
    }
    if (m->drained)
        return MANAGER_E_DRAINED;
    if (outer && !hold->nowait && hold->wait_usec == USEC_INFINITY) {
        snprintf(m->text, sizeof(m->text),
                 "inside run %s (%s) this asks for more than that holds: give -n or --wait, nobody waits without bound "
                 "while holding",
                 outer->id, outer->name);
        *ret_text = m->text;
        return MANAGER_E_INVALID;
    }
    k = check_quota(m, hold->uid, ret_text);
    if (k == 0)
        k = new_adhoc(m, hold, ret);
    if (k != 0)
        return k;
    if (m->phase == MANAGER_PHASE_READY)
        manager_run_begin(*ret);
    else if (hold->nowait)
        manager_run_withdraw(*ret, RUN_RESULT_NOT_STARTED, "berthd is still recovering");
    else
        manager_arm_queue_timeout(*ret);
    return 0;
}

int manager_attach(struct manager *m, const char *run, uid_t uid, pid_t pid, struct run **ret) {
    struct run *r = manager_find_run(m, run);

    if (!r && m->phase < MANAGER_PHASE_READY)
        return MANAGER_E_RECOVERING; /* a waiting one is found last: whoever came before that would lose its place */
    if (!r || r->kind != RUN_KIND_ADHOC || run_is_over(r) || (uid != r->adhoc.uid && uid != 0) || r->adhoc.end_reported)
        return MANAGER_E_UNKNOWN;
    if (manager_hold_is_lost(r)) /* it asks anew */
        return MANAGER_E_UNKNOWN;
    r->adhoc.client_pid = pid;
    r->adhoc.awaits_client = false;
    if (r->state == RUN_STATE_WAITING)
        manager_arm_queue_timeout(r);
    *ret = r;
    return 0;
}

void manager_client_gone(struct run *r) {
    r->adhoc.client_pid = 0;
    switch (r->state) {
    case RUN_STATE_PENDING:
    case RUN_STATE_WAITING:
        manager_run_withdraw(r, RUN_RESULT_STOPPED, "its client has gone");
        break;
    case RUN_STATE_STARTING:
    case RUN_STATE_STOPPING:
        r->adhoc.hold_fd = close_fd(r->adhoc.hold_fd); /* nobody got it: the hold is over */
        break;
    case RUN_STATE_RUNNING:
    case RUN_STATE_DONE:
        break;
    }
}

void adhoc_stop(struct run *r) {
    run_disarm(r);
    if (r->adhoc.client_pid == 0)
        r->adhoc.hold_fd = close_fd(r->adhoc.hold_fd); /* nobody came for it: the hold is over */
}
