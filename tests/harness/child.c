/* SPDX-License-Identifier: MIT */
#include "tests/harness/child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/harness/recorder.h"
#include "tests/harness/test.h"

#define CHILDREN_MAX 512

static struct child *children;

static void text_append(struct child_text *t, const char *data, size_t size) {
    char *grown = realloc(t->data, t->size + size + 1);

    if (!grown)
        abort();
    memcpy(grown + t->size, data, size);
    t->data = grown;
    t->size += size;
    t->data[t->size] = '\0';
}

static void read_output(struct child *c, unsigned which) {
    bool retried = false;
    char buffer[16384];
    ssize_t n;

    for (;;) {
        n = read(c->fds[which], buffer, sizeof(buffer));
        if (n > 0)
            text_append(&c->output[which], buffer, (size_t) n);
        else if (n < 0 && errno == EIO && !retried)
            retried = true; /* Linux may fail with EIO before it hands over the last bytes of a closed terminal */
        else
            break;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR))
        c->fds[which] = close_fd(c->fds[which]);
}

/* Reads what a program wrote before now. */
static void await_recorder(struct child *c) {
    usec_t until = clock_boottime() + USEC_PER_SEC;
    int left;

    while (c->recorded >= 0 && ioctl(c->recorded, FIONREAD, &left) == 0 && left > 0 && clock_boottime() < until) {
        struct pollfd fd = {.fd = c->fds[1], .events = POLLIN};

        if (poll(&fd, 1, 1) > 0 && c->fds[1] >= 0)
            read_output(c, 1);
    }
}

