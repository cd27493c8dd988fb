/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,--wrap=strndup,--wrap=asprintf,--wrap=free */

/* Schedules, zones and checks of a config's zones with each allocation failing once: -ENOMEM, and nothing is
 * left behind. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/schedule/schedule.h"
#include "conf/settings.h"
#include "tests/harness/test.h"
#include "tests/harness/tzif.h"
#include "tests/harness/wrap-count.h"

int __wrap_asprintf(char **ret, const char *format, ...) _printf_(2, 3);

int __wrap_asprintf(char **ret, const char *format, ...) {
    va_list arguments;
    int n;

    if (fault_meets(FAULT_MEMORY))
        return -1;
    va_start(arguments, format);
    n = vasprintf(ret, format, arguments);
    va_end(arguments);
    (void) counted(n < 0 ? NULL : *ret);
    return n;
}

/* Fails each allocation of try_it() in turn: it returns 0 or -ENOMEM, and leaves nothing behind. */
static void fail_each(int (*try_it)(void), unsigned least) {
    unsigned fail_at = 0;
    bool failed = true;

    while (failed) {
        long before = n_live;
        int r;

        fault_begin(FAULT_MEMORY, ++fail_at, 1);
        r = try_it();
        failed = fault_end();
        TEST_INT(r, failed ? -ENOMEM : 0);
        if (n_live != before)
            CU_FAIL("something was left behind, or freed twice");
    }
    CU_ASSERT(fail_at > least);
}

static int add_all(void) {
    static const char *const entries[] = {"0 2 * * * A=1 B=two", "@daily", "0 0 29 2 *"};
    struct schedule schedule = {};
    char error[CRON_ERROR_SIZE];
    int r = 0;

    for (size_t i = 0; i < ELEMENTSOF(entries) && r == 0; i++)
        r = schedule_add(&schedule, entries[i], error);
    if (r == 0)
        r = schedule_add_except(&schedule, "2026-12-24", error);
    if (r == 0)
        r = schedule_add_except(&schedule, "* * * * sun", error);
    schedule_done(&schedule);
    return r;
}

static void test_schedule(void) {
    fail_each(add_all, 8);
}

/* A search allocates no memory. */
static void test_next(void) {
    struct schedule schedule = {};
    char error[CRON_ERROR_SIZE];
    struct zone *zone = NULL;
    struct schedule_due due;

    TEST_INT(schedule_add(&schedule, "0 2 * * *", error), 0);
    TEST_INT(zone_load(ZONE_DIRECTORY, "UTC", &zone), 0);
    fault_begin(FAULT_MEMORY, 1, 1);
    CU_ASSERT(schedule_next(&schedule, zone, 0, &due));
    CU_ASSERT(!fault_end());
    zone_free(zone);
    schedule_done(&schedule);
}

static uint8_t *tzif;
static size_t tzif_size;

static int parse_zone(void) {
    struct zone *zone = NULL;
    int r = zone_parse(tzif, tzif_size, &zone);

    CU_ASSERT((zone != NULL) == (r == 0));
    zone_free(zone);
    return r;
}

static void test_zone(void) {
    tzif = tzif_make(&(struct tzif){.footer = "CET-1CEST,M3.5.0,M10.5.0/3"}, &tzif_size);
    fail_each(parse_zone, 8);
    free(tzif);
}

static int load_zones(void) {
    static const char *const names[] = {"Europe/Berlin", "local", "UTC"};
    int r = 0;

    for (size_t i = 0; i < ELEMENTSOF(names) && r == 0; i++) {
        struct zone *zone = NULL;

        r = zone_load(ZONE_DIRECTORY, names[i], &zone);
        zone_free(zone);
    }
    return r;
}

static void test_load(void) {
    fail_each(load_zones, 10);
}

static struct settings *settings;

/* Returns 0 if the number of errors is right, or -ENOMEM. */
static int check_zones(void) {
    struct settings_errors errors = {};
    int r = settings_check_zones(settings, ZONE_DIRECTORY, 1800000000 * USEC_PER_SEC, &errors);

    CU_ASSERT(r == -ENOMEM || r == SETTINGS_E_INVALID);
    if (errors.out_of_memory)
        r = -ENOMEM;
    CU_ASSERT(r == -ENOMEM || errors.n == 2);
    settings_errors_done(&errors);
    return r == SETTINGS_E_INVALID ? 0 : r;
}

static void test_check(void) {
    static const char text[] =
        "zone = \"Europe/Berlin\"\njob j { command = {\"/j\"} schedule = {\"@daily\"} }\n"
        "job k { command = {\"/k\"} schedule = {\"@daily\"} except = {\"@daily\"} zone = UTC }\n"
        "job l { command = {\"/l\"} schedule = {\"@daily\"} zone = UTC except = {\"* 0 * * *\"} }\n";
    struct settings_source source = {"c", text, strlen(text)};
    struct settings_errors errors = {};

    TEST_INT(settings_parse(&source, 1, "ant", &settings, &errors), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(settings);
    fail_each(check_zones, 8);
    settings_free(settings);
}

static CU_TestInfo tests[] = {
    {"schedule", test_schedule}, {"next", test_next},   {"zone", test_zone},
    {"load", test_load},         {"check", test_check}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "schedule-out-of-memory", .pTests = tests});
