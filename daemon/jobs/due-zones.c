/* SPDX-License-Identifier: MIT */

/* The schedules and zones of jobs: takes them from new settings, looks at zone files each hour, and moves
 * the mark of a job if its zone has new rules. */

#include "daemon/jobs/scheduler-internal.h"

#define HOUR (3600 * USEC_PER_SEC)

/* --- marks --- */

void due_zones_set_mark(struct scheduler *scheduler, struct job *job, int64_t mark) {
    const struct zone *zone = shared_zone_get(job->schedule.zone);

    job->schedule.mark = mark;
    job->schedule.mark_local = zone ? mark + zone_offset(zone, mark) : 0;
    job->schedule.serial++;
    if (job->schedule.begun > mark)
        job->schedule.begun = mark;
    due_marks_save(scheduler, job);
}

static bool has_times_of_day(const struct schedule *schedule) {
    for (size_t i = 0; i < schedule->n_entries; i++)
        if (!cron_is_every_hour(&schedule->entries[i].cron))
            return true;
    return false;
}

/* New rules may set the zone's clock back, so that it shows decided times of day again. Then the mark moves
 * on to the instant with the same local time. If the clock goes back by more than DUE_CLOCK_SET, these times
 * come again, as when this machine's clock is set back. Rules that set the clock forward make nothing due
 * for the past. */
void due_zones_check_mark(struct scheduler *scheduler, struct job *job) {
    const struct job_schedule *schedule = &job->schedule;
    int64_t back = schedule->mark_local - schedule->mark - zone_offset(schedule->zone->zone, schedule->mark);
    bool is_shown_again =
        back > 0 && back <= DUE_CLOCK_SET && has_times_of_day(&job->settings->triggers.schedule);

    if (back == 0)
        return;
    due_zones_set_mark(scheduler, job, is_shown_again ? schedule->mark + back : schedule->mark);
    scheduler_save(scheduler, job);
}

/* --- zones --- */

static void log_changed(struct scheduler *scheduler, const struct shared_zone *zone) {
    struct event e = {.type = EVENT_ZONE_CHANGED, .reason = zone->name};

    event_emit(scheduler->runs->events, &e, "the zone %s has new rules: the next due times follow them",
               zone->name);
}

static void look_at_zones(struct scheduler *scheduler) {
    struct zones *zones = &scheduler->due_runs.zones;

    if (!zones_refresh(zones))
        return;
    for (size_t i = 0; i < zones->n; i++)
        if (zones->items[i]->has_changed)
            log_changed(scheduler, zones->items[i]);
    due_runs_wake_all(scheduler);
}

/* Wakes jobs without a next due time: a later date or a new rule may give them one. */
static void wake_idle(struct scheduler *scheduler) {
    for (size_t i = 0; i < scheduler->n_jobs; i++) {
        struct job *job = scheduler->jobs[i];

        if (!schedule_is_empty(&job->settings->triggers.schedule) && job->schedule.next_begin == USEC_INFINITY)
            due_runs_wake(scheduler, job);
    }
}

void due_zones_on_hour(void *userdata) {
    struct scheduler *scheduler = userdata;

    look_at_zones(scheduler);
    wake_idle(scheduler);
    timer_set_in(&scheduler->due_runs.hourly, HOUR);
}

static void find_zone(struct scheduler *scheduler, struct job *job) {
    const char *name = job->settings->triggers.zone.name, *error;
    struct event e = {.type = EVENT_ZONE_MISSING, .job = job->name, .reason = name};

    job->schedule.zone = NULL;
    (void) zones_get(&scheduler->due_runs.zones, name, &job->schedule.zone);
    if (shared_zone_get(job->schedule.zone))
        return;
    error = job->schedule.zone ? job->schedule.zone->error : NULL;
    event_emit(scheduler->runs->events, &e, "%s is not due by its schedule: zone \"%s\" %s", job->name, name,
               error ? error : "cannot be read: out of memory");
}

/* --- settings --- */

static void use_schedule(struct scheduler *scheduler, struct job *job, struct run_time now) {
    const struct job_triggers *triggers = &job->settings->triggers;
    const struct settings *settings = scheduler->settings;
    const char *host = turns_is_shared(job) ? "" : settings->host;
    const char *const key[] = {"splay", settings->namespace, job->name, host, NULL};

    find_zone(scheduler, job);
    job->schedule.splay_usec = schedule_spread(triggers->splay_usec / USEC_PER_MSEC, key) * USEC_PER_MSEC;
    if (job->schedule.is_known && job->schedule.hash == triggers->schedule_hash)
        return;
    job->schedule.is_known = true; /* for a new schedule, nothing is due in the past */
    job->schedule.hash = triggers->schedule_hash;
    due_zones_set_mark(scheduler, job, (int64_t) (now.realtime / USEC_PER_SEC));
    scheduler_save(scheduler, job);
}

void due_zones_use_settings(struct scheduler *scheduler, struct run_time now) {
    look_at_zones(scheduler);
    for (size_t i = 0; i < scheduler->n_jobs; i++) {
        struct job *job = scheduler->jobs[i];

        job->schedule.next_begin = USEC_INFINITY;
        if (!schedule_is_empty(&job->settings->triggers.schedule)) {
            if (!timer_is_set(&scheduler->due_runs.hourly))
                timer_set_in(&scheduler->due_runs.hourly, HOUR);
            use_schedule(scheduler, job, now);
        } else {
            job->schedule.zone = NULL;
        }
    }
}
