/* SPDX-License-Identifier: MIT */
#include "tests/harness/runner/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/protocol.h"
#include "base/socket.h"
#include "conf/settings.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

#define PATIENCE_MS 30000

/* --- the directory --- */

static void path_of(struct test_runner *t, char path[static 160], const char *name) {
    snprintf(path, 160, "%s/%s", t->directory, name);
}

static char *fill_in(const char *text, const char *directory) {
    size_t n = 0, size = strlen(text) + 1;
    char *filled;

    for (const char *c = text; *c; c++)
        size += *c == '@' ? strlen(directory) : 0;
    filled = malloc(size);
    CU_ASSERT_FATAL(filled != NULL);
    for (const char *c = text; *c; c++)
        if (*c == '@') {
            memcpy(filled + n, directory, strlen(directory));
            n += strlen(directory);
        } else
            filled[n++] = *c;
    filled[n] = '\0';
    return filled;
}

void test_runner_configure(struct test_runner *t, const char *jobs) {
    _cleanup_free_ char *text = NULL, *whole = NULL;
    char path[160];

    text = fill_in(jobs, t->directory);
    CU_ASSERT_FATAL(asprintf(&whole, "host = \"h\"\nnamespace = \"n\"\nruntime-directory = \"%s/run\"\n%s\n", t->directory, text) > 0);
    path_of(t, path, "berth.conf");
    CU_ASSERT_FATAL(file_write_atomic(path, whole, strlen(whole), 0644) == 0);
}

void test_runner_prepare(struct test_runner *t, uid_t uid) {
    test_runner_prepare_in(t, uid, "/tmp");
}

void test_runner_prepare_in(struct test_runner *t, uid_t uid, const char *folder) {
    *t = (struct test_runner) {.uid = uid, .fd = -1};
    snprintf(t->directory, sizeof(t->directory), "%s/berth-runner-XXXXXX", folder);
    CU_ASSERT_FATAL(mkdtemp(t->directory) != NULL);
    CU_ASSERT_FATAL(chmod(t->directory, 0755) == 0 && chown(t->directory, uid, (gid_t) -1) == 0);
}

void test_runner_init(struct test_runner *t, const char *jobs, uid_t uid) {
    test_runner_prepare(t, uid);
    test_runner_configure(t, jobs);
    test_runner_start(t);
}

void test_runner_begin(struct test_runner *t, const char *jobs, uid_t uid) {
    test_runner_init(t, jobs, uid);
    test_runner_join(t);
}

void test_runner_done(struct test_runner *t) {
    t->fd = close_fd(t->fd);
    if (t->pid > 0)
        test_runner_end(t, SIGTERM);
    place_remove(t->directory);
    CU_ASSERT(access(t->directory, F_OK) < 0);
}

bool test_runner_has(struct test_runner *t, const char *name) {
    char path[160];

    path_of(t, path, name);
    return access(path, F_OK) == 0;
}

const char *test_runner_path(struct test_runner *t, const char *name) {
    static char path[160];

    path_of(t, path, name);
    return path;
}

