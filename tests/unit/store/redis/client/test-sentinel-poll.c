/* SPDX-License-Identifier: MIT */

/* The verdict on the replies of several sentinels. */

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store/redis/client/sentinel-poll.h"
#include "tests/harness/redis/resp.h"
#include "tests/harness/test.h"

static struct sentinel_poll poll;

/* words: "name fleet ip 10.0.0.1 ..."; an empty value is written "-". */
static void take_words(const char *who, const char *words) {
    char copy[512], text[1024] = "", *rest = copy, *word;
    unsigned n = 0;
    redisReply *reply;
    char whole[1100];

    (void) snprintf(copy, sizeof(copy), "%s", words);
    while ((word = strsep(&rest, " "))) {
        size_t used = strlen(text);
        const char *value = strcmp(word, "-") == 0 ? "" : word;

        (void) snprintf(text + used, sizeof(text) - used, "$%zu\r\n%s\r\n", strlen(value), value);
        n++;
    }
    (void) snprintf(whole, sizeof(whole), "*%u\r\n%s", n, text);
    reply = resp_parse(whole);
    sentinel_poll_take(&poll, who, reply);
    freeReplyObject(reply);
}

static void take(const char *who, const char *ip, unsigned epoch, const char *flags) {
    char words[512];

    (void) snprintf(words, sizeof(words), "name fleet ip %s port 6379 flags %s config-epoch %u down-after-milliseconds 5000", ip, flags, epoch);
    take_words(who, words);
}

static void take_error(const char *who, const char *error) {
    char text[256];
    redisReply *reply;

    (void) snprintf(text, sizeof(text), "-%s\r\n", error);
    reply = resp_parse(text);
    sentinel_poll_take(&poll, who, reply);
    freeReplyObject(reply);
}

static void begin(size_t n) {
    poll = (struct sentinel_poll) {};
    sentinel_poll_begin(&poll, "fleet", n);
}

static void expect_open(void) {
    TEST_INT(sentinel_poll_decide(&poll), SENTINEL_VERDICT_OPEN);
}

static void expect_found(const char *host) {
    TEST_INT(sentinel_poll_decide(&poll), SENTINEL_VERDICT_FOUND);
    TEST_STRING(poll.best.host, host);
    TEST_INT(poll.best.port, 6379);
}

static void expect_none(enum redis_error error, const char *text) {
    TEST_INT(sentinel_poll_decide(&poll), SENTINEL_VERDICT_NONE);
    TEST_INT(poll.error, error);
    TEST_STRING(poll.reasons, text);
}

static void test_majority(void) {
    begin(3);
    expect_open();
    take("a:1", "10.0.0.1", 4, "master");
    expect_open();
    take("b:1", "10.0.0.1", 4, "master");
    expect_found("10.0.0.1");
    TEST_INT(poll.down_after, 5 * USEC_PER_SEC);

    begin(1);
    take("a:1", "fe80::1", 0, "master");
    expect_found("fe80::1");

    begin(2); /* both are a majority of two */
    take("a:1", "10.0.0.1", 4, "master");
    expect_open();
    sentinel_poll_fail(&poll, "b:1", REDIS_ERROR_RETRY, "no answer");
    expect_none(REDIS_ERROR_RETRY, "sentinels: 1 of 2 know the master \"fleet\" (b:1: no answer)");
}

