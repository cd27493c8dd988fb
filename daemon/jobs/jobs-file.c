/* SPDX-License-Identifier: MIT */
#include "daemon/jobs/jobs-file.h"

#include <string.h>
#include <syslog.h>

#include "base/file.h"
#include "base/timer.h"

#define FILE_NAME "jobs"
#define PATIENCE (5 * USEC_PER_SEC) /* how long due times wait for the disk */
#define RETRY (60 * USEC_PER_SEC)   /* after a write that failed, unless something is put before */

struct jobs_file {
    struct record_file *file;
    char *path;
    struct journal *journal;
    struct jobs_file_handler handler;
    struct timer overdue;  /* of the oldest sync under way */
    struct timer retry;    /* of the last write, which failed */
    uint64_t last, synced; /* the latest one begun; the latest one done or given up */
    bool is_hanging;       /* a sync was given up, and the disk has not answered since */
    char error[128];       /* "": it works */
};

static void report(struct jobs_file *f, const char *problem) {
    if (f->error[0] == '\0' && problem[0] != '\0')
        journal_log(f->journal, LOG_ERR,
                    "%s: cannot write: %s; after a reboot berthd may not know what it began and which jobs are "
                    "broken",
                    f->path, problem);
    if (f->error[0] != '\0' && problem[0] == '\0')
        journal_log(f->journal, LOG_NOTICE, "%s: writable again", f->path);
    (void) snprintf(f->error, sizeof(f->error), "%s", problem);
}

static void finish(struct jobs_file *f, uint64_t sync) {
    if (sync <= f->synced) /* given up before */
        return;
    f->synced = sync;
    timer_set(&f->overdue, f->last > sync ? usec_add(clock_boottime(), PATIENCE) : USEC_INFINITY);
    f->handler.on_synced(sync, f->handler.userdata);
}

static void jobs_file_on_synced(uint64_t sync, int error, void *userdata) {
    struct jobs_file *f = userdata;

    f->is_hanging = false;
    report(f, error < 0 ? strerror(-error) : "");
    timer_set(&f->retry, error < 0 ? usec_add(clock_boottime(), RETRY) : USEC_INFINITY);
    finish(f, sync);
}

static void jobs_file_on_retry(void *userdata) {
    (void) jobs_file_sync(userdata);
}

static void jobs_file_on_overdue(void *userdata) {
    struct jobs_file *f = userdata;

    f->is_hanging = true;
    report(f, "the disk does not answer");
    finish(f, f->last);
}

static void jobs_file_on_damage(const char *text, void *userdata) {
    struct jobs_file *f = userdata;

    journal_log(f->journal, LOG_ERR, "%s", text);
}

static void jobs_file_on_record(const char *key, const struct message *record, void *userdata) {
    struct jobs_file *f = userdata;

    f->handler.on_record(key, record, f->handler.reader);
}

static int format_path(char **ret, const char *directory) {
    if (asprintf(ret, "%s/" FILE_NAME, directory) >= 0)
        return 0;
    *ret = NULL;
    return -ENOMEM;
}

bool jobs_file_is_there(const char *directory) {
    _cleanup_free_ char *path = NULL;

    return format_path(&path, directory) == 0 && access(path, F_OK) == 0;
}

int jobs_file_open(struct jobs_file **ret, sd_event *event, const char *directory, struct journal *journal,
                   const struct jobs_file_handler *handler) {
    _cleanup_(jobs_file_closep) struct jobs_file *f = calloc(1, sizeof(*f));
    struct record_file_handler file_handler = {
        .on_record = jobs_file_on_record,
        .on_synced = jobs_file_on_synced,
        .on_damage = jobs_file_on_damage,
        .userdata = f,
    };
    int r = f ? 0 : -ENOMEM;

    if (r == 0) {
        f->journal = journal;
        f->handler = *handler;
        r = timer_init(&f->overdue, event, SD_EVENT_PRIORITY_NORMAL, jobs_file_on_overdue, f);
    }
    if (r == 0)
        r = timer_init(&f->retry, event, SD_EVENT_PRIORITY_NORMAL, jobs_file_on_retry, f);
    if (r == 0)
        r = format_path(&f->path, directory);
    if (r == 0)
        r = file_make_directory(directory, 0700);
    if (r == 0 || r == -EROFS || r == -ENOSPC)
        r = record_file_open(&f->file, event, f->path, &file_handler);
    if (r < 0) {
        journal_log(journal, LOG_ERR,
                    "%s: cannot be used: %s; after a reboot berthd does not know what it began and which "
                    "jobs are broken",
                    directory, strerror(-r));
        return r;
    }
    *ret = steal_pointer(&f);
    return 0;
}

struct jobs_file *jobs_file_close(struct jobs_file *f) {
    if (!f)
        return NULL;
    (void) record_file_close(f->file);
    timer_done(&f->overdue);
    timer_done(&f->retry);
    free(f->path);
    free(f);
    return NULL;
}

void jobs_file_put(struct jobs_file *f, const char *key, const struct message_writer *record) {
    int r = f ? record_file_put(f->file, key, record) : 0;

    if (r < 0)
        report(f, strerror(-r));
}

uint64_t jobs_file_sync(struct jobs_file *f) {
    uint64_t sync = f ? record_file_sync(f->file) : 0;

    if (sync == 0)
        return 0;
    if (f->is_hanging) {
        f->last = f->synced = sync;
        return 0;
    }
    if (f->synced == f->last)
        timer_set(&f->overdue, usec_add(clock_boottime(), PATIENCE));
    f->last = sync;
    return sync;
}

const char *jobs_file_error(const struct jobs_file *f) {
    return f ? f->error : "";
}
