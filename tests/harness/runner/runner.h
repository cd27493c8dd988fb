/* SPDX-License-Identifier: MIT */
#pragma once

/* A real berth-runner on a directory of its own, and this test in the place of berthd. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/message.h"

#define NOBODY 65534 /* the user and the group */

struct test_runner {
    char directory[64]; /* contains berth.conf, run/ and the jobs' output */
    uid_t uid;          /* user of the runner */
    pid_t pid;          /* 0: not there */
    int fd;             /* berthd's connection; -1: none */
    char *const *environment; /* more for the runner, NULL-terminated; or NULL */
    void (*before_exec)(void); /* called in the runner's process as root; or NULL */
};

/* Makes its directory only, for files that must exist before the runner. */
void test_runner_prepare(struct test_runner *t, uid_t uid);
void test_runner_prepare_in(struct test_runner *t, uid_t uid, const char *folder); /* instead of /tmp */
/* jobs: text for the config; every @ in it becomes the directory. The runner is started as uid. Fatal for the test if it fails. */
void test_runner_init(struct test_runner *t, const char *jobs, uid_t uid);
void test_runner_begin(struct test_runner *t, const char *jobs, uid_t uid); /* and joins it */
void test_runner_done(struct test_runner *t); /* kills the runner; nothing of a run may be left */
void test_runner_configure(struct test_runner *t, const char *jobs);
void test_runner_start(struct test_runner *t);               /* returns when it is ready */
/* As berthd --with-runner does, on a socketpair; hello is sent before the runner runs. t->fd is its end. */
void test_runner_start_as_child(struct test_runner *t);
void test_runner_end(struct test_runner *t, int signal);

int test_runner_connect(struct test_runner *t);              /* without hello */
/* Checks, as another user, that a socket ("run/runner/...") refuses connections; opens it to all users, as
 * root. */
void test_runner_cannot_connect(struct test_runner *t, const char *name);
void test_runner_open_up(struct test_runner *t, const char *name);
void test_runner_hello(struct test_runner *t, int fd);       /* reads on to its answer */
void test_runner_join(struct test_runner *t);                /* connects, sends hello, reads on to `recovered` */
void test_runner_connect_again(struct test_runner *t);       /* connects as another berthd, and sends hello */
/* Sends `start` for a job with the hash of the config as it is now. run: a hex digit that stands for an id. */
void test_runner_send_start(struct test_runner *t, char run, const char *job);
void test_runner_begin_start(struct message_writer *w, char run, const char *job, const char *hash);
const char *test_runner_hash(struct test_runner *t, const char *job);
int test_runner_guard(struct test_runner *t, char run);      /* a connection to a guard */
pid_t test_runner_guard_pid(struct test_runner *t, struct message *m, char run);
const char *test_runner_id(char run);
/* Starts a process as `berth run` does, which has no guard. uid: its user and group; 0: this program's. Returns after its exec. */
pid_t test_runner_start_adhoc(char id, const char *token, uid_t uid);

/* A job of the config that is a script of the shell, with more options; one whose output is NAME.out in the directory; one without more. */
#define TEST_COMMAND(name, script, more) "job \"" name "\" { command = {\"/bin/sh\", \"-c\", \"" script "\"} " more " }\n"
#define TEST_JOB(name, script, more) TEST_COMMAND(name, script, "stop-timeout = \"200ms\" " more)
#define TEST_OUT(name, script, more) TEST_JOB(name, script, "output = \"@/" name ".out\" " more)
#define TEST_SH(name, script) TEST_OUT(name, script, "")

/* Sends `start` and awaits the begin of the run. */
void test_runner_begin_run(struct test_runner *t, struct message *m, char run, const char *job);
void test_runner_start_until(struct test_runner *t, struct message *m, char run, const char *job, usec_t deadline); /* USEC_INFINITY: none */
/* Starts a run that ends by itself. Its guard leaves a report, which the runner sends. *m: that report. */
void test_runner_run(struct test_runner *t, struct message *m, char run, const char *job);
/* Check a run that succeeds and writes this into NAME.out; a run that fails at this stage of its start. *m:
 * the report. */
void test_runner_prints(struct test_runner *t, struct message *m, const char *job, const char *expected);
void test_runner_fails(struct test_runner *t, struct message *m, const char *job, int error, const char *stage);
/* Returns whether there is a file of this run: run/runner/runs/RUN + suffix. */
bool test_runner_has_file(struct test_runner *t, char run, const char *suffix);
bool test_runner_is_clean(struct test_runner *t); /* checks that run 1 has left no file */
/* Returns when the runner has handled all earlier messages. */
void test_runner_settle(struct test_runner *t);

/* Returns the path of a file below the directory, until the next call; writes one, which may be a FIFO with
 * a reader. */
const char *test_runner_path(struct test_runner *t, const char *name);
void test_runner_write(struct test_runner *t, const char *name, const char *text);

/* Connects to the guard of the run. Returns when its command has written a line to this output and the guard has reported the start:
 * its next message is that of something else. Then: passes a deadline on, USEC_INFINITY for none; acknowledges the report, and awaits
 * that the guard ends. */
int test_guard_join(struct test_runner *t, struct message *m, char run, const char *output);
void test_guard_set_deadline(int guard, usec_t deadline);
void test_guard_finish(int guard);

/* Await the next message; the next message, which must have this verb. 30 s. */
void test_await_any(int fd, struct message *m);
void test_await(int fd, struct message *m, const char *verb);
void test_await_end(int fd); /* the other side closes without a message before */
void test_say(int fd, const char *verb, const char *key, const char *value);
/* The fields of a message, shown when they differ; expected NULL: there is no such field. */
#define TEST_FIELD(m, key, expected) TEST_STRING(message_get(m, key), expected)
uint64_t test_number(const struct message *m, const char *key); /* which must be one */

/* A file below the directory, to be freed; waits for it to have a whole line. */
char *test_runner_read(struct test_runner *t, const char *name);
bool test_runner_has(struct test_runner *t, const char *name);
/* Waits until a file of this run is there: run/runner/runs/RUN + suffix. */
void test_runner_await_file(struct test_runner *t, char run, const char *suffix);
/* Calls fn in a process of another user, whose failed assertions count here; skips the test unless run as
 * root. */
void test_as_stranger(void (*fn)(void));
/* Polls for 30 s; false if nothing came. */
bool test_runner_wait_for(int fd, short events);
/* SIGKILL, and waits until it is gone; it need not be a child. */
void test_kill_and_wait(pid_t pid);
