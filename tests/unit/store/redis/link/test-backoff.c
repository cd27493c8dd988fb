/* SPDX-License-Identifier: MIT */

/* The pauses between tries: how they grow, and how far apart many hosts draw them. */

#include "store/redis/link/backoff.h"
#include "tests/harness/test.h"

#define HOSTS 10000
#define CELLS 20

static void grows(void) {
    struct backoff b;

    backoff_init(&b, 5 * USEC_PER_SEC);
    for (int round = 0; round < 2; round++) {
        TEST_INT(backoff_next(&b, backoff_longest(&b)), 0);
        for (usec_t pause = BACKOFF_MIN; pause < BACKOFF_MAX; pause *= 2)
            TEST_INT(backoff_next(&b, backoff_longest(&b)), pause);
        TEST_INT(backoff_next(&b, backoff_longest(&b)), BACKOFF_MAX);
        TEST_INT(backoff_next(&b, backoff_longest(&b)), BACKOFF_MAX);
        backoff_reset(&b);
    }
}

/* The pauses grow to a heartbeat while Redis has too much to do, and not afterwards. */
static void busy(void) {
    struct backoff b;

    backoff_init(&b, 5 * USEC_PER_SEC);
    TEST_INT(backoff_next(&b, backoff_longest_busy(&b)), 0);
    for (usec_t pause = BACKOFF_MIN; pause < 5 * USEC_PER_SEC; pause *= 2)
        TEST_INT(backoff_next(&b, backoff_longest_busy(&b)), pause);
    TEST_INT(backoff_next(&b, backoff_longest_busy(&b)), 5 * USEC_PER_SEC);
    TEST_INT(backoff_next(&b, backoff_longest_busy(&b)), 5 * USEC_PER_SEC);
    TEST_INT(backoff_next(&b, backoff_longest(&b)), BACKOFF_MAX);
    backoff_init(&b, USEC_PER_SEC / 2);
    TEST_INT(backoff_longest_busy(&b), BACKOFF_MAX);
}

/* Whoever awaits a failover asks often at first, and as rarely as others in the end. */
static void brief(void) {
    struct backoff b;
    usec_t outage = 0, pause = 0;

    backoff_init(&b, 5 * USEC_PER_SEC);
    TEST_INT(backoff_next_brief(&b), 0);
    for (usec_t expected = BACKOFF_MIN; expected < BACKOFF_BRIEF; expected *= 2)
        TEST_INT(backoff_next_brief(&b), expected);
    TEST_INT(backoff_next_brief(&b), BACKOFF_BRIEF);
    while (outage < 30 * USEC_PER_SEC)
        outage += pause = backoff_next_brief(&b);
    CU_ASSERT(pause > BACKOFF_BRIEF && pause < USEC_PER_SEC);
    while (outage < 120 * USEC_PER_SEC)
        outage += pause = backoff_next_brief(&b);
    TEST_INT(pause, BACKOFF_MAX);
    backoff_reset(&b);
    TEST_INT(backoff_next_brief(&b), 0);
    backoff_init(&b, 120 * USEC_PER_MSEC);
    for (int i = 0; i < 4; i++)
        pause = backoff_next_brief(&b);
    TEST_INT(pause, 120 * USEC_PER_MSEC);
}

/* A short heartbeat bounds the pauses. */
static void short_heartbeat(void) {
    struct backoff b;

    backoff_init(&b, 120 * USEC_PER_MSEC);
    TEST_INT(backoff_next(&b, backoff_longest(&b)), 0);
    TEST_INT(backoff_next(&b, backoff_longest(&b)), BACKOFF_MIN);
    TEST_INT(backoff_next(&b, backoff_longest(&b)), 100 * USEC_PER_MSEC);
    TEST_INT(backoff_next(&b, backoff_longest(&b)), 120 * USEC_PER_MSEC);
    for (int i = 0; i < 1000; i++)
        CU_ASSERT(backoff_draw(&b, 0) <= 12 * USEC_PER_MSEC);
}

/* Many hosts draw pauses evenly between two bounds: no twentieth of the range has many more than another.
 * The bound is 8 standard deviations, which a correct generator exceeds once in 10^14 times. */
static void check_apart(const struct backoff *b, usec_t pause, usec_t low, usec_t high) {
    unsigned cells[CELLS] = {};

    for (int i = 0; i < HOSTS; i++) {
        usec_t drawn = backoff_draw(b, pause);

        CU_ASSERT_FATAL(drawn >= low && drawn <= high);
        cells[(drawn - low) * CELLS / (high - low + 1)]++;
    }
    for (int i = 0; i < CELLS; i++)
        CU_ASSERT(cells[i] > 325 && cells[i] < 675);
}

static void apart(void) {
    struct backoff b;

    backoff_init(&b, 5 * USEC_PER_SEC);
    check_apart(&b, 0, 0, BACKOFF_FIRST_MAX);
    check_apart(&b, BACKOFF_MIN, BACKOFF_MIN / 2, BACKOFF_MIN * 3 / 2);
    check_apart(&b, BACKOFF_MAX, BACKOFF_MAX / 2, BACKOFF_MAX * 3 / 2);
    backoff_init(&b, USEC_PER_SEC);
    check_apart(&b, 0, 0, 100 * USEC_PER_MSEC);
}

static CU_TestInfo tests[] = {
    {"grows", grows},
    {"busy", busy},
    {"brief while a failover is awaited", brief},
    {"heartbeat", short_heartbeat},
    {"apart", apart},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "backoff", .pTests = tests});
