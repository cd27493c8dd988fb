/* SPDX-License-Identifier: MIT */
#include "base/process/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/process/cgroup.h"
#include "base/clock.h"
#include "base/process/process-tree.h"
#include "tests/harness/clock-file.h"
#include "tests/harness/test.h"

/* Where times count the clock stands, from T on, and goes on in steps. At each but the last one the command must answer, and a stop must
 * have begun or not. At the last one it ends. */
#define T (1000 * USEC_PER_SEC)
struct step {
    usec_t at;
    unsigned n_stopping;
};
#define STEPS(...) (const struct step[]) {__VA_ARGS__, {0}}
/* Waits and answers. A shell misses no signal in `wait`, as it would just before a read; and what it forks while a signal has no trap yet
 * does not lose that before it is what it is to be. */
#define WAITS(ignored, trapped) \
    ignored "exec 3<&0; (read x <&3) & " trapped "trap 'echo here' USR1; echo ready; while :; do wait; done"
#define DEAF "trap '' TERM; "

/* One command under supervision, and what was told about it. The command writes to a pipe what the test waits for. */
struct scene {
    sd_event *event;
    struct supervise *supervise;
    struct supervise_options options;
    const char *script;          /* for sh */
    int reader, writer;          /* the command's standard output; the writer is closed after the fork */
    int keys[2];                 /* its standard input, to which nobody writes */
    char *cgroup;
    void (*on_line)(struct scene *scene); /* the first */
    void (*on_end)(struct scene *scene);
    unsigned n_lines;
    const struct step *step;     /* the next one; NULL: the clock runs */
    sd_event_source *idle;
    bool stops_when_suspended;
    unsigned n_started, n_stopping, n_suspended, n_done;
    pid_t pid;                   /* of the command, once exec succeeded */
    struct supervise_result result;
};

static int run_script(void *userdata, _unused_ const char **ret_stage) {
    struct scene *scene = userdata;
    char *argv[] = {(char *) "sh", (char *) "-c", (char *) scene->script, NULL};

    if (dup2(scene->keys[0], STDIN_FILENO) < 0 || dup2(scene->writer, STDOUT_FILENO) < 0)
        return errno;
    execv("/bin/sh", argv);
    return errno;
}

static void on_started(_unused_ struct supervise *s, pid_t pid, void *userdata) {
    struct scene *scene = userdata;

    CU_ASSERT(pid > 0);
    scene->pid = pid;
    scene->n_started++;
}

static void on_stopping(_unused_ struct supervise *s, _unused_ enum supervise_reason reason, void *userdata) {
    ((struct scene *) userdata)->n_stopping++;
}

static void on_suspended(struct supervise *s, void *userdata) {
    struct scene *scene = userdata;

    scene->n_suspended++;
    if (scene->stops_when_suspended)
        supervise_stop(s, SUPERVISE_REASON_STOPPED);
    else
        TEST_INT(supervise_signal(s, SIGCONT), 0);
}

static void on_done(struct supervise *s, const struct supervise_result *result, void *userdata) {
    struct scene *scene = userdata;

    scene->n_done++;
    scene->result = *result;
    if (scene->on_end)
        scene->on_end(scene);
    scene->supervise = supervise_free(s); /* it may be freed here */
    (void) sd_event_exit(scene->event, 0);
}

/* All that was due has been done by now: does it still answer? */
static int on_idle(_unused_ sd_event_source *source, void *userdata) {
    struct scene *scene = userdata;

    if (scene->step->at != 0)
        (void) supervise_signal(scene->supervise, SIGUSR1);
    return 0;
}

static void take_step(struct scene *scene) {
    if (scene->n_lines > 1)
        TEST_INT(scene->n_stopping, (scene->step - 1)->n_stopping);
    clock_file_stand(&own_clock, scene->step++->at);
    (void) sd_event_source_set_enabled(scene->idle, SD_EVENT_ONESHOT);
}

static int on_readable(sd_event_source *source, int fd, _unused_ uint32_t revents, void *userdata) {
    struct scene *scene = userdata;
    char text[64];

    if (read(fd, text, sizeof(text)) <= 0) {
        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return 0;
    }
    if (scene->n_lines++ == 0 && scene->on_line)
        scene->on_line(scene);
    if (scene->step)
        take_step(scene);
    return 0;
}

