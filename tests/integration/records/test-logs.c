/* SPDX-License-Identifier: MIT */
/* `berth logs` on real journal files. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/harness/host/host.h"
#include "tests/harness/judge/journal-file.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

#define RUN_A "0000000000000000000000000000000a"
#define RUN_B "1000000000000000000000000000000b"
#define RUN_C "2000000000000000000000000000000c"
#define CGROUP(run) "_TRANSPORT=stdout _SYSTEMD_UNIT=berth-runner.service _SYSTEMD_CGROUP=/berth.slice/berth-runner.service/" run
#define ENDED(run) "_TRANSPORT=stdout _SYSTEMD_UNIT=berth-runner@" run ".service" /* the process had ended */

static bool make_journals(void) {
    struct journal_file f;

    journal_file_begin(&f, "ant", 1);
    journal_file_event(&f, 0, "granted", "BERTH_RUN=" RUN_A " BERTH_JOB=dump");
    journal_file_entry(&f, 10, "SYSLOG_IDENTIFIER=dump " CGROUP(RUN_A), "a1");
    journal_file_entry(&f, 11, "SYSLOG_IDENTIFIER=other " CGROUP(RUN_A) "/below", "a2 \033[31m \xc2\x9b \xc3\xa4"); /* it may call itself so */
    journal_file_entry(&f, 12, "SYSLOG_IDENTIFIER=dump _TRANSPORT=stdout _SYSTEMD_UNIT=evil.service", "forged");
    journal_file_event(&f, 20, "granted", "BERTH_RUN=" RUN_B " BERTH_JOB=copy");
    journal_file_entry(&f, 21, "SYSLOG_IDENTIFIER=dump " CGROUP(RUN_B), "b1 of copy");
    journal_file_entry(&f, 22, "SYSLOG_IDENTIFIER=berth-runner _TRANSPORT=journal _SYSTEMD_UNIT=berth-runner.service", "runner");
    journal_file_event(&f, 30, "released", "BERTH_RUN=" RUN_A " BERTH_JOB=dump");
    journal_file_event(&f, 40, "granted", "BERTH_RUN=" RUN_C " BERTH_JOB=dump");
    journal_file_entry(&f, 41, "SYSLOG_IDENTIFIER=dump " ENDED(RUN_C), "c1 without a cgroup");
    journal_file_entry(&f, 42, "SYSLOG_IDENTIFIER=dump _TRANSPORT=stdout _SYSTEMD_UNIT=berth-runner@" RUN_C "0.service", "no id");
    journal_file_entry(&f, 43, "SYSLOG_IDENTIFIER=dump _TRANSPORT=stdout _SYSTEMD_UNIT=berth-runner@2.service", "no id");
    journal_file_entry(&f, 44, "SYSLOG_IDENTIFIER=dump _TRANSPORT=stdout _SYSTEMD_UNIT=berth-runner.service", "no run");
    journal_file_event(&f, 50, "released", "BERTH_RUN=" RUN_C " BERTH_JOB=dump");
    return journal_file_write(&f, journal_folder);
}

/* Checks the lines without time and host. */
static void shows(const char *words, const char *expected) {
    char found[1024] = "";

    TEST_INT(berth(NULL, "logs --utc --directory=%s %s", journal_folder, words), 0);
    for (char *line = strtok(berth_out, "\n"); line; line = strtok(NULL, "\n")) {
        CU_ASSERT(strncmp(line, "2025-11-20T12:00:00.", 20) == 0 && strncmp(line + 27, " ant ", 5) == 0);
        snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s\n", strlen(line) > 32 ? line + 32 : "");
    }
    TEST_STRING(found, expected);
}

