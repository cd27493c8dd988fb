/* SPDX-License-Identifier: MIT */
#pragma once

/* Files with secrets: the one that an option names, or else a systemd credential of berthd's unit. */

#include <inttypes.h>
#include <stddef.h>

#define SECRET_PATH_SIZE 4096
#define SECRET_MAX 4096 /* bytes of a password */

/* The named answers of redis_secret_read(). */
enum { SECRET_E_FILE = 1 };

/* Finds the file that the option names, or else the credential if it exists. Returns path; "": none. */
const char *redis_secret_path(const char *option, const char *credential,
                              char path[static SECRET_PATH_SIZE]);
/* Adds size, time and inode of a file to a hash (conf/hash.h), which changes with the file's content. */
void redis_secret_add_stamp(uint64_t *stamp, const char *path);
/* Reads a password of at most SECRET_MAX bytes without the newline at its end; *ret is NULL if there is none. The
 * caller frees it with redis_secret_free(). 0, -ENOMEM, or SECRET_E_FILE: `why` names the file and what is wrong with
 * it. */
int redis_secret_read(const char *option, const char *credential, char **ret, char *why, size_t size);
/* Clears the memory and frees it. */
char *redis_secret_free(char *secret);