static int on_hang(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
    CU_FAIL("nothing happened for 30 s");
    (void) sd_event_exit(((struct scene *) userdata)->event, 1);
    return 0;
}

static void scene_init(struct scene *scene, const char *script) {
    int fds[2];

    *scene = (struct scene) {.script = script, .options = {.stop_signal = SIGTERM, .stop_timeout = 5 * USEC_PER_SEC,
                                                            .timeout = USEC_INFINITY, .deadline = USEC_INFINITY}};
    CU_ASSERT_FATAL(sd_event_new(&scene->event) >= 0);
    CU_ASSERT_FATAL(pipe2(fds, O_CLOEXEC) == 0 && pipe2(scene->keys, O_CLOEXEC) == 0);
    scene->reader = fds[0];
    scene->writer = fds[1];
}

/* The clock stands, until scene_run() comes back. */
static void scene_step(struct scene *scene, const struct step *steps) {
    scene->step = steps;
    clock_file_stand(&own_clock, T);
    CU_ASSERT_FATAL(sd_event_add_defer(scene->event, &scene->idle, on_idle, scene) >= 0);
    CU_ASSERT_FATAL(sd_event_source_set_enabled(scene->idle, SD_EVENT_OFF) >= 0);
    CU_ASSERT_FATAL(sd_event_source_set_priority(scene->idle, SD_EVENT_PRIORITY_IDLE) >= 0);
}

static void scene_run(struct scene *scene, supervise_child_fn child) {
    struct supervise_handler handler = {.on_started = on_started, .on_stopping = on_stopping, .on_suspended = on_suspended,
                                        .on_done = on_done, .userdata = scene};
    char text[64];

    CU_ASSERT_FATAL(sd_event_add_io(scene->event, NULL, scene->reader, EPOLLIN, on_readable, scene) >= 0);
    CU_ASSERT_FATAL(sd_event_add_time_relative(scene->event, NULL, CLOCK_MONOTONIC, 30 * USEC_PER_SEC, 0, on_hang, scene) >= 0);
    CU_ASSERT_FATAL(supervise_new(&scene->supervise, scene->event, &scene->options, &handler) == 0);
    CU_ASSERT_FATAL(supervise_start(scene->supervise, child, scene) == 0);
    scene->writer = close_fd(scene->writer);
    (void) sd_event_loop(scene->event);
    CU_ASSERT(fcntl(scene->reader, F_SETFL, O_NONBLOCK) == 0);
    scene->n_lines += read(scene->reader, text, sizeof(text)) > 0; /* it may have ended before that was heard */
    TEST_INT(scene->n_done, 1);
    TEST_INT(process_tree_list(getpid(), NULL, 0), 0);
    TEST_INT(waitpid(-1, NULL, WNOHANG), -1); /* no zombie either */
    if (scene->step) {
        TEST_INT(scene->step->at, 0);
        TEST_INT(scene->result.ended, (scene->step - 1)->at);
        TEST_INT(scene->n_stopping, (scene->step - 1)->n_stopping);
    }
    clock_file_stand(&own_clock, 0);
    supervise_free(scene->supervise);
    sd_event_source_disable_unref(scene->idle);
    close_fd(scene->reader);
    close_fd(scene->keys[0]);
    close_fd(scene->keys[1]);
    sd_event_unref(scene->event);
    free(scene->cgroup);
}

static void exits(const char *script, int code, int status) {
    struct scene scene;

    scene_init(&scene, script);
    scene_run(&scene, run_script);
    TEST_INT(scene.n_started, 1);
    TEST_INT(scene.n_stopping, 0);
    TEST_INT(scene.result.exec_errno, 0);
    TEST_INT(scene.result.code, code);
    TEST_INT(scene.result.status, status);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_NONE);
    CU_ASSERT(scene.result.started > 0 && scene.result.started <= scene.result.ended);
    CU_ASSERT(scene.result.deadline == USEC_INFINITY);
}

static void test_exit(void) {
    exits("exit 0", CLD_EXITED, 0);
    exits("exit 7", CLD_EXITED, 7);
    exits("exit 255", CLD_EXITED, 255);
    exits("ulimit -c 0; kill -KILL $$", CLD_KILLED, SIGKILL);
    exits("kill -TERM $$", CLD_KILLED, SIGTERM);
}

