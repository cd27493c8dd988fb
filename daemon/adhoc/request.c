/* SPDX-License-Identifier: MIT */

/* Requests of `berth run`: whether they are allowed, and whether a run around the client covers them. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/process/process-tree.h"
#include "daemon/adhoc/adhoc.h"
#include "daemon/adhoc/hold.h"

int adhoc_check_pools(const struct adhoc_request *request, const struct settings *settings,
                      char text[static ADHOC_TEXT_SIZE]) {
    usec_t stop_timeout_max = settings_stop_timeout_max(settings);
    char duration[DURATION_TEXT_SIZE];

    for (size_t i = 0; i < request->pools->n; i++) {
        const struct demand *d = &request->pools->items[i];
        const struct pool_settings *p = settings_find_pool(settings, d->pool);
        bool is_above_limit;

        if (!p) {
            snprintf(text, ADHOC_TEXT_SIZE, "%s", d->pool);
            return ADHOC_E_UNKNOWN;
        }
        /* A limit of 0 pauses the pool: its claims wait (R2). */
        is_above_limit = p->limit > 0 && d->permits > p->limit;
        if (is_above_limit || (p->host_limit > 0 && d->permits > p->host_limit)) {
            snprintf(text, ADHOC_TEXT_SIZE, "%u permits of pool \"%s\" are more than its %s of %u",
                     d->permits, d->pool, is_above_limit ? "limit" : "host-limit",
                     is_above_limit ? p->limit : p->host_limit);
            return ADHOC_E_INVALID;
        }
    }
    if (request->stop_timeout_usec != USEC_INFINITY && request->on_lease_lost == ON_LEASE_LOST_STOP &&
        settings_needs_cluster(settings, request->pools) && request->stop_timeout_usec > stop_timeout_max) {
        snprintf(text, ADHOC_TEXT_SIZE, "the lease allows a stop timeout of at most %s",
                 duration_format(stop_timeout_max, duration));
        return ADHOC_E_INVALID;
    }
    return 0;
}

bool adhoc_is_covered(const struct run *outer, const struct adhoc_request *request) {
    const struct demands *wanted = request->pools;

    for (size_t i = 0; i < wanted->n; i++)
        if (run_get_permits(outer, wanted->items[i].pool) < wanted->items[i].permits)
            return false;
    return true;
}

static bool is_below(pid_t root, pid_t pid) {
    return root > 0 && process_tree_contains(root, NULL, 0, pid) > 0;
}

struct run *adhoc_find_outer(struct run_table *runs, const struct adhoc_request *request,
                             pid_t (*guard_pid)(const struct run *run)) {
    /* The id alone proves nothing, because every user can read it. */
    struct run *outer = request->nested ? run_table_find(runs, request->nested) : NULL;
    pid_t supervisor, command; /* supervisor: stops all processes below it before the lease ends */

    if (!outer || !outer->granted || run_is_over(outer))
        return NULL;
    supervisor = outer->kind == RUN_KIND_JOB ? guard_pid(outer) : outer->adhoc.client_pid;
    command = outer->adhoc.hold ? hold_get_command(outer->adhoc.hold) : 0;
    /* After a restart of berthd, the `berth run` of the command may not have reconnected yet. */
    return is_below(supervisor, request->pid) || is_below(command, request->pid) ? outer : NULL;
}

/* Each run takes memory and up to three descriptors, for as long as the user likes. */
static int check_quota(struct run_table *runs, uid_t uid, const struct settings *settings,
                       char text[static ADHOC_TEXT_SIZE]) {
    size_t n = 0;

    if (uid == 0 || uid == geteuid())
        return 0;
    run_table_foreach (run, runs, RUN_STATE_PENDING, RUN_STATE_STOPPING)
        n += run->kind == RUN_KIND_ADHOC && run->adhoc.uid == uid;
    if (n < settings->user_runs)
        return 0;
    snprintf(text, ADHOC_TEXT_SIZE,
             "your user has %zu runs of `berth run` waiting and running, as many as user-runs = %u allows",
             n, settings->user_runs);
    return ADHOC_E_QUOTA;
}

/* A deadline of another CLOCK_BOOTTIME would stop the command too late, or keep it from starting. */
static bool has_other_clock(const struct adhoc_request *request, const struct settings *settings) {
    char own[CLOCK_NAMESPACE_SIZE];

    if (!request->time_namespace || request->on_lease_lost == ON_LEASE_LOST_CONTINUE || !settings_needs_cluster(settings, request->pools))
        return false;
    clock_namespace(own);
    return *own && strcmp(own, request->time_namespace) != 0;
}

int adhoc_check_admission(struct run_table *runs, const struct adhoc_request *request,
                          const struct run *outer, const struct settings *settings,
                          char text[static ADHOC_TEXT_SIZE]) {
    if (outer && !request->nowait && request->wait_usec == USEC_INFINITY) {
        snprintf(text, ADHOC_TEXT_SIZE,
                 "inside run %s (%s), which does not hold all of these permits: give -n or --wait, nobody "
                 "waits without bound while holding permits",
                 outer->id, outer->name);
        return ADHOC_E_INVALID;
    }
    if (has_other_clock(request, settings)) {
        snprintf(text, ADHOC_TEXT_SIZE,
                 "berthd is in another time namespace, so its deadlines are wrong here: run berth outside of this one, or give "
                 "--on-lease-lost continue");
        return ADHOC_E_INVALID;
    }
    return check_quota(runs, request->uid, settings, text);
}

int adhoc_add_run(struct run_table *runs, const struct adhoc_request *request,
                  const struct settings *settings, struct run_time now, struct run **ret) {
    struct run_spec spec = {.kind = RUN_KIND_ADHOC, .name = request->name, .pools = request->pools};
    struct run *run = NULL;
    int r;

    r = run_new(&run, &spec, settings);
    if (r < 0)
        return r;
    run->adhoc.uid = request->uid;
    run->adhoc.client_pid = request->pid;
    run->terms = (struct run_terms){
        .on_lease_lost = request->on_lease_lost,
        .head_start_usec = request->head_start_usec,
        .stop_timeout_usec = request->stop_timeout_usec == USEC_INFINITY
                                 ? settings_stop_timeout_default(settings)
                                 : request->stop_timeout_usec,
        .queue_timeout_usec = request->wait_usec,
        .nowait = request->nowait,
    };
    run->queued = now;
    r = run_table_add(runs, run, RUN_STATE_PENDING);
    if (r < 0) {
        run_free(run);
        return r;
    }
    *ret = run;
    return 0;
}
