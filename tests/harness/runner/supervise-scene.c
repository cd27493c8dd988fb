/* SPDX-License-Identifier: MIT */
#include "tests/harness/runner/supervise-scene.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/process-tree.h"
#include "tests/harness/test.h"

int scene_run_script(void *userdata, _unused_ const char **ret_stage) {
    struct scene *scene = userdata;
    char *argv[] = {(char *) "sh", (char *) "-c", (char *) scene->script, NULL};
    sigset_t none;

    if (sigemptyset(&none) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0 || dup2(scene->keys[0], STDIN_FILENO) < 0 ||
        dup2(scene->writer, STDOUT_FILENO) < 0)
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

static void on_stopping(_unused_ struct supervise *s, _unused_ enum supervise_reason reason,
                        void *userdata) {
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

static void on_stuck(_unused_ struct supervise *s, const char *what, void *userdata) {
    struct scene *scene = userdata;

    if (scene->on_stuck)
        scene->on_stuck(scene, what);
    else
        CU_FAIL("processes outlive their kill");
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

/* All that was due is done by now: returns whether the command still answers. */
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

void scene_init(struct scene *scene, const char *script) {
    int fds[2];

    *scene = (struct scene) {.script = script};
    scene->options = (struct supervise_options) {.stop_signal = SIGTERM, .stop_timeout = 5 * USEC_PER_SEC,
                                                 .timeout = USEC_INFINITY, .deadline = USEC_INFINITY};
    CU_ASSERT_FATAL(sd_event_new(&scene->event) >= 0);
    CU_ASSERT_FATAL(pipe2(fds, O_CLOEXEC) == 0 && pipe2(scene->keys, O_CLOEXEC) == 0);
    scene->reader = fds[0];
    scene->writer = fds[1];
}

void scene_step(struct scene *scene, const struct step *steps) {
    scene->step = steps;
    clock_file_stand(&own_clock, T);
    CU_ASSERT_FATAL(sd_event_add_defer(scene->event, &scene->idle, on_idle, scene) >= 0);
    CU_ASSERT_FATAL(sd_event_source_set_enabled(scene->idle, SD_EVENT_OFF) >= 0);
    CU_ASSERT_FATAL(sd_event_source_set_priority(scene->idle, SD_EVENT_PRIORITY_IDLE) >= 0);
}

void scene_run(struct scene *scene, supervise_child_fn child) {
    struct supervise_handler handler = {.on_started = on_started,
                                        .on_stopping = on_stopping,
                                        .on_suspended = on_suspended,
                                        .on_stuck = on_stuck,
                                        .on_done = on_done,
                                        .userdata = scene};
    char text[64];

    CU_ASSERT_FATAL(sd_event_add_io(scene->event, NULL, scene->reader, EPOLLIN, on_readable, scene) >= 0);
    CU_ASSERT_FATAL(sd_event_add_time_relative(scene->event, NULL, CLOCK_MONOTONIC, 30 * USEC_PER_SEC, 0,
                                               on_hang, scene) >= 0);
    CU_ASSERT_FATAL(supervise_new(&scene->supervise, scene->event, &scene->options, &handler) == 0);
    if (scene->gate) {
        CU_ASSERT_FATAL(supervise_prepare(scene->supervise, child, scene, scene->gate) == 0);
        if (scene->ahead)
            scene->ahead(scene);
    }
    CU_ASSERT_FATAL(supervise_start(scene->supervise, child, scene) == 0);
    scene->writer = close_fd(scene->writer);
    (void) sd_event_loop(scene->event);
    CU_ASSERT(fcntl(scene->reader, F_SETFL, O_NONBLOCK) == 0);
    /* The command may have ended before its output was read. */
    scene->n_lines += read(scene->reader, text, sizeof(text)) > 0;
    TEST_INT(scene->n_done, 1);
    TEST_INT(process_tree_list(getpid(), NULL, 0, NULL, 0), 0);
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

void scene_stop(struct scene *scene) {
    supervise_stop(scene->supervise, SUPERVISE_REASON_STOPPED);
    supervise_stop(scene->supervise, SUPERVISE_REASON_SHUTDOWN); /* the first reason stays */
    TEST_INT(scene->n_stopping, 1);
}
