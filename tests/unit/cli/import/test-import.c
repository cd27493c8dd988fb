/* SPDX-License-Identifier: MIT */
/* Lines of crontabs, and the jobs that they become. tests/oracle/crontabs.py compares their due times
 * with cron's. */
#include "cli/import/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/import/fields.h"
#include "conf/settings.h"
#include "tests/harness/test.h"

static char config[65536];
static struct settings *settings;
static unsigned n_left_out;

static bool is_stranger(const char *user, _unused_ void *userdata) {
    return strcmp(user, "stranger") != 0;
}
static bool is_berlin(const char *name, _unused_ void *userdata) {
    return strcmp(name, "Europe/Berlin") == 0;
}

/* Imports a crontab and parses the resulting config, which must have no errors. */
static void import(enum crontab_kind kind, const char *text) {
    const struct import_source source = {.text = text,
                                         .file = "f",
                                         .kind = kind,
                                         .user = "ann",
                                         .prefix = "p",
                                         .has_home = is_stranger,
                                         .is_zone = is_berlin};
    struct settings_errors errors = {};
    struct import all = {.out = fmemopen(config, sizeof(config), "w")};

    settings = settings_free(settings);
    import_begin(&all);
    TEST_INT(import_crontab(&all, &source), 0);
    n_left_out = all.n_left_out;
    fclose(all.out);
    TEST_INT(
        settings_parse(&(struct settings_source){"f", config, strlen(config)}, 1, "h", &settings, &errors),
        0);
    for (size_t i = 0; i < errors.n; i++)
        CU_FAIL(printf("%s\n", errors.lines[i]));
    if (settings)
        TEST_INT(settings->n_jobs, all.n_jobs);
    settings_errors_done(&errors);
    import_done(&all);
}

static void has(const char *text) {
    if (strstr(config, text))
        return;
    printf("no \"%s\" in:\n%s", text, config);
    CU_FAIL("the config lacks a text");
}

static const struct job_settings *job(const char *name) {
    const struct job_settings *found = settings ? settings_find_job(settings, name) : NULL;

    if (!found) {
        printf("no job %s in:\n%s", name, config);
        CU_FAIL_FATAL("a job is missing");
    }
    return found;
}

/* --- when --- */

static void test_schedules(void) {
    static const struct {
        const char *crontab, *schedule;
    } rows[] = {
        {"*/15 0-6 1,15 jan-MAR mon-fri", "*/15 0-6 1,15 jan-MAR mon-fri"},
        {"0 0 */2 * sun", "0 0 */2 * +sun"}, /* the star test of cronie */
        {"0 0 1-15 * */2", "0 0 1-15 * +*/2"},
        {"0 0 1-31 * mon", "0 0 * * *"},
        {"0 0 1 * 0-7", "0 0 * * *"},
        {"0 0 1 * 0-7/1", "0 0 * * *"},
        {"0 0 3,* * mon", "0 0 * * *"},
        {"0 0 *,3 * mon", "0 0 * * mon"},
        {"0 0 * * fri-sun", "0 0 * * fri-sun"},
        {"0 22-2 * * *", "0 0-2,22,23 * * *"},
        {"0 22-3/2 * * *", "0 0,2,22 * * *"},
        {"0 0 * * fri-mon", "0 0 * * 0,1,5,6"},
        {"5/15 * * * *", "5,20,35,50 * * * *"},
        {"*/90 * * * *", "0 * * * *"},
        {"0~59 3 * * *", "0 3 * * *"},
        {"~ 1~5 * * *", "0 1 * * *"},
    };

    for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
        char text[64], *fields[5], *rest = text;
        struct import_schedule schedule;

        snprintf(text, sizeof(text), "%s", rows[i].crontab);
        for (int k = 0; k < 5; k++)
            fields[k] = strsep(&rest, " ");
        TEST_INT(import_schedule(fields, &schedule), 0);
        TEST_STRING(schedule.text, rows[i].schedule);
        CU_ASSERT_EQUAL(schedule.note[0] != '\0', strcmp(rows[i].crontab, rows[i].schedule) != 0);
    }
    import(CRONTAB_OF_USER,
           "~ 1~5 * * * a\nRANDOM_DELAY=10\n0~29 3 * * * b\n@reboot c\n@Daily d\n@every_minute e\n");
    TEST_INT(job("p-a")->triggers.splay_usec, 299 * 60 * USEC_PER_SEC);
    TEST_INT(job("p-b")->triggers.splay_usec, 39 * 60 * USEC_PER_SEC);
    CU_ASSERT(job("p-c")->triggers.at_start);
    TEST_INT(job("p-d")->triggers.catch_up_usec, 0);
    TEST_INT(job("p-e")->triggers.overlap, JOB_OVERLAP_ALLOW);
    TEST_INT(n_left_out, 0);
}

