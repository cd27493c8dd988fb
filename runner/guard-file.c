/* SPDX-License-Identifier: MIT */
#include "runner/guard-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/protocol.h"

#define GUARD_FILE_VERB "record"
#define TEMPORARY_SUFFIX ".tmp"

/* --- text to value and back --- */

static int parse_hash(struct guard_file *record, const struct message *m) {
    const char *hash = message_get(m, "hash");

    if (!hash || strlen(hash) != sizeof(record->hash) - 1 ||
        strspn(hash, "0123456789abcdef") != sizeof(record->hash) - 1)
        return -EBADMSG;
    memcpy(record->hash, hash, sizeof(record->hash));
    return 0;
}

static int parse_pools(struct guard_file *record, const struct message *m) {
    const char *pools = message_get(m, "pools"), *scopes = message_get(m, "scopes");
    struct demands demands;

    if (!pools || demands_parse(pools, &demands) != 0 || !scopes || strlen(scopes) != demands.n)
        return -EBADMSG;
    (void) demands_format(&demands, record->pools);
    memcpy(record->scopes, scopes, demands.n + 1);
    return 0;
}

static int parse_cgroup(struct guard_file *record, const struct message *m) {
    const char *cgroup = message_get(m, "cgroup");

    if (!cgroup)
        return 0;
    if (cgroup[0] != '/' || strlen(cgroup) >= sizeof(record->cgroup))
        return -EBADMSG;
    memcpy(record->cgroup, cgroup, strlen(cgroup) + 1);
    return 0;
}

static int parse_guard(struct guard_file *record, const struct message *m) {
    uint64_t pid;
    int r = message_get_u64(m, "guard", &pid);

    if (r == -ENODATA)
        return 0;
    if (r < 0 || pid == 0 || pid > INT32_MAX)
        return -EBADMSG;
    record->guard = (pid_t) pid;
    return 0;
}

/* Reads the fields of a grant. A prepared run does not have them yet. */
static int parse_grant(struct guard_file *record, const struct message *m) {
    int r = message_get_u64(m, "deadline", &record->deadline);

    record->is_prepared =
        message_is(m, PROTOCOL_PREPARE) || (message_get(m, "prepared") && !message_get(m, "token"));
    if (record->is_prepared)
        return r == -ENODATA && !message_get(m, "token") && !message_get(m, "ticket") ? 0 : -EBADMSG;
    if (r < 0 && r != -ENODATA)
        return -EBADMSG;
    return message_get_u64(m, "token", &record->token) < 0 ||
                   message_get_u64(m, "ticket", &record->ticket) < 0
               ? -EBADMSG
               : 0;
}

int guard_file_parse(struct guard_file *ret, const struct message *m) {
    struct guard_file record = {.deadline = USEC_INFINITY};

    if (parse_grant(&record, m) < 0)
        return -EBADMSG;
    if (message_get_id(m, "run", record.run) < 0 || message_get_job(m, "job", record.job) < 0 ||
        message_get_name(m, "namespace", record.namespace) < 0 ||
        message_get_name(m, "host", record.host) < 0)
        return -EBADMSG;
    if (message_get_u64(m, "queued", &record.queued) < 0 ||
        message_get_u64(m, "queued-boot", &record.queued_boottime) < 0)
        return -EBADMSG;
    if (parse_hash(&record, m) < 0 || parse_pools(&record, m) < 0 || parse_cgroup(&record, m) < 0 ||
        parse_guard(&record, m) < 0 || facts_parse(&record.facts, m) < 0 || sets_parse(&record.sets, m) < 0)
        return -EBADMSG;
    *ret = record;
    return 0;
}

void guard_file_put(const struct guard_file *record, struct message_writer *w) {
    message_put(w, "run", record->run);
    message_put(w, "job", record->job);
    if (!record->is_prepared) {
        message_put_u64(w, "token", record->token);
        message_put_u64(w, "ticket", record->ticket);
    }
    message_put(w, "pools", record->pools);
    message_put(w, "scopes", record->scopes);
    message_put_u64(w, "queued", record->queued);
    message_put_u64(w, "queued-boot", record->queued_boottime);
    facts_put(&record->facts, w);
    sets_put(&record->sets, w);
}

static void record_format(const struct guard_file *record, struct message_writer *w) {
    message_begin(w, GUARD_FILE_VERB);
    guard_file_put(record, w);
    message_put(w, "hash", record->hash);
    message_put(w, "namespace", record->namespace);
    message_put(w, "host", record->host);
    if (record->is_prepared)
        message_put(w, "prepared", "1");
    if (record->deadline != USEC_INFINITY)
        message_put_u64(w, "deadline", record->deadline);
    if (record->cgroup[0])
        message_put(w, "cgroup", record->cgroup);
}

