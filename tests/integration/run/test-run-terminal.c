/* SPDX-License-Identifier: MIT */
/* `berth run` on a terminal, below a small shell with job control. The command reads the terminal, Ctrl-C
 * reaches it once, Ctrl-Z stops both and `fg` continues both. */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/run/run.h"
#include "tests/harness/host/fake-berthd.h"
#include "tests/harness/test.h"

/* Lines that the shell writes: "J<pid>" a job began, "S" it stopped, "E<status>" it ended. It reads "f":
 * fg. */
struct terminal {
    struct fake fake;
    int master, shell; /* shell: a socket to it */
    pid_t shell_pid, job;
    char text[8192];
};

static void set_foreground(pid_t group) {
    (void) signal(SIGTTOU, SIG_IGN);
    (void) tcsetpgrp(STDIN_FILENO, group);
    (void) signal(SIGTTOU, SIG_DFL);
}

static _Noreturn void job_main(const char *socket, int go, const char *script) {
    char *argv[] = {(char[]) {"run"}, (char[]) {"-p"}, (char[]) {"db"}, (char[]) {"--"}, (char[]) {"sh"}, (char[]) {"-c"},
                    strdup(script), NULL};
    char c;

    (void) signal(SIGINT, SIG_DFL);
    (void) signal(SIGQUIT, SIG_DFL);
    (void) setenv("BERTH_SOCKET", socket, 1);
    (void) unsetenv("BERTH_RUN");
    (void) !read(go, &c, 1); /* until we have the terminal */
    (void) close_range(3, ~0U, 0);
    _exit(verb_run(7, argv));
}

/* As after `stty tostop`, for a job in the background. */
static void stop_writers(void) {
    struct termios modes;

    if (tcgetattr(STDIN_FILENO, &modes) < 0)
        _exit(1);
    modes.c_lflag |= TOSTOP;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &modes) < 0)
        _exit(1);
}

