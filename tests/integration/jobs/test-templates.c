/* SPDX-License-Identifier: MIT */

/* Templates and parameters as users see them. Values of `berth start --set` and of a schedule reach the
 * environment of the command and nothing else. berth refuses wrong ones. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/host/host-clock.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

static struct host *ant;
static char output[80]; /* path of the file that the commands write to */

#define PRINTS                                                                                              \
    "command = {\"/bin/sh\", \"-c\", 'printf \"<%%%%s>\" \"$0\" \"$TABLE\" \"$NOTE\" \"$BERTH_INSTANCE\" "  \
    ">>\"$OUT\"', \"%%i\"} "
#define PLAIN "command = {\"/bin/sh\", \"-c\", 'printf \"<%%s>\" \"$TABLE\" \"$NOTE\" >>\"$OUT\"'} "

static void up(void) {
    int fd;

    cluster_up_without_redis();
    snprintf(output, sizeof(output), "%s/output", cluster.folder);
    fd = open(output, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    close_fd(fd);
    ant = host_add_alone(
        "ant",
        "job \"copy@\" { instances = {\"db1\", \"db2\"} " PRINTS
        "environment = {\"OUT=%s\", \"NOTE=of %%i\"} parameters = {\"TABLE=users|orders\", \"NOTE\"} }\n"
        "job \"wait@\" { instances = {\"a\", \"b\"} command = {\"/bin/sleep\", \"1000\"} }\n"
        "job \"daily\" { " PLAIN
        "environment = {\"OUT=%s\", \"NOTE=none\"} parameters = {\"TABLE=~[a-z]+\", \"NOTE\"}\n"
        "  schedule = {\"0 2 * * * TABLE=users\", \"0 3 * * * TABLE=orders NOTE=$(id)\"} zone = \"UTC\" }\n"
        "job \"twice\" { command = {\"/bin/sh\", \"-c\", 'printf \"<%%s>\" \"$BERTH_ATTEMPT$TABLE\" "
        ">>\"$OUT\"; exit 1'} environment = {\"OUT=%s\"}\n"
        "  parameters = {TABLE} retry = 1 retry-delay = \"10ms\" }\n"
        "job \"hooked@\" { instances = {\"x\"} command = {\"/bin/false\"} on-failure = {\"hook@%%i\"} }\n"
        "job \"hook@\" { instances = {\"x\"} command = {\"/bin/sh\", \"-c\", 'printf \"<%%%%s>\" "
        "\"$BERTH_OF_JOB $BERTH_OF_INSTANCE\" >>\"$OUT\"'}"
        " environment = {\"OUT=%s\"} }\n",
        output, output, output, output);
    host_clock_give(ant);
    host_start(ant);
}

static const char *read_output(void) {
    static char text[4096];
    FILE *f = fopen(output, "re");
    size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

    text[n] = '\0';
    if (f)
        (void) fclose(f);
    return text;
}

static void instances(void) {
    TEST_INT(berth(ant, "start copy@db1 --set TABLE=users --wait"), 0);
    TEST_INT(berth(ant, "start copy@db2 --set TABLE=orders --set 'NOTE=$(id); rm -rf / \"`x`' --wait"), 0);
    TEST_STRING(read_output(), "<db1><users><of db1><db1><db2><orders><$(id); rm -rf / \"`x`><db2>");
}

static void refused_with(const char *words, int status, const char *expected) {
    TEST_INT(berth(ant, "start %s", words), status);
    if (strncmp(berth_err, expected, strlen(expected)) != 0)
        TEST_STRING(berth_err, expected);
}

/* S28 and S29: `berth` and berthd check parameters. The third check is the runner's. */
static void refused(void) {
    char words[1200] = "copy@db1 --set TABLE=users --set NOTE=";
    size_t n = strlen(words);

    refused_with("copy@db1", 64, "berth: job \"copy@db1\" needs --set TABLE=...\n");
    refused_with("copy@db1 --set TABEL=users", 64,
                 "berth: job \"copy@db1\" has no parameter \"TABEL\"; did you mean \"TABLE\"?\n");
    refused_with("copy@db1 --set TABLE=user", 64, "berth: TABLE must be one of users, orders\n");
    refused_with("copy@db1 --set TABLE=users --set LD_PRELOAD=/x", 64,
                 "berth start: --set LD_PRELOAD would let a caller run anything");
    refused_with("copy@db1 --set TABLE=users --set TABLE=users", 64,
                 "berth start: --set TABLE is given twice");
    refused_with("copy@db1 --set TABLE", 64, "berth start: --set \"TABLE\" is not NAME=VALUE");
    refused_with("'copy@db1' --set TABLE=users --set 'NOTE=\303\274'", 64,
                 "berth start: --set NOTE: the value is not printable ASCII");
    memset(words + n, 'x', 1025);
    words[n + 1025] = '\0';
    refused_with(words, 64, "berth start: --set NOTE: the value is longer than 1024 bytes");
    refused_with("wait@a --set X=1", 64, "berth: job \"wait@a\" has no parameter \"X\"\n");
    /* No job starts unless all of them have the parameter. */
    refused_with("copy@db1 wait@a --set TABLE=users", 64,
                 "berth: job \"wait@a\" has no parameter \"TABLE\"\n");
    refused_with("copy@../x", 64, "berth start: the name of a job has a character that is not one of");
    refused_with("copy@-rf", 64, "berth start: the name of a job begins with '.' or '-'");
    refused_with("copy@.", 64, "berth start: the name of a job begins with '.' or '-'");
    refused_with("copy@a@b", 64, "berth start: the name of a job has a character that is not one of");
    refused_with("copy@xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 64,
                 "berth start: the name of a job is longer than 64 characters");
    refused_with("copy@", 65, "berth: no such job: copy@ (known: copy@db1, copy@db2)\n");
    refused_with("copy@db3", 65,
                 "berth: no such job: copy@db3 (did you mean \"copy@db1\"? known: copy@db1, copy@db2)\n");
    TEST_STRING(read_output(), "");
    TEST_INT(host_count(ant, "queued", "job=copy@db1"), 0);
}

/* The schedule entry that is due sets the parameters, also after berthd was killed in between. */
static void by_schedule(void) {
    host_clock_set(ant, "2027-05-01T01:59:58Z", 0);
    host_await(ant, "exited", "job=daily due=2027-05-01T02:00:00+00:00 result=success");
    host_kill(ant);
    host_clock_set(ant, "2027-05-01T03:00:01Z", 0);
    host_start(ant);
    host_await(ant, "exited", "job=daily due=2027-05-01T03:00:00+00:00 result=success");
    TEST_STRING(read_output(), "<users><none><orders><$(id)>");
}

static void retried(void) {
    json_t *runs;

    TEST_INT(berth(ant, "start twice --set TABLE=x --wait"), 1);
    TEST_STRING(read_output(), "<1x><2x>");
    runs = berth_json(ant, "runs --all");
    AT_STRING(runs, "runs.0.set.TABLE", "x");
    AT_STRING(runs, "runs.1.set.TABLE", "x");
    AT_NULL(runs, "runs.0.instance");
    json_decref(runs);
}

static void of_hooks(void) {
    TEST_INT(berth(ant, "start hooked@x --wait"), 1);
    host_await(ant, "exited", "job=hook@x result=success");
    TEST_STRING(read_output(), "<hooked@x x>");
}

/* The name of a template stands for all its instances. */
static void all_of_a_template(void) {
    json_t *json;

    TEST_INT(berth(ant, "start wait@a wait@b"), 0);
    host_await(ant, "started", "job=wait@a");
    host_await(ant, "started", "job=wait@b instance=b");
    json = berth_json(ant, "runs");
    AT_STRING(json, "runs.name=wait@a.instance", "a");
    json_decref(json);
    json = berth_json(ant, "jobs wait@");
    AT_STRING(json, "jobs.0.name", "wait@a");
    AT_STRING(json, "jobs.0.instance_of", "wait@");
    AT_STRING(json, "jobs.1.name", "wait@b");
    CU_ASSERT_PTR_NULL(berth_at(json, "jobs.2"));
    json_decref(json);
    TEST_INT(berth(ant, "stop wait@"), 0);
    host_await(ant, "exited", "job=wait@a result=stopped instance=a");
    host_await(ant, "exited", "job=wait@b result=stopped");
    TEST_INT(berth(ant, "stop wait@"), 0);
    TEST_STRING(berth_err, "berth: wait@: nothing to stop\n");
    TEST_INT(berth(ant, "stop nothing@"), 65);
    TEST_INT(berth(ant, "jobs nothing@"), 65);
    TEST_INT(berth(ant, "jobs wait@c"), 65);
}

/* --- instances that the template does not list --- */

static struct host *bee;

static const char *open_config(const char *more) {
    static char text[2048];

    snprintf(
        text, sizeof(text),
        "pool \"t/*\" { limit = 1 scope = host }\n"
        "job \"open@\" { open-instances = true instances = {listed} pools = {\"t/%%i\"} parameters = "
        "{SLEEP} "
        "overlap = queue output = \"null\" environment = {\"OUT=%s\", \"SLEEP=0\"} on-failure = {told}\n"
        "  command = {\"/bin/sh\", \"-c\", 'printf \"<%%%%s>\" \"$BERTH_INSTANCE\" >>\"$OUT\"; exec sleep "
        "$SLEEP'} %s }\n"
        "job \"again@\" { open-instances = true command = {\"/bin/false\"} retry = 1 retry-delay = 15m }\n"
        "job \"pool@\" { open-instances = true command = {\"/bin/true\"} pools = {\"%%i\"} }\n"
        "job told { command = {\"/bin/true\"} }\n",
        output, more);
    return text;
}

static void open_up(void) {
    int fd;

    cluster_up_without_redis();
    snprintf(output, sizeof(output), "%s/output", cluster.folder);
    fd = open(output, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    close_fd(fd);
    bee = host_add_alone("bee", "%s", open_config(""));
    host_start(bee);
}

static bool is_known(const char *job) {
    json_t *json = berth_json(bee, "jobs");
    char path[80];
    bool is_there;

    snprintf(path, sizeof(path), "jobs.name=%s.name", job);
    is_there = berth_at(json, path) != NULL;

    json_decref(json);
    return is_there;
}

static void open_started(void) {
    TEST_INT(berth(bee, "start open@db9 open@listed --wait"), 0);
    TEST_INT(berth(bee, "start open@db9 --set SLEEP=x --wait"), 1);
    host_await(bee, "exited", "job=open@db9 instance=db9 result=failure");
    host_await(bee, "exited", "job=told result=success");
    CU_ASSERT(is_known("open@db9"));
    TEST_INT(berth(bee, "start open@"), 65);
    TEST_STRING(berth_err, "berth: no such job: open@ (known: open@listed, open@db9)\n");
    TEST_INT(berth(bee, "start again@"), 65);
    TEST_STRING(berth_err,
                "berth: no such job: again@ (a template; name an instance, such as again@NAME)\n");
    TEST_INT(berth(bee, "stop open@new"), 0);
    TEST_STRING(berth_err, "berth: open@new: nothing to stop\n");
    TEST_INT(berth(bee, "stop again@"), 0);
    TEST_INT(berth(bee, "start open@-rf"), 64);
    TEST_INT(berth(bee, "start open@x --set X=1"), 64);
    TEST_STRING(berth_err, "berth: job \"open@x\" has no parameter \"X\"\n");
    CU_ASSERT(!is_known("open@x"));
    TEST_INT(berth(bee, "start pool@none"), 64);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(berth_err, ": job \"pool@none\": pools \"none\" names a pool that is not defined; "));
}

/* Returns the id of the job's running run. */
static const char *running_run(const char *job) {
    static char run[40];
    json_t *json = berth_json(bee, "runs"), *list = berth_at(json, "runs"), *item;
    size_t i;

    snprintf(run, sizeof(run), "?");
    json_array_foreach (list, i, item)
        if (strcmp(json_string_value(json_object_get(item, "name")), job) == 0 &&
            strcmp(json_string_value(json_object_get(item, "state")), "running") == 0)
            snprintf(run, sizeof(run), "%s", json_string_value(json_object_get(item, "run")));
    json_decref(json);
    return run;
}

/* An instance that runs, waits or retries outlives berthd. Other open instances are forgotten with their
 * runs. */
static void open_recovered(void) {
    const char *run;
    char left[128]; /* the record of an instance without a run */
    int fd;

    TEST_INT(berth(bee, "start open@over --wait"), 0);
    TEST_INT(berth(bee, "start open@runs --set SLEEP=1000"), 0);
    host_await(bee, "started", "job=open@runs");
    TEST_INT(berth(bee, "start open@runs --set SLEEP=0"), 0);
    TEST_INT(berth(bee, "start again@x"), 0);
    host_await(bee, "retry", "job=again@x attempt=2");
    TEST_INT(berth(bee, "start open@alone --set SLEEP=1000"), 0);
    host_await(bee, "started", "job=open@alone");
    host_mark(bee);
    host_kill(bee);
    snprintf(left, sizeof(left), "%s/jobs/open@left", bee->runtime);
    fd = open(left, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CU_ASSERT(fd >= 0 && close(fd) == 0);
    host_start(bee);
    CU_ASSERT(is_known("open@alone"));
    TEST_INT(access(left, F_OK), -1);
    TEST_INT(berth(bee, "stop open@alone"), 0);
    host_await(bee, "exited", "job=open@alone result=stopped");
    CU_ASSERT(is_known("open@runs") && is_known("again@x") && !is_known("open@over"));
    TEST_INT(berth(bee, "stop again@x"), 0);
    host_await(bee, "gave-up", "job=again@x reason=stopped");
    run = running_run("open@runs");
    TEST_INT(berth(bee, "stop %s", run), 0);
    host_await(bee, "exited", "job=open@runs result=stopped");
    host_await(bee, "exited", "job=open@runs result=success");
    TEST_STRING(read_output(), "<over><runs><alone><runs>");
}

static void open_reloaded(void) {
    TEST_INT(berth(bee, "start open@a --wait"), 0);
    TEST_INT(berth(bee, "start open@b --set SLEEP=1000"), 0);
    TEST_INT(berth(bee, "start open@listed --set SLEEP=1000"), 0);
    host_await(bee, "started", "job=open@b");
    host_await(bee, "started", "job=open@listed");
    host_set_config(bee, "%s", open_config("description = other"));
    TEST_INT(berth(bee, "reload"), 0);
    CU_ASSERT(is_known("open@a") && is_known("open@b"));
    TEST_INT(berth(bee, "start open@b --set SLEEP=0"), 0); /* queued behind its running run */
    TEST_INT(berth(bee, "start open@a --wait"), 0);
    host_set_config(bee, "pool p { limit = 1 scope = host }\njob told { command = {\"/bin/true\"} }\n");
    TEST_INT(berth(bee, "reload"), 0);
    CU_ASSERT(!is_known("open@a") && !is_known("open@b"));
    host_await(bee, "withdrawn", "job=open@b result=stopped");
    TEST_INT(berth(bee, "start open@a"), 65);
    TEST_INT(berth(bee, "stop %s", running_run("open@b")), 0);
    host_await(bee, "exited", "job=open@b result=stopped");
    TEST_INT(berth(bee, "stop %s", running_run("open@listed")), 0);
    host_await(bee, "exited", "job=open@listed result=stopped");
}

static void open_full(void) {
    char text[16384];
    size_t n = (size_t) snprintf(text, sizeof(text),
                                 "pool p { limit = 1 scope = host }\njob \"f@\" { open-instances = true "
                                 "command = {\"/bin/true\"} instances = {i0");

    for (int i = 1; i < 999; i++)
        n += (size_t) snprintf(text + n, sizeof(text) - n, ",i%d", i);
    snprintf(text + n, sizeof(text) - n, "} }\n");
    host_set_config(bee, "%s", text);
    TEST_INT(berth(bee, "reload"), 0);
    TEST_INT(berth(bee, "start f@x --wait"), 0);
    TEST_INT(berth(bee, "start f@y"), 75);
    TEST_STRING(berth_err, "berth: no permit: f@ has 1000 instances, which is the most; one without a run "
                           "in `berth runs --all` is forgotten\n");
    TEST_INT(berth(bee, "start f@x --wait"), 0);
    TEST_INT(berth(bee, "start f@i0 --wait"), 0); /* berth-runner has forgotten the run of f@x before it starts this one */
    host_kill(bee);
    host_start(bee);
    TEST_INT(berth(bee, "start f@y --wait"), 0);
}

static CU_TestInfo tests[] = {
    {"instances", instances}, {"refused", refused},   {"by schedule", by_schedule},
    {"retried", retried},     {"of hooks", of_hooks}, {"all of a template", all_of_a_template},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo open_tests[] = {
    {"open started", open_started},
    {"open recovered", open_recovered},
    {"open reloaded", open_reloaded},
    {"open full", open_full},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "templates", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests},
            {.pName = "open", .pSetUpFunc = open_up, .pTearDownFunc = cluster_down, .pTests = open_tests});
