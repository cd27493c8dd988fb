/* SPDX-License-Identifier: MIT */

/* Checks the options of retries against each other, and against those that trigger a job. */

#include "base/duration.h"
#include "conf/checks/checks.h"
#include "conf/settings-read.h"

static void check_restart(const struct job_settings *job, const struct value_reader *reader) {
    struct settings_place place = value_place(reader, "restart");

    if (job->retry.restart == JOB_RESTART_NO)
        return;
    if (job->triggers.every_usec != USEC_INFINITY || job->triggers.at_start || job->retry.retries > 0 ||
        !schedule_is_empty(&job->triggers.schedule))
        value_note(reader, &place,
                   "restart excludes schedule, every, at-start and retry: the job starts with the service, "
                   "and again after each end; remove them, or restart");
}

static void check_delay(const struct job_retry *retry, const struct value_reader *reader) {
    bool is_given = value_is_given(reader, "retry-delay");
    struct settings_place place = value_place(reader, is_given ? "retry-delay" : "retry-delay-max");
    char delay[DURATION_TEXT_SIZE], most[DURATION_TEXT_SIZE];

    if (retry->delay_usec <= retry->delay_max_usec)
        return;
    value_note(reader, &place,
               "retry-delay is longer than retry-delay-max: %s and %s; make it at most that, or raise "
               "retry-delay-max",
               duration_format(retry->delay_usec, delay), duration_format(retry->delay_max_usec, most));
}

void settings_check_retry(const struct job_settings *job, const struct value_reader *reader) {
    check_restart(job, reader);
    check_delay(&job->retry, reader);
}
