/* SPDX-License-Identifier: MIT */
/* Verbs that do something: start, stop, revoke, grace, reload, drain. */
#include <stdio.h>
#include <string.h>

#include "base/name.h"
#include "cli/client.h"
#include "cli/verbs.h"
#include "cli/words.h"

/* --- start --- */

static int text_is(const json_t *object, const char *key, const char *text) {
    return strcmp(words_text(object, key), text) == 0;
}

/* How the command itself ended; -1: it never ran. */
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
    } own[] = {{"timeout", EXIT_TIMEOUT}, {"lease-lost", EXIT_LEASE_LOST}, {"queue-timeout", EXIT_NO_PERMIT}, {"guard-died", EXIT_FAILED}};
    int status = command_status(run);

    for (size_t i = 0; i < ELEMENTSOF(own); i++)
        if (text_is(run, "result", own[i].result))
            return own[i].status;
    if (text_is(run, "result", "not-started"))
        /* Refused: it asked for permits and got none. */
        return json_object_size(json_object_get(run, "pools")) > 0 && !json_is_integer(json_object_get(run, "token"))
                   ? EXIT_NO_PERMIT
                   : EXIT_FAILED;
    if (text_is(run, "result", "stopped") && status < 0)
        return EXIT_NO_PERMIT;
    return status < 0 ? EXIT_FAILED : status;
}

static void explain_result(const json_t *run) {
    const char *reason = words_text(run, "reason");
    char text[WORDS_SIZE];

    if (text_is(run, "result", "success"))
        return;
    words_result(run, "result", "exit_code", "signal", text);
    fprintf(stderr, reason[0] ? "berth: %s: %s: %s\n" : "berth: %s: %s\n", words_text(run, "name"), text, reason);
}

/* Waits for the answers of one start. */
static int start_finish(struct client *c, const char *job, bool wait) {
    bool printed = false;

    for (;;) {
        _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
        int r = client_receive(c, &reply);
        const json_t *run;

        if (r < 0)
            return client_explain_errno(r);
        if (reply.error)
            return client_explain(&reply);
        run = json_object_get(reply.params, "run");
        if (!printed)
            printf("%s\n", words_text(run, "run"));
        (void) fflush(stdout); /* the one who waits may want to know it before */
        printed = true;
        if (reply.continues)
            continue;
        if (!text_is(run, "state", "done")) {
            if (wait || text_is(run, "state", "waiting"))
                fprintf(stderr, "berth: %s: %s\n", job, words_text(run, "state"));
            return 0;
        }
        explain_result(run);
        return run_exit_status(run);
    }
}

/* All are started before one is waited for. */
static int start_all(size_t n, char **jobs, bool wait) {
    _cleanup_free_ struct client **clients = calloc(n, sizeof(struct client *));
    int status = clients ? 0 : client_explain_errno(-ENOMEM), r;

    for (size_t i = 0; status == 0 && i < n; i++) {
        r = client_connect_patiently(&clients[i]);
        if (r == 0)
            r = client_send(clients[i], "io.berth.Start", json_pack("{s:s, s:b}", "job", jobs[i], "wait", wait),
                            wait ? CLIENT_MORE : 0);
        if (r < 0) {
            status = client_explain_errno(r);
            clients[i] = client_free(clients[i]);
        }
    }
    for (size_t i = 0; clients && i < n; i++) {
        r = clients[i] ? start_finish(clients[i], jobs[i], wait) : 0;
        status = status != 0 ? status : r;
        client_free(clients[i]);
    }
    return status;
}

int verb_start(int argc, char **argv) {
    bool wait = false;
    const struct verb_option options[] = {{"--wait", &wait, NULL, NULL}};
    int words, status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), 1, WORDS_ANY, &words, &status) != 0)
        return status;
    for (int i = 1; i <= words; i++) {
        status = check_name(argv[0], "job", argv[i]);
        if (status != 0)
            return status;
    }
    return start_all((size_t) words, argv + 1, wait);
}

/* --- the others --- */

int verb_stop(int argc, char **argv) {
    int words, status, first = 0;

    if (options_parse(argc, argv, NULL, 0, 1, WORDS_ANY, &words, &status) != 0)
        return status;
    for (int i = 1; i <= words; i++) {
        _cleanup_json_ json_t *answer = NULL;

        status = check_name(argv[0], "job or run", argv[i]);
        if (status == 0)
            status = client_ask("io.berth.Stop", json_pack("{s:s}", "target", argv[i]), &answer);
        if (status == 0 && words_number(answer, "stopped") == 0)
            fprintf(stderr, "berth: %s: nothing to stop\n", argv[i]);
        first = first != 0 ? first : status;
    }
    return first;
}

int verb_revoke(int argc, char **argv) {
    const char *reason = NULL;
    const struct verb_option options[] = {{"--reason", NULL, &reason, NULL}};
    int words, status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), 1, 1, &words, &status) != 0)
        return status;
    if (!id_is_valid(argv[1]))
        return wrong_usage(argv[0], "a claim is named by 32 hex digits, as `berth pools POOL` shows them");
    return client_ask("io.berth.Revoke", json_pack("{s:s, s:s*}", "claim", argv[1], "reason", reason), NULL);
}

int verb_grace(int argc, char **argv) {
    bool end = false;
    const struct verb_option options[] = {{"--end", &end, NULL, NULL}};
    int words, status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), 0, 0, &words, &status) != 0)
        return status;
    if (!end)
        return wrong_usage(argv[0], "--end is needed: only an administrator can know that a namespace is new");
    return client_ask("io.berth.EndGrace", NULL, NULL);
}

int verb_reload(int argc, char **argv) {
    int words, status;

    if (options_parse(argc, argv, NULL, 0, 0, 0, &words, &status) != 0)
        return status;
    return client_ask("io.berth.Reload", NULL, NULL);
}

int verb_drain(int argc, char **argv) {
    bool wait = false;
    const struct verb_option options[] = {{"--wait", &wait, NULL, NULL}};
    int words, status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), 0, 0, &words, &status) != 0)
        return status;
    return client_ask("io.berth.Drain", json_pack("{s:b}", "wait", wait), NULL);
}

int verb_undrain(int argc, char **argv) {
    int words, status;

    if (options_parse(argc, argv, NULL, 0, 0, 0, &words, &status) != 0)
        return status;
    return client_ask("io.berth.Undrain", NULL, NULL);
}
