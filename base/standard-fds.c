/* SPDX-License-Identifier: MIT */
#include "base/standard-fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/cleanup.h"

int standard_fds_fill(void) {
    for (;;) {
        int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (fd < 0)
            return -errno;
        if (fd > STDERR_FILENO) {
            close_fd(fd);
            return 0;
        }
    }
}

/* Returns whether no error comes later: a file system may report one only at a close. A closed descriptor is no error,
 * because then nothing was to be written. */
static bool is_written(void) {
    int fd = dup(STDOUT_FILENO);

    return fd < 0 ? errno == EBADF : close(fd) == 0;
}

int standard_output_end(const char *program, int status) {
    bool has_failed = ferror(stdout) != 0;

    errno = 0; /* that of an earlier failure is not known */
    if (fflush(stdout) == 0 && is_written() && !has_failed)
        return status;
    fprintf(stderr, "%s: standard output: %s\n", program, errno != 0 ? strerror(errno) : "write error");
    return status != 0 ? status : EX_SOFTWARE;
}
