/* SPDX-License-Identifier: MIT */

/* Decides which end of a run is good, and whether another attempt follows and when. attempts.c carries it out. */

#include "daemon/runs/chain.h"

#include <stdio.h>

#include "base/schedule/schedule.h"

/* --- ends --- */

enum chain_end chain_judge(enum run_result result) {
    switch (result) {
    case RUN_RESULT_SUCCESS:
        return CHAIN_END_GOOD;
    case RUN_RESULT_NONE:
    case RUN_RESULT_STOPPED:
        return CHAIN_END_NEUTRAL;
    case RUN_RESULT_FAILURE:
    case RUN_RESULT_TIMEOUT:
    case RUN_RESULT_LEASE_LOST:
    case RUN_RESULT_QUEUE_TIMEOUT:
    case RUN_RESULT_NOT_STARTED:
    case RUN_RESULT_GUARD_DIED:
    case RUN_RESULT_HOST_LOST:
        break;
    }
    return CHAIN_END_BAD;
}

enum run_result chain_result(const struct job_retry *retry, enum run_result result, int exit_code) {
    if (exit_code < 0 || (result != RUN_RESULT_SUCCESS && result != RUN_RESULT_FAILURE))
        return result;
    return exit_statuses_have(&retry->success, exit_code) ? RUN_RESULT_SUCCESS : RUN_RESULT_FAILURE;
}

const char *chain_reason_name(enum chain_reason reason) {
    static const char *const names[] = {
        [CHAIN_REASON_ATTEMPTS] = "attempts", [CHAIN_REASON_NOT_RETRIED] = "not-retried",
        [CHAIN_REASON_WITHIN] = "within",     [CHAIN_REASON_SUPERSEDED] = "superseded",
        [CHAIN_REASON_STOPPED] = "stopped",
    };

    return names[reason];
}

/* --- retries --- */

static bool rule_matches(const struct retry_rule *rule, const struct run_end *end) {
    switch (rule->kind) {
    case RETRY_FAILURE:
        return end->result == RUN_RESULT_FAILURE;
    case RETRY_EXIT:
        return end->result == RUN_RESULT_FAILURE && end->exit_code >= rule->first &&
               end->exit_code <= rule->last;
    case RETRY_SIGNAL:
        return end->result == RUN_RESULT_FAILURE && end->signal == rule->first;
    case RETRY_TIMEOUT:
        return end->result == RUN_RESULT_TIMEOUT;
    case RETRY_LEASE_LOST:
        return end->result == RUN_RESULT_LEASE_LOST;
    case RETRY_GUARD_DIED:
        return end->result == RUN_RESULT_GUARD_DIED;
    case RETRY_HOST_LOST:
        return end->result == RUN_RESULT_HOST_LOST;
    case RETRY_NOT_STARTED:
        return end->result == RUN_RESULT_NOT_STARTED;
    case RETRY_QUEUE_TIMEOUT:
        return end->result == RUN_RESULT_QUEUE_TIMEOUT;
    }
    return false;
}

static bool is_retried(const struct retry_rules *rules, const struct run_end *end) {
    bool answer = false;

    for (size_t i = 0; i < rules->n; i++)
        if (rule_matches(&rules->items[i], end))
            answer = !rules->items[i].is_negated;
    return answer;
}

bool chain_is_late(const struct job_retry *retry, const struct chain *chain, usec_t begin_realtime) {
    return begin_realtime > usec_add(chain->queued_realtime, retry->within_usec);
}

static struct chain_decision give_up(enum chain_reason reason) {
    return (struct chain_decision){.next = CHAIN_NEXT_GIVE_UP, .reason = reason};
}

struct chain_decision chain_decide(const struct job_retry *retry, const struct chain *chain,
                                   const struct run_end *end, usec_t now_realtime) {
    enum chain_end judged = chain_judge(end->result);
    usec_t delay;

    if (judged == CHAIN_END_GOOD || retry->retries == 0)
        return (struct chain_decision){.next = CHAIN_NEXT_NOTHING};
    if (judged == CHAIN_END_NEUTRAL)
        return give_up(CHAIN_REASON_STOPPED);
    if (chain->attempt > retry->retries)
        return give_up(CHAIN_REASON_ATTEMPTS);
    if (!is_retried(&retry->on, end))
        return give_up(CHAIN_REASON_NOT_RETRIED);
    delay = chain_delay(retry, chain->first_run, chain->attempt);
    if (chain_is_late(retry, chain, usec_add(now_realtime, delay)))
        return give_up(CHAIN_REASON_WITHIN);
    return (struct chain_decision){.next = CHAIN_NEXT_RETRY, .delay_usec = delay};
}

/* retry-delay * 2^(k-1), at most retry-delay-max. */
static usec_t double_delay(const struct job_retry *retry, uint32_t k) {
    usec_t delay = retry->delay_usec;

    for (; k > 1 && delay < retry->delay_max_usec; k--)
        delay = usec_add(delay, delay);
    return delay < retry->delay_max_usec ? delay : retry->delay_max_usec;
}

usec_t chain_delay(const struct job_retry *retry, const char *first_run, uint32_t k) {
    usec_t half = double_delay(retry, k) / 2;
    char number[16];

    snprintf(number, sizeof(number), "%" PRIu32, k);
    return half + schedule_spread(half / USEC_PER_MSEC, (const char *[]){"retry", first_run, number, NULL}) *
                      USEC_PER_MSEC;
}

usec_t chain_again(const struct job_retry *retry, const struct chain *chain, usec_t now_realtime) {
    const struct run_end lost = {.result = RUN_RESULT_HOST_LOST, .exit_code = -1, .signal = -1};
    struct chain_decision decision = chain_decide(retry, chain, &lost, now_realtime);

    return decision.next == CHAIN_NEXT_RETRY ? decision.delay_usec : USEC_INFINITY;
}

/* --- restarts --- */

bool chain_restarts(const struct job_retry *retry, enum run_result result) {
    switch (retry->restart) {
    case JOB_RESTART_NO:
        break;
    case JOB_RESTART_ALWAYS:
        return chain_judge(result) != CHAIN_END_NEUTRAL;
    case JOB_RESTART_ON_FAILURE:
        return chain_judge(result) == CHAIN_END_BAD;
    }
    return false;
}

uint32_t chain_count_quick(const struct job_retry *retry, uint32_t n_quick, usec_t run_usec) {
    if (run_usec >= retry->delay_max_usec)
        return 0;
    return n_quick < UINT32_MAX ? n_quick + 1 : n_quick;
}

usec_t chain_restart_delay(const struct job_retry *retry, const char *run, uint32_t n_quick) {
    return chain_delay(retry, run, n_quick > 0 ? n_quick : 1);
}
