/* SPDX-License-Identifier: MIT */

/* Jobs that hosts share (`on`, `prefer`): what these options exclude, and the pools of such jobs. */

#include <string.h>

#include "tests/harness/host/config.h"
#include "tests/harness/test.h"

#define ANY "redis { }\nzone = UTC\n"

/* `on = "any"` with what it excludes. */
static void test_shared(void) {
    static const struct config_error rows[] = {
        {"zone = UTC\n\n" JOB("on = any"), "c:3: job \"j\": on = \"any\" needs a redis section; add one, or remove on"},
        {ANY JOB("on = some"), "c:3: job \"j\": on \"some\" must be \"each\" or \"any\""},
        {ANY JOB("on = any on-lease-lost = continue"),
         "c:3: job \"j\": on = \"any\" with on-lease-lost = \"continue\" could run twice: add overlap = \"allow\" if it may"},
        {"redis { }\n\n" JOB("on = any schedule = {\"@daily\"}"),
         "c:3: job \"j\": on = \"any\" needs a zone that is the same on all hosts: write zone = \"Europe/Berlin\" or \"UTC\""},
        {ANY JOB("on = any at-start = true"),
         "c:3: job \"j\": on = \"any\" and at-start exclude each other; restart = \"always\" keeps one running somewhere"},
        {ANY JOB("on = any every = 1500ms"),
         "c:3: job \"j\": every with on = \"any\" must be whole seconds: hosts share due times"},
        {"redis { }\n\n" JOB("on = any every = 5m"),
         "c:3: job \"j\": on = \"any\" needs a zone that is the same on all hosts: write zone = \"Europe/Berlin\" or \"UTC\""},
        {ANY JOB("on = any overlap = replace"),
         "c:3: job \"j\": on = \"any\" and overlap = \"replace\" exclude each other; write skip, queue or allow"},
        {ANY JOB("on = any backlog = 2"), "c:3: job \"j\": on = \"any\" and backlog above 1 exclude each other; keep one"},
        {ANY JOB("on = any max-silence = 1d"),
         "c:3: job \"j\": on = \"any\" and max-silence exclude each other: a host knows only its own runs; name a hook "
         "in on-success that reports to a service outside"},
        {ANY "pool d { limit = 2 scope = host }\n" JOB("on = any pools = {d}"),
         "c:4: job \"j\": pools \"d\" is of scope \"host\", which on = \"any\" excludes: a host would take the due time and then "
         "wait for its own permits; use a pool of scope \"cluster\""},
        {ANY "pool d { limit = 2 host-limit = 1 }\n" JOB("on = any pools = {d}"),
         "c:4: job \"j\": pools \"d\" has a host-limit, which on = \"any\" excludes: a host would take the due time and then "
         "wait for its own permits; use a pool without host-limit"},
        {ANY "pool d { limit = 1000 }\n" JOB("on = any pools = {\"d:1000\"}"),
         "c:4: job \"j\": pools with on = \"any\": the job's own pool is one more; ask for at most 31 pools and 999 permits"},
        {ANY "pool d { limit = 2 }\n" JOB("on = any pools = {d} restart = always"),
         "c:4: job \"j\": on = \"any\" with restart and pools: a host that stands by would hold up the queues of these pools; "
         "remove pools"},
        {ANY "pool d { limit = 2 }\n" JOB("on = any pools = {d} overlap = queue"),
         "c:4: job \"j\": on = \"any\" with overlap = \"queue\" and pools: the run that waits would hold up the queues of these "
         "pools; remove pools, or overlap"},
        {ANY JOB("prefer = {ant}"), "c:3: job \"j\": prefer without on = \"any\"; add on = \"any\", or remove prefer"},
        {ANY JOB("on = any prefer = {\"a b\"}"), "c:3: job \"j\": prefer \"a b\" has a space; use 1 to 64 of A-Z a-z 0-9 . _ -, not "
                                              "beginning with '.' or '-'"},
        {ANY JOB("on = any prefer = {ant, ant}"), "c:3: job \"j\": prefer \"ant\" is listed twice, first in line 3; keep one"},
        {ANY JOB("on = any") "\njob k { command = {\"/k\"} on-failure = {j} }",
         "c:4: job \"k\": on-failure \"j\" names a job with on = \"any\"; a hook runs where the job ended, so remove on there"},
        {"lease = 3s\n" ANY JOB("on = any stop-timeout = 10s"),
         "c:4: job \"j\": stop-timeout 10s does not fit into the lease of 3s beside 2 heartbeats of 500ms and a margin of 500ms; make it "
         "at most 1s500ms, or the lease at least 11s500ms"},
    };

    config_refuse_all(rows, ELEMENTSOF(rows));
}

/* A job that hosts share has a pool of its own, and its runs ask for it. */
static void test_job_pools(void) {
    _cleanup_(settings_freep) struct settings *s =
        config_parse(ANY "pool db { limit = 2 }\npool \"0\" { limit = 1 }\n" JOB("on = any pools = {db} prefer = {b, a}")
                  "\njob \"k@\" { command = {\"/k\"} instances = {x} on = any overlap = allow }");
    char text[DEMANDS_TEXT_SIZE];

    TEST_INT(s->n_pools, 4);
    TEST_INT(settings_count_pools(s), 2);
    TEST_STRING(s->pools[1].name, "@j");
    TEST_INT(s->pools[1].limit, 1);
    TEST_INT(s->pools[1].scope, POOL_SCOPE_CLUSTER);
    TEST_INT(settings_find_pool(s, "@k@x")->limit, POOL_LIMIT_MAX);
    TEST_STRING(demands_format(&s->jobs[0].pools, text), "@j:1,db:1");
    TEST_STRING(s->jobs[0].triggers.sharing.prefer[0], "b");
    CU_ASSERT(settings_needs_cluster(s, &s->jobs[1].pools));
}

/* `every` gives due times that hosts share; another period makes other ones. */
static void test_period(void) {
    _cleanup_(settings_freep) struct settings *each = config_parse(ANY JOB("every = 5m")), *any = config_parse(ANY JOB("on = any every = 5m")),
                                              *other = config_parse(ANY JOB("on = any every = 6m"));

    TEST_INT(each->jobs[0].triggers.schedule.period, 0);
    TEST_INT(any->jobs[0].triggers.schedule.period, 300);
    CU_ASSERT(any->jobs[0].triggers.schedule_hash != other->jobs[0].triggers.schedule_hash);
}

static CU_TestInfo tests[] = {
    {"what a job that hosts share excludes", test_shared},
    {"the pools of jobs that hosts share", test_job_pools},
    {"every, of a job that hosts share", test_period},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "settings-share", .pTests = tests});
