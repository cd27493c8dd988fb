/* SPDX-License-Identifier: MIT */
#pragma once

/* The credentials of runs: for each run that has some a directory RUNTIME/runner/credentials/RUN, in memory.
 * The child of the guard makes it, the guard removes it when no process of the run is left. Where the guard
 * died, berth-runner does, before it reports that end. `runs` is the directory of the runs,
 * RUNTIME/runner/runs. */

#include <stddef.h>
#include <sys/types.h>

#include "runner/guard-file.h"

#define CREDENTIALS_MAX (1 << 20) /* bytes, all of a run together */

/* Writes the path to a buffer of GUARD_FILE_PATH_SIZE. */
const char *credentials_path(char *buffer, const char *runs, const char *run);

/* Makes the directory, for this user alone. A descriptor, or a negative errno; -EMEDIUMTYPE: a disk would
 * keep it. */
int credentials_make(const char *runs, const char *run);
/* Writes a file that `uid` and nobody else may read. 0 or a negative errno. */
int credentials_add(int fd, const char *name, const void *bytes, size_t size, uid_t uid, gid_t gid);
/* Hands the directory to the user, who may not add files to it unless he changes its mode. 0 or a negative
 * errno. */
int credentials_hand_over(int fd, uid_t uid, gid_t gid);

/* Removes the directory and all that the job's user may have put there. Nothing happens if there is none. */
void credentials_remove(const char *runs, const char *run);
/* Removes the directories of runs that have no guard file. */
void credentials_sweep(const char *runs);
