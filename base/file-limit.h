/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* The limit of open descriptors. berthd has thousands of clients and berth-runner one descriptor for each
 * run, but the usual soft limit is 1024. Commands must not inherit a higher limit, because programs that use
 * select(2) break above it. */

#define FILE_LIMIT_MAX 65536

/* Raises the soft limit up to the hard one and FILE_LIMIT_MAX. Leaves it as it is on failure. */
void file_limit_raise(void);
/* For a child, between fork and exec: restores the soft limit from before file_limit_raise(). */
void file_limit_restore(void);
/* Returns the soft limit. */
size_t file_limit_get(void);
