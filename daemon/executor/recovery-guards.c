/* SPDX-License-Identifier: MIT */

/* Guards found at start, whose runs are not known yet: each is asked what it holds, and its run is taken up again. Nothing is granted
 * on this host before all have told, or their reports have. */

#include <errno.h>
#include <string.h>

#include "base/protocol.h"
#include "daemon/manager-internal.h"

struct found_guard { /* freed when its guard has told its state, or the runner has told its report */
    struct list entry;         /* on manager->found_guards */
    struct manager *manager;
    struct guard_link *link;   /* NULL: not connected (any more) */
    bool wanted;               /* could not be connected to: tried again */
    bool has_gone;             /* a connection has ended already */
    sd_event_source *timer;    /* since it could have told */
    char run[ID_TEXT_SIZE];
};

static void found_free(struct found_guard *f) {
    guard_link_free(f->link);
    sd_event_source_disable_unref(f->timer);
    list_unlink(&f->entry);
    free(f);
}

static void found_done(struct found_guard *f) {
    struct manager *m = f->manager;

    found_free(f);
    manager_recover_check(m);
}

/* Nobody else can stop what a guard that hangs should have stopped by the end of its lease, and the last heartbeat was answered before
 * berthd was started anew: half a lease is left of it if that took not much longer than a heartbeat. Without leases: longer than a
 * machine stalls. */
static usec_t silence_max(const struct manager *m) {
    return m->settings->redis ? m->settings->lease_usec / 2 : MANAGER_SILENCE_MAX;
}

/* A guard that is there and does not say what it holds: it hangs, or was stopped. Nothing can be granted on this host before it is
 * known, so it may not keep everybody waiting for ever; its report will say the rest. */
static int found_on_silent(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
    struct found_guard *f = userdata;

    manager_log(f->manager, LOG_WARNING, "the guard of run %s does not answer: the runner ends it", f->run);
    (void) runner_link_kill(f->manager->runner, f->run);
    return 0;
}

/* --- what it says --- */

static struct run *read_state(struct found_guard *f, const struct message *state, int *ret_error) {
    struct run *r = NULL;
    int k = state_parse_run(state, RUN_KIND_JOB, f->manager->settings, &r);

    if (k == 0 && strcmp(r->id, f->run) != 0)
        k = -EBADMSG;
    if (k == 0)
        return r;
    *ret_error = k;
    return run_free(r);
}

static int take_up(struct found_guard *f, const struct message *state) {
    struct manager *m = f->manager;
    uint64_t pid;
    int k = 0;
    struct run *r = read_state(f, state, &k);

    if (!r)
        return k;
    r->job.start_sent = r->granted = true;
    k = manager_take_up(m, r, RUN_STATE_STARTING);
    if (k < 0)
        return k;
    if (message_get_u64(state, "pid", &pid) == 0) {
        if (r->started.realtime > 0 && state_has_run(&manager_of(r)->state, r))
            manager_run_started(r, (pid_t) pid, r->started.realtime);
        r->started.pid = (pid_t) pid;
        if (r->state == RUN_STATE_STARTING)
            run_enter(r, RUN_STATE_RUNNING);
    }
    state_remove_run(&manager_of(r)->state, r);
    /* A second connection, with the handler of a known run; the guard tells its state, and a report that is due, again. */
    manager_guard_connect(m, r->id);
    return 0;
}

static void found_on_state(_unused_ struct guard_link *g, const struct message *state, void *userdata) {
    struct found_guard *f = userdata;
    struct manager *m = f->manager;
    int k = manager_find_run(m, f->run) ? 0 /* the runner was lost and back meanwhile, and named it twice */ : take_up(f, state);

    if (k == 0) {
        found_done(f);
        return;
    }
    /* Nobody knows what it holds: it must end, and its report is waited for. */
    manager_log(m, LOG_ERR, "cannot take over run %s: %s", f->run, strerror(-k));
    f->link = guard_link_free(f->link);
    if (k == -EBADMSG || !manager_recover_failed(m, f->run, k))
        (void) runner_link_kill(m->runner, f->run);
}

static void found_connect(struct found_guard *f);

/* It is not known what it held until it has said so on another connection, or, if it is gone, until the runner has ended what is left
 * of it and says so. */
static void found_on_gone(_unused_ struct guard_link *g, void *userdata) {
    struct found_guard *f = userdata;

    f->link = guard_link_free(f->link);
    f->wanted = f->has_gone;
    f->has_gone = true;
    if (f->wanted)
        manager_guard_retry(f->manager, f->run, -ECONNRESET);
    else
        found_connect(f);
}

/* --- connecting --- */

/* Its silence counts from when it could have heard: a full queue of connections (EAGAIN) is its own doing. */
static void found_arm(struct found_guard *f) {
    uint64_t due = USEC_INFINITY;

    (void) sd_event_source_get_time(f->timer, &due);
    if (due != USEC_INFINITY)
        return;
    (void) sd_event_source_set_time_relative(f->timer, silence_max(f->manager));
    (void) sd_event_source_set_enabled(f->timer, SD_EVENT_ONESHOT);
}

static void found_connect(struct found_guard *f) {
    const struct guard_link_handler handler = {
        .on_state = found_on_state, /* anything else is said again on the second connection */
        .on_gone = found_on_gone,
        .userdata = f,
    };
    struct manager *m = f->manager;
    int k = guard_link_new(&f->link, m->event, m->settings->runtime_directory, f->run, &handler);

    f->wanted = k < 0 && !manager_guard_is_gone(k);
    if (k == 0 || k == -EAGAIN)
        found_arm(f);
    if (f->wanted)
        manager_guard_retry(m, f->run, k);
    else if (k < 0) /* its report says what became of it */
        (void) runner_link_kill(m->runner, f->run);
}

void manager_found_connect(struct manager *m, const char *run) {
    struct found_guard *f = calloc(1, sizeof(*f));
    int k = f ? 0 : -ENOMEM;

    if (f) {
        f->manager = m;
        list_init(&f->entry);
        snprintf(f->run, sizeof(f->run), "%s", run);
        k = sd_event_add_time(m->event, &f->timer, CLOCK_BOOTTIME, USEC_INFINITY, USEC_PER_MSEC, found_on_silent, f);
        if (k >= 0)
            k = sd_event_source_set_enabled(f->timer, SD_EVENT_OFF);
    }
    if (k < 0) {
        if (f)
            found_free(f);
        if (!manager_recover_failed(m, run, k))
            (void) runner_link_kill(m->runner, run);
        return;
    }
    list_append(&m->found_guards, &f->entry);
    found_connect(f);
}

void manager_found_again(struct manager *m) {
    list_foreach(f, &m->found_guards, struct found_guard, entry)
        if (f->wanted)
            found_connect(f);
}

void manager_found_reported(struct manager *m, const char *run) {
    list_foreach_safe(f, &m->found_guards, struct found_guard, entry)
        if (strcmp(f->run, run) == 0)
            found_free(f);
}

void manager_found_free(struct manager *m) {
    list_foreach_safe(f, &m->found_guards, struct found_guard, entry)
        found_free(f);
}