static void test_failing(void) {
    begin(3);
    sentinel_poll_fail(&poll, "a:1", REDIS_ERROR_RETRY, "no answer");
    take_error("b:1", "NOAUTH Authentication required.");
    expect_open();
    take_error("c:1", "ERR No such master with that name");
    TEST_INT(sentinel_poll_decide(&poll), SENTINEL_VERDICT_NONE);
    TEST_INT(poll.error, REDIS_ERROR_FATAL); /* the password: an administrator must act */
    CU_ASSERT_PTR_NOT_NULL(strstr(poll.reasons, "sentinels: 0 of 3 know the master \"fleet\" (a:1: no answer; b:1: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(poll.reasons, "; c:1: does not know it)"));

    begin(3);
    take_error("a:1", "ERR No such master with that name");
    take_error("b:1", "ERR No such master with that name");
    expect_open();
    sentinel_poll_fail(&poll, "c:1", REDIS_ERROR_RETRY, "no answer");
    expect_none(REDIS_ERROR_FATAL, "sentinels do not know a master \"fleet\"; correct the option master");
}

static void test_epochs(void) {
    begin(3); /* the newer one decides, in either order */
    take("a:1", "10.0.0.1", 4, "master");
    take("b:1", "10.0.0.2", 5, "master");
    expect_found("10.0.0.2");
    begin(3);
    take("a:1", "10.0.0.2", 5, "master");
    take("b:1", "10.0.0.1", 4, "master");
    expect_found("10.0.0.2");

    sentinel_poll_begin(&poll, "fleet", 3); /* sentinels that do not know of the failover do not count */
    take("a:1", "10.0.0.1", 4, "master");
    take("b:1", "10.0.0.1", 4, "master");
    expect_open();
    take("c:1", "10.0.0.2", 5, "master");
    expect_none(REDIS_ERROR_RETRY, "sentinels: 1 of 3 know the master \"fleet\" (a:1: it does not know the latest failover; "
                                   "b:1: it does not know the latest failover)");

    sentinel_poll_begin(&poll, "fleet", 2); /* all are new: they count from the next poll on */
    take("a:1", "10.0.0.1", 0, "master");
    take("b:1", "10.0.0.1", 0, "master");
    TEST_INT(sentinel_poll_decide(&poll), SENTINEL_VERDICT_NONE);
    sentinel_poll_begin(&poll, "fleet", 2);
    take("a:1", "10.0.0.1", 0, "master");
    take("b:1", "10.0.0.1", 0, "master");
    expect_found("10.0.0.1");
}

static void test_other_master(void) {
    begin(1);
    take("a:1", "10.0.0.1", 9, "master");
    expect_found("10.0.0.1");
    sentinel_poll_begin(&poll, "other", 1);
    take_words("a:1", "name other ip 10.0.0.3 port 6379 flags master config-epoch 1");
    expect_found("10.0.0.3");
}

static void test_disagree(void) {
    begin(3);
    take("a:1", "10.0.0.1", 4, "master");
    take("b:1", "10.0.0.2", 4, "master");
    expect_open();
    take("c:1", "10.0.0.1", 4, "master");
    expect_none(REDIS_ERROR_RETRY, "sentinels name different masters \"fleet\": 10.0.0.1:6379, 10.0.0.2:6379");

    begin(3);
    take("a:1", "10.0.0.1", 4, "master");
    take("b:1", "::1", 4, "master");
    expect_open();
    take("c:1", "10.0.0.3", 5, "master"); /* the newer one ends it */
    expect_found("10.0.0.3");
}

static void test_down(void) {
    begin(3);
    take("a:1", "10.0.0.1", 4, "s_down,master");
    take("b:1", "10.0.0.1", 4, "master,o_down");
    expect_open();
    take("c:1", "10.0.0.1", 4, "master,disconnected");
    expect_none(REDIS_ERROR_RETRY, "sentinels: the master \"fleet\" at 10.0.0.1:6379 is down or being replaced, a failover is awaited");

    begin(3); /* one of them can reach it */
    take("a:1", "10.0.0.1", 4, "s_down,master");
    take("b:1", "10.0.0.1", 4, "master,not_s_down,s_down_");
    expect_found("10.0.0.1");

    begin(3); /* a sentinel that sees the old master up does not count */
    take("a:1", "10.0.0.1", 4, "master");
    take("b:1", "10.0.0.2", 5, "master,s_down");
    sentinel_poll_fail(&poll, "c:1", REDIS_ERROR_RETRY, "no answer");
    TEST_INT(sentinel_poll_decide(&poll), SENTINEL_VERDICT_NONE);
}

/* The sentinel that leads a failover names the old master with the new epoch until the replicas follow the new one. */
static void test_leader(void) {
    static const char *const flags[] = {"s_down,o_down,master,failover_in_progress", "master,failover_in_progress"};

    for (size_t i = 0; i < ELEMENTSOF(flags); i++) {
        begin(3); /* in each order */
        take("a:1", "10.0.0.1", 5, flags[i]);
        take("b:1", "10.0.0.2", 5, "master");
        expect_found("10.0.0.2");
        begin(3);
        take("b:1", "10.0.0.2", 5, "master");
        take("a:1", "10.0.0.1", 5, flags[i]);
        expect_found("10.0.0.2");

        begin(3); /* nobody names the new one yet */
        take("a:1", "10.0.0.1", 5, flags[i]);
        take("b:1", "10.0.0.1", 4, "master");
        expect_open();
        take("c:1", "10.0.0.1", 4, "master");
        expect_none(REDIS_ERROR_RETRY, "sentinels: the master \"fleet\" at 10.0.0.1:6379 is down or being replaced, a "
                                       "failover is awaited");
    }
}

static void test_lies(void) {
    static const char *const lies[] = {
        "name other ip 10.0.0.1 port 6379 flags master config-epoch 1", /* not what was asked */
        "ip 10.0.0.1 port 6379 flags master config-epoch 1",
        "name fleet port 6379 flags master config-epoch 1",
        "name fleet ip 10.0.0.1 flags master config-epoch 1",
        "name fleet ip 10.0.0.1 port 6379 flags master",
        "name fleet ip 10.0.0.1 port 0 flags master config-epoch 1",
        "name fleet ip 10.0.0.1 port 65536 flags master config-epoch 1",
        "name fleet ip 10.0.0.1 port 6379 flags master config-epoch -1",
        "name fleet ip 10.0.0.1 port 6379 flags master config-epoch 99999999999999999999",
        "name fleet ip - port 6379 flags master config-epoch 1",
        "name fleet ip a/b port 6379 flags master config-epoch 1",
        "name",
    };

    for (size_t i = 0; i < ELEMENTSOF(lies); i++) {
        begin(1);
        take_words("a:1", lies[i]);
        expect_none(REDIS_ERROR_RETRY, "sentinels: 0 of 1 know the master \"fleet\" (a:1: its answer to SENTINEL MASTER is malformed)");
    }
    begin(1); /* a malformed time is ignored */
    take_words("a:1", "name fleet ip h port 6379 config-epoch 1 down-after-milliseconds x");
    expect_found("h");
    TEST_INT(poll.down_after, 0);
    begin(1);
    take_error("a:1", "ERR what");
    TEST_INT(sentinel_poll_decide(&poll), SENTINEL_VERDICT_NONE);
}

static CU_TestInfo tests[] = {
    {"majority", test_majority}, {"failing", test_failing},   {"epochs", test_epochs}, {"another master", test_other_master},
    {"disagree", test_disagree}, {"down", test_down}, {"leader", test_leader}, {"lies", test_lies},
    CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "sentinel-poll", .pTests = tests});