static void read_end(struct child *c) {
    siginfo_t info = {0};

    if (waitid(P_PIDFD, (id_t) c->pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
        return;
    c->ended = true;
    c->exit_code = info.si_code == CLD_EXITED ? info.si_status : -1;
    c->signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
    c->pidfd = close_fd(c->pidfd);
    await_recorder(c);
    for (unsigned i = 0; i < 2; i++)
        if (c->fds[i] >= 0)
            read_output(c, i);
}

void child_turn(usec_t until) {
    struct pollfd fds[3 * CHILDREN_MAX];
    usec_t now = clock_boottime();
    int timeout_msec = until <= now ? 0 : (int) ((until - now + 999) / 1000);
    nfds_t n = 0;

    for (struct child *c = children; c; c = c->next)
        await_recorder(c);
    for (struct child *c = children; c && n + 3 <= ELEMENTSOF(fds); c = c->next) {
        fds[n++] = (struct pollfd) {.fd = c->pidfd, .events = POLLIN};
        fds[n++] = (struct pollfd) {.fd = c->fds[0], .events = POLLIN};
        fds[n++] = (struct pollfd) {.fd = c->fds[1], .events = POLLIN};
    }
    if (poll(fds, n, timeout_msec > 250 ? 250 : timeout_msec) <= 0)
        return;
    n = 0;
    for (struct child *c = children; c && n + 3 <= ELEMENTSOF(fds); c = c->next, n += 3) {
        for (unsigned i = 0; i < 2; i++)
            if (fds[n + 1 + i].revents && c->fds[i] >= 0)
                read_output(c, i);
        if (fds[n].revents)
            read_end(c);
    }
}

void child_pass(usec_t until) {
    do
        child_turn(until);
    while (clock_boottime() < until);
}

struct patience patience_of(usec_t within) {
    return (struct patience) {.left = within, .seen = clock_boottime()};
}

bool patience_turn(struct patience *p) {
    usec_t now = clock_boottime(), took = usec_sub(now, p->seen);

    p->left = usec_sub(p->left, took < TURN_MAX ? took : TURN_MAX);
    p->seen = now;
    if (p->left == 0)
        return false;
    child_turn(usec_add(now, p->left));
    return true;
}

bool child_await(struct child *c, usec_t within) {
    struct patience p = patience_of(within);

    while (!c->ended && patience_turn(&p))
        ;
    return c->ended;
}

const char *child_text(const struct child *c, int which) {
    const struct child_text *t = &c->output[which - 1];

    return t->data ? t->data : "";
}

static void set_environment(char *const environment[]) {
    extern char **environ;

    for (size_t i = 0; environ[i];) {
        char name[128];
        size_t length = strcspn(environ[i], "=");

        if (strncmp(environ[i], "BERTH_", 6) != 0 || length >= sizeof(name)) {
            i++;
            continue;
        }
        memcpy(name, environ[i], length);
        name[length] = '\0';
        (void) unsetenv(name);
    }
    (void) unsetenv("JOURNAL_STREAM");
    (void) setenv("NO_COLOR", "1", 1);
    for (; environment && *environment; environment++)
        (void) putenv(*environment);
}

_Noreturn static void exec_child(char *const argv[], char *const environment[]) {
    sigset_t none;

    (void) prctl(PR_SET_PDEATHSIG, SIGTERM); /* a test program that crashes leaves no daemons */
    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    set_environment(environment);
    execvp(argv[0], argv);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static struct child *adopt(pid_t pid, int out, int err) {
    struct child *c = calloc(1, sizeof(*c));

    if (!c)
        abort();
    c->pid = pid;
    c->pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
    c->fds[0] = out;
    c->fds[1] = err;
    for (unsigned i = 0; i < 2; i++)
        if (c->fds[i] >= 0)
            (void) fcntl(c->fds[i], F_SETFL, O_NONBLOCK);
    c->exit_code = -1;
    c->recorded = -1;
    c->next = children;
    children = c;
    return c;
}

struct child *child_start(char *const argv[], char *const environment[]) {
    return child_start_recorded(argv, environment, NULL);
}

struct child *child_start_as(uid_t uid, const char *groups, char *const argv[], char *const environment[]) {
    char script[256];
    char *as[48] = {(char *) "sh", (char *) "-c", script};
    size_t n = 3;

    snprintf(script, sizeof(script), "exec 9<\"$0\" setpriv --reuid=%u --regid=65534 %s%s /proc/self/fd/9 \"$@\"", (unsigned) uid,
             *groups ? "--groups=" : "--clear-groups", groups);
    for (; *argv && n + 1 < ELEMENTSOF(as); argv++)
        as[n++] = *argv;
    return child_start(as, environment);
}

struct child *child_start_as_nobody(char *const argv[], char *const environment[]) {
    return child_start_as(65534, "", argv, environment);
}

struct child *child_start_recorded(char *const argv[], char *const environment[], const char *path) {
    int out[2], err[2], recorded = -1;
    struct child *c;
    pid_t pid;

    (void) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
        CU_FAIL("cannot start a program");
        return NULL;
    }
    if (pid == 0) {
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

        (void) dup2(null, 0);
        (void) dup2(out[1], 1);
        (void) dup2(err[1], 2);
        exec_child(argv, environment);
    }
    (void) close(out[1]);
    (void) close(err[1]);
    if (path && !recorder_put(err, path, &recorded))
        CU_FAIL("cannot record the output of a program");
    c = adopt(pid, out[0], err[0]);
    c->recorded = recorded;
    return c;
}

struct child *child_start_on_terminal(char *const argv[], char *const environment[], int *ret_master) {
    int master;
    pid_t pid;

    (void) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    pid = forkpty(&master, NULL, NULL, NULL);
    if (pid < 0) {
        CU_FAIL("cannot start a program on a terminal");
        return NULL;
    }
    if (pid == 0)
        exec_child(argv, environment);
    *ret_master = fcntl(master, F_DUPFD_CLOEXEC, 0);
    (void) fcntl(master, F_SETFD, FD_CLOEXEC);
    return adopt(pid, master, -1);
}

void child_kill(struct child *c, int signal) {
    if (c && !c->ended)
        (void) syscall(SYS_pidfd_send_signal, c->pidfd, signal, NULL, 0);
}

struct child *child_free(struct child *c) {
    if (!c)
        return NULL;
    for (struct child **at = &children; *at; at = &(*at)->next)
        if (*at == c) {
            *at = c->next;
            break;
        }
    if (!c->ended) {
        (void) syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
        (void) waitid(P_PIDFD, (id_t) c->pidfd, &(siginfo_t) {0}, WEXITED);
    }
    c->pidfd = close_fd(c->pidfd);
    c->recorded = close_fd(c->recorded);
    for (unsigned i = 0; i < 2; i++) {
        c->fds[i] = close_fd(c->fds[i]);
        free(c->output[i].data);
    }
    free(c);
    return NULL;
}

void child_free_all(void) {
    while (children)
        child_free(children);
}

/* --- what was left behind --- */

static bool is_child(pid_t pid) {
    for (struct child *c = children; c; c = c->next)
        if (c->pid == pid)
            return true;
    return false;
}

/* Reads /proc/PID/stat. Returns what follows the name of the program, NULL without one. */
static const char *read_stat(pid_t pid, char line[static 512]) {
    _cleanup_fclose_ FILE *stat = NULL;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
    stat = fopen(path, "re");
    return stat && fgets(line, 512, stat) ? strrchr(line, ')') : NULL;
}

/* Children that this program did not start came to it as a subreaper. Reaps the zombies among them. */
static unsigned visit_orphans(int signal, bool tell) {
    char state, line[512];
    unsigned n = 0;
    pid_t self = getpid(), parent;
    DIR *proc = opendir("/proc");

    for (struct dirent *entry; proc && (entry = readdir(proc));) {
        pid_t pid = (pid_t) strtol(entry->d_name, NULL, 10);
        const char *after = pid > 0 && !is_child(pid) ? read_stat(pid, line) : NULL;

        if (!after || sscanf(after, ") %c %d", &state, &parent) != 2 || parent != self)
            continue;
        if (state == 'Z') {
            (void) waitpid(pid, NULL, WNOHANG);
            continue;
        }
        n++;
        if (tell)
            printf("left behind: %s", line);
        if (signal)
            (void) kill(pid, signal);
    }
    if (proc)
        (void) closedir(proc);
    return n;
}

void child_reap_orphans(void) {
    (void) visit_orphans(0, false);
}

unsigned child_sweep(usec_t within) {
    usec_t until = clock_boottime() + within;
    unsigned n, left;

    while ((n = visit_orphans(0, false)) > 0 && clock_boottime() < until)
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    if (n == 0)
        return 0;
    n = visit_orphans(SIGKILL, true);
    for (left = n; left > 0;)
        left = visit_orphans(SIGKILL, false);
    return n;
}

pid_t child_parent(pid_t pid) {
    char line[512];
    const char *after = read_stat(pid, line);
    pid_t parent = 0;

    if (after)
        (void) sscanf(after, ") %*c %d", &parent);
    return parent;
}
