/* SPDX-License-Identifier: MIT */

/* Due times of jobs that hosts share (`on = "any"`, R18). Each is noted like that of any job, then waits
 * until this host may ask. Its run asks for the turn together with its permits. Redis decides: the run
 * begins here, or this host drops it and logs that. Due times that are too old are passed: one of the hosts
 * that pass them logs them as missed. While this host cannot ask, due times stay noted. */

#include "daemon/jobs/turns.h"

#include <stdio.h>

#include "base/failpoint.h"
#include "daemon/jobs/scheduler-internal.h"

#define POLL USEC_PER_SEC /* while this host cannot ask, although Redis is connected */

bool turns_is_shared(const struct job *job) {
    return job->settings->triggers.sharing.on == JOB_ON_ANY;
}

usec_t turns_wait(const struct settings *settings, const struct job_settings *job, int64_t due) {
    char *const *prefer = job->triggers.sharing.prefer;
    char text[24];
    const char *const key[] = {"turn", settings->namespace, job->name, text, settings->host, NULL};
    usec_t wait = 0;

    for (; prefer && *prefer; prefer++, wait += TURNS_STEP)
        if (strcmp(*prefer, settings->host) == 0)
            return wait;
    (void) snprintf(text, sizeof(text), "%" PRIi64, due);
    return wait + schedule_spread(TURNS_SPREAD / USEC_PER_MSEC, key) * USEC_PER_MSEC;
}

/* --- when to ask --- */

static usec_t ask_time(const struct scheduler *scheduler, const struct job *job,
                       const struct due_entry *entry) {
    usec_t begin = usec_add((usec_t) entry->due * USEC_PER_SEC, job->schedule.splay_usec);

    if (begin < entry->not_before)
        begin = entry->not_before;
    return usec_add(begin, turns_wait(scheduler->settings, job->settings, entry->due));
}

usec_t turns_next(const struct scheduler *scheduler, const struct job *job, struct run_time now) {
    enum scheduler_turns may = scheduler->handler.may_ask(scheduler->handler.userdata);
    usec_t next = USEC_INFINITY;

    if (may == SCHEDULER_TURNS_WAIT || list_is_empty(&job->schedule.entries))
        return USEC_INFINITY;
    if (may == SCHEDULER_TURNS_POLL)
        return usec_add(now.realtime, POLL);
    list_foreach (entry, &job->schedule.entries, struct due_entry, link) {
        usec_t at = ask_time(scheduler, job, entry);

        if (entry->missed.count > 0 && !entry->is_passing) /* its pass was not answered */
            at = usec_add(now.realtime, POLL);
        if (at > now.realtime && at < next)
            next = at;
    }
    return next;
}

static void wake_all(struct scheduler *scheduler) {
    for (size_t i = 0; i < scheduler->n_jobs; i++)
        if (turns_is_shared(scheduler->jobs[i]) && !list_is_empty(&scheduler->jobs[i]->schedule.entries))
            due_runs_wake(scheduler, scheduler->jobs[i]);
}

void scheduler_ask_turns(struct scheduler *scheduler) {
    for (size_t i = 0; i < scheduler->n_jobs; i++)
        if (turns_is_shared(scheduler->jobs[i]))
            list_foreach (entry, &scheduler->jobs[i]->schedule.entries, struct due_entry, link)
                entry->is_passing = false; /* ask again: there was no answer */
    wake_all(scheduler);
}

int turns_note_missed(struct scheduler *scheduler, struct job *job, const struct due_missed *missed,
                      const char *reason) {
    struct due_entry entry = {.due = missed->last, .missed = *missed, .reason = reason};

    if (missed->count == 0)
        return 0;
    id_make(entry.run);
    return due_marks_add_entry(scheduler, job, &entry);
}

bool turns_is_asked(const struct job *job, int64_t due) {
    list_foreach (entry, &job->schedule.entries, struct due_entry, link)
        if (entry->due == due && entry->missed.count == 0)
            return true;
    list_foreach (run, &job->runs, struct run, job.of_job)
        if (run->job.turn && run->job.turn->due == due)
            return true;
    return false;
}

