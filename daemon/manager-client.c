/* SPDX-License-Identifier: MIT */

/* Runs of `berth run`: the client starts and stops the command itself; berthd grants, keeps the lease, and lets go of the permits
 * when the hold is over. */

#include <string.h>

#include "base/duration.h"
#include "base/failpoint.h"
#include "base/process-tree.h"
#include "base/protocol.h"
#include "daemon/manager-internal.h"

#define HOLDS_PATH_SIZE (RUNTIME_DIRECTORY_MAX + 16)

static const char *holds_path(struct manager *m, char path[static HOLDS_PATH_SIZE]) {
    snprintf(path, HOLDS_PATH_SIZE, "%s/%s", m->settings->runtime_directory, PROTOCOL_HOLDS);
    return path;
}

/* --- asking --- */

static int check_pools(struct manager *m, const struct manager_hold *hold, const char **ret_text) {
    char text[DURATION_TEXT_SIZE];

    for (size_t i = 0; i < hold->pools->n; i++) {
        const struct demand *d = &hold->pools->items[i];
        const struct pool_settings *p = settings_find_pool(m->settings, d->pool);

        if (!p) {
            *ret_text = d->pool;
            return MANAGER_E_UNKNOWN;
        }
        /* A limit of 0 pauses the pool: its claims wait (R2). */
        if ((p->limit > 0 && d->permits > p->limit) || (p->host_limit > 0 && d->permits > p->host_limit)) {
            snprintf(m->text, sizeof(m->text), "%u permits of pool \"%s\" are more than its %s of %u", d->permits, d->pool,
                     p->limit > 0 && d->permits > p->limit ? "limit" : "host-limit",
                     p->limit > 0 && d->permits > p->limit ? p->limit : p->host_limit);
            *ret_text = m->text;
            return MANAGER_E_INVALID;
        }
    }
    if (hold->stop_timeout_usec != USEC_INFINITY && hold->on_lease_lost == ON_LEASE_LOST_STOP &&
        settings_needs_cluster(m->settings, hold->pools) &&
        hold->stop_timeout_usec > settings_stop_timeout_max(m->settings)) {
        snprintf(m->text, sizeof(m->text), "the lease allows a stop timeout of at most %s",
                 duration_format(settings_stop_timeout_max(m->settings), text));
        *ret_text = m->text;
        return MANAGER_E_INVALID;
    }
    return 0;
}

static bool covers(const struct run *outer, const struct demands *wanted) {
    struct demands held;

    run_get_pools(outer, &held);
    for (size_t i = 0; i < wanted->n; i++)
        if (demands_get(&held, wanted->items[i].pool) < wanted->items[i].permits)
            return false;
    return true;
}

/* Who ends all below him before the run's lease is over; 0: nobody is there. */
static pid_t supervisor_of(const struct run *r) {
    return r->guard ? guard_link_pid(r->guard) : r->client_pid;
}

bool manager_ends_with(const struct run *r, pid_t pid) {
    pid_t root = supervisor_of(r);

    return root > 0 && process_tree_contains(root, pid) > 0;
}

static bool is_inside(const struct run *outer, const struct manager_hold *hold) {
    pid_t command = outer->hold ? hold_get_command(outer->hold) : 0;

    return manager_ends_with(outer, hold->pid) || (command > 0 && process_tree_contains(command, hold->pid) > 0) ||
           (outer->hold && hold->handed_fd > 0 && hold_is_held_by(outer->hold, hold->handed_fd));
}

struct run *manager_find_outer(struct manager *m, const struct manager_hold *hold) {
    struct run *outer = hold->nested ? manager_find_run(m, hold->nested) : NULL;

    /* The name alone proves nothing: everybody may look at it. */
    return outer && outer->granted && !run_is_over(outer) && is_inside(outer, hold) ? outer : NULL;
}

