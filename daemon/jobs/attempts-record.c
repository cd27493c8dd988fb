/* SPDX-License-Identifier: MIT */

/* Attempts and health of a job as fields of its record. */

#include "daemon/jobs/attempts.h"

#include <string.h>

bool attempts_are_used(const struct job_settings *settings) {
    const struct job_hooks *hooks = &settings->hooks;

    return settings->retry.retries > 0 || settings->retry.restart != JOB_RESTART_NO || hooks->on_success ||
           hooks->on_failure || hooks->on_broken || hooks->on_recovered ||
           hooks->max_silence_usec != USEC_INFINITY;
}

void attempts_put_health(const struct health *health, struct message_writer *w) {
    message_put(w, "health", health->is_broken ? "broken" : "well");
    message_put_u64(w, "bad", health->n_bad);
    message_put_u64(w, "bad-since", health->bad_since);
    message_put_u64(w, "last-good", health->last_good);
    message_put_u64(w, "known-since", health->known_since);
    message_put_u64(w, "last-reminder", health->last_reminder);
    message_put_u64(w, "last-overdue", health->last_overdue);
}

void attempts_put(const struct job_attempts *attempts, struct message_writer *w) {
    if (attempts->first_run[0]) {
        message_put(w, "chain", attempts->first_run);
        message_put_u64(w, "chain-queued", attempts->first_queued_realtime);
    }
    message_put_u64(w, "quick-ends", attempts->n_quick);
    message_put(w, "restart", attempts->is_stopped ? "stopped" : "yes");
    attempts_put_health(&attempts->health, w);
}

static uint32_t read_number(const struct message *record, const char *key) {
    uint64_t value;

    return message_get_u64(record, key, &value) == 0 && value <= UINT32_MAX ? (uint32_t) value : 0;
}

static bool is_word(const struct message *record, const char *key, const char *word) {
    const char *text = message_get(record, key);

    return text && strcmp(text, word) == 0;
}

void attempts_read(struct job_attempts *attempts, const struct message *record) {
    struct health *health = &attempts->health;

    if (!message_get(record, "health")) /* the job had none of these options */
        return;
    attempts->is_known = true;
    (void) message_get_id(record, "chain", attempts->first_run);
    (void) message_get_u64(record, "chain-queued", &attempts->first_queued_realtime);
    attempts->n_quick = read_number(record, "quick-ends");
    attempts->is_stopped = is_word(record, "restart", "stopped");
    health->is_broken = is_word(record, "health", "broken");
    health->n_bad = read_number(record, "bad");
    (void) message_get_u64(record, "bad-since", &health->bad_since);
    (void) message_get_u64(record, "last-good", &health->last_good);
    (void) message_get_u64(record, "known-since", &health->known_since);
    (void) message_get_u64(record, "last-reminder", &health->last_reminder);
    (void) message_get_u64(record, "last-overdue", &health->last_overdue);
}
