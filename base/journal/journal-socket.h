/* SPDX-License-Identifier: MIT */
#pragma once

/* Entries for journald in its native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL). Only
 * journal_socket_drain() waits for journald. Entries that journald does not take are kept in order; entries
 * without room are lost and counted. */

#include <inttypes.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define JOURNAL_SOCKET_KEPT_MAX (4 << 20) /* bytes of kept entries, with their overhead */

struct journal_socket;

typedef void (*journal_socket_fn)(uint64_t n_lost, void *userdata); /* may send entries */

/* on_lost is called if entries were lost, once journald has taken all kept ones. -ENOMEM, or an error of
 * socket(2). */
int journal_socket_new(struct journal_socket **ret, journal_socket_fn on_lost, void *userdata);
struct journal_socket *journal_socket_free(struct journal_socket *s); /* loses the kept entries */
DEFINE_CLEANUP(struct journal_socket, journal_socket_free)
/* Sends kept entries from this loop. Without a loop the next entry does. A negative errno. */
int journal_socket_attach(struct journal_socket *s, sd_event *event);
/* Sends one entry in the format of the protocol. 0: sent, kept, or lost and counted. A negative errno:
 * journald does not listen, and nothing is kept. */
int journal_socket_send(struct journal_socket *s, const void *entry, size_t size);
/* Waits this long for journald to take the kept entries. Returns how many entries are lost: those not taken,
 * and those not yet reported to on_lost. */
uint64_t journal_socket_drain(struct journal_socket *s, usec_t within);
