/* SPDX-License-Identifier: MIT */

/* The memory of due times. STATE-DIRECTORY/jobs has for each job
 *
 *     JOB        mark mark-local schedule serial last-trigger; health, if the job uses attempts
 *     JOB:RUN    due: noted or queued
 *     JOB:RUN    all of a run that is not over (attempts-reboot.c)
 *
 * The runtime directory has the mark as well (jobs/JOB); the one with the higher serial counts. That record
 * has no noted due times, so its mark stays before them until they are begun. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/jobs/scheduler-internal.h"

#define EVERY_MIN (60 * USEC_PER_SEC) /* a shorter `every` is not remembered over a reboot */
#define KEY_SIZE (NAME_MAX_LENGTH + 1 + ID_TEXT_SIZE)

static bool has_due_times(const struct job_settings *settings) {
    const struct job_triggers *triggers = &settings->triggers;

    return !schedule_is_empty(&triggers->schedule) ||
           (triggers->every_usec != USEC_INFINITY && triggers->every_usec >= EVERY_MIN);
}

static bool needs_memory(const struct job_settings *settings) {
    return has_due_times(settings) || attempts_are_used(settings);
}

/* --- written --- */

void due_marks_save(struct scheduler *scheduler, const struct job *job) {
    struct message_writer w;

    message_begin(&w, "job");
    if (job->schedule.is_known) {
        message_put_u64(&w, "mark", (uint64_t) job->schedule.mark);
        message_put_u64(&w, "mark-local", (uint64_t) job->schedule.mark_local);
        message_put_u64(&w, "schedule", job->schedule.hash);
        message_put_u64(&w, "serial", job->schedule.serial);
    }
    message_put_u64(&w, "last-trigger", job->last_trigger_realtime);
    if (attempts_are_used(job->settings))
        attempts_put_health(&job->attempts.health, &w);
    jobs_file_put(scheduler->due_runs.jobs_file, job->name, &w);
}

void due_runs_note_trigger(struct scheduler *scheduler, const struct job *job) {
    if (!schedule_is_empty(&job->settings->triggers.schedule) || !has_due_times(job->settings))
        return;
    due_marks_save(scheduler, job);
    (void) jobs_file_sync(scheduler->due_runs.jobs_file);
}

void due_marks_put_run(struct scheduler *scheduler, const struct job *job, const char *run,
                       const struct message_writer *record) {
    char key[KEY_SIZE];

    (void) snprintf(key, KEY_SIZE, "%s:%s", job->name, run);
    jobs_file_put(scheduler->due_runs.jobs_file, key, record);
}

/* Oldest first. */
int due_marks_insert_entry(struct job *job, const struct due_entry *entry) {
    struct due_entry *copy = malloc(sizeof(*copy));
    struct list *at = &job->schedule.entries;

    if (!copy)
        return -ENOMEM;
    *copy = *entry;
    while (at->prev != &job->schedule.entries &&
           list_entry(at->prev, struct due_entry, link)->due > copy->due)
        at = at->prev;
    list_insert_before(at, &copy->link);
    return 0;
}

int due_marks_add_entry(struct scheduler *scheduler, struct job *job, const struct due_entry *entry) {
    bool is_first = list_is_empty(&job->schedule.entries);
    struct message_writer w;
    int r = due_marks_insert_entry(job, entry);

    if (r < 0)
        return r;
    if (is_first)
        job->schedule.settled_serial = job->schedule.serial;
    message_begin(&w, "due");
    message_put_u64(&w, "due", (uint64_t) entry->due);
    if (entry->missed.count > 0) {
        message_put_u64(&w, "missed", entry->missed.count);
        message_put_u64(&w, "first", (uint64_t) entry->missed.first);
    }
    due_marks_put_run(scheduler, job, entry->run, &w);
    return 0;
}

void due_marks_forget_schedule(struct scheduler *scheduler, struct job *job) {
    list_foreach_safe (entry, &job->schedule.entries, struct due_entry, link) {
        due_marks_put_run(scheduler, job, entry->run, NULL);
        list_unlink(&entry->link);
        free(entry);
    }
    job->schedule.is_known = false;
    if (needs_memory(job->settings))
        due_marks_save(scheduler, job);
    else
        jobs_file_put(scheduler->due_runs.jobs_file, job->name, NULL);
    (void) jobs_file_sync(scheduler->due_runs.jobs_file);
}

void due_marks_forget(struct scheduler *scheduler, struct job *job) {
    due_marks_forget_schedule(scheduler, job);
    list_foreach (run, &job->runs, struct run, job.of_job)
        due_marks_put_run(scheduler, job, run->id, NULL);
    jobs_file_put(scheduler->due_runs.jobs_file, job->name, NULL);
    (void) jobs_file_sync(scheduler->due_runs.jobs_file);
}

/* --- read --- */

/* Remembers a record that is kept only if recovery finds its run. */
static void doubt(struct scheduler *scheduler, const char *key) {
    struct doubtful_key *doubtful = malloc(sizeof(*doubtful) + strlen(key) + 1);

    if (!doubtful)
        return; /* the next start finds it again */
    memcpy(doubtful->key, key, strlen(key) + 1);
    list_append(&scheduler->due_runs.doubtful, &doubtful->link);
}

