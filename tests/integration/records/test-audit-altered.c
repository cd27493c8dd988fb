/* SPDX-License-Identifier: MIT */
/* The audit finds entries that were removed, altered, doubled or moved in a true record. (Every test of a
 * cluster checks that true records are proved: tests/harness/judge/record.h.) */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/judge/record.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 3 }\npool \"net\" { limit = 1 }\npool \"own\" { limit = 1 scope = \"host\" }\n"


/* --- records --- */

static struct child *queue(struct host *h, const char *options, const char *name, const char *what) {
    struct child *c = berth_start(h, "run %s --name %s -- true", options, name);

    host_await(h, what, "job=%s", name);
    return c;
}

/* Several permits, several pools, a host's own pool, head starts. A lowered limit parks a claim, and a
 * raised limit requeues it. A host restarts. */
static void live(void) {
    struct host *ant = host_up("ant", POOLS), *bee = host_up("bee", POOLS);
    struct child *held[3], *waiting[6];

    held[0] = berth_at_gate(ant, "-p db:2 -p net", "a", "started");
    held[1] = berth_at_gate(bee, "-p db", "b", "started");
    held[2] = berth_at_gate(ant, "-p own", "o", "started");
    waiting[0] = queue(bee, "-p db:3", "w", "queued");
    waiting[1] = queue(ant, "-p db -p net", "x", "queued");
    waiting[2] = queue(bee, "-p net --head-start 1h", "y", "queued");
    waiting[3] = queue(ant, "-p own", "p", "queued");
    waiting[4] = queue(ant, "-p db", "gone", "queued");
    child_kill(waiting[4], SIGTERM);
    TEST_INT(berth_end(waiting[4]), 143);
    TEST_INT(berth(ant, "limit db 2 --reason night"), 0);
    host_await(bee, "parked", "job=w");
    host_set_config(bee, POOLS "job \"j\" { command = {\"/bin/true\"} pools = {\"db\"} }\n");
    TEST_INT(berth(bee, "reload"), 0);
    test_gate_open(&cluster.gate);
    for (size_t i = 0; i < 3; i++)
        TEST_INT(berth_end(held[i]), 0);
    TEST_INT(berth_end(waiting[2]), 0);
    TEST_INT(berth_end(waiting[1]), 0);
    TEST_INT(berth_end(waiting[3]), 0);
    TEST_INT(berth(ant, "limit db --clear"), 0);
    TEST_INT(berth_end(waiting[0]), 0);
    TEST_INT(berth(bee, "start j --wait"), 0);
    host_kill(ant);
    host_start(ant);
    host_await(ant, "redis-connected", " ");
    TEST_INT(berth(ant, "run --wait 9s -p db:3 --name last -- true"), 0);
    host_await(ant, "released", "job=last");
}

static void wipe(void) {
    _cleanup_reply_ redisReply *reply = redis_command(&cluster.redis, "FLUSHALL");

    CU_ASSERT(reply != NULL && reply->type == REDIS_REPLY_STATUS);
}

/* A host dies with its permits, Redis loses its data, and one run continues beyond its lease. */
static void live_with_faults(void) {
    struct host *ant = host_up("ant", POOLS), *bee = host_up("bee", POOLS);
    struct child *held, *lost, *waiting;

    held = berth_at_gate(ant, "-p net --on-lease-lost continue", "on", "started");
    lost = berth_at_gate(bee, "-p db:3", "lost", "started");
    waiting = queue(ant, "-p db", "next", "queued");
    host_signal(bee, SIGSTOP);
    host_await(ant, "reclaimed", "job=lost");
    TEST_INT(berth_end(waiting), 0);
    host_signal(bee, SIGCONT);
    host_await(bee, "session-lost", " ");
    TEST_INT(berth_end(lost), 76);
    host_await_redis(bee);
    host_mark(ant);
    host_signal(ant, SIGSTOP);
    host_await(bee, "reclaimed", "job=on");
    TEST_INT(berth(bee, "run -n -p net -- true"), 0);
    host_signal(ant, SIGCONT);
    host_await(ant, "granted", "job=on");
    TEST_INT(berth(bee, "run -n -p net -- true"), 75);
    wipe();
    host_await(ant, "grace-ended", " ");
    host_await(bee, "grace-ended", " ");
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(held), 0);
    host_await(ant, "released", "job=on");
    TEST_INT(berth(bee, "run --wait 5s -p net --name last -- true"), 0);
    host_await(bee, "released", "job=last");
}

