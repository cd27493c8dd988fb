/* SPDX-License-Identifier: MIT */
#include "tests/harness/judge/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/journal/event.h"
#include "tests/harness/test.h"

static bool is_event(const char *line, char name[static 32]) {
    for (enum event_type i = 0; i < EVENT_TYPES; i++) {
        size_t length = strlen(event_name(i));

        if (strncmp(line, event_name(i), length) == 0 && line[length] == ':') {
            snprintf(name, 32, "%s", event_name(i));
            return true;
        }
    }
    return false;
}

static char *get_text(const char *line, const char *key) {
    const char *value = event_get(line, key);

    return *value ? strdup(value) : NULL;
}

static int64_t get_number(const char *line, const char *key, int64_t absent) {
    const char *value = event_get(line, key);

    return *value ? strtoll(value, NULL, 10) : absent;
}

/* Fields of each event besides host, namespace and seq; "pools:x": x if the run has pools of the cluster. */
static const struct {
    const char *event, *fields;
} wanted[] = {
    {"queued", "job run pools ticket"},
    {"granted", "job run pools:token pools:ticket"},
    {"refused", "job run reason"},
    {"withdrawn", "job run result reason wait_ms"},
    {"started", "job run wait_ms pools:token pools:ticket"},
    {"exited", "job run result"},
    {"released", "job run pools:token"},
    {"stopping", "job run reason"},
    {"stuck", "job run reason"},
    {"guard-silent", "job run reason"},
    {"lease-lost", "job run pools token ticket"},
    {"fenced", "job run pools token ticket"},
    {"reclaimed", "job run pools token clock"},
    {"overcommitted", "pools"},
    {"guard-died", "job run"},
    {"redis-connected", "clock redis"},
    {"redis-moved", "redis reason"},
    {"namespace-differs", "redis reason"},
    {"redis-lost", "reason"},
    {"grace-begun", ""},
    {"grace-ended", ""},
    {"session-lost", "reason"},
    {"lease-late", ""},
    {"lease-differs", ""},
    {"host-expired", "clock"},
    {"host-name-taken", ""},
    {"limits-differ", "pools"},
    {"limit-changed", "pools limits"},
    {"parked", "job run pools ticket"},
    {"moved", "job run pools ticket clock"},
    {"revoked", "job run pools"},
    {"config-loaded", "limits"},
    {"config-refused", "reason"},
    {"operated", "uid method"},
    {"drained", "uid"},
    {"undrained", "uid"},
    {"ready", ""},
    {"missed", "job due until count reason"},
    {"clock-set", "step_ms"},
    {"clock-ahead", "job due step_ms"},
    {"turn-taken", "job due"},
    {"turn-open", "job due attempt reason"},
    {"jobs-differ", "job other_host"},
    {"zone-changed", "reason"},
    {"zone-missing", "job reason"},
    {"stopping-daemon", ""},
    {"retry", "job run attempt attempts first_run delay_ms result"},
    {"gave-up", "job run attempts reason"},
    {"broken", "job"},
    {"recovered", "job run"},
    {"overdue", "job"},
    {"skipped", "job reason"},
};

/* Events about another host, whose name Redis may have lost with a deleted key. */
static bool is_nameless(const char *name, const char *line) {
    return (strcmp(name, "reclaimed") == 0 || strcmp(name, "host-expired") == 0) && strstr(line, " host=\"\" ");
}

static void check_fields(const char *name, const char *line) {
    char fields[128] = "";

    for (size_t i = 0; i < ELEMENTSOF(wanted); i++)
        if (strcmp(wanted[i].event, name) == 0)
            snprintf(fields, sizeof(fields), "%snamespace seq %s", is_nameless(name, line) ? "" : "host ", wanted[i].fields);
    CU_ASSERT(fields[0] != '\0'); /* each event has its row */
    for (char *rest = fields, *field; (field = strsep(&rest, " "));) {
        const char *key = strncmp(field, "pools:", 6) == 0 ? field + 6 : field;

        if (*key && !*event_get(line, key) && (key == field || *event_get(line, "pools"))) {
            printf("no %s: %s", key, line);
            CU_FAIL("an event lacks a field");
        }
    }
}

