/* SPDX-License-Identifier: MIT */
/* Environment of a command, besides test-job-command.c: the facts of a run that berthd sends. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/protocol.h"
#include "tests/harness/runner/runner.h"
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
    TEST_FIELD(&m, "trigger", "hook"); /* the report informs the next berthd */
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

static void refused_sets(const char *job, const char *const *fields, const char *reason) {
    send_with('2', job, fields);
    test_await(t.fd, &m, PROTOCOL_REFUSED);
    TEST_FIELD(&m, "reason", reason);
    CU_ASSERT(!test_runner_has_file(&t, '2', ".guard") && !test_runner_has_file(&t, '2', ".sock"));
}

/* S28: a forged berthd sends parameters that the real one refuses. berth-runner is the last of three that
 * check. */
static void test_sets(void) {
    static const char *const right[] = {"set-0", "TABLE=users", "set-1", "NOTE=$(id); rm", NULL};
    static const char *const unknown[] = {"set-0", "TABLE=users", "set-1", "COLOUR=red", NULL};
    static const char *const other_value[] = {"set-0", "TABLE=user", NULL}, *const missing[] = {NULL};
    static const char *const twice[] = {"set-0", "TABLE=users", "set-1", "TABLE=orders", NULL};
    static const char *const dangerous[] = {"set-0", "TABLE=users", "set-1", "LD_PRELOAD=/tmp/x.so", NULL};
    static const char *const no_name[] = {"set-0", "TABLE", NULL}, *const lower[] = {"set-0", "path=/x",
                                                                                     NULL};
    static const char *const sixteen[] = {"set-16", "TABLE=users", NULL};
    static char large[1100] = "TABLE=";
    const char *const too_long[] = {"set-0", large, NULL};
    _cleanup_free_ char *text = NULL;

    memset(large + 6, 'x', 1025);
    test_runner_begin(&t,
                      TEST_OUT("copy", "env | grep -E '^(TABLE|NOTE)=' | sort",
                               "parameters = {\"TABLE=users|orders\", NOTE} environment = {\"NOTE=x\"}")
                          TEST_SH("none", "exit 0"),
                      getuid());
    send_with('1', "copy", right);
    test_await(t.fd, &m, PROTOCOL_STARTING);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "code", "0");
    TEST_FIELD(&m, "set-0", "TABLE=users"); /* the report informs the next berthd */
    test_say(t.fd, PROTOCOL_FORGET, "run", test_runner_id('1'));
    text = test_runner_read(&t, "copy.out");
    TEST_STRING(text, "NOTE=$(id); rm\nTABLE=users\n");
    refused_sets("copy", unknown, "parameters");
    refused_sets("copy", other_value, "parameters");
    refused_sets("copy", missing, "parameters");
    refused_sets("copy", twice, "parameters");
    refused_sets("none", right, "parameters");
    refused_sets("copy", dangerous, "bad-request");
    refused_sets("copy", no_name, "bad-request");
    refused_sets("copy", lower, "bad-request");
    refused_sets("copy", too_long, "bad-request");
    refused_sets("copy", sixteen, "bad-request");
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
    TEST_FIELD(&m, "text", "stdin /: Is a directory");
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

#define FILES(name, files, more)                                                                            \
    "job \"" name "\" { script = 'env | grep ^V | sort' output = \"@/" name                                 \
    ".out\" environment-file = {" files "} " more " }\n"

static void write_file(const char *name, const char *text, mode_t mode, uid_t owner) {
    const char *path = test_runner_path(&t, name);

    (void) unlink(path);
    TEST_INT(file_write_atomic(path, text, strlen(text), mode), 0);
    TEST_INT(chmod(path, mode), 0);
    if (getuid() == 0)
        TEST_INT(chown(path, owner, owner), 0);
}

/* Later files win over earlier ones, environment over files, and berth over all. */
static void test_order(void) {
    test_runner_begin(
        &t,
        FILES(
            "order", "\"@/one\", \"-@/none\", \"@/two\"",
            "environment = {\"V3=job\", \"V5=job\"}") "job \"path\" { script = 'echo $PATH $HOME' output = "
                                                      "\"@/path.out\" environment-file = {\"@/one\"} }\n",
        getuid());
    write_file("one", "V1=1\nV2=1\nV3=1\nPATH=/bin\nHOME=\"/ x\"\n", 0644, getuid());
    write_file("two", "# two\nV2='2'\nV4=$V1\nV5=2\nPATH=/usr/bin:/bin\n", 0600, getuid());
    test_runner_prints(&t, &m, "order", "V1=1\nV2=2\nV3=job\nV4=$V1\nV5=job\n");
    test_runner_prints(&t, &m, "path", "/bin / x\n");
    write_file("two", "V2=new\n", 0600, getuid()); /* read before each run */
    (void) unlink(test_runner_path(&t, "order.out"));
    test_runner_prints(&t, &m, "order", "V1=1\nV2=new\nV3=job\nV5=job\n");
    test_runner_done(&t);
}

