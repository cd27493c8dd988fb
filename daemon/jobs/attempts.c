/* SPDX-License-Identifier: MIT */

/* What follows an attempt of a job: another one, a restart, or hooks. The next run is added at once, in the
 * state retrying and with its own record, before the end of this one is noted. Its id depends on the chain
 * alone, so an end that is reported twice has one next run. */

#include <stdio.h>

#include "base/duration.h"
#include "base/failpoint.h"
#include "base/memory.h"
#include "base/schedule/schedule.h"
#include "daemon/runs/chain.h"
#include "daemon/jobs/scheduler-internal.h"
#include "daemon/runs/run-log.h"

void attempts_make_id(const char *what, const char *run, const char *which, char ret[static ID_TEXT_SIZE]) {
    snprintf(ret, ID_TEXT_SIZE, "%016" PRIx64 "%016" PRIx64,
             schedule_spread(UINT64_MAX, (const char *[]){"high", what, run, which, NULL}),
             schedule_spread(UINT64_MAX, (const char *[]){"low", what, run, which, NULL}));
}

void attempts_get_chain(const struct job *job, const struct run *run, struct chain *ret) {
    const struct job_attempts *attempts = &job->attempts;

    *ret = (struct chain){.queued_realtime = run->job.origin.first_queued_realtime,
                          .attempt = run->job.origin.attempt};
    memcpy(ret->first_run, run->job.origin.first_run, sizeof(ret->first_run));
    if (ret->queued_realtime == 0 && strcmp(attempts->first_run, ret->first_run) == 0)
        ret->queued_realtime = attempts->first_queued_realtime;
    if (ret->queued_realtime == 0) /* a guard knows only its own run */
        ret->queued_realtime = run->queued.realtime;
}

/* --- events --- */

static void log_retry(const struct job *job, const struct run *run, usec_t delay) {
    char pools[DEMANDS_TEXT_SIZE], text[DURATION_TEXT_SIZE];
    struct event e = run_event(run, EVENT_RETRY, pools);

    e.origin.attempt = run->job.origin.attempt + 1;
    e.origin.attempts = job->settings->retry.retries + 1;
    e.origin.first_run = run->job.origin.first_run;
    e.delay_usec = delay;
    e.result = run_result_name(run->end.result);
    e.reason = NULL;
    run_log(run, &e, "%s is tried again in %s%s: attempt %" PRIu32 " of %" PRIu32, job->name,
            duration_format(delay / USEC_PER_MSEC * USEC_PER_MSEC, text), run->job.turn ? " on any host" : "",
            e.origin.attempt, e.origin.attempts);
}

/* Returns how many attempts of the chain were made. One that was withdrawn while it waited was not. */
static uint32_t count_made(const struct run *run) {
    bool is_made = run->granted || chain_judge(run->end.result) != CHAIN_END_NEUTRAL;

    return run->job.origin.attempt - !is_made;
}

/* made: the attempts so far; 0: none. */
static void log_gave_up(const struct job *job, const struct run *run, uint32_t made,
                        enum chain_reason reason) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e = run_event(run, EVENT_GAVE_UP, pools);

    e.origin.attempt = made;
    e.origin.attempts = job->settings->retry.retries + 1;
    e.origin.first_run = run->job.origin.first_run;
    e.reason = chain_reason_name(reason);
    if (made > 0)
        run_log(run, &e, "%s is not tried again after attempt %" PRIu32 ": %s", job->name, made, e.reason);
    else
        run_log(run, &e, "%s is given up before its first attempt: %s", job->name, e.reason);
}

/* --- the next run --- */

/* Makes a run in the state retrying, which begins after the delay. */
static void make_next(struct scheduler *scheduler, struct job *job, const char *id, struct run_time now,
                      usec_t delay, const struct run_origin *origin) {
    struct run *next = run_table_find(scheduler->runs, id);
    struct run_origin copy = {0};

    if (next) /* an earlier berthd noted the end, and was killed before it confirmed the report */
        return;
    if (run_origin_copy(&copy, origin) < 0 ||
        triggers_add_run(scheduler, job, id, RUN_STATE_RETRYING, now, &next) < 0)
        memory_exit("the next attempt of a job");
    next->job.origin = copy;
    next->job.begin_due = usec_add(now.boottime, delay);
    next->job.begin_realtime = usec_add(now.realtime, delay);
    state_save_run(scheduler->state, next);
    FAILPOINT("retry-noted");
    attempts_note_run(scheduler, job, next);
    scheduler->handler.await(next, next->job.begin_due, scheduler->handler.userdata);
}

