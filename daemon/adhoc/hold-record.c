/* SPDX-License-Identifier: MIT */

/* The record of a hold: the process that it names, and the records of an earlier berthd. */

#include "daemon/adhoc/hold-record.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <systemd/sd-id128.h>

#include "base/file.h"
#include "daemon/adhoc/hold.h"

#define FIELD_BOOT "boot"
#define FIELD_PID "command-pid"
#define FIELD_START "command-start" /* clock ticks since boot */

static int boot_text(char ret[static SD_ID128_STRING_MAX]) {
    sd_id128_t boot;
    int r = sd_id128_get_boot(&boot);

    if (r < 0)
        return r;
    sd_id128_to_string(boot, ret);
    return 0;
}

int hold_record_put_identity(struct message_writer *w, pid_t pid, uint64_t start_ticks) {
    char boot[SD_ID128_STRING_MAX];
    int r = boot_text(boot);

    if (r < 0)
        return r;
    message_put(w, FIELD_BOOT, boot);
    if (pid > 0 && start_ticks > 0) {
        message_put_u64(w, FIELD_PID, (uint64_t) pid);
        message_put_u64(w, FIELD_START, start_ticks);
    }
    return 0;
}

bool hold_record_get_identity(const struct message *record, pid_t *ret_pid, uint64_t *ret_start_ticks) {
    uint64_t pid;

    if (message_get_u64(record, FIELD_PID, &pid) < 0 ||
        message_get_u64(record, FIELD_START, ret_start_ticks) < 0 || *ret_start_ticks == 0 || pid > INT32_MAX)
        return false;
    *ret_pid = (pid_t) pid;
    return true;
}

bool hold_record_is_of_this_boot(const struct message *record) {
    const char *boot = message_get(record, FIELD_BOOT);
    char now[SD_ID128_STRING_MAX];

    return boot && boot_text(now) == 0 && strcmp(boot, now) == 0;
}

/* --- recovering --- */

/* Parses "RUN" (returns 0) or "RUN.claim" (returns 1). -EINVAL: neither. */
static int entry_parse(const char *name, char ret_run[static ID_TEXT_SIZE]) {
    size_t n = strspn(name, "0123456789abcdef");

    if (n != ID_TEXT_SIZE - 1 || (name[n] != '\0' && strcmp(name + n, HOLD_RECORD_SUFFIX) != 0))
        return -EINVAL;
    memcpy(ret_run, name, n);
    ret_run[n] = '\0';
    return name[n] == '\0' ? 0 : 1;
}

static int record_read(const char *directory, const char *run, struct message *ret) {
    _cleanup_free_ char *path = NULL, *data = NULL;
    char named[ID_TEXT_SIZE];
    size_t size;
    int r;

    if (asprintf(&path, "%s/%s" HOLD_RECORD_SUFFIX, directory, run) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    r = file_read(path, MESSAGE_SIZE_MAX, &data, &size);
    if (r < 0)
        return r == -EFBIG ? -EBADMSG : r;
    r = message_parse(ret, data, size);
    if (r < 0)
        return r;
    if (message_get_id(ret, "run", named) < 0 || strcmp(named, run) != 0 || !hold_record_is_of_this_boot(ret))
        return -EBADMSG;
    return 0;
}

static int debris_filter(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* Calls found() for a valid record, and removes files without one. */
static int recover_entry(const char *directory, const char *name,
                        void (*found)(const char *run, const struct message *record, void *userdata), void *userdata) {
    _cleanup_free_ struct message *record = malloc(sizeof(*record));
    _cleanup_free_ char *path = NULL;
    char run[ID_TEXT_SIZE];
    int kind = entry_parse(name, run), r = -ENOENT;

    if (!record)
        return -ENOMEM;
    if (kind >= 0)
        r = record_read(directory, run, record);
    if (r == 0) {
        if (kind == 1)
            found(run, record, userdata);
        return 0;
    }
    if (r != -ENOENT && r != -EBADMSG)
        return r;
    if (asprintf(&path, "%s/%s", directory, name) < 0) {
        path = NULL;
        return -ENOMEM;
    }
    return unlink(path) < 0 && errno != ENOENT && errno != EISDIR ? -errno : 0;
}

int hold_recover(const char *directory, void (*found)(const char *run, const struct message *record, void *userdata),
                void *userdata) {
    struct dirent **entries = NULL;
    int n = scandir(directory, &entries, debris_filter, alphasort), r = 0;

    if (n < 0)
        return errno == ENOENT ? 0 : -errno;
    for (int i = 0; i < n; i++) {
        int answer = recover_entry(directory, entries[i]->d_name, found, userdata);

        if (answer < 0 && r == 0)
            r = answer; /* goes on to recover the others */
        free(entries[i]);
    }
    free(entries);
    return r;
}
