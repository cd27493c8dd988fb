/* SPDX-License-Identifier: MIT */

/* What a run costs Redis: a job without options of schedules, retries or sharing calls one script for its claim and one for
 * its release. Heartbeats are so far apart that none is among them. */

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "store/redis/client/script.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define RUNS 10
#define COMMAND " command = {\"/bin/true\"} output = \"null\" }\n"
#define CONFIG                                                            \
    "pool \"db\" { limit = 2 }\npool \"local\" { limit = 2 scope = \"host\" }\n" \
    "job \"plain\" { pools = {\"db\"}" COMMAND                             \
    "job \"heavy\" { pools = {\"db:2\"}" COMMAND                           \
    "job \"here\" { pools = {\"local\"}" COMMAND                           \
    "job \"free\" {" COMMAND                                               \
    "job \"again\" { pools = {\"db\"} retry = 3 success-on = {\"0\"} on-failure = {\"free\"}" COMMAND \
    "job \"shared\" { pools = {\"db\"} on = \"any\" zone = \"UTC\" schedule = {\"0 0 1 1 *\"}" COMMAND

static struct host *ant;

static void up(void) {
    cluster_up();
    cluster.lease = "24h";
    cluster.heartbeat = "8h"; /* the first one comes at a random time of it */
    freeReplyObject(redis_command(&cluster.redis, "CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 10000"));
    ant = host_up("ant", CONFIG);
    TEST_INT(berth(ant, "start shared --wait"), 0); /* what comes once */
    host_await(ant, "released", " "); /* its release comes after its end: no later test may count it */
}

/* Calls since the last reset of these commands. */
static unsigned count(const char *command) {
    _cleanup_reply_ redisReply *reply = redis_command(&cluster.redis, "INFO commandstats");
    char line[64];
    const char *at;
    unsigned n = 0;

    (void) snprintf(line, sizeof(line), "cmdstat_%s:calls=", command);
    at = reply && reply->type == REDIS_REPLY_STRING ? strstr(reply->str, line) : NULL;
    if (at)
        (void) sscanf(at + strlen(line), "%u", &n);
    return n;
}

static const char *script_name(const char *sha) {
    for (unsigned i = 0; i < REDIS_SCRIPTS; i++)
        if (strcmp(redis_script_sha(i), sha) == 0)
            return redis_script_name(i);
    return sha;
}

/* Shows the calls of scripts since the last reset, newest first. */
static void show_calls(void) {
    enum { TIME = 1, WORDS = 3, N_KEYS = 2 };
    _cleanup_reply_ redisReply *log = redis_command(&cluster.redis, "SLOWLOG GET 10000");

    for (size_t i = 0; log && i < log->elements; i++) {
        const redisReply *words = log->element[i]->element[WORDS];

        if (strcasecmp(words->element[0]->str, "EVALSHA") != 0)
            continue;
        printf("call at %lld: %s", log->element[i]->element[TIME]->integer, script_name(words->element[1]->str));
        for (size_t k = N_KEYS; k < words->elements; k++)
            printf(" %s", words->element[k]->str);
        putchar('\n');
    }
}

static void costs(const char *words, unsigned n_scripts) {
    unsigned n;

    freeReplyObject(redis_command(&cluster.redis, "CONFIG RESETSTAT"));
    freeReplyObject(redis_command(&cluster.redis, "SLOWLOG RESET"));
    host_mark(ant);
    for (unsigned i = 0; i < RUNS; i++)
        TEST_INT(berth(ant, "%s", words), 0);
    host_await_count(ant, RUNS, "exited", "result=success");
    if (n_scripts > 0)
        host_await_count(ant, RUNS, "released", " ");
    n = count("evalsha");
    TEST_INT(n, RUNS * n_scripts);
    if (n != RUNS * n_scripts)
        show_calls();
    TEST_INT(count("eval") + count("script|load") + count("publish") + count("spublish"), 0);
}

static void test_plain(void) {
    costs("start plain --wait", 2); /* claim, release */
    costs("start heavy --wait", 2);
    costs("run -p db -- true", 2);
}

static void test_alone(void) {
    costs("start here --wait", 0);
    costs("start free --wait", 0);
    costs("run -p local -- true", 0);
}

/* Retries and hooks that do not happen cost nothing. A shared job claims by the script of its turn. */
static void test_options(void) {
    costs("start again --wait", 2);
    costs("start shared --wait", 2);
}

static CU_TestInfo tests[] = {
    {"a job without new options", test_plain},
    {"without pools of the cluster", test_alone},
    {"with other options", test_options},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "job-calls", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