static void retry(struct scheduler *scheduler, struct job *job, struct run *run, struct run_time now,
                  usec_t delay) {
    struct run_origin origin = run->job.origin;
    char id[ID_TEXT_SIZE], number[16];

    origin.trigger = RUN_TRIGGER_RETRY;
    origin.attempt++;
    if (origin.first_queued_realtime == 0) {
        struct chain chain;

        attempts_get_chain(job, run, &chain);
        origin.first_queued_realtime = chain.queued_realtime;
    }
    snprintf(number, sizeof(number), "%" PRIu32, origin.attempt);
    attempts_make_id("retry", origin.first_run, number, id);
    free(run->job.next_run);
    run->job.next_run = strdup(id);
    if (!run->job.next_run)
        memory_exit("the id of a next attempt");
    make_next(scheduler, job, id, now, delay, &origin);
    log_retry(job, run, delay);
}

static void restart(struct scheduler *scheduler, struct job *job, const struct run *run,
                    struct run_time now) {
    const struct job_retry *terms = &job->settings->retry;
    struct run_origin origin;
    char id[ID_TEXT_SIZE];

    job->attempts.n_quick =
        chain_count_quick(terms, job->attempts.n_quick, run_time_usec(run, now.boottime));
    attempts_make_id("restart", run->id, "", id);
    run_origin_init(&origin, id);
    origin.trigger = RUN_TRIGGER_RESTART;
    make_next(scheduler, job, id, now, chain_restart_delay(terms, run->id, job->attempts.n_quick), &origin);
}

/* --- the end of a run --- */

static bool has_reason(const struct run *run, const char *reason) {
    return strcmp(run->reason, reason) == 0;
}

/* Returns whether the run was to be stopped, even if it ended by itself before its guard received the stop. */
static bool was_to_stop(const struct run *run) {
    return run->end.result == RUN_RESULT_STOPPED || run->stop_reason == SUPERVISE_REASON_STOPPED ||
           run->stop_reason == SUPERVISE_REASON_REVOKED;
}

static void note_restart(struct scheduler *scheduler, struct job *job, const struct run *run,
                         struct run_time now) {
    if (job->settings->retry.restart == JOB_RESTART_NO || run->job.origin.trigger == RUN_TRIGGER_HOOK)
        return;
    if (scheduler->is_stopped || has_reason(run, "shutdown") || has_reason(run, "superseded"))
        return;
    if (has_reason(run, "drained") ||
        (!was_to_stop(run) && chain_restarts(&job->settings->retry, run->end.result)))
        restart(scheduler, job, run, now); /* on a drained host it begins at the undrain */
    else if (was_to_stop(run))
        job->attempts.is_stopped = true;
}

/* Logs the end of a chain whose next run was retrying and is not begun. */
static void give_up_next(const struct job *job, const struct run *run) {
    bool is_superseded = has_reason(run, "superseded");

    if (run->job.origin.trigger == RUN_TRIGGER_RETRY && !has_reason(run, "within"))
        log_gave_up(job, run, run->job.origin.attempt - 1,
                    is_superseded ? CHAIN_REASON_SUPERSEDED : CHAIN_REASON_STOPPED);
}

/* is_lost: the run lost its host or its lease. Then Redis opens its turn itself, by the committed terms. */
static void retry_anywhere(struct scheduler *scheduler, const struct job *job, struct run *run, usec_t delay,
                           bool is_lost) {
    if (!is_lost)
        turn_attempts_give_back(scheduler, run, delay);
    log_retry(job, run, delay);
}

/* Returns whether the run is the last one of its chain. */
static bool is_last(struct scheduler *scheduler, struct job *job, struct run *run, struct run_time now) {
    struct run_end end = run->end;
    struct chain chain;
    struct chain_decision decision;

    if (run->job.is_given_back)
        return false;
    if (has_reason(run, "within")) {
        log_gave_up(job, run, run->job.origin.attempt - 1, CHAIN_REASON_WITHIN);
        return true;
    }
    if (run->job.turn && end.result == RUN_RESULT_LEASE_LOST)
        end.result = RUN_RESULT_HOST_LOST; /* Redis cannot distinguish the two */
    if (was_to_stop(run) && chain_judge(end.result) == CHAIN_END_BAD)
        end.result = RUN_RESULT_STOPPED; /* a stop ends the chain */
    attempts_get_chain(job, run, &chain);
    decision = chain_decide(&job->settings->retry, &chain, &end, now.realtime);
    switch (decision.next) {
    case CHAIN_NEXT_NOTHING:
        break;
    case CHAIN_NEXT_RETRY:
        if (run->job.turn)
            retry_anywhere(scheduler, job, run, decision.delay_usec, end.result == RUN_RESULT_HOST_LOST);
        else
            retry(scheduler, job, run, now, decision.delay_usec);
        return false;
    case CHAIN_NEXT_GIVE_UP:
        log_gave_up(job, run, count_made(run), decision.reason);
        break;
    }
    return true;
}

