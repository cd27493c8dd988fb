/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* Reads a whole regular file, NUL-terminated (*ret_size without the NUL), to be freed. Negative errno;
 * -EFBIG above max. */
int file_read(const char *path, size_t max, char **ret, size_t *ret_size);
/* The same for an open descriptor of any kind, from its current position. */
int file_read_fd(int fd, size_t max, char **ret, size_t *ret_size);
/* Writes all data. Negative errno: a part may have been written. */
int file_write(int fd, const void *data, size_t size);
/* Replaces path in one step: writes a temporary file beside it and renames that. Negative errno: path is
 * unchanged. Never waits for a disk, so an event loop may call it. The file outlives a crash of the program,
 * but not of the machine. */
int file_write_atomic(const char *path, const void *data, size_t size, unsigned mode);
/* The same with fsync: the file outlives a crash of the machine. */
int file_write_durable(const char *path, const void *data, size_t size, unsigned mode);
/* Makes a directory with this mode, regardless of the umask. Leaves an existing one as it is. Negative
 * errno. */
int file_make_directory(const char *path, unsigned mode);
/* Calls fn for each entry of a directory whose name does not begin with a dot. A negative result of fn ends
 * the walk and is returned. Otherwise 0 or a negative errno: some entries were not visited. */
int directory_each(const char *path, int (*fn)(const char *name, void *userdata), void *userdata);
