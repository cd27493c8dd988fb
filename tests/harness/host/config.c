/* SPDX-License-Identifier: MIT */
#include "tests/harness/host/config.h"

#include <stdio.h>
#include <string.h>

#include "tests/harness/test.h"

void config_expect_errors(const struct settings_errors *errors, const char *expected) {
    char text[8192] = "";
    size_t n = 0;

    for (size_t i = 0; i < errors->n && n < sizeof(text); i++)
        n += (size_t) snprintf(text + n, sizeof(text) - n, "%s%s", i > 0 ? "\n" : "", errors->lines[i]);
    TEST_STRING(text, expected);
}

struct settings *config_parse_files(const struct settings_source *sources, size_t n) {
    struct settings_errors errors = {};
    struct settings *s = NULL;

    TEST_INT(settings_parse(sources, n, "ant", &s, &errors), 0);
    config_expect_errors(&errors, "");
    settings_errors_done(&errors);
    CU_ASSERT_PTR_NOT_NULL_FATAL(s);
    return s;
}

struct settings *config_parse(const char *text) {
    return config_parse_files(&(struct settings_source) {"c", text, strlen(text)}, 1);
}

void config_refuse_files(const struct settings_source *sources, size_t n, const char *hostname, const char *expected) {
    struct settings_errors errors = {};
    struct settings *s = NULL;

    TEST_INT(settings_parse(sources, n, hostname, &s, &errors), SETTINGS_E_INVALID);
    CU_ASSERT_PTR_NULL(s);
    CU_ASSERT(!errors.out_of_memory);
    config_expect_errors(&errors, expected);
    settings_errors_done(&errors);
}

void config_refuse(const char *text, const char *expected) {
    config_refuse_files(&(struct settings_source) {"c", text, strlen(text)}, 1, "ant", expected);
}

void config_refuse_all(const struct config_error *rows, size_t n) {
    for (size_t i = 0; i < n; i++)
        config_refuse(rows[i].text, rows[i].errors);
}