static int exec_nothing(_unused_ void *userdata, const char **ret_stage) {
    *ret_stage = "exec";
    execl("/nonexistent/command", "command", (char *) NULL);
    return errno;
}

static int fail_in_stage(_unused_ void *userdata, const char **ret_stage) {
    *ret_stage = "a stage with a long name";
    return EPERM;
}

static void test_exec_failure(void) {
    struct scene scene;

    scene_init(&scene, NULL);
    scene_run(&scene, exec_nothing);
    TEST_INT(scene.n_started, 0);
    TEST_INT(scene.result.exec_errno, ENOENT);
    TEST_STRING(scene.result.stage, "exec");
    TEST_INT(scene.result.status, 127);
    scene_init(&scene, NULL);
    scene_run(&scene, fail_in_stage);
    TEST_INT(scene.n_started, 0);
    TEST_INT(scene.result.exec_errno, EPERM);
    TEST_STRING(scene.result.stage, "a stage with a ");
    TEST_INT(scene.result.status, 126);
}

static void stop_it(struct scene *scene) {
    supervise_stop(scene->supervise, SUPERVISE_REASON_STOPPED);
    supervise_stop(scene->supervise, SUPERVISE_REASON_SHUTDOWN); /* the first reason stays */
    TEST_INT(scene->n_stopping, 1);
}

static void test_stop(void) {
    struct scene scene;

    scene_init(&scene, "trap 'exit 3' TERM; echo ready; sleep 1000 & wait");
    scene.on_line = stop_it;
    scene_run(&scene, run_script);
    TEST_INT(scene.result.code, CLD_EXITED);
    TEST_INT(scene.result.status, 3);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_STOPPED);
    TEST_INT(scene.n_stopping, 1);
}

static void test_stop_suspended(void) {
    struct scene scene;

    /* It stops itself and could not take the signal if it were not continued. */
    scene_init(&scene, "trap 'exit 4' TERM; kill -STOP $$; exit 5");
    scene.stops_when_suspended = true;
    scene_run(&scene, run_script);
    TEST_INT(scene.result.status, 4);
}

static void test_ignores_term(void) {
    struct scene scene;

    scene_init(&scene, WAITS(DEAF, ""));
    scene.options.stop_timeout = 60 * USEC_PER_MSEC;
    scene.on_line = stop_it;
    scene_step(&scene, STEPS({T + 58 * USEC_PER_MSEC, 1}, {T + 62 * USEC_PER_MSEC, 1}));
    scene_run(&scene, run_script);
    TEST_INT(scene.result.code, CLD_KILLED);
    TEST_INT(scene.result.status, SIGKILL);
}

/* Processes that hid: another session, orphaned, deaf to the stop signal. */
#define HIDDEN "trap '' TERM; setsid sh -c 'setsid sleep 1000 & setsid sleep 1000 &' & setsid sleep 1000 & "

static void test_whole_tree(void) {
    struct scene scene;

    scene_init(&scene, HIDDEN "echo ready; wait");
    scene.options.stop_timeout = 60 * USEC_PER_MSEC;
    scene.on_line = stop_it;
    scene_run(&scene, run_script);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_STOPPED);
}

static void test_outlives_command(void) {
    struct scene scene;

    /* The command is over, its grandchild is not: so the run goes on, and its exit status is kept. */
    scene_init(&scene, "setsid sh -c 'setsid sh -c \"sleep 0.1; echo last\" &' & exit 5");
    scene_run(&scene, run_script);
    TEST_INT(scene.result.code, CLD_EXITED);
    TEST_INT(scene.result.status, 5);
    TEST_INT(scene.n_lines, 1);
}

#define DEADLINE (T + 100 * USEC_PER_SEC)
#define BEFORE(msec) (DEADLINE - (msec) * USEC_PER_MSEC)

/* The kill is sent 100 ms before the deadline, so that the last process is gone when that comes (R8), and the stop signal a whole stop
 * timeout before the kill. */
static void test_deadline(void) {
    struct scene scene;

    scene_init(&scene, WAITS(HIDDEN, ""));
    scene.options.deadline = DEADLINE;
    scene.options.stop_timeout = 100 * USEC_PER_MSEC;
    scene_step(&scene, STEPS({BEFORE(202), 0}, {BEFORE(198), 1}, {BEFORE(102), 1}, {BEFORE(98), 1}));
    scene_run(&scene, run_script);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_LEASE_LOST);
    TEST_INT(scene.result.status, SIGKILL);
    CU_ASSERT(scene.result.deadline == DEADLINE);
}

