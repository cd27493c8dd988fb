/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=strdup,--wrap=calloc,--wrap=open_memstream */

/* Importing a crontab with each allocation failing once: an error is printed, and nothing is left behind. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/import/import.h"
#include "tests/harness/test.h"
#include "tests/harness/wrap.h"

char *__real_strdup(const char *text);
void *__real_calloc(size_t n, size_t size);
FILE *__real_open_memstream(char **text, size_t *n);
char *__wrap_strdup(const char *text);
void *__wrap_calloc(size_t n, size_t size);
FILE *__wrap_open_memstream(char **text, size_t *n);

char *__wrap_strdup(const char *text) {
    return fault_meets(FAULT_MEMORY) ? NULL : __real_strdup(text);
}
void *__wrap_calloc(size_t n, size_t size) {
    return fault_meets(FAULT_MEMORY) ? NULL : __real_calloc(n, size);
}
FILE *__wrap_open_memstream(char **text, size_t *n) {
    return fault_meets(FAULT_MEMORY) ? NULL : __real_open_memstream(text, n);
}
static void test_each(void) {
    const struct import_source source = {
        .text = "A=1\nB=2\n* * * * * a%in\n* * * * * b\n", .file = "f", .user = "root", .prefix = "p"};
    unsigned n = 0;
    bool failed = true;

    while (failed) {
        struct import import = {.out = fopen("/dev/null", "w")};
        int r;

        fault_begin(FAULT_MEMORY, ++n, 1);
        r = import_crontab(&import, &source);
        failed = fault_end();
        TEST_INT(r, failed ? -ENOMEM : 0);
        import_done(&import);
        fclose(import.out);
    }
    CU_ASSERT(n > 6);
}

static CU_TestInfo tests[] = {{"each-allocation", test_each}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "import-memory", .pTests = tests});
