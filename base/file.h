/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* The whole file, NUL-terminated (*ret_size without that NUL), to be freed. Regular files only. Negative errno; -EFBIG above max. */
int file_read(const char *path, size_t max, char **ret, size_t *ret_size);
/* Replaces path in one step: a temporary file beside it, written, fsynced, renamed. Negative errno, and then path is as before. */
int file_write_atomic(const char *path, const void *data, size_t size, unsigned mode);
