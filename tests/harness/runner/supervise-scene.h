/* SPDX-License-Identifier: MIT */
#pragma once

/* One command under supervision (base/process/supervise.h) in this process, and the calls of the handler. */

#include <stdbool.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "base/process/supervise.h"
#include "tests/harness/clock-file.h"

/* Where times count the clock stands, from T on, and goes on in steps. At each but the last one the
 * command must answer, and a stop must have begun or not. At the last one it ends. */
#define T (1000 * USEC_PER_SEC)
struct step {
    usec_t at;
    unsigned n_stopping;
};
#define STEPS(...) (const struct step[]) {__VA_ARGS__, {0}}
/* Waits and answers. A shell misses no signal in `wait`, as it would just before a read; and what it
 * forks while a signal has no trap yet does not lose that before it is what it is to be. */
#define WAITS(ignored, trapped) \
    ignored "exec 3<&0; (read x <&3) & " trapped "trap 'echo here' USR1; echo ready; while :; do wait; done"
#define DEAF "trap '' TERM; "
/* Processes that hide: orphans in another session that ignore the stop signal. */
#define HIDDEN "trap '' TERM; setsid sh -c 'setsid sleep 1000 & setsid sleep 1000 &' & setsid sleep 1000 & "

/* The command writes to a pipe, and the test waits for that. */
struct scene {
    sd_event *event;
    struct supervise *supervise;
    struct supervise_options options;
    const char *script;          /* for sh */
    struct gate *gate;           /* the child is forked ahead, and waits there; NULL: it is not */
    void (*ahead)(struct scene *scene); /* before its start; may be NULL */
    int reader, writer;          /* the command's standard output; the writer is closed after the fork */
    int keys[2];                 /* its standard input, to which nobody writes */
    char *cgroup;
    void (*on_line)(struct scene *scene); /* the first */
    void (*on_end)(struct scene *scene);
    void (*on_stuck)(struct scene *scene, const char *what);
    unsigned n_lines;
    const struct step *step;     /* the next one; NULL: the clock runs */
    sd_event_source *idle;
    bool stops_when_suspended;
    unsigned n_started, n_stopping, n_suspended, n_done;
    pid_t pid;                   /* of the command, once exec succeeded */
    struct supervise_result result;
};

/* For sh. */
void scene_init(struct scene *scene, const char *script);
/* Stops the clock until scene_run() returns. */
void scene_step(struct scene *scene, const struct step *steps);
/* Runs the command to its end and frees the scene, except `result`. */
void scene_run(struct scene *scene, supervise_child_fn child);
/* Runs the script, as the child of most scenes. */
int scene_run_script(void *userdata, const char **ret_stage);
/* For on_line: stops the command, and tries to stop it once more for another reason. */
void scene_stop(struct scene *scene);