static void read_job(struct job *job, const struct message *record) {
    uint64_t mark, local, serial, last;

    if (message_get_u64(record, "mark", &mark) == 0 && message_get_u64(record, "serial", &serial) == 0 &&
        (!job->schedule.is_known || serial > job->schedule.serial)) {
        job->schedule.is_known = true;
        job->schedule.mark = (int64_t) mark;
        job->schedule.mark_local = message_get_u64(record, "mark-local", &local) == 0 ? (int64_t) local : 0;
        job->schedule.serial = serial;
        (void) message_get_u64(record, "schedule", &job->schedule.hash);
    }
    if (message_get_u64(record, "last-trigger", &last) == 0 && last > job->last_trigger_realtime)
        job->last_trigger_realtime = last;
    if (!job->attempts.is_known) /* not in the runtime directory: after a reboot */
        attempts_read(&job->attempts, record);
}

static void read_missed(const struct message *record, struct due_entry *entry) {
    uint64_t first;

    if (message_get_u64(record, "missed", &entry->missed.count) < 0 || message_get_u64(record, "first", &first) < 0) {
        entry->missed.count = 0;
        return;
    }
    entry->missed.first = (int64_t) first;
    entry->missed.last = entry->due;
}

/* Returns false if the record is of no use: it is damaged or decided, or the runtime directory has its
 * run. */
static bool read_entry(const struct scheduler *scheduler, struct job *job, const char *run,
                       const struct message *record) {
    struct due_entry entry = {};
    uint64_t due;

    if (!id_is_valid(run) || message_get_u64(record, "due", &due) < 0 ||
        (int64_t) due <= job->schedule.begun || run_table_find(scheduler->runs, run))
        return false;
    entry.due = (int64_t) due;
    read_missed(record, &entry);
    /* After a reboot Redis may have a claim with this id, of the earlier session. */
    if (turns_is_shared(job) && !scheduler->is_resumed) {
        entry.is_open = entry.missed.count == 0;
        id_make(entry.run);
        (void) due_marks_insert_entry(job, &entry);
        return false;
    }
    memcpy(entry.run, run, sizeof(entry.run));
    return due_marks_insert_entry(job, &entry) == 0;
}

/* Returns the job of a key if it is defined and has a memory, or NULL. *ret_run: the id of a run, or
 * NULL. */
static struct job *find_job(struct scheduler *scheduler, const char *key, const char **ret_run) {
    const char *colon = strchr(key, ':');
    char name[NAME_MAX_LENGTH + 1];
    struct job *job;

    (void) snprintf(name, sizeof(name), "%.*s", (int) (colon ? colon - key : (long) strlen(key)), key);
    *ret_run = colon ? colon + 1 : NULL;
    job = scheduler->is_started ? scheduler_find(scheduler, name) : open_find(scheduler, name);
    return job && needs_memory(job->settings) ? job : NULL;
}

static void due_marks_on_record(const char *key, const struct message *record, void *userdata) {
    struct scheduler *scheduler = userdata;
    const char *run;
    struct job *job = find_job(scheduler, key, &run);

    if (job && !run) {
        read_job(job, record);
        return;
    }
    if (job && message_is(record, "due") && read_entry(scheduler, job, run, record))
        return;
    if (job && message_is(record, "attempt") && !scheduler->is_resumed && !scheduler->is_started)
        attempts_read_lost(scheduler, record);
    doubt(scheduler, key);
}

static bool any_needs_memory(const struct scheduler *scheduler) {
    for (size_t i = 0; i < scheduler->n_jobs; i++)
        if (needs_memory(scheduler->jobs[i]->settings))
            return true;
    return false;
}

void due_marks_open(struct scheduler *scheduler) {
    struct due_runs *due_runs = &scheduler->due_runs;
    const char *directory = scheduler->settings->state_directory;
    struct jobs_file_handler handler = {.on_record = due_marks_on_record,
                                      .on_synced = due_runs_on_synced,
                                      .userdata = scheduler,
                                      .reader = scheduler};

    if (due_runs->jobs_file || !directory || (!any_needs_memory(scheduler) && !jobs_file_is_there(directory)))
        return;
    scheduler->is_resumed = state_is_resumed(scheduler->state);
    due_runs->open_error =
        jobs_file_open(&due_runs->jobs_file, scheduler->event, directory, scheduler->journal, &handler);
}

void due_marks_settle(struct scheduler *scheduler, struct run_time now) {
    struct due_runs *due_runs = &scheduler->due_runs;

    attempts_resume_lost(scheduler, now);
    list_foreach_safe (doubtful, &due_runs->doubtful, struct doubtful_key, link) {
        const char *run;

        if (!find_job(scheduler, doubtful->key, &run) || !run || !run_table_find(scheduler->runs, run))
            jobs_file_put(due_runs->jobs_file, doubtful->key, NULL);
        list_unlink(&doubtful->link);
        free(doubtful);
    }
    (void) jobs_file_sync(due_runs->jobs_file);
    if (!due_runs->jobs_file || scheduler->is_resumed)
        return;
    scheduler->is_resumed = true;
    state_set_resumed(scheduler->state);
}

const char *scheduler_state_error(const struct scheduler *scheduler) {
    int error = scheduler->due_runs.open_error;

    return error < 0 ? strerror(-error) : jobs_file_error(scheduler->due_runs.jobs_file);
}