static void test_lines(void) {
    if (!journal_files_once(make_journals))
        return;
    shows("dump", "dump[00000000]: a1\ndump[00000000]: a2 \\x1b[31m \\xc2\\x9b \xc3\xa4\n"
                  "dump[20000000]: c1 without a cgroup\n"); /* a line of copy with dump's identifier does not count */
    shows(RUN_A, "dump[00000000]: a1\ndump[00000000]: a2 \\x1b[31m \\xc2\\x9b \xc3\xa4\n");
    shows(RUN_C, "dump[20000000]: c1 without a cgroup\n");
    shows("copy", "copy[10000000]: b1 of copy\n");
    shows("2000", "dump[20000000]: c1 without a cgroup\n"); /* as the lines show it, or less of it */
    shows("20000000", "dump[20000000]: c1 without a cgroup\n");
    shows("-n 1 " RUN_A, "dump[00000000]: a2 \\x1b[31m \\xc2\\x9b \xc3\xa4\n");
    shows("copy --since -1h", "");
}

/* Two runs of a job at once: each has the lines of its processes, also of those that had ended. */
static void test_parallel(void) {
    struct journal_file f;
    char folder[64];

    if (!journal_file_possible())
        return;
    snprintf(folder, sizeof(folder), "%s-parallel", journal_folder);
    journal_file_begin(&f, "ant", 1);
    journal_file_event(&f, 0, "granted", "BERTH_RUN=" RUN_A " BERTH_JOB=dump");
    journal_file_entry(&f, 1, "SYSLOG_IDENTIFIER=dump " ENDED(RUN_A), "a");
    journal_file_entry(&f, 2, "SYSLOG_IDENTIFIER=dump " ENDED(RUN_C), "before its event");
    journal_file_event(&f, 3, "granted", "BERTH_RUN=" RUN_C " BERTH_JOB=dump");
    journal_file_event(&f, 4, "released", "BERTH_RUN=" RUN_C " BERTH_JOB=dump");
    journal_file_entry(&f, 5, "SYSLOG_IDENTIFIER=dump " ENDED(RUN_C), "after its end");
    journal_file_entry(&f, 6, "SYSLOG_IDENTIFIER=dump " ENDED(RUN_B), "its events are gone");
    CU_ASSERT(journal_file_write(&f, folder));
    TEST_INT(berth(NULL, "logs --utc --directory=%s " RUN_A, folder), 0);
    CU_ASSERT(strstr(berth_out, "dump[00000000]: a\n") != NULL);
    CU_ASSERT(strstr(berth_out, "before") == NULL && strstr(berth_out, "after") == NULL);
    TEST_INT(berth(NULL, "logs --utc --directory=%s " RUN_C, folder), 0);
    CU_ASSERT(strstr(berth_out, "[20000000]: before its event\n") != NULL);
    CU_ASSERT(strstr(berth_out, "dump[20000000]: after its end\n") != NULL);
    TEST_INT(berth(NULL, "logs --utc --directory=%s dump", folder), 0);
    CU_ASSERT(strstr(berth_out, "dump[10000000]: its events are gone\n") != NULL);
}

