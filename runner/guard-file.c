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

static int parse_hash(struct guard_file *r, const struct message *m) {
    const char *hash = message_get(m, "hash");

    if (!hash || strlen(hash) != sizeof(r->hash) - 1 || strspn(hash, "0123456789abcdef") != sizeof(r->hash) - 1)
        return -EBADMSG;
    memcpy(r->hash, hash, sizeof(r->hash));
    return 0;
}

static int parse_pools(struct guard_file *r, const struct message *m) {
    const char *pools = message_get(m, "pools");
    struct demands demands;

    if (!pools || demands_parse(pools, &demands) != 0)
        return -EBADMSG;
    (void) demands_format(&demands, r->pools);
    return 0;
}

static int parse_cgroup(struct guard_file *r, const struct message *m) {
    const char *cgroup = message_get(m, "cgroup");

    if (!cgroup)
        return 0;
    if (cgroup[0] != '/' || strlen(cgroup) >= sizeof(r->cgroup))
        return -EBADMSG;
    memcpy(r->cgroup, cgroup, strlen(cgroup) + 1);
    return 0;
}

static int parse_guard(struct guard_file *r, const struct message *m) {
    uint64_t pid;
    int k = message_get_u64(m, "guard", &pid);

    if (k == -ENODATA)
        return 0;
    if (k < 0 || pid == 0 || pid > INT32_MAX)
        return -EBADMSG;
    r->guard = (pid_t) pid;
    return 0;
}

/* Reads the fields of a grant. A prepared run does not have them yet. */
static int parse_grant(struct guard_file *r, const struct message *m) {
    int k = message_get_u64(m, "deadline", &r->deadline);

    r->is_prepared = message_is(m, PROTOCOL_PREPARE) || (message_get(m, "prepared") && !message_get(m, "token"));
    if (r->is_prepared)
        return k == -ENODATA && !message_get(m, "token") && !message_get(m, "ticket") ? 0 : -EBADMSG;
    if (k < 0 && k != -ENODATA)
        return -EBADMSG;
    return message_get_u64(m, "token", &r->token) < 0 || message_get_u64(m, "ticket", &r->ticket) < 0 ? -EBADMSG : 0;
}

int guard_file_parse(struct guard_file *ret, const struct message *m) {
    struct guard_file r = {.deadline = USEC_INFINITY};

    if (parse_grant(&r, m) < 0)
        return -EBADMSG;
    if (message_get_id(m, "run", r.run) < 0 || message_get_job(m, "job", r.job) < 0 ||
        message_get_name(m, "namespace", r.namespace) < 0 || message_get_name(m, "host", r.host) < 0)
        return -EBADMSG;
    if (message_get_u64(m, "queued", &r.queued) < 0 || message_get_u64(m, "queued-boot", &r.queued_boottime) < 0)
        return -EBADMSG;
    if (parse_hash(&r, m) < 0 || parse_pools(&r, m) < 0 || parse_cgroup(&r, m) < 0 ||
        parse_guard(&r, m) < 0 || facts_parse(&r.facts, m) < 0 || sets_parse(&r.sets, m) < 0)
        return -EBADMSG;
    *ret = r;
    return 0;
}

void guard_file_put(const struct guard_file *r, struct message_writer *w) {
    message_put(w, "run", r->run);
    message_put(w, "job", r->job);
    if (!r->is_prepared) {
        message_put_u64(w, "token", r->token);
        message_put_u64(w, "ticket", r->ticket);
    }
    message_put(w, "pools", r->pools);
    message_put_u64(w, "queued", r->queued);
    message_put_u64(w, "queued-boot", r->queued_boottime);
    facts_put(&r->facts, w);
    sets_put(&r->sets, w);
}

static void record_format(const struct guard_file *r, struct message_writer *w) {
    message_begin(w, GUARD_FILE_VERB);
    guard_file_put(r, w);
    message_put(w, "hash", r->hash);
    message_put(w, "namespace", r->namespace);
    message_put(w, "host", r->host);
    if (r->is_prepared)
        message_put(w, "prepared", "1");
    if (r->deadline != USEC_INFINITY)
        message_put_u64(w, "deadline", r->deadline);
    if (r->cgroup[0])
        message_put(w, "cgroup", r->cgroup);
}

/* --- files --- */

const char *guard_file_path(char *buffer, const char *directory, const char *run, const char *suffix) {
    /* A runtime directory has at most 60 bytes (berth.conf(5)), so this fits. */
    (void) snprintf(buffer, GUARD_FILE_PATH_SIZE, "%s/%s%s", directory, run, suffix);
    return buffer;
}

/* The file is locked before it gets its name, so nobody finds it unlocked before its guard runs. */
int guard_file_create(const struct guard_file *r, const char *directory) {
    _cleanup_close_ int fd = -1;
    char path[GUARD_FILE_PATH_SIZE], temporary[GUARD_FILE_PATH_SIZE];
    struct message_writer w;
    int k;

    record_format(r, &w);
    if (w.error < 0)
        return w.error;
    guard_file_path(path, directory, r->run, GUARD_FILE_SUFFIX);
    guard_file_path(temporary, directory, r->run, GUARD_FILE_SUFFIX TEMPORARY_SUFFIX);
    fd = open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    k = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : file_write(fd, w.text, w.size);
    if (k == 0 && rename(temporary, path) < 0)
        k = -errno;
    if (k < 0) {
        (void) unlink(temporary);
        return k;
    }
    return steal_fd(&fd);
}

int guard_file_add_guard(int fd, pid_t pid) {
    char text[32];
    int n = snprintf(text, sizeof(text), "guard=%d\n", (int) pid);

    return file_write(fd, text, (size_t) n);
}

int guard_file_add_grant(int fd, const struct guard_file *r) {
    char text[96];
    int n = snprintf(text, sizeof(text), "token=%" PRIu64 "\nticket=%" PRIu64 "\n", r->token, r->ticket);

    if (r->deadline != USEC_INFINITY)
        n += snprintf(text + n, sizeof(text) - (size_t) n, "deadline=%" PRIu64 "\n", r->deadline);
    return file_write(fd, text, (size_t) n);
}

int guard_file_add_over(int fd) {
    return file_write(fd, "over=1\n", strlen("over=1\n"));
}

int guard_file_load_message(struct message *m, const char *path, const char *verb) {
    _cleanup_free_ char *text = NULL;
    size_t size;
    int k = file_read(path, MESSAGE_SIZE_MAX, &text, &size);

    if (k == 0)
        k = message_parse(m, text, size);
    return k == 0 && !message_is(m, verb) ? -EBADMSG : k;
}

int guard_file_load(struct guard_file *ret, const char *directory, const char *run) {
    char path[GUARD_FILE_PATH_SIZE];
    struct message m;
    int k = guard_file_load_message(&m, guard_file_path(path, directory, run, GUARD_FILE_SUFFIX), GUARD_FILE_VERB);

    if (k == 0)
        k = guard_file_parse(ret, &m);
    if (k == 0)
        ret->is_over = message_get(&m, "over") != NULL;
    return k == 0 && strcmp(ret->run, run) != 0 ? -EBADMSG : k;
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