static void test_deadline_stop_signal(void) {
    struct scene scene;

    scene_init(&scene, WAITS("", "trap 'exit 6' TERM; "));
    scene.options.deadline = DEADLINE;
    scene_step(&scene, STEPS({BEFORE(5102), 0}, {BEFORE(5098), 1}));
    scene_run(&scene, run_script);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_LEASE_LOST);
    TEST_INT(scene.result.status, 6);
}

static void set_deadline(struct scene *scene) {
    supervise_set_deadline(scene->supervise, DEADLINE);
}

static void test_deadline_pushed(void) {
    struct scene scene;

    scene_init(&scene, WAITS("", ""));
    scene.options.deadline = T + 10 * USEC_PER_SEC;
    scene.on_line = set_deadline;
    scene_step(&scene, STEPS({T + 11 * USEC_PER_SEC, 0}, {BEFORE(5102), 0}, {BEFORE(5098), 1}));
    scene_run(&scene, run_script);
    TEST_INT(scene.result.status, SIGTERM);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_LEASE_LOST);
    CU_ASSERT(scene.result.deadline == DEADLINE);
}

static void pull_deadline(struct scene *scene) {
    supervise_set_deadline(scene->supervise, clock_boottime());
}

static void test_deadline_pulled(void) {
    struct scene scene;

    /* Late already (this machine slept): there is no time for a stop signal. */
    scene_init(&scene, "trap 'exit 6' TERM; echo a; sleep 1000 & wait");
    scene.options.deadline = clock_boottime() + 100 * USEC_PER_SEC;
    scene.on_line = pull_deadline;
    scene_run(&scene, run_script);
    TEST_INT(scene.result.code, CLD_KILLED);
    TEST_INT(scene.result.status, SIGKILL);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_LEASE_LOST);
}

static void stop_before_deadline(struct scene *scene) {
    stop_it(scene);
    set_deadline(scene);
}

static void test_deadline_during_stop(void) {
    struct scene scene;

    /* A stop with a long timeout must not reach beyond the deadline, also when that comes nearer. */
    scene_init(&scene, WAITS(DEAF, ""));
    scene.options.deadline = DEADLINE + 1000 * USEC_PER_SEC;
    scene.options.stop_timeout = 500 * USEC_PER_SEC;
    scene.on_line = stop_before_deadline;
    scene_step(&scene, STEPS({BEFORE(102), 1}, {BEFORE(98), 1}));
    scene_run(&scene, run_script);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_STOPPED);
    TEST_INT(scene.result.status, SIGKILL);
}

static void test_deadline_before_exec(void) {
    struct scene scene;

    scene_init(&scene, "exit 0");
    scene.options.deadline = clock_boottime();
    scene_run(&scene, run_script);
    TEST_INT(scene.n_started, 0);
    TEST_INT(scene.result.exec_errno, ETIME);
    TEST_STRING(scene.result.stage, "deadline");
}

static void test_timeout(void) {
    struct scene scene;

    scene_init(&scene, "sleep 1000");
    scene.options.timeout = 50 * USEC_PER_MSEC;
    scene_run(&scene, run_script);
    TEST_INT(scene.result.reason, SUPERVISE_REASON_TIMEOUT);
    TEST_INT(scene.result.status, SIGTERM);
    CU_ASSERT(scene.result.ended - scene.result.started >= 50 * USEC_PER_MSEC);
}

static void test_zombie(void) {
    struct scene scene;

    /* A zombie that its parent never waits for, and orphans: neither keeps the run from its end. */
    scene_init(&scene, "sh -c 'sleep 0 & exec sleep 0.1' & (sleep 0.02 &) & exit 2");
    scene_run(&scene, run_script);
    TEST_INT(scene.result.status, 2);
}

static void test_suspended(void) {
    struct scene scene;

    scene_init(&scene, "kill -STOP $$; exit 8");
    scene_run(&scene, run_script);
    TEST_INT(scene.n_suspended, 1);
    TEST_INT(scene.result.status, 8);
}

