/* SPDX-License-Identifier: MIT */
/* What a command finds in its environment besides what test-job-command.c shows: the facts that berthd sends
 * of a run. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/protocol.h"
#include "tests/harness/runner.h"
#include "tests/harness/test.h"

static struct test_runner t;
static struct message m; /* large */

static void send_with(char run, const char *job, const char *const *fields) {
    static struct message_writer w;

    test_runner_begin_start(&w, run, job, test_runner_hash(&t, job));
    for (; fields[0]; fields += 2)
        message_put(&w, fields[0], fields[1]);
    TEST_INT(message_send(t.fd, &w), 0);
}

static void test_facts(void) {
    static const char *const facts[] = {
        "trigger", "hook", "attempt", "2", "of-reason", "exec: $(id) `x` ; rm",
        "of-path", "/x",   "depth",   "1", NULL};
    static const char *const wrong[] = {"attempt", "two", NULL};
    _cleanup_free_ char *text = NULL;

    test_runner_begin(
        &t,
        TEST_OUT("facts", "env | grep -E '^BERTH_(TRIGGER|DUE|ATTEMPT|FIRST_RUN|OF_.*|DEPTH)=' | sort", ""),
        getuid());
    send_with('1', "facts", facts);
    test_await(t.fd, &m, PROTOCOL_STARTING);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "code", "0");
    TEST_FIELD(&m, "trigger", "hook"); /* the next berthd knows it from there */
    TEST_FIELD(&m, "of-path", NULL);
    test_say(t.fd, PROTOCOL_FORGET, "run", test_runner_id('1'));
    text = test_runner_read(&t, "facts.out");
    TEST_STRING(
        text, "BERTH_ATTEMPT=2\nBERTH_DEPTH=1\nBERTH_OF_REASON=exec: $(id) `x` ; rm\nBERTH_TRIGGER=hook\n");
    send_with('2', "facts", wrong);
    test_await(t.fd, &m, PROTOCOL_REFUSED);
    TEST_FIELD(&m, "reason", "bad-request");
    test_runner_done(&t);
}

/* $0 is the job's name, and the text reaches the shell as it stands. */
static void test_script(void) {
    test_runner_begin(&t,
                      "job \"script\" { output = \"@/script.out\" script = '\n\tprintf \"%s \" \"$0\" "
                      "$#\n\techo \"${HOME:+x}\" | wc -l\n' }\n"
                      "job \"shell\" { output = \"@/shell.out\" script = 'echo \"$0 $BASH_VERSION\" | cut "
                      "-c-7' shell = \"/bin/bash\" }\n"
                      "job \"none\" { script = 'true' shell = \"/nonexistent/sh\" }\n",
                      getuid());
    test_runner_prints(&t, &m, "script", "script 0 1\n");
    test_runner_prints(&t, &m, "shell", "shell 5\n");
    test_runner_fails(&t, &m, "none", ENOENT, "exec");
    test_runner_done(&t);
}

static void test_home(void) {
    TEST_NEEDS_ROOT();
    test_runner_begin(&t,
                      TEST_OUT("root", "pwd", "directory = \"~\"")
                          TEST_JOB("none", "pwd", "directory = \"~\" user = \"nobody\""),
                      getuid());
    test_runner_prints(&t, &m, "root", "/root\n");
    test_runner_fails(&t, &m, "none", ENOENT, "directory"); /* /nonexistent */
    test_runner_done(&t);
}

static void test_stdin(void) {
    test_runner_begin(&t,
                      TEST_OUT("file", "cat; (echo x >&0) 2>/dev/null || echo reads", "stdin = \"@/in\"")
                          TEST_OUT("fifo", "cat; echo end", "stdin = \"@/fifo\"")
                              TEST_JOB("missing", "cat", "stdin = \"@/missing\"")
                                  TEST_JOB("folder", "cat", "stdin = \"/\"")
                                      TEST_JOB("secret", "cat", "stdin = \"@/secret\" user = \"nobody\""),
                      getuid());
    test_runner_write(&t, "in", "a\nb\n");
    test_runner_write(&t, "secret", "root's\n"); /* 0600 */
    CU_ASSERT_FATAL(mkfifo(test_runner_path(&t, "fifo"), 0600) == 0);
    test_runner_prints(&t, &m, "file", "a\nb\nreads\n");
    test_runner_prints(&t, &m, "fifo", "end\n");
    test_runner_fails(&t, &m, "missing", ENOENT, "input");
    test_runner_fails(&t, &m, "folder", EISDIR, "input");
    if (getuid() == 0)
        test_runner_fails(&t, &m, "secret", EACCES, "input");
    test_runner_done(&t);
}

static void test_io(void) {
    char mine[64];
    int class = (int) syscall(SYS_ioprio_get, 1, 0);

    CU_ASSERT_FATAL(class >= 0);
    test_runner_begin(&t,
                      TEST_OUT("idle", "ionice", "io-class = idle")
                          TEST_OUT("first", "ionice", "io-class = best-effort io-priority = 0")
                              TEST_OUT("default", "ionice", "io-class = best-effort")
                                  TEST_OUT("none", "ionice", "")
                                      TEST_JOB("realtime", "exit 0", "io-class = realtime"),
                      getuid() == 0 ? NOBODY : getuid());
    snprintf(mine, sizeof(mine), "%s: prio %d\n",
             class >> 13 == 0   ? "none"
             : class >> 13 == 2 ? "best-effort"
                                : "idle",
             class & 7);
    test_runner_prints(&t, &m, "idle", "idle\n");
    test_runner_prints(&t, &m, "first", "best-effort: prio 0\n");
    test_runner_prints(&t, &m, "default", "best-effort: prio 4\n");
    test_runner_prints(&t, &m, "none", mine);
    test_runner_fails(&t, &m, "realtime", EPERM, "io-class");
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"script", test_script}, {"home", test_home},   {"stdin", test_stdin},
    {"io", test_io},         {"facts", test_facts}, CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "environment", .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
