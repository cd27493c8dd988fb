/* SPDX-License-Identifier: MIT */

/* A service whose users may not run SCRIPT: scripts are sent by their text, and store-redis keeps its contract.
 * Then each command that berthd sends is refused in turn. */

#include <string.h>

#include "store/redis/client/script.h"
#include "store/redis/store-redis.h"
#include "tests/harness/redis/redis-bed.h"
#include "tests/harness/store/store-suite.h"

#define PASSWORD "a password"
#define RIGHTS "on >%s resetkeys ~berth:* resetchannels &berth:* +@all"

static int make_user(const char *more) {
    char command[160];
    _cleanup_reply_ redisReply *made = NULL;

    (void) snprintf(command, sizeof(command), "ACL SETUSER berth reset " RIGHTS "%s", "%s", more);
    made = redis_command(&redis_bed.server, command, PASSWORD);
    return made && made->type == REDIS_REPLY_STATUS ? 0 : -EINVAL;
}

static int make_user_without_script(void) {
    return make_user(" -script");
}

/* All later calls of a script use EVALSHA, which Redis would answer with NOSCRIPT if the text had not come first. */
static void test_by_text(void) {
    struct bed b;

    redis_bed_command("SCRIPT FLUSH");
    redis_bed_command("CONFIG RESETSTAT");
    if (!store_suite_begin(&b))
        return;
    struct probe *p = bed_probe(&b, 0, "db:1");
    probe_grant(p);
    for (unsigned i = 0; i < 3; i++)
        CU_ASSERT(store_redis_of(b.stores[i])->handshake.is_by_text);
    redis_bed_command("SCRIPT FLUSH"); /* as a service that evicts scripts, or a failover */
    probe_end(p);
    for (unsigned i = 0; i < 20; i++) {
        probe_grant(p = bed_probe(&b, i, "db:1"));
        probe_end(p);
    }
    _cleanup_reply_ redisReply *stats = redis_command(&redis_bed.server, "INFO commandstats");
    const char *texts = strstr(stats->str, "cmdstat_eval:calls="), *hashes = strstr(stats->str, "cmdstat_evalsha:calls=");
    CU_ASSERT_FATAL(texts && hashes);
    CU_ASSERT(strtoul(hashes + strlen("cmdstat_evalsha:calls="), NULL, 10) >
              strtoul(texts + strlen("cmdstat_eval:calls="), NULL, 10)); /* a text comes once */
    bed_done(&b);
}

/* A host whose user lacks a right names it and is granted nothing. With that right the host takes part. */
static void test_each_refused(void) {
    static const struct {
        const char *right, *says[2]; /* NULL: it takes part without */
    } table[] = {
        {" -info", {"NOPERM", "info"}},
        {" -ssubscribe", {"NOPERM", "ssubscribe"}},
        {" -evalsha", {"NOPERM", "evalsha"}},
        {" -script -eval", {"NOPERM", "eval"}},
        {" -spublish", {"it lacks SPUBLISH", "(see redis.acl)"}},
        {" -time", {"it lacks TIME", "(see redis.acl)"}},
        {" -hset", {"it lacks HSET", "(see redis.acl)"}},
        {" -script", {NULL, NULL}},
        {" -script|exists", {NULL, NULL}},
        {" -script|load", {NULL, NULL}},
        {" -client", {NULL, NULL}},
        {" -config -wait -role -keys -scan -cluster -debug -ping", {NULL, NULL}},
    };

    for (size_t i = 0; i < ELEMENTSOF(table); i++) {
        bool is_refused = table[i].says[0] != NULL;
        struct bed b;

        TEST_INT(make_user(table[i].right), 0);
        redis_bed_command("SCRIPT FLUSH");
        CU_ASSERT_FATAL(redis_bed_init(&b, 1));
        struct probe *p = bed_probe(&b, 0, "db:1");
        TEST_INT(store_start(b.stores[0]), 0);
        if (is_refused) {
            probe_ask(p);
            BED_UNTIL(&b, b.stores[0]->away_why[0] != '\0');
            for (size_t k = 0; k < 2; k++)
                TEST_STRING(strstr(b.stores[0]->away_why, table[i].says[k]) ? "" : b.stores[0]->away_why, "");
            CU_ASSERT(strstr(b.stores[0]->away_why, "redis.acl") != NULL);
            usec_t until = clock_boottime() + redis_bed.heartbeat;
            while (bed_turn(&b, until))
                ;
            TEST_INT(p->n_granted, 0);
            TEST_INT(redis_number(&redis_bed.server, "EXISTS berth:{test}:meta"), 0); /* no half of a call */
            TEST_INT(make_user(""), 0);
        }
        CU_ASSERT(bed_start(&b));
        if (!is_refused)
            probe_ask(p);
        BED_UNTIL(&b, p->n_granted == 1);
        probe_end(p);
        bed_done(&b);
    }
    TEST_INT(make_user_without_script(), 0);
}

static CU_TestInfo tests[] = {
    {"by text", test_by_text},
    {"each refused", test_each_refused},
    CU_TEST_INFO_NULL,
};

static const struct store_fixture fixture = {.n_hosts = 3, .n_seeds = 1, .make = redis_bed_make};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-redis-text", .pTests = store_suite_tests},
                             {.pName = "commands refused", .pTests = tests},
                             CU_SUITE_INFO_NULL};

    redis_bed.lease = 30 * USEC_PER_SEC; /* no test here waits for it, or for a timeout: stalls of a busy machine end no connection */
    redis_bed.heartbeat = USEC_PER_SEC;
    redis_bed.timeout = 10 * USEC_PER_SEC;
    redis_bed.username = "berth";
    redis_bed.password = PASSWORD;
    store_suite_use(&fixture);
    return redis_bed_main(argc, argv, suites, make_user_without_script);
}
