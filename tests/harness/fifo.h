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
    struct message found; /* the record, by fifo_recover() */
} fifo;

/* CUnit's set-up and tear-down. The tear-down frees the hold, and fails if a file is left. */
void fifo_up(void);
void fifo_down(void);
/* The path of a file in the directory, until the next call; and whether it is there. */
const char *fifo_path(const char *name);
bool fifo_exists(const char *name);

/* A record of FIFO_RUN, as hold_new() wants it. */
void fifo_record(struct message_writer *w, const char *token);
/* Makes the hold; the write end is returned, to be closed. The second one also starts and watches a command. */
int fifo_begin(void);
int fifo_begin_with_command(pid_t *ret_pid, int *ret_end);
/* Lets happen all that is to happen by now; then it has been over so often. */
void fifo_expect_over(unsigned n);
/* Until it is over, or 5 s. */
void fifo_await_over(void);

/* A command: lives until its own pipe, *ret_end, is closed; inherits also_holds if that is not -1. */
pid_t command_start(int *ret_end, int also_holds);
void command_end(pid_t pid, int end);

/* What a restarted berthd finds: the number of holds, and the record in fifo.found. */
unsigned fifo_recover(void);
/* Finds the hold and opens it; and after it was detached. */
void fifo_open(void);
void fifo_reopen(void);
