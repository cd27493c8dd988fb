/* SPDX-License-Identifier: MIT */

/* The folder state/ of the runtime directory, without the session: flags of the whole host, and run
 * times. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "base/file.h"
#include "daemon/state/state.h"
#include "daemon/times-table.h"

#define TIMES "state/times"
#define DRAINED "state/drained"
#define BOOT "state/boot"

static const char *format_path(const struct state *state, const char *name,
                               char path[static STATE_PATH_SIZE]) {
    snprintf(path, STATE_PATH_SIZE, "%s/%s", state->directory, name);
    return path;
}

bool state_is_drained(const struct state *state) {
    char path[STATE_PATH_SIZE];

    return access(format_path(state, DRAINED, path), F_OK) == 0;
}

int state_set_drained(const struct state *state, bool drained) {
    _cleanup_close_ int fd = -1;
    char path[STATE_PATH_SIZE];

    format_path(state, DRAINED, path);
    if (!drained)
        return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? -errno : 0;
}

const char *state_get_boot(char ret[static STATE_BOOT_SIZE]) {
    sd_id128_t boot;

    ret[0] = '\0';
    return sd_id128_get_boot(&boot) < 0 ? ret : sd_id128_to_string(boot, ret);
}

bool state_is_resumed(const struct state *state) {
    _cleanup_free_ char *text = NULL;
    char path[STATE_PATH_SIZE], boot[STATE_BOOT_SIZE];
    size_t size;

    return file_read(format_path(state, BOOT, path), STATE_BOOT_SIZE, &text, &size) == 0 &&
           strcmp(text, state_get_boot(boot)) == 0;
}

void state_set_resumed(const struct state *state) {
    char path[STATE_PATH_SIZE], boot[STATE_BOOT_SIZE];
    int r;

    state_get_boot(boot);
    r = file_write_atomic(format_path(state, BOOT, path), boot, strlen(boot), 0600);
    if (r < 0)
        journal_log(state->journal, LOG_WARNING,
                    "%s: cannot write: %s; the next berthd considers the present runs lost", path,
                    strerror(-r));
}

void state_save_times(const struct state *state, const char *text) {
    char path[STATE_PATH_SIZE];
    int r = file_write_atomic(format_path(state, TIMES, path), text, strlen(text), 0600);

    if (r < 0)
        journal_log(state->journal, LOG_WARNING, "%s: cannot write: %s; the next berthd estimates from its own runs alone", path,
                    strerror(-r));
}

char *state_load_times(const struct state *state) {
    char path[STATE_PATH_SIZE], *text = NULL;
    size_t size;
    int r = file_read(format_path(state, TIMES, path), TIMES_TEXT_MAX, &text, &size);

    if (r < 0 && r != -ENOENT)
        journal_log(state->journal, LOG_WARNING, "%s: cannot read: %s; the run times in it are lost", path,
                    strerror(-r));
    return r < 0 ? NULL : text;
}
