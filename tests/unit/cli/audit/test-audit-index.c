/* SPDX-License-Identifier: MIT */
/* The audit's searches, compared with plain loops. */
#include <stdlib.h>

#include "cli/audit/index.h"
#include "cli/audit/names.h"
#include "tests/harness/test.h"

#define SIZES 40
#define NUMBERS 7 /* so few that many are equal */

static void test_count_below(void) {
    struct {
        int other;
        uint64_t number;
    } items[SIZES];

    for (size_t i = 0; i < SIZES; i++)
        items[i].number = i / 3 * 2;
    for (size_t n = 0; n <= SIZES; n++)
        for (uint64_t number = 0; number < SIZES; number++) {
            size_t expected = 0;

            while (expected < n && items[expected].number < number)
                expected++;
            TEST_INT(index_count_below(&items[0].number, sizeof(items[0]), n, number), expected);
        }
    TEST_INT(index_count_below(&items[0].number, sizeof(items[0]), SIZES, UINT64_MAX), SIZES);
}

static void test_maxima(void) {
    srand(1);
    for (size_t n = 0; n < SIZES; n++) {
        uint64_t numbers[SIZES] = {0};
        struct maxima m;

        TEST_INT(maxima_make(&m, n), 0);
        for (size_t step = 0; step < 3 * n; step++) {
            size_t at = (size_t) rand() % n, from = (size_t) rand() % (n + 1), expected = from;
            uint64_t least = 1 + (uint64_t) rand() % NUMBERS;

            numbers[at] = (uint64_t) rand() % NUMBERS; /* also one that is lower than before */
            maxima_set(&m, at, numbers[at]);
            while (expected < n && numbers[expected] < least)
                expected++;
            at = maxima_next(&m, from, least);
            TEST_INT(at < n ? at : n, expected);
        }
        CU_ASSERT(maxima_next(&m, n, 1) >= n);
        maxima_done(&m);
    }
}

static void test_places(void) {
    srand(2);
    for (size_t n = 1; n < SIZES; n++) {
        bool taken[SIZES] = {false};
        struct places p;

        TEST_INT(places_make(&p, n), 0);
        for (size_t step = 0; step < 3 * n; step++) {
            size_t at = (size_t) rand() % n, before = (size_t) rand() % (n + 1), expected = 0;

            (taken[at] ? places_leave : places_take)(&p, at);
            taken[at] = !taken[at];
            for (size_t i = 0; i < before; i++)
                expected += taken[i];
            TEST_INT(places_before(&p, before), expected);
        }
        places_done(&p);
    }
}

/* A name on one host, the same name on all hosts, and another name. */
static void test_names(void) {
    struct audit_names names = {.tree = NULL};
    char text[] = "db";
    struct audit_name *everywhere = audit_names_add(&names, text, NULL), *here = audit_names_add(&names, text, "ant");

    text[0] = 'x'; /* the table has its own copy */
    CU_ASSERT(audit_names_find(&names, "db", NULL) == everywhere && everywhere != here);
    CU_ASSERT(audit_names_find(&names, "db", "ant") == here);
    CU_ASSERT(audit_names_add(&names, "db", "ant") == here);
    CU_ASSERT(!audit_names_find(&names, "db", "bee") && !audit_names_find(&names, text, NULL));
    CU_ASSERT(here->index == SIZE_MAX);
    audit_names_done(&names);
    CU_ASSERT(!audit_names_find(&names, "db", NULL));
}

static CU_TestInfo tests[] = {{"count below", test_count_below}, {"maxima", test_maxima}, {"places", test_places}, {"names", test_names},
                              CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "searches of the audit", .pTests = tests});
