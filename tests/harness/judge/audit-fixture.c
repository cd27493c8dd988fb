/* SPDX-License-Identifier: MIT */
#include "tests/harness/judge/audit-fixture.h"

#include <stdio.h>
#include <string.h>

#include "tests/harness/test.h"

struct entries record;
struct audit_report report;
struct audit_options options;

struct writer ant, bee;

void audit_fixture_begin(void) {
    entries_done(&record);
    ant = (struct writer) {"ant", "ant/1", "boot-a1", 0, 0};
    bee = (struct writer) {"bee", "bee/1", "boot-b1", 0, 0};
    options = (struct audit_options) {.namespace = "test", .tolerance = 10 * USEC_PER_MSEC};
}

struct entry audit_fixture_entry(struct writer *w, long msec, const char *event, const char *run, const char *pools) {
    return (struct entry) {.event = (char *) event, .host = (char *) w->host, .run = (char *) run, .pools = (char *) pools,
                           .namespace = (char *) "test", .cursor = (char *) "cursor", .boot = (char *) w->boot,
                           .process = (char *) w->process, .seq = ++w->seq, .took.wait_ms = -1, .took.run_ms = -1, .asked.head_start_ms = -1,
                           .exit.code = -1, .exit.signal = -1, .uid = -1, .time = BASE + (usec_t) msec * USEC_PER_MSEC + (usec_t) w->ahead};
}

void audit_fixture_add(const struct entry *e) {
    TEST_INT(entries_add(&record, e), 0);
}

void audit_fixture_add_event(struct writer *w, long msec, const char *event, const char *run, const char *pools) {
    struct entry e = audit_fixture_entry(w, msec, event, run, pools);

    audit_fixture_add(&e);
}

void audit_fixture_limits(struct writer *w, long msec, const char *event, const char *text) {
    struct entry e = audit_fixture_entry(w, msec, event, NULL, NULL);

    e.limits = (char *) text;
    audit_fixture_add(&e);
}

void audit_fixture_declare(struct writer *w, long msec, const char *event, const char *text) {
    audit_fixture_limits(w, msec, event, text);
    record.items[record.n - 1].clock = BASE + (usec_t) msec * USEC_PER_MSEC;
}

void audit_fixture_up(struct writer *w, long msec, const char *text) {
    audit_fixture_limits(w, msec, "ready", "own:1/host");
    audit_fixture_declare(w, msec, "redis-connected", text);
}

void audit_fixture_grant(struct writer *w, long asked, long granted, const char *run, const char *pools) {
    struct entry e = audit_fixture_entry(w, granted + 1, "granted", run, pools);

    e.ticket = BASE + (usec_t) asked * USEC_PER_MSEC;
    e.token = BASE + (usec_t) granted * USEC_PER_MSEC;
    e.took.wait_ms = granted + 1 - asked;
    audit_fixture_add(&e);
}

void audit_fixture_set_token(const char *run) {
    for (size_t i = 0; i + 1 < record.n; i++)
        if (record.items[i].run && strcmp(record.items[i].run, run) == 0 && record.items[i].token > 0)
            record.items[record.n - 1].token = record.items[i].token;
}

void audit_fixture_end(struct writer *w, long msec, const char *run, const char *pools) {
    audit_fixture_add_event(w, msec, "exited", run, pools);
    audit_fixture_set_token(run);
    audit_fixture_add_event(w, msec + 1, "released", run, pools);
    audit_fixture_set_token(run);
    record.items[record.n - 1].clock = BASE + (usec_t) msec * USEC_PER_MSEC;
}

void audit_fixture_reclaim(long msec, const char *run) {
    struct entry e = audit_fixture_entry(&bee, msec, "reclaimed", run, "db:1");

    e.host = (char *) "ant";
    e.clock = BASE + (usec_t) msec * USEC_PER_MSEC - 2;
    audit_fixture_add(&e);
    audit_fixture_set_token(run);
}

void audit_fixture_check(void) {
    audit_report_done(&report);
    TEST_INT(audit_check(&record, &options, &report), 0);
}

void audit_fixture_expect_proof(void) {
    audit_fixture_check();
    for (size_t i = 0; i < report.n_findings; i++)
        printf("%s: %s\n", audit_kind_name(report.findings[i].kind), report.findings[i].text);
    TEST_INT(report.n_findings, 0);
}

void audit_fixture_expect_violation(enum audit_kind kind, const char *run, const char *text) {
    audit_fixture_check();
    TEST_INT(report.n_findings, 1);
    if (report.n_findings == 0)
        return;
    TEST_STRING(audit_kind_name(report.findings[0].kind), audit_kind_name(kind));
    TEST_STRING(report.findings[0].entry->run ? report.findings[0].entry->run : "-", run);
    if (!strstr(report.findings[0].text, text))
        TEST_STRING(report.findings[0].text, text);
}

void audit_fixture_add_good_runs(void) {
    audit_fixture_begin();
    audit_fixture_up(&ant, 0, "db:1/declared");
    audit_fixture_up(&bee, 0, "db:1/declared");
    audit_fixture_grant(&ant, 100, 100, "a", "db:1");
    audit_fixture_add_event(&ant, 103, "started", "a", "db:1");
    audit_fixture_add_event(&bee, 150, "queued", "b", "db:1");
    audit_fixture_end(&ant, 500, "a", "db:1");
    audit_fixture_grant(&bee, 150, 501, "b", "db:1");
    audit_fixture_add_event(&bee, 503, "started", "b", "db:1");
    audit_fixture_end(&bee, 900, "b", "db:1");
    audit_fixture_grant(&ant, 600, 901, "c", "db:1");
    audit_fixture_add_event(&ant, 903, "started", "c", "db:1");
}

int audit_fixture_done(void) {
    entries_done(&record);
    audit_report_done(&report);
    return 0;
}
