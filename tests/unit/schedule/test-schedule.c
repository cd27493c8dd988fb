/* SPDX-License-Identifier: MIT */

/* Due times: the table of berth-schedule(7), and what holds for all schedules, against a walk over all
 * minutes. */

#include "base/schedule/schedule.h"

#include <string.h>
#include <time.h>

#include "tests/harness/test.h"

#define DAY 86400

static void add(struct schedule *schedule, const char *entry, const char *except) {
    char error[CRON_ERROR_SIZE] = "";

    if (entry)
        TEST_INT(schedule_add(schedule, entry, error), 0);
    if (except)
        TEST_INT(schedule_add_except(schedule, except, error), 0);
    TEST_STRING(error, "");
}

static struct zone *load(const char *name) {
    struct zone *zone = NULL;

    TEST_INT(zone_load(ZONE_DIRECTORY, name, &zone), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(zone);
    return zone;
}

static int64_t at(const char *text) {
    int64_t t = 0;

    TEST_INT(schedule_parse_time(text, &t), 0);
    return t;
}

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
        _cleanup_(zone_freep) struct zone *zone = load(rows[i].zone);
        struct schedule_due due = {.at = at(rows[i].from) - 1};
        struct schedule schedule = {};
        char text[512] = "", one[SCHEDULE_TEXT_SIZE];

        add(&schedule, rows[i].entry, rows[i].except);
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

/* The first local time that the clock leaves out, of several. */
static void test_wanted(void) {
    _cleanup_(zone_freep) struct zone *zone = load("Europe/Berlin");
    struct schedule schedule = {};
    struct schedule_due due;

    add(&schedule, "*/20 2 * * *", NULL);
    CU_ASSERT_FATAL(schedule_next(&schedule, zone, at("2027-03-28T00:59:59Z"), &due));
    TEST_INT(due.at, at("2027-03-28T01:00:00Z"));
    TEST_INT(due.wanted, at("2027-03-28T02:00:00Z"));
    schedule_done(&schedule);
}

static void test_first_entry_counts(void) {
    _cleanup_(zone_freep) struct zone *zone = load("UTC");
    struct schedule schedule = {};
    struct schedule_due due;

    add(&schedule, "0 5 * * * A=1 B=", NULL);
    add(&schedule, "0 4,5 * * *", NULL);
    add(&schedule, "0 5 * * *", NULL);
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
    _cleanup_(zone_freep) struct zone *zone = load("Asia/Tokyo");
    struct schedule none = {}, schedule = {};
    struct schedule_due due = {.at = 4711};

    CU_ASSERT(!schedule_next(&none, zone, 0, &due));
    TEST_INT(due.at, 4711);
    add(&schedule, "0 9 * * *", NULL);
    CU_ASSERT(schedule_next(&schedule, zone, INT64_MIN, &due));
    TEST_INT(due.at, 0);
    CU_ASSERT(schedule_next(&schedule, zone, SCHEDULE_END - DAY - 1, &due));
    TEST_INT(due.at, SCHEDULE_END - DAY);
    CU_ASSERT(!schedule_next(&schedule, zone, SCHEDULE_END - DAY, &due));
    CU_ASSERT(!schedule_next(&schedule, zone, INT64_MAX, &due));
    add(&schedule, NULL, "* 9 * * *");
    CU_ASSERT(!schedule_next(&schedule, zone, 0, &due));
    schedule_done(&schedule);
}

/* ---- a walk over all minutes, by the words of the manual ---- */

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
            CU_FAIL("another due time than by the walk");
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

/* One of these in each field, or a value. */
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
    size_t n = getenv("BERTH_TEST_SCHEDULES") ? strtoul(getenv("BERTH_TEST_SCHEDULES"), NULL, 10) : 4;

