/* SPDX-License-Identifier: MIT */

/* berth move and berth steal, on two hosts. The audit at the end of each test proves the order of the grants. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 2 }\npool \"net\" { limit = 2 }\n"

static struct host *ant, *bee;

static void up(void) {
    cluster_up();
    ant = host_up("ant", POOLS "job \"slow\" { %s pools = {\"db:2\"} }\n", witness_at_gate("slow", 0));
    bee = host_up("bee", POOLS);
}

/* Returns the id of a run that was just logged. */
static const char *id_of(struct host *h, const char *event, const char *name) {
    static char id[64];

    snprintf(id, sizeof(id), "%s", event_get(host_await(h, event, "job=%s", name), "run"));
    return id;
}

static void ends(struct child **c, size_t n) {
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < n; i++)
        TEST_INT(berth_end(c[i]), 0);
}

static void first(void) {
    struct child *c[4] = {berth_at_gate(ant, "-p db:2", "holder", "started"), berth_at_gate(ant, "-p db:2", "a", "queued"),
                          berth_at_gate(bee, "-p db:2", "b", "queued"), berth_at_gate(ant, "-p db:2", "c", "queued")};
    char id[64], expected[200], clock[32];
    uint64_t token;

    snprintf(id, sizeof(id), "%s", id_of(ant, "queued", "c"));
    TEST_INT(berth(bee, "move c --first --reason 'the boss waits'"), 0);
    snprintf(expected, sizeof(expected), "%.8s (ant:c) is now first of db, 2 were passed: ant:a, bee:b\n", id);
    TEST_STRING(berth_out, expected);
    snprintf(clock, sizeof(clock), "%s", event_get(host_await(bee, "moved", "run=%s uid=%u", id, getuid()), "clock"));
    host_await(ant, "moved", "run=%s clock=%s", id, clock);
    TEST_INT(berth(ant, "explain c"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "\n  moved    "));
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, " ago by an operator: its head start is "));
    TEST_INT(berth(ant, "explain a"), 0);
    CU_ASSERT_PTR_NULL(strstr(berth_out, "\n  moved    "));
    TEST_INT(berth(ant, "move %.6s --first", id), 0);
    snprintf(expected, sizeof(expected), "%.8s (ant:c) is already first of db\n", id);
    TEST_STRING(berth_out, expected);
    ends(c, 4);
    token = event_get_u64(host_await(ant, "granted", "job=c"), "token");
    CU_ASSERT(token < event_get_u64(host_await(ant, "granted", "job=a"), "token"));
    CU_ASSERT(token < event_get_u64(host_await(bee, "granted", "job=b"), "token"));
}

static void before_and_by(void) {
    struct child *c[4] = {berth_at_gate(ant, "-p db:2", "holder", "started"), berth_at_gate(ant, "-p db:2", "a", "queued"),
                          berth_at_gate(bee, "-p db:2", "b", "queued"), berth_at_gate(bee, "-p db:2", "c", "queued")};

    TEST_INT(berth(ant, "move c --before b"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, " (bee:c) is now at place 2 of db, 1 was passed: bee:b\n"));
    TEST_INT(berth(ant, "move b --by 1h"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, " (bee:b) is now first of db, 2 were passed: ant:a, bee:c\n"));
    TEST_INT(berth(ant, "move b --by -2h"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, " (bee:b) is now at place 3 of db\n"));
    json_t *answer = berth_json(ant, "move b --by 1500ms --json");
    TEST_INT(json_integer_value(json_object_get(answer, "head_start_ms")), 1500);
    TEST_STRING(json_string_value(json_object_get(answer, "host")), "bee");
    json_decref(answer);
    ends(c, 4);
}

/* The limit falls below what a claim needs, and the claim is moved before Redis has looked at it again. */
static void parked(void) {
    struct child *c[3] = {berth_at_gate(ant, "-p db:2", "holder", "started"), berth_at_gate(ant, "-p db", "a", "queued"),
                          berth_at_gate(bee, "-p db:2", "b", "queued")};

    TEST_INT(berth(ant, "limit db 1"), 0);
    TEST_INT(berth(ant, "move b --first"), 0);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(berth_out, " (bee:b) is parked, and goes before the others when the limit rises; first of db, 1 was passed: ant:a\n"));
    TEST_INT(berth(ant, "limit db --clear"), 0);
    ends(c, 3);
}