/* The id that a line shows names the run; a job's name wins; what may be several runs is refused. */
static void test_ids(void) {
    struct journal_file f;
    char folder[64];

    if (!journal_file_possible())
        return;
    snprintf(folder, sizeof(folder), "%s-ids", journal_folder);
    journal_file_begin(&f, "ant", 1);
    journal_file_event(&f, 0, "granted", "BERTH_RUN=cafe0000000000000000000000000001 BERTH_JOB=dump");
    journal_file_entry(&f, 1, "SYSLOG_IDENTIFIER=dump " CGROUP("cafe0000000000000000000000000001"), "one");
    journal_file_entry(&f, 2, "SYSLOG_IDENTIFIER=load " CGROUP("cafe1000000000000000000000000002"), "two"); /* its events are gone */
    journal_file_event(&f, 3, "granted", "BERTH_RUN=feed0000000000000000000000000003 BERTH_JOB=dump");
    journal_file_entry(&f, 4, "SYSLOG_IDENTIFIER=dump " CGROUP("feed0000000000000000000000000003"), "three");
    journal_file_event(&f, 5, "granted", "BERTH_RUN=00000000000000000000000000000004 BERTH_JOB=feed");
    journal_file_entry(&f, 6, "SYSLOG_IDENTIFIER=feed " CGROUP("00000000000000000000000000000004"), "four");
    if (!journal_file_write(&f, folder))
        return;
    TEST_INT(setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1), 0);
    TEST_INT(berth(NULL, "logs --directory=%s cafe0", folder), 0);
    CU_ASSERT(strncmp(berth_out, "2025-11-20T13:00:00.", 20) == 0);
    TEST_STRING(berth_out + 26, "+01:00 ant dump[cafe0000]: one\n");
    TEST_INT(berth(NULL, "logs --directory=%s cafe1 --utc", folder), 0);
    CU_ASSERT(strncmp(berth_out, "2025-11-20T12:00:00.", 20) == 0);
    TEST_STRING(berth_out + 26, "Z ant ?[cafe1000]: two\n");
    TEST_INT(unsetenv("TZ"), 0);
    TEST_INT(berth(NULL, "logs --directory=%s feed0", folder), 0);
    CU_ASSERT(strstr(berth_out, "dump[feed0000]: three\n") != NULL);
    TEST_INT(berth(NULL, "logs --directory=%s feed", folder), 0);
    CU_ASSERT(strstr(berth_out, "feed[00000000]: four\n") != NULL && !strstr(berth_out, "three"));
    TEST_INT(berth(NULL, "logs --directory=%s cafe", folder), 65);
    TEST_STRING(berth_out, "");
    TEST_STRING(berth_err, "berth: cafe matches several runs, give more digits:\n"
                           "  cafe0000000000000000000000000001  dump\n  cafe1000000000000000000000000002  \n");
    TEST_INT(berth(NULL, "logs --directory=%s 0123", folder), 65);
    TEST_INT(berth(NULL, "logs --directory=%s caf", folder), 65); /* too short to be an id */
    place_remove(folder);
}

static bool await_text(struct child *c, const char *text) {
    usec_t until = clock_boottime() + 20 * USEC_PER_SEC;

    while (!strstr(child_text(c, 1), text) && !c->ended && clock_boottime() < until)
        child_turn(until);
    return strstr(child_text(c, 1), text) != NULL;
}

/* Awaits that what journal_file_flush() wrote can be read. */
static void await_readable(const char *folder, const char *words, const char *text) {
    for (usec_t until = clock_boottime() + 20 * USEC_PER_SEC; clock_boottime() < until;)
        if (berth(NULL, "logs %s --directory=%s", words, folder) == 0 && strstr(berth_out, text))
            return;
    CU_FAIL("the journal does not have it");
}

