/* SPDX-License-Identifier: MIT */
#include "tests/harness/runner.h"

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

static bool wait_for(int fd, short events) {
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
        if (!wait_for(watch, POLLIN)) {
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
        if (!wait_for(watch, POLLIN)) {
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
    CU_ASSERT_FATAL(wait_for(pidfd, POLLIN));
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
    CU_ASSERT_FATAL(wait_for(notify, POLLIN));
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

/* --- messages --- */

void test_await_any(int fd, struct message *m) {
    int r;

    while ((r = message_receive(fd, m)) == -EAGAIN)
        if (!wait_for(fd, POLLIN)) {
            CU_FAIL_FATAL("no message came");
        }
    TEST_INT(r, 0);
    CU_ASSERT_FATAL(r == 0);
}

void test_await(int fd, struct message *m, const char *verb) {
    test_await_any(fd, m);
    TEST_STRING(m->verb, verb);
    CU_ASSERT_FATAL(strcmp(m->verb, verb) == 0);
}

uint64_t test_number(const struct message *m, const char *key) {
    uint64_t value = 0;

    TEST_INT(message_get_u64(m, key, &value), 0);
    return value;
}

void test_runner_begin_run(struct test_runner *t, struct message *m, char run, const char *job) {
    test_runner_send_start(t, run, job);
    test_await(t->fd, m, PROTOCOL_STARTING);
    TEST_FIELD(m, "run", test_runner_id(run));
}

void test_runner_run(struct test_runner *t, struct message *m, char run, const char *job) {
    test_runner_begin_run(t, m, run, job);
    test_await(t->fd, m, PROTOCOL_REPORT);
    TEST_FIELD(m, "run", test_runner_id(run));
    test_say(t->fd, PROTOCOL_FORGET, "run", test_runner_id(run));
}

void test_runner_prints(struct test_runner *t, struct message *m, const char *job, const char *expected) {
    _cleanup_free_ char *text = NULL;
    char name[40];

    test_runner_run(t, m, '1', job);
    TEST_FIELD(m, "errno", NULL);
    TEST_FIELD(m, "code", "0");
    snprintf(name, sizeof(name), "%s.out", job);
    text = test_runner_read(t, name);
    TEST_STRING(text, expected);
}

void test_runner_fails(struct test_runner *t, struct message *m, const char *job, int error, const char *stage) {
    test_runner_run(t, m, '1', job);
    TEST_INT(test_number(m, "errno"), error);
    TEST_FIELD(m, "stage", stage);
    TEST_FIELD(m, "code", NULL);
    TEST_FIELD(m, "started", NULL);
}

bool test_runner_has_file(struct test_runner *t, char run, const char *suffix) {
    char name[80];

    snprintf(name, sizeof(name), "run/runner/runs/%s%s", test_runner_id(run), suffix);
    return test_runner_has(t, name);
}

void test_runner_settle(struct test_runner *t) {
    struct message m;

    test_say(t->fd, PROTOCOL_KILL, "run", test_runner_id('e'));
    test_await(t->fd, &m, PROTOCOL_REPORT);
    TEST_FIELD(&m, "run", test_runner_id('e'));
}

void test_await_end(int fd) {
    struct message m;
    int r;

    while ((r = message_receive(fd, &m)) == -EAGAIN)
        if (!wait_for(fd, POLLIN)) {
            CU_FAIL_FATAL("the connection was not closed");
        }
    TEST_INT(r, -ENOTCONN);
}

void test_say(int fd, const char *verb, const char *key, const char *value) {
    struct message_writer w;

    message_begin(&w, verb);
    if (key)
        message_put(&w, key, value);
    TEST_INT(message_send(fd, &w), 0);
}

static int connect_to(struct test_runner *t, const char *name) {
    char path[160];
    int fd;

    path_of(t, path, name);
    fd = socket_connect(path, SOCK_SEQPACKET);
    CU_ASSERT_FATAL(fd >= 0);
    return fd;
}

void test_runner_cannot_connect(struct test_runner *t, const char *name) {
    char path[160];

    path_of(t, path, name);
    TEST_INT(socket_connect(path, SOCK_SEQPACKET), -EACCES);
}

void test_runner_open_up(struct test_runner *t, const char *name) {
    char path[160];

    path_of(t, path, name);
    TEST_INT(chmod(path, 0666), 0);
}

int test_runner_connect(struct test_runner *t) {
    return connect_to(t, "run/" PROTOCOL_RUNNER_SOCKET);
}

void test_runner_hello(_unused_ struct test_runner *t, int fd) {
    struct message m;

    test_say(fd, PROTOCOL_HELLO, "version", "1");
    test_await(fd, &m, PROTOCOL_HELLO);
    TEST_FIELD(&m, "version", "1");
}

void test_runner_join(struct test_runner *t) {
    struct message m;

    close_fd(t->fd);
    t->fd = test_runner_connect(t);
    test_runner_hello(t, t->fd);
    test_await(t->fd, &m, PROTOCOL_RECOVERED);
}

const char *test_runner_id(char run) {
    static char id[ID_TEXT_SIZE];

    /* Of this program alone: cgroups are named after runs, and other tests run at the same time. */
    if (!id[0] && id_make(id) < 0)
        abort();
    id[0] = run;
    return id;
}

const char *test_runner_hash(struct test_runner *t, const char *job) {
    _cleanup_(settings_freep) struct settings *settings = NULL;
    const struct job_settings *found;
    struct settings_errors errors = {0};
    static char hash[17];
    char path[160];
    int r;

    path_of(t, path, "berth.conf");
    CU_ASSERT_FATAL(seteuid(t->uid) == 0); /* as the runner, whose directory it is */
    r = settings_load(path, &settings, &errors);
    CU_ASSERT_FATAL(seteuid(getuid()) == 0);
    for (size_t i = 0; i < errors.n; i++)
        puts(errors.lines[i]);
    settings_errors_done(&errors);
    CU_ASSERT_FATAL(r == 0);
    found = settings_find_job(settings, job);
    CU_ASSERT_FATAL(found != NULL);
    memcpy(hash, found->hash, sizeof(hash));
    return hash;
}

void test_runner_begin_start(struct message_writer *w, char run, const char *job, const char *hash) {
    message_begin(w, PROTOCOL_START);
    message_put(w, "run", test_runner_id(run));
    message_put(w, "job", job);
    message_put(w, "hash", hash);
    message_put_u64(w, "token", 1763640079123456);
    message_put_u64(w, "ticket", 1763640079123455);
    message_put(w, "pools", "db:2,net:1");
    message_put(w, "namespace", "n");
    message_put(w, "host", "h");
    message_put_u64(w, "queued", 1763640079123000);
}

void test_runner_send_start(struct test_runner *t, char run, const char *job) {
    struct message_writer w;

    test_runner_begin_start(&w, run, job, test_runner_hash(t, job));
    TEST_INT(message_send(t->fd, &w), 0);
}

int test_runner_guard(struct test_runner *t, char run) {
    char name[80];

    snprintf(name, sizeof(name), "run/%s/%s%s", PROTOCOL_RUNS, test_runner_id(run), PROTOCOL_SOCKET_SUFFIX);
    return connect_to(t, name);
}