void turns_add_open(struct scheduler *scheduler, struct job *job, int64_t due, uint32_t attempt, usec_t not_before) {
    struct due_entry entry = {.due = due, .is_open = true, .attempt = attempt, .not_before = not_before};

    if (turns_is_asked(job, due))
        return;
    id_make(entry.run);
    if (due_marks_insert_entry(job, &entry) == 0)
        due_runs_wake(scheduler, job);
}

void turns_drop_open(struct job *job, int64_t due) {
    list_foreach_safe (entry, &job->schedule.entries, struct due_entry, link)
        if (entry->is_open && entry->due == due) {
            list_unlink(&entry->link);
            free(entry);
        }
}

static struct job *find_shared(const struct scheduler *scheduler, const char *pool) {
    struct job *job = pool[0] == '@' ? scheduler_find(scheduler, pool + 1) : NULL;

    return job && turns_is_shared(job) && job->schedule.zone ? job : NULL;
}

void scheduler_turn_opened(struct scheduler *scheduler, const struct store_open_turn *turn,
                           struct run_time now) {
    struct job *job = find_shared(scheduler, turn->pool);
    char due[SCHEDULE_TEXT_SIZE];
    struct event e = {
        .type = EVENT_TURN_OPEN, .origin.due = due, .origin.attempt = turn->attempt, .reason = turn->why};

    if (!job || !shared_zone_get(job->schedule.zone) || turns_is_asked(job, turn->due))
        return;
    e.job = job->name;
    schedule_format(job->schedule.zone->zone, turn->due, due);
    event_emit(scheduler->runs->events, &e,
               "any host may take attempt %" PRIu32 " of %s for %s: %s", turn->attempt, job->name, due, turn->why);
    turns_add_open(scheduler, job, turn->due, turn->attempt, usec_add(now.realtime, turn->after_usec));
}

/* --- asking --- */

/* Returns the longest time that any host waits before it asks. */
static usec_t patience_of(const struct job *job) {
    char *const *prefer = job->settings->triggers.sharing.prefer;
    usec_t patience = TURNS_SPREAD;

    for (; prefer && *prefer; prefer++)
        patience += TURNS_STEP;
    return patience;
}

static bool is_too_old(const struct job *job, const struct due_entry *entry, struct run_time now) {
    usec_t age = job->settings->triggers.catch_up_usec, begin;

    if (age < DUE_ALWAYS_FRESH)
        age = DUE_ALWAYS_FRESH;
    begin = usec_add((usec_t) entry->due * USEC_PER_SEC, job->schedule.splay_usec);
    return !entry->is_open && now.realtime > begin && now.realtime - begin > usec_add(age, patience_of(job));
}

/* Returns false without memory. */
static bool ask(struct scheduler *scheduler, struct job *job, struct due_entry *entry, struct run_time now) {
    struct run *run;

    if (!due_begin_make_run(scheduler, job, entry, now, &run))
        return false;
    if (turns_attach(job, run, now) < 0) {
        list_unlink(&run->job.of_job);
        run_release_timer(run);
        run_enter(run, RUN_STATE_DONE);
        run_table_drop(scheduler->runs, run);
        return false;
    }
    list_unlink(&entry->link); /* the record stays until the turn is decided */
    free(entry);
    scheduler_begin(scheduler, run);
    FAILPOINT("turn-asked");
    return true;
}

static void pass(struct scheduler *scheduler, struct job *job, struct due_entry *entry) {
    char pool[POOL_NAME_SIZE];

    (void) snprintf(pool, sizeof(pool), "@%s", job->name);
    entry->is_passing = true;
    scheduler->handler.pass(pool, entry->due, entry->run, scheduler->handler.userdata);
}

