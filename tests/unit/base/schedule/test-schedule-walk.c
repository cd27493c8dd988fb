/* SPDX-License-Identifier: MIT */

/* Random schedules around clock changes, compared with a walk over all minutes by the rules of
 * berth-schedule(7); then properties of all schedules. */

#include "base/schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "tests/harness/host/schedules.h"
#include "tests/harness/test.h"

#define DAY 86400

#define WALK_DAYS 12
#define WALK_MINUTES (WALK_DAYS * 1440)
#define WALK_MARGIN (4 * DAY)

/* Local minutes by their distance from the first; room for offsets on both sides. */
static unsigned char shown[WALK_MINUTES + 4 * 1440];

static bool walk_is_due(const struct cron *cron, const struct zone *zone, int64_t begin, int64_t t) {
    int64_t local = t + zone_offset(zone, t), first = begin / 60 - 2 * 1440;
    int64_t before = t - 60 + zone_offset(zone, t - 60);
    struct civil civil;

    civil_from_seconds(local, &civil);
    if (cron_is_every_hour(cron))
        return cron_matches(cron, &civil);
    if (cron_matches(cron, &civil) && shown[local / 60 - first] == 0)
        return true;
    for (int64_t m = before + 60; m < local; m += 60) { /* left out by the clock */
        civil_from_seconds(m, &civil);
        if (cron_matches(cron, &civil) && shown[m / 60 - first] != 2)
            return true;
    }
    return false;
}

/* Compares all due times of `days` from `begin` (a whole minute) on with the walk. */
static void compare_with_walk(const char *entry, const struct cron *cron, const struct schedule *schedule,
                              const struct zone *zone, int64_t from) {
    int64_t begin = from - WALK_MARGIN, first = begin / 60 - 2 * 1440;
    struct schedule_due due = {.at = from - 1};
    bool has_more = schedule_next(schedule, zone, due.at, &due);

    /* 2: some instant shows it; then, from the first on, 1 and 0 again: shown already, or not yet. */
    memset(shown, 0, sizeof(shown));
    for (int64_t t = begin; t < begin + WALK_DAYS * DAY; t += 60)
        shown[(t + zone_offset(zone, t)) / 60 - first] = 2;
    static unsigned char ever[sizeof(shown)];
    memcpy(ever, shown, sizeof(shown));
    memset(shown, 0, sizeof(shown));
    for (int64_t t = begin; t < begin + (WALK_DAYS - 4) * DAY; t += 60) {
        int64_t local = (t + zone_offset(zone, t)) / 60 - first,
                before = (t - 60 + zone_offset(zone, t - 60)) / 60 - first;
        bool is_due;

        for (int64_t m = before + 1; m < local; m++)
            if (shown[m] == 0 && ever[m] == 2)
                shown[m] = 2; /* not left out: another instant shows it */
        is_due = walk_is_due(cron, zone, begin, t);
        for (int64_t m = before + 1; m < local; m++)
            if (shown[m] == 2)
                shown[m] = 0;
        shown[local] = 1;
        if (t < from)
            continue;
        if (is_due != (has_more && due.at == t)) {
            printf("\"%s\" at %lld: %s\n", entry, (long long) t, is_due ? "not found" : "not due");
            CU_FAIL("schedule_next() differs from the walk");
            return;
        }
        if (is_due)
            has_more = schedule_next(schedule, zone, due.at, &due);
    }
}

static const char *const zones[] = {"Europe/Berlin",     "America/New_York", "Australia/Lord_Howe",
                                    "Africa/Cairo",      "America/Santiago", "Pacific/Apia",
                                    "Africa/Casablanca", "Antarctica/Troll", "Europe/Dublin",
                                    "America/Havana",    "Asia/Gaza",        "Pacific/Kwajalein"};

/* Returns one of these texts, or a random value. */
static const char *random_field(const char *const *texts, size_t n, long max, char buffer[static 16]) {
    if (random() % 3 != 0)
        return texts[(size_t) random() % n];
    snprintf(buffer, 16, "%d", (int) (1 + random() % max));
    return buffer;
}

