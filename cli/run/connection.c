/* SPDX-License-Identifier: MIT */
/* The connection of `berth run` to berthd: the call Hold with its many replies, and reconnecting after
 * berthd was away. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/run/run-adhoc.h"

#define RETRY_MIN (100 * USEC_PER_MSEC)
#define RETRY_MAX (2 * USEC_PER_SEC)
#define AWAY_MAX (60 * USEC_PER_SEC)    /* for which a queued claim waits for the next berthd */
#define WAIT_GRACE (1 * USEC_PER_SEC)   /* in which berthd may report the end of --wait */
#define FIRST_MAX                                                                                           \
    (CLIENT_QUIET_TIME +                                                                                    \
     CLIENT_ANSWER_TIME)                /* for the first reply on a connection, which berthd sends at once */
#define NOWAIT_MAX (10 * USEC_PER_SEC)  /* -n never hangs, even if berthd does not answer */

static void connection_away(struct adhoc *a, usec_t retry_usec);

static usec_t now(void) {
    return clock_boottime();
}

static int connection_claim(struct adhoc *a) {
    json_t *params = run_hold_params(a);

    if (!params)
        return -ENOMEM;
    a->connection.is_attaching = a->run[0] != '\0';
    return client_send(a->connection.client, "io.berth.Hold", params, CLIENT_MORE);
}

/* Returns the pause before the next attempt: twice the last one, up to RETRY_MAX. */
static usec_t next_pause(struct adhoc *a) {
    usec_t pause = a->connection.retry_usec * 2;

    a->connection.retry_usec = pause < RETRY_MAX ? pause : RETRY_MAX;
    return a->connection.retry_usec;
}

static void connection_refused(struct adhoc *a, const char *reason) {
    fprintf(stderr, "berth: no permit: %s\n", reason);
    adhoc_exit(a, a->options.no_permit_status);
}

/* --- messages of berthd --- */

static const char *string_of(const json_t *params, const char *key) {
    return json_string_value(json_object_get(params, key));
}

/* Gives up a grant under which no command was begun. */
static void wait_again(struct adhoc *a) {
    a->phase = ADHOC_PHASE_CLAIMING;
    run_command_withdraw(a);
    a->grant.hold_fd = close_fd(a->grant.hold_fd);
    a->grant.deadline = USEC_INFINITY;
    a->grant.is_lost = false;
    if (!timer_is_set(&a->connection.wait_limit))
        timer_set(&a->connection.wait_limit, a->connection.wait_deadline);
}

static void take_text(const json_t *params, const char *key, char *text, size_t size) {
    const char *value = string_of(params, key);

    snprintf(text, size, "%s", value ? value : "");
}

static void take_stop_timeout(struct adhoc *a, const json_t *params) {
    const json_t *timeout = json_object_get(params, "stop_timeout_ms");

    if (json_is_integer(timeout) && json_integer_value(timeout) >= 0)
        a->grant.stop_timeout_usec = (usec_t) json_integer_value(timeout) * USEC_PER_MSEC;
}

static void take_grant(struct adhoc *a, struct client_reply *reply) {
    struct run_facts *facts = &a->grant.facts;

    a->grant.hold_fd = steal_fd(&reply->fd);
    facts->token = (uint64_t) json_integer_value(json_object_get(reply->params, "token"));
    take_stop_timeout(a, reply->params);
    take_text(reply->params, "pools", facts->pools, sizeof(facts->pools));
    take_text(reply->params, "host", facts->host, sizeof(facts->host));
    take_text(reply->params, "namespace", facts->namespace, sizeof(facts->namespace));
}

static void on_granted(struct adhoc *a, struct client_reply *reply) {
    if (a->phase != ADHOC_PHASE_CLAIMING)
        return;
    if (reply->fd < 0 || a->run[0] == '\0') {
        /* Without the hold's FIFO berthd would grant the permits to another run while the command runs. */
        run_say(a, "berth: granted without a hold: no descriptor is free here (ulimit -n), or berthd sent none\n");
        adhoc_exit(a, EXIT_FAILED);
        return;
    }
    take_grant(a, reply);
    if (a->options.verbose)
        run_say(a, "berth: granted after %.3f s, token %" PRIu64 "\n",
                (double) usec_sub(now(), a->claimed) / (double) USEC_PER_SEC, a->grant.facts.token);
    run_command_start(a);
}

