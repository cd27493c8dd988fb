/* SPDX-License-Identifier: MIT */
#include "tests/harness/host/fake-berthd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/run/run.h"
#include "tests/harness/test.h"

void (*fake_in_child)(struct fake *f);

static bool await(int fd, short events, usec_t patience) {
    struct pollfd p = {.fd = fd, .events = events};

    return poll(&p, 1, (int) (patience / USEC_PER_MSEC)) == 1;
}

void fake_listen(struct fake *f) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void) unlink(f->socket);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", f->socket);
    f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    TEST_INT(bind(f->listener, (struct sockaddr *) &address, sizeof(address)), 0);
    TEST_INT(listen(f->listener, 16), 0);
}

void fake_init(struct fake *f) {
    *f = (struct fake) {.directory = "/tmp/fake-berthd-XXXXXX", .listener = -1, .connection = -1, .pidfd = -1};
    f->keys = f->output = f->hold = -1;
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(f->directory));
    snprintf(f->socket, sizeof(f->socket), "%s/control.sock", f->directory);
    snprintf(f->errors, sizeof(f->errors), "%s/errors", f->directory);
    fake_in_child = NULL;
    fake_listen(f);
}

void fake_hang_up(struct fake *f) {
    f->connection = close_fd(f->connection);
    f->input_size = 0;
}

void fake_stop(struct fake *f) {
    fake_hang_up(f);
    f->listener = close_fd(f->listener);
}

void fake_done(struct fake *f) {
    if (f->pid > 0) {
        (void) kill(f->pid, SIGKILL);
        (void) waitpid(f->pid, NULL, 0);
    }
    fake_stop(f);
    f->pidfd = close_fd(f->pidfd);
    f->keys = close_fd(f->keys);
    f->output = close_fd(f->output);
    f->hold = close_fd(f->hold);
    free(f->input);
    (void) unlink(f->socket);
    (void) unlink(f->errors);
    TEST_INT(rmdir(f->directory), 0);
}

#define WORDS_MAX 40

static _Noreturn void child_main(struct fake *f, int input, int output, const char *words, const char *last) {
    char *copy = strdup(words), *argv[WORDS_MAX + 3] = {(char[]) {"run"}}, *word;
    int argc = 1, errors = open(f->errors, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);

    /* Background jobs of a script ignore these signals, and `berth run` would inherit that. */
    (void) signal(SIGINT, SIG_DFL);
    (void) signal(SIGQUIT, SIG_DFL);
    (void) signal(SIGHUP, SIG_DFL);
    (void) setenv("BERTH_SOCKET", f->socket, 1);
    (void) unsetenv("BERTH_RUN");
    if (dup2(input, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0)
        _exit(99);
    (void) close_range(3, ~0U, 0);
    if (fake_in_child)
        fake_in_child(f);
    while ((word = strsep(&copy, " ")) && argc < WORDS_MAX)
        if (word[0])
            argv[argc++] = word;
    if (last)
        argv[argc++] = strdup(last);
    _exit(verb_run(argc, argv));
}

void fake_run(struct fake *f, const char *words, const char *last) {
    int keys[2], fds[2];

    f->keys = close_fd(f->keys);
    f->output = close_fd(f->output);
    f->pidfd = close_fd(f->pidfd);
    f->text[0] = '\0';
    CU_ASSERT_EQUAL_FATAL(pipe2(keys, O_CLOEXEC), 0);
    CU_ASSERT_EQUAL_FATAL(pipe2(fds, O_CLOEXEC), 0);
    (void) fflush(NULL);
    f->pid = fork();
    if (f->pid == 0)
        child_main(f, keys[0], fds[1], words, last);
    close(keys[0]);
    close(fds[1]);
    f->keys = keys[1];
    f->output = fds[0];
    f->pidfd = pidfd_open(f->pid, 0);
}

void fake_accept(struct fake *f) {
    fake_hang_up(f);
    CU_ASSERT_TRUE_FATAL(await(f->listener, POLLIN, FAKE_PATIENCE));
    f->connection = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
    CU_ASSERT_TRUE_FATAL(f->connection >= 0);
}

/* Reads more input. Returns false at the end of the connection. */
static bool read_more(struct fake *f) {
    ssize_t n;

    CU_ASSERT_TRUE_FATAL(await(f->connection, POLLIN, FAKE_PATIENCE));
    f->input = realloc(f->input, f->input_size + 4096);
    n = read(f->connection, f->input + f->input_size, 4096);
    if (n > 0)
        f->input_size += (size_t) n;
    return n > 0;
}

json_t *fake_expect(struct fake *f, const char *method) {
    json_t *call, *params;
    char *end;
    size_t n;

    while (!(end = f->input_size > 0 ? memchr(f->input, '\0', f->input_size) : NULL))
        CU_ASSERT_TRUE_FATAL(read_more(f));
    call = json_loads(f->input, JSON_REJECT_DUPLICATES, NULL);
    n = (size_t) (end - f->input) + 1;
    memmove(f->input, f->input + n, f->input_size - n);
    f->input_size -= n;
    CU_ASSERT_PTR_NOT_NULL_FATAL(call);
    TEST_STRING(json_string_value(json_object_get(call, "method")), method);
    params = json_incref(json_object_get(call, "parameters"));
    json_decref(call);
    return params;
}

void fake_expect_end(struct fake *f) {
    TEST_INT(f->input_size, 0);
    TEST_INT(read_more(f), false);
}

char *fake_quote(const char *json) {
    char *text = strdup(json);

    if (!text)
        abort();
    for (char *c = text; *c; c++)
        if (*c == '\'')
            *c = '"';
    return text;
}

static void fake_reply_fd(struct fake *f, const char *json, int fd) {
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {0};
    _cleanup_free_ char *text = fake_quote(json);
    struct iovec iov = {text, strlen(json) + 1};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fd >= 0) {
        struct cmsghdr *h;

        message.msg_control = &control;
        message.msg_controllen = sizeof(control.space);
        h = CMSG_FIRSTHDR(&message);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(h), &fd, sizeof(fd));
    }
    TEST_INT(sendmsg(f->connection, &message, MSG_NOSIGNAL), iov.iov_len);
}