/* --- altered records --- */

static struct entries truth;
static size_t n_tried;

static struct audit_report judge(const struct entries *record) {
    struct audit_options options = {.namespace = "test", .tolerance = AUDIT_TOLERANCE_DEFAULT};
    struct audit_report report;

    n_tried++;
    TEST_INT(audit_check(record, &options, &report), 0);
    return report;
}

static bool finds(const struct entries *record, enum audit_kind kind) {
    struct audit_report report = judge(record);
    bool found = false;

    for (size_t i = 0; i < report.n_findings; i++)
        found |= kind == AUDIT_MALFORMED || report.findings[i].kind == kind; /* MALFORMED: any */
    audit_report_done(&report);
    return found;
}

static struct entries copy_without(size_t left_out) {
    struct entries copy = {};

    for (size_t i = 0; i < truth.n; i++)
        if (i != left_out)
            TEST_INT(entries_add(&copy, &truth.items[i]), 0);
    return copy;
}

static bool is_last_of_process(size_t i) {
    for (size_t k = i + 1; k < truth.n; k++)
        if (strcmp(truth.items[k].process, truth.items[i].process) == 0)
            return false;
    return true;
}

static void expect(bool found, const char *what, size_t i) {
    const struct entry *e = &truth.items[i];

    if (found)
        return;
    printf("not found: %s %s %" PRIu64 " of %s run=%s pools=%s limits=%s\n", what, e->event, e->seq, e->process, e->run ? e->run : "",
           e->pools ? e->pools : "", e->limits ? e->limits : "");
    CU_FAIL("the audit does not find it");
}

static void set_cursor(struct entry *e, const char *number) {
    _cleanup_free_ char *old = e->cursor;

    CU_ASSERT(asprintf(&e->cursor, "%.*s%s", (int) strcspn(old, ";"), old, number) > 0);
}

static void cut_double_and_move(void) {
    for (size_t i = 0; i < truth.n; i++) {
        struct entries record = copy_without(i);

        if (!is_last_of_process(i)) /* the last one leaves no trace */
            expect(finds(&record, AUDIT_SEQ_GAP), "cut", i);
        entries_done(&record);
        record = copy_without(SIZE_MAX);
        TEST_INT(entries_add(&record, &truth.items[i]), 0);
        set_cursor(&record.items[record.n - 1], ";i=ffffff");
        expect(finds(&record, AUDIT_SEQ_TWICE), "doubled", i);
        entries_done(&record);
        if (truth.items[i].seq == 1)
            continue;
        record = copy_without(SIZE_MAX);
        set_cursor(&record.items[i], ";i=0");
        if (truth.items[i].seq > 2 || !is_last_of_process(i))
            expect(finds(&record, AUDIT_SEQ_ORDER), "moved", i);
        entries_done(&record);
    }
}

/* --- altered fields --- */

static void alter_text(char **text) {
    size_t length = *text ? strlen(*text) : 0;

    if (length > 0) /* "db:2" becomes "db:3" */
        (*text)[length - 1] = (*text)[length - 1] == '9' || (*text)[length - 1] == 'e' ? '1' : (char) ((*text)[length - 1] + 1);
}

static bool alter_seq(struct entry *e) {
    e->seq += 1000;
    return true;
}

static bool alter_host(struct entry *e) {
    alter_text(&e->host);
    return strcmp(e->event, "host-expired") != 0;
}

static bool alter_token(struct entry *e) {
    e->token += 12345;
    return e->run && e->token > 12345 && strcmp(e->event, "reclaimed") != 0; /* its host may never have received it */
}

static bool alter_pools(struct entry *e) {
    alter_text(&e->pools);
    return e->run && e->pools && strcmp(e->event, "refused") != 0; /* the only entry of its run */
}

