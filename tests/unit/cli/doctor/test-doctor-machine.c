/* SPDX-License-Identifier: MIT */

/* The checks of `berth doctor` that look at the machine. Here it is a folder, with a systemctl that
 * prints what the test sets. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/harness/host/doctor-check.h"
#include "tests/harness/judge/journal-file.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

#define HOUR (3600 * USEC_PER_SEC)

static char root[32], old_path[4096];

static const char *at(const char *path) {
    static char whole[128];

    (void) snprintf(whole, sizeof(whole), "%s%s", root, path);
    return whole;
}

static void make(const char *folder) {
    TEST_INT(file_make_directory(at(folder), 0755), 0);
}

static void begin(void) {
    const char *path = getenv("PATH");

    (void) snprintf(root, sizeof(root), "/tmp/berth-doctor-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(root) != NULL);
    (void) snprintf(old_path, sizeof(old_path), "%s", path ? path : "");
    doctor_facts = (struct facts){.root = root, .now = JOURNAL_FILE_EPOCH + HOUR + USEC_PER_SEC};
    make("/var");
    make("/var/log");
    make("/run");
    make("/run/log");
}

static void end(void) {
    (void) setenv("PATH", old_path, 1);
    doctor_facts.settings = NULL; /* of a test's own */
    check_done();
    place_remove(root);
}

/* --- journal --- */

static void test_journal(void) {
    check_finds(doctor_journal, SEVERITY_NOTE, "this machine has no journal");
    make("/run/log/journal");
    check_finds(doctor_journal, SEVERITY_WARN, "the journal does not survive a reboot");
    make("/var/log/journal"); /* as the finding advises */
    check_finds_nothing(doctor_journal);
    check_set(&doctor_facts.metrics, "{'metrics': {'berth_journal_errors_total': [{'labels': {}, 'value': 3}]}}");
    check_finds(doctor_journal, SEVERITY_WARN, "the journal did not take 3 events of this berthd");
}

static void test_journal_age(void) {
    struct journal_file file;

    check_finds_nothing(doctor_journal_age);
    if (!journal_file_possible())
        return;
    journal_file_begin(&file, "ant", 1);
    journal_file_event(&file, 0, "ready", "");
    CU_ASSERT_FATAL(journal_file_write(&file, at("/var/log/journal")));
    check_finds(doctor_journal_age, SEVERITY_NOTE, "the journal of berthd begins 1h0m ago");
    doctor_facts.now = JOURNAL_FILE_EPOCH + 7 * 24 * HOUR + USEC_PER_SEC;
    check_finds_nothing(doctor_journal_age);
}

static void dropped(struct journal_file *file, long at_msec, const char *transport, const char *message) {
    char fields[128];

    (void) snprintf(fields, sizeof(fields), "MESSAGE_ID=a596d6fe7bfa4994828e72309e95d61e _TRANSPORT=%s", transport);
    journal_file_entry(file, at_msec, fields, message);
}

static void test_journal_rate(void) {
    struct journal_file file;

    check_finds_nothing(doctor_journal_rate); /* no journal */
    if (!journal_file_possible())
        return;
    journal_file_begin(&file, "ant", 1);
    journal_file_event(&file, 0, "ready", "");
    file.seq += 2; /* long ago */
    dropped(&file, 1000, "driver", "Suppressed 9 messages from berthd.service");
    doctor_facts.now += 24 * HOUR;
    for (int i = 0; i < 3; i++)
        journal_file_event(&file, HOUR / USEC_PER_MSEC + i, "granted", "");
    journal_file_restart(&file, false);
    journal_file_event(&file, 2 * HOUR / USEC_PER_MSEC, "ready", "");
    dropped(&file, 2 * HOUR / USEC_PER_MSEC, "driver", "Suppressed 9 messages from cron.service");
    dropped(&file, 2 * HOUR / USEC_PER_MSEC, "journal", "Suppressed 9 messages from berthd.service"); /* anybody can send that */
    CU_ASSERT_FATAL(journal_file_write(&file, at("/var/log/journal")));
    check_finds_nothing(doctor_journal_rate);
}