static void add_random(struct schedule *schedule, char buffer[static 128]) {
    static const char *const minutes[] = {"0", "30", "*/15", "*", "1-59/7", "59", "0,1,30"};
    static const char *const hours[] = {"*", "2", "0", "1-3", "*/2", "23", "0-23", "0,1,2,3"};
    static const char *const days[] = {"*", "*", "1-7", "L", "L-1", "28-31"};
    static const char *const weekdays[] = {"*", "*", "+sun", "sun", "sunL", "+sat#1", "mon-fri"};
    char minute[16], hour[16], day[16], weekday[16], error[CRON_ERROR_SIZE];

    do
        snprintf(buffer, 128, "%s %s %s * %s", random_field(minutes, ELEMENTSOF(minutes), 59, minute),
                 random_field(hours, ELEMENTSOF(hours), 23, hour),
                 random_field(days, ELEMENTSOF(days), 31, day),
                 random_field(weekdays, ELEMENTSOF(weekdays), 7, weekday));
    while (schedule_add(schedule, buffer, error) < 0); /* some never come */
}

static void test_walk(void) {
    size_t n = test_count("BERTH_TEST_SCHEDULES", 4);

    srandom(3);
    for (size_t i = 0; i < ELEMENTSOF(zones); i++) {
        _cleanup_(zone_freep) struct zone *zone = schedules_load_zone(zones[i]);

        for (size_t k = 0; k < 8 * n; k++) {
            int64_t change = zone_transition_after(zone, random() % (80 * 365) * DAY);
            struct schedule schedule = {};
            char text[128];

            add_random(&schedule, text);
            if (change != INT64_MAX && change > 30 * DAY)
                compare_with_walk(text, &schedule.entries[0].cron, &schedule, zone,
                                  change / 60 * 60 - random() % 3 * 1440 * 60);
            schedule_done(&schedule);
        }
    }
}

/* ---- what holds for all ---- */

static void test_properties(void) {
    struct schedule_due due, again, a, b;
    char text[2][128];

    srandom(5);
    for (int i = 0; i < 300; i++) {
        _cleanup_(zone_freep) struct zone *zone = schedules_load_zone(zones[random() % (long) ELEMENTSOF(zones)]);
        struct schedule first = {}, second = {}, both = {};
        int64_t t = (int64_t) random() * 2;

        add_random(&first, text[0]);
        add_random(&second, text[1]);
        schedules_add(&both, text[0], NULL);
        schedules_add(&both, text[1], NULL);
        for (int k = 0; k < 10; k++, t = due.at) {
            bool is_a = schedule_next(&first, zone, t, &a), is_b = schedule_next(&second, zone, t, &b);

            if (!schedule_next(&both, zone, t, &due))
                break;
            CU_ASSERT(due.at > t);
            /* The due times of both entries are those of each, merged. */
            TEST_INT(due.at, is_a && (!is_b || a.at <= b.at) ? a.at : b.at);
            TEST_INT(due.entry, is_a && (!is_b || a.at <= b.at) ? 0 : 1);
            /* The result does not depend on where the search begins. */
            CU_ASSERT(schedule_next(&both, zone, t + (due.at - t) / 2 - (due.at - t == 1), &again));
            TEST_INT(again.at, due.at);
            CU_ASSERT(schedule_next(&both, zone, due.at - 1, &again));
            TEST_INT(again.at, due.at);
            TEST_INT(again.shift, due.shift);
        }
        schedule_done(&first);
        schedule_done(&second);
        schedule_done(&both);
    }
}

/* Each date has its 4 due times, whatever the clock of the zone does. */
static void test_each_date(void) {
    for (size_t i = 0; i < ELEMENTSOF(zones); i++) {
        _cleanup_(zone_freep) struct zone *zone = schedules_load_zone(zones[i]);
        struct schedule schedule = {};
        struct schedule_due due = {.at = schedules_at("2026-12-31T12:00:00Z")};
        size_t n = 0, n_gaps = 0;
        int64_t end = schedules_at("2036-12-31T12:00:00Z");

        schedules_add(&schedule, "10,20,50 12 * * *", NULL);
        schedules_add(&schedule, "30 2 * * *", NULL);
        for (; schedule_next(&schedule, zone, due.at, &due) && due.at <= end; n++)
            n_gaps += due.shift == SCHEDULE_SHIFT_GAP;
        CU_ASSERT(n >= 4 * 3653 - 4 && n <= 4 * 3653 + 4);
        CU_ASSERT(n_gaps <= 20);
        schedule_done(&schedule);
    }
}

static CU_TestInfo tests[] = {
    {"walk", test_walk},
    {"properties", test_properties},
    {"each-date", test_each_date},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "schedule-walk", .pTests = tests});
