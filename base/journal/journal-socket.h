/* SPDX-License-Identifier: MIT */
#pragma once

/* Entries for journald in its native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL). Nothing here waits for journald, except
 * journal_socket_drain(): entries that it does not take are kept in order, and entries that find no more room are lost and counted. */

#include <inttypes.h>
#include <stddef.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define JOURNAL_SOCKET_KEPT_MAX (4 << 20) /* bytes that are kept, what each entry takes besides its text included */

struct journal_socket;

typedef void (*journal_socket_fn)(uint64_t n_lost, void *userdata); /* may send entries */

/* on_lost is called once journald has taken all that was kept, if entries were lost until then. -ENOMEM, or of socket(2). */
int journal_socket_new(struct journal_socket **ret, journal_socket_fn on_lost, void *userdata);
struct journal_socket *journal_socket_free(struct journal_socket *s); /* what is kept is lost */
DEFINE_CLEANUP(struct journal_socket, journal_socket_free)
/* From now on this loop sends what is kept. Without a loop the next entry does. A negative errno. */
int journal_socket_attach(struct journal_socket *s, sd_event *event);
/* One entry as the protocol has it. 0: sent, kept, or lost and counted. A negative errno: nobody listens, and nothing is kept. */
int journal_socket_send(struct journal_socket *s, const void *entry, size_t size);
/* Waits so long for journald to take what is kept. How many entries are lost now: those that it has not taken, and those that
 * on_lost was not told. */
uint64_t journal_socket_drain(struct journal_socket *s, usec_t within);