static void test_journal_drops(void) {
    struct journal_file file;

    if (!journal_file_possible())
        return;
    journal_file_begin(&file, "ant", 1);
    dropped(&file, 5000, "driver", "Suppressed 9 messages from berth-runner.service");
    dropped(&file, 5000, "driver", "Suppressed 3 messages from berth-runner.service");
    CU_ASSERT_FATAL(journal_file_write(&file, at("/var/log/journal")));
    check_finds(doctor_journal_rate, SEVERITY_WARN,
                "journald dropped 12 messages of berth-runner.service within a day");
}

static void test_journal_gaps(void) {
    struct journal_file file;

    if (!journal_file_possible())
        return;
    journal_file_begin(&file, "ant", 1);
    journal_file_event(&file, 0, "ready", "");
    journal_file_entry(&file, 1, "_SYSTEMD_UNIT=berthd.service _PID=100", "a plain line");
    file.seq += 2;
    journal_file_event(&file, 1000, "granted", "");
    file.seq += 1;
    journal_file_event(&file, 2000, "granted", "");
    CU_ASSERT_FATAL(journal_file_write(&file, at("/var/log/journal")));
    check_finds(doctor_journal_rate, SEVERITY_CRIT,
                "the journal lacks 3 events of berthd, the first 59m59s ago");
}

/* --- guard --- */

#define RUN_A "0123456789abcdef0123456789abcdef"

static void put(const char *path, long age_sec) {
    time_t then = (time_t) (doctor_facts.now / USEC_PER_SEC) - age_sec;
    struct timespec times[2] = {{.tv_sec = then}, {.tv_sec = then}};

    TEST_INT(file_write_atomic(at(path), "x\n", 2, 0600), 0);
    TEST_INT(utimensat(AT_FDCWD, at(path), times, 0), 0);
}

static void test_guard(void) {
    struct settings settings = {.runtime_directory = (char *) "/run/berth"};
    _cleanup_close_ int fd = -1;

    doctor_facts.settings = &settings;
    check_finds_nothing(doctor_guard); /* berth-runner was never there */
    make("/run/berth");
    make("/run/berth/runner");
    make("/run/berth/runner/runs");
    put("/run/berth/runner/runs/" RUN_A ".guard", 61);
    fd = open(at("/run/berth/runner/runs/" RUN_A ".guard"), O_RDONLY | O_CLOEXEC);
    TEST_INT(flock(fd, LOCK_EX), 0); /* as a guard has it */
    check_finds_nothing(doctor_guard);
    TEST_INT(flock(fd, LOCK_UN), 0);
    check_finds(doctor_guard, SEVERITY_WARN,
                "run 01234567: its guard is gone, and berth-runner did not notice");
    TEST_STRING(doctor_findings.items[0].run, RUN_A);
    TEST_INT(flock(fd, LOCK_EX | LOCK_NB), 0); /* the check keeps no lock */
    TEST_INT(flock(fd, LOCK_UN), 0);
    put("/run/berth/runner/runs/" RUN_A ".guard", 59);
    put("/run/berth/runner/runs/" RUN_A ".report", 59);
    put("/run/berth/runner/runs/odd.report", 99);
    check_finds_nothing(doctor_guard);
    put("/run/berth/runner/runs/" RUN_A ".report", 61);
    check_finds(doctor_guard, SEVERITY_WARN,
                "run 01234567: it ended 1m1s ago, and berthd did not take its report");
}

/* --- unit --- */

#define BERTHD(kill_mode)                                                                                   \
    "Id=berthd.service\nLoadState=loaded\nDropInPaths=/etc/x.conf\nKillMode=" kill_mode                     \
    "\nDelegate=no\nUser=berth\n"                                                                           \
    "Slice=system.slice\nRestart=always\nWatchdogUSec=30s\n"
#define RUNNER(slice)                                                                                       \
    "Id=berth-runner.service\nLoadState=loaded\nDropInPaths=\nKillMode=process\nDelegate=yes\nUser="        \
    "\nSlice=" slice "\nRestart=always\nWatchdogUSec=30s\n"

