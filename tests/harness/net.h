/* SPDX-License-Identifier: MIT */
#pragma once

/* A network of this program's own: network namespaces, each with one interface, eth0, on a common bridge. Nobody else sees any of it, and
 * it vanishes with the last process in it, however that ends: nothing has a name outside. Needs root, ip (iproute2) and nft. */

#include <stdbool.h>
#include <sys/types.h>

#define NET_NODES 4
#define NET_ADDRESS "10.93.0.%zu" /* of a node, by its number + 1 */

/* NULL, or why there can be none here. */
const char *net_lacks(void);
/* Puts this program into a network and a mount namespace of its own and makes the nodes. 0 or a negative errno, said. */
int net_up(void);
/* A node's namespace as a path that setns(2)'s descriptor is opened from; it stays. */
const char *net_path(size_t node);
/* net_leave() comes back to the namespace that this was called in; net_up() does it. 0 or a negative errno. */
int net_stay(void);
/* What is forked between these two is in that namespace. Path: NULL does nothing. 0 or a negative errno. */
int net_enter(const char *path);
void net_leave(void);
/* Runs a line of shell in a node's namespace to its end; whether it succeeded. What it wrote is shown if it did not. */
bool net_run(size_t node, const char *line, ...) __attribute__((format(printf, 2, 3)));
/* Ports of the node's established TCP connections to that port of the other node; the number of them. */
size_t net_ports(size_t node, size_t other, unsigned port, unsigned *ret, size_t size);
