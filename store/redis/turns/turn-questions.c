/* SPDX-License-Identifier: MIT */

/* Questions about one job that hosts share: which hosts may begin it, which turns are open; the end of these turns;
 * and whether due times were missed. Each is sent once: without a reply the caller gets -ENOTCONN, and may ask again. */

#include <errno.h>
#include <stdlib.h>

#include "store/redis/store-redis.h"
#include "store/redis/turns/turn-replies.h"

struct turn_question {
    struct store_redis *store;
    struct list link; /* on turns.questions */
    store_ended_turns_fn on_ended; /* one of these three */
    store_shared_fn on_shared;
    store_reply_fn on_passed;
    void *userdata;
};

/* Frees the question. */
static void fail(struct turn_question *question, int r) {
    list_unlink(&question->link);
    if (question->on_ended)
        question->on_ended(r, NULL, question->userdata);
    else if (question->on_shared)
        question->on_shared(r, NULL, question->userdata);
    else
        question->on_passed(r, question->userdata);
    free(question);
}

/* Each returns a negative errno, or 0 if the caller was answered. */
static int answer_ended(const struct turn_question *question, const struct redisReply *reply) {
    struct store_ended_turns ended = {};
    int r = ended_turns_parse(reply, &ended);

    if (r == 0) {
        question->on_ended(0, &ended, question->userdata);
        ended_turns_done(&ended);
    }
    return r;
}

static int answer_shared(const struct turn_question *question, const struct redisReply *reply) {
    struct store_shared shared = {};
    int r = shared_parse(reply, &shared);

    if (r == 0) {
        question->on_shared(0, &shared, question->userdata);
        shared_done(&shared);
    }
    return r;
}

static int answer_passed(const struct turn_question *question, const struct redisReply *reply) {
    int r = pass_reply_parse(reply);

    if (r == -EBADMSG)
        return r;
    question->on_passed(r, question->userdata);
    return 0;
}

static void question_on_reply(const struct redisReply *reply, void *userdata) {
    struct turn_question *question = userdata;
    struct store_redis *store = question->store;
    int r = -ENOTCONN;

    list_unlink(&question->link); /* below, a failing link may call turn_questions_reset() */
    if (call_accept_reply(store, reply, PHASE_LIVE))
        r = question->on_ended    ? answer_ended(question, reply)
            : question->on_shared ? answer_shared(question, reply)
                                  : answer_passed(question, reply);
    if (r == 0) {
        free(question);
        return;
    }
    if (r == -EBADMSG)
        call_bad_reply(store, "turned");
    fail(question, r == -EBADMSG ? -ENOTCONN : r);
}

/* pass: for `pass`, or NULL. */
static int ask(struct store *base, const char *what, const char *pool, const struct store_pass *pass,
               const struct turn_question *terms) {
    struct store_redis *store = store_redis_of(base);
    _cleanup_command_ struct redis_command command = {0};
    struct turn_question *question;
    int r;

    if (!heartbeat_is_ready(store))
        return -ENOTCONN;
    question = malloc(sizeof(*question));
    if (!question)
        return -ENOMEM;
    *question = *terms;
    question->store = store;
    turns_begin_call(store, &command, what);
    command_add(&command, pool);
    if (pass) {
        command_add_u64(&command, turns_number(pass->due));
        command_add(&command, pass->id);
    }
    r = call_send(store, &command, question_on_reply, question);
    if (r < 0)
        free(question);
    else
        list_append(&store->turns.questions, &question->link);
    return r;
}

int turn_questions_stop(struct store *base, const char *pool, store_ended_turns_fn fn, void *userdata) {
    return ask(base, "stop", pool, NULL, &(struct turn_question){.on_ended = fn, .userdata = userdata});
}

int turn_questions_ask(struct store *base, const char *pool, store_shared_fn fn, void *userdata) {
    return ask(base, "hosts", pool, NULL, &(struct turn_question){.on_shared = fn, .userdata = userdata});
}

int turn_questions_pass(struct store *base, const struct store_pass *pass, store_reply_fn fn, void *userdata) {
    return ask(base, "pass", pass->pool, pass, &(struct turn_question){.on_passed = fn, .userdata = userdata});
}

void turn_questions_reset(struct store_redis *store) {
    list_foreach_safe (question, &store->turns.questions, struct turn_question, link)
        fail(question, -ENOTCONN);
}
