/* SPDX-License-Identifier: MIT */
/* Names and ids on command lines: which run they mean, and that a verb checks all of them before it acts. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/host/host.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

#define CONFIG                                                                                             \
    "pool \"db\" { limit = 4 }\n"                                                                          \
    "pool \"net\" { limit = 1 }\n"                                                                         \
    "pool \"tenant/*\" { limit = 1 }\n"                                                                    \
    "job \"quick\" { command = {\"/bin/true\"} }\n"                                                        \
    "job \"slow\" { command = {\"/bin/sleep\", \"1000\"} pools = {\"net\"} stop-timeout = \"1s\" }\n"

#define GREEN "\033[38;5;28m"
#define NOTICE "\033[38;5;130m"
#define RED "\033[38;5;196m"

static struct host *ant;

static void up(void) {
    cluster_up_patient();
    ant = host_up("ant", CONFIG);
}

/* Starts a `berth run` with this label; ret: its id. */
static struct child *run_as(const char *label, char ret[static 40]) {
    struct child *c;

    host_mark(ant);
    c = berth_start(ant, "run -p db --name %s -- sleep 1000", label);
    snprintf(ret, 40, "%s", event_get(host_await(ant, "started", "job=%s", label), "run"));
    return c;
}

static void test_label(void) {
    char a[40], b[40];
    struct child *first = run_as("import", a), *second;

    TEST_INT(berth(ant, "stop import"), 0);
    TEST_INT(berth_end(first), 143);
    host_await(ant, "released", "job=import");
    TEST_INT(berth(ant, "stop import"), 65); /* it is over */
    first = run_as("import", a);
    second = run_as("import", b);
    TEST_INT(berth(ant, "stop import"), 65);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "berth: import matches several runs, give more digits:\n"));
    CU_ASSERT(strstr(berth_err, a) != NULL && strstr(berth_err, b) != NULL);
    TEST_INT(host_count(ant, "stopping", "job=import"), 0);
    TEST_INT(berth(ant, "stop %.10s", b), 0);
    TEST_INT(berth_end(second), 143);
    TEST_INT(berth(ant, "stop import"), 0); /* one is left */
    TEST_INT(berth_end(first), 143);
}

static void test_id(void) {
    char a[40], b[40], config[600];
    struct child *first = run_as("one", a), *second;

    TEST_INT(berth(ant, "stop %.3s", a), 65); /* too short to be an id */
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "no such job"));
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "; a run needs 4 digits at least\n"));
    TEST_INT(berth(ant, "stop 0000ffff0000"), 65);
    TEST_STRING(berth_err, "berth: no such run: 0000ffff0000\n");
    TEST_INT(berth(ant, "runs %.8s", a), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, a));

    /* A label that is another run's id stops neither, whoever chose it. */
    a[8] = '\0';
    second = run_as(a, b);
    TEST_INT(berth(ant, "stop %s", a), 65);
    CU_ASSERT(strstr(berth_err, a) != NULL && strstr(berth_err, b) != NULL);
    TEST_INT(berth(ant, "stop %s", b), 0);
    TEST_INT(berth_end(second), 143);

    /* The name of a job wins. */
    snprintf(config, sizeof(config), "%sjob \"%s\" { command = {\"/bin/true\"} }\n", CONFIG, a);
    host_set_config(ant, "%s", config);
    TEST_INT(berth(ant, "reload"), 0);
    TEST_INT(berth(ant, "stop %s", a), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "nothing to stop"));
    host_set_config(ant, CONFIG);
    TEST_INT(berth(ant, "reload"), 0);
    TEST_INT(berth(ant, "stop %s", a), 0);
    TEST_INT(berth_end(first), 143);
    TEST_INT(berth(ant, "stop %s", a), 0); /* it is known as long as `berth runs --all` has it */
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "nothing to stop"));
}

