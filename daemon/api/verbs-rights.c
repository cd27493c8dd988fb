/* SPDX-License-Identifier: MIT */

/* Rights that depend on the target of a call: a job, a run, pools. The table in verbs.c has RIGHT_BY_TARGET
 * for these methods. */

#include <string.h>

#include "base/duration.h"
#include "daemon/api/verbs-internal.h"

/* --- jobs and runs --- */

static int refuse_job(struct control_call *call, struct manager *m, const char *name, const struct job_settings *job) {
    char holders[RIGHTS_TEXT_SIZE];

    (void) control_call_refuse(call, RIGHT_OPERATE, "you need the right to operate job %s; %s", name,
                               rights_format_holders(manager_settings(m), RIGHT_OPERATE, job ? &job->operators : NULL, holders));
    return VERBS_ANSWERED;
}

const struct job_settings *verbs_find_job(struct manager *m, const char *name) {
    const struct job_settings *job = settings_find_job(manager_settings(m), name);

    return job ? job : settings_find_open_template(manager_settings(m), name);
}

int verbs_check_job(struct control_call *call, struct manager *m, const char *name) {
    const struct job_settings *job = verbs_find_job(m, name);
    _cleanup_(caller_done) struct caller caller = {};

    control_call_get_caller(call, &caller);
    if (rights_cover_job(manager_settings(m), &caller, job))
        return 0;
    if (job)
        return refuse_job(call, m, name, job);
    (void) verbs_no_such_job(call, m, name);
    return VERBS_ANSWERED;
}

static int refuse_run(struct control_call *call, struct manager *m, const struct run *run) {
    bool is_own = run->adhoc.uid == control_call_peer(call)->uid;
    enum right right = is_own ? RIGHT_RUN : RIGHT_OPERATE;
    char holders[RIGHTS_TEXT_SIZE];

    if (run->kind == RUN_KIND_JOB)
        return refuse_job(call, m, run->name, settings_find_job(manager_settings(m), run->name));
    (void) control_call_refuse(call, right, "you need the right to %s to stop a run %s; %s", right_name(right),
                               is_own ? "of your own" : "of another user",
                               rights_format_holders(manager_settings(m), right, NULL, holders));
    return VERBS_ANSWERED;
}

int verbs_check_stop(struct control_call *call, struct manager *m, const char *target) {
    const struct job_settings *instance = settings_find_instance(manager_settings(m), target);
    const struct run *run = manager_find_run(m, target);
    _cleanup_(caller_done) struct caller caller = {};

    if (!run && instance) /* all instances have the operators of their template */
        return verbs_check_job(call, m, instance->name);
    if (!run && (!id_is_valid(target) || settings_find_job(manager_settings(m), target)))
        return verbs_check_job(call, m, target);
    control_call_get_caller(call, &caller);
    if (run ? rights_cover_run(manager_settings(m), &caller, run) : rights_cover_job(manager_settings(m), &caller, NULL))
        return 0;
    if (run)
        return refuse_run(call, m, run);
    (void) (manager_is_recovering(m) ? verbs_refused(call, MANAGER_E_RECOVERING) : verbs_no_such_run(call, target));
    return VERBS_ANSWERED;
}

/* --- pools --- */

static int refuse_pool(struct control_call *call, struct manager *m, const struct pool_settings *pool) {
    char holders[RIGHTS_TEXT_SIZE];

    (void) control_call_refuse(call, RIGHT_RUN, "you need the right to run on pool %s; %s", pool->name,
                               rights_format_holders(manager_settings(m), RIGHT_RUN, &pool->users, holders));
    return VERBS_ANSWERED;
}

static int refuse_head_start(struct control_call *call, struct manager *m, const struct pool_settings *pool) {
    char holders[RIGHTS_TEXT_SIZE], most[DURATION_TEXT_SIZE];

    (void) control_call_refuse(call, RIGHT_OPERATE,
                               "pool %s allows a head start of at most %s (head-start-max); for more you need the right to operate; %s",
                               pool->name, duration_format(pool->head_start_max_usec, most),
                               rights_format_holders(manager_settings(m), RIGHT_OPERATE, NULL, holders));
    return VERBS_ANSWERED;
}

int verbs_check_hold(struct control_call *call, struct manager *m, const struct demands *pools, usec_t head_start_usec) {
    const struct settings *s = manager_settings(m);
    _cleanup_(caller_done) struct caller caller = {};
    char holders[RIGHTS_TEXT_SIZE];
    enum right right;

    control_call_get_caller(call, &caller);
    right = rights_get(s, &caller);
    if (right < RIGHT_RUN) {
        (void) control_call_refuse(call, RIGHT_RUN, "you need the right to run; %s",
                                   rights_format_holders(s, RIGHT_RUN, NULL, holders));
        return VERBS_ANSWERED;
    }
    for (size_t i = 0; i < pools->n && right < RIGHT_OPERATE; i++) {
        const struct pool_settings *pool = settings_find_pool(s, pools->items[i].pool);

        if (pool && !rights_cover_pool(s, &caller, pool))
            return refuse_pool(call, m, pool);
        if (pool && head_start_usec > pool->head_start_max_usec)
            return refuse_head_start(call, m, pool);
    }
    return 0;
}
