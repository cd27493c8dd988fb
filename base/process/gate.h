/* SPDX-License-Identifier: MIT */
#pragma once

/* A gate at which a forked child waits right before its exec, until its parent has the permits. The child does before the
 * gate all that needs no permit: session, limits, credentials, descriptors, cgroup. Through the gate it gets what is known
 * only with the grant: the facts, which are plain memory of the caller, and one descriptor. After the gate the child's
 * copy of the facts is the parent's of that moment. So the child's function is the same whether the child is forked ahead
 * (supervise_prepare()) or at the grant, with a gate that is open from the start.
 *
 *   rights        The child drops its rights before the gate, in the usual order. While it waits it has the rights of its
 *                 command, and only its parent can open its gate.
 *   pdeathsig     The child sets it before the gate, after the last setuid. If the parent dies, the child is killed. Even
 *                 without the signal it would read the end of its gate and exit.
 *   descriptors   The child closes its end at the gate, or by exec. The command's journal stream is open before the gate
 *                 and carries nothing until exec.
 *   BERTH_TOKEN   The child makes it from the facts, after the gate. No variable of the grant is older.
 *   deadline      Parent and child share its memory (supervise_term). The child checks it after the gate, right before
 *                 exec (R12).
 *   signals       The child has the command's mask and handlers at the gate. If a signal ends it there, the next child is
 *                 forked at the grant.
 *
 * A gate that is closed without being opened ends the child: it runs nothing and reports nothing. A frozen parent leaves
 * the child waiting. */

#include <stddef.h>

#define GATE_FACTS_MAX 8192

struct gate {
    void *facts; /* no pointers in it; NULL: none */
    size_t size; /* at most GATE_FACTS_MAX */
    int *fd;     /* the descriptor that passes, -1: none; the child's is close-on-exec. NULL: none ever */
    int parent, child; /* ends of a socketpair; -1: closed. Both: the gate is open from the start */
};

/* An open gate; the arguments set facts, size and fd. */
#define GATE_OPEN(...) ((struct gate){.parent = -1, .child = -1, __VA_ARGS__})

/* Closes the gate; gate_open() or gate_done() follows. 0 or a negative errno. */
int gate_close(struct gate *gate);
/* For the parent, after the fork: closes the child's end. */
void gate_forget_child(struct gate *gate);
/* For the parent, once: sends facts and descriptor, and leaves the gate as after gate_done(). -EPIPE: the child has
 * ended. After any negative errno the child must be withdrawn. */
int gate_open(struct gate *gate);
/* For the child: waits, and takes the facts. 0 or a positive errno; does not return if the gate is closed for good. */
int gate_wait(struct gate *gate);
void gate_done(struct gate *gate);
