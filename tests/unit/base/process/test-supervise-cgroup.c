/* SPDX-License-Identifier: MIT */
/* base/process/supervise with a cgroup, and the events of cgroups that it relies on. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/cgroup.h"
#include "tests/harness/runner/supervise-scene.h"
#include "tests/harness/test.h"

/* Nomad had this bug: hashicorp/nomad#6823. */
static void test_cgroup(void) {
    _cleanup_free_ char *own = NULL;
    struct scene scene;
    char *path = NULL;

    if (cgroup_find_own(&own) < 0) {
        TEST_NEEDS_ROOT();
        TEST_SKIP("no cgroup v2 that this process may write to");
    }
    CU_ASSERT_FATAL(asprintf(&path, "%s/berth-test-%d", own, (int) getpid()) > 0);
    CU_ASSERT_FATAL(cgroup_make(path) == 0);
    TEST_INT(cgroup_is_populated(path), 0);
    scene_init(&scene, HIDDEN "echo ready; wait");
    scene.cgroup = path;
    scene.options.cgroup = path;
    scene.options.stop_timeout = 60 * USEC_PER_MSEC;
    scene.on_line = scene_stop;
    CU_ASSERT(access(path, F_OK) == 0);
    path = strdup(path);
    scene_run(&scene, scene_run_script);
    CU_ASSERT(access(path, F_OK) < 0); /* and nothing is left */
    TEST_INT(cgroup_kill(path), 0);
    TEST_INT(cgroup_is_populated(path), 0);
    TEST_INT(cgroup_remove(path), 0);
    free(path);
}

/* Returns whether poll(2) reports a change. The kernel reports a change within some 10 ms, and several
 * changes in between once. */
static bool is_changed(int events, int timeout_ms) {
    struct pollfd p = {.fd = events, .events = POLLPRI};

    return poll(&p, 1, timeout_ms) == 1;
}

static void test_cgroup_events(void) {
    _cleanup_free_ char *own = NULL, *path = NULL;
    int events;
    pid_t pid;

    if (cgroup_find_own(&own) < 0) {
        TEST_NEEDS_ROOT();
        TEST_SKIP("no cgroup v2 that this process may write to");
    }
    CU_ASSERT_FATAL(asprintf(&path, "%s/berth-test-%d", own, (int) getpid()) > 0);
    TEST_INT(cgroup_open_events(path), -ENOENT);
    CU_ASSERT_FATAL(cgroup_make(path) == 0);
    events = cgroup_open_events(path);
    CU_ASSERT_FATAL(events >= 0);
    CU_ASSERT(!is_changed(events, 0));
    pid = fork();
    if (pid == 0)
        _exit(cgroup_enter(path) == 0 ? pause() : 1);
    CU_ASSERT(is_changed(events, 10000));
    TEST_INT(cgroup_read_events(events), 1);
    CU_ASSERT(!is_changed(events, 0));
    TEST_INT(kill(pid, SIGKILL), 0);
    TEST_INT(waitpid(pid, NULL, 0), pid);
    CU_ASSERT(is_changed(events, 10000));
    TEST_INT(cgroup_read_events(events), 0);
    CU_ASSERT(!is_changed(events, 0));
    TEST_INT(cgroup_remove(path), 0);
    TEST_INT(cgroup_read_events(events), -ENODEV);
    CU_ASSERT(is_changed(events, 0)); /* and stays so */
    close_fd(events);
}

static int stop_later(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
    supervise_stop(((struct scene *) userdata)->supervise, SUPERVISE_REASON_STOPPED);
    return 0;
}

/* The command leaves the cgroup, which is removed: its file is ready for ever. */
static void take_cgroup_away(struct scene *scene) {
    _cleanup_free_ char *procs = NULL;
    _cleanup_fclose_ FILE *f = NULL;

    CU_ASSERT_FATAL(
        asprintf(&procs, "%s/../berth-test-other-%d/cgroup.procs", scene->cgroup, (int) getpid()) > 0);
    f = fopen(procs, "we");
    CU_ASSERT_FATAL(f && fprintf(f, "%d", (int) scene->pid) > 0 && fflush(f) == 0);
    TEST_INT(cgroup_remove(scene->cgroup), 0);
    CU_ASSERT(sd_event_add_time_relative(scene->event, NULL, CLOCK_MONOTONIC, 50 * USEC_PER_MSEC, 0,
                                         stop_later, scene) >= 0);
}

static uint64_t n_turns;
static void count_turns(struct scene *scene) {
    CU_ASSERT(sd_event_get_iteration(scene->event, &n_turns) >= 0);
}

static void test_cgroup_taken_away(void) {
    _cleanup_free_ char *own = NULL, *other = NULL;
    struct scene scene;

    if (cgroup_find_own(&own) < 0) {
        TEST_NEEDS_ROOT();
        TEST_SKIP("no cgroup v2 that this process may write to");
    }
    CU_ASSERT_FATAL(asprintf(&other, "%s/berth-test-other-%d", own, (int) getpid()) > 0);
    scene_init(&scene, "echo ready; exec sleep 1000");
    CU_ASSERT_FATAL(asprintf(&scene.cgroup, "%s/berth-test-%d", own, (int) getpid()) > 0);
    CU_ASSERT_FATAL(cgroup_make(scene.cgroup) == 0 && cgroup_make(other) == 0);
    scene.options.cgroup = scene.cgroup;
    scene.on_line = take_cgroup_away;
    scene.on_end = count_turns;
    n_turns = 0;
    scene_run(&scene, scene_run_script);
    TEST_INT(scene.result.status, SIGTERM);
    CU_ASSERT(n_turns > 0 && n_turns < 100); /* it did not spin */
    TEST_INT(cgroup_remove(other), 0);
}

static CU_TestInfo tests[] = {
    {"cgroup", test_cgroup},
    {"cgroup events", test_cgroup_events},
    {"cgroup taken away", test_cgroup_taken_away},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "supervise-cgroup", .pTests = tests}, CU_SUITE_INFO_NULL};

    clock_file_own(argv);
    return test_main(argc, argv, suites);
}
