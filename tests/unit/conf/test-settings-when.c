/* SPDX-License-Identifier: MIT */

/* When jobs are due: each error of schedule, zone and related options, and the values of valid ones. */

#include <string.h>

#include "base/file.h"
#include "tests/harness/host/config.h"
#include "tests/harness/test.h"

#define NOW (1800000000 * USEC_PER_SEC) /* 2027-01-15T08:00:00Z */

/* ---- errors ---- */

/* The errors that users see; `schedule "TEXT"` stands before each. */
static void test_schedules(void) {
    static const struct {
        const char *entry, *error;
    } rows[] = {
        {"30 25 * * *", "hour 25; hours are 0 to 23"},
        {"60 2 * * *", "minute 60; minutes are 0 to 59"},
        {"0 2 32 * *", "day of month 32; days are 1 to 31"},
        {"0 2 0 * *", "day of month 0; days are 1 to 31"},
        {"0 2 * 13 *", "month 13; months are 1 to 12"},
        {"0 2 * * 8", "weekday 8; weekdays are 0 to 7"},
        {"x 2 * * *", "minute \"x\"; minutes are 0 to 59"},
        {"-5 2 * * *", "minute \"\"; minutes are 0 to 59"},
        {"005 2 * * *", "minute 005; minutes are 0 to 59"},
        {"1,,2 2 * * *", "minute \"1,,2\" has an empty place; remove a comma or write a value"},
        {"0 2 * ja *", "month \"ja\"; did you mean \"jan\"?"},
        {"", "0 fields; minute, hour, day of month, month, weekday are 5"},
        {"*", "1 field; minute, hour, day of month, month, weekday are 5"},
        {"* * * *", "4 fields; minute, hour, day of month, month, weekday are 5"},
        {"0 30 2 * * *", "6 fields; berth has no seconds: for less than a minute use every = \"10s\""},
        {"0 0 30 2 * * *", "7 fields; minute, hour, day of month, month, weekday are 5"},
        {"0 2 ? * mon", "\"?\" in day of month; write *"},
        {"0 2 * * ?", "\"?\" in weekday; write *"},
        {"0 2 15W * *", "\"W\" is not supported; name the days"},
        {"0 2 LW * *", "\"W\" is not supported; name the days"},
        {"H 2 * * *", "\"H\" in minute is not supported; write one time, and splay = \"30m\" or the like"},
        {"0~59 2 * * *",
         "\"~\" in minute is not supported; write one time, and splay = \"30m\" or the like"},
        {"0 22-2 * * *", "hour 22-2 runs backwards; write 22-23,0-2"},
        {"0 23-0 * * *", "hour 23-0 runs backwards; write 23,0"},
        {"0 22-5/3 * * *", "hour 22-5/3 runs backwards; write 22-23/3,1-5/3"},
        {"0 2 * * fri-mon", "weekday fri-mon runs backwards; write fri-sat,sun-mon"},
        {"0 2 25-5 * *", "day of month 25-5 runs backwards; write 25-31,1-5"},
        {"5/15 * * * *", "minute 5/15; write 5-59/15"},
        {"0 2 * mar/2 *", "month mar/2; write mar-dec/2"},
        {"*/61 * * * *", "step 61 is longer than the hour has minutes (60)"},
        {"0 */25 * * *", "step 25 is longer than the day has hours (24)"},
        {"0 2 */32 * *", "step 32 is longer than the month has days (31)"},
        {"0 2 * */13 *", "step 13 is longer than the year has months (12)"},
        {"0 2 * * */8", "step 8 is longer than the week has days (7)"},
        {"*/0 * * * *", "step 0; steps are 1 to 60"},
        {"*/x * * * *", "step \"x\"; write a number from 1 to 60"},
        {"0 0 */2 * sun",
         "crons differ in what \"*/2\" and a weekday mean together; write 1-31/2 for either of"
         " the two, or +sun for both"},
        {"0 0 1 * */2",
         "crons differ in what a day of month and \"*/2\" mean together; write 0-6/2 for either"
         " of the two, or +*/2 for both"},
        {"0 0 *,10 * *", "\"*\" beside other values; write * alone"},
        {"0 0 10,* * *", "\"*\" beside other values; write * alone"},
        {"0 0 30 2 *", "never comes: February has no 30th"},
        {"0 0 31 4 +mon", "never comes: April has no 31st"},
        {"0 0 30,31 2 *", "never comes: February has no 30th"},
        {"0 0 L-30 2 *", "never comes: no such day in 400 years"},
        {"0 0 31 2,4,6 *", "never comes: no such day in 400 years"},
        {"0 0 1-7 * +fri#2", "never comes: no such day in 400 years"},
        {"0 2 * * mom", "weekday \"mom\"; did you mean \"mon\"?"},
        {"0 2 * * L", "\"L\" in weekday; write the weekday before it: friL"},
        {"0 2 * * fri#6", "weekday fri#6; \"#\" takes one number from 1 to 5"},
        {"0 2 L-31 * *", "day of month L-31; L-1 to L-30 are days before the last"},
        {"0 2 L5 * *", "day of month \"L5\"; write L, or L-1 to L-30"},
        {"@reboot", "write at-start = true"},
        {"@every 5m", "write every = \"5m\""},
        {"@dayly", "there is no such word; did you mean \"@daily\"?"},
        {"@noon", "there is no such word; there are @hourly, @daily, @weekly, @monthly and @yearly"},
        {"@daily TABLE=users", "job \"j\" has no parameter \"TABLE\""},
        {"@daily TABLE=users x", "\"x\" is not NAME=VALUE, NAME of A-Z 0-9 _, not beginning with a digit"},
        {"@daily A=1 A=2", "A is given twice; keep one"},
    };

    for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
        char text[256], expected[512];

        snprintf(text, sizeof(text), JOB("schedule = {\"%s\"}"), rows[i].entry);
        snprintf(expected, sizeof(expected), "c:1: job \"j\": schedule \"%s\": %s", rows[i].entry,
                 rows[i].error);
        config_refuse(text, expected);
    }
}

