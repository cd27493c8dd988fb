/* SPDX-License-Identifier: MIT */
#pragma once

/* The clock of some programs in a test's hands (tests/preload/host-clock.c): they see it jump, or stand still until the test moves it on.
 * On a clock that stands nothing comes too late however busy the machine is, and what is due when can be told to the millisecond. */

#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"

struct clock_file {
    _Atomic int64_t *words; /* shared with those programs; NULL: none was made */
    char file[128], library[320], sanitizer[256];
    char *environment[4];   /* brings it into a program; NULL-terminated */
};

/* At this path; whoever removes the folder removes it. Its clocks run, and are right. */
void clock_file_make(struct clock_file *c, const char *path);
void clock_file_done(struct clock_file *c);

/* CLOCK_BOOTTIME is so many µs further on from now, as after a suspend. */
void clock_file_jump(struct clock_file *c, usec_t usec);
/* CLOCK_REALTIME is off by so many µs from now on. */
void clock_file_step(struct clock_file *c, int64_t usec);
/* CLOCK_BOOTTIME is that, and stays so until the next call; or goes on from there. What is due by then is seen by a program's next wait. */
void clock_file_stand(struct clock_file *c, usec_t boottime);
void clock_file_go_on(struct clock_file *c);

/* This program's own: called at the begin of main(), it starts the program once more with the library. What the program executes has true
 * clocks, what it forks has these. */
extern struct clock_file own_clock;
void clock_file_own(char **argv);
