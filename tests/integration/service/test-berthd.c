/* SPDX-License-Identifier: MIT */

/* Command line of berthd: --check, warnings about a config, and closed standard descriptors. */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 1 }\npool \"disk\" { limit = 1 scope = \"host\" }\n"

static struct host *ant;

static void expect_status(int status, const char *words, const char *output) {
    char shell[] = "sh", flag[] = "-c", command[512];
    char *argv[] = {shell, flag, command, NULL};

    (void) snprintf(command, sizeof(command), "exec %s/%s >%s", cluster.build, words, output);
    TEST_INT(berth_end(child_start(argv, NULL)), status);
}

/* Each program fails if it cannot write its output, also if standard output is closed. */
static void writes_to_a_full_disk(void) {
    static const char *const programs[] = {"berth", "berthd", "berth-runner", "berth-web"};
    char words[256];

    ant = host_add("ant", POOLS);
    for (size_t i = 0; i < ELEMENTSOF(programs); i++)
        for (const char *option = "version"; option; option = *option == 'v' ? "help" : NULL) {
            (void) snprintf(words, sizeof(words), "%s --%s", programs[i], option);
            expect_status(0, words, "/dev/null");
            expect_status(70, words, "/dev/full");
        }
    (void) snprintf(words, sizeof(words), "berthd --check --config %s", ant->config);
    expect_status(0, words, "/dev/null");
    expect_status(70, words, "/dev/full");
    expect_status(70, "berth --version", "&-");
    (void) snprintf(words, sizeof(words), "berth --socket %s reload", ant->socket);
    expect_status(69, words, "&-"); /* prints nothing there */
    host_start(ant);
    expect_status(0, words, "&-");
}

/* Runs `berthd --check` with the config of ant. It must end with this status and print this text. */
static void check_config(int status, const char *text) {
    char program[300], check[] = "--check", option[] = "--config";
    char *argv[] = {program, check, option, ant->config, NULL};
    struct child *c;

    snprintf(program, sizeof(program), "%s/berthd", cluster.build);
    c = child_start(argv, NULL);
    CU_ASSERT(child_await(c, HOST_PATIENCE));
    TEST_INT(c->exit_code, status);
    CU_ASSERT_PTR_NOT_NULL(strstr(child_text(c, 2), text));
    child_free(c);
}

/* A check names missing programs. berthd accepts the config: the other jobs run, and the event of a broken
 * job has the reason. */
static void check_of_commands(void) {
    char expected[256];

    ant = host_up("ant", POOLS "\njob \"gone\" { command = {\"/no/such/program\"} output = \"null\" }\n"
                         "job \"one\" { command = {\"/bin/true\"} output = \"null\" }\n"
                         "job \"blind\" { script = \"true\" environment-file = {\"/no/such/file\"} output = \"null\" }\n");
    TEST_INT(berth(ant, "check-config %s", ant->config), 78);
    snprintf(expected, sizeof(expected), ": job \"gone\": command \"/no/such/program\" does not exist; install it, or correct the path\n");
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, expected));
    CU_ASSERT(strncmp(berth_err, ant->config, strlen(ant->config)) == 0 && berth_err[strlen(ant->config)] == ':');
    check_config(78, expected);
    TEST_INT(berth(ant, "start one --wait"), 0);
    TEST_INT(berth(ant, "start gone --wait"), 125);
    TEST_STRING(event_get(host_await(ant, "exited", "job=gone result=not-started"), "reason"), "exec /no/such/program: No such file or directory");
    TEST_INT(berth(ant, "start blind --wait"), 125);
    TEST_STRING(event_get(host_await(ant, "exited", "job=blind result=not-started"), "reason"),
                "environment-file /no/such/file: No such file or directory");
}

/* Each way to read a config warns of a password that crosses a network unencrypted. 0.0.0.0 leads to this host, but berth cannot
 * know that of an address. */
static void cleartext(void) {
    static const char warning[] = ": warning: redis: the password goes to 0.0.0.0 unencrypted";

    ant = host_add_alone("ant", "redis { url = \"redis://bob@0.0.0.0:1\" }\n");
    TEST_INT(berth(ant, "check-config %s", ant->config), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, warning));
    check_config(0, warning);
    host_start(ant);
    CU_ASSERT_PTR_NOT_NULL(strstr(host_log(ant), warning));
}

/* The caller of berthd may have closed 0, 1 and 2: no socket of berthd must get these numbers, because
 * berthd and its runner write messages there. */
static void closed_standard_descriptors(void) {
    char shell[] = "sh", flag[] = "-c", command[512], path[64], target[64];
    char *argv[] = {shell, flag, command, NULL};
    usec_t until = clock_boottime() + HOST_PATIENCE;
    struct child *c;

    ant = host_add_alone("ant", "job \"one\" { command = {\"/bin/sh\", \"-c\", \"exit 3\"} output = \"null\" }\n");
    snprintf(command, sizeof(command), "exec %s/berthd --with-runner -c %s <&- >&- 2>&-", cluster.build, ant->config);
    c = child_start(argv, NULL);
    while (berth(ant, "runs") != 0 && clock_boottime() < until)
        ;
    TEST_INT(berth(ant, "start one --wait"), 3);
    for (int fd = 0; fd <= 2; fd++) {
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) c->pid, fd);
        n = readlink(path, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        TEST_STRING(target, "/dev/null");
    }
    child_kill(c, SIGTERM);
    TEST_INT(berth_end(c), 0);
}

static CU_TestInfo tests[] = {
    {"output to a full disk", writes_to_a_full_disk},
    {"check of commands", check_of_commands},
    {"cleartext", cleartext},
    {"closed standard descriptors", closed_standard_descriptors},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "berthd", .pSetUpFunc = cluster_up_patient, .pTearDownFunc = cluster_down,
             .pTests = tests});