static int new_adhoc(struct manager *m, const struct manager_hold *hold, struct run **ret) {
    struct run_spec spec = {.kind = RUN_KIND_ADHOC, .name = hold->name, .pools = hold->pools};
    struct run *r = NULL;
    int k;

    k = run_new(&r, m, &spec, m->settings);
    if (k < 0)
        return k;
    r->uid = hold->uid;
    r->client_pid = hold->pid;
    r->nowait = hold->nowait;
    r->queue_timeout_usec = hold->wait_usec;
    r->head_start_usec = hold->head_start_usec;
    r->on_lease_lost = hold->on_lease_lost;
    r->stop_timeout_usec =
        hold->stop_timeout_usec == USEC_INFINITY ? settings_stop_timeout_default(m->settings) : hold->stop_timeout_usec;
    r->queued_realtime = clock_realtime();
    r->queued_boottime = clock_boottime();
    k = manager_add_run(m, r, RUN_STATE_PENDING);
    if (k < 0) {
        run_free(r);
        return k;
    }
    *ret = r;
    return 0;
}

int manager_hold(struct manager *m, const struct manager_hold *hold, struct run **ret, bool *ret_nested, const char **ret_text) {
    struct run *outer;
    int k;

    *ret_nested = false;
    if (m->phase >= MANAGER_PHASE_STOPPING)
        return MANAGER_E_STOPPING;
    k = check_pools(m, hold, ret_text);
    if (k != 0)
        return k;
    outer = manager_find_outer(m, hold);
    if (outer && covers(outer, hold->pools)) {
        *ret = outer;
        *ret_nested = true;
        return 0;
    }
    if (m->drained)
        return MANAGER_E_DRAINED;
    if (outer && !hold->nowait && hold->wait_usec == USEC_INFINITY) {
        snprintf(m->text, sizeof(m->text),
                 "inside run %s (%s) this asks for more than that holds: give -n or --wait, nobody waits without bound "
                 "while holding",
                 outer->id, outer->name);
        *ret_text = m->text;
        return MANAGER_E_INVALID;
    }
    k = new_adhoc(m, hold, ret);
    if (k < 0)
        return k;
    if (m->phase == MANAGER_PHASE_READY)
        manager_run_begin(*ret);
    else if (hold->nowait)
        manager_run_withdraw(*ret, RUN_RESULT_NOT_STARTED, "berthd is still gathering");
    else
        manager_arm_queue_timeout(*ret);
    return 0;
}

int manager_attach(struct manager *m, const char *run, uid_t uid, pid_t pid, struct run **ret) {
    struct run *r = manager_find_run(m, run);

    if (!r && m->phase < MANAGER_PHASE_READY)
        return MANAGER_E_GATHERING; /* a waiting one is found last: whoever came before that would lose its place */
    if (!r || r->kind != RUN_KIND_ADHOC || run_is_over(r) || (uid != r->uid && uid != 0))
        return MANAGER_E_UNKNOWN;
    r->client_pid = pid;
    r->unheard = false;
    if (r->state == RUN_STATE_WAITING)
        manager_arm_queue_timeout(r);
    *ret = r;
    return 0;
}

void manager_client_gone(struct manager *m, struct run *r) {
    (void) m;
    r->client_pid = 0;
    switch (r->state) {
    case RUN_STATE_PENDING:
    case RUN_STATE_WAITING:
        manager_run_withdraw(r, RUN_RESULT_STOPPED, "its client has gone");
        break;
    case RUN_STATE_STARTING:
    case RUN_STATE_STOPPING:
        r->hold_fd = close_fd(r->hold_fd); /* nobody got it: the hold is over */
        break;
    case RUN_STATE_RUNNING:
    case RUN_STATE_DONE:
        break;
    }
}

/* --- holding --- */

static void hold_on_over(struct hold *h, void *userdata) {
    struct run *r = userdata;
    bool started = r->pid > 0 || r->started_realtime > 0;
    char pools[DEMANDS_TEXT_SIZE];
    struct event e;

    (void) h;
    if (run_is_over(r))
        return;
    FAILPOINT("hold-over");
    if (r->ended_told) {
        manager_run_end(r, r->result);
        return;
    }
    run_set_reason(r, "%s", !started     ? "its client has gone"
                            : r->unheard ? "it ended while berthd was away: how, the caller of `berth run` alone knows"
                                         : "`berth run` could not say how its command ended; all that had its hold are gone");
    e = manager_run_event(r, EVENT_EXITED, pools);
    e.result = run_result_name(started ? RUN_RESULT_GUARD_DIED : RUN_RESULT_NOT_STARTED);
    event_emit(r->manager->events, &e, "%s is over: %s", r->name, r->reason);
    manager_run_end(r, started ? RUN_RESULT_GUARD_DIED : RUN_RESULT_NOT_STARTED);
}