static void test_lists(void) {
    char a[40];
    struct child *one;

    host_mark(ant);
    TEST_INT(berth(ant, "start quick -- arg"), 65);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_err, "no such job: arg"));
    TEST_STRING(berth_out, "");
    TEST_INT(berth(ant, "start quick slow nope"), 65);
    one = run_as("one", a);
    TEST_INT(berth(ant, "start quick one"), 65);
    TEST_STRING(berth_err, "berth: one: a run, not a job; nothing was started\n");
    TEST_INT(berth(ant, "stop one nope"), 65);
    TEST_INT(berth(ant, "pause db nope"), 65);
    TEST_INT(host_pool(ant, "db", "limit"), 4);
    TEST_INT(berth(ant, "pause db"), 0);
    TEST_INT(berth(ant, "resume db nope"), 65);
    TEST_INT(host_pool(ant, "db", "limit"), 0);
    TEST_INT(host_count(ant, "started", "job=quick") + host_count(ant, "started", "job=slow"), 0);
    TEST_INT(host_count(ant, "exited", "job=one"), 0);
    TEST_INT(berth(ant, "start quick slow"), 0);
    host_await(ant, "exited", "job=quick");
    TEST_INT(berth(ant, "stop one slow"), 0);
    TEST_INT(berth_end(one), 143);
    host_await(ant, "exited", "job=slow");
}

/* `berth runs` shows the named runs. */
static void test_runs(void) {
    char a[40], b[40];
    struct child *one = run_as("one", a), *two = run_as("two", b);
    json_t *json = berth_json(ant, "runs two");

    TEST_INT(json_array_size(berth_at(json, "runs")), 1);
    AT_STRING(json, "runs.0.run", b);
    json_decref(json);
    json = berth_json(ant, "runs two %.6s", a);
    TEST_INT(json_array_size(berth_at(json, "runs")), 2);
    json_decref(json);
    TEST_INT(berth(ant, "runs two nope"), 65);
    TEST_STRING(berth_out, "");
    TEST_STRING(berth_err, "berth: no such run: nope (`berth runs --all` and `berth history` list them)\n");
    TEST_INT(berth(ant, "stop one two"), 0);
    TEST_INT(berth_end(one), 143);
    TEST_INT(berth_end(two), 143);
}

/* `berth limit POOL` shows the limit. A pause with --for ends by itself. */
static void test_limit_shown(void) {
    struct host *bee = host_up("bee", "pool \"db\" { limit = 6 }\n");
    struct child *waiter;
    json_t *json;

    TEST_INT(berth(ant, "limit db"), 0);
    TEST_STRING(berth_out, "limit: 4\ndeclared: 4 by this host\ndeclared: 6 by bee\n");
    TEST_INT(berth(bee, "limit db"), 0);
    TEST_STRING(berth_out, "limit: 4\ndeclared: 6 by this host\ndeclared: 4 by ant\n");
    TEST_INT(berth(bee, "limit net"), 0);
    TEST_STRING(berth_out, "limit: 1\n");
    TEST_INT(berth(ant, "limit db 3 --reason 'slow disk'"), 0);
    TEST_INT(berth(bee, "limit db"), 0);
    TEST_STRING(berth_out, "limit: 3\noverride: 3 (slow disk)\ndeclared: 6 by this host\ndeclared: 4 by ant\n");
    TEST_INT(berth(ant, "limit nope"), 65);
    TEST_INT(berth(ant, "pause db net --for 1s"), 0);
    json = berth_json(ant, "pools db");
    AT_INT(json, "pools.0.limit", 0);
    CU_ASSERT(json_is_string(berth_at(json, "pools.0.override.until")));
    json_decref(json);
    waiter = berth_start(ant, "run -p db -p net -- true");
    TEST_INT(berth_end(waiter), 0);           /* the pause ended by itself */
    TEST_INT(host_pool(ant, "db", "limit"), 3); /* what the pause replaced */
}

/* Starts `berth pools` on a terminal of this kind and awaits its end. */
static struct child *show_pools(const char *kind, int *ret_master) {
    char program[256];
    char *argv[] = {program, (char *) "--socket", ant->socket, (char *) "pools", NULL};
    char *environment[] = {(char *) kind, (char *) "NO_COLOR=", NULL};
    struct child *c;

    (void) place_program(program, sizeof(program), "berth");
    c = child_start_on_terminal(argv, environment, ret_master);
    CU_ASSERT(child_await(c, HOST_PATIENCE));
    TEST_INT(c->exit_code, 0);
    if (!strstr(child_text(c, 1), "cluster")) /* the scope */
        test_string(__FILE__, __LINE__, child_text(c, 1), "a table with the scope \"cluster\"");
    return c;
}