static bool alter_job(struct entry *e) {
    alter_text(&e->job);
    return e->run && e->job && strcmp(e->event, "refused") != 0;
}

static bool alter_ticket(struct entry *e) {
    e->ticket -= 1000000;
    return strcmp(e->event, "granted") == 0 && e->pools && strcmp(e->pools, "own:1") != 0; /* a host draws the tokens of its own pools itself */
}

static bool alter_release(struct entry *e) {
    e->clock += 3600 * USEC_PER_SEC;
    return strcmp(e->event, "released") == 0 && e->clock > 3600 * USEC_PER_SEC && e->pools &&
           (strcmp(e->pools, "db:2,net:1") == 0 || strcmp(e->job, "on") == 0);
}

static bool alter_limit(struct entry *e) {
    if (e->limits && strncmp(e->limits, "db:", 3) == 0)
        e->limits[3] = '0';
    return strcmp(e->event, "redis-connected") == 0 && strcmp(e->process, "bee.0") == 0 && e->seq < 5; /* in force at the beginning */
}

/* Puts another event in its place. */
static bool alter_event(struct entry *e) {
    static const char *const swaps[][2] = {{"granted", "queued"}, {"started", "withdrawn"}, {"exited", "started"},
                                           {"released", "queued"}, {"exited", "queued"}};
    bool is_swapped = false;

    for (size_t i = 0; i < ELEMENTSOF(swaps) && !is_swapped; i++)
        if (strcmp(e->event, swaps[i][0]) == 0) {
            free(e->event);
            e->event = strdup(swaps[i][1]);
            is_swapped = true;
        }
    return is_swapped && strcmp(e->job, "last") != 0; /* more entries of it may have followed */
}

static const struct alteration {
    const char *what;
    bool (*alter)(struct entry *e); /* returns whether the audit must find the change */
} alterations[] = {{"another BERTH_SEQ", alter_seq},       {"another host", alter_host},   {"another token", alter_token},
                   {"other pools", alter_pools},           {"another job", alter_job},     {"an earlier ticket", alter_ticket},
                   {"given back later", alter_release},    {"a lower limit", alter_limit}, {"another event", alter_event}};

static void alter_each(void) {
    for (size_t k = 0; k < ELEMENTSOF(alterations); k++) {
        size_t n = 0;

        for (size_t i = 0; i < truth.n; i++) {
            struct entries record = copy_without(SIZE_MAX);

            if (alterations[k].alter(&record.items[i])) {
                expect(finds(&record, AUDIT_MALFORMED), alterations[k].what, i);
                n++;
            }
            entries_done(&record);
        }
        if (n == 0)
            printf("%s\n", alterations[k].what);
        CU_ASSERT(n > 0);
    }
}

static void mutate(const char *const *events) {
    entries_done(&truth);
    record_read(&truth);
    for (; *events; events++) {
        bool found = false;

        for (size_t i = 0; i < truth.n; i++)
            found |= strcmp(truth.items[i].event, *events) == 0;
        if (!found)
            printf("no %s\n", *events);
        CU_ASSERT(found); /* each kind of event is altered */
    }
    TEST_INT(finds(&truth, AUDIT_MALFORMED), 0);
    cut_double_and_move();
    alter_each();
    entries_done(&truth);
}

static void test_live(void) {
    live();
    mutate((const char *const[]) {"queued", "granted", "withdrawn", "started", "exited", "released", "redis-connected", "grace-begun",
                                  "grace-ended", "limit-changed", "parked", "config-loaded", "ready", NULL});
}

static void test_live_with_faults(void) {
    live_with_faults();
    mutate((const char *const[]) {"queued", "granted", "started", "exited", "released", "lease-lost", "reclaimed", "host-expired",
                                  "session-lost", "redis-connected", "grace-begun", "grace-ended", "ready", NULL});
}

static CU_TestInfo tests[] = {{"live", test_live}, {"faults", test_live_with_faults}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "audit of a cluster", .pSetUpFunc = cluster_up, .pTearDownFunc = cluster_down,
             .pTests = tests});
