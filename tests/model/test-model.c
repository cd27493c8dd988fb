/* SPDX-License-Identifier: MIT */

/* Random sequences of calls and faults against the rules of PROTOCOL.md. By hand: SEED=N SEQUENCES=N build/tests/model/test-model */

#include "base/cleanup.h"
#include "base/number.h"
#include "tests/harness/model.h"
#include "tests/harness/test.h"

#define CHUNK 100

static uint64_t from_environment(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    uint64_t number;

    return text && number_parse(text, UINT64_MAX, &number) == 0 ? number : otherwise;
}

static void test_sequences(void) {
    uint64_t seed = from_environment("SEED", 1), n = from_environment("SEQUENCES", 1000), done = 0;
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

int main(int argc, char **argv) {
    return test_main(argc, argv, suites);
}
