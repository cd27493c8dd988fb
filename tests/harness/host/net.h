/* SPDX-License-Identifier: MIT */
#pragma once

/* A network of this program's own: network namespaces, each with one interface, eth0, on a common bridge. It
 * has no name outside, is invisible there, and ends with its last process. Needs root, ip (iproute2) and
 * nft. */

#include <stdbool.h>
#include <sys/types.h>

#define NET_NODES 4
#define NET_ADDRESS "10.93.0.%zu" /* of a node, from its number + 1 */

/* Returns NULL, or why there can be no network. */
const char *net_lacks(void);
/* Moves this program into new network and mount namespaces and makes the nodes. 0 or a negative errno, which
 * is printed. */
int net_up(void);
/* Returns the path of a node's namespace for setns(2); stays valid. */
const char *net_path(size_t node);
/* Notes the namespace to which net_leave() returns; net_up() calls it. 0 or a negative errno. */
int net_stay(void);
/* Processes forked between these two calls are in that namespace. Path NULL: no effect. 0 or a negative
 * errno. */
int net_enter(const char *path);
void net_leave(void);
/* Runs a shell command in a node's namespace. Returns whether it succeeded, and prints its output if not. */
bool net_run(size_t node, const char *line, ...) __attribute__((format(printf, 2, 3)));
/* Lists the ports of the node's established TCP connections to that port of the other node. Returns their
 * number. */
size_t net_ports(size_t node, size_t other, unsigned port, unsigned *ret, size_t size);
/* Makes the network once. Returns whether there is one; if not, the test is skipped. */
bool net_up_or_skip(void);
/* Drops all packets between two nodes, at the first one, until net_heal(). */
void net_cut(size_t node, size_t other);
void net_heal(size_t node);
