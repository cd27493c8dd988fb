/* SPDX-License-Identifier: MIT */

/* How Redis's clock differs from the clocks of a host: offset and rate, and what must not change them. */

#include <math.h>

#include "store/redis/link/server-clock.h"
#include "tests/harness/test.h"

#define BOOT (1000 * USEC_PER_SEC)                      /* when the test begins, since boot */
#define WALL ((usec_t) 1763640000 * USEC_PER_SEC)       /* likewise, since 1970 */
#define TRIP (2 * USEC_PER_MSEC)

/* Looks after this time, while Redis's clock is `ahead` of the host's wall clock. */
static void look(struct server_clock *c, usec_t after, int64_t ahead, usec_t trip) {
    usec_t middle = WALL + after;

    server_clock_note(c, &(struct server_clock_look) {.sent = BOOT + after - trip / 2,
                                                      .received = BOOT + after + trip / 2,
                                                      .realtime = middle + trip / 2,
                                                      .server = (usec_t) ((int64_t) middle + ahead)});
}

static void test_offset(void) {
    struct server_clock c = {0};

    server_clock_note(&c, &(struct server_clock_look) {.sent = 1, .received = 2, .realtime = WALL});
    CU_ASSERT(!c.is_known); /* INFO has no time */
    look(&c, 0, 3 * (int64_t) USEC_PER_SEC, TRIP);
    CU_ASSERT(c.is_known && c.offset_usec == 3 * (int64_t) USEC_PER_SEC && c.error_usec == TRIP / 2);
    look(&c, USEC_PER_SEC, -5, 4 * TRIP);
    CU_ASSERT(c.offset_usec == -5 && c.error_usec == 2 * TRIP);
}

/* Looks each `every` for a while; Redis's clock gains ppm. Returns the rate in millionths; NAN: not known. */
static double rate_after(usec_t lasts, usec_t every, double ppm, usec_t trip) {
    struct server_clock c = {0};
    double rate;

    for (usec_t at = 0; at <= lasts; at += every)
        look(&c, at, (int64_t) ((double) at * ppm / 1e6), trip);
    return server_clock_rate(&c, &rate) ? rate : NAN;
}

static void test_rate(void) {
    CU_ASSERT(isnan(rate_after(599 * USEC_PER_SEC, USEC_PER_SEC, 9000, TRIP)));
    CU_ASSERT(fabs(rate_after(600 * USEC_PER_SEC, USEC_PER_SEC, 9000, TRIP) - 9000) < 1);
    CU_ASSERT(fabs(rate_after(600 * USEC_PER_SEC, 30 * USEC_PER_SEC, -4000, TRIP) + 4000) < 1);
    CU_ASSERT(fabs(rate_after(6000 * USEC_PER_SEC, 40 * USEC_PER_SEC, 0, TRIP)) < 1);
    CU_ASSERT(isnan(rate_after(6000 * USEC_PER_SEC, 30 * USEC_PER_SEC, 0, 40 * USEC_PER_MSEC))); /* round trips are too long to know */
}

/* A clock that somebody sets, and one long round trip, are no rate. */
static void test_step(void) {
    struct server_clock c = {0};
    double rate = NAN;

    for (usec_t n = 0; n <= 21; n++)
        look(&c, n * 30 * USEC_PER_SEC, n < 10 ? 0 : 600 * (int64_t) USEC_PER_SEC, n == 15 ? USEC_PER_SEC : TRIP);
    CU_ASSERT(!server_clock_rate(&c, &rate));
    look(&c, 22 * 30 * USEC_PER_SEC, 600 * (int64_t) USEC_PER_SEC, TRIP);
    CU_ASSERT(server_clock_rate(&c, &rate) && fabs(rate) < 1);
}

static CU_TestInfo tests[] = {
    {"the offset, and how wrong it may be", test_offset},
    {"the rate is known after ten minutes", test_rate},
    {"a clock that is set has no other rate", test_step},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "server-clock", .pTests = tests});