/* Of the due times for which this host could not ask, only the newest is begun. */
static bool is_outdated(const struct job *job, const struct due_entry *entry) {
    const struct due_entry *last = list_entry(job->schedule.entries.prev, struct due_entry, link);

    return entry->reason && !entry->is_open && last->due > entry->due && !last->is_open &&
           last->missed.count == 0;
}

void turns_hold_back(struct job *job, const char *reason) {
    list_foreach (entry, &job->schedule.entries, struct due_entry, link)
        if (!entry->reason)
            entry->reason = reason;
}

bool turns_begin(struct scheduler *scheduler, struct job *job, struct run_time now) {
    bool is_asked = true;

    if (scheduler->handler.may_ask(scheduler->handler.userdata) == SCHEDULER_TURNS_WAIT)
        turns_hold_back(job, "redis-away");
    list_foreach_safe (entry, &job->schedule.entries, struct due_entry, link) {
        if (entry->is_passing ||
            scheduler->handler.may_ask(scheduler->handler.userdata) != SCHEDULER_TURNS_ASK)
            break; /* in order: a decision on a later one would decide this one as well */
        if (run_table_find(scheduler->runs, entry->run)) { /* an earlier berthd asked for it */
            list_unlink(&entry->link);
            free(entry);
            continue;
        }
        if (entry->missed.count == 0 && (is_too_old(job, entry, now) || is_outdated(job, entry)))
            entry->missed = (struct due_missed){.count = 1, .first = entry->due, .last = entry->due};
        if (entry->missed.count > 0) {
            pass(scheduler, job, entry);
            break;
        }
        if (ask_time(scheduler, job, entry) <= now.realtime && !ask(scheduler, job, entry, now)) {
            is_asked = false;
            break;
        }
    }
    scheduler_arm(scheduler, job, now);
    return is_asked;
}

/* --- answers --- */

/* Tells the store, which reports it to a Redis that lost its data. */
void turns_note_known(struct scheduler *scheduler, const struct job *job, int64_t due) {
    char pool[POOL_NAME_SIZE];

    (void) snprintf(pool, sizeof(pool), "@%s", job->name);
    if (due > 0)
        scheduler->handler.decided(pool, due, scheduler->handler.userdata);
}

/* Notes that a due time is decided, by this host or another. */
static void note_decided(struct scheduler *scheduler, struct job *job, int64_t due, const char *run) {
    if (due > job->schedule.begun && due <= job->schedule.mark)
        job->schedule.begun = due;
    due_marks_put_run(scheduler, job, run, NULL);
    scheduler_save(scheduler, job);
    turns_note_known(scheduler, job, due);
}

static struct due_entry *find_passing(const struct job *job, const char *id) {
    list_foreach (entry, &job->schedule.entries, struct due_entry, link)
        if (entry->is_passing && strcmp(entry->run, id) == 0)
            return entry;
    return NULL;
}

void scheduler_turns_passed(struct scheduler *scheduler, const char *pool, const char *id,
                            enum scheduler_passed passed) {
    struct job *job = find_shared(scheduler, pool);
    struct due_entry *entry = job ? find_passing(job, id) : NULL;

    if (!entry)
        return;
    if (passed == SCHEDULER_PASSED_UNKNOWN) {
        entry->is_passing = false;
        scheduler_arm(scheduler, job, scheduler->handler.now());
        return;
    }
    if (passed == SCHEDULER_PASSED_HERE)
        due_runs_log_missed(scheduler, job, &entry->missed, entry->reason ? entry->reason : "late");
    if (passed == SCHEDULER_PASSED_NOT) /* the clock of this host is wrong; other hosts decide in time */
        due_marks_put_run(scheduler, job, entry->run, NULL);
    else
        note_decided(scheduler, job, entry->due, entry->run);
    list_unlink(&entry->link);
    free(entry);
    due_runs_wake(scheduler, job);
}

