/* SPDX-License-Identifier: MIT */

/* The replies of `turn` and `turned`, valid and forged. */

#include <errno.h>
#include <hiredis/hiredis.h>
#include <string.h>

#include "store/redis/turns/turn-replies.h"
#include "tests/harness/redis/resp.h"
#include "tests/harness/test.h"

/* The line as a reply. */
static redisReply *parse_line(const char *line) {
    char text[600];

    snprintf(text, sizeof(text), "$%zu\r\n%s\r\n", strlen(line), line);
    return resp_parse(text);
}

static int parse_turn(const char *text, struct reply_line *line, struct turn_reply *ret) {
    redisReply *reply = parse_line(text);
    int r = reply_line_read(reply, line);

    freeReplyObject(reply);
    return r < 0 ? r : turn_reply_parse(line, ret);
}

static void test_turns(void) {
    static const struct {
        const char *line;
        int result;
        struct turn_reply reply;
    } cases[] = {
        {"ok e 0 H 1 2 3 4 5 2 chain", 0, {.kind = TURN_REPLY_OURS, .attempt = 2, .chain = "chain"}},
        {"ok e 0 W 1 2 3 4 5 1 -", 0, {.kind = TURN_REPLY_OURS, .attempt = 1, .chain = "-"}},
        {"ok e 0 H 1 2 3 4 5 0 -", -EBADMSG, {0}},
        {"ok e 0 H 1 2 3 4 5 4294967296 -", -EBADMSG, {0}},
        {"ok e 0 H 1 2 3 4 5 x -", -EBADMSG, {0}},
        {"ok e 0 H", -EBADMSG, {0}},
        {"ok e 0 H 1 2 3 4 5 1 0123456789012345678901234567890123456789012345678901234567890123456789"
         "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
         -EBADMSG, {0}},
        {"grace e 0", 0, {.kind = TURN_REPLY_GRACE}},
        {"full e 0", 0, {.kind = TURN_REPLY_OTHER}},
        {"", 0, {.kind = TURN_REPLY_OTHER}},
        {"taken e 0 17 bee", 0, {.kind = TURN_REPLY_REFUSED, .refusal = {.turn = STORE_TURN_TAKEN, .host = "bee"}}},
        {"taken e 0 17 -", 0, {.kind = TURN_REPLY_REFUSED, .refusal = {.turn = STORE_TURN_TAKEN}}},
        {"skipped e 0 overlap r1 bee", 0,
         {.kind = TURN_REPLY_REFUSED,
          .refusal = {.turn = STORE_TURN_SKIPPED, .why = "overlap", .run = "r1", .host = "bee"}}},
        {"skipped e 0 queue-full db -", 0,
         {.kind = TURN_REPLY_REFUSED, .refusal = {.turn = STORE_TURN_SKIPPED, .why = "queue-full"}}},
        {"later e 0 1500", 0,
         {.kind = TURN_REPLY_REFUSED, .refusal = {.turn = STORE_TURN_LATER, .after_usec = 1500000}}},
        {"early e 0 20", 0,
         {.kind = TURN_REPLY_REFUSED, .refusal = {.turn = STORE_TURN_EARLY, .after_usec = 20000}}},
        {"early e 0 -1", -EBADMSG, {0}},
        {"later e 0", -EBADMSG, {0}},
    };

    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        const struct turn_reply *wanted = &cases[i].reply;
        struct turn_reply found;
        struct reply_line line;

        TEST_INT(parse_turn(cases[i].line, &line, &found), cases[i].result);
        if (cases[i].result < 0)
            continue;
        TEST_INT(found.kind, wanted->kind);
        TEST_INT(found.attempt, wanted->attempt);
        TEST_STRING(found.chain, wanted->chain);
        TEST_INT(found.refusal.turn, wanted->refusal.turn);
        TEST_STRING(found.refusal.host, wanted->refusal.host);
        TEST_STRING(found.refusal.why, wanted->refusal.why);
        TEST_STRING(found.refusal.run, wanted->refusal.run);
        TEST_INT(found.refusal.after_usec, wanted->refusal.after_usec);
    }
}

static void test_passes(void) {
    static const struct {
        const char *line;
        int result;
    } cases[] = {{"missed e 0 17", 0}, {"taken e 0 17 bee", STORE_E_TAKEN}, {"early e 0 20", -EAGAIN}, {"grace e 0", -EAGAIN}};
    redisReply *reply;

    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        reply = parse_line(cases[i].line);
        TEST_INT(pass_reply_parse(reply), cases[i].result);
        freeReplyObject(reply);
    }
    reply = resp_parse(":1\r\n");
    TEST_INT(pass_reply_parse(reply), -EBADMSG);
    freeReplyObject(reply);
}