static void test_excepts(void) {
    static const struct {
        const char *entry, *error;
    } rows[] = {
        {"2026-02-30", "February 2026 has no 30th"},
        {"2027-02-29", "February 2027 has no 29th"},
        {"2026-04-31", "April 2026 has no 31st"},
        {"2026-13-01", "month 13; months are 01 to 12"},
        {"2026-12-00", "day 00; days are 01 to 31"},
        {"2027-01-02/2026-12-24", "it ends before it begins; write the earlier date first"},
        {"2026-12-24/2027", "write five fields of schedule, \"2026-12-24\" or \"2026-12-24/2027-01-02\""},
        {"24.12.2026", "write five fields of schedule, \"2026-12-24\" or \"2026-12-24/2027-01-02\""},
        {"* * 24 * * *", "6 fields; berth has no seconds: for less than a minute use every = \"10s\""},
    };

    for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
        char text[256], expected[512];

        snprintf(text, sizeof(text), JOB("schedule = {\"@daily\"} except = {\"%s\"}"), rows[i].entry);
        snprintf(expected, sizeof(expected), "c:1: job \"j\": except \"%s\": %s", rows[i].entry,
                 rows[i].error);
        config_refuse(text, expected);
    }
}

static void test_together(void) {
    static const char *const rows[][2] = {
        {JOB("schedule = {\"@daily\"}\nevery = 1d"),
         "c:2: job \"j\": schedule and every exclude each other; remove one"},
        {JOB("schedule = {\"@daily\"}\nsplay = 1d"), "c:2: job \"j\": splay must be shorter than 1d"},
        {JOB("except = {\"2026-12-24\"}"),
         "c:1: job \"j\": except without schedule; write a schedule, from whose times except takes some away"},
        {JOB("schedule = {\"@daily\"} overlap = replace backlog = 2"),
         "c:1: job \"j\": overlap = \"replace\" and backlog above 1 exclude each other; keep one"},
        {JOB("backlog = 1001"),
         "c:1: job \"j\": backlog \"1001\" must be a decimal number from 1 to 1000, without leading zeros"},
        {JOB("schedule = {\"@daily\"} restart = always"),
         "c:1: job \"j\": restart excludes schedule, every, at-start and retry: the job starts with the "
         "service, and again after each end; remove them, or restart"},
        {"zone = \"../etc/passwd\"",
         "c:1: zone \"../etc/passwd\" is not the name of a zone; write \"local\","
         " \"UTC\" or a name like \"Europe/Berlin\""},
        {"zone = \"\"", "c:1: zone \"\" is not the name of a zone; write \"local\", \"UTC\" or a name like"
                        " \"Europe/Berlin\""},
        {JOB("zone = \"/etc/localtime\""),
         "c:1: job \"j\": zone \"/etc/localtime\" is not the name of a zone;"
         " write \"local\", \"UTC\" or a name like \"Europe/Berlin\""},
        {"state-directory = \"/x/\"", "c:1: state-directory \"/x/\" must not end in '/'"},
        {"state-directory = x", "c:1: state-directory \"x\" must be an absolute path"},
        {"runtime-directory = \"/x\"\nstate-directory = \"/x\"",
         "c:2: state-directory \"/x\" is the runtime directory, too; name another one, or leave it out"},
        {"job j {\n command = {\"/j\"}\n schedule = {\"0 2 * * *\",\n \"0 25 * * *\"}\n except = "
         "{\"2026-02-30\"} }",
         "c:4: job \"j\": schedule \"0 25 * * *\": hour 25; hours are 0 to 23\n"
         "c:5: job \"j\": except \"2026-02-30\": February 2026 has no 30th"},
    };

    for (size_t i = 0; i < ELEMENTSOF(rows); i++)
        config_refuse(rows[i][0], rows[i][1]);
}

