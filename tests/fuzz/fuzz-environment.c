/* SPDX-License-Identifier: MIT */

/* The text of an environment-file. What is read is what execve(2) takes, and has no name of berth's own. */

#include <errno.h>
#include <string.h>

#include "runner/exec/environment.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct environment_error error = {0, NULL};
    struct environment e = {0};
    int r = environment_parse(&e, (const char *) data, size, &error);

    FUZZ_ASSERT(r == 0 || (r == -EBADMSG && error.line > 0 && error.line <= size && error.problem));
    FUZZ_ASSERT(e.n <= size / 2);
    for (size_t i = 0; i < e.n; i++) {
        size_t name = strcspn(e.items[i], "=");

        FUZZ_ASSERT(name > 0 && e.items[i][name] == '=' && strncmp(e.items[i], "BERTH_", 6) != 0);
        for (size_t j = 0; j < i; j++)
            FUZZ_ASSERT(strncmp(e.items[j], e.items[i], name + 1) != 0);
    }
    FUZZ_ASSERT(!e.items || !e.items[e.n]);
    environment_done(&e);
    return 0;
}
