/* SPDX-License-Identifier: MIT */

/* Jobs of the config: what starts them, overlap, time limits, stop, what `berth start --wait` exits with, what a command gets. */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process/cgroup-control.h"
#include "base/process/cgroup.h"
#include "tests/harness/host/host-clock.h"
#include "tests/harness/host/host.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define POOLS "pool \"db\" { limit = 1 }\npool \"disk\" { limit = 1 scope = \"host\" }\n"
#define WAITS(name) "job \"" name "\" { command = {\"/bin/true\"} pools = {\"db\"} }\n"

static struct host *ant;

static void manual_start(void) {
    struct child *c;

    ant = host_up("ant", POOLS "job \"one\" { %s pools = {\"db\"} }\n", witness_at_gate("one", 0));
    TEST_INT(berth(ant, "start one"), 0);
    host_await(ant, "granted", "job=one pools=db:1");
    host_await(ant, "started", "job=one");
    TEST_INT(berth(ant, "start one"), 75); /* skipped: not over */
    c = berth_start(ant, "start one --wait");
    TEST_INT(berth_end(c), 75);
    test_gate_open(&cluster.gate);
    host_await(ant, "exited", "job=one result=success exit_code=0");
    host_await(ant, "released", "job=one");
    TEST_INT(berth(ant, "start one --wait"), 0);
}

/* Bounds without a cgroup controller on this machine are logged, and the job runs. */
static void unbounded(void) {
    _cleanup_free_ char *root = NULL;
    unsigned available = 0;

    ant = host_up("ant",
                  POOLS "job \"one\" { command = {\"/bin/true\"} output = \"null\" memory-max = \"64M\" cpu-weight = 50 tasks-max = 9 }\n"
                  "job \"two\" { command = {\"/bin/true\"} output = \"null\" nice = 19 }\n");
    TEST_INT(berth(ant, "start one --wait"), 0);
    TEST_INT(berth(ant, "start two --wait"), 0);
    host_await(ant, "exited", "job=two result=success");
    TEST_INT(host_count(ant, "unbounded", "job=two"), 0);
    if (host_count(ant, "unbounded", " ") == 0)
        TEST_SKIP("this machine has the controllers");
    CU_ASSERT(strstr(host_await(ant, "unbounded", "job=one host=ant namespace=test"), " reason=\"cpu, memory, pids\"") != NULL);
    /* A check reports controllers that the machine lacks. It cannot know which ones are delegated. */
    if (cgroup_find_root(&root) == 0)
        (void) cgroup_available(root, &available);
    TEST_INT(berth(ant, "check-config %s", ant->config), available == (CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS) ? 0 : 78);
}

static void wait_exits_as_the_command(void) {
    struct child *c;

    ant = host_add("ant", POOLS "job \"seven\" { command = {\"/bin/sh\", \"-c\", \"exit 7\"} pools = {\"db\"} output = \"null\" }\n"
                                "job \"killed\" { command = {\"/bin/sh\", \"-c\", 'kill -KILL $$'} output = \"null\" }\n"
                                "job \"missing\" { command = {\"/nonexistent\"} pools = {\"db\"} output = \"null\" }\n"
                                "job \"long\" { command = {\"/bin/sleep\", \"60\"} timeout = \"10s\" pools = {db} output = \"null\" }\n"
                                "job \"late\" { command = {\"/bin/true\"} queue-timeout = \"100ms\" pools = {db} output = \"null\" }\n");
    host_clock_give(ant);
    host_start(ant);
    host_open(ant);
    TEST_INT(berth(ant, "start seven --wait"), 7);
    host_await(ant, "exited", "job=seven result=failure exit_code=7");
    TEST_INT(berth(ant, "start killed --wait"), 137);
    host_await(ant, "exited", "job=killed result=failure signal=9");
    TEST_INT(berth(ant, "start missing --wait"), 125);
    host_await(ant, "exited", "job=missing result=not-started");
    c = berth_start(ant, "start long --wait");
    host_await(ant, "started", "job=long"); /* before its command has begun, a timeout ends it without a signal */
    host_clock_jump(ant, 10 * USEC_PER_SEC);
    CU_ASSERT(child_await(c, HOST_PATIENCE));
    TEST_STRING(child_text(c, 2), "berth: long: timeout (signal 15)\n");
    TEST_INT(berth_end(c), 124);
    host_await(ant, "stopping", "job=long");
    host_await(ant, "exited", "job=long result=timeout");
    TEST_INT(berth(ant, "pause db"), 0);
    TEST_INT(berth(ant, "start late --wait"), 75);
    host_await(ant, "withdrawn", "job=late result=queue-timeout");
}

