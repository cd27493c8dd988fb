/* SPDX-License-Identifier: MIT */
#pragma once

/* The runner's own folders below the runtime directory, and the lock that says that there is one runner. */

#include "base/journal/journal.h"

/* Makes the folders, or finds them, and takes the lock: *ret_lock_fd, to be kept. Waits patience_s seconds for who has it, by alarm(2): the
 * program has a handler of SIGALRM that does nothing. 0 or a negative errno, said in the journal; -EBUSY: there is another runner. */
int home_take(struct journal *j, const char *runtime_directory, unsigned patience_s, int *ret_lock_fd);
