/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* How many descriptors this process may have. Thousands of clients may wait for berthd, berth-runner has one for each run, and the
 * usual soft limit is 1024; what they start must not inherit more than that, though: programs that use select(2) break above it. */

#define FILE_LIMIT_MAX 65536

/* Raises the soft limit as far as the hard one and FILE_LIMIT_MAX allow; it stays as it is where that fails. */
void file_limit_raise(void);
/* In a child, between fork and exec: the soft limit as it was before file_limit_raise(). */
void file_limit_restore(void);
/* The soft limit. */
size_t file_limit_get(void);