#define RARE "job \"rare\" { command = {\"/bin/true\"} every = \"1h\" }\n"

static void at_start_and_every(void) {
    struct witness w = {0};
    usec_t begun;

    ant = host_up("ant", POOLS RARE "job \"once\" { %s at-start = true pools = {\"disk\"} }\n", witness_command("--id once"));
    host_await(ant, "exited", "job=once result=success");
    host_await(ant, "exited", "job=rare result=success");
    host_kill(ant);
    host_start(ant); /* a restart of berthd is not a start of the service */
    host_await(ant, "redis-connected", " ");
    host_set_config(ant, POOLS RARE "job \"often\" { %s every = \"200ms\" }\njob \"late\" { command = {\"/bin/true\"} at-start = true }\n",
                    witness_command("--id often"));
    begun = clock_boottime();
    TEST_INT(berth(ant, "reload"), 0);
    host_await_count(ant, 4, "exited", "job=often");
    TEST_INT(host_count(ant, "started", "job=once"), 0);
    host_kill(ant); /* a job that a reload brought does not start, neither at the reload nor now */
    TEST_INT(host_count(ant, "started", "job=late"), 0);
    host_start(ant);
    host_await(ant, "redis-connected", " ");
    host_await(ant, "exited", "job=often");
    TEST_INT(host_count(ant, "started", "job=late"), 0);
    TEST_INT(host_count(ant, "started", "job=rare"), 0);
    witness_read(&w, cluster.witness);
    TEST_INT(witness_count(&w, "once"), 1);
    CU_ASSERT(witness_count(&w, "often") <= (clock_boottime() - begun) / (200 * USEC_PER_MSEC) + 1);
    witness_done(&w);
    host_stop(ant); /* a stop of the service: its next start counts */
    host_start(ant);
    host_await(ant, "redis-connected", " ");
    host_await(ant, "exited", "job=late result=success");
}

static void overlap_rules(void) {
    static char text[4096];
    size_t n = (size_t) snprintf(text, sizeof(text), POOLS);
    static const char *const rules[] = {"skip", "queue", "allow"};

    for (size_t i = 0; i < ELEMENTSOF(rules); i++)
        n += (size_t) snprintf(text + n, sizeof(text) - n, "job \"%s\" { %s overlap = \"%s\" }\n", rules[i],
                               witness_at_gate(rules[i], 0), rules[i]);
    ant = host_up("ant", "%s", text);
    for (size_t i = 0; i < ELEMENTSOF(rules); i++)
        for (size_t k = 0; k < 4; k++)
            (void) berth(ant, "start %s", rules[i]);
    witness_await_alive(cluster.witness, 1 + 1 + 4);
    test_gate_open(&cluster.gate);
    host_await(ant, "exited", "job=skip");
    host_await_count(ant, 2, "exited", "job=queue");
    host_await_count(ant, 4, "exited", "job=allow");
    TEST_INT(host_count(ant, "started", "job=skip"), 1);
    TEST_INT(host_count(ant, "skipped", "job=skip"), 3); /* berthd decides it; berth-runner would refuse, too */
    TEST_INT(host_count(ant, "started", "job=queue"), 2); /* one at most waits */
    TEST_INT(host_count(ant, "started", "job=allow"), 4);
}

