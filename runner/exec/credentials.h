/* SPDX-License-Identifier: MIT */
#pragma once

/* The credentials of runs: each run with credentials has a directory RUNTIME/runner/credentials/RUN, in
 * memory. The guard's child makes it, and the guard removes it when no process of the run is left. If the
 * guard died, berth-runner removes it before it reports the end. `runs` is RUNTIME/runner/runs. */

#include <stddef.h>
#include <sys/types.h>

#include "runner/guard-file.h"

#define CREDENTIALS_MAX (1 << 20) /* bytes of all credentials of a run */

/* Writes the path to a buffer of GUARD_FILE_PATH_SIZE. */
const char *credentials_path(char *buffer, const char *runs, const char *run);

/* Makes the directory, for this user alone. Returns a descriptor or a negative errno; -EMEDIUMTYPE: it would
 * be on a disk. */
int credentials_make(const char *runs, const char *run);
/* Writes a file that `uid` and nobody else may read. 0 or a negative errno. */
int credentials_add(int fd, const char *name, const void *bytes, size_t size, uid_t uid, gid_t gid);
/* Makes the user the owner of the directory, which is not writable. Returns 0 or a negative errno. */
int credentials_hand_over(int fd, uid_t uid, gid_t gid);

/* Removes the directory and all that the job's user may have put there. Nothing happens if there is none. */
void credentials_remove(const char *runs, const char *run);
/* Removes the directories of runs that have no guard file. */
void credentials_sweep(const char *runs);
