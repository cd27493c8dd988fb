/* SPDX-License-Identifier: MIT */

/* What is remembered of due times. STATE-DIRECTORY/jobs has for each job
 *
 *     JOB        mark mark-local schedule serial last-trigger
 *     JOB:RUN    due: noted, its run has no record of its own yet
 *
 * The mark is in the runtime directory, too (jobs/JOB): of the two the one with the higher serial counts. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/jobs/scheduler-internal.h"

#define EVERY_MIN (60 * USEC_PER_SEC) /* a shorter `every` is not remembered over a reboot */
#define KEY_SIZE (NAME_MAX_LENGTH + 1 + ID_TEXT_SIZE)

bool due_marks_needs_memory(const struct job_settings *settings) {
    const struct job_triggers *triggers = &settings->triggers;

    return triggers->schedule.n_entries > 0 ||
           (triggers->every_usec != USEC_INFINITY && triggers->every_usec >= EVERY_MIN);
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
    lasting_put(scheduler->due_runs.lasting, job->name, &w);
}

void due_runs_note_trigger(struct scheduler *scheduler, const struct job *job) {
    if (job->settings->triggers.schedule.n_entries > 0 || !due_marks_needs_memory(job->settings))
        return;
    due_marks_save(scheduler, job);
    (void) lasting_sync(scheduler->due_runs.lasting);
}

static const char *format_key(const struct job *job, const char *run, char key[static KEY_SIZE]) {
    (void) snprintf(key, KEY_SIZE, "%s:%s", job->name, run);
    return key;
}

/* Oldest first. */
static int insert_entry(struct job *job, const struct due_entry *entry) {
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
    struct message_writer w;
    char key[KEY_SIZE];
    int r = insert_entry(job, entry);

    if (r < 0)
        return r;
    message_begin(&w, "due");
    message_put_u64(&w, "due", (uint64_t) entry->due);
    lasting_put(scheduler->due_runs.lasting, format_key(job, entry->run, key), &w);
    return 0;
}

void due_marks_remove_record(struct scheduler *scheduler, const struct job *job, const char *run) {
    char key[KEY_SIZE];

    lasting_put(scheduler->due_runs.lasting, format_key(job, run, key), NULL);
}

void due_marks_forget(struct scheduler *scheduler, struct job *job) {
    list_foreach_safe (entry, &job->schedule.entries, struct due_entry, link) {
        due_marks_remove_record(scheduler, job, entry->run);
        list_unlink(&entry->link);
        free(entry);
    }
    lasting_put(scheduler->due_runs.lasting, job->name, NULL);
    (void) lasting_sync(scheduler->due_runs.lasting);
    job->schedule.is_known = false;
}

/* --- read --- */

struct reader {
    struct scheduler *scheduler;
    char **stale; /* keys of jobs that are not defined, or need no memory now */
    size_t n_stale;
};

static void add_stale(struct reader *reader, const char *key) {
    char **keys = reallocarray(reader->stale, reader->n_stale + 1, sizeof(*keys));

    if (!keys)
        return; /* the next start finds it */
    reader->stale = keys;
    keys[reader->n_stale] = strdup(key);
    if (keys[reader->n_stale])
        reader->n_stale++;
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
}

/* False: the entry is of no use any more. */
static bool read_entry(const struct scheduler *scheduler, struct job *job, const char *run,
                       const struct message *record) {
    struct due_entry entry = {};
    uint64_t due;

    if (!id_is_valid(run) || message_get_u64(record, "due", &due) < 0 ||
        (int64_t) due <= job->schedule.begun || run_table_find(scheduler->runs, run))
        return false;
    entry.due = (int64_t) due;
    memcpy(entry.run, run, sizeof(entry.run));
    return insert_entry(job, &entry) == 0;
}

static void due_marks_on_record(const char *key, const struct message *record, void *userdata) {
    struct reader *reader = userdata;
    const char *run = strchr(key, ':');
    char name[NAME_MAX_LENGTH + 1] = "";
    struct job *job;

    (void) snprintf(name, sizeof(name), "%.*s", (int) (run ? run - key : (long) strlen(key)), key);
    job = scheduler_find(reader->scheduler, name);
    if (!job || !due_marks_needs_memory(job->settings))
        add_stale(reader, key);
    else if (!run)
        read_job(job, record);
    else if (!read_entry(reader->scheduler, job, run + 1, record))
        add_stale(reader, key);
}

static bool any_needs_memory(const struct scheduler *scheduler) {
    for (size_t i = 0; i < scheduler->n_jobs; i++)
        if (due_marks_needs_memory(scheduler->jobs[i]->settings))
            return true;
    return false;
}

void due_marks_open(struct scheduler *scheduler) {
    struct due_runs *due_runs = &scheduler->due_runs;
    const char *directory = scheduler->settings->state_directory;
    struct reader reader = {.scheduler = scheduler};
    struct lasting_handler handler = {.on_record = due_marks_on_record,
                                      .on_synced = due_runs_on_synced,
                                      .userdata = scheduler,
                                      .reader = &reader};

    if (due_runs->lasting || !directory || (!any_needs_memory(scheduler) && !lasting_is_there(directory)))
        return;
    due_runs->open_error =
        lasting_open(&due_runs->lasting, scheduler->event, directory, scheduler->journal, &handler);
    for (size_t i = 0; i < reader.n_stale; i++) {
        lasting_put(due_runs->lasting, reader.stale[i], NULL);
        free(reader.stale[i]);
    }
    free(reader.stale);
    (void) lasting_sync(due_runs->lasting);
}

const char *scheduler_state_error(const struct scheduler *scheduler) {
    int error = scheduler->due_runs.open_error;

    return error < 0 ? strerror(-error) : lasting_error(scheduler->due_runs.lasting);
}
