/* SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>

/* The whole file, NUL-terminated (*ret_size without that NUL), to be freed. Regular files only. Negative errno; -EFBIG above max. */
int file_read(const char *path, size_t max, char **ret, size_t *ret_size);
/* The same of what is open, from where it stands, whatever it is. */
int file_read_fd(int fd, size_t max, char **ret, size_t *ret_size);
/* All of it. Negative errno; part of it may be written then. */
int file_write(int fd, const void *data, size_t size);
/* Replaces path in one step: a temporary file beside it, written, renamed. Negative errno, and then path is as before. Never waits for
 * a disk, so an event loop may call it: it outlives a crash of the program, not of the machine. */
int file_write_atomic(const char *path, const void *data, size_t size, unsigned mode);
/* The same, fsynced: outlives a crash of the machine. */
int file_write_durable(const char *path, const void *data, size_t size, unsigned mode);
/* Makes a directory with this mode, whatever the umask is. One that is there stays as it is. Negative errno. */
int file_make_directory(const char *path, unsigned mode);
/* Calls fn for each entry of a directory whose name does not begin with a dot. A negative answer of fn
 * ends the walk and is returned. Else 0 or a negative errno: some entries were not seen. */
int directory_each(const char *path, int (*fn)(const char *name, void *userdata), void *userdata);
