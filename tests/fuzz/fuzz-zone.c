/* SPDX-License-Identifier: MIT */

/* Bytes of a zone file. Whatever zone they are, its offsets change at its transitions, and schedules in it are
 * searched in a bounded time, with due times that grow. */

#include <string.h>
#include <time.h>

#include "base/schedule/schedule.h"
#include "tests/fuzz/fuzz.h"

#define SEARCH_MAX 200 /* ms, with sanitizers */

static int64_t milliseconds(void) {
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void check_changes(const struct zone *zone) {
    int64_t t = INT64_MIN, before = INT64_MIN;

    for (int i = 0; i < 3000 && (t = zone_transition_after(zone, t)) != INT64_MAX; i++) {
        FUZZ_ASSERT(t > before);
        FUZZ_ASSERT(zone_offset(zone, t) != zone_offset(zone, t - 1));
        FUZZ_ASSERT(zone_transition_before(zone, t) == t);
        FUZZ_ASSERT(zone_transition_before(zone, t - 1) == before);
        before = t;
    }
    FUZZ_ASSERT(t == INT64_MAX);
}

static void check_schedule(const struct zone *zone, const char *entry) {
    char error[CRON_ERROR_SIZE], text[SCHEDULE_TEXT_SIZE];
    struct schedule_due due = {.at = -1};
    struct schedule schedule = {};

    FUZZ_ASSERT(schedule_add(&schedule, entry, error) == 0);
    for (int i = 0; i < 50; i++) {
        int64_t before = due.at, begin = milliseconds();
        bool is_due = schedule_next(&schedule, zone, before, &due);

        FUZZ_ASSERT(milliseconds() - begin <= SEARCH_MAX);
        if (!is_due)
            break;
        FUZZ_ASSERT(due.at > before && due.at < SCHEDULE_END);
        (void) schedule_format(zone, due.at, text);
    }
    schedule_done(&schedule);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct zone *zone = NULL;
    int r = zone_parse(data, size, &zone);

    FUZZ_ASSERT((r == 0) == (zone != NULL));
    FUZZ_ASSERT(r == 0 || r == ZONE_E_INVALID || r == ZONE_E_LEAP);
    if (!zone)
        return 0;
    check_changes(zone);
    check_schedule(zone, "30 2 * * *");
    check_schedule(zone, "*/15 * * * *");
    check_schedule(zone, "0 0 29 2 +mon");
    check_schedule(zone, "*/20 0-22 1,L * +sun,mon#1");
    zone_free(zone);
    return 0;
}
