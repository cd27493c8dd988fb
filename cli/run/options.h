/* SPDX-License-Identifier: MIT */
#pragma once

/* The command line of `berth run`, from text to values. Prints nothing. */

#include <stdbool.h>

#include "base/clock.h"
#include "base/demand.h"
#include "base/name.h"
#include "conf/settings.h"

struct run_options {
    struct demands pools;         /* at least one */
    bool nowait, verbose;
    usec_t wait_usec;             /* USEC_INFINITY: no limit */
    usec_t timeout_usec;          /* USEC_INFINITY: none; above 0 */
    usec_t head_start_usec;
    usec_t stop_timeout_usec;     /* USEC_INFINITY: berthd's default */
    enum on_lease_lost on_lease_lost;
    int no_permit_status;         /* -E */
    char name[NAME_MAX_LENGTH + 1];
    char **command;               /* of argv; ends in NULL; at least one */
};

enum { /* named answers */
    RUN_OPTIONS_E_USAGE = 1, /* ret_error: the error and the way out */
    RUN_OPTIONS_HELP,        /* --help */
};
#define RUN_OPTIONS_ERROR_SIZE 256

/* argv[0] is the verb. 0 or a named answer; then *ret is untouched. */
int run_options_parse(int argc, char **argv, struct run_options *ret, char ret_error[static RUN_OPTIONS_ERROR_SIZE]);