/* A single reply ("nested" without "continues"): the outer run enforces its deadline for this one, so none
 * is set here. */
static void on_nested(struct adhoc *a) {
    if (a->phase != ADHOC_PHASE_CLAIMING)
        return;
    if (a->options.verbose)
        run_say(a, "berth: nested: uses the permits of the outer run\n");
    a->grant.facts.is_nested = true;
    run_connection_stop(a);
    run_command_start(a);
}

static void on_stop(struct adhoc *a, const char *reason) {
    enum supervise_reason parsed = SUPERVISE_REASON_STOPPED;

    if (reason)
        (void) supervise_reason_parse(reason, &parsed); /* an unknown reason counts as a stop */
    if (a->phase == ADHOC_PHASE_CLAIMING && parsed == SUPERVISE_REASON_LEASE_LOST)
        run_connection_give_back(a); /* berthd has not received the report yet */
    else if (a->phase == ADHOC_PHASE_CLAIMING)
        connection_refused(a, reason ? reason : "stopped");
    else
        run_command_stop(a, parsed);
}

/* The call has ended without an error. */
static void on_over(struct adhoc *a, const char *reason) {
    if (a->phase == ADHOC_PHASE_CLAIMING)
        connection_refused(a, reason ? reason : "berthd ended the run");
    else if (a->phase == ADHOC_PHASE_RUNNING)
        connection_away(a, RETRY_MAX); /* the command still runs: berthd's state is wrong */
}

/* Returns whether the error may pass: a berthd with a wrong config may start in a moment, and the claim keeps
 * its place. A berthd that has just started may not know yet whether this process is inside a run. */
static bool may_come_back(const struct adhoc *a, const char *error) {
    return (a->connection.is_attaching || getenv("BERTH_RUN")) && strcmp(error, "io.berth.Away") == 0 &&
           (a->connection.away_since == 0 || usec_sub(now(), a->connection.away_since) < AWAY_MAX);
}

/* Claims as a new run, because berthd does not know the old one. */
static void claim_again(struct adhoc *a) {
    a->run[0] = '\0';
    wait_again(a);
    if (connection_claim(a) < 0)
        connection_away(a, RETRY_MIN);
}

static void on_error(struct adhoc *a, struct client_reply *reply) {
    bool unknown = strcmp(reply->error, "io.berth.NoSuchRun") == 0;

    if (a->phase == ADHOC_PHASE_RUNNING && !a->command.supervise && unknown) {
        claim_again(a); /* no command was begun, and the grant is void */
    } else if (a->phase == ADHOC_PHASE_RUNNING) {
        /* This berthd will send no deadline; another one may know the run. At the deadline the command is
         * stopped. */
        connection_away(a, RETRY_MAX);
    } else if (unknown && a->connection.is_attaching) {
        claim_again(a);
    } else if (may_come_back(a, reply->error)) {
        connection_away(a, next_pause(a));
    } else {
        int status = client_explain(reply);

        adhoc_exit(a, status == EXIT_NO_PERMIT ? a->options.no_permit_status : status);
    }
}

static void on_waiting(struct adhoc *a, const json_t *params) {
    run_waiting_update(a, params);
    if (a->phase == ADHOC_PHASE_CLAIMING && json_is_true(json_object_get(params, "is_near")))
        run_command_prepare(a);
    else
        run_command_withdraw(a); /* after a restart berthd may know nearer claims */
}