/* A stop reaches the whole tree, also processes that ignore TERM or forked twice. */
static void stop_takes_the_whole_tree(void) {
    struct child *c, *next;
    uint64_t over;
    static char text[2048];
    size_t n;

    n = (size_t) snprintf(text, sizeof(text), POOLS "job \"deaf\" { %s pools = {\"db\"} stop-timeout = \"700ms\" }\n",
                          witness_command("--id deaf --ignore-term --for 60000"));
    n += (size_t) snprintf(text + n, sizeof(text) - n,
                           "job \"daemon\" { %s pools = {\"disk\"} stop-timeout = \"700ms\" stop-signal = \"INT\" }\n",
                           witness_command("--id daemon --child --for 60000"));
    snprintf(text + n, sizeof(text) - n, "job \"orphan\" { %s stop-timeout = \"700ms\" }\n",
             witness_command("--id orphan --child --ignore-term --for 60000"));
    ant = host_up("ant", "%s", text);
    c = berth_start(ant, "start deaf --wait");
    witness_await_start(cluster.witness, "deaf");
    next = berth_start(ant, "run -p db --name next -- true");
    host_await(ant, "queued", "job=next");
    TEST_INT(berth(ant, "start daemon orphan"), 0);
    witness_await_start(cluster.witness, "orphan");
    witness_await_start(cluster.witness, "daemon");
    host_await(ant, "started", "job=daemon");
    TEST_INT(host_count(ant, "exited", "job=daemon"), 0); /* its first process has gone, the other one has not */
    TEST_INT(berth(ant, "stop deaf daemon orphan"), 0);
    host_await(ant, "stopping", "job=deaf");
    over = event_get_u64(host_await(ant, "exited", "job=deaf result=stopped"), "seq");
    CU_ASSERT(event_get_u64(host_await(ant, "granted", "job=next"), "seq") > over); /* its permits stay until its last process is gone */
    TEST_INT(berth_end(next), 0);
    host_await(ant, "exited", "job=daemon result=stopped");
    host_await(ant, "exited", "job=orphan result=stopped");
    TEST_INT(witness_count_alive(cluster.witness), 0);
    TEST_INT(berth_end(c), 137);
    {
        struct witness w = {0};

        witness_read(&w, cluster.witness);
        TEST_INT(witness_find(&w, "deaf")->n_ignored, 1);
        TEST_INT(witness_find(&w, "daemon")->signal, 2);
        TEST_INT(witness_find(&w, "orphan")->n_ignored, 1);
        witness_done(&w);
    }
    TEST_INT(berth(ant, "stop deaf"), 0); /* nothing to stop is no error */
}

/* What went wrong elsewhere: dagster-io/dagster#28456. */
static void stop_of_a_waiting_run(void) {
    struct child *holder, *waiter;

    ant = host_up("ant", POOLS "job \"waits\" { %s pools = {\"db\"} }\n", witness_at_gate("waits", 0));
    holder = berth_at_gate(ant, "-p db", "holder", "started");
    waiter = berth_start(ant, "start waits --wait");
    host_await(ant, "queued", "job=waits");
    TEST_INT(berth(ant, "stop waits"), 0);
    host_await(ant, "withdrawn", "job=waits result=stopped");
    TEST_INT(berth_end(waiter), 75);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
}

static void stop_of_berthd_stops_its_jobs(void) {
    ant = host_up("ant", POOLS "job \"one\" { %s pools = {\"db\"} }\n", witness_command("--id one --for 60000"));
    TEST_INT(berth(ant, "start one"), 0);
    witness_await_alive(cluster.witness, 1);
    host_stop(ant);
    host_await(ant, "stopping-daemon", " ");
    host_await(ant, "exited", "job=one result=stopped");
    host_await(ant, "released", "job=one");
    TEST_INT(witness_count_alive(cluster.witness), 0);
}

/* What went wrong elsewhere: dkron-io/dkron#1202. */
static void environment_and_output(void) {
    char text[8192] = "";
    const char *first;
    char path[64];
    FILE *f;

    ant = host_up("ant",
                  POOLS "job \"env\" { command = {\"/bin/sh\", \"-c\", 'env; pwd; umask; ls /proc/self/fd | wc -l; echo mine >&2'} "
                        "pools = {\"db\", \"disk\"} "
                        "environment = {\"MINE=yes\"} directory = \"/usr\" umask = \"077\" output = \"%s/out\" }\n",
                  cluster.folder);
    TEST_INT(berth(ant, "start env --wait"), 0);
    TEST_INT(berth(ant, "start env --wait"), 0);
    snprintf(path, sizeof(path), "%s/out", cluster.folder);
    f = fopen(path, "re");
    TEST_FATAL(f != NULL, "no output");
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    CU_ASSERT(strstr(text, "BERTH_JOB=env\n") && strstr(text, "BERTH_HOST=ant\n") && strstr(text, "BERTH_NAMESPACE=test\n"));
    first = strstr(text, "BERTH_JOB=env\n");
    CU_ASSERT(first && strstr(first + 1, "BERTH_JOB=env\n")); /* the second run's is appended */
    CU_ASSERT(strstr(text, "BERTH_POOLS=db:1,disk:1\n") && strstr(text, "BERTH_TOKEN=1") && strstr(text, "BERTH_RUN="));
    CU_ASSERT(strstr(text, "MINE=yes\n") && strstr(text, "HOME=/") && strstr(text, "PATH=/"));
    CU_ASSERT(!strstr(text, "BERTH_BUILD") && !strstr(text, "ASAN_OPTIONS") && !strstr(text, "NO_COLOR"));
    CU_ASSERT(strstr(text, "\n/usr\n") && strstr(text, "0077\n") && strstr(text, "mine\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\n4\n")); /* 0, 1, 2 and the one that ls opened */
}