/* ---- zones of this machine ---- */

static void check(const char *text, const char *expected) {
    _cleanup_(settings_freep) struct settings *s = config_parse(text);
    struct settings_errors errors = {};

    TEST_INT(settings_check_zones(s, ZONE_DIRECTORY, NOW, &errors), *expected ? SETTINGS_E_INVALID : 0);
    config_expect_errors(&errors, expected);
    settings_errors_done(&errors);
}

static void test_zones(void) {
    check("zone = \"Europe/Berlin\" " JOB("zone = UTC"), "");
    check("zone = UTC " JOB("zone = local schedule = {\"@daily\"}"), "");
    check("zone = \"Europe/Berln\"\n" JOB("schedule = {\"@daily\"}"),
          "c:1: zone \"Europe/Berln\" is not in /usr/share/zoneinfo; did you mean \"Europe/Berlin\"?");
    check("\n" JOB("\nzone = \"Amerika/New_York\""),
          "c:3: job \"j\": zone \"Amerika/New_York\" is not in /usr/share/zoneinfo; did you mean"
          " \"America/New_York\"?");
    check(JOB("zone = \"Qqqqqqqqqqqqqqqq/Zzzzzzzzzzzzzz\""),
          "c:1: job \"j\": zone \"Qqqqqqqqqqqqqqqq/Zzzzzzzzzzzzzz\" is not in /usr/share/zoneinfo; install"
          " tzdata, or correct the name");
    if (access(ZONE_DIRECTORY "/right/UTC", F_OK) == 0)
        check(JOB("zone = \"right/UTC\""),
              "c:1: job \"j\": zone \"right/UTC\" counts leap seconds, which the"
              " clock of this machine does not; write \"UTC\"");
}

/* A check of a config looks for its zones; loading it does not. */
static void test_load(void) {
    static const char text[] = "host = ant\nzone = Nowhere\n";
    char folder[] = "/tmp/berth-when-XXXXXX", path[64], expected[192];
    struct settings_errors errors = {};
    struct settings *s = NULL;

    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/c", folder);
    snprintf(expected, sizeof(expected),
             "%s:2: zone \"Nowhere\" is not in /usr/share/zoneinfo; install tzdata, or correct the name", path);
    TEST_INT(file_write_atomic(path, text, strlen(text), 0600), 0);
    TEST_INT(settings_load(path, &s, &errors), 0);
    TEST_INT(settings_check_machine(s, &errors), SETTINGS_E_INVALID);
    settings_free(s);
    config_expect_errors(&errors, expected);
    settings_errors_done(&errors);
    unlink(path);
    rmdir(folder);
}

static void test_nothing_left(void) {
    check(JOB("schedule = {\"0 2 * * *\"} except = {\"* 2 * * *\"}"),
          "c:1: job \"j\": except leaves none of the next 10000 times of schedule");
    check(JOB("schedule = {\"0 2 * * *\"} except = {\"* * * * 1-6\"}"), "");
    /* 89280 minutes of two months, a day at once */
    check(JOB("schedule = {\"* * * * *\"} except = {\"* * * 1-3 *\"}"), "");
    check(JOB("schedule = {\"* * * * *\"} except = {\"2027-01-01/2027-12-31\"}"), "");
}

/* ---- values ---- */

static void test_defaults(void) {
    _cleanup_(settings_freep) struct settings *s = config_parse(JOB(""));
    const struct job_triggers *triggers = &s->jobs[0].triggers;

    TEST_STRING(s->state_directory, "/var/lib/berth");
    TEST_STRING(s->zone.name, "local");
    CU_ASSERT_PTR_NULL(s->zone.place.file);
    TEST_STRING(triggers->zone.name, "local");
    TEST_INT(triggers->schedule.n_entries, 0);
    TEST_INT(triggers->schedule.n_excepts, 0);
    TEST_INT(triggers->splay_usec, 0);
    TEST_INT(triggers->catch_up_usec, 600 * USEC_PER_SEC);
    TEST_INT(triggers->backlog, 1);
}