static void take_line(struct entries *ret, const char *line, usec_t time, const char *process, size_t n) {
    char name[32], cursor[128];
    struct entry e = {.time = time, .boot = (char *) "boot", .process = (char *) process, .event = name, .cursor = cursor};

    if (!is_event(line, name) || !*event_get(line, "seq"))
        return;
    check_fields(name, line);
    snprintf(cursor, sizeof(cursor), "s=%.*s;i=%zx;", (int) strcspn(process, "."), process, n);
    e.host = get_text(line, "host");
    e.job = get_text(line, "job");
    e.run = get_text(line, "run");
    e.pools = get_text(line, "pools");
    e.result = get_text(line, "result");
    e.reason = get_text(line, "reason");
    e.limits = get_text(line, "limits");
    e.namespace = get_text(line, "namespace");
    e.origin.due = get_text(line, "due");
    e.missed.until = get_text(line, "until");
    e.origin.attempt = get_number(line, "attempt", 0);
    e.missed.count = get_number(line, "count", 0);
    e.token = event_get_u64(line, "token");
    e.ticket = event_get_u64(line, "ticket");
    e.position = get_number(line, "position", 0);
    e.clock = event_get_u64(line, "clock");
    e.took.lead_ms = get_number(line, "lead_ms", 0);
    e.seq = event_get_u64(line, "seq");
    e.took.wait_ms = get_number(line, "wait_ms", -1);
    e.took.run_ms = get_number(line, "run_ms", -1);
    e.asked.head_start_ms = get_number(line, "head_start_ms", -1);
    e.exit.code = get_number(line, "exit_code", -1);
    e.exit.signal = get_number(line, "signal", -1);
    e.uid = get_number(line, "uid", -1);
    e.continues = strcmp(event_get(line, "on_lease_lost"), "continue") == 0;
    TEST_INT(entries_add(ret, &e), 0);
    for (size_t i = 0; i < 10; i++)
        free(((char *[]) {e.host, e.job, e.run, e.pools, e.result, e.reason, e.limits, e.namespace, e.origin.due, e.missed.until})[i]);
}

static void read_file(struct entries *ret, const struct host *h, unsigned number, size_t *n) {
    _cleanup_free_ char *line = NULL;
    _cleanup_fclose_ FILE *f = NULL;
    char path[96], process[64], *rest;
    size_t size = 0;

    snprintf(path, sizeof(path), "%s/%s.%u.record", cluster.folder, h->name, number);
    snprintf(process, sizeof(process), "%s.%u", h->name, number);
    f = fopen(path, "re");
    while (f && getline(&line, &size, f) > 0) {
        usec_t time = strtoull(line, &rest, 10);

        if (*rest == ' ')
            take_line(ret, rest + 1, time, process, ++*n);
    }
}

void record_read(struct entries *ret) {
    for (size_t i = 0; i < cluster.n_hosts; i++)
        for (unsigned k = 0, n = 0; k < cluster.hosts[i]->n_launched; k++) {
            size_t lines = n;

            read_file(ret, cluster.hosts[i], k, &lines);
            n = (unsigned) lines;
        }
}

/* Prints the entries of hosts, and of the runs that the finding names. */
static void show(const struct entries *entries, const struct audit_finding *f) {
    for (size_t i = 0; i < entries->n; i++) {
        const struct entry *e = &entries->items[i];

        if (!e->run || (f->entry->run && strcmp(e->run, f->entry->run) == 0) || strstr(f->text, e->run))
            printf("  %" PRIu64 " %s %" PRIu64 " %s run=%s pools=%s ticket=%" PRIu64 " token=%" PRIu64 " clock=%" PRIu64
                   " wait_ms=%" PRId64 " run_ms=%" PRId64 " result=%s limits=%s\n", e->time, e->process, e->seq, e->event,
                   e->run ? e->run : "", e->pools ? e->pools : "", e->ticket, e->token, e->clock, e->took.wait_ms, e->took.run_ms,
                   e->result ? e->result : "", e->limits ? e->limits : "");
    }
}

void record_audit(void) {
    _cleanup_(entries_done) struct entries entries = {};
    struct audit_options options = {.namespace = "test", .tolerance = AUDIT_TOLERANCE_DEFAULT};
    struct audit_report report;

    record_read(&entries);
    TEST_INT(audit_check(&entries, &options, &report), 0);
    for (size_t i = 0; i < report.n_findings; i++) {
        const struct audit_finding *f = &report.findings[i];
        bool expected = cluster.broken & 1U << f->kind;

        printf("audit%s: %s: %s of %s: %s\n", expected ? ", as expected" : "", audit_kind_name(f->kind), f->entry->event,
               f->entry->process, f->text);
        if (expected)
            continue;
        show(&entries, f);
        CU_FAIL("the audit finds a violation");
    }
    for (size_t i = 0; i < report.n_doubts; i++)
        printf("unproved: %s: %s of %s: %s\n", audit_kind_name(report.doubts[i].kind), report.doubts[i].entry->event,
               report.doubts[i].entry->process, report.doubts[i].text);
    audit_report_done(&report);
}
