/* SPDX-License-Identifier: MIT */

/* In and out of a network namespace, for programs that fork; net.h has the functions. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/harness/host/net.h"

static int outside = -1; /* the namespace that net_leave() returns to */

int net_stay(void) {
    outside = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    return outside < 0 ? -errno : 0;
}

int net_enter(const char *path) {
    _cleanup_close_ int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (!path)
        return 0;
    return fd < 0 || setns(fd, CLONE_NEWNET) < 0 ? -errno : 0;
}

void net_leave(void) {
    if (outside >= 0 && setns(outside, CLONE_NEWNET) < 0)
        abort(); /* everything from here on would be somewhere else than it believes */
}
