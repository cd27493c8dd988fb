/* SPDX-License-Identifier: MIT */

/* The words of `berth run`, one a line. */

#include <string.h>

#include "cli/run/options.h"
#include "tests/fuzz/fuzz.h"

#define WORDS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    _cleanup_free_ char *text = strndup((const char *) data, size);
    char *argv[WORDS_MAX + 2] = {(char *) "run"}, *rest = text, error[RUN_OPTIONS_ERROR_SIZE] = "";
    static struct run_options options;
    int argc = 1, r;

    for (char *word; argc <= WORDS_MAX && (word = strsep(&rest, "\n"));)
        argv[argc++] = word;
    r = run_options_parse(argc, argv, &options, error);
    FUZZ_ASSERT(r == 0 || r == RUN_OPTIONS_E_USAGE || r == RUN_OPTIONS_HELP);
    FUZZ_ASSERT(r != RUN_OPTIONS_E_USAGE || error[0]);
    FUZZ_ASSERT(r != 0 || (options.pools.n > 0 && options.command[0]));
    return 0;
}