/* --- files --- */

const char *guard_file_path(char *buffer, const char *directory, const char *run, const char *suffix) {
    /* A runtime directory has at most 60 bytes (berth.conf(5)), so this fits. */
    (void) snprintf(buffer, GUARD_FILE_PATH_SIZE, "%s/%s%s", directory, run, suffix);
    return buffer;
}

/* The file is locked before it gets its name, so nobody finds it unlocked before its guard runs. */
int guard_file_create(const struct guard_file *record, const char *directory) {
    _cleanup_close_ int fd = -1;
    char path[GUARD_FILE_PATH_SIZE], temporary[GUARD_FILE_PATH_SIZE];
    struct message_writer w;
    int r;

    record_format(record, &w);
    if (w.error < 0)
        return w.error;
    guard_file_path(path, directory, record->run, GUARD_FILE_SUFFIX);
    guard_file_path(temporary, directory, record->run, GUARD_FILE_SUFFIX TEMPORARY_SUFFIX);
    fd = open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : file_write(fd, w.text, w.size);
    if (r == 0 && rename(temporary, path) < 0)
        r = -errno;
    if (r < 0) {
        (void) unlink(temporary);
        return r;
    }
    return steal_fd(&fd);
}

int guard_file_add_guard(int fd, pid_t pid) {
    char text[32];
    int n = snprintf(text, sizeof(text), "guard=%d\n", (int) pid);

    return file_write(fd, text, (size_t) n);
}

int guard_file_add_grant(int fd, const struct guard_file *record) {
    char text[96];
    int n = snprintf(text, sizeof(text), "token=%" PRIu64 "\nticket=%" PRIu64 "\n", record->token,
                     record->ticket);

    if (record->deadline != USEC_INFINITY)
        n += snprintf(text + n, sizeof(text) - (size_t) n, "deadline=%" PRIu64 "\n", record->deadline);
    return file_write(fd, text, (size_t) n);
}

int guard_file_add_over(int fd) {
    return file_write(fd, "over=1\n", strlen("over=1\n"));
}

int guard_file_load_message(struct message *m, const char *path, const char *verb) {
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = file_read(path, MESSAGE_SIZE_MAX, &text, &size);

    if (r == 0)
        r = message_parse(m, text, size);
    return r == 0 && !message_is(m, verb) ? -EBADMSG : r;
}

int guard_file_load(struct guard_file *ret, const char *directory, const char *run) {
    char path[GUARD_FILE_PATH_SIZE];
    struct message m;
    int r = guard_file_load_message(&m, guard_file_path(path, directory, run, GUARD_FILE_SUFFIX),
                                    GUARD_FILE_VERB);

    if (r == 0)
        r = guard_file_parse(ret, &m);
    if (r == 0)
        ret->is_over = message_get(&m, "over") != NULL;
    return r == 0 && strcmp(ret->run, run) != 0 ? -EBADMSG : r;
}

int guard_file_is_locked(const char *directory, const char *run) {
    _cleanup_close_ int fd = -1;
    char path[GUARD_FILE_PATH_SIZE];

    fd = open(guard_file_path(path, directory, run, GUARD_FILE_SUFFIX), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    if (flock(fd, LOCK_SH | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK ? 1 : -errno;
}

/* Copies the run's id if a file's name is RUN + suffix; else returns false. */
static bool match_suffix(const char *name, const char *suffix, char ret[static ID_TEXT_SIZE]) {
    size_t n = ID_TEXT_SIZE - 1;

    if (strlen(name) != n + strlen(suffix) || strcmp(name + n, suffix) != 0)
        return false;
    memcpy(ret, name, n);
    ret[n] = '\0';
    return id_is_valid(ret);
}

struct suffix_filter {
    const char *suffix;
    void (*each)(const char *run, void *userdata);
    void *userdata;
};

static int guard_file_on_entry(const char *name, void *userdata) {
    const struct suffix_filter *filter = userdata;
    char run[ID_TEXT_SIZE];

    if (match_suffix(name, filter->suffix, run))
        filter->each(run, filter->userdata);
    return 0;
}

int guard_file_each(const char *directory, const char *suffix, void (*each)(const char *run, void *userdata), void *userdata) {
    struct suffix_filter filter = {suffix, each, userdata};

    return directory_each(directory, guard_file_on_entry, &filter);
}

void guard_file_remove(const char *directory, const char *run) {
    char path[GUARD_FILE_PATH_SIZE];

    /* The socket first: after a crash in between, the guard file still names the run. */
    (void) unlink(guard_file_path(path, directory, run, PROTOCOL_SOCKET_SUFFIX));
    (void) unlink(guard_file_path(path, directory, run, GUARD_FILE_SUFFIX));
}