#define HEAD "$2\r\nok\r\n$1\r\ne\r\n:0\r\n"

static void test_look(void) {
    redisReply *reply = resp_parse("*5\r\n" HEAD "*4\r\n$2\r\n@a\r\n:17\r\n*5\r\n:60\r\n:1\r\n:0\r\n$1\r\n-\r\n$9\r\nhost-lost\r\n"
                              "*5\r\n:120\r\n:2\r\n:500\r\n$1\r\n-\r\n$5\r\nretry\r\n*2\r\n$2\r\n@b\r\n:0\r\n");
    struct store_open_turn turn = {0};

    TEST_INT(look_reply_parse(reply), 0);
    TEST_INT(look_reply_jobs(reply), 2);
    TEST_INT(look_reply_at(reply, 0, 1, &turn), 0);
    TEST_STRING(turn.pool, "@a");
    TEST_INT(turn.due, 120);
    TEST_INT(turn.attempt, 2);
    TEST_INT(turn.after_usec, 500000);
    TEST_STRING(turn.why, "retry");
    TEST_INT(look_reply_at(reply, 0, 2, &turn), -ENOENT);
    TEST_INT(look_reply_at(reply, 1, 0, &turn), -ENOENT);
    TEST_INT(look_reply_at(reply, 2, 0, &turn), -ENOENT);
    freeReplyObject(reply);
}

/* One bad element makes the whole reply bad. */
static void test_forged_look(void) {
    static const char *const forged[] = {
        "*4\r\n" HEAD ":1\r\n",
        "*4\r\n" HEAD "*0\r\n",
        "*4\r\n" HEAD "*2\r\n:1\r\n:0\r\n",
        "*4\r\n" HEAD "*3\r\n$2\r\n@a\r\n:0\r\n:5\r\n",
        "*4\r\n" HEAD "*3\r\n$2\r\n@a\r\n:0\r\n*5\r\n:60\r\n:0\r\n:0\r\n$1\r\n-\r\n$5\r\nretry\r\n",
        "*4\r\n" HEAD "*3\r\n$2\r\n@a\r\n:0\r\n*5\r\n:-60\r\n:1\r\n:0\r\n$1\r\n-\r\n$5\r\nretry\r\n",
        "*4\r\n" HEAD "*3\r\n$2\r\n@a\r\n:0\r\n*5\r\n:60\r\n:4294967296\r\n:0\r\n$1\r\n-\r\n$5\r\nretry\r\n",
        "*4\r\n" HEAD "*3\r\n$2\r\n@a\r\n:0\r\n*5\r\n:60\r\n:1\r\n:0\r\n$1\r\n-\r\n$3\r\nwhy\r\n",
        "*4\r\n" HEAD "*3\r\n$2\r\n@a\r\n:0\r\n*2\r\n:60\r\n:1\r\n",
    };

    for (size_t i = 0; i < ELEMENTSOF(forged); i++) {
        redisReply *reply = resp_parse(forged[i]);

        TEST_INT(look_reply_parse(reply), -EBADMSG);
        freeReplyObject(reply);
    }
}

static void test_superseded(void) {
    redisReply *reply = resp_parse("*4\r\n$2\r\nok\r\n*3\r\n$2\r\n60\r\n$1\r\n2\r\n$3\r\na:7\r\n"
                              "*3\r\n$2\r\n60\r\n$1\r\n0\r\n$3\r\na:7\r\n*2\r\n$2\r\n60\r\n$1\r\n2\r\n");
    struct store_ended_turn turn;

    TEST_INT(superseded_reply_at(reply, 0, &turn), 0);
    TEST_INT(turn.due, 60);
    TEST_INT(turn.attempt, 2);
    TEST_STRING(turn.chain, "a:7");
    TEST_INT(superseded_reply_at(reply, 1, &turn), -EBADMSG); /* no attempt has this number */
    TEST_INT(superseded_reply_at(reply, 2, &turn), -EBADMSG);
    TEST_INT(superseded_reply_at(reply, 3, &turn), -ENOENT);
    freeReplyObject(reply);
    reply = resp_parse("$2\r\nok\r\n");
    TEST_INT(superseded_reply_at(reply, 0, &turn), -ENOENT);
    freeReplyObject(reply);
}

