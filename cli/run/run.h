/* SPDX-License-Identifier: MIT */
#pragma once

#include "cli/run/options.h"

/* `berth run`: argv[0] is the verb. Returns the exit status of berth(1). */
int verb_run(int argc, char **argv);
extern const char verb_run_help[];
/* `berth run` with parsed options. */
int run_adhoc(const struct run_options *options);
