/* SPDX-License-Identifier: MIT */
#include "daemon/jobs/lasting.h"

#include <string.h>
#include <syslog.h>

#include "base/file.h"
#include "base/timer.h"

#define FILE_NAME "jobs"
#define PATIENCE (5 * USEC_PER_SEC) /* how long due times wait for the disk */
#define RETRY (60 * USEC_PER_SEC)   /* after a write that failed, unless something is put before */

struct lasting {
    struct record_file *file;
    char *path;
    struct journal *journal;
    struct lasting_handler handler;
    struct timer overdue;  /* of the oldest sync under way */
    struct timer retry;    /* of the last write, which failed */
    uint64_t last, synced; /* the latest one begun; the latest one done or given up */
    char error[128];       /* "": it works */
};

static void report(struct lasting *lasting, const char *problem) {
    if (lasting->error[0] == '\0' && problem[0] != '\0')
        journal_log(lasting->journal, LOG_ERR,
                    "%s: cannot write: %s; after a reboot berthd may not know what it began and which jobs are "
                    "broken",
                    lasting->path, problem);
    if (lasting->error[0] != '\0' && problem[0] == '\0')
        journal_log(lasting->journal, LOG_NOTICE, "%s: writable again", lasting->path);
    (void) snprintf(lasting->error, sizeof(lasting->error), "%s", problem);
}

static void finish(struct lasting *lasting, uint64_t sync) {
    if (sync <= lasting->synced) /* given up before */
        return;
    lasting->synced = sync;
    timer_set(&lasting->overdue,
              lasting->last > sync ? usec_add(clock_boottime(), PATIENCE) : USEC_INFINITY);
    lasting->handler.on_synced(sync, lasting->handler.userdata);
}

static void lasting_on_synced(uint64_t sync, int error, void *userdata) {
    struct lasting *lasting = userdata;

    report(lasting, error < 0 ? strerror(-error) : "");
    timer_set(&lasting->retry, error < 0 ? usec_add(clock_boottime(), RETRY) : USEC_INFINITY);
    finish(lasting, sync);
}

static void lasting_on_retry(void *userdata) {
    (void) lasting_sync(userdata);
}

static void lasting_on_overdue(void *userdata) {
    struct lasting *lasting = userdata;

    report(lasting, "the disk does not answer");
    finish(lasting, lasting->last);
}

static void lasting_on_damage(const char *text, void *userdata) {
    struct lasting *lasting = userdata;

    journal_log(lasting->journal, LOG_ERR, "%s", text);
}

static void lasting_on_record(const char *key, const struct message *record, void *userdata) {
    struct lasting *lasting = userdata;

    lasting->handler.on_record(key, record, lasting->handler.reader);
}

static int format_path(char **ret, const char *directory) {
    if (asprintf(ret, "%s/" FILE_NAME, directory) >= 0)
        return 0;
    *ret = NULL;
    return -ENOMEM;
}

bool lasting_is_there(const char *directory) {
    _cleanup_free_ char *path = NULL;

    return format_path(&path, directory) == 0 && access(path, F_OK) == 0;
}

int lasting_open(struct lasting **ret, sd_event *event, const char *directory, struct journal *journal,
                 const struct lasting_handler *handler) {
    _cleanup_(lasting_closep) struct lasting *lasting = calloc(1, sizeof(*lasting));
    struct record_file_handler file_handler = {
        .on_record = lasting_on_record,
        .on_synced = lasting_on_synced,
        .on_damage = lasting_on_damage,
        .userdata = lasting,
    };
    int r = lasting ? 0 : -ENOMEM;

    if (r == 0) {
        lasting->journal = journal;
        lasting->handler = *handler;
        r = timer_init(&lasting->overdue, event, SD_EVENT_PRIORITY_NORMAL, lasting_on_overdue, lasting);
    }
    if (r == 0)
        r = timer_init(&lasting->retry, event, SD_EVENT_PRIORITY_NORMAL, lasting_on_retry, lasting);
    if (r == 0)
        r = format_path(&lasting->path, directory);
    if (r == 0)
        r = file_make_directory(directory, 0700);
    if (r == 0 || r == -EROFS || r == -ENOSPC)
        r = record_file_open(&lasting->file, event, lasting->path, &file_handler);
    if (r < 0) {
        journal_log(journal, LOG_ERR,
                    "%s: cannot be used: %s; after a reboot berthd does not know what it began and which "
                    "jobs are broken",
                    directory, strerror(-r));
        return r;
    }
    *ret = steal_pointer(&lasting);
    return 0;
}

struct lasting *lasting_close(struct lasting *lasting) {
    if (!lasting)
        return NULL;
    (void) record_file_close(lasting->file);
    timer_done(&lasting->overdue);
    timer_done(&lasting->retry);
    free(lasting->path);
    free(lasting);
    return NULL;
}

void lasting_put(struct lasting *lasting, const char *key, const struct message_writer *record) {
    int r = lasting ? record_file_put(lasting->file, key, record) : 0;

    if (r < 0)
        report(lasting, strerror(-r));
}

uint64_t lasting_sync(struct lasting *lasting) {
    uint64_t sync = lasting ? record_file_sync(lasting->file) : 0;
    bool is_hanging =
        lasting && lasting->error[0] != '\0' && lasting->last > 0 && lasting->synced == lasting->last;

    if (sync == 0)
        return 0;
    if (lasting->synced == lasting->last && !is_hanging)
        timer_set(&lasting->overdue, usec_add(clock_boottime(), PATIENCE));
    lasting->last = sync;
    return sync;
}

const char *lasting_error(const struct lasting *lasting) {
    return lasting ? lasting->error : "";
}
