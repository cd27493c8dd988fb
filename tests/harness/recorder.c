/* SPDX-License-Identifier: MIT */
#include "tests/harness/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

/* Moves n bytes on; drops them if nobody reads. */
static void pass_on(int from, int to, size_t n) {
    char dropped[4096];
    ssize_t k;

    for (; n > 0; n -= (size_t) k) {
        k = splice(from, NULL, to, NULL, n, 0);
        if (k < 0 && errno == EPIPE)
            k = read(from, dropped, n < sizeof(dropped) ? n : sizeof(dropped));
        if (k <= 0)
            _exit(0);
    }
}

/* Writes each line with its time, then passes it on: who has received a line finds it in the file, and data
 * that left the pipe was passed on. */
_Noreturn static void record(int from, int to, const char *path) {
    FILE *out = fopen(path, "we");
    char text[16384];
    bool begins = true;
    int copy[2];
    ssize_t n;

    (void) signal(SIGPIPE, SIG_IGN); /* the record is wanted even without a reader */
    if (!out || pipe2(copy, O_CLOEXEC) < 0)
        _exit(1);
    while ((n = tee(from, copy[1], sizeof(text), 0)) > 0) {
        usec_t now = clock_realtime();
        ssize_t got = read(copy[0], text, (size_t) n);

        for (ssize_t i = 0; i < got; i++) {
            if (begins)
                fprintf(out, "%" PRIu64 " ", now);
            begins = text[i] == '\n';
            (void) fputc(text[i], out);
        }
        (void) fflush(out);
        pass_on(from, to, (size_t) n);
    }
    _exit(0);
}

bool recorder_put(int err[2], const char *path, int *ret) {
    int passed[2];
    pid_t pid;

    if (pipe2(passed, O_CLOEXEC) < 0 || (pid = fork()) < 0)
        return false;
    if (pid == 0) {
        int from = fcntl(err[0], F_DUPFD_CLOEXEC, 10), to = fcntl(passed[1], F_DUPFD_CLOEXEC, 10);

        for (int fd = 3; fd < 1024; fd++) /* keeps no descriptor of the test open */
            if (fd != from && fd != to)
                (void) close(fd);
        record(from, to, path);
    }
    (void) close(passed[1]);
    *ret = err[0];
    err[0] = passed[0];
    return true;
}