/* Returns the share of a channel in the relative luminance of WCAG 2. step: of the cube of 6x6x6 colours. */
static double luminance_of(double weight, unsigned step) {
    double value = step == 0 ? 0 : (55 + 40 * step) / 255.0;

    return weight * (value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4));
}

/* Each colour of the text has a contrast of 4:1 on white and on black. The first 16 are those of the terminal's palette. */
static void is_readable(const char *text) {
    size_t n = 0;

    for (const char *at = text; (at = strstr(at, "\033[")); at++) {
        unsigned colour = 0;
        double luminance;

        if (sscanf(at, "\033[38;5;%um", &colour) != 1) {
            CU_ASSERT(strncmp(at, "\033[0m", 4) == 0 || strncmp(at, "\033[39m", 5) == 0);
            continue;
        }
        TEST_FATAL(colour >= 16 && colour < 232, "a colour of the palette, or a grey");
        colour -= 16;
        luminance = luminance_of(0.2126, colour / 36) + luminance_of(0.7152, colour / 6 % 6) + luminance_of(0.0722, colour % 6);
        CU_ASSERT(1.05 / (luminance + 0.05) >= 3.99);
        CU_ASSERT((luminance + 0.05) / 0.05 >= 4);
        n++;
    }
    CU_ASSERT(n > 0);
}

/* A terminal gets colours. */
static void test_colours(void) {
    char id[40];
    struct child *one = run_as("one", id), *waiter, *c;
    int master = -1;

    TEST_INT(berth(ant, "limit db 1"), 0);
    waiter = berth_start(ant, "run -p db:2 --name two -- true");
    host_await(ant, "parked", "job=two");
    TEST_INT(berth(ant, "limit db 0"), 0);
    c = show_pools("TERM=xterm-256color", &master);
    CU_ASSERT_PTR_NOT_NULL(strstr(child_text(c, 1), RED));    /* more in use than the limit */
    CU_ASSERT_PTR_NOT_NULL(strstr(child_text(c, 1), NOTICE)); /* a claim waits */
    CU_ASSERT_PTR_NULL(strstr(child_text(c, 1), "m-"));       /* what is empty is no notice */
    is_readable(child_text(c, 1));
    child_free(c);
    close(master);
    TEST_INT(berth(ant, "limit db --clear"), 0);
    TEST_INT(berth_end(waiter), 0);
    c = show_pools("TERM=xterm-256color", &master);
    CU_ASSERT_PTR_NOT_NULL(strstr(child_text(c, 1), GREEN)); /* permits are in use */
    is_readable(child_text(c, 1));
    child_free(c);
    close(master);
    c = show_pools("TERM=dumb", &master);
    CU_ASSERT_PTR_NULL(strchr(child_text(c, 1), '\033'));
    child_free(c);
    close(master);
    TEST_INT(berth(ant, "stop one"), 0);
    TEST_INT(berth_end(one), 143);
}

/* The keys of a pattern use more than the limit of each. */
static void test_pattern_colours(void) {
    struct child *a, *b, *c;
    int master = -1;

    host_mark(ant);
    a = berth_start(ant, "run -p tenant/a --name a -- sleep 1000");
    b = berth_start(ant, "run -p tenant/b --name b -- sleep 1000");
    host_await(ant, "started", "job=a");
    host_await(ant, "started", "job=b");
    c = show_pools("TERM=xterm-256color", &master);
    CU_ASSERT_PTR_NOT_NULL(strstr(child_text(c, 1), GREEN "   2")); /* used: green */
    CU_ASSERT_PTR_NULL(strstr(child_text(c, 1), RED));         /* nothing is red */
    child_free(c);
    close(master);
    TEST_INT(berth(ant, "stop a b"), 0);
    TEST_INT(berth_end(a), 143);
    TEST_INT(berth_end(b), 143);
}

static CU_TestInfo tests[] = {
    {"label", test_label}, {"id", test_id}, {"lists", test_lists}, {"runs", test_runs}, {"limit-shown", test_limit_shown}, {"colours", test_colours}, {"pattern colours", test_pattern_colours},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "names", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
