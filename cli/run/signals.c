/* SPDX-License-Identifier: MIT */
/* Signals of `berth run`. The command stays in this process group, so the terminal's signals reach it
 * directly; those sent to this process alone are passed on (berth(1)). */
#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>

#include "cli/run/run-adhoc.h"

static const struct {
    int signal;
    bool ends_wait; /* withdraws the claim while it waits */
} signals[] = {
    {SIGINT, true},   {SIGTERM, true},  {SIGHUP, true},    {SIGQUIT, true},  {SIGUSR1, false},
    {SIGUSR2, false}, {SIGCONT, false}, {SIGWINCH, false}, {SIGTSTP, false},
};

void run_signals_suspend(void) {
    (void) raise(SIGSTOP);
}

/* Returns whether the signal must be passed on. The terminal (SI_KERNEL) has sent it to the whole group, and
 * the command's own tree (`kill 0` in a script) has chosen its targets. */
static bool is_to_be_passed_on(const struct adhoc *a, const struct signalfd_siginfo *info) {
    if (info->ssi_code == SI_KERNEL)
        return false;
    return info->ssi_pid == 0 || !supervise_has(a->command.supervise, (pid_t) info->ssi_pid);
}

static bool ends_wait(int signal) {
    for (size_t i = 0; i < ELEMENTSOF(signals); i++)
        if (signals[i].signal == signal)
            return signals[i].ends_wait;
    return false;
}

static void end_wait(struct adhoc *a, int signal) {
    run_connection_stop(a);
    adhoc_end_by(a, signal);
    adhoc_exit(a, EXIT_SIGNAL + signal);
}

static int signals_on_signal(_unused_ sd_event_source *source, const struct signalfd_siginfo *info,
                             void *userdata) {
    struct adhoc *a = userdata;
    int signal = (int) info->ssi_signo;

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
    if (is_to_be_passed_on(a, info))
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

int run_signals_init(struct adhoc *a) {
    struct sigaction ignore = {.sa_handler = SIG_IGN}, standard = {.sa_handler = SIG_DFL}, action;
    sigset_t mine;

    /* A closed pipe on standard error must not end this process while the command runs. An ignored SIGCHLD
     * is inherited, and would make it impossible to await a child (wait(2), notes). */
    if (sigprocmask(SIG_SETMASK, NULL, &a->caller.mask) < 0 ||
        sigaction(SIGPIPE, &ignore, &a->caller.sigpipe) < 0 ||
        sigaction(SIGCHLD, &standard, &a->caller.sigchld) < 0)
        return -errno;
    sigemptyset(&mine);
    for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
        if (sigaction(signals[i].signal, NULL, &action) < 0)
            return -errno;
        if (action.sa_handler != SIG_IGN) /* nohup, and background jobs of a shell */
            sigaddset(&mine, signals[i].signal);
    }
    if (sigprocmask(SIG_BLOCK, &mine, NULL) < 0)
        return -errno;
    for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
        sd_event_source *source = NULL;
        int r;

        if (!sigismember(&mine, signals[i].signal))
            continue;
        r = sd_event_add_signal(a->event, &source, signals[i].signal, signals_on_signal, a);
        if (r >= 0 && signals[i].signal == SIGCONT)
            r = sd_event_source_set_priority(source, ADHOC_PRIORITY_CONTINUE);
        if (r >= 0)
            r = sd_event_source_set_floating(source, 1);
        sd_event_source_unref(source);
        if (r < 0)
            return r;
    }
    return 0;
}
