/* SPDX-License-Identifier: MIT */
/* In a container nobody else reaps orphans. berthd cannot do it itself: each part of it awaits its own children. So PID 1
 * forks berthd, as supercronic and tini do. */

#include "daemon/pid1.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/cleanup.h"

static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};

/* A service manager names the process to which sockets and the watchdog belong, PID 1 here. */
static void take_over(const char *variable) {
    const char *pid = getenv(variable);
    char own[16];

    if (!pid || strcmp(pid, "1") != 0)
        return;
    (void) snprintf(own, sizeof(own), "%d", (int) getpid());
    (void) setenv(variable, own, 1);
}

/* Returns whether berthd was among those that ended. */
static bool reap(pid_t berthd, int *ret_status) {
    bool is_over = false;
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (pid == berthd) {
            *ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            is_over = true;
        }
    return is_over;
}

bool pid1_serve(int *ret_status) {
    sigset_t awaited, before;
    siginfo_t info;
    pid_t berthd;

    if (getpid() != 1)
        return false;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    for (size_t i = 0; i < ELEMENTSOF(passed_on); i++)
        sigaddset(&awaited, passed_on[i]);
    (void) sigprocmask(SIG_BLOCK, &awaited, &before);
    berthd = fork();
    if (berthd == 0) {
        (void) sigprocmask(SIG_SETMASK, &before, NULL);
        take_over("LISTEN_PID");
        take_over("WATCHDOG_PID");
        return false;
    }
    *ret_status = EX_SOFTWARE;
    while (berthd > 0) {
        int signal = sigwaitinfo(&awaited, &info);

        if (signal == SIGCHLD && reap(berthd, ret_status))
            break;
        if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) /* a terminal reaches berthd by itself */
            (void) kill(berthd, signal);
    }
    return true;
}
