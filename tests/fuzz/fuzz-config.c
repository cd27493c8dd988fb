/* SPDX-License-Identifier: MIT */

/* A config of two files, split at the first NUL: whatever it is, it is a config or there are errors that say why. */

#include <string.h>

#include "conf/settings.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *) data, *cut = size ? memchr(text, '\0', size) : NULL;
    size_t first = cut ? (size_t) (cut - text) : size;
    _cleanup_free_ char *a = strndup(text, first), *b = cut ? strndup(cut + 1, size - first - 1) : strdup("");
    struct settings_source sources[] = {{"a.conf", a, strlen(a)}, {"a.conf.d/b.conf", b, strlen(b)}};
    struct settings_errors errors = {0};
    _cleanup_(settings_freep) struct settings *s = NULL;
    int r = settings_parse(sources, cut ? 2 : 1, "host", &s, &errors);

    FUZZ_ASSERT((r == 0) == (s != NULL));
    FUZZ_ASSERT(r != 0 || errors.n == 0);
    FUZZ_ASSERT(r != SETTINGS_E_INVALID || errors.n > 0);
    for (size_t i = 0; i < errors.n; i++)
        FUZZ_ASSERT(strstr(errors.lines[i], ".conf"));
    settings_errors_done(&errors);
    return 0;
}
