/* SPDX-License-Identifier: MIT */

/* The scripts alone, while the slot of their namespace moves (R17). With one key, a script stops halfway, or
 * grants permits that are held on the other node. With the second key, Redis refuses each script before it
 * runs. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/redis/client/script.h"
#include "tests/harness/redis/redis-nodes.h"
#include "tests/harness/test.h"

#define META "berth:{t}:meta"
#define NONE "berth:{t}:none"
#define HELD "berth:{t}:pool:one:held"
#define SESSION "0123456789abcdef0123456789abcdef"
#define NEW_SESSION "fedcba9876543210fedcba9876543210"
#define EPOCH "00112233445566778899aabbccddeeff"
#define NEW_EPOCH "ffeeddccbbaa99887766554433221100"
#define A_LEASE "30000000"
#define KEYS_MAX 64

static struct redis_nodes nodes;
static unsigned slot, from, to;

/* --- calls --- */

/* Calls a script with these words as arguments; "_" in them is a space. asking: as a client that follows ASK. */
static redisReply *call(unsigned node, bool asking, enum redis_script script, unsigned n_keys, const char *words) {
    struct redis_server *s = &nodes.servers[node];
    const char *argv[64] = {"EVAL", redis_script_text(script), n_keys == 1 ? "1" : "2", META, NONE};
    _cleanup_free_ char *copy = strdup(words);
    int n = n_keys == 1 ? 4 : 5;

    for (char *rest = copy, *word; (word = strsep(&rest, " ")) && n < 64;) {
        for (char *p = word; *p; p++)
            *p = *p == '_' ? ' ' : *p;
        argv[n++] = strcmp(word, "~") == 0 ? "" : word;
    }
    if (asking)
        redis_reply_freep(&(redisReply *){redis_command(s, "ASKING")});
    return redisCommandArgv(s->client, n, argv, NULL);
}

static const char *shown(const redisReply *reply) {
    if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements > 0)
        reply = reply->element[0];
    return reply && reply->str ? reply->str : "";
}

/* Returns the beginning of the script's reply. It is valid until the next call. */
static const char *say(unsigned node, bool asking, enum redis_script script, unsigned n_keys, const char *words) {
    static char text[400];
    _cleanup_reply_ redisReply *reply = call(node, asking, script, n_keys, words);

    (void) snprintf(text, sizeof(text), "%s", shown(reply));
    return text;
}

#define EXPECT_BEGIN(actual, begin) expect(__LINE__, actual, begin, strncmp(actual, begin, strlen(begin)) == 0)
#define EXPECT_PART(actual, part) expect(__LINE__, actual, part, strstr(actual, part))

static void expect(unsigned line, const char *actual, const char *expected, bool holds) {
    if (!holds)
        test_string(__FILE__, line, actual, expected);
}

static const char *hello(unsigned node, bool asking, unsigned n_keys, const char *session, const char *epoch) {
    char words[400];

    (void) snprintf(words, sizeof(words), "%s 1 ~ %.4s machine 1 " A_LEASE " 0 0 0 0 0 0 %s,+" SESSION " 1 one 1", session,
                    session, epoch);
    return say(node, asking, REDIS_SCRIPT_HELLO, n_keys, words);
}

static const char *end_grace(unsigned node, bool asking, unsigned n_keys, const char *session, const char *epoch) {
    char words[200];

    (void) snprintf(words, sizeof(words), "%s 1 %s 1 0 0 0 0 " A_LEASE " 0", session, epoch);
    return say(node, asking, REDIS_SCRIPT_HEARTBEAT, n_keys, words);
}

static const char *claim(unsigned node, bool asking, unsigned n_keys, const char *epoch, const char *id) {
    char words[300];

    (void) snprintf(words, sizeof(words), SESSION " 1 %s 1 %s 0_1_%s_backup 0 0 one 1 100", epoch, id, id);
    return say(node, asking, REDIS_SCRIPT_CLAIM, n_keys, words);
}

/* --- the keys of the slot --- */

/* Returns a checksum of all keys on a node. */
static uint64_t sum_of(unsigned node) {
    struct redis_server *s = &nodes.servers[node];
    _cleanup_reply_ redisReply *keys = redis_command(s, "CLUSTER GETKEYSINSLOT %u %u", slot, KEYS_MAX);
    uint64_t sum = 0;

    for (size_t i = 0; keys && i < keys->elements; i++) {
        uint64_t hash = 14695981039346656037U;

        redis_reply_freep(&(redisReply *){redis_command(s, "ASKING")});
        _cleanup_reply_ redisReply *dump = redis_command(s, "DUMP %s", keys->element[i]->str);

        CU_ASSERT_FATAL(dump && dump->type == REDIS_REPLY_STRING);
        for (size_t k = 0; k < (size_t) keys->element[i]->len; k++)
            hash = (hash ^ (unsigned char) keys->element[i]->str[k]) * 1099511628211U;
        for (size_t k = 0; k < (size_t) dump->len; k++)
            hash = (hash ^ (unsigned char) dump->str[k]) * 1099511628211U;
        sum += hash;
    }
    return sum;
}