static _Noreturn void shell_main(const char *socket, int report, const char *script, bool in_background) {
    int go[2], status;
    pid_t job;

    if (pipe2(go, O_CLOEXEC) < 0)
        _exit(1);
    job = fork();
    if (job == 0) {
        close(go[1]);
        job_main(socket, go[0], script);
    }
    (void) setpgid(job, job);
    if (in_background)
        stop_writers();
    else
        set_foreground(job);
    close(go[1]);
    (void) dprintf(report, "J%d\n", (int) job);
    for (;;) {
        char c;

        if (waitpid(job, &status, WUNTRACED) != job)
            _exit(2);
        if (!WIFSTOPPED(status))
            break;
        set_foreground(getpgrp());
        (void) dprintf(report, "S\n");
        if (read(report, &c, 1) != 1)
            _exit(3);
        set_foreground(job);
        (void) kill(-job, SIGCONT);
    }
    (void) dprintf(report, "E%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    (void) !read(report, &(char){0}, 1); /* the session lives until the test is done */
    _exit(0);
}

static void read_shell(struct terminal *t, char *line, size_t size) {
    struct pollfd p = {.fd = t->shell, .events = POLLIN};
    size_t n = 0;

    line[0] = '\0';
    while (n < size - 1) {
        CU_ASSERT_EQUAL_FATAL(poll(&p, 1, (int) (FAKE_PATIENCE / USEC_PER_MSEC)), 1);
        if (read(t->shell, line + n, 1) != 1 || line[n] == '\n')
            break;
        n++;
    }
    line[n] = '\0';
}

static void begin_job(struct terminal *t, const char *script, bool in_background) {
    char line[32];
    int pair[2];

    memset(t, 0, sizeof(*t));
    fake_init(&t->fake);
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    (void) fflush(NULL);
    t->shell_pid = forkpty(&t->master, NULL, NULL, NULL);
    CU_ASSERT_TRUE_FATAL(t->shell_pid >= 0);
    if (t->shell_pid == 0) {
        close(pair[0]);
        shell_main(t->fake.socket, pair[1], script, in_background);
    }
    close(pair[1]);
    t->shell = pair[0];
    read_shell(t, line, sizeof(line));
    TEST_INT(sscanf(line, "J%d", &t->job), 1);
}

static void begin(struct terminal *t, const char *script) {
    begin_job(t, script, false);
    fake_grant(&t->fake, 0);
    fake_expect_started(&t->fake);
}

static void end(struct terminal *t, int code, int signal, const char *expected) {
    char line[32];

    fake_expect_ended(&t->fake, code, signal, NULL);
    read_shell(t, line, sizeof(line));
    TEST_STRING(line, expected);
    close(t->shell);
    TEST_INT(waitpid(t->shell_pid, NULL, 0), t->shell_pid);
    close(t->master);
    fake_done(&t->fake);
}

static void type(struct terminal *t, const char *keys) {
    TEST_INT(write(t->master, keys, strlen(keys)), strlen(keys));
}

static void await_text(struct terminal *t, const char *text) {
    struct pollfd p = {.fd = t->master, .events = POLLIN};

    while (!strstr(t->text, text)) {
        size_t have = strlen(t->text);
        ssize_t n = poll(&p, 1, (int) (FAKE_PATIENCE / USEC_PER_MSEC)) == 1
                        ? read(t->master, t->text + have, sizeof(t->text) - 1 - have)
                        : 0;

        if (n <= 0) {
            TEST_STRING(t->text, text);
            return;
        }
        t->text[have + (size_t) n] = '\0';
    }
}

static void test_reads_terminal(void) {
    struct terminal t;

    begin(&t, "echo ready; read x; echo got:$x; exit 3");
    await_text(&t, "ready");
    type(&t, "hello\n");
    await_text(&t, "got:hello");
    end(&t, 3, -1, "E3");
}

static void test_interrupt_once(void) {
    struct terminal t;

    begin(&t, "n=; trap 'n=x$n; echo int' INT; trap 'echo n=$n.; exit 5' USR1; " FAKE_WAITS);
    await_text(&t, "ready");
    type(&t, "\x03");
    await_text(&t, "int");
    /* Had `berth run` passed the INT on, this USR1 would come after that. */
    TEST_INT(kill(t.job, SIGUSR1), 0);
    await_text(&t, "n=");
    await_text(&t, ".");
    CU_ASSERT_PTR_NOT_NULL(strstr(t.text, "n=x."));
    end(&t, 5, -1, "E5");
}

static void test_interrupt_ends_it(void) {
    struct terminal t;

    begin(&t, "echo ready; read x");
    await_text(&t, "ready");
    type(&t, "\x03");
    end(&t, -1, SIGINT, "E-2"); /* a script below this shell stops, too */
}

static void await_stopped(pid_t pid) {
    for (int i = 0; fake_process_state(pid) != 'T' && i < 5000; i++)
        (void) poll(NULL, 0, 1);
    TEST_INT(fake_process_state(pid), 'T');
}

static void suspend_and_continue(const char *script, const char *keys) {
    struct terminal t;
    char line[32];

    begin(&t, script);
    await_text(&t, "ready");
    type(&t, keys);
    read_shell(&t, line, sizeof(line));
    TEST_STRING(line, "S");
    await_stopped(t.job);
    await_stopped(t.fake.command);
    TEST_INT(write(t.shell, "f", 1), 1);
    type(&t, "on\n");
    await_text(&t, "got:on");
    end(&t, 3, -1, "E3");
}

static void test_suspend(void) {
    suspend_and_continue("echo ready; read x; echo got:$x; exit 3", "\x1a");
}

/* An editor or pager reads the key itself, and stops only itself. */
static void test_command_suspends_itself(void) {
    suspend_and_continue("echo ready; read x; kill -TSTP $$; read x; echo got:$x; exit 3", "z\n");
}

/* A process stops its whole group, as vi does. */
static void test_command_suspends_group(void) {
    suspend_and_continue("echo ready; read x; kill -TSTP 0; read x; echo got:$x; exit 3", "z\n");
}

/* TSTP to `berth run` alone stops both. CONT to `berth run` alone continues both. */
static void test_suspend_by_process(void) {
    struct terminal t;
    char line[32];

    begin(&t, "echo ready; read x; echo got:$x; exit 3");
    await_text(&t, "ready");
    TEST_INT(kill(t.job, SIGTSTP), 0);
    read_shell(&t, line, sizeof(line));
    TEST_STRING(line, "S");
    await_stopped(t.fake.command);
    TEST_INT(write(t.shell, "f", 1), 1);
    type(&t, "on\n");
    await_text(&t, "got:on");
    end(&t, 3, -1, "E3");
}

/* A stopped `berth run` would keep the permits that it is granted next. */
static void test_reports_in_background(void) {
    struct terminal t;

    begin_job(&t, "exit 3", true);
    fake_accept(&t.fake);
    json_decref(fake_expect(&t.fake, "io.berth.Hold"));
    fake_reply(&t.fake, FAKE_WAITING);
    await_text(&t, "berth: waiting: pool full: db");
    fake_reply_granted(&t.fake, 0, true);
    fake_expect_started(&t.fake);
    end(&t, 3, -1, "E3");
}

/* `ssh -t host berth run ...`, or the window of a terminal: `berth run` is the first process of the session. */
static void test_hang_up(void) {
    struct terminal t = {.shell = -1};
    int status, go[2];

    fake_init(&t.fake);
    CU_ASSERT_EQUAL_FATAL(pipe2(go, O_CLOEXEC), 0);
    (void) close(go[1]);
    (void) fflush(NULL);
    t.job = forkpty(&t.master, NULL, NULL, NULL);
    CU_ASSERT_TRUE_FATAL(t.job >= 0);
    if (t.job == 0)
        job_main(t.fake.socket, go[0], "sleep 600 & echo ready; wait");
    (void) close(go[0]);
    fake_grant(&t.fake, 0);
    fake_expect_started(&t.fake);
    await_text(&t, "ready");
    (void) close(t.master);
    fake_expect_ended(&t.fake, -1, SIGHUP, NULL); /* and nothing of the command is left */
    TEST_INT(waitpid(t.job, &status, 0), t.job);
    CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP);
    fake_done(&t.fake);
}

static CU_TestInfo tests[] = {
    {"reads terminal", test_reads_terminal},
    {"interrupt once", test_interrupt_once},
    {"interrupt ends it", test_interrupt_ends_it},
    {"suspend", test_suspend},
    {"command suspends itself", test_command_suspends_itself},
    {"command suspends group", test_command_suspends_group},
    {"suspend by process", test_suspend_by_process},
    {"reports in background", test_reports_in_background},
    {"hang up", test_hang_up},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "run on a terminal", .pTests = tests});
