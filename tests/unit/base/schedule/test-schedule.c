/* SPDX-License-Identifier: MIT */

/* Due times: the table of berth-schedule(7), bounds and texts. Random schedules are in test-schedule-walk.c. */

#include "base/schedule/schedule.h"

#include <string.h>
#include <time.h>

#include "tests/harness/host/schedules.h"
#include "tests/harness/test.h"

#define DAY 86400

static char letter(enum schedule_shift shift) {
    return shift == SCHEDULE_SHIFT_GAP ? 'G' : shift == SCHEDULE_SHIFT_FOLD ? 'F' : ' ';
}

/* ---- the table ---- */

static const struct row {
    const char *zone, *entry, *except, *from; /* the first due time may be `from` */
    const char *due;                          /* the first ones; 'G' or 'F' after those that are shifted */
} rows[] = {
    {"Europe/Berlin", "30 2 * * *", NULL, "2027-03-27T00:00:00Z",
     "2027-03-27T02:30:00+01:00 2027-03-28T03:00:00+02:00G2027-03-29T02:30:00+02:00 "},
    {"Europe/Berlin", "30 2 * * *", NULL, "2027-10-30T00:00:00Z",
     "2027-10-30T02:30:00+02:00 2027-10-31T02:30:00+02:00F2027-11-01T02:30:00+01:00 "},
    {"Europe/Berlin", "*/15 2 * * *", NULL, "2027-03-28T00:00:00Z",
     "2027-03-28T03:00:00+02:00G2027-03-29T02:00:00+02:00 "},
    {"Europe/Berlin", "*/15 2 * * *", NULL, "2027-10-31T00:00:00Z",
     "2027-10-31T02:00:00+02:00F2027-10-31T02:15:00+02:00F2027-10-31T02:30:00+02:00F2027-10-31T02:45:00+02:"
     "00F"
     "2027-11-01T02:00:00+01:00 "},
    {"Europe/Berlin", "0 */2 * * *", NULL, "2027-03-27T23:00:00Z",
     "2027-03-28T00:00:00+01:00 2027-03-28T03:00:00+02:00G2027-03-28T04:00:00+02:00 "
     "2027-03-28T06:00:00+02:00 "},
    {"Europe/Berlin", "0 * * * *", NULL, "2027-03-28T00:00:00Z",
     "2027-03-28T01:00:00+01:00 2027-03-28T03:00:00+02:00 2027-03-28T04:00:00+02:00 "},
    {"Europe/Berlin", "0 * * * *", NULL, "2027-10-31T00:00:00Z",
     "2027-10-31T02:00:00+02:00 2027-10-31T02:00:00+01:00 2027-10-31T03:00:00+01:00 "},
    {"Europe/Berlin", "0 1-4 * * *", NULL, "2027-10-30T22:00:00Z",
     "2027-10-31T01:00:00+02:00 2027-10-31T02:00:00+02:00F2027-10-31T03:00:00+01:00 "
     "2027-10-31T04:00:00+01:00 "
     "2027-11-01T01:00:00+01:00 "},
    {"America/New_York", "30 2 * * *", NULL, "2027-03-14T00:00:00Z",
     "2027-03-14T03:00:00-04:00G2027-03-15T02:30:00-04:00 "},
    {"Australia/Lord_Howe", "15 2 * * *", NULL, "2027-10-02T00:00:00Z",
     "2027-10-03T02:30:00+11:00G2027-10-04T02:15:00+11:00 "},
    {"Australia/Lord_Howe", "0 * * * *", NULL, "2027-10-02T14:00:00Z",
     "2027-10-03T01:00:00+10:30 2027-10-03T03:00:00+11:00 "},
    {"Africa/Cairo", "0 0 * * *", NULL, "2027-04-28T20:00:00Z",
     "2027-04-29T00:00:00+02:00 2027-04-30T01:00:00+03:00G2027-05-01T00:00:00+03:00 "},
    {"America/Santiago", "0 0 * * sun", NULL, "2027-09-04T00:00:00Z",
     "2027-09-05T01:00:00-03:00G2027-09-12T00:00:00-03:00 "},
    {"Pacific/Apia", "30 2 * * *", NULL, "2011-12-29T00:00:00Z",
     "2011-12-29T02:30:00-10:00 2011-12-31T00:00:00+14:00G2011-12-31T02:30:00+14:00 "},
    /* Two changes in a month, and a fold over midnight. */
    {"America/Havana", "30 0 * * *", NULL, "2027-11-06T00:00:00Z",
     "2027-11-06T00:30:00-04:00 2027-11-07T00:30:00-04:00F2027-11-08T00:30:00-05:00 "},
    /* An every-minute schedule has both passes of a fold; `except` goes by the clock of the zone, twice. */
    {"Europe/Berlin", "*/30 * * * *", "0 2 * * *", "2027-10-31T00:00:00Z",
     "2027-10-31T02:30:00+02:00 2027-10-31T02:30:00+01:00 2027-10-31T03:00:00+01:00 "},
    {"Europe/Berlin", "30 2 * * *", "* 3 * * *", "2027-03-27T00:00:00Z",
     "2027-03-27T02:30:00+01:00 2027-03-29T02:30:00+02:00 "},
    {"Pacific/Auckland", "0 3 * * *", "2026-12-24/2027-01-02", "2026-12-22T12:00:00Z",
     "2026-12-23T03:00:00+13:00 2027-01-03T03:00:00+13:00 "},
    {"UTC", "* * * * *", "2026-12-24/2027-01-02", "2026-12-23T23:59:00Z",
     "2026-12-23T23:59:00+00:00 2027-01-03T00:00:00+00:00 "},
    {"UTC", "*/7 * * * *", "* * * 12 *", "2026-11-30T23:56:00Z",
     "2026-11-30T23:56:00+00:00 2027-01-01T00:00:00+00:00 "},
    /* Days. */
    {"UTC", "0 0 L * *", NULL, "2027-01-01T00:00:00Z",
     "2027-01-31T00:00:00+00:00 2027-02-28T00:00:00+00:00 "},
    {"UTC", "0 0 L-1,1 * *", NULL, "2028-02-02T00:00:00Z",
     "2028-02-28T00:00:00+00:00 2028-03-01T00:00:00+00:00 2028-03-30T00:00:00+00:00 "},
    {"UTC", "0 0 * * fri#1,MONL", NULL, "2027-01-01T00:00:00Z",
     "2027-01-01T00:00:00+00:00 2027-01-25T00:00:00+00:00 2027-02-05T00:00:00+00:00 "
     "2027-02-22T00:00:00+00:00 "},
    {"UTC", "0 0 * * fri#5", NULL, "2027-01-01T00:00:00Z",
     "2027-01-29T00:00:00+00:00 2027-04-30T00:00:00+00:00 "},
    {"UTC", "0 0 1-7 * +mon", NULL, "2027-01-01T00:00:00Z",
     "2027-01-04T00:00:00+00:00 2027-02-01T00:00:00+00:00 "},
    {"UTC", "0 0 10 * mon", NULL, "2027-01-05T00:00:00Z",
     "2027-01-10T00:00:00+00:00 2027-01-11T00:00:00+00:00 2027-01-18T00:00:00+00:00 "},
    {"UTC", "0 0 */2 * +sun", NULL, "2027-01-01T00:00:00Z",
     "2027-01-03T00:00:00+00:00 2027-01-17T00:00:00+00:00 "},
    {"UTC", "0 0 1-31 * sat-sun", NULL, "2027-01-01T00:00:00Z",
     "2027-01-02T00:00:00+00:00 2027-01-03T00:00:00+00:00 2027-01-09T00:00:00+00:00 "},
    {"UTC", "0 0 29 2 *", NULL, "2096-03-01T00:00:00Z", "2104-02-29T00:00:00+00:00 "},
    {"UTC", "0 0 29 2 +mon", NULL, "2027-01-01T00:00:00Z", "2044-02-29T00:00:00+00:00 "},
    {"UTC", "59 23 31 DEC *", NULL, "2027-01-01T00:00:00Z", "2027-12-31T23:59:00+00:00 "},
    {"UTC", "@weekly", NULL, "2027-01-01T00:00:00Z", "2027-01-03T00:00:00+00:00 "},
    {"UTC", "@monthly", NULL, "2027-01-02T00:00:00Z", "2027-02-01T00:00:00+00:00 "},
    {"UTC", "@yearly", NULL, "2027-01-02T00:00:00Z", "2028-01-01T00:00:00+00:00 "},
};