static void send_usr1(struct scene *scene) {
    TEST_INT(supervise_signal(scene->supervise, SIGUSR1), 0);
}

static void test_signal(void) {
    struct scene scene;

    scene_init(&scene, "trap 'exit 11' USR1; echo a; while :; do sleep 0.02; done");
    scene.on_line = send_usr1;
    scene_run(&scene, run_script);
    TEST_INT(scene.result.status, 11);
}

static void test_usage(void) {
    struct scene scene;

    scene_init(&scene, "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done");
    scene_run(&scene, run_script);
    CU_ASSERT(scene.result.usage.ru_utime.tv_sec + scene.result.usage.ru_utime.tv_usec > 0);
    CU_ASSERT(scene.result.usage.ru_maxrss > 0);
}

static void test_die_with_parent(void) {
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) /* "parent" that is not: it has gone already */
        _exit(supervise_child_die_with_parent(getpid()));
    CU_ASSERT_FATAL(waitpid(pid, &status, 0) == pid);
    CU_ASSERT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* What went wrong elsewhere: hashicorp/nomad#6823. */
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
    scene.on_line = stop_it;
    CU_ASSERT(access(path, F_OK) == 0);
    path = strdup(path);
    scene_run(&scene, run_script);
    CU_ASSERT(access(path, F_OK) < 0); /* and nothing is left */
    TEST_INT(cgroup_kill(path), 0);
    TEST_INT(cgroup_is_populated(path), 0);
    TEST_INT(cgroup_remove(path), 0);
    free(path);
}

/* Whether poll(2) tells of a change. A change is told late, within 10 ms or so, and once for all that changed in between. */
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

    CU_ASSERT_FATAL(asprintf(&procs, "%s/../berth-test-other-%d/cgroup.procs", scene->cgroup, (int) getpid()) > 0);
    f = fopen(procs, "we");
    CU_ASSERT_FATAL(f && fprintf(f, "%d", (int) scene->pid) > 0 && fflush(f) == 0);
    TEST_INT(cgroup_remove(scene->cgroup), 0);
    CU_ASSERT(sd_event_add_time_relative(scene->event, NULL, CLOCK_MONOTONIC, 50 * USEC_PER_MSEC, 0, stop_later, scene) >= 0);
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
    scene_run(&scene, run_script);
    TEST_INT(scene.result.status, SIGTERM);
    CU_ASSERT(n_turns > 0 && n_turns < 100); /* it did not spin */
    TEST_INT(cgroup_remove(other), 0);
}

static void test_reason_names(void) {
    enum supervise_reason reason = SUPERVISE_REASON_NONE;

    TEST_STRING(supervise_reason_name(SUPERVISE_REASON_LEASE_LOST), "lease-lost");
    TEST_INT(supervise_reason_parse("shutdown", &reason), 0);
    TEST_INT(reason, SUPERVISE_REASON_SHUTDOWN);
    TEST_INT(supervise_reason_parse("", &reason), -EINVAL);
    TEST_INT(supervise_reason_parse("Stopped", &reason), -EINVAL);
    TEST_INT(reason, SUPERVISE_REASON_SHUTDOWN);
}

static CU_TestInfo tests[] = {
    {"exit", test_exit},
    {"exec failure", test_exec_failure},
    {"stop", test_stop},
    {"stop a suspended command", test_stop_suspended},
    {"ignores TERM", test_ignores_term},
    {"whole tree", test_whole_tree},
    {"outlives its command", test_outlives_command},
    {"deadline", test_deadline},
    {"deadline: stop signal first", test_deadline_stop_signal},
    {"deadline pushed", test_deadline_pushed},
    {"deadline pulled", test_deadline_pulled},
    {"deadline during stop", test_deadline_during_stop},
    {"deadline before exec", test_deadline_before_exec},
    {"timeout", test_timeout},
    {"zombie", test_zombie},
    {"suspended", test_suspended},
    {"signal", test_signal},
    {"usage", test_usage},
    {"die with parent", test_die_with_parent},
    {"cgroup", test_cgroup},
    {"cgroup events", test_cgroup_events},
    {"cgroup taken away", test_cgroup_taken_away},
    {"reason names", test_reason_names},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "supervise", .pTests = tests}, CU_SUITE_INFO_NULL};

    clock_file_own(argv);
    return test_main(argc, argv, suites);
}
