/* SPDX-License-Identifier: MIT */
#pragma once

/* The messages (base/message.h) between berthd, berth-runner and guards. berthd opens the connections. A
 * reply names its run. Absolute times are µs: `deadline` and `...-boot` on CLOCK_BOOTTIME (same machine,
 * same boot), others on CLOCK_REALTIME, for people. A field in brackets is optional. */

/* berthd → runner */
#define PROTOCOL_HELLO "hello"   /* version                                       → hello, guard..., report..., recovered */
#define PROTOCOL_START "start"   /* run job hash token ticket pools scopes namespace host queued queued-boot [deadline] [facts, below]
                                    → starting | exists | refused; idempotent by run */
#define PROTOCOL_PREPARE "prepare" /* the fields of `start` but token, ticket and deadline: the run waits near the head of its
                                      queues. Fork its guard, and its command up to the gate before exec
                                      → prepared | refused */
#define PROTOCOL_KILL "kill"     /* run [token]: kill all processes left of it   → in time, a report; of a run that is not
                                    known: lost=1, and that token as `killed`; of one whose guard
                                    had noted no grant: errno=ECANCELED, stage=stop */
#define PROTOCOL_REAP "reap" /* run [token], of `berth run`: kill the processes with this BERTH_RUN and BERTH_TOKEN, until
                                none is left → reaped, perhaps `stuck` before */
#define PROTOCOL_FORGET "forget" /* run: its report was recorded, remove the file; no reply */

/* runner → berthd */
/*      PROTOCOL_HELLO              version pid */
#define PROTOCOL_GUARD "guard"       /* run: a guard is there, listening on runs/RUN.sock */
#define PROTOCOL_RECOVERED "recovered" /* all guards and reports that existed at hello were sent */
#define PROTOCOL_STARTING "starting" /* run: its guard is listening */
#define PROTOCOL_PREPARED "prepared" /* run: its guard is listening, and begins nothing without `grant` */
#define PROTOCOL_EXISTS "exists"     /* run: it was started before; its socket or report is there */
#define PROTOCOL_REFUSED                                                                                    \
    "refused" /* run reason(config-differs|unknown-job|parameters|resources|late|bad-request) text: it was  \
                 not, and will not be, started by this message */
#define PROTOCOL_REAPED "reaped"     /* run, of `berth run`: no such process is left */
#define PROTOCOL_STUCK "stuck"       /* run text: this process of the run is there long after its kill; again each hour */
#define PROTOCOL_REPORT "report"     /* at any time, and after hello; fields below */

/* guard → berthd. Each connection begins with `state`; then what changes. */
#define PROTOCOL_STATE "state"     /* run job hash token ticket pools scopes queued queued-boot phase(prepared|starting|running|stopping|done)
                                      on-lease-lost(stop|continue) stop-timeout guard [deadline] [pid started [timeout]] [reason];
                                      guard: the guard's own pid */
#define PROTOCOL_STARTED "started" /* run pid started (boottime) [timeout]: exec succeeded */
#define PROTOCOL_STOPPING "stopping" /* run reason: the stop signal was sent */
#define PROTOCOL_ACK "ack"         /* deadline: this deadline is in force */
/*      PROTOCOL_REPORT               fields below; the guard waits for `done` */

/* berthd → guard. A guard that is prepared ends when this connection does, or when it waited for a while. */
#define PROTOCOL_GRANT "grant"       /* token ticket [deadline]: to a guard that is prepared, once: begin the command → started */
#define PROTOCOL_DEADLINE "deadline" /* [deadline]: replaces the deadline, also by an earlier one; missing: none → ack */
#define PROTOCOL_STOP "stop"         /* reason(stopped|revoked|lease-lost|timeout|shutdown): stop the run within its stop-timeout */
#define PROTOCOL_DONE "done"         /* the report was recorded: remove the socket and end */

/* Facts of a run, which its command gets as BERTH_TRIGGER, BERTH_OF_JOB and so on (runner/facts.c has the kinds
 * of the values). Each may be missing in `start`; `state` and the report repeat those that were there.
 *   trigger: schedule | every | at-start | start | retry | restart | hook | backlog
 *   due: RFC 3339, with the offset of the schedule's zone
 *   attempt: from 1; first-run: of the chain
 *   depth: how many hooks led to this run
 * and, of a hook, about the run for which it was started, with times in RFC 3339 and at most 512 bytes of reason:
 *   of-job of-instance of-run of-first-run of-result of-exit-code of-signal of-reason of-host of-trigger of-due
 *   of-queued of-started of-ended of-wait-ms of-run-ms of-attempt of-bad of-since of-event */

/* What the trigger of a run set: set-0, set-1 ..., each NAME=VALUE (conf/parameter.h). They are fields of
 * `start`; `state` and the report repeat them. */

/* A report: run job token ticket pools scopes queued queued-boot ended reason [started ended-boot], both boottime
 *   and one of  code (it exited), signal (it was ended by one), errno + stage [text] (it never ran), lost=1 (its guard died);
 *   [gone-before] µs between the end of the last process and the deadline, if there was one (0: after it, and then
 *   [gone-after] µs after it: the host was suspended, or stood still)
 *   [user-usec system-usec maxrss-kib]
 * reason: none (it ended by itself) | stopped | revoked | lease-lost | timeout | shutdown.
 * As a file it is runs/RUN.report. */

/* Where these things are, below the runtime directory (ARCHITECTURE: Who owns what). */
#define PROTOCOL_RUNNER_SOCKET "runner/runner.sock"
#define PROTOCOL_RUNS "runner/runs"
#define PROTOCOL_CREDENTIALS "runner/credentials"
#define PROTOCOL_SOCKET_SUFFIX ".sock"
#define PROTOCOL_REPORT_SUFFIX ".report"
#define PROTOCOL_VERSION 1

/* The rest of the runtime directory belongs to daemon/state/state.c. */
#define PROTOCOL_CONTROL_SOCKET "control.sock"
#define PROTOCOL_LOOK_SOCKET "look.sock" /* beside it */
