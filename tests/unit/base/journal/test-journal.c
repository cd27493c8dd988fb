/* SPDX-License-Identifier: MIT */

/* base/journal where standard error is the journal. A socket of the test stands in for journald's, in a
 * mount namespace: the machine's journal is neither needed nor written to. */

#include "base/journal/journal.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <syslog.h>

#include "base/journal/journal-socket.h"
#include "base/journal/journal-stream.h"
#include "tests/harness/capture.h"
#include "tests/harness/test.h"

#define ID "0123456789abcdef0123456789abcdef"

enum { CHILD_OK, CHILD_SKIP = 77 };

/* Gives the child an empty /run of its own. */
static bool enter_namespace(void) {
    /* Root needs no user namespace; other users need one, if the kernel allows it. */
    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return false;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && mount("run", "/run", "tmpfs", 0, NULL) == 0 &&
           mkdir("/run/systemd", 0755) == 0 && mkdir("/run/systemd/journal", 0755) == 0;
}

static int listen_at(const char *path, int type) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (fd < 0 || bind(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
        return close_fd(fd);
    if (type == SOCK_STREAM && listen(fd, 1) < 0)
        return close_fd(fd);
    return fd;
}

static bool has_line(const char *text, const char *line) {
    const char *found = strstr(text, line);

    return found && (found == text || found[-1] == '\n') && found[strlen(line)] == '\n';
}

static void name_stderr_in_environment(void) {
    char stream[64];
    struct stat st;

    if (fstat(STDERR_FILENO, &st) < 0)
        _exit(1);
    snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t) st.st_dev, (uintmax_t) st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
}

/* Below, the exit status is the step that failed. */

static int entry_in_child(void) {
    static const char *const lines[] = {"MESSAGE=pg-dump may start", "PRIORITY=6", "SYSLOG_IDENTIFIER=berthd",
                                        "MESSAGE_ID=00112233445566778899aabbccddeeff", "BERTH_EVENT=granted", "BERTH_RUN=0123"};
    const struct journal_field fields[] = {{"BERTH_EVENT", "granted"}, {"BERTH_RUN", "0123"}, {"BERTH_REASON", "two\nlines"}};
    struct journal *j = NULL;
    char got[4096] = "";
    struct capture c;

    if (!enter_namespace())
        return CHILD_SKIP;
    int fd = listen_at("/run/systemd/journal/socket", SOCK_DGRAM);
    capture_begin(&c);
    name_stderr_in_environment();
    if (fd < 0 || journal_new(&j, "berthd") < 0)
        return 2;
    journal_send(j, LOG_INFO, "00112233445566778899aabbccddeeff", "granted", "pg-dump may start", fields, 3);
    if (recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT) <= 0)
        return 3;
    for (size_t i = 0; i < ELEMENTSOF(lines); i++)
        if (!has_line(got, lines[i]))
            return 10 + (int) i;
    if (!strstr(got, "BERTH_REASON\n")) /* the journal's form for values with newlines */
        return 4;
    if (capture_read(&c)[0] != '\0')
        return 5;
    close_fd(fd); /* journald is gone: the line goes to standard error */
    journal_log(j, LOG_ERR, "hello");
    return strcmp(capture_read(&c), "error: hello\n") == 0 ? CHILD_OK : 6;
}

/* JOURNAL_STREAM is inherited, but standard error was redirected since. */
static int redirected_in_child(void) {
    struct journal *j = NULL;
    struct capture c;

    if (!enter_namespace())
        return CHILD_SKIP;
    int fd = listen_at("/run/systemd/journal/socket", SOCK_DGRAM);
    setenv("JOURNAL_STREAM", "1:2", 1);
    capture_begin(&c);
    if (fd < 0 || journal_new(&j, "berthd") < 0)
        return 2;
    journal_log(j, LOG_INFO, "hello");
    return strcmp(capture_read(&c), "hello\n") == 0 ? CHILD_OK : 3;
}

/* --- a journald that does not read --- */

#define PATIENCE 20 /* s; a test that waits for that journald is killed by SIGALRM */