static void test_table(void) {
    for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
        _cleanup_(zone_freep) struct zone *zone = schedules_load_zone(rows[i].zone);
        struct schedule_due due = {.at = schedules_at(rows[i].from) - 1};
        struct schedule schedule = {};
        char text[512] = "", one[SCHEDULE_TEXT_SIZE];

        schedules_add(&schedule, rows[i].entry, rows[i].except);
        for (size_t n = 0; n < strlen(rows[i].due); n = strlen(text)) {
            CU_ASSERT_FATAL(schedule_next(&schedule, zone, due.at, &due));
            snprintf(text + n, sizeof(text) - n, "%s%c", schedule_format(zone, due.at, one),
                     letter(due.shift));
        }
        if (strcmp(text, rows[i].due) != 0)
            printf("%s \"%s\":\n", rows[i].zone, rows[i].entry);
        TEST_STRING(text, rows[i].due);
        schedule_done(&schedule);
    }
}

/* `wanted` is the first of several local times that the clock leaves out. */
static void test_wanted(void) {
    _cleanup_(zone_freep) struct zone *zone = schedules_load_zone("Europe/Berlin");
    struct schedule schedule = {};
    struct schedule_due due;

    schedules_add(&schedule, "*/20 2 * * *", NULL);
    CU_ASSERT_FATAL(schedule_next(&schedule, zone, schedules_at("2027-03-28T00:59:59Z"), &due));
    TEST_INT(due.at, schedules_at("2027-03-28T01:00:00Z"));
    TEST_INT(due.wanted, schedules_at("2027-03-28T02:00:00Z"));
    schedule_done(&schedule);
}