static void tells(const char *event, const char *job, const char *sentence) {
    const char *line = host_await(ant, event, "job=%s", job);
    char expected[256];

    snprintf(expected, sizeof(expected), "%s: %s %s job=", event, job, sentence);
    CU_ASSERT(strncmp(line, expected, strlen(expected)) == 0);
    if (strncmp(line, expected, strlen(expected)) != 0)
        printf("not \"%s\": %s\n", expected, line);
}

/* The messages that an operator reads in the journal. */
static void sentences_of_events(void) {
    struct child *c;

    ant = host_up("ant", POOLS "job \"flaky\" { command = {\"/bin/sh\", \"-c\", \"exit 3\"} output = \"null\" }\n"
                         "job \"broken\" { command = {\"/bin/sh\", \"-c\", \"kill -SEGV $$\"} output = \"null\" limits = {\"core=0\"} }\n"
                         "job \"missing\" { command = {\"/nonexistent/x\"} output = \"null\" }\n"
                         "job \"slow\" { command = {\"/bin/sleep\", \"1000\"} output = \"null\" timeout = \"100ms\" }\n"
                         "job \"stuck\" { command = {\"/bin/sleep\", \"1000\"} output = \"null\" }\n"
                         "job \"late\" { command = {\"/bin/true\"} output = \"null\" pools = {\"db\"} queue-timeout = \"100ms\" }\n");
    TEST_INT(berth(ant, "start flaky --wait"), 3);
    tells("exited", "flaky", "failed with exit status 3");
    TEST_INT(berth(ant, "start broken --wait"), 139);
    tells("exited", "broken", "was ended by signal 11, SIGSEGV");
    TEST_INT(berth(ant, "start missing --wait"), 125);
    tells("exited", "missing", "was not started: exec /nonexistent/x: No such file or directory");
    TEST_INT(berth(ant, "start slow --wait"), 124);
    tells("stopping", "slow", "is being stopped: it ran longer than its timeout");
    tells("exited", "slow", "was stopped: it ran longer than its timeout");
    TEST_INT(berth(ant, "start stuck"), 0);
    host_await(ant, "started", "job=stuck");
    TEST_INT(berth(ant, "stop stuck"), 0);
    tells("stopping", "stuck", "is being stopped: `berth stop` was called");
    tells("exited", "stuck", "was stopped: `berth stop` was called");
    c = berth_at_gate(ant, "-p db", "holder", "started");
    TEST_INT(berth(ant, "start late --wait"), 75);
    tells("withdrawn", "late", "waits no longer: it waited longer than its queue-timeout");
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(c), 0);
    tells("exited", "holder", "succeeded");
}

/* Each event has the fields that identify its run: the audit and operators have nothing else. */
static void events_tell(void) {
    const char *line;
    struct child *c;

    ant = host_up("ant", POOLS "job \"one\" { %s pools = {\"db\"} }\n", witness_at_gate("one", 0));
    TEST_INT(berth(ant, "start one"), 0);
    line = host_await(ant, "granted", "job=one pools=db:1");
    CU_ASSERT(event_get_u64(line, "token") > 0 && event_get_u64(line, "ticket") > 0 && strlen(event_get(line, "run")) == 32);
    CU_ASSERT(*event_get(line, "wait_ms") && event_get_u64(line, "wait_ms") < HOST_PATIENCE / USEC_PER_MSEC);
    host_await(ant, "started", "job=one pools=db:1");
    c = berth_start(ant, "run -p db --name two -- sh -c 'sleep 0.1; exit 2'");
    line = host_await(ant, "queued", "job=two pools=db:1 position=1");
    CU_ASSERT(event_get_u64(line, "ticket") > 0);
    TEST_INT(event_get_u64(line, "uid"), getuid());
    CU_ASSERT_STRING_NOT_EQUAL(event_get(line, "uid"), "");
    test_gate_open(&cluster.gate);
    line = host_await(ant, "exited", "job=one result=success exit_code=0");
    CU_ASSERT_STRING_NOT_EQUAL(event_get(line, "run_ms"), "");
    TEST_INT(berth_end(c), 2);
    line = host_await(ant, "exited", "job=two result=failure exit_code=2");
    CU_ASSERT(event_get_u64(line, "run_ms") >= 100 && event_get_u64(line, "token") > 0);
    host_await(ant, "released", "job=two pools=db:1");
}

