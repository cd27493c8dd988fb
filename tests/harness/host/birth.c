/* SPDX-License-Identifier: MIT */
#include "tests/harness/host/birth.h"

#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/test.h"

#define OPTIONS (PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE)

bool birth_is_allowed(void) {
    pid_t pid = fork();
    bool allowed;

    if (pid == 0)
        for (;;)
            (void) pause();
    allowed = pid > 0 && ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0;
    if (pid > 0) {
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, __WALL);
    }
    return allowed;
}

bool birth_watch(struct birth *b, pid_t parent, unsigned generations) {
    *b = (struct birth) {.generations = generations, .traced = {parent}};
    return ptrace(PTRACE_SEIZE, parent, NULL, (void *) (uintptr_t) OPTIONS) == 0;
}

static void let_go(pid_t pid) {
    (void) ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

/* All are in a stop of ptrace. The signal is pending until they are released, and comes first then. */
static void stop_born(const struct birth *b) {
    for (unsigned i = 1; i <= b->n; i++)
        TEST_INT(kill(b->traced[i], SIGSTOP), 0);
    for (unsigned i = b->n; i > 0; i--)
        let_go(b->traced[i]);
}

/* The process has forked: its child is traced as well, and stops before its first instruction. */
static void take_child(struct birth *b) {
    pid_t parent = b->traced[b->n], child;
    unsigned long pid = 0;
    int status;

    if (ptrace(PTRACE_GETEVENTMSG, parent, NULL, &pid) < 0)
        return;
    child = (pid_t) pid;
    if (waitpid(child, &status, __WALL) != child || !WIFSTOPPED(status))
        return;
    b->traced[++b->n] = child;
    if (b->n == 1)
        let_go(parent);
    if (b->n == b->generations)
        stop_born(b);
    else
        (void) ptrace(PTRACE_CONT, child, NULL, NULL);
}

static bool is_fork(int status) {
    int event = status >> 16;

    return event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK || event == PTRACE_EVENT_CLONE;
}

bool birth_turn(struct birth *b) {
    pid_t pid = b->traced[b->n];
    int status;

    while (b->n < b->generations && waitpid(pid, &status, __WALL | WNOHANG) == pid && WIFSTOPPED(status)) {
        if (is_fork(status)) {
            take_child(b);
            return b->n == b->generations;
        }
        /* A signal passes; any other stop of ptrace has none. */
        (void) ptrace(PTRACE_CONT, pid, NULL, (void *) (uintptr_t) (status >> 16 ? 0 : WSTOPSIG(status)));
    }
    return b->n == b->generations;
}

void birth_end(struct birth *b) {
    pid_t traced = b->n < b->generations ? b->traced[b->n] : 0;

    if (traced > 0 && ptrace(PTRACE_INTERRUPT, traced, NULL, NULL) == 0 &&
        waitpid(traced, NULL, __WALL) == traced)
        let_go(traced);
    for (unsigned i = 1; i <= b->n; i++)
        (void) kill(b->traced[i], SIGCONT);
    *b = (struct birth) {0};
}