/* Makes a namespace with one session. is_held: a claim of it holds the only permit of a pool. */
static void begin(bool is_held) {
    for (unsigned i = 0; i < NODES; i++)
        redis_reply_freep(&(redisReply *){redis_command(&nodes.servers[i], "FLUSHALL")});
    from = redis_nodes_owner(&nodes, slot);
    to = (from + 1) % NODES;
    EXPECT_BEGIN(hello(from, false, 2, SESSION, EPOCH), "ok");
    EXPECT_BEGIN(end_grace(from, false, 2, SESSION, EPOCH), "ok");
    if (is_held)
        EXPECT_BEGIN(claim(from, false, 2, EPOCH, "aa"), "ok 1 0 H");
}

static const char *migrate(const char *key) {
    static char text[200];
    _cleanup_reply_ redisReply *reply =
        redis_command(&nodes.servers[from], "MIGRATE 127.0.0.1 %u %s 0 10000", redis_nodes_port(&nodes, to), key);

    (void) snprintf(text, sizeof(text), "%s", shown(reply));
    return text;
}

static void finish(void) {
    for (unsigned i = 0; i < NODES; i++)
        redis_reply_freep(&(redisReply *){redis_command(&nodes.servers[i], "FLUSHALL")});
    redis_nodes_end_move(&nodes, slot, from, to);
}

/* --- without the second key --- */

/* The pool has no `held` yet. */
static void test_claim_stops(void) {
    begin(false);
    redis_nodes_begin_move(&nodes, slot, from, to);
    EXPECT_PART(claim(from, false, 1, EPOCH, "bb"), "non local key");
    finish();
}

static void test_hello_stops(void) {
    uint64_t before;

    begin(false);
    redis_nodes_begin_move(&nodes, slot, from, to);
    before = sum_of(from);
    EXPECT_PART(hello(from, false, 1, NEW_SESSION, EPOCH), "non local key");
    CU_ASSERT(sum_of(from) != before); /* half of it was written */
    finish();
}

/* A client that follows ASK gets the permit that is held on the other node, and the move is stuck. */
static void test_asking_grants_twice(void) {
    begin(true);
    redis_nodes_begin_move(&nodes, slot, from, to);
    EXPECT_BEGIN(migrate(META), "OK");
    EXPECT_BEGIN(hello(to, true, 1, SESSION, NEW_EPOCH), "ok");
    EXPECT_BEGIN(end_grace(to, true, 1, SESSION, NEW_EPOCH), "ok");
    EXPECT_BEGIN(claim(to, true, 1, NEW_EPOCH, "bb"), "ok 1 0 H");
    EXPECT_BEGIN(migrate(HELD), "ERR Target instance replied with error: BUSYKEY");
    finish();
}

/* --- with the second key --- */

/* Both nodes refuse each script, even for a client that follows ASK, and no key changes. */
static void refuse_all(const char *at_source) {
    uint64_t source = sum_of(from), target = sum_of(to);

    for (enum redis_script i = 0; i < REDIS_SCRIPTS; i++) {
        EXPECT_BEGIN(say(from, false, i, 2, SESSION " 1 " EPOCH), at_source);
        EXPECT_BEGIN(say(to, false, i, 2, SESSION " 1 " EPOCH), "MOVED");
        EXPECT_BEGIN(say(to, true, i, 2, SESSION " 1 " EPOCH), "TRYAGAIN");
    }
    EXPECT_BEGIN(hello(from, false, 2, NEW_SESSION, NEW_EPOCH), at_source);
    EXPECT_BEGIN(hello(to, true, 2, NEW_SESSION, NEW_EPOCH), "TRYAGAIN");
    EXPECT_BEGIN(claim(from, false, 2, EPOCH, "bb"), at_source);
    EXPECT_BEGIN(claim(to, true, 2, EPOCH, "bb"), "TRYAGAIN");
    CU_ASSERT(sum_of(from) == source && sum_of(to) == target);
}

static void test_refused(void) {
    begin(true);
    redis_nodes_begin_move(&nodes, slot, from, to);
    refuse_all("TRYAGAIN");
    EXPECT_BEGIN(migrate(META), "OK");
    refuse_all("ASK");
    while (redis_nodes_move_key(&nodes, slot, from, to))
        ;
    refuse_all("ASK");
    redis_nodes_end_move(&nodes, slot, from, to);
    EXPECT_BEGIN(claim(from, false, 2, EPOCH, "bb"), "MOVED");
    EXPECT_BEGIN(hello(to, false, 2, SESSION, NEW_EPOCH), "ok");
    EXPECT_BEGIN(claim(to, false, 2, EPOCH, "bb"), "epoch"); /* the old epoch has ended */
    TEST_INT(redis_number(&nodes.servers[to], "SCARD " HELD), 1);
    for (unsigned i = 0; i < NODES; i++)
        redis_reply_freep(&(redisReply *){redis_command(&nodes.servers[i], "FLUSHALL")});
}

static CU_TestInfo tests[] = {
    {"one key: a claim stops", test_claim_stops},
    {"one key: hello stops", test_hello_stops},
    {"one key: a client that asks gets it twice", test_asking_grants_twice},
    {"two keys: nothing runs", test_refused},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "scripts-slots", .pTests = tests}, CU_SUITE_INFO_NULL};
    int r;

    if (redis_nodes_start(&nodes) < 0) {
        puts("no cluster");
        return 1;
    }
    slot = redis_nodes_slot(&nodes, META);
    r = test_main(argc, argv, suites);
    redis_nodes_done(&nodes);
    return r;
}
