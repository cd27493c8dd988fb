/* SPDX-License-Identifier: MIT */
/* The verb `run`: its help, and errors in its options. */
#include <stdio.h>

#include "cli/run/options.h"
#include "cli/run/run.h"
#include "cli/verbs.h"

const char verb_run_help[] =
    "berth run -p POOL[:N] [OPTION...] [--] COMMAND [ARG...]\n"
    "\n"
    "Waits for the permits, runs the command while it holds them, and exits as the\n"
    "command did.\n"
    "\n"
    "  -p POOL[:N]             N permits (1 to 1000; default 1) of POOL; may be\n"
    "                          repeated: all pools are granted together\n"
    "  -n                      do not wait: exit with 75 unless the permits are free\n"
    "  --wait DURATION         wait at most that long, then exit with 75\n"
    "  --timeout DURATION      stop the command after that time, exit with 124\n"
    "  --head-start DURATION   queue as if it had already waited that long\n"
    "  --name LABEL            shown to others (default: the command's name)\n"
    "  --on-lease-lost ACTION  stop (default) or continue\n"
    "  --stop-timeout DURATION from the stop signal to the kill of all its processes\n"
    "  -E CODE                 exit with CODE instead of 75\n"
    "  -v                      print what it waits for, also without a terminal\n"
    "\n"
    "Exit status: the command's, 128+N if signal N ended it; 64 wrong usage,\n"
    "65 no such pool, 69 berthd not reachable, 75 no permits, 76 lease lost,\n"
    "77 not allowed, 78 config error, 124 timeout, 125 berth failed after the grant,\n"
    "126 command not executable, 127 command not found.\n";

int verb_run(int argc, char **argv) {
    char error[RUN_OPTIONS_ERROR_SIZE];
    struct run_options options;
    int r = run_options_parse(argc, argv, &options, error);

    if (r == RUN_OPTIONS_HELP) {
        fputs(verb_run_help, stdout);
        return 0;
    }
    return r != 0 ? options_wrong_usage(argv[0], "%s", error) : run_adhoc(&options);
}