static struct frozen {
    int fd; /* what journald would read */
    sd_event *event;
    struct journal *journal;
    struct capture stderr;
} frozen;

static int freeze(void) {
    struct frozen *f = &frozen;

    if (!enter_namespace())
        return CHILD_SKIP;
    (void) alarm(PATIENCE);
    f->fd = listen_at("/run/systemd/journal/socket", SOCK_DGRAM);
    capture_begin(&f->stderr);
    name_stderr_in_environment();
    if (f->fd < 0 || sd_event_new(&f->event) < 0 || journal_new(&f->journal, "berthd") < 0)
        return 100;
    return journal_attach_event(f->journal, f->event) < 0 ? 101 : CHILD_OK;
}

static void say_numbers(int from, int to, const char *value) {
    const struct journal_field field = {"BERTH_REASON", value};

    for (int i = from; i < to; i++) {
        char message[24];

        snprintf(message, sizeof(message), "number %d", i);
        journal_send(frozen.journal, LOG_INFO, NULL, NULL, message, &field, 1);
    }
}

/* Runs the loop. Returns the next entry that journald receives. */
static const char *next_entry(void) {
    static char got[8192];
    ssize_t n;

    while ((n = recv(frozen.fd, got, sizeof(got) - 1, MSG_DONTWAIT)) < 0 && errno == EAGAIN)
        if (sd_event_run(frozen.event, UINT64_MAX) < 0)
            break;
    got[n < 0 ? 0 : n] = '\0';
    return got;
}

static bool is_number(const char *entry, int number) {
    char line[40];

    snprintf(line, sizeof(line), "MESSAGE=number %d", number);
    return has_line(entry, line);
}

static int kept_in_child(void) {
    int r = freeze();

    if (r != CHILD_OK)
        return r;
    say_numbers(0, 1000, "x");
    for (int i = 0; i < 1000; i++) {
        if (i == 500) /* behind those that are still kept */
            say_numbers(1000, 1010, "x");
        if (!is_number(next_entry(), i))
            return 2;
    }
    for (int i = 1000; i < 1010; i++)
        if (!is_number(next_entry(), i))
            return 3;
    return capture_read(&frozen.stderr)[0] == '\0' ? CHILD_OK : 4;
}

/* More entries than are kept: the first ones arrive, then the number of lost ones, then later ones. */
static int bound_in_child(void) {
    enum { SENT = 3000, SIZE = 2000 };
    char value[SIZE + 1] = "", lost[100];
    const char *entry;
    int r = freeze(), n = 0;

    if (r != CHILD_OK)
        return r;
    memset(value, 'x', SIZE);
    say_numbers(0, SENT, value);
    while (is_number(entry = next_entry(), n))
        n++;
    snprintf(lost, sizeof(lost), "MESSAGE=%d entries were lost: the journal did not take them", SENT - n);
    if (!has_line(entry, lost) || !has_line(entry, "PRIORITY=4"))
        return 2;
    if (n * SIZE > JOURNAL_SOCKET_KEPT_MAX * 5 / 4 || n * SIZE < JOURNAL_SOCKET_KEPT_MAX * 3 / 4)
        return 3;
    say_numbers(SENT, SENT + 1, value);
    return is_number(next_entry(), SENT) ? CHILD_OK : 4;
}

/* journald reads nothing until the end: the exit is not delayed for long, and standard error gets the
 * number of lost entries. */
static int exit_in_child(void) {
    int r = freeze(), n = 0;
    char got[8192], lost[100];

    if (r != CHILD_OK)
        return r;
    say_numbers(0, 1000, "x");
    journal_free(frozen.journal);
    while (recv(frozen.fd, got, sizeof(got), MSG_DONTWAIT) > 0)
        n++;
    snprintf(lost, sizeof(lost), "%d entries were lost: the journal did not take them\n", 1000 - n);
    return strcmp(capture_read(&frozen.stderr), lost) == 0 ? CHILD_OK : 2;
}