    srandom(3);
    for (size_t i = 0; i < ELEMENTSOF(zones); i++) {
        _cleanup_(zone_freep) struct zone *zone = load(zones[i]);

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
        _cleanup_(zone_freep) struct zone *zone = load(zones[random() % (long) ELEMENTSOF(zones)]);
        struct schedule first = {}, second = {}, both = {};
        int64_t t = (int64_t) random() * 2;

        add_random(&first, text[0]);
        add_random(&second, text[1]);
        add(&both, text[0], NULL);
        add(&both, text[1], NULL);
        for (int k = 0; k < 10; k++, t = due.at) {
            bool is_a = schedule_next(&first, zone, t, &a), is_b = schedule_next(&second, zone, t, &b);

            if (!schedule_next(&both, zone, t, &due))
                break;
            CU_ASSERT(due.at > t);
            /* The union is the merge. */
            TEST_INT(due.at, is_a && (!is_b || a.at <= b.at) ? a.at : b.at);
            TEST_INT(due.entry, is_a && (!is_b || a.at <= b.at) ? 0 : 1);
            /* Nothing in between depends on where the search began. */
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

/* Each date that matches has its number of due times, whatever the zone's clock does: 4, or one where the
 * clock leaves them out. */
static void test_each_date(void) {
    for (size_t i = 0; i < ELEMENTSOF(zones); i++) {
        _cleanup_(zone_freep) struct zone *zone = load(zones[i]);
        struct schedule schedule = {};
        struct schedule_due due = {.at = at("2026-12-31T12:00:00Z")};
        size_t n = 0, n_gaps = 0;
        int64_t end = at("2036-12-31T12:00:00Z");

        add(&schedule, "10,20,50 12 * * *", NULL);
        add(&schedule, "30 2 * * *", NULL);
        for (; schedule_next(&schedule, zone, due.at, &due) && due.at <= end; n++)
            n_gaps += due.shift == SCHEDULE_SHIFT_GAP;
        CU_ASSERT(n >= 4 * 3653 - 4 && n <= 4 * 3653 + 4);
        CU_ASSERT(n_gaps <= 20);
        schedule_done(&schedule);
    }
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
    _cleanup_(zone_freep) struct zone *zone = load("Africa/Casablanca");

    for (size_t i = 0; i < ELEMENTSOF(worst); i++) {
        double most = 0;
        struct schedule schedule = {};
        struct schedule_due due = {.at = at("2027-01-01T00:00:00Z")};

        for (size_t k = 0; k < SCHEDULE_ENTRIES_MAX; k++)
            add(&schedule, worst[i].entry, NULL);
        for (size_t k = 0; k < SCHEDULE_EXCEPT_MAX; k++)
            add(&schedule, NULL, worst[i].except);
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
        add(&schedule, "@daily", "@daily");
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
    _cleanup_(zone_freep) struct zone *monrovia = load("Africa/Monrovia"), *berlin = load("Europe/Berlin");
    char text[SCHEDULE_TEXT_SIZE];
    int64_t t = 4711;

    for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
        TEST_INT(schedule_parse_time(wrong[i], &t), -EINVAL);
    TEST_INT(t, 4711);
    TEST_INT(at("1970-01-01T00:00:00Z"), 0);
    TEST_INT(at("2027-03-28 03:00:00.999+02:00"), 1806195600);
    TEST_INT(at("2027-03-27t20:30:00-04:30"), 1806195600);
    TEST_INT(at("2016-12-31T23:59:60z"), 1483228800);
    TEST_INT(at("1969-12-31T23:59:59Z"), -1);
    TEST_STRING(schedule_format(berlin, 1806195600, text), "2027-03-28T03:00:00+02:00");
    TEST_STRING(schedule_format(monrovia, 0, text), "1969-12-31T23:15:30-00:45"); /* -00:44:30 */
    srandom(7);
    for (int i = 0; i < 1000; i++) {
        t = (int64_t) random() * 6;
        TEST_INT(at(schedule_format(berlin, t, text)), t);
    }
}

/* Computed by another program, from the definitions of both hashes. */
static void test_spread(void) {
    const char *const texts[] = {"splay", "berth", "pg-dump", "web-07", NULL}, *const joined[] = {
                                                                                   "splay", "berth",
                                                                                   "pg-dumpweb-07", "",
                                                                                   NULL};
    size_t minutes[10] = {0};

    TEST_INT(schedule_spread(UINT64_MAX, texts), (int64_t) UINT64_C(1194896484320039339));
    CU_ASSERT(schedule_spread(UINT64_MAX, texts) != schedule_spread(UINT64_MAX, joined));
    TEST_INT(schedule_spread(0, texts), 0);
    TEST_INT(schedule_spread(1, texts), 0);
    for (int i = 0; i < 1000; i++) {
        char host[32];
        const char *const of_host[] = {"splay", "berth", "job", host, NULL};
        uint64_t part;

        snprintf(host, sizeof(host), "host-%d", i);
        part = schedule_spread(600000, of_host);
        CU_ASSERT_FATAL(part < 600000);
        minutes[part / 60000]++;
    }
    for (size_t i = 0; i < ELEMENTSOF(minutes); i++)
        CU_ASSERT(minutes[i] >= 60 && minutes[i] <= 140);
}

static CU_TestInfo tests[] = {
    {"table", test_table},
    {"wanted", test_wanted},
    {"first-entry-counts", test_first_entry_counts},
    {"ends", test_ends},
    {"walk", test_walk},
    {"properties", test_properties},
    {"each-date", test_each_date},
    {"bounded", test_bounded},
    {"too-many", test_too_many},
    {"times", test_times},
    {"spread", test_spread},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "schedule", .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