static void put_hold(struct message_writer *w, const struct run *r) {
    usec_t deadline = manager_run_deadline(r);

    message_begin(w, "hold");
    manager_put_run(w, r);
    if (deadline != USEC_INFINITY)
        message_put_u64(w, "deadline", deadline);
    if (r->pid > 0)
        message_put_u64(w, "pid", (uint64_t) r->pid); /* for people; the hold keeps the process's identity itself */
    if (!r->ended_told)
        return;
    message_put(w, "result", run_result_name(r->result));
    if (r->exit_code >= 0)
        message_put_u64(w, "code", (uint64_t) r->exit_code);
    if (r->signal >= 0)
        message_put_u64(w, "signal", (uint64_t) r->signal);
    message_put_u64(w, "ended", r->ended_realtime);
    message_put_u64(w, "ended-boot", r->ended_boottime);
}

/* It was told already: `exited` is in the journal, and is not to be there twice. */
static void read_end(struct run *r, const struct message *record) {
    const char *result = message_get(record, "result");
    uint64_t value;

    if (!result)
        return;
    r->result = run_result_parse(result);
    r->ended_told = r->result != RUN_RESULT_NONE;
    if (message_get_u64(record, "code", &value) == 0)
        r->exit_code = (int) value;
    if (message_get_u64(record, "signal", &value) == 0)
        r->signal = (int) value;
    (void) message_get_u64(record, "ended", &r->ended_realtime);
    (void) message_get_u64(record, "ended-boot", &r->ended_boottime);
}

void manager_hold_write(struct run *r) {
    struct message_writer w;
    int k;

    put_hold(&w, r);
    k = r->hold ? hold_write_record(r->hold, &w) : 0;
    if (k < 0)
        journal_log(events_get_journal(r->manager->events), 4, "the record of hold %s cannot be written: %s", r->id,
                    strerror(-k));
}

static void run_on_client_overdue(struct run *r) {
    if (r->client_pid == 0)
        manager_client_gone(r->manager, r);
}

void manager_hold_start(struct run *r) {
    struct manager *m = r->manager;
    struct hold_handler handler = {.on_over = hold_on_over, .userdata = r, .removals = m->removals};
    char path[HOLDS_PATH_SIZE], pools[DEMANDS_TEXT_SIZE];
    struct message_writer w;
    struct event e;
    int k;

    put_hold(&w, r);
    k = hold_new(&r->hold, m->event, holds_path(m, path), r->id, &w, &handler, &r->hold_fd);
    if (k < 0) {
        r->hold_failed = true;
        run_set_reason(r, "%s/%s: %s", path, r->id, strerror(-k));
        e = manager_run_event(r, EVENT_EXITED, pools);
        e.result = run_result_name(RUN_RESULT_NOT_STARTED);
        event_emit(m->events, &e, "%s cannot be given its hold: %s", r->name, r->reason);
        manager_run_end(r, RUN_RESULT_NOT_STARTED);
        return;
    }
    FAILPOINT("hold-made");
    manager_remove_waiting(r); /* the hold's record has it now */
    if (r->client_pid == 0)
        manager_arm(r, m->clients_due, run_on_client_overdue);
    manager_set_state(r, RUN_STATE_STARTING);
}

void manager_hold_done(struct run *r) {
    r->hold_fd = close_fd(r->hold_fd);
    r->hold = hold_free(r->hold);
}

int manager_take_hold_fd(struct run *r) {
    return steal_fd(&r->hold_fd);
}

