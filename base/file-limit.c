/* SPDX-License-Identifier: MIT */
#include "base/file-limit.h"

#include <stdbool.h>
#include <sys/resource.h>

static struct rlimit before; /* of this process */
static bool is_raised;

void file_limit_raise(void) {
    struct rlimit limit;

    if (is_raised || getrlimit(RLIMIT_NOFILE, &before) < 0)
        return;
    limit = before;
    limit.rlim_cur = limit.rlim_max < FILE_LIMIT_MAX ? limit.rlim_max : FILE_LIMIT_MAX;
    if (limit.rlim_cur > before.rlim_cur)
        is_raised = setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

void file_limit_restore(void) {
    if (is_raised)
        (void) setrlimit(RLIMIT_NOFILE, &before);
}

size_t file_limit_get(void) {
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? 1024 : limit.rlim_cur;
}
