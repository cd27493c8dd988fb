/* SPDX-License-Identifier: MIT */
#include "base/standard-fds.h"

#include <fcntl.h>
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
