/* SPDX-License-Identifier: MIT */
#pragma once

/* A listening socket that the service manager made for us (sd_listen_fds(3)), so that it is there while we are not: clients wait in its
 * queue until we have started. */

#include <stdbool.h>
#include <stddef.h>

/* The descriptor in *ret_fd is close-on-exec, non-blocking and the caller's; -1: nobody passed any. name: as FileDescriptorName= of the
 * unit has it; type: SOCK_STREAM or SOCK_SEQPACKET. -EINVAL: something else than this one socket was passed; nothing is taken
 * then. Call it once, before anything is executed: what it read is gone from the environment afterwards. */
int activation_receive(const char *name, int type, int *ret_fd);

/* Whether the socket listens on this path: the unit and the config must mean the same place. */
bool activation_is_at(int fd, const char *path);

/* For a program that cannot start: whoever waits in the queue now is sent text (may be empty) and disconnected. Else the
 * service manager, who sees them wait, would start us again and again. Never blocks. What a
 * caller has attached descriptors to stays open: this program is about to end, and the end of a process does not wait for them. */
void activation_turn_away(int fd, const void *text, size_t size);
