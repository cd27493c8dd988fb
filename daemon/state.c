/* SPDX-License-Identifier: MIT */

/* What berthd remembers of itself over a restart, below the runtime directory: each record one message as a file, replaced in one
 * step. They need not outlive a reboot: nothing that they speak of does. A record that cannot be written is logged and the work goes
 * on: what it would have saved is a place in the queue, never a permit. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/protocol.h"
#include "daemon/manager-internal.h"

#define RECORD_PATH_SIZE (RUNTIME_DIRECTORY_MAX + NAME_MAX_LENGTH + 16)

static const char *record_path(struct manager *m, const char *folder, const char *name, char path[static RECORD_PATH_SIZE]) {
    snprintf(path, RECORD_PATH_SIZE, "%s/%s/%s", m->settings->runtime_directory, folder, name);
    return path;
}

static void record_write(struct manager *m, const char *folder, const char *name, const struct message_writer *w) {
    char path[RECORD_PATH_SIZE];
    int k = w->error;

    if (k == 0)
        k = file_write_atomic(record_path(m, folder, name, path), w->text, w->size, 0600);
    if (k < 0)
        manager_log(m, LOG_WARNING, "%s cannot be written: %s", record_path(m, folder, name, path),
                    strerror(-k));
}

static int record_read(struct manager *m, const char *folder, const char *name, struct message *ret) {
    _cleanup_free_ char *text = NULL;
    char path[RECORD_PATH_SIZE];
    size_t size;
    int k;

    k = file_read(record_path(m, folder, name, path), MESSAGE_SIZE_MAX, &text, &size);
    if (k == 0)
        k = message_parse(ret, text, size);
    if (k == -EBADMSG || k == -EFBIG) {
        manager_log(m, LOG_WARNING, "%s is no record and is removed", path);
        (void) unlink(path);
        return -ENOENT;
    }
    if (k < 0 && k != -ENOENT) /* out of descriptors, say: the next berthd may want it */
        manager_log(m, LOG_WARNING, "%s cannot be read: %s", path, strerror(-k));
    return k;
}

/* --- runs --- */

static void put_claim(struct message_writer *w, const char *prefix, const struct claim *c, uint64_t token) {
    char key[32];

    if (c->n_demands == 0)
        return;
    snprintf(key, sizeof(key), "%sticket", prefix);
    message_put_u64(w, key, c->ticket);
    snprintf(key, sizeof(key), "%stoken", prefix);
    message_put_u64(w, key, token);
}

void manager_put_run(struct message_writer *w, const struct run *r) {
    char pools[DEMANDS_TEXT_SIZE];

    message_put(w, "run", r->id);
    message_put(w, "kind", r->kind == RUN_KIND_JOB ? "job" : "adhoc");
    message_put(w, "job", r->name);
    message_put(w, "hash", r->hash);
    message_put_u64(w, "uid", r->uid);
    message_put(w, "pools", run_format_pools(r, pools));
    put_claim(w, "", &r->cluster_claim, r->again ? 0 : r->cluster_claim.token); /* again: it has given that one back */
    put_claim(w, "host-", &r->host_claim, r->host_claim.token);
    message_put(w, "on-lease-lost", r->on_lease_lost == ON_LEASE_LOST_STOP ? "stop" : "continue");
    message_put_u64(w, "stop-timeout", r->stop_timeout_usec);
    message_put_u64(w, "head-start", r->head_start_usec);
    message_put_u64(w, "queue-timeout", r->queue_timeout_usec);
    message_put_u64(w, "queued", r->queued_realtime);
    message_put_u64(w, "queued-boot", r->queued_boottime);
    if (r->started_realtime > 0)
        message_put_u64(w, "started", r->started_realtime);
}

static void read_claim(const struct message *record, const char *prefix, struct claim *c) {
    char key[32];

    if (c->n_demands == 0)
        return;
    snprintf(key, sizeof(key), "%sticket", prefix);
    (void) message_get_u64(record, key, &c->ticket);
    snprintf(key, sizeof(key), "%stoken", prefix);
    (void) message_get_u64(record, key, &c->token);
}

static void read_times(const struct message *record, struct run *r) {
    usec_t now = clock_boottime();

    (void) message_get_u64(record, "queued", &r->queued_realtime);
    r->queued_boottime = usec_sub(now, usec_sub(clock_realtime(), r->queued_realtime));
    (void) message_get_u64(record, "queued-boot", &r->queued_boottime);
    if (message_get_u64(record, "started", &r->started_realtime) == 0)
        r->started_boottime = usec_sub(now, usec_sub(clock_realtime(), r->started_realtime));
    (void) message_get_u64(record, "queue-timeout", &r->queue_timeout_usec);
    (void) message_get_u64(record, "head-start", &r->head_start_usec);
    (void) message_get_u64(record, "stop-timeout", &r->stop_timeout_usec);
}

