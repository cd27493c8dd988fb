/* SPDX-License-Identifier: MIT */
/* berth, the command line. */
#include "cli/verbs.h"

int main(int argc, char **argv) {
    return cli_main(argc, argv);
}
