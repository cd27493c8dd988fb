/* SPDX-License-Identifier: MIT */
/* Finds the guards of an earlier runner, and what it left behind. */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/protocol.h"
#include "runner/exec/credentials.h"
#include "runner/runs-internal.h"

#define ADOPT_RETRY (100 * USEC_PER_MSEC)

/* A pid from a guard file is the guard's as long as the file is locked. So a pidfd that was opened before
 * the lock was seen is the guard's, too. If the lock cannot be checked (out of descriptors, for example), it
 * may be any process's. */
static void entry_adopt(struct entry *e) {
    struct runs *r = e->runs;
    struct guard_file record;
    int pidfd = -1, is_locked;

    if (guard_file_load(&record, r->directory, e->run) == 0) {
        memcpy(e->job, record.job, sizeof(e->job));
        e->is_prepared = record.is_prepared; /* it dies with its runner */
        pidfd = record.guard > 0 ? pidfd_open(record.guard, 0) : -1;
    }
    is_locked = guard_file_is_locked(r->directory, e->run);
    if (is_locked <= 0)
        pidfd = close_fd(pidfd);
    if (is_locked == 0)
        entry_ended(e);
    else if (pidfd < 0 || entry_watch(e, record.guard, pidfd) < 0)
        runs_look_at(r, usec_add(clock_boottime(), ADOPT_RETRY));
    else if (e->must_die || e->is_withdrawn)
        (void) pidfd_send_signal(e->pidfd, SIGKILL, NULL, 0);
}

void runs_on_timer(void *userdata) {
    struct runs *r = userdata;
    bool again = false;

    list_foreach_safe(e, &r->entries, struct entry, link)
        if (e->pidfd < 0 && !e->is_reaping) {
            again = true;
            entry_adopt(e);
        }
    if (!runs_reap(r) && again)
        runs_look_at(r, usec_add(clock_boottime(), ADOPT_RETRY));
}

static void recover_guard(const char *run, void *userdata) {
    struct entry *e = entry_find(userdata, run);

    if (!e)
        e = entry_new(userdata, run, "");
    if (e)
        entry_adopt(e);
    else
        ((struct runs *) userdata)->recover_error = -ENOMEM; /* berthd must not grant its permits */
}

/* A socket without a record: the runner ended before it forked the guard. */
static void recover_socket(const char *run, void *userdata) {
    const struct runs *r = userdata;
    char path[GUARD_FILE_PATH_SIZE];

    if (access(guard_file_path(path, r->directory, run, GUARD_FILE_SUFFIX), F_OK) < 0)
        (void) unlink(guard_file_path(path, r->directory, run, PROTOCOL_SOCKET_SUFFIX));
}

static void recover_temporary(const char *run, void *userdata) {
    const struct runs *r = userdata;
    char path[GUARD_FILE_PATH_SIZE];

    (void) unlink(guard_file_path(path, r->directory, run, GUARD_FILE_SUFFIX ".tmp"));
}

int runs_recover(struct runs *r) {
    int k = guard_file_each(r->directory, GUARD_FILE_SUFFIX, recover_guard, r);

    if (k == 0)
        k = r->recover_error;
    if (k == 0)
        k = guard_file_each(r->directory, PROTOCOL_SOCKET_SUFFIX, recover_socket, r);
    if (k == 0)
        k = guard_file_each(r->directory, GUARD_FILE_SUFFIX ".tmp", recover_temporary, r);
    if (k == 0)
        credentials_sweep(r->directory);
    return k;
}
