/* SPDX-License-Identifier: MIT */
#pragma once

/* Callers of a berthd with different rights, for tests that run as root: users of groups that each Debian
 * has. */

#include <stdbool.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define RUNNERS "games"
#define OPERATORS "staff"
#define USERS "audio"
#define DBA "video"

#define TOP "run-group = \"" RUNNERS "\"\noperate-group = \"" OPERATORS "\"\n"
#define POOLS                                                       \
    "pool \"open\" { limit = 4 scope = \"host\" }\n"                  \
    "pool \"narrow\" { limit = 4 scope = \"host\" users = {\"@" USERS "\"} }\n"
#define TRUE(name, more) "job \"" name "\" { command = {\"/bin/true\"} output = \"null\" " more "}\n"
#define JOBS TRUE("db", "operators = {\"@" DBA "\"} ") TRUE("plain", "") TRUE("each@", "open-instances = true operators = {\"@" DBA "\"} ")

enum who { OTHER, RUNNER, OPERATOR, JOB_OPERATOR, POOL_USER, ROOT, N_WHO };

extern struct host *callers_host; /* everybody may connect to its control.sock */
extern bool callers_exist;

#define NEEDS_OTHERS()   \
    TEST_NEEDS_ROOT();   \
    if (!callers_exist)  \
    TEST_SKIP("needs the groups games, staff, audio, video")

/* Starts callers_host, with the pools and jobs above; to be a suite's pSetUpFunc. */
void callers_up(void);
/* Connects as that caller. */
int caller_connect(enum who who, const char *path);
/* Calls a method of io.berth. Returns the first answer, valid until the next call. */
const char *caller_call(int fd, const char *method, const char *params, bool more);
/* Calls a method on a new connection to control.sock. Returns whether the caller may do that. */
bool caller_may(enum who who, const char *method, const char *params);
/* Starts `berth` with words divided by spaces. */
struct child *caller_start(enum who who, const char *words);
/* Checks that `berth` exits with 77 and prints expected as its error. */
void caller_refused(enum who who, const char *words, const char *expected);