static void test_ended(void) {
    redisReply *reply = resp_parse("*5\r\n" HEAD "*1\r\n*3\r\n$2\r\n60\r\n$1\r\n2\r\n$3\r\na:7\r\n"
                              "*2\r\n*3\r\n$1\r\na\r\n$3\r\nant\r\n:1\r\n*3\r\n$1\r\nb\r\n$3\r\nbee\r\n:0\r\n");
    struct store_ended_turns ended;

    TEST_INT(ended_turns_parse(reply, &ended), 0);
    TEST_INT(ended.n_turns, 1);
    TEST_INT(ended.turns[0].due, 60);
    TEST_INT(ended.turns[0].attempt, 2);
    TEST_STRING(ended.turns[0].chain, "a:7");
    TEST_INT(ended.n_runs, 2);
    TEST_STRING(ended.runs[0].run, "a");
    TEST_STRING(ended.runs[0].host, "ant");
    CU_ASSERT(!ended.runs[0].waits && ended.runs[1].waits);
    ended_turns_done(&ended);
    freeReplyObject(reply);
}

static void test_forged_ended(void) {
    static const struct {
        const char *text;
        int r;
    } forged[] = {
        {"$9\r\ngrace e 0\r\n", -EAGAIN},
        {"$6\r\nok e 0\r\n", -EBADMSG},
        {"*4\r\n" HEAD "*0\r\n", -EBADMSG},
        {"*5\r\n" HEAD "*0\r\n:1\r\n", -EBADMSG},
        {"*5\r\n" HEAD "*1\r\n*3\r\n$2\r\n60\r\n$1\r\n0\r\n$3\r\na:7\r\n*0\r\n", -EBADMSG},
        {"*5\r\n" HEAD "*1\r\n*2\r\n$2\r\n60\r\n$1\r\n1\r\n*0\r\n", -EBADMSG},
        {"*5\r\n" HEAD "*0\r\n*1\r\n*2\r\n$1\r\na\r\n$3\r\nant\r\n", -EBADMSG},
        {"*5\r\n" HEAD "*0\r\n*1\r\n*3\r\n$1\r\na\r\n*0\r\n:1\r\n", -EBADMSG},
    };

    for (size_t i = 0; i < ELEMENTSOF(forged); i++) {
        redisReply *reply = resp_parse(forged[i].text);
        struct store_ended_turns ended;

        TEST_INT(ended_turns_parse(reply, &ended), forged[i].r);
        freeReplyObject(reply);
    }
}

static void test_shared(void) {
    redisReply *reply = resp_parse("*5\r\n" HEAD "*4\r\n$3\r\nant\r\n$1\r\n1\r\n$3\r\nbee\r\n$9\r\n1,drained\r\n"
                              "*1\r\n*3\r\n$2\r\n60\r\n$1\r\n2\r\n$1\r\n5\r\n");
    struct store_shared shared;

    TEST_INT(shared_parse(reply, &shared), 0);
    TEST_INT(shared.n_hosts, 1);
    TEST_STRING(shared.hosts[0], "ant");
    TEST_INT(shared.n_turns, 1);
    TEST_INT(shared.turns[0].due, 60);
    TEST_INT(shared.turns[0].attempt, 2);
    TEST_INT(shared.turns[0].after_usec, 5000);
    shared_done(&shared);
    freeReplyObject(reply);
}

static void test_forged_shared(void) {
    static const char *const forged[] = {
        "*4\r\n" HEAD "*0\r\n",
        "*5\r\n" HEAD "*1\r\n$3\r\nant\r\n*0\r\n",
        "*5\r\n" HEAD "*2\r\n$1\r\n/\r\n$1\r\n1\r\n*0\r\n",
        "*5\r\n" HEAD "*2\r\n$3\r\nant\r\n*0\r\n*0\r\n",
        "*5\r\n" HEAD "*0\r\n*1\r\n*2\r\n$2\r\n60\r\n$1\r\n2\r\n",
        "*5\r\n" HEAD "*0\r\n*1\r\n*3\r\n$2\r\n60\r\n$1\r\n0\r\n$1\r\n5\r\n",
    };

    for (size_t i = 0; i < ELEMENTSOF(forged); i++) {
        redisReply *reply = resp_parse(forged[i]);
        struct store_shared shared;

        TEST_INT(shared_parse(reply, &shared), -EBADMSG);
        freeReplyObject(reply);
    }
}

static CU_TestInfo tests[] = {
    {"turns", test_turns},
    {"passes", test_passes},
    {"look", test_look},
    {"forged look", test_forged_look},
    {"superseded", test_superseded},
    {"ended", test_ended},
    {"forged ended", test_forged_ended},
    {"shared", test_shared},
    {"forged shared", test_forged_shared},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "turn-replies", .pTests = tests});
