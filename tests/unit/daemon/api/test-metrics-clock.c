/* SPDX-License-Identifier: MIT */

/* Metrics of the clocks: their units, and none of what is not known. */

#include <jansson.h>
#include <math.h>

#include "daemon/api/verbs-internal.h"
#include "store/status.h"
#include "tests/harness/test.h"

/* Returns the value of a metric; NAN: it has no sample. */
static double value_of(const struct redis_clock *clock, const char *name) {
    json_t *metrics = json_object();
    double value = NAN;

    TEST_INT(metrics_put_clock(metrics, clock), 0);
    if (json_object_get(metrics, name))
        value = json_number_value(json_object_get(json_array_get(json_object_get(metrics, name), 0), "value"));
    json_decref(metrics);
    return value;
}

static void test_clock(void) {
    static const char offset[] = "berth_clock_offset_seconds", rate[] = "berth_clock_rate_error_ratio";
    struct redis_clock clock = {.offset_usec = -2500000, .rate_ppm = 5000};

    CU_ASSERT(isnan(value_of(&clock, offset)) && isnan(value_of(&clock, rate)));
    clock.is_known = true; /* the first ten minutes */
    CU_ASSERT(isnan(value_of(&clock, rate)));
    CU_ASSERT_DOUBLE_EQUAL(value_of(&clock, offset), -2.5, 1e-9);
    clock.has_rate = true;
    CU_ASSERT_DOUBLE_EQUAL(value_of(&clock, rate), 0.005, 1e-9);
}

static CU_TestInfo tests[] = {{"clock", test_clock}, CU_TEST_INFO_NULL};

TEST_SUITES({"metrics-clock", NULL, NULL, NULL, NULL, tests});
