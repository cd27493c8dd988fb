/* SPDX-License-Identifier: MIT */
#include "daemon/state/state-record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "base/file.h"

const char *state_record_path(const struct state *state, const char *folder, const char *name,
                              char path[static STATE_PATH_SIZE]) {
    snprintf(path, STATE_PATH_SIZE, "%s/%s/%s", state->directory, folder, name);
    return path;
}

void state_record_write(const struct state *state, const char *folder, const char *name,
                        const struct message_writer *w) {
    char path[STATE_PATH_SIZE];
    int r = w->error;

    state_record_path(state, folder, name, path);
    if (r == 0)
        r = file_write_atomic(path, w->text, w->size, 0600);
    if (r < 0)
        journal_log(state->journal, LOG_WARNING, "%s: cannot write: %s", path, strerror(-r));
}

int state_record_read(const struct state *state, const char *folder, const char *name, struct message *ret) {
    _cleanup_free_ char *text = NULL;
    char path[STATE_PATH_SIZE];
    size_t size;
    int r;

    r = file_read(state_record_path(state, folder, name, path), MESSAGE_SIZE_MAX, &text, &size);
    if (r == 0)
        r = message_parse(ret, text, size);
    if (r == -EBADMSG || r == -EFBIG) {
        journal_log(state->journal, LOG_WARNING, "%s: not a valid state file, removing", path);
        (void) unlink(path);
        return -ENOENT;
    }
    if (r < 0 && r != -ENOENT) /* out of descriptors, for example; the next berthd may read it */
        journal_log(state->journal, LOG_WARNING, "%s: cannot read: %s", path, strerror(-r));
    return r;
}
