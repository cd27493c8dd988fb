/* SPDX-License-Identifier: MIT */

/* Prepared guards, of runs that wait near the head of their queues. The runner forks such a guard, which
 * forks the command up to its gate. berthd sends the grant directly to the guard. A prepared guard ends when
 * its connection closes, so no message withdraws it. Each run is prepared at most once. */

#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "base/protocol.h"
#include "daemon/executor/executor-internal.h"

struct prepared {
    struct list link; /* on executor->prepared */
    struct executor *executor;
    char run[ID_TEXT_SIZE];   /* not a pointer: the run may be freed at any time */
    struct guard_link *guard; /* NULL: the runner has not answered yet */
    bool is_granted;          /* the guard gets the grant as soon as it is connected */
};

static struct prepared *prepared_find(const struct executor *executor, const char *run) {
    list_foreach (p, &executor->prepared, struct prepared, link)
        if (strcmp(p->run, run) == 0)
            return p;
    return NULL;
}

static void prepared_free(struct prepared *p) {
    list_unlink(&p->link);
    guard_link_free(p->guard);
    free(p);
}

void executor_withdraw_prepared(struct executor *executor) {
    list_foreach_safe (p, &executor->prepared, struct prepared, link)
        if (!p->is_granted)
            prepared_free(p);
}

void executor_prepared_forget(struct executor *executor) {
    list_foreach_safe (p, &executor->prepared, struct prepared, link)
        prepared_free(p);
}

/* --- requests --- */

#define PREPARED_MAX 8

static bool is_queued(const struct run *run) {
    return run->state == RUN_STATE_WAITING &&
           (run->host_claim->state == CLAIM_STATE_WAITING || run->cluster_claim->state == CLAIM_STATE_WAITING);
}

static bool may_prepare(const struct run *run) {
    return run->kind == RUN_KIND_JOB && is_queued(run) && run->requeue == RUN_REQUEUE_NONE && !run->job.turn &&
           !run->job.was_prepared;
}

static void prepare(struct executor *executor, struct run *run) {
    struct prepared *p = calloc(1, sizeof(*p));
    struct message_writer w;

    if (!p)
        return;
    p->executor = executor;
    memcpy(p->run, run->id, sizeof(p->run));
    list_append(&executor->prepared, &p->link);
    message_begin(&w, PROTOCOL_PREPARE);
    executor_put_run(executor, run, &w);
    FAILPOINT("prepare-sending");
    if (runner_link_prepare(executor->runner, &w) == 0)
        run->job.was_prepared = true;
    else
        prepared_free(p);
}

static size_t give_up_far_ones(struct executor *executor) {
    size_t n = 0;

    list_foreach_safe (p, &executor->prepared, struct prepared, link) {
        const struct run *run = run_table_find(executor->runs, p->run);

        if (p->is_granted || (run && run->is_near && is_queued(run)))
            n++;
        else
            prepared_free(p);
    }
    return n;
}

static void executor_on_prepare(void *userdata) {
    struct executor *executor = userdata;
    const struct near *near = &executor->runs->near;
    size_t n = give_up_far_ones(executor);

    if (!executor->is_runner_recovered || !runner_link_is_up(executor->runner))
        return;
    for (size_t i = 0; i < near->n && n < PREPARED_MAX; i++)
        if (may_prepare(near->runs[i])) {
            prepare(executor, near->runs[i]);
            n++;
        }
}

void executor_prepare(struct executor *executor) {
    defer_set(&executor->prepare);
}

int executor_prepared_init(struct executor *executor) {
    /* Idle: grants and releases go first. */
    return defer_init(&executor->prepare, executor->event, SD_EVENT_PRIORITY_IDLE, executor_on_prepare, executor);
}

/* --- grants --- */

/* Sends the grant. Returns false if the guard is gone; then p is freed. After the deadline nothing is sent: the session is lost at
 * any moment, and a run that was not started waits again. */
static bool give_grant(struct prepared *p, struct run *run) {
    usec_t deadline = executor_call(p->executor, get_deadline, run);

    if (deadline > 0 && deadline <= clock_boottime()) {
        prepared_free(p);
        executor_note_start(run, deadline);
        return true;
    }
    FAILPOINT("grant-sending");
    if (guard_link_grant(p->guard, run_token(run), run_ticket(run), deadline) < 0) {
        prepared_free(p);
        return false;
    }
    run->job.start_sent = true;
    executor_guard_take(run, p->guard);
    p->guard = NULL;
    prepared_free(p);
    executor_note_start(run, deadline);
    FAILPOINT("grant-sent");
    return true;
}

bool executor_grant_prepared(struct executor *executor, struct run *run) {
    struct prepared *p = prepared_find(executor, run->id);

    if (!p)
        return false;
    if (p->guard)
        return give_grant(p, run);
    p->is_granted = true;
    executor_note_start(run, executor_call(executor, get_deadline, run));
    return true;
}

/* --- the answers --- */

static void start_otherwise(struct executor *executor, const char *id) {
    struct run *run = run_table_find(executor->runs, id);

    if (run && run->state == RUN_STATE_STARTING)
        executor_start(executor, run);
}

/* The guard does not exist or has ended. A granted run starts as if it had not been prepared. */
static void prepared_failed(struct prepared *p) {
    struct executor *executor = p->executor;
    bool is_granted = p->is_granted;
    char run[ID_TEXT_SIZE];

    memcpy(run, p->run, sizeof(run));
    prepared_free(p);
    if (is_granted)
        start_otherwise(executor, run);
}

bool executor_prepared_refused(struct executor *executor, const char *run) {
    struct prepared *p = prepared_find(executor, run);

    if (!p || p->guard)
        return false;
    prepared_failed(p);
    return true;
}

static void prepared_on_state(_unused_ struct guard_link *guard, _unused_ const struct message *state, _unused_ void *userdata) {
}

static void prepared_on_gone(_unused_ struct guard_link *guard, void *userdata) {
    prepared_failed(userdata);
}

void executor_prepared_is_there(struct executor *executor, const char *id) {
    struct prepared *p = prepared_find(executor, id);
    const struct guard_link_handler handler = {.on_state = prepared_on_state, .on_gone = prepared_on_gone, .userdata = p};
    struct guard_link *guard = NULL;
    struct run *run;

    if (guard_link_new(&guard, executor->event, executor->directory, id, &handler) < 0) {
        if (p)
            prepared_failed(p);
        return;
    }
    if (!p) { /* given up meanwhile: the guard ends with this connection */
        guard_link_free(guard);
        return;
    }
    p->guard = guard;
    if (!p->is_granted)
        return;
    run = run_table_find(executor->runs, id);
    if (!run || run->state != RUN_STATE_STARTING)
        prepared_free(p);
    else if (!give_grant(p, run))
        start_otherwise(executor, id);
}
