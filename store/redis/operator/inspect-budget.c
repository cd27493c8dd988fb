/* SPDX-License-Identifier: MIT */
#include "store/redis/operator/inspect-budget.h"

static usec_t debt_at(const struct inspect_budget *b, usec_t now) {
    return usec_sub(b->debt_usec, usec_sub(now, b->at) / INSPECT_CREDIT_RATE);
}

usec_t inspect_budget_wait(const struct inspect_budget *b, usec_t now) {
    usec_t missing = usec_sub(debt_at(b, now), INSPECT_CREDIT_MAX), wait = missing * INSPECT_CREDIT_RATE;
    usec_t longest = usec_sub(usec_add(b->begun, INSPECT_WAIT_MAX), now);

    return wait < longest ? wait : longest;
}

void inspect_budget_begin(struct inspect_budget *b, usec_t now) {
    b->begun = now;
}

void inspect_budget_spend(struct inspect_budget *b, usec_t now, usec_t cost_usec) {
    usec_t most = INSPECT_CREDIT_MAX + INSPECT_WAIT_MAX / INSPECT_CREDIT_RATE, debt = usec_add(debt_at(b, now), cost_usec);

    b->debt_usec = debt < most ? debt : most;
    b->at = now;
    b->all_usec = usec_add(b->all_usec, cost_usec);
    b->n_calls++;
}
