/* SPDX-License-Identifier: MIT */

/* The due times that `berth next` shows across a clock change are those that berthd begins, to the ms
 * (S4). The test compares schedule_next() with due_plan(), called at each wake-up, over 200 changes. */

#include "daemon/jobs/due.h"
#include "tests/harness/test.h"

#define N_SHOWN 50
#define YEARS_FROM INT64_C(1704067200) /* 2024 */
#define CHANGES_EACH 10
#define SPLAY (123 * USEC_PER_SEC + 457 * USEC_PER_MSEC)

static const char *const zones[] = {
    "Europe/Berlin",    "Europe/London",     "Europe/Dublin",   "Europe/Chisinau",     "America/New_York",
    "America/St_Johns", "America/Santiago",  "America/Havana",  "America/Asuncion",    "America/Nuuk",
    "Africa/Cairo",     "Africa/Casablanca", "Asia/Gaza",       "Asia/Jerusalem",      "Asia/Beirut",
    "Antarctica/Troll", "Pacific/Chatham",   "Pacific/Norfolk", "Australia/Lord_Howe", "Australia/Sydney",
};
static const char *const entries[][2] = {
    {"*/30 * * * *"}, {"30 2 * * *", "15 2 * * *"}, {"0 */2 * * *"}, {"@hourly", "30 0-4 * * *"},
    {"0 0 * * *"},
};

static void make_schedule(size_t i, struct schedule *schedule) {
    char error[CRON_ERROR_SIZE];

    for (size_t k = 0; k < ELEMENTSOF(entries[i]) && entries[i][k]; k++)
        TEST_INT(schedule_add(schedule, entries[i][k], error), 0);
}

static usec_t begin_of(const struct schedule_due *due) {
    return (usec_t) due->at * USEC_PER_SEC + SPLAY;
}

static size_t count_due(const struct schedule *schedule, const struct zone *zone, int64_t from,
                        int64_t until) {
    struct schedule_due due;
    size_t n = 0;

    for (; schedule_next(schedule, zone, from, &due) && due.at < until; from = due.at)
        n++;
    return n;
}

/* Returns a time from which half of the shown times lie before the change. */
static int64_t find_from(const struct schedule *schedule, const struct zone *zone, int64_t change) {
    struct schedule_due due;
    int64_t before = 3600, from;
    size_t n;

    while ((n = count_due(schedule, zone, change - before, change)) < N_SHOWN / 2)
        before *= 2;
    for (from = change - before; n > N_SHOWN / 2; n--, from = due.at)
        CU_ASSERT_FATAL(schedule_next(schedule, zone, from, &due));
    return from;
}

/* Wakes at the planned time and one ms before. Returns false if another run began than the one shown. */
static bool run_through(const struct due_terms *terms, const struct schedule_due *shown, int64_t mark) {
    usec_t now = (usec_t) mark * USEC_PER_SEC + SPLAY;

    for (size_t n = 0; n < N_SHOWN;) {
        struct due_plan plan;
        usec_t next;
        bool is_right;

        TEST_INT(due_plan(terms, mark, now, &plan), 0);
        is_right = plan.n_begun == 0 ||
                   (plan.n_begun == 1 && plan.begun[0].at == shown[n].at && now == begin_of(&shown[n]));
        is_right = is_right && plan.missed.count + plan.surplus.count == 0 && plan.next > now;
        n += plan.n_begun;
        mark = plan.mark;
        next = plan.next;
        due_plan_done(&plan);
        if (!is_right)
            return false;
        now = now < next - USEC_PER_MSEC ? next - USEC_PER_MSEC : next;
    }
    return true;
}

static void check_change(const struct zone *zone, const char *name, int64_t change) {
    for (size_t i = 0; i < ELEMENTSOF(entries); i++) {
        _cleanup_(schedule_done) struct schedule schedule = {};
        struct schedule_due shown[N_SHOWN];
        struct due_terms terms = {.schedule = &schedule, .zone = zone, .splay_usec = SPLAY, .backlog = 1};
        int64_t from, at;

        make_schedule(i, &schedule);
        at = from = find_from(&schedule, zone, change);
        for (size_t n = 0; n < N_SHOWN; n++, at = shown[n - 1].at)
            CU_ASSERT_FATAL(schedule_next(&schedule, zone, at, &shown[n]));
        CU_ASSERT(shown[0].at < change && shown[N_SHOWN - 1].at >= change);
        if (!run_through(&terms, shown, from)) {
            printf("%s, %s, change at %lld\n", name, entries[i][0], (long long) change);
            CU_FAIL("berthd begins another due time than the one shown");
        }
    }
}

static void test_shown(void) {
    unsigned n = 0;

    for (size_t i = 0; i < ELEMENTSOF(zones); i++) {
        _cleanup_(zone_freep) struct zone *zone = NULL;
        int64_t change = YEARS_FROM;

        TEST_INT(zone_load(ZONE_DIRECTORY, zones[i], &zone), 0);
        for (int k = 0;
             zone && k < CHANGES_EACH && (change = zone_transition_after(zone, change)) != INT64_MAX;
             k++, n++)
            check_change(zone, zones[i], change);
    }
    CU_ASSERT(n >= 180); /* some zones may abolish their clock changes */
}

static CU_TestInfo tests[] = {
    {"shown", test_shown},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "due times as shown", .pTests = tests});