void fake_reply(struct fake *f, const char *json) {
    fake_reply_fd(f, json, -1);
}

void fake_reply_granted(struct fake *f, usec_t deadline, bool with_hold) {
    char json[512], until[32] = "null";
    int fds[2] = {-1, -1};

    if (deadline > 0)
        snprintf(until, sizeof(until), "%" PRIu64, deadline);
    snprintf(json, sizeof(json),
             "{'parameters': {'state': 'granted', 'run': '" FAKE_RUN "', 'pools': 'db:1', 'token': 1700000000000001, 'host': 'ant', "
             "'namespace': 'test', 'deadline_usec': %s, 'stop_timeout_ms': 200, 'reason': null}, 'continues': true}",
             until);
    if (with_hold) {
        f->hold = close_fd(f->hold);
        TEST_INT(pipe2(fds, O_CLOEXEC), 0);
        f->hold = fds[0];
    }
    fake_reply_fd(f, json, fds[1]);
    close_fd(fds[1]);
}

void fake_grant(struct fake *f, usec_t deadline) {
    fake_accept(f);
    json_decref(fake_expect(f, "io.berth.Hold"));
    fake_reply_granted(f, deadline, true);
}

void fake_expect_started(struct fake *f) {
    json_t *params = fake_expect(f, "io.berth.Started");
    usec_t started;

    TEST_STRING(json_string_value(json_object_get(params, "run")), FAKE_RUN);
    f->command = (pid_t) json_integer_value(json_object_get(params, "pid"));
    TEST_INT(f->command > 1, true);
    started = (usec_t) json_integer_value(json_object_get(params, "started_usec"));
    CU_ASSERT(started > 0 && started <= clock_boottime());
    json_decref(params);
}

void fake_expect_ended(struct fake *f, int code, int signal, const char *result) {
    json_t *params = fake_expect(f, "io.berth.Ended"), *c = json_object_get(params, "code"), *s = json_object_get(params, "signal");

    TEST_STRING(json_string_value(json_object_get(params, "run")), FAKE_RUN);
    TEST_INT(json_is_integer(c) ? json_integer_value(c) : -1, code);
    TEST_INT(json_is_integer(s) ? json_integer_value(s) : -1, signal);
    TEST_STRING(json_string_value(json_object_get(params, "result")), result);
    json_decref(params);
    fake_reply(f, "{'parameters': {'state': 'over', 'run': '" FAKE_RUN "'}}");
}

bool fake_is_hold_over(struct fake *f) {
    struct pollfd p = {.fd = f->hold, .events = POLLIN};

    return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

void fake_await_hold_over(struct fake *f) {
    TEST_INT(await(f->hold, POLLIN, FAKE_PATIENCE), true);
    TEST_INT(fake_is_hold_over(f), true);
}

void fake_await_output(struct fake *f, const char *text) {
    while (!strstr(f->text, text)) {
        size_t have = strlen(f->text);
        ssize_t n = await(f->output, POLLIN, FAKE_PATIENCE) ? read(f->output, f->text + have, sizeof(f->text) - 1 - have) : 0;

        if (n <= 0) {
            TEST_STRING(f->text, text);
            return;
        }
        f->text[have + (size_t) n] = '\0';
    }
}

bool fake_is_running(struct fake *f, usec_t patience) {
    return !await(f->pidfd, POLLIN, patience);
}

int fake_await_exit(struct fake *f) {
    int status;

    CU_ASSERT_FALSE_FATAL(fake_is_running(f, FAKE_PATIENCE));
    TEST_INT(waitpid(f->pid, &status, 0), f->pid);
    f->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

const char *fake_errors(struct fake *f) {
    static char text[8192];
    _cleanup_close_ int fd = open(f->errors, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

char fake_process_state(pid_t pid) {
    char path[32], text[512] = "", *name_end;
    _cleanup_fclose_ FILE *file = NULL;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
    file = fopen(path, "re");
    if (!file || !fgets(text, sizeof(text), file) || !(name_end = strrchr(text, ')')))
        return 'X';
    return name_end[2];
}

void fake_accept_again(struct fake *f, const char *run) {
    json_t *params;

    fake_accept(f);
    params = fake_expect(f, "io.berth.Hold");
    TEST_STRING(json_string_value(json_object_get(params, "run")), run);
    TEST_STRING(json_string_value(json_object_get(params, "name")), "sh");
    json_decref(params);
}
