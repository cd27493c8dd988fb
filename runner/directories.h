/* SPDX-License-Identifier: MIT */
#pragma once

/* The runner's directories below the runtime directory, and the lock that allows one runner. */

#include "base/journal/journal.h"

/* Creates missing directories and takes the lock, which *ret_lock_fd holds. Waits patience_s seconds for
 * another holder, by alarm(2): the program must handle SIGALRM. 0 or a negative errno, logged; -EBUSY: there
 * is another runner. */
int directories_take(struct journal *j, const char *runtime_directory, unsigned patience_s,
                     int *ret_lock_fd);
