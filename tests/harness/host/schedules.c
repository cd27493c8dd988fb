/* SPDX-License-Identifier: MIT */
#include "tests/harness/host/schedules.h"

#include "tests/harness/test.h"

void schedules_add(struct schedule *schedule, const char *entry, const char *except) {
    char error[CRON_ERROR_SIZE] = "";

    if (entry)
        TEST_INT(schedule_add(schedule, entry, error), 0);
    if (except)
        TEST_INT(schedule_add_except(schedule, except, error), 0);
    TEST_STRING(error, "");
}

struct zone *schedules_load_zone(const char *name) {
    struct zone *zone = NULL;

    TEST_INT(zone_load(ZONE_DIRECTORY, name, &zone), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(zone);
    return zone;
}

int64_t schedules_at(const char *text) {
    int64_t t = 0;

    TEST_INT(schedule_parse_time(text, &t), 0);
    return t;
}