void test_runner_write(struct test_runner *t, const char *name, const char *text) {
    _cleanup_close_ int fd = open(test_runner_path(t, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    CU_ASSERT_FATAL(fd >= 0);
    TEST_INT(file_write(fd, text, strlen(text)), 0);
}

bool test_runner_wait_for(int fd, short events) {
    struct pollfd p = {.fd = fd, .events = events};

    return poll(&p, 1, PATIENCE_MS) == 1;
}

char *test_runner_read(struct test_runner *t, const char *name) {
    _cleanup_close_ int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    char path[160], events[4096], *text = NULL;
    size_t size = 0;

    path_of(t, path, name);
    CU_ASSERT_FATAL(watch >= 0 && inotify_add_watch(watch, t->directory, IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO) >= 0);
    for (;;) {
        if (file_read(path, 65536, &text, &size) == 0 && size > 0 && text[size - 1] == '\n')
            return text;
        free(text);
        text = NULL;
        if (!test_runner_wait_for(watch, POLLIN)) {
            CU_FAIL_FATAL("a file was not written");
        }
        (void) !read(watch, events, sizeof(events));
    }
}

void test_runner_await_file(struct test_runner *t, char run, const char *suffix) {
    _cleanup_close_ int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    char directory[160], name[80], events[4096];

    path_of(t, directory, "run/" PROTOCOL_RUNS);
    snprintf(name, sizeof(name), "run/%s/%s%s", PROTOCOL_RUNS, test_runner_id(run), suffix);
    CU_ASSERT_FATAL(watch >= 0 && inotify_add_watch(watch, directory, IN_MOVED_TO | IN_CREATE) >= 0);
    while (!test_runner_has(t, name)) {
        if (!test_runner_wait_for(watch, POLLIN)) {
            CU_FAIL_FATAL("a file was not made");
        }
        (void) !read(watch, events, sizeof(events));
    }
}

void test_as_stranger(void (*fn)(void)) {
    unsigned failures = CU_get_number_of_failures();
    int status = 0;
    pid_t pid;

    TEST_NEEDS_ROOT();
    pid = fork();
    if (pid == 0) {
        if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
            _exit(1);
        fn();
        _exit(CU_get_number_of_failures() > failures ? 2 : 0);
    }
    CU_ASSERT(waitpid(pid, &status, 0) == pid);
    TEST_INT(status, 0);
}

void test_kill_and_wait(pid_t pid) {
    _cleanup_close_ int pidfd = pidfd_open(pid, 0);

    CU_ASSERT_FATAL(pidfd >= 0);
    CU_ASSERT(pidfd_send_signal(pidfd, SIGKILL, NULL, 0) == 0);
    CU_ASSERT_FATAL(test_runner_wait_for(pidfd, POLLIN));
}

/* --- the process --- */

/* A capability that the runner may pass on: no other user's command may have it. */
static int add_stray_capability(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};

    if (syscall(SYS_capget, &header, sets) < 0)
        return -1;
    sets[0].inheritable |= 1U << CAP_NET_RAW;
    return (int) syscall(SYS_capset, &header, sets);
}

static _Noreturn void runner_exec(struct test_runner *t, int program, const char *notify) {
    char config[160];
    char *argv[] = {(char *) "berth-runner", (char *) "-c", config, NULL};
    const gid_t stray = 4711; /* a group of the runner's that no other user's command may have */

    path_of(t, config, "berth.conf");
    if (setenv("NOTIFY_SOCKET", notify, 1) < 0 || unsetenv("JOURNAL_STREAM") < 0 || setenv("BERTH_STRAY", "1", 1) < 0)
        _exit(126);
    if (geteuid() == 0 && t->uid == 0 && (setgroups(1, &stray) < 0 || add_stray_capability() < 0))
        _exit(126);
    if (t->uid != geteuid() && (setgroups(0, NULL) < 0 || setresgid(t->uid, t->uid, t->uid) < 0 || setresuid(t->uid, t->uid, t->uid) < 0))
        _exit(126);
    for (char *const *e = t->environment; e && *e; e++)
        (void) putenv(*e);
    if (t->before_exec)
        t->before_exec();
    (void) prctl(PR_SET_PDEATHSIG, SIGTERM); /* a test that fails half-way leaves it */
    fexecve(program, argv, environ); /* the build may be where t->uid cannot look */
    _exit(127);
}

void test_runner_start(struct test_runner *t) {
    _cleanup_close_ int notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), program = -1;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[512], text[64] = "";

    program = open(place_program(path, sizeof(path), "berth-runner"), O_PATH | O_CLOEXEC);
    CU_ASSERT_FATAL(program >= 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", t->directory);
    (void) unlink(address.sun_path);
    CU_ASSERT_FATAL(bind(notify, (struct sockaddr *) &address, sizeof(address)) == 0 && chmod(address.sun_path, 0777) == 0);
    t->pid = fork();
    if (t->pid == 0)
        runner_exec(t, program, address.sun_path);
    CU_ASSERT_FATAL(t->pid > 0);
    CU_ASSERT_FATAL(test_runner_wait_for(notify, POLLIN));
    CU_ASSERT_FATAL(recv(notify, text, sizeof(text) - 1, MSG_DONTWAIT) > 0);
    TEST_STRING(text, "READY=1");
}

void test_runner_start_as_child(struct test_runner *t) {
    char config[160], program[512];
    int fds[2];

    path_of(t, config, "berth.conf");
    (void) place_program(program, sizeof(program), "berth-runner");
    CU_ASSERT_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
    close_fd(t->fd);
    t->fd = fds[0];
    test_say(t->fd, PROTOCOL_HELLO, "version", "1");
    t->pid = fork();
    if (t->pid == 0) {
        if (dup2(fds[1], 3) < 0 || fcntl(3, F_SETFD, 0) < 0)
            _exit(126);
        (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
        execl(program, "berth-runner", "-c", config, "--socket-fd", "3", (char *) NULL);
        _exit(127);
    }
    CU_ASSERT_FATAL(t->pid > 0);
    close_fd(fds[1]);
}

void test_runner_end(struct test_runner *t, int signal) {
    int status = 0;

    CU_ASSERT(kill(t->pid, signal) == 0);
    CU_ASSERT(waitpid(t->pid, &status, 0) == t->pid);
    CU_ASSERT(signal == SIGKILL ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
    t->pid = 0;
}

pid_t test_runner_start_adhoc(char id, const char *token, uid_t uid) {
    char run[64], value[64];
    int executed[2]; /* ends with exec */
    pid_t pid;

    snprintf(run, sizeof(run), "BERTH_RUN=%s", test_runner_id(id));
    snprintf(value, sizeof(value), "BERTH_TOKEN=%s", token);
    pid = pipe2(executed, O_CLOEXEC) == 0 ? fork() : -1;
    if (pid == 0) {
        if (uid == 0 || (setgid(uid) == 0 && setuid(uid) == 0))
            execle("/bin/sleep", "sleep", "1000", (char *) NULL, (char *[]) {run, value, NULL});
        _exit(127);
    }
    CU_ASSERT_FATAL(pid > 0);
    close(executed[1]);
    TEST_INT(read(executed[0], run, 1), 0);
    close(executed[0]);
    return pid;
}
