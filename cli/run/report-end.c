/* SPDX-License-Identifier: MIT */
/* Reports to berthd how the command ended. The report goes out on the connection of Hold, whose last reply
 * confirms it. If berthd is away, the report goes to the next berthd on a new connection. Until then the
 * hold stays open: while it is open, no berthd decides that the end is unknown. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/run/run-adhoc.h"

#define REPORT_TIME (3 * USEC_PER_SEC) /* berth(1), EXIT STATUS; more than berthd.service's RestartSec= */
#define REPORT_RETRY (100 * USEC_PER_MSEC) /* a tenth of the time for which a new berthd waits for reports */

static int put_ended(const struct adhoc *a, json_t *params, const struct supervise_result *ended) {
    int r = json_object_set_new(params, ended->code == CLD_EXITED ? "code" : "signal", json_integer(ended->status));

    r |= json_object_set_new(params, "ended_usec", json_integer((json_int_t) ended->ended));
    if (ended->deadline != USEC_INFINITY)
        r |= json_object_set_new(params, "until_usec", json_integer((json_int_t) ended->deadline));
    r |= json_object_set_new(params, "pid", json_integer(a->command.pid));
    r |= json_object_set_new(params, "started_usec", json_integer((json_int_t) ended->started));
    return r;
}

static void report_on_limit(void *userdata) {
    struct adhoc *a = userdata;

    if (a->options.verbose)
        run_say(a, "berth: berthd is still away: it may never know how the command ended\n");
    adhoc_exit(a, a->report.status);
}

/* --- to the next berthd --- */

static void report_later(struct adhoc *a) {
    a->connection.client = client_free(a->connection.client);
    timer_set_in(&a->connection.retry, REPORT_RETRY);
}

static void report_on_reply(_unused_ struct client *client, struct client_reply *reply, void *userdata) {
    struct adhoc *a = userdata;

    if (a->phase == ADHOC_PHASE_DONE)
        return;
    if (reply->error && (strcmp(reply->error, "io.berth.Away") == 0 || strcmp(reply->error, "io.berth.Stopping") == 0))
        report_later(a); /* a berthd that cannot start or is stopping */
    else
        adhoc_exit(a, a->report.status);
}

static void report_on_gone(_unused_ struct client *client, _unused_ int error, void *userdata) {
    struct adhoc *a = userdata;

    if (a->phase != ADHOC_PHASE_DONE)
        report_later(a);
}

static int report_connect(struct adhoc *a) {
    const struct client_handler handler = {
        .on_reply = report_on_reply, .on_gone = report_on_gone, .userdata = a};
    _cleanup_(client_freep) struct client *client = NULL;
    int r = client_connect(&client);

    if (r == 0)
        r = client_attach(client, a->event, ADHOC_PRIORITY_CONNECTION, &handler);
    /* With socket activation the message stays in the queue of the socket for the next berthd, even if this
     * process exits first. */
    if (r >= 0)
        r = client_send(client, "io.berth.Ended", json_incref(a->report.params), 0);
    if (r >= 0)
        a->connection.client = steal_pointer(&client);
    return r;
}

void report_end_retry(struct adhoc *a) {
    a->connection.client = client_free(a->connection.client);
    timer_off(&a->connection.retry);
    if (report_connect(a) < 0)
        report_later(a);
}

/* --- to the same berthd --- */

void report_end_on_reply(struct adhoc *a, const struct client_reply *reply) {
    const char *state = json_string_value(json_object_get(reply->params, "state"));

    if (reply->error || (state && strcmp(state, "over") == 0))
        adhoc_exit(a, a->report.status);
    /* Any other reply was sent before berthd received the report. */
}

int report_end_init(struct adhoc *a) {
    return timer_init(&a->report.limit, a->event, SD_EVENT_PRIORITY_NORMAL, report_on_limit, a);
}

void report_end(struct adhoc *a, int status, const struct supervise_result *ended, const char *result) {
    a->report.status = status;
    a->report.params = a->grant.facts.is_nested ? NULL : json_pack("{s:s, s:s?}", "run", a->run, "result", result);
    if (a->report.params && !ended && (status == EXIT_CANNOT_EXECUTE || status == EXIT_NO_COMMAND))
        (void) json_object_set_new(a->report.params, "code", json_integer(status));
    if (a->report.params && ended)
        (void) put_ended(a, a->report.params, ended);
    if (!a->report.params) {
        adhoc_exit(a, status);
        return;
    }
    timer_set_in(&a->report.limit, REPORT_TIME);
    a->phase = ADHOC_PHASE_REPORTING;
    if (a->connection.client && a->connection.away_since == 0 &&
        client_send(a->connection.client, "io.berth.Ended", json_incref(a->report.params), CLIENT_ONEWAY) ==
            0)
        /* berthd reads the report before it checks the hold, so the next claim need not wait for this
         * process. */
        a->grant.hold_fd = close_fd(a->grant.hold_fd);
    else
        report_end_retry(a);
}
