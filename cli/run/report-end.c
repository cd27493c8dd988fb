/* SPDX-License-Identifier: MIT */
/* How the command ended, for berthd's journal. It is said on Hold's connection, whose last answer is that it was heard; or, if berthd was
 * away just then, to the next one, on a new connection. Then the hold is kept meanwhile: as long as it is open nobody decides that the end
 * is not known. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/run/run-adhoc.h"

#define TELL_MAX (3 * USEC_PER_SEC) /* berth(1), EXIT STATUS; more than berthd.service's RestartSec= */
#define TELL_RETRY (100 * USEC_PER_MSEC) /* a new berthd waits ten times as long for what it may be told */

static int put_ended(const struct adhoc *a, json_t *params, const struct supervise_result *ended) {
    int r = json_object_set_new(params, ended->code == CLD_EXITED ? "code" : "signal", json_integer(ended->status));

    r |= json_object_set_new(params, "ended_usec", json_integer((json_int_t) ended->ended));
    if (ended->deadline != USEC_INFINITY)
        r |= json_object_set_new(params, "until_usec", json_integer((json_int_t) ended->deadline));
    r |= json_object_set_new(params, "pid", json_integer(a->pid));
    r |= json_object_set_new(params, "started_usec", json_integer((json_int_t) ended->started));
    return r;
}

static int tell_on_limit(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
    struct adhoc *a = userdata;

    if (a->options.verbose)
        fputs("berth: berthd is still away: it may never know how the command ended\n", stderr);
    adhoc_exit(a, a->status);
    return 0;
}

/* --- to the next berthd --- */

static int tell_on_retry(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
    adhoc_tell_anew(userdata);
    return 0;
}

static void tell_later(struct adhoc *a) {
    a->client = client_free(a->client);
    a->retry = sd_event_source_disable_unref(a->retry);
    if (sd_event_add_time_relative(a->event, &a->retry, CLOCK_BOOTTIME, TELL_RETRY, 0, tell_on_retry, a) < 0)
        adhoc_exit(a, a->status);
}

static void tell_on_reply(_unused_ struct client *client, struct client_reply *reply, void *userdata) {
    struct adhoc *a = userdata;

    if (a->phase == ADHOC_PHASE_DONE)
        return;
    if (reply->error && (strcmp(reply->error, "io.berth.Away") == 0 || strcmp(reply->error, "io.berth.Stopping") == 0))
        tell_later(a); /* one that cannot start, or is about to stop */
    else
        adhoc_exit(a, a->status);
}

static void tell_on_gone(_unused_ struct client *client, _unused_ int error, void *userdata) {
    struct adhoc *a = userdata;

    if (a->phase != ADHOC_PHASE_DONE)
        tell_later(a);
}

static int tell_connect(struct adhoc *a) {
    const struct client_handler handler = {.on_reply = tell_on_reply, .on_gone = tell_on_gone, .userdata = a};
    _cleanup_(client_freep) struct client *client = NULL;
    int r = client_connect(&client);

    if (r == 0)
        r = client_attach(client, a->event, ADHOC_PRIORITY_TALK, &handler);
    if (r >= 0) /* where nobody accepts yet the words wait for berthd, also when we cannot wait any more */
        r = client_send(client, "io.berth.Ended", json_incref(a->ended), 0);
    if (r >= 0)
        a->client = steal_pointer(&client);
    return r;
}

void adhoc_tell_anew(struct adhoc *a) {
    a->client = client_free(a->client);
    a->retry = sd_event_source_disable_unref(a->retry);
    if (tell_connect(a) < 0)
        tell_later(a);
}

/* --- to the one that we know --- */

void adhoc_told(struct adhoc *a, const struct client_reply *reply) {
    const char *state = json_string_value(json_object_get(reply->params, "state"));

    if (reply->error || (state && strcmp(state, "over") == 0))
        adhoc_exit(a, a->status);
    /* Else it was said before berthd heard us. */
}

void adhoc_end(struct adhoc *a, int status, const struct supervise_result *ended, const char *result) {
    a->status = status;
    a->ended = a->nested ? NULL : json_pack("{s:s, s:s?}", "run", a->run, "result", result);
    if (a->ended && ended)
        (void) put_ended(a, a->ended, ended);
    if (!a->ended ||
        sd_event_add_time_relative(a->event, &a->tell_limit, CLOCK_BOOTTIME, TELL_MAX, 0, tell_on_limit, a) < 0) {
        adhoc_exit(a, status);
        return;
    }
    a->phase = ADHOC_PHASE_TELLING;
    if (a->client && a->away_since == 0 && client_send(a->client, "io.berth.Ended", json_incref(a->ended), CLIENT_ONEWAY) == 0)
        a->hold_fd = close_fd(a->hold_fd); /* berthd reads before it looks at the hold: the next one in the queue need not wait for us */
    else
        adhoc_tell_anew(a);
}
