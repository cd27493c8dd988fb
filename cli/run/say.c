/* SPDX-License-Identifier: MIT */
/* Messages of `berth run` on standard error. A stopped terminal (Ctrl-S), or a pipe whose reader does not read, would make a
 * write wait. Meanwhile nobody would stop the command at its deadline or give its permits back. So messages wait instead,
 * until standard error takes them or the run is over. */
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/run/run-adhoc.h"

static bool is_ready(void) {
    struct pollfd standard_error = {.fd = STDERR_FILENO, .events = POLLOUT};

    return poll(&standard_error, 1, 0) > 0; /* also if the reader is gone: the write fails at once */
}

static void say(struct adhoc *a) {
    size_t done = 0;
    ssize_t n = 1;
    sigset_t terminal, before;

    /* With `stty tostop` the write of a process in the background would stop it. */
    if (sigemptyset(&terminal) < 0 || sigaddset(&terminal, SIGTTOU) < 0 || sigprocmask(SIG_BLOCK, &terminal, &before) < 0)
        return;
    for (; n > 0 && done < a->unwritten.size; done += n > 0 ? (size_t) n : 0)
        n = write(STDERR_FILENO, a->unwritten.text + done, a->unwritten.size - done);
    (void) sigprocmask(SIG_SETMASK, &before, NULL);
    a->unwritten.size = 0;
}

void run_say_rest(struct adhoc *a) {
    if (a->unwritten.size == 0)
        return;
    if (!is_ready())
        (void) sigprocmask(SIG_SETMASK, &a->caller.mask, NULL); /* Ctrl-C ends the wait */
    say(a);
}

void run_say(struct adhoc *a, const char *format, ...) {
    char text[1024];
    va_list arguments;
    size_t size;

    va_start(arguments, format);
    (void) vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    size = strlen(text);
    if (a->unwritten.size + size > sizeof(a->unwritten.text))
        a->unwritten.size = 0; /* the latest messages matter more */
    memcpy(a->unwritten.text + a->unwritten.size, text, size);
    a->unwritten.size += size;
    if (is_ready())
        say(a);
}
