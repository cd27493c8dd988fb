/* SPDX-License-Identifier: MIT */
#pragma once

/* For hold.c: the fields that identify the command in the record of a hold. A pid alone is no identity:
 * after a reboot, or after its process ended, another process may have it. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/message.h"

#define HOLD_RECORD_SUFFIX ".claim"

/* Adds the boot id, and the command if both are known (start: clock ticks since boot). 0 or a negative errno. */
int hold_record_put_identity(struct message_writer *w, pid_t pid, uint64_t start_ticks);
/* Returns whether the record names a command. */
bool hold_record_get_identity(const struct message *record, pid_t *ret_pid, uint64_t *ret_start_ticks);
bool hold_record_is_of_this_boot(const struct message *record);