/* -f shows lines as they are written. For a run it ends with the run, for a job it goes on. */
static void test_follow(void) {
    struct child *run, *job;
    struct journal_file f;
    char folder[64];

    if (!journal_file_possible())
        return;
    snprintf(folder, sizeof(folder), "%s-live", journal_folder);
    if (!journal_file_open(&f, "bee", 2, folder))
        return;
    for (int i = 0; i < 30; i++)
        journal_file_entry(&f, i, "SYSLOG_IDENTIFIER=dump " CGROUP(RUN_A), i < 29 ? "earlier" : "the thirtieth");
    journal_file_event(&f, 40, "granted", "BERTH_RUN=" RUN_A " BERTH_JOB=dump");
    journal_file_flush(&f);
    await_readable(folder, RUN_A, "the thirtieth");
    run = berth_start(NULL, "logs -f --directory=%s " RUN_A, folder);
    job = berth_start(NULL, "logs -f -n 1 --directory=%s dump", folder);
    CU_ASSERT(await_text(run, ": the thirtieth\n") && await_text(job, ": the thirtieth\n"));
    journal_file_entry(&f, 50, "SYSLOG_IDENTIFIER=dump " CGROUP(RUN_A), "live");
    journal_file_flush(&f);
    CU_ASSERT(await_text(run, ": live\n") && await_text(job, ": live\n"));
    CU_ASSERT(!run->ended && !job->ended);
    TEST_STRING(strstr(child_text(job, 1), "earlier") ? "earlier" : "", ""); /* -n 1 */
    journal_file_event(&f, 60, "exited", "BERTH_RUN=" RUN_A " BERTH_JOB=dump BERTH_RESULT=success");
    journal_file_entry(&f, 61, "SYSLOG_IDENTIFIER=dump " CGROUP(RUN_A), "its last words");
    journal_file_flush(&f);
    CU_ASSERT(child_await(run, 20 * USEC_PER_SEC));
    CU_ASSERT(strstr(child_text(run, 1), ": its last words\n") != NULL);
    TEST_INT(berth_end(run), 0);
    CU_ASSERT(await_text(job, ": its last words\n"));
    CU_ASSERT(!job->ended);
    child_kill(job, SIGINT); /* a terminal's Ctrl-C */
    TEST_INT(berth_end(job), 130);
    TEST_INT(berth(NULL, "logs -f --directory=%s " RUN_A, folder), 0); /* of one that is over already */
    CU_ASSERT(strstr(berth_out, ": its last words\n") != NULL);
    journal_file_close(&f);
    place_remove(folder);
}

/* A template stands for its instances, also for one that first writes after -f has begun, and whose
 * processes had ended. Lines have the name of their job. */
static void test_template(void) {
    struct journal_file f;
    struct child *c;
    char folder[64];

    if (!journal_file_possible())
        return;
    snprintf(folder, sizeof(folder), "%s-template", journal_folder);
    if (!journal_file_open(&f, "bee", 2, folder))
        return;
    journal_file_event(&f, 0, "granted", "BERTH_RUN=" RUN_A " BERTH_JOB=copy@db1");
    journal_file_entry(&f, 1, "SYSLOG_IDENTIFIER=other " CGROUP(RUN_A), "a1");
    journal_file_entry(&f, 2, "SYSLOG_IDENTIFIER=copy@db2 " ENDED(RUN_B), "b1, its events are gone");
    journal_file_entry(&f, 3, "SYSLOG_IDENTIFIER=copy " ENDED("30000000000000000000000000000003"),
                       "no instance");
    journal_file_entry(&f, 4, "SYSLOG_IDENTIFIER=copy@db2 _TRANSPORT=stdout _SYSTEMD_UNIT=evil.service",
                       "forged");
    journal_file_entry(&f, 5, "SYSLOG_IDENTIFIER=copy@db1 " ENDED(RUN_A), "a2");
    journal_file_flush(&f);
    await_readable(folder, "copy@db1", "a2");
    c = berth_start(NULL, "logs -f --utc --directory=%s copy@", folder);
    CU_ASSERT(await_text(c, " copy@db1[00000000]: a2\n"));
    CU_ASSERT(strstr(child_text(c, 1), " copy@db1[00000000]: a1\n") != NULL);
    CU_ASSERT(strstr(child_text(c, 1), " copy@db2[10000000]: b1, its events are gone\n") != NULL);
    journal_file_event(&f, 6, "granted", "BERTH_RUN=" RUN_C " BERTH_JOB=copy@db3");
    journal_file_entry(&f, 7, "SYSLOG_IDENTIFIER=copy@db3 " ENDED(RUN_C), "c1");
    journal_file_flush(&f);
    CU_ASSERT(await_text(c, " copy@db3[20000000]: c1\n"));
    TEST_INT(strstr(child_text(c, 1), "no instance") || strstr(child_text(c, 1), "forged"), 0);
    child_kill(c, SIGINT);
    TEST_INT(berth_end(c), 130);
    TEST_INT(berth(NULL, "logs --directory=%s copy@db2", folder), 0);
    CU_ASSERT(strstr(berth_out, "copy@db2[10000000]: b1") != NULL && !strstr(berth_out, "a1"));
    TEST_INT(berth(NULL, "logs --directory=%s copies@", folder), 65);
    journal_file_close(&f);
    place_remove(folder);
}

