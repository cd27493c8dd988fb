/* SPDX-License-Identifier: MIT */
#pragma once

/* A gate at which a forked child waits right before its exec, until its parent has the permits. All that needs no
 * permit is done before the gate: session, limits, credentials, descriptors, cgroup. What is known only with the
 * grant passes through the gate: the facts, plain memory of the caller, and one descriptor. After the gate the
 * child's copy of the facts is what the parent had when it opened the gate. So the child's function is the same,
 * whether the child was forked ahead (supervise_prepare()) or at the grant; then the gate is open from the start.
 *
 *   rights        are dropped before the gate, in the order that they always are. A child that waits has the
 *                 rights of its command, and nobody but its parent can open its gate.
 *   pdeathsig     is set before the gate, after the last setuid. If the parent dies, the child is killed, and
 *                 without the signal it would read the end of its gate, and exit.
 *   descriptors   the child closes its end by itself, at the gate or by exec. The command's journal stream is
 *                 open before the gate, and carries nothing until exec.
 *   BERTH_TOKEN   is made of the facts, after the gate. No variable of the grant is older.
 *   deadline      is in memory that both share (supervise_term). The child looks at it after the gate, right before
 *                 exec (R12).
 *   signals       have the command's mask and handlers at the gate. A signal that ends the child there costs
 *                 nothing: the next one is forked at the grant.
 *
 * A gate that is closed unopened ends the child: it runs nothing and reports nothing. A frozen parent leaves the
 * child waiting. */

#include <stddef.h>

#define GATE_FACTS_MAX 8192

struct gate {
    void *facts; /* no pointers in it; NULL: none */
    size_t size; /* at most GATE_FACTS_MAX */
    int *fd;     /* the descriptor that passes, -1: none; the child's is close-on-exec. NULL: none ever */
    int parent, child; /* ends of a socketpair; -1: closed. Both: the gate is open from the start */
};

/* All fields but facts, size and fd are set. */
#define GATE_OPEN(...) ((struct gate){.parent = -1, .child = -1, __VA_ARGS__})

/* Closes the gate; to be opened or freed by gate_done(). 0 or a negative errno. */
int gate_close(struct gate *gate);
/* In the parent, after the fork. */
void gate_forget_child(struct gate *gate);
/* In the parent, once: sends facts and descriptor, and leaves the gate as after gate_done(). -EPIPE: the child has
 * ended; or another negative errno, and the child must be withdrawn. */
int gate_open(struct gate *gate);
/* In the child: waits, and takes the facts. 0 or a positive errno; does not return if the gate is closed for good. */
int gate_wait(struct gate *gate);
void gate_done(struct gate *gate);
