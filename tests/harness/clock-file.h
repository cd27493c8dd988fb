/* SPDX-License-Identifier: MIT */
#pragma once

/* A clock of some programs that the test controls (tests/preload/host-clock.c). It jumps, or stands still
 * until the test advances it: then nothing is late on a busy machine, and due times can be checked to the
 * millisecond. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct clock_file {
    _Atomic int64_t *words; /* shared with these programs; NULL: none */
    char file[128], library[320], sanitizer[256];
    char *environment[4];   /* puts it into a program; NULL-terminated */
};

/* Makes the clock at this path, which is removed together with its folder. At first it is right and runs. */
void clock_file_make(struct clock_file *c, const char *path);
void clock_file_done(struct clock_file *c);

/* Advances CLOCK_BOOTTIME by this many µs, as a suspend does. */
void clock_file_jump(struct clock_file *c, usec_t usec);
/* Sets CLOCK_REALTIME off by this many µs. */
void clock_file_step(struct clock_file *c, int64_t usec);
/* Kills berthd, and each next one, before this many further effects (writes, sends, syncs, renames ...); 0:
 * never. clock_file_effects() returns how many are left. */
void clock_file_end_berthd(struct clock_file *c, unsigned effects);
unsigned clock_file_effects(const struct clock_file *c);
/* Sets whether SIGKILL of these programs is lost. Guards are killed in any case. */
void clock_file_lose_kills(struct clock_file *c, bool are_lost);
/* Sets whether the disk answers berthd. Until it does, the record file lacks what berthd writes. */
void clock_file_stall_disk(struct clock_file *c, bool is_stalled);
/* Stops CLOCK_BOOTTIME at this time until the next call; or continues it from there. A program handles what
 * is due by then in its next wait. */
void clock_file_stand(struct clock_file *c, usec_t boottime);
void clock_file_go_on(struct clock_file *c);

/* For this program itself: to be called first in main(), executes the program again with the library.
 * Executed programs have true clocks, forked ones these. */
extern struct clock_file own_clock;
void clock_file_own(char **argv);
