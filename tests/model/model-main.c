/* SPDX-License-Identifier: MIT */

/* The main program of the tests that run sequences. There are several, each with its own seeds, so that none of them takes too long. */

#include "base/cleanup.h"
#include "base/number.h"
#include "tests/model/model.h"
#include "tests/harness/test.h"

#define CHUNK 100

static uint64_t default_seed;
static unsigned default_sequences;

static uint64_t from_environment(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    uint64_t number;

    return text && number_parse(text, UINT64_MAX, &number) == 0 ? number : otherwise;
}

static void test_sequences(void) {
    uint64_t kind = default_seed & (MODEL_KEYS | MODEL_TURNS | MODEL_MOVES);
    uint64_t seed = from_environment("SEED", default_seed) | kind;
    uint64_t n = from_environment("SEQUENCES", default_sequences), done = 0;
    bool failed = false;

    while (done < n && !failed) {
        int k = model_run(seed + done, n - done < CHUNK ? (unsigned) (n - done) : CHUNK, NULL, true, &failed);

        if (k < 0) {
            TEST_INT(k, 0);
            return;
        }
        done += (unsigned) k;
    }
    CU_ASSERT_FALSE(failed);
}

static CU_TestInfo tests[] = {
    {"model: sequences", test_sequences},
    CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
    {.pName = "model", .pTests = tests},
    CU_SUITE_INFO_NULL,
};

int model_main(int argc, char **argv, uint64_t first_seed, unsigned n) {
    default_seed = first_seed;
    default_sequences = n;
    return test_main(argc, argv, suites);
}