void manager_client_started(struct manager *m, struct run *r, pid_t pid) {
    int k;

    if (r->state < RUN_STATE_STARTING || run_is_over(r) || r->pid > 0 || !r->hold)
        return;
    k = hold_watch_command(r->hold, r->client_pid, pid);
    if (k < 0 && k != -ESRCH)
        journal_log(events_get_journal(m->events), 4, "run %s: process %d cannot be watched: %s", r->id, (int) pid,
                    strerror(-k));
    manager_run_started(r, pid, clock_realtime());
    FAILPOINT("hold-started-seen");
    manager_hold_write(r);
}

/* By when its processes had to be gone (the margin not counted), as the client knows: what was pushed since then it did not have. */
static usec_t believed_deadline(const struct run *r, usec_t told) {
    const struct settings *settings = r->manager->settings;
    usec_t latest = usec_sub(usec_add(clock_boottime(), settings->lease_usec), settings_margin(settings->lease_usec));

    return told > 0 && told <= latest ? told : manager_run_deadline(r);
}

static usec_t believed_end(const struct run *r, usec_t told) {
    usec_t now = clock_boottime(), begin = r->started_boottime > 0 ? r->started_boottime : r->queued_boottime;

    return told > 0 && told <= now && told >= begin ? told : now;
}

void manager_client_ended(struct manager *m, struct run *r, const struct manager_ended *ended) {
    char pools[DEMANDS_TEXT_SIZE];
    struct event e;

    if (run_is_over(r) || r->ended_told || r->state < RUN_STATE_STARTING)
        return;
    FAILPOINT("hold-ended-seen");
    r->ended_told = true;
    r->exit_code = ended->code;
    r->signal = ended->signal;
    r->ended_boottime = believed_end(r, ended->at);
    r->ended_realtime = usec_sub(clock_realtime(), usec_sub(clock_boottime(), r->ended_boottime));
    r->result = ended->result != RUN_RESULT_NONE ? ended->result : ended->code == 0 ? RUN_RESULT_SUCCESS : RUN_RESULT_FAILURE;
    if (r->result == RUN_RESULT_LEASE_LOST)
        manager_tell_fenced(r, r->ended_boottime, believed_deadline(r, ended->deadline));
    e = manager_run_event(r, EVENT_EXITED, pools);
    e.result = run_result_name(r->result);
    e.has_exit_code = r->exit_code >= 0;
    e.exit_code = r->exit_code;
    e.has_signal = r->signal >= 0;
    e.signal = r->signal;
    e.has_run_time = true;
    e.run_usec = run_time_usec(r, r->ended_boottime);
    event_emit(m->events, &e, "%s is over: %s", r->name, run_result_name(r->result));
    FAILPOINT("hold-ended-told");
    manager_hold_write(r); /* something of it may have the hold still, when we are gone */
    r->hold_fd = close_fd(r->hold_fd);
}

/* A hold found at start. */
void manager_hold_found(const char *run, const struct message *record, void *userdata) {
    struct manager *m = userdata;
    struct hold_handler handler = {.on_over = hold_on_over, .removals = m->removals};
    char path[HOLDS_PATH_SIZE], what[ID_TEXT_SIZE + 8];
    struct run *r = NULL;
    uint64_t pid = 0;
    int k;

    k = manager_read_run(m, record, RUN_KIND_ADHOC, &r);
    if (k == 0 && strcmp(r->id, run) != 0)
        k = -EBADMSG;
    if (k == 0) {
        if (message_get_u64(record, "pid", &pid) == 0)
            r->pid = (pid_t) pid;
        read_end(r, record);
        r->granted = r->unheard = true;
        handler.userdata = r;
        k = hold_open(&r->hold, m->event, holds_path(m, path), run, record, &handler);
    }
    if (k < 0)
        run_free(r);
    else
        k = manager_take_up(r, RUN_STATE_STARTING);
    if (k < 0) {
        snprintf(what, sizeof(what), "hold %s", run);
        (void) manager_gather_failed(m, what, k);
        return;
    }
    if (r->started_realtime > 0)
        manager_set_state(r, RUN_STATE_RUNNING);
}