static void log_taken(struct scheduler *scheduler, const struct run *run,
                      const struct store_turn_answer *answer) {
    struct event e = {.type = EVENT_TURN_TAKEN,
                      .job = run->name,
                      .origin.due = run->job.origin.due,
                      .other.host = answer->host};

    if (answer->host && strcmp(answer->host, scheduler->settings->host) == 0)
        e.other.host = NULL;
    event_emit(scheduler->runs->events, &e, "%s is not begun here for %s: that due time was decided before%s%s",
               run->name, run->job.origin.due, e.other.host ? ", by host " : "",
               e.other.host ? e.other.host : "");
}

static void log_skipped(struct scheduler *scheduler, const struct run *run,
                        const struct store_turn_answer *answer) {
    struct event e = {.type = EVENT_SKIPPED,
                      .job = run->name,
                      .origin.trigger = run_trigger_name(run->job.origin.trigger),
                      .origin.due = run->job.origin.due,
                      .reason = answer->why,
                      .other.run = answer->run,
                      .other.host = answer->host};

    event_emit(scheduler->runs->events, &e, "%s was not begun: %s%s%s", run->name,
               answer->run ? "a run of it is not over" : "the queue of a pool is full",
               answer->run && answer->host ? " on " : "", answer->run && answer->host ? answer->host : "");
}

static void log_ahead(struct scheduler *scheduler, const struct run *run, usec_t ahead,
                      struct run_time now) {
    struct due_runs *due_runs = &scheduler->due_runs;
    struct event e = {
        .type = EVENT_CLOCK_AHEAD, .job = run->name, .origin.due = run->job.origin.due, .step_usec = ahead};

    if (due_runs->ahead_logged > 0 && now.boottime - due_runs->ahead_logged < TURNS_AHEAD_EVERY)
        return;
    due_runs->ahead_logged = now.boottime;
    event_emit(scheduler->runs->events, &e,
               "the clock of this host is ahead of that of Redis: %s asks for %s again in %llu s", run->name,
               run->job.origin.due, (unsigned long long) (ahead / USEC_PER_SEC));
}

static void ask_again(struct scheduler *scheduler, struct job *job, const struct run *run,
                      const struct store_turn_answer *answer, struct run_time now) {
    usec_t not_before = usec_add(now.realtime, answer->after_usec);

    due_marks_put_run(scheduler, job, run->id, NULL);
    turns_add_open(scheduler, job, run->job.turn->due, answer->attempt, not_before);
}

void scheduler_turn_refused(struct scheduler *scheduler, struct run *run,
                            const struct store_turn_answer *answer, struct run_time now) {
    struct job *job = scheduler_find(scheduler, run->name);
    int64_t due = run->job.turn->due;

    if (!job)
        return;
    list_unlink(&run->job.of_job);
    if (due == 0) {
        turns_refuse_start(run, answer);
        log_skipped(scheduler, run, answer);
        return;
    }
    switch (answer->turn) {
    case STORE_TURN_TAKEN:
        log_taken(scheduler, run, answer);
        break;
    case STORE_TURN_SKIPPED:
        log_skipped(scheduler, run, answer);
        break;
    case STORE_TURN_EARLY:
        log_ahead(scheduler, run, answer->after_usec, now);
        ask_again(scheduler, job, run, answer, now);
        return;
    case STORE_TURN_LATER:
        ask_again(scheduler, job, run, answer, now);
        return;
    }
    note_decided(scheduler, job, due, run->id);
    (void) triggers_begin_next(scheduler, job, now);
}

void scheduler_turn_taken(struct scheduler *scheduler, struct run *run, struct run_time now) {
    struct job *job = scheduler_find(scheduler, run->name);

    if (run->job.turn->due == 0) {
        turns_take_start(scheduler, job, run);
        return;
    }
    if (!job || run->job.is_turn_noted)
        return;
    run->job.is_turn_noted = true;
    job->last_trigger_realtime = now.realtime;
    note_decided(scheduler, job, run->job.turn->due, run->id);
    turn_attempts_take(run);
    turn_attempts_set_terms(job, run, now);
    attempts_supersede(scheduler, job);
}