static void on_state(struct adhoc *a, struct client_reply *reply) {
    const char *state = string_of(reply->params, "state"), *run = string_of(reply->params, "run");
    const char *reason = string_of(reply->params, "reason");
    const json_t *deadline = json_object_get(reply->params, "deadline_usec");

    if (run && id_is_valid(run) && a->phase == ADHOC_PHASE_CLAIMING)
        memcpy(a->run, run, ID_TEXT_SIZE);
    if (!state && !reply->continues)
        on_over(a, "berthd's last reply has no state");
    if (!state)
        return;
    if (strcmp(state, "waiting") == 0)
        on_waiting(a, reply->params);
    else if (strcmp(state, "granted") == 0)
        on_granted(a, reply);
    else if (strcmp(state, "nested") == 0)
        on_nested(a);
    else if (strcmp(state, "stop") == 0)
        on_stop(a, reason);
    if (json_is_integer(deadline) && json_integer_value(deadline) > 0 && !a->grant.facts.is_nested)
        run_command_set_deadline(a, (usec_t) json_integer_value(deadline));
    if (strcmp(state, "over") == 0 || (!reply->continues && !a->grant.facts.is_nested))
        on_over(a, reason);
}

static void connection_on_reply(_unused_ struct client *client, struct client_reply *reply, void *userdata) {
    struct adhoc *a = userdata;

    if (a->phase == ADHOC_PHASE_DONE)
        return;
    if (a->phase == ADHOC_PHASE_REPORTING) {
        report_end_on_reply(a, reply);
        return;
    }
    if (reply->error) {
        on_error(a, reply);
        return;
    }
    a->connection.away_since = 0;
    a->connection.retry_usec = RETRY_MIN;
    timer_off(&a->connection.first_reply);
    on_state(a, reply);
}

static void connection_on_gone(_unused_ struct client *client, int error, void *userdata) {
    struct adhoc *a = userdata;

    if (a->phase == ADHOC_PHASE_CLAIMING && (error != -ECONNRESET || a->options.nowait))
        adhoc_exit(a, client_explain_errno(error));
    else if (a->phase == ADHOC_PHASE_REPORTING)
        report_end_retry(a);
    else if (a->phase != ADHOC_PHASE_DONE)
        connection_away(a, a->connection.retry_usec);
}

/* --- connecting --- */

static void connection_give_up(struct adhoc *a) {
    fprintf(stderr, "berth: cannot reach berthd on %s any more\n", client_socket());
    adhoc_exit(a, EXIT_AWAY);
}

/* A process accepts connections and sends no reply: berthd hangs, or it is another program. */
static void connection_on_first_reply_due(void *userdata) {
    struct adhoc *a = userdata;

    if (a->phase == ADHOC_PHASE_CLAIMING && a->run[0] == '\0')
        adhoc_exit(a, client_explain_errno(-ETIMEDOUT));
    else if (a->phase == ADHOC_PHASE_CLAIMING && a->connection.away_since > 0 &&
             usec_sub(now(), a->connection.away_since) >= AWAY_MAX)
        connection_give_up(a);
    else if (a->phase == ADHOC_PHASE_CLAIMING || a->phase == ADHOC_PHASE_RUNNING)
        connection_away(a, RETRY_MAX);
}

static int connection_open(struct adhoc *a) {
    struct client_handler handler = {
        .on_reply = connection_on_reply, .on_gone = connection_on_gone, .userdata = a};
    _cleanup_(client_freep) struct client *client = NULL;
    int r = client_connect(&client);

    if (r < 0)
        return r;
    r = client_attach(client, a->event, ADHOC_PRIORITY_CONNECTION, &handler);
    if (r < 0)
        return r;
    timer_set_in(&a->connection.first_reply, FIRST_MAX);
    a->connection.client = steal_pointer(&client);
    r = connection_claim(a);
    if (r == 0 && a->command.pid > 0)
        run_connection_report_started(a); /* the last berthd may not have recorded it */
    if (r < 0)
        a->connection.client = client_free(a->connection.client);
    return r;
}

static void connection_on_retry(void *userdata) {
    struct adhoc *a = userdata;

    if (a->phase == ADHOC_PHASE_REPORTING) {
        report_end_retry(a);
        return;
    }
    if (a->phase == ADHOC_PHASE_DONE || connection_open(a) == 0)
        return;
    if (a->phase == ADHOC_PHASE_CLAIMING && usec_sub(now(), a->connection.away_since) >= AWAY_MAX)
        connection_give_up(a);
    else
        connection_away(a, next_pause(a));
}