static void test_first_entry_counts(void) {
    _cleanup_(zone_freep) struct zone *zone = schedules_load_zone("UTC");
    struct schedule schedule = {};
    struct schedule_due due;

    schedules_add(&schedule, "0 5 * * * A=1 B=", NULL);
    schedules_add(&schedule, "0 4,5 * * *", NULL);
    schedules_add(&schedule, "0 5 * * *", NULL);
    TEST_STRING(schedule.entries[0].set[0], "A=1");
    TEST_STRING(schedule.entries[0].set[1], "B=");
    CU_ASSERT_PTR_NULL(schedule.entries[0].set[2]);
    CU_ASSERT_PTR_NULL(schedule.entries[1].set);
    CU_ASSERT_FATAL(schedule_next(&schedule, zone, 0, &due));
    TEST_INT(due.at, 4 * 3600);
    TEST_INT(due.entry, 1);
    CU_ASSERT_FATAL(schedule_next(&schedule, zone, due.at, &due));
    TEST_INT(due.at, 5 * 3600);
    TEST_INT(due.entry, 0);
    CU_ASSERT_FATAL(schedule_next(&schedule, zone, due.at, &due));
    TEST_INT(due.at, 28 * 3600);
    schedule_done(&schedule);
}

static void test_ends(void) {
    _cleanup_(zone_freep) struct zone *zone = schedules_load_zone("Asia/Tokyo");
    struct schedule none = {}, schedule = {};
    struct schedule_due due = {.at = 4711};

    CU_ASSERT(!schedule_next(&none, zone, 0, &due));
    TEST_INT(due.at, 4711);
    schedules_add(&schedule, "0 9 * * *", NULL);
    CU_ASSERT(schedule_next(&schedule, zone, INT64_MIN, &due));
    TEST_INT(due.at, 0);
    CU_ASSERT(schedule_next(&schedule, zone, SCHEDULE_END - DAY - 1, &due));
    TEST_INT(due.at, SCHEDULE_END - DAY);
    CU_ASSERT(!schedule_next(&schedule, zone, SCHEDULE_END - DAY, &due));
    CU_ASSERT(!schedule_next(&schedule, zone, INT64_MAX, &due));
    schedules_add(&schedule, NULL, "* 9 * * *");
    CU_ASSERT(!schedule_next(&schedule, zone, 0, &due));
    schedule_done(&schedule);
}

/* ---- bounds ---- */

static double milliseconds(void) {
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double) now.tv_sec * 1e3 + (double) now.tv_nsec / 1e6;
}

/* 10 ms are promised; sanitizers and a busy machine may take ten times as long. */
static void test_bounded(void) {
    static const struct {
        const char *entry, *except;
    } worst[] = {
        {"0 0 29 2 +mon", "* * 29 2 *"},
        {"* * * * *", "0-58 * * * *"},
        {"* * * * *", "0-29,31-59 * * * *"},
        {"0 0 31 * +fri#5", "0 0 * * fri"},
        {"1 2 3 4 +sun", "2 2 * * *"},
        {"* * * * *", "*/2 * * * *"},
        {"1-59/2 * * * *", "*/2,1-59/2 */2,1-23/2 1-30 1-11 *"},
        {"* * * * *", "*/2,1-59/2 * 1-31 1-6 mon-sat"},
        {"*/1 */1 * * *", "30 * * * *"},
    };
    _cleanup_(zone_freep) struct zone *zone = schedules_load_zone("Africa/Casablanca");

    for (size_t i = 0; i < ELEMENTSOF(worst); i++) {
        double most = 0;
        struct schedule schedule = {};
        struct schedule_due due = {.at = schedules_at("2027-01-01T00:00:00Z")};

        for (size_t k = 0; k < SCHEDULE_ENTRIES_MAX; k++)
            schedules_add(&schedule, worst[i].entry, NULL);
        for (size_t k = 0; k < SCHEDULE_EXCEPT_MAX; k++)
            schedules_add(&schedule, NULL, worst[i].except);
        for (int k = 0; k < 20; k++) {
            double before = milliseconds();
            bool is_due = schedule_next(&schedule, zone, due.at, &due);

            most = milliseconds() - before > most ? milliseconds() - before : most;
            if (!is_due)
                break;
        }
        schedule_done(&schedule);
        if (getenv("BERTH_TEST_SCHEDULES"))
            printf("%s without %s: %.2f ms\n", worst[i].entry, worst[i].except, most);
        CU_ASSERT(most < 100);
    }
}

