/* SPDX-License-Identifier: MIT */
#include "daemon/jobs/health.h"

static void limit(usec_t *time, usec_t now) {
    if (*time > now)
        *time = now;
}

/* After the clock was set back, times in the future become now. */
static void take_back(struct health *health, usec_t now) {
    limit(&health->bad_since, now);
    limit(&health->last_good, now);
    limit(&health->known_since, now);
    limit(&health->last_reminder, now);
    limit(&health->last_overdue, now);
}

static unsigned note_good(struct health *health, usec_t now) {
    unsigned events = HEALTH_SUCCESS | (health->is_broken ? HEALTH_RECOVERED : 0);

    health->is_broken = false;
    health->n_bad = 0;
    health->bad_since = health->last_reminder = health->last_overdue = 0;
    health->last_good = now;
    return events;
}

static unsigned note_bad(struct health *health, const struct job_hooks *hooks, usec_t now) {
    if (health->n_bad == 0)
        health->bad_since = now;
    if (health->n_bad < UINT32_MAX)
        health->n_bad++;
    if (!health->is_broken && health->n_bad < hooks->broken_after)
        return HEALTH_FAILURE;
    if (health->is_broken && now < usec_add(health->last_reminder, hooks->remind_after_usec))
        return HEALTH_FAILURE;
    health->last_reminder = now;
    if (health->is_broken)
        return HEALTH_FAILURE | HEALTH_REMINDER;
    health->is_broken = true;
    return HEALTH_FAILURE | HEALTH_BROKEN;
}

unsigned health_note_end(struct health *health, const struct job_hooks *hooks, enum chain_end end,
                         usec_t now) {
    take_back(health, now);
    switch (end) {
    case CHAIN_END_GOOD:
        return note_good(health, now);
    case CHAIN_END_BAD:
        return note_bad(health, hooks, now);
    case CHAIN_END_NEUTRAL:
        break;
    }
    return 0;
}

usec_t health_next(const struct health *health, const struct job_hooks *hooks, usec_t now) {
    usec_t since = health->last_good > 0 ? health->last_good : health->known_since;

    if (health->last_overdue > since)
        since = health->last_overdue;
    limit(&since, now);
    return usec_add(since, hooks->max_silence_usec);
}

unsigned health_note_time(struct health *health, const struct job_hooks *hooks, usec_t now) {
    bool was_broken = health->is_broken;

    take_back(health, now);
    if (now < health_next(health, hooks, now))
        return 0;
    health->is_broken = true;
    health->last_reminder = health->last_overdue = now;
    return HEALTH_OVERDUE | (was_broken ? 0 : HEALTH_BROKEN);
}
