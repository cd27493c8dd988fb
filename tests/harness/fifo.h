/* SPDX-License-Identifier: MIT */
#pragma once

/* One hold (daemon/adhoc/hold.h) in a directory of its own, and commands for it. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/message.h"
#include "daemon/adhoc/hold.h"

#define FIFO_RUN "0123456789abcdef0123456789abcdef"
#define FIFO_OTHER "ffffffffffffffffffffffffffffffff"

extern struct fifo {
    char directory[64];
    sd_event *event;
    struct hold *hold;
    struct hold_handler handler;
    unsigned over;        /* calls of on_over() */
    bool free_in_handler;
    struct message found; /* record that fifo_recover() read */
} fifo;

/* CUnit's set-up and tear-down. The tear-down frees the hold, and fails if a file is left. */
void fifo_up(void);
void fifo_down(void);
/* Returns the path of a file in the directory, until the next call; and whether the file exists. */
const char *fifo_path(const char *name);
bool fifo_exists(const char *name);

/* Returns a record of FIFO_RUN for hold_new(). */
void fifo_record(struct message_writer *w, const char *token);
/* Make the hold and return the write end, to be closed. The second one also starts and watches a command. */
int fifo_begin(void);
int fifo_begin_with_command(pid_t *ret_pid, int *ret_end);
/* Runs the loop until it is idle, then checks the number of calls of on_over(). */
void fifo_expect_over(unsigned n);
/* Waits for on_over(), 5 s at most. */
void fifo_await_over(void);

/* Starts a command that lives until its own pipe, *ret_end, is closed; it inherits also_holds if that is not
 * -1. */
pid_t command_start(int *ret_end, int also_holds);
void command_end(pid_t pid, int end);

/* Recovers holds as a restarted berthd does. Returns their number; the record is in fifo.found. */
unsigned fifo_recover(void);
/* Recover and open the hold; the second one detaches it before. */
void fifo_open(void);
void fifo_reopen(void);
