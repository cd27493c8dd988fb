/* SPDX-License-Identifier: MIT */
#include "daemon/state/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/file.h"
#include "daemon/state/state-record.h"

#define LOCK "lock"
#define HOLDS "holds"
#define WAITING "waiting"
#define FLAGS "state"
#define SESSION FLAGS "/session"
#define OVERRIDES FLAGS "/overrides"

#define log(state, priority, ...) journal_log((state)->journal, (priority), __VA_ARGS__)

/* --- the directory --- */

/* Writes RUNTIME-DIRECTORY/NAME, or the runtime directory for "". */
static const char *format_path(const struct state *state, const char *name,
                               char path[static STATE_PATH_SIZE]) {
    snprintf(path, STATE_PATH_SIZE, "%s%s%s", state->directory, *name ? "/" : "", name);
    return path;
}

const char *state_holds_path(const struct state *state, char path[static STATE_PATH_SIZE]) {
    return format_path(state, HOLDS, path);
}

const char *state_overrides_path(const struct state *state, char path[static STATE_PATH_SIZE]) {
    return format_path(state, OVERRIDES, path);
}

const char *state_session_path(const struct state *state, char path[static STATE_PATH_SIZE]) {
    return format_path(state, SESSION, path);
}

static int make_directory(const struct state *state, const char *name, mode_t mode) {
    char path[STATE_PATH_SIZE];
    int r = file_make_directory(format_path(state, name, path), mode);

    if (r < 0)
        log(state, LOG_ERR, "%s: cannot make directory: %s", path, strerror(-r));
    return r;
}

/* A system service finds all of them: root owns the runtime directory, so berthd can create nothing in
 * it. */
static int make_directories(const struct state *state) {
    static const char *const names[] = {HOLDS, WAITING, STATE_JOBS, FLAGS};
    int r = make_directory(state, "", 0755);

    for (size_t i = 0; r == 0 && i < ELEMENTSOF(names); i++)
        r = make_directory(state, names[i], 0700);
    return r;
}

/* Takes a record lock, which ends with its process. A flock() would live on in a forked child that has not
 * reached its exec. */
static int take_lock(struct state *state) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    _cleanup_close_ int fd = -1;
    char path[STATE_PATH_SIZE];
    int r;

    fd = open(format_path(state, LOCK, path), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fcntl(fd, F_SETLK, &lock) < 0) {
        r = errno == EACCES && fd >= 0 ? -EWOULDBLOCK : -errno;
        if (r == -EWOULDBLOCK)
            log(state, LOG_ERR, "%s: another berthd holds this lock; a runtime directory has one", path);
        else
            log(state, LOG_ERR, "%s: %s", path, strerror(-r));
        return r;
    }
    state->lock_fd = steal_fd(&fd);
    return 0;
}

int state_open(struct state *state, const char *directory, struct journal *journal,
               struct removals *removals) {
    int r;

    *state = (struct state){.journal = journal, .removals = removals, .lock_fd = -1};
    snprintf(state->directory, sizeof(state->directory), "%s", directory);
    r = make_directories(state);
    return r < 0 ? r : take_lock(state);
}

