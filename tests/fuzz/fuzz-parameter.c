/* SPDX-License-Identifier: MIT */

/* A parameter and what is set, and the text of a template. What passes reaches an environment: NAME=VALUE of
 * printable ASCII, under no name that could run other code. The first line is the parameter, the second what
 * is set, the third an option's text. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/expand.h"
#include "conf/parameter.h"
#include "tests/fuzz/fuzz.h"

static void check_expansion(const char *text) {
    char *expanded = NULL;
    size_t at = 0;
    int r = template_expand_text(text, "db1", &expanded, &at);

    FUZZ_ASSERT(r == 0 || (r == -EINVAL && text[at] == '%' && text[at + 1] != '%' && text[at + 1] != 'i'));
    if (r == 0)
        FUZZ_ASSERT(strlen(expanded) <= 2 * strlen(text));
    free(expanded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *copy = malloc(size + 1), *lines[3] = {copy, copy + size, copy + size}, error[PARAMETER_ERROR_SIZE];
    struct parameters parameters = {.job = "j"};
    char *texts[2] = {NULL};

    if (size > 0)
        memcpy(copy, data, size);
    copy[size] = '\0';
    for (size_t i = 1; i < 3; i++) {
        char *end = strchr(lines[i - 1], '\n');

        if (!end)
            break;
        *end = '\0';
        lines[i] = end + 1;
    }
    check_expansion(lines[2]);
    if (parameter_check(lines[0], error) == 0) {
        texts[0] = lines[0];
        parameters.texts = texts;
        if (parameters_check(&parameters, &lines[1], 1, error) == 0) {
            size_t n = parameter_name_length(lines[1]);

            FUZZ_ASSERT(parameter_is_same(lines[0], lines[1]) && lines[1][n] == '=');
            FUZZ_ASSERT(n > 0 && n <= PARAMETER_NAME_MAX && strlen(lines[1] + n + 1) <= PARAMETER_VALUE_MAX);
            FUZZ_ASSERT(strncmp(lines[1], "LD_", 3) != 0 && strncmp(lines[1], "BERTH_", 6) != 0);
            for (const char *p = lines[1]; *p; p++)
                FUZZ_ASSERT(*p >= ' ' && *p <= '~');
        }
    }
    free(copy);
    return 0;
}
