/* SPDX-License-Identifier: MIT */
#pragma once

/* Listening sockets made by the service manager (sd_listen_fds(3)). They exist while the program does not
 * run: clients wait in their queues until the program starts. */

#include <stdbool.h>
#include <stddef.h>

/* Stores the passed sockets in ret_fds, close-on-exec, non-blocking and owned by the caller; -1: not passed.
 * names: FileDescriptorName= of the units; others are passed only together with the first one. type: SOCK_STREAM or
 * SOCK_SEQPACKET. -EINVAL without any effect: another descriptor was passed, or one of them twice. To be called once,
 * before anything is executed: it removes the variables from the environment. */
int activation_receive(const char *const *names, size_t n_names, int type, int *ret_fds);

/* Returns whether the socket listens on this path, because unit and config must name the same place. */
bool activation_is_at(int fd, const char *path);

/* For a program that cannot start: sends text (may be empty) to all waiting clients and disconnects them.
 * Otherwise the service manager would see them wait and start the program again and again. Never blocks. A
 * connection with attached descriptors stays open until the program ends, which does not wait for them. */
void activation_turn_away(int fd, const void *text, size_t size);