/* Puts a systemctl that prints this text into PATH. */
static void set_systemctl(const char *text) {
    _cleanup_free_ char *script = NULL, *path = NULL;
    int n = asprintf(&script, "#!/bin/sh\ncat <<'END'\n%sEND\n", text);

    CU_ASSERT_FATAL(n > 0);
    CU_ASSERT_FATAL(asprintf(&path, "%s:%s", root, old_path) > 0);
    TEST_INT(file_write_atomic(at("/systemctl"), script, (size_t) n, 0755), 0);
    TEST_INT(setenv("PATH", path, 1), 0);
}

static void test_unit(void) {
    set_systemctl("");
    check_finds_nothing(doctor_unit); /* no systemd */
    make("/run/systemd");
    make("/run/systemd/system");
    check_finds(doctor_unit, SEVERITY_UNKNOWN, "systemctl does not answer");
    set_systemctl(BERTHD("control-group") "\n" RUNNER("berth.slice"));
    check_finds_nothing(doctor_unit);
    set_systemctl(BERTHD("mixed") "\n" RUNNER("berth.slice"));
    check_finds(doctor_unit, SEVERITY_WARN,
                "berthd.service has KillMode=mixed instead of KillMode=control-group: ");
    TEST_STRING(json_string_value(json_array_get(doctor_findings.items[0].remedies, 0)), "correct /etc/x.conf; runs outlive a restart:");
    set_systemctl(BERTHD("control-group") "\n" RUNNER("system.slice"));
    check_finds(doctor_unit, SEVERITY_WARN,
                "berth-runner.service has Slice=system.slice instead of Slice=berth.slice: ");
    TEST_STRING(json_string_value(json_array_get(doctor_findings.items[0].remedies, 0)), "correct the unit; runs outlive a restart:");
    set_systemctl(
        "Id=berthd.service\nLoadState=not-found\n\nId=berth-runner.service\nLoadState=not-found\n");
    check_finds_nothing(doctor_unit); /* not installed as a service */
}

/* --- files --- */

static void test_state_error(void) {
    struct settings settings = {.runtime_directory = (char *) "/run/other",
                                .state_directory = (char *) "/var/lib/berth"};

    doctor_facts.settings = &settings;
    check_finds_nothing(doctor_files);
    check_set(&doctor_facts.jobs, "{'state_error': 'Read-only file system'}");
    check_finds(doctor_files, SEVERITY_WARN,
                "berthd cannot use its state directory /var/lib/berth: Read-only file system");
    TEST_STRING(json_string_value(json_array_get(json_array_get(doctor_findings.items[0].commands, 0), 2)), "/var/lib/berth");
}

/* A folder that must be root's belongs to another user. */
static void test_owner(void) {
    struct settings settings = {.runtime_directory = (char *) "/run/other",
                                .state_directory = (char *) "/var/lib/berth"};

    TEST_NEEDS_ROOT();
    make("/run/other");
    make("/run/other/runner");
    TEST_INT(chmod(at("/run/other/runner"), 0711), 0);
    doctor_facts.settings = &settings;
    check_finds_nothing(doctor_files);
    TEST_INT(chown(at("/run/other/runner"), 65534, 65534), 0);
    check_finds(doctor_files, SEVERITY_CRIT, at("/run/other/runner belongs to user 65534 instead of 0"));
}

static CU_TestInfo tests[] = {
    {"the journal is kept", test_journal},
    {"the journal is young", test_journal_age},
    {"the journal lacks nothing of this day", test_journal_rate},
    {"journald dropped messages", test_journal_drops},
    {"the journal lacks events", test_journal_gaps},
    {"a guard is gone, a report is not taken", test_guard},
    {"units differ from the shipped ones", test_unit},
    {"the state directory cannot be used", test_state_error},
    {"a folder belongs to somebody else", test_owner},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "doctor-machine", .pSetUpFunc = begin, .pTearDownFunc = end, .pTests = tests});
