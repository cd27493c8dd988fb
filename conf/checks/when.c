/* SPDX-License-Identifier: MIT */

/* Checks the options that say when a job is due against each other: schedule, every, zone and others. */

#include <string.h>

#include "conf/checks/checks.h"
#include "conf/hash.h"
#include "conf/settings-read.h"

#define DAY (86400 * USEC_PER_SEC)

static void inherit_zone(const struct settings *s, struct job_triggers *triggers,
                         const struct value_reader *reader) {
    if (!triggers->zone.name || *triggers->zone.name != '\0' || !s->zone.name)
        return;
    free(triggers->zone.name);
    triggers->zone = (struct zone_setting){value_copy(reader, s->zone.name), s->zone.place};
}

static void check_together(const struct job_triggers *triggers, const struct value_reader *reader) {
    struct settings_place every = value_place(reader, "every"), splay = value_place(reader, "splay");
    struct settings_place except = value_place(reader, "except"), backlog = value_place(reader, "backlog");
    bool has_schedule = value_option(reader, "schedule")->n_values > 0;
    bool has_none =
        !has_schedule && (value_is_given(reader, "schedule") || value_is_missing(reader, "schedule"));

    if (has_schedule && triggers->every_usec != USEC_INFINITY)
        value_note(reader, &every, "schedule and every exclude each other; remove one");
    if (triggers->splay_usec >= DAY)
        value_note(reader, &splay, "splay must be shorter than 1d");
    if (value_option(reader, "except")->n_values > 0 && has_none)
        value_note(reader, &except,
                   "except without schedule; write a schedule, from whose times except takes some away");
    if (triggers->overlap == JOB_OVERLAP_REPLACE && triggers->backlog > 1)
        value_note(reader, &backlog,
                   "overlap = \"replace\" and backlog above 1 exclude each other; keep one");
}

/* ---- the hash ---- */

static void hash_cron(uint64_t *hash, const struct cron *cron) {
    hash_add_number(hash, "minutes", cron->minutes);
    hash_add_number(hash, "hours", cron->hours);
    hash_add_number(hash, "days", cron->days);
    hash_add_number(hash, "last-days", cron->last_days);
    hash_add_number(hash, "months", cron->months);
    hash_add_number(hash, "weekdays", cron->weekdays);
    hash_add_number(hash, "last-weekdays", cron->last_weekdays);
    for (size_t i = 0; i < ELEMENTSOF(cron->nth_weekdays); i++)
        hash_add_number(hash, "nth-weekdays", cron->nth_weekdays[i]);
    hash_add_number(hash, "needs-both", cron->needs_both);
}

static void hash_schedule(uint64_t *hash, const struct schedule *schedule) {
    for (size_t i = 0; i < schedule->n_entries; i++) {
        hash_cron(hash, &schedule->entries[i].cron);
        for (char **set = schedule->entries[i].set; set && *set; set++)
            hash_add_text(hash, "set", *set);
    }
    for (size_t i = 0; i < schedule->n_excepts; i++) {
        const struct schedule_except *except = &schedule->excepts[i];

        hash_add_number(hash, "except", except->is_date);
        hash_cron(hash, &except->cron);
        hash_add_number(hash, "first-day", (uint64_t) except->first_day);
        hash_add_number(hash, "last-day", (uint64_t) except->last_day);
    }
}

/* Hosts share due times but no last start, so the period counts from a fixed time. */
static void set_period(struct job_triggers *triggers) {
    if (triggers->sharing.on == JOB_ON_ANY && triggers->every_usec != USEC_INFINITY)
        triggers->schedule.period = (int64_t) (triggers->every_usec / USEC_PER_SEC);
}

static uint64_t hash_triggers(const struct job_triggers *triggers) {
    uint64_t hash = HASH_EMPTY;

    hash_schedule(&hash, &triggers->schedule);
    hash_add_text(&hash, "zone", triggers->zone.name);
    hash_add_number(&hash, "splay", triggers->splay_usec);
    if (triggers->schedule.period > 0)
        hash_add_number(&hash, "period", (uint64_t) triggers->schedule.period);
    if (triggers->sharing.on == JOB_ON_ANY)
        hash_add_number(&hash, "on", triggers->sharing.on);
    return hash;
}

void settings_read_triggers(const struct settings *s, struct job_settings *job,
                            const struct value_reader *reader) {
    inherit_zone(s, &job->triggers, reader);
    check_together(&job->triggers, reader);
    set_period(&job->triggers);
    if (!reader->notes->out_of_memory)
        job->triggers.schedule_hash = hash_triggers(&job->triggers);
}