/* journald reads again while the program ends. */
static int drained_in_child(void) {
    int r = freeze(), status = 0, ready[2];
    pid_t pid;
    char byte;

    if (r != CHILD_OK)
        return r;
    if (pipe2(ready, O_CLOEXEC) < 0)
        return 2;
    say_numbers(0, 100, "x");
    pid = fork();
    if (pid == 0) {
        char got[8192] = "";

        if (write(ready[1], "r", 1) != 1)
            _exit(1);
        for (int i = 0; i < 100; i++)
            if (recv(frozen.fd, got, sizeof(got) - 1, 0) <= 0 || !is_number(got, i))
                _exit(1);
        _exit(0);
    }
    close_fd(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        return 2;
    journal_free(frozen.journal);
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        return 2;
    return capture_read(&frozen.stderr)[0] == '\0' ? CHILD_OK : 3;
}

/* An entry too long for a datagram is passed to journald as a sealed file. */
static int long_in_child(void) {
    enum { SIZE = 20 << 20 }; /* above any send buffer: journal-socket.c asks for 8 MiB, the kernel doubles that */
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    char byte, *value = calloc(1, SIZE + 1), *got = calloc(1, SIZE + 4096);
    struct iovec text = {&byte, 1};
    struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    int r = freeze(), file;

    if (r != CHILD_OK)
        return r;
    if (!value || !got)
        return 2;
    memset(value, 'x', SIZE);
    say_numbers(0, 1, value);
    if (recvmsg(frozen.fd, &message, MSG_DONTWAIT) != 0 || message.msg_controllen != sizeof(control))
        return 3;
    memcpy(&file, CMSG_DATA(&control.header), sizeof(file));
    if ((fcntl(file, F_GET_SEALS) & F_SEAL_WRITE) == 0 || pread(file, got, SIZE + 4096, 0) < SIZE)
        return 4;
    return is_number(got, 0) && strstr(got, value) ? CHILD_OK : 5;
}

static int stream_in_child(void) {
    static const char expected[] = "pg-dump\nberth-runner@" ID ".service\n6\n0\n0\n0\n0\noutput\n"; /* the header and the output */
    char got[256] = "";
    size_t n = 0;

    if (!enter_namespace())
        return CHILD_SKIP;
    int listening = listen_at("/run/systemd/journal/stdout", SOCK_STREAM), fd = journal_stream_open("pg-dump", ID, LOG_INFO);
    if (fd < 0 || write(fd, "output\n", 7) != 7)
        return 2;
    close_fd(fd);
    int peer = accept(listening, NULL, NULL);
    for (ssize_t r; n < sizeof(got) - 1 && (r = read(peer, got + n, sizeof(got) - 1 - n)) > 0;)
        n += (size_t) r;
    return strcmp(got, expected) == 0 ? CHILD_OK : 3;
}

static void in_child(int (*function)(void)) {
    int status = 0;
    pid_t pid = fork();

    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0)
        _exit(function());
    CU_ASSERT(waitpid(pid, &status, 0) == pid);
    TEST_INT(WIFSIGNALED(status) ? WTERMSIG(status) : 0, 0);
    if (WEXITSTATUS(status) == CHILD_SKIP) {
        TEST_NEEDS_ROOT();
        TEST_SKIP("no mount namespace here");
    }
    TEST_INT(WEXITSTATUS(status), CHILD_OK);
}

static void test_entry(void) {
    in_child(entry_in_child);
}
static void test_redirected(void) {
    in_child(redirected_in_child);
}
static void test_stream(void) {
    in_child(stream_in_child);
}
static void test_kept(void) {
    in_child(kept_in_child);
}
static void test_bound(void) {
    in_child(bound_in_child);
}
static void test_exit(void) {
    in_child(exit_in_child);
}
static void test_drained(void) {
    in_child(drained_in_child);
}
static void test_long(void) {
    in_child(long_in_child);
}

static CU_TestInfo tests[] = {
    {"entry", test_entry},
    {"redirected", test_redirected},
    {"stream", test_stream},
    {"kept while journald does not read", test_kept},
    {"more than is kept", test_bound},
    {"exit while journald does not read", test_exit},
    {"drained at exit", test_drained},
    {"longer than a datagram", test_long},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "journal", .pTests = tests});