static void test_left_out(void) {
    char line[4096];
    static const char *const lines[] = {
        "* * * *",        "* * * * *",        "60 * * * * a",    "* 24 * * * a",   "* * 0 * * a",
        "* * * 13 * a",   "* * * * 8 a",      "*/0 * * * * a",   "a * * * * b",    "1- * * * * a",
        "1,,2 * * * * a", "* * 1~9 * * a",    "9~1 * * * * a",   "0 0 30 2 * a",   "@every 5m",
        "@fortnightly a", "* * * * monday a", "1-2-3 * * * * a", "* * * * * \001", "* * * * * \377",
        "1.5 * * * * a",  "0 0 ? * * a",
    };

    for (size_t i = 0; i < ELEMENTSOF(lines); i++) {
        import(CRONTAB_OF_USER, lines[i]);
        if (n_left_out != 1)
            printf("%s\n", lines[i]);
        TEST_INT(n_left_out, 1);
        has("# f:1: not converted: ");
    }
    import(CRONTAB_OF_USER, "0 0 * * * a\n0 0 30 2 * /b --c\n@daily d\n"); /* whoever deletes the crontab still has the line */
    has("\n# f:2: 0 0 30 2 * /b --c\n");
    snprintf(line, sizeof(line), "0 0 30 2 * /b %0*d --end\n", 3000, 0);
    import(CRONTAB_OF_USER, line);
    has("0 --end\n");
    import(CRONTAB_SYSTEM,
           "* * * * * 0day a\n* * * * * berth a\n* * * * * root:berth-admin a\n* * * * * root\n");
    TEST_INT(n_left_out, 4);
}

/* --- what --- */

static void test_percent(void) {
    import(CRONTAB_OF_USER, "* * * * * a \\% b\n* * * * * c%one%two\\%\n* * * * * d%\n* * * * * e & # "
                            "it's%BERTH-STDIN%\\x%\n* * * * * f \\\\%in");
    TEST_STRING(job("p-a")->command.script, "a % b");
    TEST_STRING(job("p-c")->command.script, "{ c\n} <<'BERTH-STDIN'\none\ntwo%\nBERTH-STDIN");
    TEST_STRING(job("p-d")->command.script, "d");
    TEST_STRING(job("p-e")->command.script,
                "{ e & # it's\n} <<'BERTH-STDIN-2'\nBERTH-STDIN\n\\x\nBERTH-STDIN-2");
    TEST_STRING(job("p-f")->command.script, "{ f \\\\\n} <<'BERTH-STDIN'\nin\nBERTH-STDIN");
}

static void test_quotes(void) {
    import(CRONTAB_OF_USER, "* * * * * a 'b' \"c\" ${d} \\e $(f) '\\'' \\\\\n");
    TEST_STRING(job("p-a")->command.script, "a 'b' \"c\" ${d} \\e $(f) '\\'' \\\\");
}

static void test_names(void) {
    static const struct {
        const char *command, *name;
    } rows[] = {
        {"/usr/bin/backup.sh --all", "p-backup.sh"},
        {"[ -x /usr/bin/a ] && /usr/bin/a", "p-a"},
        {"test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )", "p-run-parts"},
        {"if [ -x /u/l ]; then nice -n10 /u/logcheck -R; fi", "p-logcheck"},
        {"A=1 B=\"2\" /x/run", "p-run"},
        {"flock -n /tmp/sync.lock /usr/local/bin/sync-users >/dev/null", "p-sync-users"},
        {"/usr/bin/flock -w 30 /var/lock/x -c \"/usr/local/bin/report --all | mail ops\"", "p-report"},
        {"flock -xn -E 1 /var/lock/a nice -n 5 pg_dump app", "p-pg_dump"},
        {"(flock -n 9 || exit 1; /usr/bin/nightly) 9>/run/lock/n", "p-nightly"},
        {"flock /x", "p-flock"},
        {"command -v sa1 > /dev/null && sa1 1 1", "p-sa1"},
        {"[ -x /a ]", "p-job"},
        {"$(x)", "p-x"},
        {"/a/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "p-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
    };

    for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
        char line[256];

        snprintf(line, sizeof(line), "* * * * * %s\n", rows[i].command);
        import(CRONTAB_OF_USER, line);
        TEST_STRING(settings && settings->n_jobs ? settings->jobs[0].name : "", rows[i].name);
    }
    import(CRONTAB_OF_USER, "* * * * * flock -n /x a\n");
    has("# f:1: instead of flock: overlap = \"skip\"");
    import(CRONTAB_OF_USER, "* * * * * a\n* * * * * /b/a\n* * * * * a-2\n* * * * * a\n");
    (void) job("p-a"), (void) job("p-a-2"), (void) job("p-a-2-2"), (void) job("p-a-3");
}

#define LINES 12000 /* with n² searches they take many seconds of a processor, with n searches 20 ms */

