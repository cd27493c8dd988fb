/* SPDX-License-Identifier: MIT */
#pragma once

/* What libFuzzer calls. Each fuzzer is one file; `make fuzz` builds and runs them, tests/fuzz/corpus/NAME has its seeds. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Holds with NDEBUG, too. */
#define FUZZ_ASSERT(condition) \
    do {                       \
        if (!(condition))      \
            abort();           \
    } while (0)
