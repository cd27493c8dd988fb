/* SPDX-License-Identifier: MIT */

/* Attempts of a due time that hosts share (R18). Between two attempts the turn is open, and any host may
 * take it. The chain moves from host to host with the turn. When an attempt ends, its host gives the turn
 * back. If the host is lost, Redis opens the turn by the committed terms. `berth stop` ends an open turn. */

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "daemon/runs/chain.h"
#include "daemon/jobs/scheduler-internal.h"

#define OTHERS_FIRST (2 * USEC_PER_SEC) /* how much later the host that failed asks */

/* Parses "RUN:TIME": the first run, and when it was queued (CLOCK_REALTIME µs). Returns false on other
 * text. */
static bool parse_chain(const char *text, char ret_run[static ID_TEXT_SIZE], usec_t *ret_queued) {
    const char *colon = strchr(text, ':');
    uint64_t queued;

    if (!colon || (size_t) (colon - text) >= ID_TEXT_SIZE || number_parse(colon + 1, UINT64_MAX, &queued) < 0)
        return false;
    (void) snprintf(ret_run, ID_TEXT_SIZE, "%.*s", (int) (colon - text), text);
    *ret_queued = queued;
    return id_is_valid(ret_run);
}

void turn_attempts_take(struct run *run) {
    const struct claim_turn *turn = run->job.turn;
    struct run_origin *origin = &run->job.origin;
    char first_run[ID_TEXT_SIZE];
    usec_t queued;

    if (turn->attempt <= 1)
        return;
    origin->trigger = RUN_TRIGGER_RETRY;
    origin->attempt = turn->attempt;
    if (!parse_chain(turn->chain, first_run, &queued))
        return;
    memcpy(origin->first_run, first_run, sizeof(first_run));
    origin->first_queued_realtime = queued;
}

void turn_attempts_set_terms(const struct job *job, struct run *run, struct run_time now) {
    struct claim_turn *turn = run->job.turn;
    struct chain chain;

    attempts_get_chain(job, run, &chain);
    turn->again_usec = chain_again(&job->settings->retry, &chain, now.realtime);
    (void) snprintf(turn->chain, sizeof(turn->chain), "%s:%" PRIu64, chain.first_run, chain.queued_realtime);
}

bool scheduler_turn_may_begin(struct scheduler *scheduler, struct run *run, struct run_time now) {
    struct job *job = scheduler_find(scheduler, run->name);
    struct chain chain;

    if (!job)
        return true;
    attempts_get_chain(job, run, &chain);
    if (chain.attempt > 1 && chain_is_late(&job->settings->retry, &chain, now.realtime))
        return false;
    turn_attempts_set_terms(job, run, now);
    attempts_note_run(scheduler, job, run);
    return true;
}

/* --- ends --- */

void turn_attempts_give_back(struct scheduler *scheduler, struct run *run, usec_t delay) {
    run->job.next_attempt = run->job.origin.attempt + 1;
    run->job.next_delay_usec = delay;
    state_save_run(scheduler->state, run); /* if berthd is killed, the next one gives the turn back */
}

void turn_attempts_ask_later(struct scheduler *scheduler, struct job *job, const struct run *run,
                             struct run_time now) {
    usec_t delay = usec_add(run->job.next_delay_usec, OTHERS_FIRST);

    if (run->job.next_attempt > 0 && run->job.turn && turns_is_shared(job))
        turns_add_open(scheduler, job, run->job.turn->due, run->job.next_attempt, usec_add(now.realtime, delay));
}

static void log_gave_up(struct scheduler *scheduler, const struct job *job, const struct store_ended_turn *turn,
                        enum chain_reason reason) {
    char text[SCHEDULE_TEXT_SIZE], first_run[ID_TEXT_SIZE];
    struct event e = {.type = EVENT_GAVE_UP,
                      .job = job->name,
                      .origin.due = text,
                      .origin.attempt = turn->attempt - 1,
                      .reason = chain_reason_name(reason)};
    usec_t queued;

    schedule_format(shared_zone_get(job->schedule.zone), turn->due, text);
    e.origin.attempts = job->settings->retry.retries + 1;
    if (parse_chain(turn->chain, first_run, &queued))
        e.run = e.origin.first_run = first_run;
    event_emit(scheduler->runs->events, &e, "%s is not tried again for %s after attempt %" PRIu32 ": %s", job->name,
               text, turn->attempt - 1, e.reason);
}

void scheduler_turn_superseded(struct scheduler *scheduler, const struct run *run,
                               const struct store_ended_turn *turn) {
    const struct job *job = scheduler_find(scheduler, run->name);

    if (job && shared_zone_get(job->schedule.zone))
        log_gave_up(scheduler, job, turn, CHAIN_REASON_SUPERSEDED);
}

void scheduler_turns_stopped(struct scheduler *scheduler, const char *name, const struct store_ended_turns *ended) {
    struct job *job = scheduler_find(scheduler, name);

    if (!job || !shared_zone_get(job->schedule.zone))
        return;
    for (size_t i = 0; i < ended->n_turns; i++) {
        turns_drop_open(job, ended->turns[i].due);
        if (ended->turns[i].attempt > 1)
            log_gave_up(scheduler, job, &ended->turns[i], CHAIN_REASON_STOPPED);
        else
            due_runs_log_one_missed(scheduler, job, ended->turns[i].due, "stopped");
    }
}