/* `berth logs -f | head -n 1` ends when its reader has gone, though nothing more is written. */
static void test_closed_pipe(void) {
    char command[512], program[256];
    char *argv[] = {(char *) "sh", (char *) "-c", command, NULL};
    struct child *c;

    if (!journal_files_once(make_journals))
        return;
    snprintf(command, sizeof(command), "{ %s logs -f --directory=%s dump; echo over >&2; } | head -n 1",
             place_program(program, sizeof(program), "berth"), journal_folder);
    c = child_start(argv, NULL);
    CU_ASSERT(child_await(c, 20 * USEC_PER_SEC));
    CU_ASSERT(strstr(child_text(c, 1), ": a1\n") != NULL && strstr(child_text(c, 1), "a2") == NULL);
    if (!strstr(child_text(c, 1), "a1"))
        printf("%s%s", child_text(c, 1), child_text(c, 2));
    child_free(c);
}

/* Fields that a job writes into the journal itself attribute no line: the cgroup does. */
static void test_forged(void) {
    struct journal_file f;
    char folder[64];

    if (!journal_file_possible())
        return;
    snprintf(folder, sizeof(folder), "%s-forged", journal_folder);
    journal_file_begin(&f, "ant", 1);
    journal_file_event(&f, 0, "granted", "BERTH_RUN=" RUN_A " BERTH_JOB=dump");
    journal_file_event(&f, 1, "granted", "BERTH_RUN=" RUN_B " BERTH_JOB=copy");
    journal_file_entry(&f, 10, "_TRANSPORT=journal SYSLOG_IDENTIFIER=dump BERTH_RUN=" RUN_A " BERTH_JOB=dump _SYSTEMD_UNIT=berth-runner.service "
                               "_SYSTEMD_CGROUP=/berth.slice/berth-runner.service/" RUN_B, "i am dump");
    journal_file_entry(&f, 11, "_TRANSPORT=journal SYSLOG_IDENTIFIER=berthd BERTH_EVENT=exited BERTH_RUN=" RUN_A " BERTH_JOB=dump BERTH_SEQ=3 "
                               "_SYSTEMD_UNIT=berth-runner.service _SYSTEMD_CGROUP=/berth.slice/berth-runner.service/" RUN_B, "it is over");
    journal_file_entry(&f, 12, "_TRANSPORT=journal BERTH_EVENT=granted BERTH_JOB=dump BERTH_RUN=" RUN_C " _SYSTEMD_UNIT=session-1.scope", "x");
    if (!journal_file_write(&f, folder))
        return;
    TEST_INT(berth(NULL, "logs --directory=%s dump", folder), 0);
    TEST_STRING(berth_out, "");
    TEST_INT(berth(NULL, "logs --directory=%s " RUN_A, folder), 0);
    TEST_STRING(berth_out, "");
    TEST_INT(berth(NULL, "logs --directory=%s " RUN_C, folder), 65);
    TEST_INT(berth(NULL, "logs --directory=%s copy", folder), 0);
    CU_ASSERT(strstr(berth_out, " copy[10000000]: i am dump\n") != NULL);
    TEST_INT(berth(NULL, "history --directory=%s dump", folder), 0);
    CU_ASSERT(strstr(berth_out, "running") != NULL && !strstr(berth_out, RUN_C));
    TEST_INT(berth(NULL, "audit --directory=%s --limit db=1 --json", folder), 0);
    if (!strstr(berth_out, "\"events\":2") && !strstr(berth_out, "\"events\": 2"))
        TEST_STRING(berth_out, "of two events");
    place_remove(folder);
}

/* --- bad journals --- */

