/* SPDX-License-Identifier: MIT */
#include "base/program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int program_find(const char *name, char ret[static PATH_MAX]) {
    ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);

    if (n > 0) {
        ret[n] = '\0';
        n = strrchr(ret, '/') + 1 - ret;
        (void) snprintf(ret + n, PATH_MAX - (size_t) n, "%s", name);
        if (access(ret, X_OK) == 0)
            return 0;
    }
    (void) snprintf(ret, PATH_MAX, LIBEXECDIR "/%s", name);
    return access(ret, X_OK) < 0 ? -errno : 0;
}