/* Drops the connection and tries again later. */
static void connection_away(struct adhoc *a, usec_t retry_usec) {
    a->connection.client = client_free(a->connection.client);
    timer_off(&a->connection.first_reply);
    if (a->connection.away_since == 0) {
        a->connection.away_since = now();
        if (a->options.verbose)
            run_say(a, "berth: berthd is away; trying to reach it again\n");
        run_waiting_update(a, NULL);
    }
    /* Without a new deadline the running command is stopped at the last one. */
    timer_set_in(&a->connection.retry, retry_usec);
}

static void connection_on_wait_limit(void *userdata) {
    struct adhoc *a = userdata;

    if (a->phase != ADHOC_PHASE_CLAIMING)
        return;
    if (a->connection.client && !a->connection.wait_grace) {
        a->connection.wait_grace = true;
        timer_set_in(&a->connection.wait_limit, WAIT_GRACE);
    } else {
        connection_refused(a, a->options.nowait ? "berthd does not answer" : "the wait was over");
    }
}

int run_connection_init(struct adhoc *a) {
    int r = timer_init(&a->connection.retry, a->event, SD_EVENT_PRIORITY_NORMAL, connection_on_retry, a);

    if (r >= 0)
        r = timer_init(&a->connection.wait_limit, a->event, SD_EVENT_PRIORITY_NORMAL,
                       connection_on_wait_limit, a);
    if (r >= 0)
        r = timer_init(&a->connection.first_reply, a->event, SD_EVENT_PRIORITY_NORMAL,
                       connection_on_first_reply_due, a);
    return r;
}

int run_connection_start(struct adhoc *a) {
    usec_t limit = a->options.nowait ? NOWAIT_MAX : a->options.wait_usec;
    int r;

    a->connection.retry_usec = RETRY_MIN;
    a->claimed = now();
    a->connection.wait_deadline = usec_add(a->claimed, limit);
    timer_set(&a->connection.wait_limit, a->connection.wait_deadline);
    r = connection_open(a);
    if (r == -EAGAIN) {
        connection_away(a, RETRY_MIN);
        return 0;
    }
    return r < 0 ? client_explain_errno(r) : 0;
}

void run_connection_stop(struct adhoc *a) {
    a->connection.client = client_free(a->connection.client);
    timer_off(&a->connection.retry);
    timer_off(&a->connection.first_reply);
    timer_off(&a->connection.wait_limit);
    run_waiting_stop(a);
}

void run_connection_give_back(struct adhoc *a) {
    json_t *params = json_pack("{s:s, s:s}", "run", a->run, "result", "not-started");

    if (a->options.verbose)
        run_say(a, "berth: the lease was lost before the command was started; waiting again\n");
    /* Must be sent before the hold is closed: berthd takes a closed hold without a report for a client that
     * has gone. */
    if (!a->connection.client || !params) {
        json_decref(params);
        connection_away(a, RETRY_MIN); /* the report follows when berthd sends the stop again */
    } else if (client_send(a->connection.client, "io.berth.Ended", params, CLIENT_ONEWAY) < 0) {
        connection_away(a, RETRY_MIN);
    }
    wait_again(a);
}

/* A failed send shows as the end of the connection. params: stolen. */
static void send_report(struct adhoc *a, const char *method, json_t *params) {
    if (a->connection.client && params)
        (void) client_send(a->connection.client, method, params, CLIENT_ONEWAY);
    else
        json_decref(params);
}

void run_connection_report_started(struct adhoc *a) {
    json_t *params = json_pack("{s:s, s:i, s:I}", "run", a->run, "pid", (int) a->command.pid, "started_usec",
                               (json_int_t) a->command.started);

    send_report(a, "io.berth.Started", params);
}

void run_connection_report_stuck(struct adhoc *a, const char *what) {
    send_report(a, "io.berth.Stuck", json_pack("{s:s, s:s}", "run", a->run, "what", what));
}