static void fails_with(const char *job, int error, const char *problem) {
    char text[256];

    test_runner_fails(&t, &m, job, error, "environment");
    snprintf(text, sizeof(text), "environment-file %s%s", test_runner_path(&t, "file"), problem);
    TEST_FIELD(&m, "text", text);
}

/* S30: no bad file hangs the run, and each reason names the file. */
static void test_refused(void) {
    _cleanup_free_ char *large = malloc(65536 + 2);

    CU_ASSERT_FATAL(large != NULL);
    memset(large, '#', 65537);
    large[65537] = '\0';
    test_runner_begin(&t, FILES("file", "\"@/file\"", "") FILES("release", "\"/etc/os-release\"", ""),
                      getuid());
    fails_with("file", ENOENT, ": No such file or directory");
    write_file("file", "A=1\n\nexport B=2\n", 0644, getuid());
    fails_with("file", EBADMSG, ":3: no NAME=VALUE");
    write_file("file", "BERTH_TOKEN=1\n", 0644, getuid());
    fails_with("file", EBADMSG, ":1: a name of berth's own, BERTH_...");
    write_file("file", large, 0644, getuid());
    fails_with("file", EFBIG, ": larger than 64K");
    write_file("file", "V=1\n", 0666, getuid());
    fails_with("file", EPERM, ": group or others may write to it");
    write_file("file", "V=1\n", 0620, getuid());
    fails_with("file", EPERM, ": group or others may write to it");
    write_file("file", "V=1\n", 0602, getuid());
    fails_with("file", EPERM, ": group or others may write to it");
    write_file("other", "V=1\n", 0644, getuid());
    (void) unlink(test_runner_path(&t, "file"));
    CU_ASSERT_FATAL(symlink("other", test_runner_path(&t, "file")) == 0);
    fails_with("file", ELOOP, ": a symbolic link");
    (void) unlink(test_runner_path(&t, "file"));
    CU_ASSERT_FATAL(mkfifo(test_runner_path(&t, "file"), 0600) == 0);
    fails_with("file", EPERM, ": not a regular file");
    (void) unlink(test_runner_path(&t, "file"));
    CU_ASSERT_FATAL(mkdir(test_runner_path(&t, "file"), 0700) == 0);
    fails_with("file", EPERM, ": not a regular file");
    (void) rmdir(test_runner_path(&t, "file"));
    /* A link that root made is refused, too. */
    if (readlink("/etc/os-release", large, 65536) > 0)
        test_runner_fails(&t, &m, "release", ELOOP, "environment");
    memset(large, '#', 65537);
    large[65536] = '\0'; /* as much as is allowed */
    write_file("file", large, 0644, getuid());
    test_runner_run(&t, &m, '1', "file");
    TEST_FIELD(&m, "errno", NULL);
    test_runner_done(&t);
}

/* The file may be root's, even if the job's user may not read it. A file or link of a third user is
 * refused. */
static void test_owners(void) {
    TEST_NEEDS_ROOT();
    test_runner_begin(&t,
                      FILES("file", "\"@/file\"", "user = \"nobody\"") FILES("root", "\"@/file\"", "")
                          FILES("link", "\"@/theirs/link/secret\"", ""),
                      getuid());
    CU_ASSERT_FATAL(chmod(t.directory, 01777) == 0);
    write_file("file", "V=root\n", 0600, 0);
    test_runner_prints(&t, &m, "file", "V=root\n");
    write_file("file", "V=own\n", 0600, NOBODY);
    (void) unlink(test_runner_path(&t, "file.out"));
    test_runner_prints(&t, &m, "file", "V=own\n");
    fails_with("root", EPERM, ": owned neither by root nor by the job's user");
    write_file("file", "V=1\n", 0644, 1);
    fails_with("file", EPERM, ": owned neither by root nor by the job's user");
    /* A directory of another user, with a link to the directory of root's secret. */
    CU_ASSERT_FATAL(mkdir(test_runner_path(&t, "theirs"), 0755) == 0 &&
                    mkdir(test_runner_path(&t, "secrets"), 0700) == 0);
    write_file("secrets/secret", "V=secret\n", 0600, 0);
    CU_ASSERT_FATAL(symlink("../secrets", test_runner_path(&t, "theirs/link")) == 0);
    CU_ASSERT_FATAL(chown(test_runner_path(&t, "theirs"), NOBODY, NOBODY) == 0);
    test_runner_fails(&t, &m, "link", ELOOP, "environment");
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"order", test_order}, {"refused", test_refused}, {"owners", test_owners}, {"script", test_script},
    {"home", test_home},   {"stdin", test_stdin},     {"io", test_io},         {"sets", test_sets},
    {"facts", test_facts}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "environment", .pTests = tests});