void state_close(struct state *state) {
    state->lock_fd = close_fd(state->lock_fd);
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

static void put_moved(struct message_writer *w, const char *prefix, const struct claim *c) {
    char key[32];

    if (c->n_demands == 0 || c->moved == 0)
        return;
    snprintf(key, sizeof(key), "%smoved", prefix);
    message_put_u64(w, key, c->moved);
    snprintf(key, sizeof(key), "%sgiven", prefix);
    message_put_u64(w, key, c->given_usec);
}

void state_put_run(struct message_writer *w, const struct run *run) {
    char pools[DEMANDS_TEXT_SIZE], scopes[RUN_SCOPES_SIZE];

    message_put(w, "run", run->id);
    message_put(w, "kind", run->kind == RUN_KIND_JOB ? "job" : "adhoc");
    message_put(w, "job", run->name);
    message_put(w, "hash", run->job.hash);
    message_put_u64(w, "uid", run->adhoc.uid);
    message_put(w, "pools", run_format_pools(run, pools));
    message_put(w, "scopes", run_format_scopes(run, scopes));
    /* No token if the run was requeued, or if its turn is not committed: Redis knows whether the grant still
     * exists. The record of a hold is written before its run leaves the state waiting. */
    put_claim(w, "", run->cluster_claim,
              run->requeue != RUN_REQUEUE_NONE || (run->state == RUN_STATE_WAITING && !run->granted)
                  ? 0
                  : run->cluster_claim->token);
    put_claim(w, "host-", run->host_claim, run->host_claim->token);
    put_moved(w, "", run->cluster_claim);
    put_moved(w, "host-", run->host_claim);
    message_put(w, "on-lease-lost", run->terms.on_lease_lost == ON_LEASE_LOST_STOP ? "stop" : "continue");
    message_put_u64(w, "stop-timeout", run->terms.stop_timeout_usec);
    message_put_u64(w, "head-start", run->terms.head_start_usec);
    message_put_u64(w, "queue-timeout", run->terms.queue_timeout_usec);
    if (run->kind == RUN_KIND_JOB)
        run_origin_put(&run->job.origin, w);
    if (run->job.queued_by_overlap)
        message_put(w, "turn", "queued");
    message_put_u64(w, "queued", run->queued.realtime);
    message_put_u64(w, "queued-boot", run->queued.boottime);
    if (run->state == RUN_STATE_RETRYING)
        message_put_u64(w, "begin", run->job.begin_realtime);
    if (run->job.origin.first_queued_realtime > 0)
        message_put_u64(w, "first-queued", run->job.origin.first_queued_realtime);
    if (run->started.boottime > 0)
        message_put_u64(w, "started", run->started.boottime);
    if (run->job.next_attempt > 0) {
        message_put_u64(w, "next-attempt", run->job.next_attempt);
        message_put_u64(w, "next-delay", run->job.next_delay_usec);
    }
}

static void read_claim(const struct message *record, const char *prefix, struct claim *c) {
    char key[32];

    if (c->n_demands == 0)
        return;
    snprintf(key, sizeof(key), "%sticket", prefix);
    (void) message_get_u64(record, key, &c->ticket);
    snprintf(key, sizeof(key), "%stoken", prefix);
    (void) message_get_u64(record, key, &c->token);
    snprintf(key, sizeof(key), "%smoved", prefix);
    (void) message_get_u64(record, key, &c->moved);
    snprintf(key, sizeof(key), "%sgiven", prefix);
    (void) message_get_u64(record, key, &c->given_usec);
}

static void read_times(const struct message *record, struct run *run) {
    usec_t now = clock_boottime(), started;

    (void) message_get_u64(record, "queued", &run->queued.realtime);
    (void) message_get_u64(record, "queued-boot", &run->queued.boottime);
    (void) message_get_u64(record, "first-queued", &run->job.origin.first_queued_realtime);
    if (message_get_u64(record, "begin", &run->job.begin_realtime) == 0)
        run->job.begin_due = usec_add(now, usec_sub(run->job.begin_realtime, clock_realtime()));
    if (message_get_u64(record, "started", &started) == 0)
        run_set_started(run, started, (struct run_time) {clock_realtime(), now});
    (void) message_get_u64(record, "queue-timeout", &run->terms.queue_timeout_usec);
    (void) message_get_u64(record, "head-start", &run->terms.head_start_usec);
    (void) message_get_u64(record, "stop-timeout", &run->terms.stop_timeout_usec);
}

static void read_next_attempt(const struct message *record, struct run *run) {
    uint64_t attempt;

    if (message_get_u64(record, "next-attempt", &attempt) < 0 || attempt > UINT32_MAX ||
        message_get_u64(record, "next-delay", &run->job.next_delay_usec) < 0)
        return;
    run->job.next_attempt = (uint32_t) attempt;
}

/* Reads the pools, and the scopes of the permits that a run holds: the config may have others by now. NULL: it holds none. */
static int read_pools(const struct message *record, struct demands *ret, const char **ret_held_scopes) {
    const char *pools = message_get(record, "pools"), *scopes = message_get(record, "scopes");
    uint64_t token = 0;

    if (!pools || demands_parse(pools, ret) != 0 || !scopes || strlen(scopes) != ret->n || strspn(scopes, RUN_SCOPES) != ret->n)
        return -EBADMSG;
    if (message_get_u64(record, "token", &token) == -ENODATA)
        (void) message_get_u64(record, "host-token", &token);
    *ret_held_scopes = token > 0 ? scopes : NULL;
    return 0;
}

int state_parse_run(const struct message *record, enum run_kind kind, const struct settings *settings,
                    struct run **ret) {
    _cleanup_(run_freep) struct run *run = NULL;
    const char *hash = message_get(record, "hash"), *on_lease_lost = message_get(record, "on-lease-lost");
    char id[ID_TEXT_SIZE], name[NAME_MAX_LENGTH + 1];
    struct demands demands = {};
    struct run_spec spec = {.kind = kind, .id = id, .name = name, .pools = &demands};
    uint64_t uid = 0;
    int r;

    if (message_get_id(record, "run", id) < 0 || message_get_job(record, "job", name) < 0 ||
        read_pools(record, &demands, &spec.scopes) < 0)
        return -EBADMSG;
    r = run_new(&run, &spec, settings);
    if (r < 0)
        return r;
    run->terms.stop_timeout_usec = settings_stop_timeout_default(settings);
    if (hash)
        snprintf(run->job.hash, sizeof(run->job.hash), "%s", hash);
    if (on_lease_lost && strcmp(on_lease_lost, "continue") == 0)
        run->terms.on_lease_lost = ON_LEASE_LOST_CONTINUE;
    (void) message_get_u64(record, "uid", &uid);
    run->adhoc.uid = (uid_t) uid;
    run->job.queued_by_overlap = message_get(record, "turn") != NULL;
    r = run_origin_read(&run->job.origin, record);
    if (r < 0)
        return r;
    read_times(record, run);
    read_next_attempt(record, run);
    read_claim(record, "", run->cluster_claim);
    read_claim(record, "host-", run->host_claim);
    /* State and report of a guard name the token and ticket of the command. Without cluster permits these
     * are the host claim's. */
    if (run->cluster_claim->n_demands == 0 && run->host_claim->n_demands > 0 && run->host_claim->token == 0) {
        (void) message_get_u64(record, "token", &run->host_claim->token);
        if (run->host_claim->ticket == 0)
            (void) message_get_u64(record, "ticket", &run->host_claim->ticket);
    }
    *ret = steal_pointer(&run);
    return 0;
}

void state_save_run(const struct state *state, struct run *run) {
    struct message_writer w;

    message_begin(&w, "waiting");
    state_put_run(&w, run);
    state_record_write(state, WAITING, run->id, &w);
    run->recorded.waiting = true;
    FAILPOINT("waiting-written");
}

void state_remove_run(const struct state *state, struct run *run) {
    char path[STATE_PATH_SIZE];
    int r;

    if (!run->recorded.waiting)
        return;
    run->recorded.waiting = false;
    r = removals_remove(state->removals, state_record_path(state, WAITING, run->id, path));
    if (r < 0)
        log(state, LOG_WARNING,
            "%s: cannot remove: %s, retrying; a berthd that finds it would start run %s", path,
            strerror(-r), run->id);
    FAILPOINT("waiting-removed");
}

bool state_has_run(const struct state *state, struct run *run) {
    char path[STATE_PATH_SIZE];
    struct message record;

    run->recorded.waiting =
        run->recorded.waiting || access(state_record_path(state, WAITING, run->id, path), F_OK) == 0;
    if (run->recorded.waiting && state_record_read(state, WAITING, run->id, &record) == 0)
        read_next_attempt(&record, run);
    return run->recorded.waiting;
}

static int read_entry(const struct state *state, const char *name, const struct state_run_handler *handler) {
    struct message record;
    int r;

    if (!id_is_valid(name))
        return 0;
    r = state_record_read(state, WAITING, name, &record);
    if (r == 0)
        handler->on_record(&record, handler->userdata);
    return r == -ENOENT ? 0 : r;
}

void state_each_run(const struct state *state, const struct state_run_handler *handler) {
    char path[STATE_PATH_SIZE];
    DIR *directory = opendir(format_path(state, WAITING, path));
    struct dirent *entry;
    int r;

    if (!directory) {
        handler->on_error(path, -errno, handler->userdata);
        return;
    }
    while ((errno = 0, entry = readdir(directory))) {
        if (strstr(entry->d_name, ".tmp")) { /* of a berthd that was killed while it wrote */
            (void) unlinkat(dirfd(directory), entry->d_name, 0);
            continue;
        }
        r = read_entry(state, entry->d_name, handler);
        if (r < 0)
            handler->on_error(path, r, handler->userdata);
    }
    if (errno != 0)
        handler->on_error(path, -errno, handler->userdata);
    (void) closedir(directory);
}
