/* SPDX-License-Identifier: MIT */

/* What the claim of a run asks for besides permits if hosts share its job (R18): the turn of a due time, or
 * for `berth start`, whether a run of the job is not over on any host. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/jobs/scheduler-internal.h"

static const char *find_job_pool(const struct run *run) {
    for (size_t i = 0; i < run->cluster_claim->n_demands; i++)
        if (run->cluster_claim->demands[i].pool[0] == '@')
            return run->cluster_claim->demands[i].pool;
    return NULL; /* the run was recorded before the job was shared */
}

/* Returns 0 or -ENOMEM. A run without the job's pool among its demands claims without a turn. */
static int add_turn(const struct job *job, struct run *run, int64_t due) {
    static const enum turn_overlap overlaps[] = {
        [JOB_OVERLAP_SKIP] = TURN_OVERLAP_SKIP,
        [JOB_OVERLAP_QUEUE] = TURN_OVERLAP_QUEUE,
        [JOB_OVERLAP_ALLOW] = TURN_OVERLAP_ALLOW,
        [JOB_OVERLAP_REPLACE] = TURN_OVERLAP_SKIP, /* excluded */
    };
    const char *pool = find_job_pool(run);
    struct claim_turn *turn;

    if (!pool)
        return 0;
    turn = calloc(1, sizeof(*turn));
    if (!turn)
        return -ENOMEM;
    *turn = (struct claim_turn) {.pool = pool,
                                 .due = due,
                                 .overlap = overlaps[job->settings->triggers.overlap],
                                 .again_usec = USEC_INFINITY};
    run->job.turn = run->cluster_claim->turn = turn;
    return 0;
}

void turns_attach_start(const struct job *job, struct run *run) {
    if (turns_is_shared(job) && job->settings->triggers.overlap != JOB_OVERLAP_ALLOW)
        (void) add_turn(job, run, 0); /* without a turn the run waits for the job's pool */
}

int turns_attach(struct job *job, struct run *run, struct run_time now) {
    enum run_trigger trigger = run->job.origin.trigger;
    struct claim_turn *turn;
    int64_t due;
    int r;

    if (!turns_is_shared(job) || run->job.turn ||
        (trigger != RUN_TRIGGER_SCHEDULE && trigger != RUN_TRIGGER_EVERY && trigger != RUN_TRIGGER_RETRY) ||
        schedule_parse_time(run->job.origin.due, &due) < 0)
        return 0;
    r = add_turn(job, run, due);
    turn = run->job.turn;
    if (!turn)
        return r;
    turn->is_committed = run->granted; /* recovered: its command may have begun */
    run->job.is_turn_noted = run->granted || run->cluster_claim->token > 0 || run->cluster_claim->ticket > 0;
    if (turn->is_committed)
        turn->attempt = run->job.origin.attempt;
    if (run->job.is_turn_noted)
        turn_attempts_set_terms(job, run, now);
    return 0;
}

/* --- answers to a run of `berth start` --- */

void turns_refuse_start(struct run *run, const struct store_turn_answer *answer) {
    struct run_other *other = calloc(1, sizeof(*other));

    run->job.is_skipped = true;
    if (!other)
        return; /* the caller learns only that the job is skipped */
    (void) snprintf(other->run, sizeof(other->run), "%s", answer->run ? answer->run : "");
    (void) snprintf(other->host, sizeof(other->host), "%s", answer->host ? answer->host : "");
    free(run->job.other);
    run->job.other = other;
}

void turns_take_start(struct scheduler *scheduler, struct job *job, struct run *run) {
    free(run->job.turn);
    run->job.turn = run->cluster_claim->turn = NULL;
    if (job)
        attempts_note_run(scheduler, job, run);
}
