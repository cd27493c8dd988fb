/* SPDX-License-Identifier: MIT */

/* The permit protocol of doc/protocol.md, small enough for spin to visit every state.
 *
 * run.sh names the configurations (bounds and budgets of faults) and the mutations; each is one compilation of this file.
 * state.pml declares the state, data.pml holds the scripts on Redis, host.pml berthd, faults.pml time and faults, calm.pml the
 * check that each waiting claim is served. Macros M_... are the mutations.
 *
 * Time. There is no clock. A tick lets one unit of time pass for everybody, and each host keeps ages in ticks, up to the lease. Any
 * number of steps can happen between two ticks, and any number of ticks between two steps: so a host that freezes is a host that takes
 * no step, and an answer that is slow is an answer that its host takes later.
 *
 * Calls. A host sends a call and Redis carries it out in one step. The answer, and a push, arrive in the same step, or take any time (a
 * budget: DELAYS), or are lost with the connection (CUTS).
 * A call that is carried out late, after its host has given up on it, waits in `late` with the arguments it was sent with.
 *
 * The clock of tokens. Without CLOCK it counts grants, and hosts do not remember it. With CLOCK it follows Redis's wall clock, time is
 * bounded, and tokens are checked (R7).
 *
 * Names. The name of a new epoch is the lowest number that no host remembers any more. This stands for random names. Counts,
 * tokens and connections are numbers as in berth, bounded. */

#ifndef HOSTS
#define HOSTS 2
#endif
#ifndef LEASE
#define LEASE 3 /* ticks */
#endif
#ifndef RUNS
#define RUNS 1 /* claims that a host makes, one after the other */
#endif
#ifndef COUNTS
#define COUNTS 12 /* heartbeats stop at this count of the beat clock */
#endif
#ifndef SAVES
#define SAVES 0 /* copies of Redis's data that are made */
#endif
#ifndef RESTORES
#define RESTORES 0 /* times that it comes back from the copy under a new replication id */
#endif
#ifndef ROLLBACKS
#define ROLLBACKS 0 /* times that its memory goes back to the copy under the same one */
#endif
#ifndef RESTARTS
#define RESTARTS 0 /* restarts that keep all data */
#endif
#ifndef WIPES
#define WIPES 0 /* losses of all data, with a new replication id or with the same */
#endif
#ifndef DELAYS
#define DELAYS 0 /* answers or pushes that take time; all others arrive at once */
#endif
#ifndef CUTS
#define CUTS 0 /* connections that break */
#endif
#ifndef LATES
#define LATES 0 /* connections that break with a call that is carried out later */
#endif
#ifndef CRASHES
#define CRASHES 0 /* berthds that die; guards and runs go on */
#endif

#ifndef SETBACKS
#define SETBACKS 0 /* times that Redis's wall clock is set back to the beginning; needs CLOCK */
#endif
#ifndef TICKS
#define TICKS 6 /* with CLOCK: time ends here */
#endif

#define SESSIONS (2 * HOSTS)
#define CLAIMS (RUNS * HOSTS)
#define EPOCHS 7 /* names of epochs */
#define NONE 255

#include "state.pml"
#include "data.pml"
#include "host.pml"
#include "faults.pml"
#ifdef CALM
#include "calm.pml"
#endif

init {
    byte x;

    d_step {
        /* A namespace at work: grace is over, each host has a session and has just sent a heartbeat. */
        replid = 1;
#ifdef CLOCK
        D.clock = 1;
        time = 1;
        top = 1;
#endif
        D.epoch = 1;
#ifdef M_NUMBER
        D.clock = 1;
#endif
        D.replid = 1;
        for (x : 0 .. HOSTS - 1) {
            D.count++;
            D.beat[SESSION(x, 0)] = D.count;
            D.conn[SESSION(x, 0)] = 1;
            H[x].phase = LIVE;
            H[x].conn = 1;
            H[x].armed = true;
            H[x].epoch = 1;
            H[x].known = LEASE;
            H[x].own = D.count;
#ifdef CLOCK
            H[x].heard = 1;
#endif
        }
        x = 0;
    }
    atomic {
        for (x : 0 .. HOSTS - 1) {
            run host(x)
        }
        x = 0;
        run faults();
#ifdef CALM
        run calm()
#endif
    }
}