/* A user may have many lines of one command. */
static void test_same_names(void) {
    static char text[20 * LINES];
    const struct import_source source = {.text = text, .file = "f", .user = "ann", .prefix = "p"};
    struct import all = {.out = fopen("/dev/null", "w")};
    clock_t begun = clock();

    for (size_t i = 0, n = 0; i < LINES; i++)
        n += (size_t) snprintf(text + n, sizeof(text) - n, "0 0 * * * abcdef\n");
    TEST_INT(import_crontab(&all, &source), 0);
    TEST_INT(all.n_jobs, LINES);
    CU_ASSERT(clock() - begun < 2 * CLOCKS_PER_SEC);
    fclose(all.out);
    import_done(&all);
}

/* --- settings, users --- */

static void test_settings(void) {
    import(CRONTAB_OF_USER,
           "MAILTO=x@y\nMAILTO=\nA = ' 1 '\n\"B\"=2 3  "
           "\nHOME=/h\nSHELL=/bin/bash\nLOGNAME=z\nBERTH_RUN=1\nCRON_TZ=Europe/Berlin\n"
           "0 1 * * * a\nCRON_TZ=Mars/Base\nA=4\nSHELL=sh\nRANDOM_DELAY=x\n1A=\n0 1 * * * b\n");
    has("# f:1: MAILTO=x@y: cron mails");
    CU_ASSERT_PTR_NULL(strstr(config, "# f:2:"));
    has("# f:7: not converted: LOGNAME=z: ");
    has("# f:8: not converted: BERTH_RUN=");
    has("# f:11: not converted: CRON_TZ=");
    has("# f:13: not converted: SHELL=");
    has("# f:14: not converted: RANDOM_DELAY=");
    has("# f:15: not converted: 1A=");
    TEST_STRING(job("p-a")->input.environment[0], "A= 1 ");
    TEST_STRING(job("p-a")->input.environment[1], "B=2 3");
    TEST_STRING(job("p-b")->input.environment[0], "A=4");
    TEST_STRING(job("p-a")->directory, "/h");
    TEST_STRING(job("p-a")->command.shell, "/bin/bash");
    TEST_STRING(job("p-a")->triggers.zone.name, "Europe/Berlin");
    TEST_INT(n_left_out, 0);
}

static void test_users(void) {
    import(CRONTAB_SYSTEM, "* * * * * www-data a\n* * * * *\troot:wheel/class\t b \n* * * * * stranger "
                           "c\n-* * * * * root -n -q d\n");
    TEST_STRING(job("p-a")->user, "www-data");
    TEST_STRING(job("p-a")->directory, "~");
    TEST_STRING(job("p-b")->group, "wheel");
    TEST_STRING(job("p-b")->command.script, "b");
    TEST_STRING(job("p-c")->directory, "/");
    TEST_STRING(job("p-d")->command.script, "d");
    has("# f:4: flag -n -q is not converted");
    import(CRONTAB_OF_USER, "-5 * * * * a\n");
    TEST_STRING(job("p-a")->user, "ann");
    has("# f:1: flag - is not converted");
}

static void test_anacron(void) {
    import(CRONTAB_ANACRON, "START_HOURS_RANGE=3-22\nRANDOM_DELAY=45\n1\t5\tcron.daily\tnice run-parts "
                            "/etc/cron.daily\n7 70 week a\n"
                            "@monthly 45 month b\n3 0 three c\n0 1 x d\n1 -1 y e\n@hourly 1 z f\n");
    has("schedule = {\"5 3 * * *\"}");
    has("schedule = {\"10 4 * * 0\"}");
    has("schedule = {\"45 3 1 * *\"}");
    TEST_STRING(job("p-cron.daily")->user, "root");
    TEST_INT(job("p-cron.daily")->triggers.splay_usec, 45 * 60 * USEC_PER_SEC);
    TEST_INT(job("p-cron.daily")->triggers.catch_up_usec, 86400 * USEC_PER_SEC);
    TEST_INT(job("p-three")->triggers.every_usec, 3 * 86400 * USEC_PER_SEC);
    TEST_INT(n_left_out, 3);
}

int main(int argc, char **argv) {
    CU_TestInfo when[] = {{"schedules", test_schedules},
                          {"left-out", test_left_out},
                          {"anacron", test_anacron},
                          CU_TEST_INFO_NULL};
    CU_TestInfo what[] = {{"percent", test_percent},   {"quotes", test_quotes}, {"names", test_names},
                          {"same-names", test_same_names},
                          {"settings", test_settings}, {"users", test_users},   CU_TEST_INFO_NULL};
    CU_SuiteInfo suites[] = {
        {.pName = "when", .pTests = when}, {.pName = "what", .pTests = what}, CU_SUITE_INFO_NULL};
    int status = test_main(argc, argv, suites);

    settings_free(settings);
    return status;
}
