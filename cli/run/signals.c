/* SPDX-License-Identifier: MIT */
/* Signals of `berth run`. The command stays in this process group, so the terminal's signals reach it
 * directly; those sent to this process alone are passed on (berth(1)). */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/run/run-adhoc.h"

/* Returns whether the command gets this signal instead of this process, which it would end or stop: without this process nobody
 * records the exit status, and nobody stops at the end of the lease what the command began. */
static bool is_taken(int signal) {
    switch (signal) {
    case SIGILL:
    case SIGTRAP:
    case SIGBUS:
    case SIGFPE:
    case SIGSEGV:
    case SIGSYS: /* faults of this process */
    case SIGTTIN:
    case SIGTTOU: /* the terminal stops the whole group, and the shell has to see that */
    case SIGCHLD:
    case SIGPIPE:
    case SIGURG:
    case SIGKILL:
    case SIGSTOP:
        return false;
    default:
        return true;
    }
}

void run_signals_suspend(void) {
    (void) raise(SIGSTOP);
}

/* Returns whether the signal must be passed on. The terminal (SI_KERNEL) has sent it to the whole group, and
 * the command's own tree (`kill 0` in a script) has chosen its targets. An alarm(2) of a caller that became this process by exec
 * reaches nobody else. */
static bool is_to_be_passed_on(const struct adhoc *a, const struct signalfd_siginfo *info) {
    if (info->ssi_code == SI_KERNEL)
        return info->ssi_signo == SIGALRM;
    return info->ssi_pid == 0 ||
           (info->ssi_pid != (uint32_t) getpid() && !supervise_has(a->command.supervise, (pid_t) info->ssi_pid));
}

/* Returns whether the terminal is gone (`ssh -t`, tmux) and the kernel told only the first process of the session, which is this
 * one. The others would get the HUP from the kernel when this process ends, but it stays until they have ended. */
static bool is_hang_up(const struct signalfd_siginfo *info) {
    return info->ssi_signo == SIGHUP && info->ssi_code == SI_KERNEL && getsid(0) == getpid();
}

/* Returns whether the signal withdraws the claim while it waits. XFSZ comes from an own message to a file that has reached its
 * limit. */
static bool ends_wait(int signal) {
    return signal != SIGUSR1 && signal != SIGUSR2 && signal != SIGCONT && signal != SIGWINCH && signal != SIGTSTP &&
           signal != SIGXFSZ;
}

static void end_wait(struct adhoc *a, int signal) {
    run_connection_stop(a);
    adhoc_end_by(a, signal);
    adhoc_exit(a, EXIT_SIGNAL + signal);
}

static int signals_on_ready(_unused_ sd_event_source *source, int fd, _unused_ uint32_t revents, void *userdata) {
    struct adhoc *a = userdata;
    struct signalfd_siginfo info;
    int signal;

    if (read(fd, &info, sizeof(info)) != (ssize_t) sizeof(info))
        return 0;
    signal = (int) info.ssi_signo;
    if (a->phase == ADHOC_PHASE_CLAIMING ||
        (a->phase == ADHOC_PHASE_RUNNING && !a->command.supervise)) { /* no command yet */
        if (ends_wait(signal))
            end_wait(a, signal);
        else if (signal == SIGTSTP)
            run_signals_suspend();
        return 0;
    }
    if (a->phase == ADHOC_PHASE_REPORTING && ends_wait(signal))
        adhoc_exit(a, a->report.status); /* without berthd's confirmation */
    if (a->phase == ADHOC_PHASE_REPORTING || a->phase == ADHOC_PHASE_DONE)
        return 0;
    if (is_hang_up(&info))
        (void) kill(0, SIGHUP);
    else if (is_to_be_passed_on(a, &info))
        (void) supervise_signal(a->command.supervise, signal); /* -ESRCH: only its tree is left */
    if (signal == SIGTSTP)
        run_signals_suspend();
    return 0;
}

int run_signals_restore(const struct adhoc *a) {
    if (sigaction(SIGPIPE, &a->caller.sigpipe, NULL) < 0 ||
        sigaction(SIGCHLD, &a->caller.sigchld, NULL) < 0 ||
        sigprocmask(SIG_SETMASK, &a->caller.mask, NULL) < 0)
        return errno;
    return 0;
}

static int receive(struct adhoc *a, const sigset_t *signals, int64_t priority, int *ret_fd) {
    sd_event_source *source = NULL;
    int fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK), r;

    if (fd < 0)
        return -errno;
    *ret_fd = fd;
    r = sd_event_add_io(a->event, &source, fd, EPOLLIN, signals_on_ready, a);
    if (r >= 0)
        r = sd_event_source_set_priority(source, priority);
    if (r >= 0)
        r = sd_event_source_set_floating(source, 1);
    sd_event_source_unref(source);
    return r;
}

int run_signals_init(struct adhoc *a) {
    struct sigaction ignore = {.sa_handler = SIG_IGN}, standard = {.sa_handler = SIG_DFL}, action;
    sigset_t mine, to_continue;
    int r;

    /* A closed pipe on standard error must not end this process while the command runs. An ignored SIGCHLD
     * is inherited, and would make it impossible to await a child (wait(2), notes). */
    if (sigprocmask(SIG_SETMASK, NULL, &a->caller.mask) < 0 ||
        sigaction(SIGPIPE, &ignore, &a->caller.sigpipe) < 0 ||
        sigaction(SIGCHLD, &standard, &a->caller.sigchld) < 0)
        return -errno;
    sigemptyset(&mine);
    /* sigaction() fails for the C library's two internal signals. nohup and shells ignore some for their background jobs. */
    for (int signal = 1; signal < NSIG; signal++)
        if (is_taken(signal) && sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&mine, signal);
    if (sigprocmask(SIG_BLOCK, &mine, NULL) < 0)
        return -errno;
    sigemptyset(&to_continue);
    if (sigismember(&mine, SIGCONT)) {
        sigdelset(&mine, SIGCONT);
        sigaddset(&to_continue, SIGCONT);
    }
    r = receive(a, &mine, ADHOC_PRIORITY_SIGNALS, &a->signals_fds[0]);
    return r < 0 ? r : receive(a, &to_continue, ADHOC_PRIORITY_CONTINUE, &a->signals_fds[1]);
}
