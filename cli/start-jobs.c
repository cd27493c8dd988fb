/* SPDX-License-Identifier: MIT */
/* Starts jobs. With --wait it waits for the ends of the runs, across restarts of berthd. */
#include "cli/start-jobs.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/json/format.h"
#include "base/name.h"
#include "cli/client.h"

#define AWAY_MAX (60 * USEC_PER_SEC) /* berth(1), EXIT STATUS */
#define RETRY_MIN 100                /* ms */
#define RETRY_MAX 2000

struct started { /* a run */
    const char *job;
    bool wait, printed;
    char run[ID_TEXT_SIZE]; /* "": not known yet */
};

static bool text_is(const json_t *object, const char *key, const char *text) {
    return strcmp(format_get_text(object, key), text) == 0;
}

/* Returns the exit status of the command; -1: it never ran. */
static int command_status(const json_t *run) {
    const json_t *code = json_object_get(run, "exit_code"), *signal = json_object_get(run, "signal");

    if (json_is_integer(code))
        return (int) json_integer_value(code);
    return json_is_integer(signal) ? EXIT_SIGNAL + (int) json_integer_value(signal) : -1;
}

int run_exit_status(const json_t *run) {
    static const struct {
        const char *result;
        int status;
    } own[] = {{"timeout", EXIT_TIMEOUT}, {"lease-lost", EXIT_LEASE_LOST}, {"queue-timeout", EXIT_NO_PERMIT}, {"guard-died", EXIT_FAILED},
             {"host-lost", EXIT_FAILED}};
    int status = command_status(run);

    for (size_t i = 0; i < ELEMENTSOF(own); i++)
        if (text_is(run, "result", own[i].result))
            return own[i].status;
    if (text_is(run, "result", "not-started"))
        /* A run that needed permits and got none was refused. */
        return json_object_size(json_object_get(run, "pools")) > 0 && !json_is_integer(json_object_get(run, "token"))
                   ? EXIT_NO_PERMIT
                   : EXIT_FAILED;
    if (text_is(run, "result", "stopped") && status < 0)
        return EXIT_NO_PERMIT;
    if (text_is(run, "result", "failure") && status == 0) /* success-on does not have 0 */
        return EXIT_FAILED;
    return status < 0 ? EXIT_FAILED : status;
}

static void explain_result(const json_t *run) {
    const char *reason = format_get_text(run, "reason");
    char text[FORMAT_SIZE];

    if (text_is(run, "result", "success"))
        return;
    format_result(run, "result", "exit_code", "signal", text);
    if (text_is(run, "result", reason)) /* "timeout" says all */
        reason = "";
    fprintf(stderr, reason[0] ? "berth: %s: %s: %s\n" : "berth: %s: %s\n", format_get_text(run, "name"),
            text, reason);
}

/* Takes one reply. Returns 0 if more follow; 1 if it was the last, with *ret_status. */
static int take_answer(struct started *w, const struct client_reply *reply, int *ret_status) {
    const json_t *run = json_object_get(reply->params, "run");
    const char *id = format_get_text(run, "run");

    if (!id_is_valid(id)) {
        *ret_status = client_explain_errno(-EBADMSG);
        return 1;
    }
    if (!w->printed)
        printf("%s\n", id);
    (void) fflush(stdout); /* a pipe's reader may want the id before the run is over */
    w->printed = true;
    snprintf(w->run, sizeof(w->run), "%s", id);
    if (reply->continues)
        return 0;
    if (!text_is(run, "state", "done")) {
        if (text_is(run, "blocked_by", "overlap"))
            fprintf(stderr, "berth: %s: waits for the previous run\n", w->job);
        else if (w->wait || text_is(run, "state", "waiting"))
            fprintf(stderr, "berth: %s: %s\n", w->job, format_get_text(run, "state"));
        *ret_status = 0;
        return 1;
    }
    explain_result(run);
    *ret_status = run_exit_status(run);
    return 1;
}

/* --- across a restart of berthd --- */

static int explain_lost(const struct started *w) {
    fprintf(stderr,
            "berth: %s: run %s is not known to this berthd; its result may be in `berth history %s`\n",
            w->job, w->run, w->run);
    return EXIT_AWAY;
}

/* Connects again and asks for the run. */
static int ask_again(struct client **c, const char *run, struct client_reply *ret) {
    int r;

    *c = client_free(*c);
    r = client_connect(c);
    if (r == 0)
        r = client_send(*c, "io.berth.Await", json_pack("{s:s}", "run", run), CLIENT_MORE);
    return r == 0 ? client_receive(*c, ret) : r;
}

/* Waits until berthd is back. Returns 0 with a reply, or an exit status whose reason was printed. */
static int come_back(struct started *w, struct client **c, struct client_reply *ret) {
    usec_t until = usec_add(clock_boottime(), AWAY_MAX);
    int pause = RETRY_MIN, r;

    fprintf(stderr, "berth: %s: berthd is away; waiting for it and run %s\n", w->job, w->run);
    for (;;) {
        (void) poll(NULL, 0, pause);
        pause = pause < RETRY_MAX / 2 ? 2 * pause : RETRY_MAX;
        client_reply_done(ret);
        r = ask_again(c, w->run, ret);
        if (r == 0 && !ret->error)
            return 0;
        if (r == 0 && strcmp(ret->error, "io.berth.NoSuchRun") == 0)
            return explain_lost(w);
        if (!client_is_transient(r, ret) || clock_boottime() >= until)
            return r < 0 ? client_explain_errno(r) : client_explain(ret);
    }
}

/* Waits for the replies of one start. */
static int start_finish(struct client **c, const char *job, bool wait) {
    struct started w = {.job = job, .wait = wait};
    int status = 0;

    for (;;) {
        _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
        int r = client_receive(*c, &reply);

        /* Without its id the run cannot be found again. */
        if ((r < 0 || reply.error) && w.run[0] && client_is_transient(r, &reply)) {
            status = come_back(&w, c, &reply);
            if (status != 0)
                return status;
        } else if (r < 0) {
            return client_explain_errno(r);
        } else if (reply.error) {
            return client_explain(&reply);
        }
        if (take_answer(&w, &reply, &status) != 0)
            return status;
    }
}

int start_jobs(size_t n, char *const *jobs, json_t *set, bool wait) {
    _cleanup_free_ struct client **clients = calloc(n, sizeof(struct client *));
    int status = clients ? 0 : client_explain_errno(-ENOMEM), r;

    for (size_t i = 0; status == 0 && i < n; i++) {
        r = client_connect_patiently(&clients[i]);
        if (r == 0)
            r = client_send(clients[i], "io.berth.Start",
                            json_pack("{s:s, s:O, s:b}", "job", jobs[i], "set", set, "wait", wait),
                            wait ? CLIENT_MORE : 0);
        if (r < 0) {
            status = client_explain_errno(r);
            clients[i] = client_free(clients[i]);
        }
    }
    for (size_t i = 0; clients && i < n; i++) {
        r = clients[i] ? start_finish(&clients[i], jobs[i], wait) : 0;
        status = status != 0 ? status : r;
        client_free(clients[i]);
    }
    return status;
}