static void end_attempt(struct scheduler *scheduler, struct job *job, struct run *run, struct run_time now) {
    if (run->state == RUN_STATE_RETRYING) {
        give_up_next(job, run);
        note_restart(scheduler, job, run, now);
        attempts_note_over(scheduler, job, run);
        return;
    }
    if (is_last(scheduler, job, run, now)) {
        note_restart(scheduler, job, run, now);
        hooks_run_over(scheduler, job, run, now);
    }
    ends_note(job, run);
    attempts_note_over(scheduler, job, run);
    FAILPOINT("end-noted");
    hooks_begin(scheduler);
}

/* Before the record of the run goes: a berthd that finds neither would begin its due time again. */
void scheduler_run_ends(struct scheduler *scheduler, struct run *run, struct run_time now) {
    struct job *job = run->kind == RUN_KIND_JOB ? scheduler_find(scheduler, run->name) : NULL;

    if (!job)
        return;
    if (attempts_are_used(job->settings) && !run->job.queued_by_overlap && strcmp(job->last_run, run->id) != 0) {
        end_attempt(scheduler, job, run, now);
    } else if (run->job.begin_due == 0) { /* else it was retrying and never began */
        ends_note(job, run);
        scheduler_save(scheduler, job);
    }
}

enum run_result scheduler_judge(const struct scheduler *scheduler, const struct run *run,
                                enum run_result result) {
    const struct job *job = scheduler_find(scheduler, run->name);

    return job ? chain_result(&job->settings->retry, result, run->end.exit_code) : result;
}

/* --- begins --- */

/* The attempt would begin too late, so the chain is over with the end of the last one. */
static void give_up_late(struct scheduler *scheduler, struct job *job, struct run *run,
                         struct run_time now) {
    log_gave_up(job, run, run->job.origin.attempt - 1, CHAIN_REASON_WITHIN);
    run->end.result = job->last_result;
    run->end.exit_code = job->last_exit_code;
    run->end.signal = job->last_signal;
    hooks_run_over(scheduler, job, run, now);
    run->end.result = RUN_RESULT_NONE;
    run->end.exit_code = run->end.signal = -1;
    scheduler_save(scheduler, job);
    scheduler_withdraw(scheduler, run, "within");
    hooks_begin(scheduler);
}

void scheduler_begin_attempt(struct scheduler *scheduler, struct run *run, struct run_time now) {
    struct job *job = scheduler_find(scheduler, run->name);
    struct chain chain;

    if (!scheduler->is_started || scheduler->is_drained) /* scheduler_start() awaits it again */
        return;
    if (!job ||
        (run->job.origin.trigger == RUN_TRIGGER_RESTART && job->settings->retry.restart == JOB_RESTART_NO)) {
        scheduler_withdraw(scheduler, run,
                           job ? "its job is no longer restarted" : SCHEDULER_UNDEFINED);
        return;
    }
    attempts_get_chain(job, run, &chain);
    if (run->job.origin.trigger == RUN_TRIGGER_RETRY &&
        chain_is_late(&job->settings->retry, &chain, now.realtime)) {
        give_up_late(scheduler, job, run, now);
        return;
    }
    memcpy(job->attempts.first_run, chain.first_run, sizeof(chain.first_run));
    job->attempts.first_queued_realtime = chain.queued_realtime;
    FAILPOINT("retry-beginning");
    triggers_begin_fresh(scheduler, job, run, now);
    FAILPOINT("retry-begun");
}

void attempts_start_job(struct scheduler *scheduler, struct job *job, struct run_time now) {
    struct run *oldest;

    list_foreach (run, &job->runs, struct run, job.of_job)
        if (run->state == RUN_STATE_RETRYING)
            scheduler->handler.await(run, run->job.begin_due, scheduler->handler.userdata);
    if (job->settings->retry.restart == JOB_RESTART_NO || scheduler->is_drained || job->at_start_done)
        return;
    job->at_start_done = true;
    if (scheduler_count_runs(scheduler, job->name, &oldest) == 0)
        triggers_restart(scheduler, job, now);
}

void attempts_supersede(struct scheduler *scheduler, struct job *job) {
    list_foreach_safe (run, &job->runs, struct run, job.of_job)
        if (run->state == RUN_STATE_RETRYING && run->job.origin.depth == 0)
            scheduler_withdraw(scheduler, run, "superseded");
}

void attempts_forget_service(struct scheduler *scheduler, struct job *job) {
    job->attempts.is_stopped = false;
    job->attempts.n_quick = 0;
    list_foreach (run, &job->runs, struct run, job.of_job)
        if (run->state == RUN_STATE_RETRYING && run->job.origin.trigger == RUN_TRIGGER_RESTART)
            state_remove_run(scheduler->state, run);
}