static void refused(int status, const char *text, const char *words) {
    TEST_INT(berth(ant, "%s", words), status);
    TEST_STRING(berth_err, text);
}

static void words(void) {
    struct child *c[4] = {berth_at_gate(ant, "-p db:2", "holder", "started"), berth_at_gate(ant, "-p db:2", "a", "queued"),
                          berth_at_gate(ant, "-p net:2", "other", "started"), berth_at_gate(ant, "-p net", "n", "queued")};
    char text[200];

    snprintf(text, sizeof(text), "berth: %.8s holds its permits already, so it waits in no queue\n", id_of(ant, "started", "holder"));
    refused(64, text, "move holder --first");
    refused(65, "berth: no run nobody holds permits or waits for permits; `berth pools POOL` lists those that do\n", "move nobody --first");
    refused(65, "berth: no run holder waits for permits; `berth pools POOL` lists those that do\n", "move a --before holder");
    TEST_INT(berth(ant, "move a --before n"), 64);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, " have no queue in common\n"));
    TEST_INT(berth(ant, "move a"), 64);
    TEST_INT(berth(ant, "move a --first --by 1m"), 64);
    refused(65, "berth: no run 00112233445566778899aabbccddeeff holds permits or waits for them; `berth pools POOL` lists those that do\n",
            "move 00112233445566778899aabbccddeeff --first");
    ends(c, 4);
}

static void steal(void) {
    struct child *holder = berth_at_gate(bee, "-p db", "holder", "started"), *second = berth_at_gate(ant, "-p db", "second", "started"),
                 *a = berth_at_gate(ant, "-p db", "a", "queued"), *b = berth_at_gate(ant, "-p db", "b", "queued"),
                 *large = berth_at_gate(ant, "-p db:2", "large", "queued");

    refused(64, "berth: this stops bee:holder; --yes confirms it\n", "steal holder --for b");
    refused(75, "berth: that alone does not start ant:large: db needs 1 more (--yes stops it anyway)\n", "steal holder --for large");
    refused(65, "berth: no run a holds permits; `berth pools POOL` lists those that do; a run needs 4 digits at least\n",
            "steal a --for b");
    TEST_INT(berth(ant, "steal holder --for b --reason urgent --yes"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, " (bee:holder) is being stopped\n"));
    host_await(ant, "moved", "job=b reason=urgent");
    host_await(ant, "operated", "method=Revoke reason=urgent");
    host_await(bee, "revoked", "job=holder");
    host_await(ant, "granted", "job=b");
    CU_ASSERT(berth_end(holder) != 0);
    ends((struct child *[]) {second, a, b, large}, 4);
}

/* The move is in Redis, and in the record of the run. */
static void restarted(void) {
    struct child *c[2] = {berth_at_gate(bee, "-p db:2", "holder", "started"), berth_at_gate(bee, "-p db:2", "b", "queued")};

    TEST_INT(berth(ant, "start slow"), 0);
    host_await(ant, "queued", "job=slow");
    TEST_INT(berth(bee, "move slow --first"), 0);
    host_await(ant, "moved", "job=slow");
    host_kill(ant);
    host_start(ant);
    host_await(ant, "redis-connected", " ");
    TEST_INT(berth(bee, "move slow --first"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, " is already first of db\n"));
    ends(c, 2);
    host_await(ant, "exited", "job=slow result=success");
    CU_ASSERT(event_get_u64(host_await(ant, "granted", "job=slow"), "token") < event_get_u64(host_await(bee, "granted", "job=b"), "token"));
}

static CU_TestInfo tests[] = {
    {"first", first},
    {"before another, and by a time", before_and_by},
    {"a parked claim", parked},
    {"what is refused", words},
    {"steal", steal},
    {"berthd is restarted", restarted},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "move", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