static void say_all_refuse(const char *folder, const char *why) {
    static const char *const verbs[] = {"logs dump", "history", "audit"};

    for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
        TEST_INT(berth(NULL, "%s --directory=%s", verbs[i], folder), 65);
        TEST_STRING(berth_out, "");
        if (!strstr(berth_err, why))
            TEST_STRING(berth_err, why);
    }
}

static void test_broken(void) {
    char folder[64], path[96], from[96];

    if (!journal_files_once(make_journals))
        return;
    snprintf(folder, sizeof(folder), "%s-broken", journal_folder);
    CU_ASSERT(mkdir(folder, 0755) == 0);
    say_all_refuse(folder, "no journal found");
    snprintf(from, sizeof(from), "%s/ant.journal", journal_folder);
    snprintf(path, sizeof(path), "%s/a.journal", folder);
    for (int i = 0; i < 3; i++) {
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        TEST_INT(file_read(from, 64 * 1024 * 1024, &text, &size), 0);
        if (i == 0)
            memset(text, 'x', size);       /* none at all */
        else if (i == 1)
            size = 100;                    /* cut in its header */
        else
            size /= 2;                      /* half of it */
        TEST_INT(file_write_atomic(path, text, size, 0644), 0);
        say_all_refuse(folder, "cannot be read");
    }
    place_remove(folder);
}

/* A user who may not read the journal learns who may. */
static void test_rights(void) {
    char program[256], directory[128];
    char *argv[] = {program, (char *) "history", directory, NULL};
    struct child *c;

    TEST_NEEDS_ROOT();
    if (!journal_files_once(make_journals))
        return;
    (void) place_program(program, sizeof(program), "berth");
    snprintf(directory, sizeof(directory), "--directory=%s", journal_folder);
    CU_ASSERT(chmod(journal_folder, 0700) == 0);
    c = child_start_as_nobody(argv, NULL);
    CU_ASSERT(child_await(c, 20 * USEC_PER_SEC));
    TEST_INT(c->exit_code, 65);
    CU_ASSERT(strstr(child_text(c, 2), "no permission to read it (root and the groups systemd-journal and adm have)") != NULL);
    child_free(c);
}

static void test_refused(void) {
    TEST_INT(berth(NULL, "logs"), 64);
    TEST_INT(berth(NULL, "logs dump -n 0"), 64);
    TEST_INT(berth(NULL, "logs dump -m --directory /tmp"), 64);
    TEST_INT(berth(NULL, "logs dump --directory /nonexistent"), 65);
    if (!journal_files_once(make_journals))
        return;
    TEST_INT(berth(NULL, "logs nothing --directory %s", journal_folder), 65);
    TEST_STRING(berth_err, "berth logs: the journal has no job or run nothing; `berth jobs` and `berth history` list them\n");
}

/* A collected journal may give a run any job. */
static void test_controls(void) {
    struct journal_file f;
    char path[128];

    if (!journal_file_possible())
        return;
    journal_file_begin(&f, "cow", 9);
    journal_file_event(&f, 0, "granted", "BERTH_RUN=" RUN_A " BERTH_JOB=du\033[2Jmp");
    journal_file_entry(&f, 10, "SYSLOG_IDENTIFIER=dump " CGROUP(RUN_A), "a1");
    snprintf(path, sizeof(path), "%s/controls", journal_folder);
    if (!journal_file_write(&f, path))
        return;
    TEST_INT(berth(NULL, "logs --directory %s " RUN_A, path), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, " du\\x1b[2Jmp["));
}

static CU_TestInfo tests[] = {
    {"lines", test_lines},       {"ids", test_ids},       {"parallel", test_parallel},
    {"follow", test_follow},     {"template", test_template}, {"closed-pipe", test_closed_pipe},
    {"forged", test_forged},     {"broken", test_broken}, {"rights", test_rights},
    {"refused", test_refused},   {"control characters", test_controls},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "logs", .pInitFunc = journal_folder_make, .pCleanupFunc = journal_folder_remove,
             .pTests = tests});
