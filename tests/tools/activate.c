/* SPDX-License-Identifier: MIT */

/* Passes listening sockets to a command as a service manager does (sd_listen_fds(3)). A test keeps the
 * sockets and starts the program again and again:
 *
 *     activate FD[,FD...] NAME[:NAME...] COMMAND [ARG...]
 *
 * The descriptors are inherited, and become 3, 4 ... of the command. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST 3
#define FDS_MAX 4

int main(int argc, char **argv) {
    char pid[16], count[16];
    int fds[FDS_MAX], n = 0;

    if (argc < 4)
        return 64;
    for (char *at = argv[1]; n < FDS_MAX && *at; at += *at == ',') {
        fds[n] = fcntl((int) strtol(at, &at, 10), F_DUPFD, FIRST + FDS_MAX);
        if (fds[n++] < 0)
            return 66;
    }
    for (int i = 0; i < n; i++)
        if (dup2(fds[i], FIRST + i) < 0 || close(fds[i]) < 0)
            return 71;
    snprintf(pid, sizeof(pid), "%d", (int) getpid());
    snprintf(count, sizeof(count), "%d", n);
    if (setenv("LISTEN_PID", pid, 1) < 0 || setenv("LISTEN_FDS", count, 1) < 0 || setenv("LISTEN_FDNAMES", argv[2], 1) < 0)
        return 71;
    execvp(argv[3], argv + 3);
    fprintf(stderr, "%s: %s\n", argv[3], strerror(errno));
    return 127;
}
