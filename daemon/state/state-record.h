/* SPDX-License-Identifier: MIT */
#pragma once

/* A file FOLDER/NAME of the runtime directory, which has one message. These functions log problems. */

#include "base/message.h"
#include "daemon/state/state.h"

#define STATE_JOBS "jobs" /* the folder of the records of jobs */

const char *state_record_path(const struct state *state, const char *folder, const char *name,
                              char path[static STATE_PATH_SIZE]);
void state_record_write(const struct state *state, const char *folder, const char *name, const struct message_writer *w);
/* Returns 0 or a negative errno. -ENOENT: there is no file, or it was damaged and is removed. */
int state_record_read(const struct state *state, const char *folder, const char *name, struct message *ret);
