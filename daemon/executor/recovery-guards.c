/* SPDX-License-Identifier: MIT */

/* Guards found at start, whose runs are not known yet. Each sends its state when berthd connects, from which
 * berthd recovers the run. Nothing is granted on this host before all states or reports have come. */

#include <errno.h>
#include <string.h>

#include "daemon/executor/executor-internal.h"

struct unidentified_guard { /* freed when its state or its report has come */
    struct list entry;      /* on executor->unidentified_guards */
    struct executor *executor;
    struct guard_link *link; /* NULL: not connected */
    bool wanted;             /* the connection failed and is retried */
    bool was_disconnected;   /* an earlier connection ended */
    bool is_timed;           /* the timer was set */
    struct timer timer;      /* time limit for its state */
    char run[ID_TEXT_SIZE];
};

static void guard_free(struct unidentified_guard *guard) {
    guard_link_free(guard->link);
    timer_done(&guard->timer);
    list_unlink(&guard->entry);
    free(guard);
}

static void guard_done(struct unidentified_guard *guard) {
    struct executor *executor = guard->executor;

    guard_free(guard);
    executor->handler.on_recovery_progress(executor->handler.userdata);
}

/* A guard that sends no state hangs or was stopped. Without its state nothing can be granted on this host,
 * so berthd waits a bounded time. After the kill, the runner's report has the same fields. */
static void guard_on_silent(void *userdata) {
    struct unidentified_guard *guard = userdata;

    journal_log(guard->executor->journal, LOG_WARNING, "run %s: its guard does not answer, killing it",
                guard->run);
    (void) runner_link_kill(guard->executor->runner, guard->run, 0);
}

/* --- its state --- */

static int recover(struct unidentified_guard *guard, const struct message *state) {
    struct executor *executor = guard->executor;
    struct run *run = NULL;
    uint64_t pid, started = 0;
    int r = executor_call(executor, on_recovered, state, guard->run, &run);

    if (r < 0)
        return r;
    run->job.executor = executor;
    run->job.start_sent = true;
    (void) message_get_u64(state, "started", &started);
    if (message_get_u64(state, "pid", &pid) == 0) {
        if (started > 0 && run->started.realtime == 0)
            executor_call(executor, on_started, run, (pid_t) pid, started);
        run->started.pid = (pid_t) pid;
        if (run->state == RUN_STATE_STARTING)
            run_enter(run, RUN_STATE_RUNNING);
        executor_arm_timeout(run, state);
    }
    /* On a second connection, with the handler of a known run, the guard sends its state again, and its
     * report. */
    executor_guard_connect(executor, run->id);
    return 0;
}

static void guard_on_state(_unused_ struct guard_link *link, const struct message *state, void *userdata) {
    struct unidentified_guard *guard = userdata;
    struct executor *executor = guard->executor;
    int r = 0;

    executor->retry_usec = GUARD_RETRY_MIN;
    /* A runner that reconnects names its guards again. */
    if (!run_table_find(executor->runs, guard->run))
        r = recover(guard, state);
    if (r == 0) {
        guard_done(guard);
        return;
    }
    /* Its permits are unknown, so it must end. Its report follows. */
    journal_log(executor->journal, LOG_ERR, "run %s: cannot recover from its guard: %s", guard->run,
                strerror(-r));
    guard->link = guard_link_free(guard->link);
    if (r == -EBADMSG || !executor_call(executor, on_unrecoverable, guard->run, r))
        (void) runner_link_kill(executor->runner, guard->run, 0);
}

static void guard_connect(struct unidentified_guard *guard);

/* The permits of the run stay unknown until the guard sends its state on another connection. If the guard
 * has ended, the runner reaps the run, and its report names them. */
static void guard_on_gone(_unused_ struct guard_link *link, void *userdata) {
    struct unidentified_guard *guard = userdata;

    guard->link = guard_link_free(guard->link);
    guard->wanted = guard->was_disconnected;
    guard->was_disconnected = true;
    if (guard->wanted)
        executor_guard_retry(guard->executor, guard->run, -ECONNRESET);
    else
        guard_connect(guard);
}

/* --- connecting --- */

/* The time limit begins with the first connection that the guard can accept. A full backlog (EAGAIN) is the
 * fault of the guard. */
static void guard_arm(struct unidentified_guard *guard) {
    if (guard->is_timed)
        return;
    guard->is_timed = true;
    timer_set_in(&guard->timer, guard->executor->silence_usec);
}

static void guard_connect(struct unidentified_guard *guard) {
    const struct guard_link_handler handler = {
        .on_state = guard_on_state, /* other messages come again on the second connection */
        .on_gone = guard_on_gone,
        .userdata = guard,
    };
    struct executor *executor = guard->executor;
    int r = guard_link_new(&guard->link, executor->event, executor->directory, guard->run, &handler);

    guard->wanted = r < 0 && !executor_guard_is_gone(r);
    if (r == 0 || r == -EAGAIN)
        guard_arm(guard);
    if (guard->wanted)
        executor_guard_retry(executor, guard->run, r);
    else if (r < 0) /* its report follows */
        (void) runner_link_kill(executor->runner, guard->run, 0);
}

void unidentified_guard_add(struct executor *executor, const char *run) {
    struct unidentified_guard *guard = calloc(1, sizeof(*guard));
    int r = guard ? 0 : -ENOMEM;

    if (guard) {
        guard->executor = executor;
        list_init(&guard->entry);
        snprintf(guard->run, sizeof(guard->run), "%s", run);
        r = timer_init(&guard->timer, executor->event, SD_EVENT_PRIORITY_NORMAL, guard_on_silent, guard);
    }
    if (r < 0) {
        if (guard)
            guard_free(guard);
        if (!executor_call(executor, on_unrecoverable, run, r))
            (void) runner_link_kill(executor->runner, run, 0);
        return;
    }
    list_append(&executor->unidentified_guards, &guard->entry);
    guard_connect(guard);
}

void unidentified_guards_retry(struct executor *executor) {
    list_foreach (guard, &executor->unidentified_guards, struct unidentified_guard, entry)
        if (guard->wanted)
            guard_connect(guard);
}

void unidentified_guards_forget(struct executor *executor, const char *run) {
    list_foreach_safe (guard, &executor->unidentified_guards, struct unidentified_guard, entry)
        if (strcmp(guard->run, run) == 0)
            guard_free(guard);
}

void unidentified_guards_free(struct executor *executor) {
    list_foreach_safe (guard, &executor->unidentified_guards, struct unidentified_guard, entry)
        guard_free(guard);
}