int manager_read_run(struct manager *m, const struct message *record, enum run_kind kind, struct run **ret) {
    _cleanup_(run_freep) struct run *r = NULL;
    const char *pools = message_get(record, "pools"), *hash = message_get(record, "hash");
    const char *on_lease_lost = message_get(record, "on-lease-lost");
    char id[ID_TEXT_SIZE], name[NAME_MAX_LENGTH + 1];
    struct demands demands = {};
    struct run_spec spec = {.kind = kind, .id = id, .name = name, .pools = &demands};
    uint64_t uid = 0;
    int k;

    if (message_get_id(record, "run", id) < 0 || message_get_name(record, "job", name) < 0 ||
        (pools && demands_parse(pools, &demands) != 0))
        return -EBADMSG;
    k = run_new(&r, m, &spec, m->settings);
    if (k < 0)
        return k;
    r->stop_timeout_usec = settings_stop_timeout_default(m->settings);
    if (hash)
        snprintf(r->hash, sizeof(r->hash), "%s", hash);
    if (on_lease_lost && strcmp(on_lease_lost, "continue") == 0)
        r->on_lease_lost = ON_LEASE_LOST_CONTINUE;
    (void) message_get_u64(record, "uid", &uid);
    r->uid = (uid_t) uid;
    read_times(record, r);
    read_claim(record, "", &r->cluster_claim);
    read_claim(record, "host-", &r->host_claim);
    /* A guard's state and report name the one token and ticket that the command has: without cluster permits, the host's. */
    if (r->cluster_claim.n_demands == 0 && r->host_claim.token == 0) {
        (void) message_get_u64(record, "token", &r->host_claim.token);
        if (r->host_claim.ticket == 0)
            (void) message_get_u64(record, "ticket", &r->host_claim.ticket);
    }
    *ret = steal_pointer(&r);
    return 0;
}

void manager_write_waiting(struct run *r) {
    struct message_writer w;

    message_begin(&w, "waiting");
    manager_put_run(&w, r);
    record_write(r->manager, PROTOCOL_WAITING, r->id, &w);
    r->recorded = true;
    FAILPOINT("waiting-written");
}

void manager_remove_waiting(struct run *r) {
    char path[RECORD_PATH_SIZE];
    int k;

    if (!r->recorded)
        return;
    r->recorded = false;
    k = removals_remove(r->manager->removals, record_path(r->manager, PROTOCOL_WAITING, r->id, path));
    if (k < 0)
        manager_log(r->manager, LOG_WARNING,
                    "%s cannot be removed (%s): it is tried again, as a berthd that finds it there would start run %s",
                    path, strerror(-k), r->id);
    FAILPOINT("waiting-removed");
}

bool manager_is_start_untold(struct run *r) {
    char path[RECORD_PATH_SIZE];

    r->recorded = r->recorded || access(record_path(r->manager, PROTOCOL_WAITING, r->id, path), F_OK) == 0;
    return r->recorded;
}

void manager_each_waiting(struct manager *m, void (*found)(struct manager *m, const struct message *record)) {
    char path[RECORD_PATH_SIZE];
    DIR *dir = opendir(record_path(m, PROTOCOL_WAITING, "", path));
    struct message record;
    struct dirent *entry;
    int k = 0;

    if (!dir) {
        (void) manager_recover_failed(m, path, -errno);
        return;
    }
    while ((errno = 0, entry = readdir(dir)))
        if (strstr(entry->d_name, ".tmp")) /* begun by a berthd that was killed */
            (void) unlinkat(dirfd(dir), entry->d_name, 0);
        else if (k = 0, id_is_valid(entry->d_name) && (k = record_read(m, PROTOCOL_WAITING, entry->d_name, &record)) == 0)
            found(m, &record);
        else if (k < 0 && k != -ENOENT)
            (void) manager_recover_failed(m, path, k);
    if (errno != 0)
        (void) manager_recover_failed(m, path, -errno);
    (void) closedir(dir);
}

/* --- jobs --- */

void manager_write_job(struct manager *m, const struct job *j) {
    const char *result = run_result_name(j->last_result);
    struct message_writer w;

    message_begin(&w, "job");
    message_put_u64(&w, "last-trigger", j->last_trigger_realtime);
    message_put_u64(&w, "last-started", j->last_started_realtime);
    message_put_u64(&w, "last-ended", j->last_ended_realtime);
    message_put(&w, "last-result", result ? result : "");
    if (j->last_exit_code >= 0)
        message_put_u64(&w, "last-exit-code", (uint64_t) j->last_exit_code);
    if (j->last_signal >= 0)
        message_put_u64(&w, "last-signal", (uint64_t) j->last_signal);
    if (j->last_run[0])
        message_put(&w, "last-run", j->last_run);
    message_put_u64(&w, "last-token", j->last_token);
    message_put(&w, "queued", j->queued ? "yes" : "no");
    if (j->queued)
        message_put(&w, "queued-run", j->queued_run);
    message_put(&w, "at-start", j->at_start_done ? "done" : "due");
    record_write(m, PROTOCOL_JOBS, j->name, &w);
}

int manager_read_job(struct manager *m, struct job *j) {
    struct message record;
    const char *text;
    uint64_t value;
    int k = record_read(m, PROTOCOL_JOBS, j->name, &record);

    if (k < 0)
        return k == -ENOENT ? 0 : k;
    (void) message_get_u64(&record, "last-trigger", &j->last_trigger_realtime);
    (void) message_get_u64(&record, "last-started", &j->last_started_realtime);
    (void) message_get_u64(&record, "last-ended", &j->last_ended_realtime);
    if ((text = message_get(&record, "last-result")))
        j->last_result = run_result_parse(text);
    if (message_get_u64(&record, "last-exit-code", &value) == 0)
        j->last_exit_code = (int) value;
    if (message_get_u64(&record, "last-signal", &value) == 0)
        j->last_signal = (int) value;
    (void) message_get_id(&record, "last-run", j->last_run);
    (void) message_get_u64(&record, "last-token", &j->last_token);
    j->queued = (text = message_get(&record, "queued")) && strcmp(text, "yes") == 0;
    if (j->queued && message_get_id(&record, "queued-run", j->queued_run) < 0) /* of an earlier berthd, which gave it none */
        k = id_make(j->queued_run);
    j->at_start_done = (text = message_get(&record, "at-start")) && strcmp(text, "done") == 0;
    return k;
}
