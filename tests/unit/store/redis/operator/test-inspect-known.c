/* SPDX-License-Identifier: MIT */
#include "store/redis/operator/inspect-known.h"

#include <stdio.h>
#include <string.h>

#include "tests/harness/test.h"

#define T0 (1000 * USEC_PER_SEC)
#define N 300

static char ids[N][ID_TEXT_SIZE], texts[N][16];

static void make_ids(void) {
    for (unsigned i = 0; i < N; i++) {
        (void) snprintf(ids[i], sizeof(ids[i]), "%08x%024x", i * 2654435761u, i);
        (void) snprintf(texts[i], sizeof(texts[i]), "record %u", i);
    }
}

static void add(struct known_claims *k, size_t from, size_t n, usec_t now) {
    const char *records[N];

    for (size_t i = 0; i < n; i++)
        records[i] = texts[from + i];
    TEST_INT(known_claims_add(k, (const char(*)[ID_TEXT_SIZE]) & ids[from], records, n, now), 0);
}

static void test_find(void) {
    struct known_claims k = {0};
    const char *other = "other", *none = NULL;

    make_ids();
    CU_ASSERT_PTR_NULL(known_claims_find(&k, ids[0]));
    add(&k, 0, 100, T0);
    add(&k, 50, 200, T0); /* half of the first are in it */
    TEST_INT(k.n, 250);
    for (size_t i = 0; i < 250; i++)
        TEST_STRING(known_claims_find(&k, ids[i]), texts[i]);
    CU_ASSERT_PTR_NULL(known_claims_find(&k, ids[250]));
    TEST_INT(known_claims_add(&k, (const char(*)[ID_TEXT_SIZE]) & ids[7], &other, 1, T0), 0);
    TEST_STRING(known_claims_find(&k, ids[7]), "other");
    TEST_INT(known_claims_add(&k, (const char(*)[ID_TEXT_SIZE]) & ids[7], &none, 1, T0), 0);
    CU_ASSERT_PTR_NULL(known_claims_find(&k, ids[7]));
    TEST_INT(k.n, 250);
    known_claims_drop(&k);
    CU_ASSERT_PTR_NULL(known_claims_find(&k, ids[8]));
}

/* The oldest record decides. */
static void test_age(void) {
    struct known_claims k = {0};

    make_ids();
    add(&k, 0, 1, T0);
    add(&k, 1, 1, T0 + KNOWN_CLAIMS_AGE);
    known_claims_make_room(&k, 1, T0 + KNOWN_CLAIMS_AGE);
    TEST_INT(k.n, 2);
    known_claims_make_room(&k, 1, T0 + KNOWN_CLAIMS_AGE + 1);
    TEST_INT(k.n, 0);
    add(&k, 0, 1, T0 + 2 * KNOWN_CLAIMS_AGE);
    known_claims_make_room(&k, 1, T0 + 3 * KNOWN_CLAIMS_AGE);
    TEST_INT(k.n, 1);
    known_claims_drop(&k);
}

static void test_room(void) {
    struct known_claims k = {0};

    make_ids();
    add(&k, 0, N, T0);
    known_claims_make_room(&k, KNOWN_CLAIMS_MAX - N, T0);
    TEST_INT(k.n, N);
    known_claims_make_room(&k, KNOWN_CLAIMS_MAX - N + 1, T0);
    TEST_INT(k.n, 0);
}

int main(int argc, char **argv) {
    CU_TestInfo tests[] = {
        {"found by id", test_find}, {"age", test_age}, {"room", test_room}, CU_TEST_INFO_NULL};
    CU_SuiteInfo suites[] = {{"inspect-known", NULL, NULL, NULL, NULL, tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