static void test_too_many(void) {
    struct schedule schedule = {};
    char error[CRON_ERROR_SIZE];

    for (size_t k = 0; k < SCHEDULE_ENTRIES_MAX; k++)
        schedules_add(&schedule, "@daily", "@daily");
    TEST_INT(schedule_add(&schedule, "@daily", error), -EINVAL);
    TEST_STRING(error, "there are more than 64 entries; write lists such as 0,30 or several jobs");
    TEST_INT(schedule_add_except(&schedule, "@daily", error), -EINVAL);
    TEST_STRING(error, "there are more than 64 exceptions; write ranges such as \"2026-12-24/2027-01-02\"");
    schedule_done(&schedule);
}

/* ---- texts ---- */

static void test_times(void) {
    static const char *const wrong[] = {"",
                                        "2027-03-28",
                                        "2027-03-28T03:00:00",
                                        "2027-02-29T03:00:00Z",
                                        "2027-03-28T24:00:00Z",
                                        "2027-03-28T03:60:00Z",
                                        "2027-03-28T03:00:61Z",
                                        "2027-03-28T03:00:00.Z",
                                        "2027-03-28T03:00:00+24:00",
                                        "2027-03-28T03:00:00+02",
                                        "2027-03-28T03:00:00Zx",
                                        "2027-3-28T03:00:00Z",
                                        "x"};
    _cleanup_(zone_freep) struct zone *monrovia = schedules_load_zone("Africa/Monrovia"), *berlin = schedules_load_zone("Europe/Berlin");
    char text[SCHEDULE_TEXT_SIZE];
    int64_t t = 4711;

    for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
        TEST_INT(schedule_parse_time(wrong[i], &t), -EINVAL);
    TEST_INT(t, 4711);
    TEST_INT(schedules_at("1970-01-01T00:00:00Z"), 0);
    TEST_INT(schedules_at("2027-03-28 03:00:00.999+02:00"), 1806195600);
    TEST_INT(schedules_at("2027-03-27t20:30:00-04:30"), 1806195600);
    TEST_INT(schedules_at("2016-12-31T23:59:60z"), 1483228800);
    TEST_INT(schedules_at("1969-12-31T23:59:59Z"), -1);
    TEST_STRING(schedule_format(berlin, 1806195600, text), "2027-03-28T03:00:00+02:00");
    TEST_STRING(schedule_format(monrovia, 0, text), "1969-12-31T23:15:30-00:45"); /* -00:44:30 */
    srandom(7);
    for (int i = 0; i < 1000; i++) {
        t = (int64_t) random() * 6;
        TEST_INT(schedules_at(schedule_format(berlin, t, text)), t);
    }
}

/* The multiples of a period since 1970, in whichever zone. */
static void test_period(void) {
    static const struct {
        int64_t period, after, due;
    } of[] = {
        {3600, INT64_C(1735693200), INT64_C(1735696800)}, {3600, INT64_C(1735693199), INT64_C(1735693200)},
        {7, 13, 14},                                      {7, -5, 0},
        {7, INT64_MIN, 0},                                {90000, 0, 90000},
    };
    struct zone *zone = NULL;
    struct schedule_due due;

    TEST_INT(zone_load(ZONE_DIRECTORY, "Australia/Lord_Howe", &zone), 0);
    for (size_t i = 0; i < ELEMENTSOF(of); i++) {
        const struct schedule schedule = {.period = of[i].period};

        CU_ASSERT(schedule_next(&schedule, zone, of[i].after, &due));
        TEST_INT(due.at, of[i].due);
        TEST_INT(due.shift, SCHEDULE_SHIFT_NONE);
    }
    CU_ASSERT_FALSE(schedule_next(&(struct schedule){.period = 60}, zone, SCHEDULE_END - 60, &due));
    CU_ASSERT_FALSE(schedule_next(&(struct schedule){.period = 60}, zone, INT64_MAX, &due));
    CU_ASSERT(schedule_is_empty(&(struct schedule){}));
    zone_free(zone);
}

static CU_TestInfo tests[] = {
    {"table", test_table},
    {"wanted", test_wanted},
    {"first-entry-counts", test_first_entry_counts},
    {"ends", test_ends},
    {"bounded", test_bounded},
    {"too-many", test_too_many},
    {"times", test_times},
    {"period", test_period},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "schedule", .pTests = tests});