static void test_values(void) {
    _cleanup_(settings_freep) struct settings *s =
        config_parse("runtime-directory = \"/x\"\nzone = \"Europe/Berlin\"\n" JOB(
            "schedule = {\"30 2 * * *\", \" 0  12 * * SAT \", \"@Hourly\"} except = {\"2026-12-24\", \"* * "
            "* * 0\"}"
            " splay = 10m catch-up = 0s backlog = 1000 overlap = queue") " job k { command = {\"/k\"} zone "
                                                                         "= UTC overlap = replace }");
    const struct job_triggers *j = &s->jobs[0].triggers, *k = &s->jobs[1].triggers;

    TEST_STRING(s->state_directory, "/x/lasting");
    TEST_INT(s->zone.place.line, 2);
    TEST_STRING(j->zone.name, "Europe/Berlin");
    TEST_INT(j->zone.place.line, 2);
    TEST_INT(j->schedule.n_entries, 3);
    TEST_INT(j->schedule.entries[1].cron.weekdays, 1 << 6);
    TEST_INT(j->schedule.n_excepts, 2);
    CU_ASSERT(j->schedule.excepts[0].is_date && !j->schedule.excepts[1].is_date);
    TEST_INT(j->splay_usec, 600 * USEC_PER_SEC);
    TEST_INT(j->catch_up_usec, 0);
    TEST_INT(j->backlog, 1000);
    TEST_STRING(k->zone.name, "UTC");
    TEST_INT(k->overlap, JOB_OVERLAP_REPLACE);
}

static uint64_t hash_of(const char *text) {
    _cleanup_(settings_freep) struct settings *s = config_parse(text);

    return s->jobs[0].triggers.schedule_hash;
}

static void test_hash(void) {
    static const char *const same[] = {
        JOB("schedule = {\"0 0 * * *\"}"),
        JOB("schedule = {\"@daily\"} catch-up = 1h overlap = queue backlog = 5 description = x"),
        "zone = local " JOB("schedule = {\"00 0  * 1-12 *\"} zone = local"),
    };
    static const char *const other[] = {
        JOB("schedule = {\"1 0 * * *\"}"),
        JOB("schedule = {\"0 0 * * *\", \"0 1 * * *\"}"),
        JOB("schedule = {\"0 0 * * *\"} except = {\"2026-12-24\"}"),
        JOB("schedule = {\"0 0 * * *\"} except = {\"* * * * sun\"}"),
        JOB("schedule = {\"0 0 * * *\"} splay = 1s"),
        JOB("schedule = {\"0 0 * * *\"} zone = UTC"),
        "zone = UTC " JOB("schedule = {\"0 0 * * *\"}") " ",
        JOB("schedule = {\"0 0 * * friL\"}"),
        JOB("schedule = {\"0 0 * * fri#1\"}"),
        JOB("schedule = {\"0 0 1 * fri\"}"),
        JOB("schedule = {\"0 0 1 * +fri\"}"),
        JOB("schedule = {\"0 0 L * *\"}"),
    };
    uint64_t hash = hash_of(same[0]);

    for (size_t i = 1; i < ELEMENTSOF(same); i++)
        TEST_INT(hash_of(same[i]), hash);
    for (size_t i = 0; i < ELEMENTSOF(other); i++)
        for (size_t k = 0; k <= i; k++)
            CU_ASSERT(hash_of(other[i]) != (k == i ? hash : hash_of(other[k])) || (i == 6 && k == 5));
}

/* Due times do not change the hash of a job: the runner need not know them. */
static void test_hash_of_job(void) {
    _cleanup_(settings_freep) struct settings *a = config_parse(JOB("")),
                                              *b = config_parse("zone = UTC " JOB(
                                                  "schedule = {\"@daily\"} except = {\"2026-12-24\"} zone = "
                                                  "UTC splay = 1m catch-up = 1h backlog = 3"));

    TEST_STRING(a->jobs[0].hash, b->jobs[0].hash);
}

static CU_TestInfo tests[] = {
    {"schedules", test_schedules},
    {"excepts", test_excepts},
    {"together", test_together},
    {"zones", test_zones},
    {"load", test_load},
    {"nothing-left", test_nothing_left},
    {"defaults", test_defaults},
    {"values", test_values},
    {"hash", test_hash},
    {"hash-of-job", test_hash_of_job},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "settings-when", .pTests = tests});