/* `berth run` within a run that holds enough goes ahead under its permits; with more it must not wait without bound. */
static void nested_runs(void) {
    ant = host_up("ant", POOLS);
    TEST_INT(berth(ant, "run -p db -- %s/berth --socket %s run -p db -- true", cluster.build, ant->socket), 0);
    TEST_INT(berth(ant, "run -p db -- %s/berth --socket %s run -p disk -- true", cluster.build, ant->socket), 64);
    TEST_INT(berth(ant, "run -p db -- %s/berth --socket %s run -n -p disk -- true", cluster.build, ant->socket), 0);
    TEST_INT(berth(ant, "run -p db -- %s/berth --socket %s run --wait 5s -p disk -- sh -c 'exit 3'", cluster.build, ant->socket), 3);
    host_set_config(ant, "pool \"db\" { limit = 3 }\n");
    TEST_INT(berth(ant, "reload"), 0);
    host_await_pool(ant, "db", "limit", 3);
    TEST_INT(berth(ant, "run -p db:2 -- %s/berth --socket %s run -n -p db:2 -- true", cluster.build, ant->socket), 0);
    TEST_INT(berth(ant, "run -p db -- %s/berth --socket %s run -n -p db:3 -- true", cluster.build, ant->socket), 75); /* of its own */
    host_await_pool(ant, "db", "used", 0);
}

static void revoked_claim(void) {
    struct child *c;
    json_t *json;
    const char *claim;

    ant = host_up("ant", POOLS);
    c = berth_start(ant, "run -p db -- %s --for 60000", cluster.command);
    host_await(ant, "started", " ");
    json = berth_json(ant, "pools db");
    claim = json_string_value(berth_at(json, "pools.0.holders.0.claim"));
    TEST_FATAL(claim != NULL, "no holder");
    TEST_INT(berth(ant, "revoke %s --reason 'needed elsewhere'", claim), 0);
    json_decref(json);
    host_await(ant, "revoked", " ");
    TEST_INT(berth_end(c), 143);
    host_await_pool(ant, "db", "used", 0);
}

/* A job that waits is withdrawn when its definition is gone, at a reload or while berthd is down. */
static void removed_while_it_waits(void) {
    struct child *c;

    ant = host_up("ant", POOLS WAITS("a") WAITS("b"));
    c = berth_at_gate(ant, "-p db", "holder", "started");
    TEST_INT(berth(ant, "start a b"), 0);
    host_await(ant, "queued", "job=b");
    host_set_config(ant, POOLS WAITS("b"));
    TEST_INT(berth(ant, "reload"), 0);
    host_await(ant, "withdrawn", "job=a result=stopped");
    host_kill(ant);
    host_set_config(ant, POOLS);
    host_start(ant);
    host_await(ant, "withdrawn", "job=b result=stopped");
    host_await_pool(ant, "db", "waiting", 0);
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(c), 0);
}

static CU_TestInfo tests[] = {
    {"manual start", manual_start},
    {"unbounded", unbounded},
    {"start --wait exits as the command did", wait_exits_as_the_command},
    {"at-start and every", at_start_and_every},
    {"overlap rules", overlap_rules},
    {"a stop takes the whole tree", stop_takes_the_whole_tree},
    {"stop of a waiting run", stop_of_a_waiting_run},
    {"a job that is removed while it waits", removed_while_it_waits},
    {"a stop of berthd stops its jobs", stop_of_berthd_stops_its_jobs},
    {"environment and output", environment_and_output},
    {"sentences of events", sentences_of_events},
    {"events tell", events_tell},
    {"nested runs", nested_runs},
    {"revoke", revoked_claim},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "jobs", .pSetUpFunc = cluster_up_patient, .pTearDownFunc = cluster_down,
             .pTests = tests});
