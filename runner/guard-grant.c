/* SPDX-License-Identifier: MIT */
/* A prepared guard: its run waits near the head of its queues. The command is forked and waits at its gate
 * (runner/exec/exec.c). berthd sends the grant directly to the guard. Without a grant the guard ends after a
 * while, or with berthd's connection, or with its runner. So a run that is withdrawn, paused or redefined
 * leaves nothing. */

#include <errno.h>
#include <sys/epoll.h>

#include "base/deadline.h"
#include "base/failpoint.h"
#include "base/protocol.h"
#include "runner/guard-internal.h"

/* For a run that waits longer, a start that is a millisecond sooner is no gain. */
#define PREPARED_TIME (10 * USEC_PER_SEC)

static int guard_on_runner_gone(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
    guard_withdraw(userdata);
}

/* Errors are ignored here: the start after the grant repeats these steps and reports them. */
void guard_prepare(struct guard *g) {
    const char *stage;

    if (sd_event_add_io(g->event, &g->lifeline, GUARD_LIFELINE_FD, EPOLLIN, guard_on_runner_gone, g) < 0)
        guard_withdraw(g);
    (void) sd_event_source_set_io_fd_own(g->lifeline, true);
    timer_set_in(&g->again, PREPARED_TIME);
    FAILPOINT("guard-preparing");
    if (guard_set_up(g, &stage) == 0)
        (void) supervise_prepare(g->supervise, exec_child, &g->plan, &g->gate);
    FAILPOINT("guard-prepared");
}

_Noreturn void guard_withdraw(struct guard *g) {
    FAILPOINT("guard-withdrawing");
    guard_take_down(g);
    guard_end(g);
}

static int parse(struct guard_file *record, const struct message *m) {
    usec_t deadline = USEC_INFINITY;

    if (!message_is(m, PROTOCOL_GRANT) || message_get_u64(m, "token", &record->token) < 0 ||
        message_get_u64(m, "ticket", &record->ticket) < 0 || message_get_u64(m, "deadline", &deadline) == -EBADMSG)
        return -EBADMSG;
    record->deadline = deadline;
    return 0;
}

/* Writes the grant to the guard file before the command runs. If the guard dies before that, its command has
 * not run. */
int guard_take_grant(struct guard *g, const struct message *m) {
    int r;

    if (g->phase != PHASE_PREPARED || parse(&g->record, m) < 0)
        return -EBADMSG;
    FAILPOINT("guard-grant-seen");
    if (g->start->job->on_lease_lost == ON_LEASE_LOST_CONTINUE)
        g->record.deadline = USEC_INFINITY;
    g->lifeline = sd_event_source_disable_unref(g->lifeline);
    timer_off(&g->again);
    g->record.is_prepared = false;
    g->phase = PHASE_STARTING;
    r = guard_file_add_grant(GUARD_RECORD_FD, &g->record);
    FAILPOINT("guard-grant-noted");
    if (r < 0) {
        guard_fail(g, -r, "record");
        return 0;
    }
    if (g->supervise)
        supervise_set_deadline(g->supervise, g->record.deadline);
    guard_begin(g);
    return 0;
}
