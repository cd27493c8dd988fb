/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/state/state-record.h"

void state_save_job(const struct state *state, const struct job *job) {
    const char *result = run_result_name(job->last_result);
    struct message_writer w;

    message_begin(&w, "job");
    message_put_u64(&w, "last-trigger", job->last_trigger_realtime);
    message_put_u64(&w, "last-started", job->last_started_realtime);
    message_put_u64(&w, "last-ended", job->last_ended_realtime);
    message_put(&w, "last-result", result ? result : "");
    if (job->last_exit_code >= 0)
        message_put_u64(&w, "last-exit-code", (uint64_t) job->last_exit_code);
    if (job->last_signal >= 0)
        message_put_u64(&w, "last-signal", (uint64_t) job->last_signal);
    if (job->last_run[0])
        message_put(&w, "last-run", job->last_run);
    message_put_u64(&w, "last-token", job->last_token);
    message_put(&w, "at-start", job->at_start_done ? "done" : "due");
    if (attempts_are_used(job->settings))
        attempts_put(&job->attempts, &w);
    if (job->schedule.is_known) {
        int64_t mark;
        uint64_t serial;

        job_get_settled_mark(&job->schedule, &mark, &serial);
        message_put_u64(&w, "mark", (uint64_t) mark);
        if (mark == job->schedule.mark)
            message_put_u64(&w, "mark-local", (uint64_t) job->schedule.mark_local);
        message_put_u64(&w, "schedule", job->schedule.hash);
        message_put_u64(&w, "serial", serial);
        message_put_u64(&w, "begun", (uint64_t) job->schedule.begun);
    }
    state_record_write(state, STATE_JOBS, job->name, &w);
}

int state_load_job(const struct state *state, struct job *job) {
    struct message record;
    const char *text;
    uint64_t value;
    int r = state_record_read(state, STATE_JOBS, job->name, &record);

    if (r < 0)
        return r == -ENOENT ? 0 : r;
    (void) message_get_u64(&record, "last-trigger", &job->last_trigger_realtime);
    (void) message_get_u64(&record, "last-started", &job->last_started_realtime);
    (void) message_get_u64(&record, "last-ended", &job->last_ended_realtime);
    if ((text = message_get(&record, "last-result")))
        job->last_result = run_result_parse(text);
    if (message_get_u64(&record, "last-exit-code", &value) == 0)
        job->last_exit_code = (int) value;
    if (message_get_u64(&record, "last-signal", &value) == 0)
        job->last_signal = (int) value;
    (void) message_get_id(&record, "last-run", job->last_run);
    (void) message_get_u64(&record, "last-token", &job->last_token);
    job->at_start_done = (text = message_get(&record, "at-start")) && strcmp(text, "done") == 0;
    attempts_read(&job->attempts, &record);
    if (message_get_u64(&record, "mark", &value) == 0) {
        job->schedule.is_known = true;
        job->schedule.mark = (int64_t) value;
        if (message_get_u64(&record, "mark-local", &value) == 0)
            job->schedule.mark_local = (int64_t) value;
        (void) message_get_u64(&record, "schedule", &job->schedule.hash);
        (void) message_get_u64(&record, "serial", &job->schedule.serial);
        job->schedule.settled_serial = job->schedule.serial;
        if (message_get_u64(&record, "begun", &value) == 0)
            job->schedule.begun = (int64_t) value;
    }
    return 0;
}

void state_remove_job(const struct state *state, const char *name) {
    char path[STATE_PATH_SIZE];

    (void) unlink(state_record_path(state, STATE_JOBS, name, path));
}

struct sweep {
    const struct state *state;
    bool (*is_defined)(const char *name, void *userdata);
    void *userdata;
};

static int sweep_entry(const char *name, void *userdata) {
    const struct sweep *sweep = userdata;

    if (!sweep->is_defined(name, sweep->userdata))
        state_remove_job(sweep->state, name);
    return 0;
}

void state_sweep_jobs(const struct state *state, bool (*is_defined)(const char *name, void *userdata),
                      void *userdata) {
    struct sweep sweep = {.state = state, .is_defined = is_defined, .userdata = userdata};
    char path[STATE_PATH_SIZE];

    (void) directory_each(state_record_path(state, STATE_JOBS, "", path), sweep_entry, &sweep);
}
