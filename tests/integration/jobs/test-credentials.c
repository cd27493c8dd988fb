/* SPDX-License-Identifier: MIT */
/* Credentials of a job (S31): what the command and other users can read, and that nothing is left after the
 * run, whatever was killed. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/protocol.h"
#include "tests/harness/runner/runner.h"
#include "tests/harness/test.h"

#define SECRET "s3cret-of-this-test"
#define MEMORY "/dev/shm"
#define JOB(name, script, more) "job \"" name "\" { script = '" script "' output = \"@/" name ".out\" stop-timeout = \"200ms\" " more " }\n"
#define HANGS(more) JOB("hangs", "cat $CREDENTIALS_DIRECTORY/token; exec sleep 60", "credentials = {\"token=@/token\"} " more)

static struct test_runner t;
static struct message m; /* large */

static void write_file(const char *name, const char *text, mode_t mode) {
    const char *path = test_runner_path(&t, name);

    (void) unlink(path);
    TEST_INT(file_write_atomic(path, text, strlen(text), mode), 0);
    TEST_INT(chmod(path, mode), 0);
}

/* Returns false if there is no tmpfs here. */
static bool prepare(const char *jobs) {
    struct statfs fs;

    if (statfs(MEMORY, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
        return false;
    test_runner_prepare_in(&t, getuid(), MEMORY);
    if (getuid() == 0)
        CU_ASSERT_FATAL(chmod(t.directory, 01777) == 0); /* outputs of nobody */
    write_file("token", SECRET "\n", 0600);
    test_runner_configure(&t, jobs);
    return true;
}

#define NEEDS_MEMORY(jobs) \
    if (!prepare(jobs))    \
    TEST_SKIP("no tmpfs on " MEMORY)

static void begin(void) {
    test_runner_start(&t);
    test_runner_join(&t);
}

static int count_one(_unused_ const char *name, void *userdata) {
    ++*(unsigned *) userdata;
    return 0;
}

/* Returns the number of runs with a directory of credentials. */
static unsigned count(void) {
    unsigned n = 0;

    TEST_INT(directory_each(test_runner_path(&t, "run/" PROTOCOL_CREDENTIALS), count_one, &n), 0);
    return n;
}

/* Starts a run that reads its secret and hangs. Returns the pid of its guard. */
static pid_t hang(char run) {
    _cleanup_free_ char *text = NULL;

    test_runner_begin_run(&t, &m, run, "hangs");
    close_fd(test_guard_join(&t, &m, run, "hangs.out"));
    text = test_runner_read(&t, "hangs.out");
    TEST_STRING(text, SECRET "\n");
    TEST_INT(count(), 1);
    return test_runner_guard_pid(&t, &m, run);
}

/* --- what the command finds --- */

static void test_found(void) {
    const struct passwd *user = getpwuid(getuid());
    const char *owner = user ? user->pw_name : "UNKNOWN"; /* as stat(1) prints it */
    char expected[160];

    NEEDS_MEMORY(JOB("found", "cd $CREDENTIALS_DIRECTORY && pwd && stat -c \"%a %U %n\" . * && cat *", "credentials = {\"token=@/token\", \"empty=@/empty\"}"
                     " environment = {\"CREDENTIALS_DIRECTORY=/mine\"}")
                 JOB("none", "echo ${CREDENTIALS_DIRECTORY-none}", ""));
    write_file("empty", "", 0640);
    begin();
    snprintf(expected, sizeof(expected), "%s/%s\n500 %s .\n400 %s empty\n400 %s token\n" SECRET "\n",
             test_runner_path(&t, "run/" PROTOCOL_CREDENTIALS), test_runner_id('1'), owner, owner, owner);
    test_runner_prints(&t, &m, "found", expected);
    test_runner_prints(&t, &m, "none", "none\n");
    TEST_INT(count(), 0);
    test_runner_done(&t);
}

static void cannot_look(void) {
    char path[256];

    CU_ASSERT(access(test_runner_path(&t, "run/" PROTOCOL_CREDENTIALS), R_OK) < 0);
    snprintf(path, sizeof(path), "%s/%s", test_runner_path(&t, "run/" PROTOCOL_CREDENTIALS), test_runner_id('1'));
    CU_ASSERT(access(path, R_OK) < 0 && access(path, X_OK) < 0);
    snprintf(path + strlen(path), sizeof(path) - strlen(path), "/token");
    CU_ASSERT(open(path, O_RDONLY | O_CLOEXEC) < 0);
}

/* Returns whether any file of /proc/PID has the secret. */
static bool leaks(pid_t pid, const char *name) {
    char path[64], text[65536];
    _cleanup_close_ int fd = -1;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    CU_ASSERT_FATAL(fd >= 0);
    n = read(fd, text, sizeof(text));
    CU_ASSERT(n > 0);
    return n > 0 && memmem(text, (size_t) n, SECRET, strlen(SECRET));
}

static void test_others(void) {
    pid_t guard, command;
    int fd;

    TEST_NEEDS_ROOT();
    NEEDS_MEMORY(HANGS("user = \"daemon\""));
    begin();
    guard = hang('1');
    test_as_stranger(cannot_look);
    fd = test_runner_guard(&t, '1');
    test_await(fd, &m, PROTOCOL_STATE);
    command = (pid_t) test_number(&m, "pid");
    for (int i = 0; i < 2; i++) {
        CU_ASSERT(!leaks(i ? guard : command, "environ"));
        CU_ASSERT(!leaks(i ? guard : command, "cmdline"));
    }
    test_say(fd, PROTOCOL_STOP, "reason", "stopped");
    test_await(fd, &m, PROTOCOL_STOPPING);
    test_await(fd, &m, PROTOCOL_REPORT);
    TEST_INT(count(), 0); /* before berthd learns of the end */
    test_say(fd, PROTOCOL_DONE, NULL, NULL);
    test_await_end(fd);
    close_fd(fd);
    test_runner_done(&t);
}

/* A credential of berth-runner's own unit. The password of Redis is refused by the config. */
static void test_own(void) {
    char variable[160];
    char *environment[] = {variable, NULL};

    NEEDS_MEMORY(JOB("own", "cat $CREDENTIALS_DIRECTORY/webhook", "credentials = {\"webhook\"}")
                 JOB("missing", "true", "credentials = {\"nothing\"}"));
    CU_ASSERT_FATAL(mkdir(test_runner_path(&t, "given"), 0700) == 0);
    write_file("given/webhook", "url\n", 0400);
    snprintf(variable, sizeof(variable), "CREDENTIALS_DIRECTORY=%s", test_runner_path(&t, "given"));
    t.environment = environment;
    begin();
    test_runner_prints(&t, &m, "own", "url\n");
    test_runner_fails(&t, &m, "missing", ENOENT, "credentials");
    TEST_FIELD(&m, "text", "credentials nothing: berth-runner has no such credential; pass it by LoadCredential= of its unit");
    TEST_INT(count(), 0);
    test_runner_done(&t);
}

/* --- what is refused --- */

static void fails_with(const char *job, int error, const char *file, const char *problem) {
    char text[256];

    test_runner_fails(&t, &m, job, error, "credentials");
    snprintf(text, sizeof(text), "credentials %s=%s: %s", job, test_runner_path(&t, file), problem);
    TEST_FIELD(&m, "text", text);
    TEST_INT(count(), 0);
}

#define TAKES(name, file) JOB(name, "true", "credentials = {\"token=@/token\", \"" name "=@/" file "\"}")

static void test_refused(void) {
    static char large[(1 << 20) + 2];

    NEEDS_MEMORY(TAKES("missing", "missing") TAKES("open", "open") TAKES("fifo", "fifo") TAKES("large", "large"));
    write_file("open", "x", 0644);
    memset(large, 'x', sizeof(large) - 1);
    write_file("large", large, 0600);
    CU_ASSERT_FATAL(mkfifo(test_runner_path(&t, "fifo"), 0600) == 0);
    begin();
    fails_with("missing", ENOENT, "missing", "No such file or directory");
    fails_with("open", EPERM, "open", "open to every user of this machine");
    fails_with("fifo", EPERM, "fifo", "not a regular file");
    large[(1 << 20) - strlen(SECRET)] = '\0'; /* one byte more than there is room: SECRET has a newline */
    write_file("large", large, 0600);
    fails_with("large", EFBIG, "large", "the credentials of a job may have 1M in all");
    large[(1 << 20) - strlen(SECRET) - 1] = '\0';
    write_file("large", large, 0600);
    test_runner_run(&t, &m, '1', "large");
    TEST_FIELD(&m, "code", "0");
    test_runner_done(&t);
}

static void test_on_disk(void) {
    struct statfs fs;

    if (statfs("/tmp", &fs) < 0 || fs.f_type == TMPFS_MAGIC)
        TEST_SKIP("/tmp is not on a disk");
    test_runner_prepare(&t, getuid());
    write_file("token", SECRET, 0600);
    test_runner_configure(&t, JOB("disk", "true", "credentials = {\"token=@/token\"}"));
    begin();
    test_runner_fails(&t, &m, "disk", EMEDIUMTYPE, "credentials");
    TEST_FIELD(&m, "text", "credentials: the runtime directory is on a disk; it must be on a tmpfs");
    TEST_INT(count(), 0);
    test_runner_done(&t);
}

/* --- nothing is left --- */

static void test_run_killed(void) {
    NEEDS_MEMORY(JOB("dies", "kill -KILL $$", "credentials = {\"token=@/token\"}"));
    begin();
    test_runner_run(&t, &m, '1', "dies");
    TEST_FIELD(&m, "signal", "9");
    TEST_INT(count(), 0);
    test_runner_done(&t);
}

static void test_guard_killed(void) {
    pid_t guard;

    NEEDS_MEMORY(HANGS(""));
    begin();
    guard = hang('1');
    TEST_INT(kill(guard, SIGKILL), 0);
    test_await(t.fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "lost", "1");
    TEST_INT(count(), 0);
    test_say(t.fd, PROTOCOL_FORGET, "run", test_runner_id('1'));
    test_runner_settle(&t);
    test_runner_done(&t);
}

/* The guard goes on, and removes them when its run is over. */
static void test_runner_killed(void) {
    int fd;

    NEEDS_MEMORY(HANGS(""));
    begin();
    (void) hang('1');
    test_runner_end(&t, SIGKILL);
    TEST_INT(count(), 1);
    fd = test_runner_guard(&t, '1');
    test_await(fd, &m, PROTOCOL_STATE);
    test_runner_start(&t); /* leaves what a living guard has */
    TEST_INT(count(), 1);
    test_say(fd, PROTOCOL_STOP, "reason", "stopped");
    test_await(fd, &m, PROTOCOL_STOPPING);
    test_await(fd, &m, PROTOCOL_REPORT);
    TEST_INT(count(), 0);
    test_say(fd, PROTOCOL_DONE, NULL, NULL);
    test_await_end(fd);
    close_fd(fd);
    test_runner_done(&t);
}

static void test_both_killed(void) {
    pid_t guard;

    NEEDS_MEMORY(HANGS(""));
    begin();
    guard = hang('1');
    test_runner_end(&t, SIGKILL);
    test_kill_and_wait(guard);
    TEST_INT(count(), 1);
    /* And of a run of which nothing else is left. */
    CU_ASSERT_FATAL(mkdir(test_runner_path(&t, "run/" PROTOCOL_CREDENTIALS "/0123456789abcdef0123456789abcdef"), 0500) == 0);
    test_runner_start(&t);
    close_fd(t.fd);
    t.fd = test_runner_connect(&t);
    test_runner_hello(&t, t.fd);
    do
        test_await_any(t.fd, &m);
    while (!message_is(&m, PROTOCOL_RECOVERED));
    TEST_INT(count(), 0);
    test_say(t.fd, PROTOCOL_FORGET, "run", test_runner_id('1'));
    test_runner_settle(&t);
    test_runner_done(&t);
}

/* The user owns the directory, and may fill it. */
static void test_filled(void) {
    TEST_NEEDS_ROOT();
    NEEDS_MEMORY(JOB("fills", "cd $CREDENTIALS_DIRECTORY; chmod 700 .; mkdir -p a/b/c/d e/f .x; touch a/1 a/b/2 a/b/c/d/3 .x/4 5;"
                     " ln -s / root; ln -s /etc a/b/etc; mkfifo e/fifo; mkdir .1 .2; touch .2/x; chmod 0 a/b/c e .x; chmod 0 .; echo done",
                     "credentials = {\"token=@/token\"} user = \"nobody\""));
    begin();
    test_runner_prints(&t, &m, "fills", "done\n");
    TEST_INT(count(), 0);
    CU_ASSERT(access("/etc/passwd", F_OK) == 0);
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"found", test_found},
    {"others", test_others},
    {"own", test_own},
    {"refused", test_refused},
    {"on disk", test_on_disk},
    {"run killed", test_run_killed},
    {"guard killed", test_guard_killed},
    {"runner killed", test_runner_killed},
    {"both killed", test_both_killed},
    {"filled", test_filled},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "credentials", .pTests = tests});
