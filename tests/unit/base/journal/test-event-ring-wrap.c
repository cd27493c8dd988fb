/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=malloc,--wrap=calloc,--wrap=clock_boottime */

/* The ring of the latest events: numbers, readers, bounds, and a lack of memory. */

#include "base/journal/event-ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/name.h"
#include "tests/harness/capture.h"
#include "tests/harness/test.h"
#include "tests/harness/wrap.h"

WRAP(FAULT_MEMORY, NULL, void *, malloc, (size_t size), (size))
WRAP(FAULT_MEMORY, NULL, void *, calloc, (size_t n, size_t size), (n, size))

static usec_t now = 1000 * USEC_PER_SEC;

usec_t __wrap_clock_boottime(void);
usec_t __wrap_clock_boottime(void) {
    return now;
}

static struct event_ring *ring;

struct counter {
    struct event_reader reader;
    unsigned n;
    bool leaves; /* after the first event */
};

static void count(struct event_reader *reader) {
    struct counter *counter = list_entry(reader, struct counter, reader);

    counter->n++;
    if (counter->leaves)
        event_ring_leave(ring, reader);
}

static void emit(const char *message) {
    struct journal_field fields[] = {{"BERTH_JOB", "pg-dump"}, {"BERTH_POOLS", "db:2"}};

    (void) event_ring_draw(ring);
    event_ring_add(ring, EVENT_GRANTED, message, fields, ELEMENTSOF(fields));
}

static void emit_many(unsigned n) {
    while (n-- > 0)
        emit("m");
}

static void begin(void) {
    TEST_INT(event_ring_new(&ring), 0);
}

static void end(void) {
    ring = event_ring_free(ring);
}

/* Without a reader an event costs its number and no memory. */
static void test_nobody_reads(void) {
    begin();
    fault_begin(FAULT_MEMORY, 1, 100);
    emit_many(10);
    CU_ASSERT_FALSE(fault_end());
    TEST_INT(event_ring_last(ring), 10);
    TEST_INT(event_ring_first(ring), 11);
    CU_ASSERT_PTR_NULL(event_ring_get(ring, 10));
    end();
}

/* Returns the number that the kept event has; 0: it is not kept. */
static uint64_t kept_number(uint64_t seq) {
    const struct kept_event *event = event_ring_get(ring, seq);

    return event ? event->seq : 0;
}

static const char *get_field(const struct kept_event *event, const char *name) {
    size_t length = strlen(name);

    for (const char *field = event->fields; field[0]; field += strlen(field) + 1)
        if (strncmp(field, name, length) == 0 && field[length] == '=')
            return field + length + 1;
    return NULL;
}

static void test_fields(void) {
    struct counter counter = {.reader.on_event = count};
    const struct kept_event *event;

    begin();
    emit_many(5);
    TEST_INT(event_ring_join(ring, &counter.reader), 0);
    TEST_INT(event_ring_first(ring), 6);
    emit("pg-dump may start");
    TEST_INT(counter.n, 1);
    event = event_ring_get(ring, 6);
    CU_ASSERT_PTR_NOT_NULL_FATAL(event);
    TEST_INT(event->seq, 6);
    TEST_INT(event->type, EVENT_GRANTED);
    CU_ASSERT(event->realtime > 0);
    TEST_STRING(event->message, "pg-dump may start");
    TEST_STRING(get_field(event, "BERTH_JOB"), "pg-dump");
    TEST_STRING(get_field(event, "BERTH_POOLS"), "db:2");
    CU_ASSERT_PTR_NULL(get_field(event, "BERTH_POOL"));
    CU_ASSERT_PTR_NULL(event_ring_get(ring, 5));
    CU_ASSERT_PTR_NULL(event_ring_get(ring, 7));
    end();
}

/* Each new event replaces the oldest one. */
static void test_full(void) {
    struct counter counter = {.reader.on_event = count};

    begin();
    TEST_INT(event_ring_join(ring, &counter.reader), 0);
    emit_many(EVENT_RING_MAX);
    TEST_INT(event_ring_first(ring), 1);
    emit_many(10);
    TEST_INT(event_ring_first(ring), 11);
    TEST_INT(event_ring_last(ring), EVENT_RING_MAX + 10);
    CU_ASSERT_PTR_NULL(event_ring_get(ring, 10));
    for (uint64_t seq = 11; seq <= event_ring_last(ring); seq++)
        TEST_INT(kept_number(seq), seq);
    TEST_INT(counter.n, EVENT_RING_MAX + 10);
    end();
}

/* Large events count by their bytes; the latest one is always kept. */
static void test_bytes(void) {
    struct counter counter = {.reader.on_event = count};
    size_t size = EVENT_RING_BYTES / 4;
    char *large = malloc(EVENT_RING_BYTES + 100);

    begin();
    TEST_INT(event_ring_join(ring, &counter.reader), 0);
    memset(large, 'x', EVENT_RING_BYTES + 100);
    large[size] = '\0';
    for (int i = 0; i < 10; i++)
        emit(large);
    TEST_INT(event_ring_last(ring) + 1 - event_ring_first(ring), 3);
    large[size] = 'x';
    large[EVENT_RING_BYTES + 99] = '\0';
    emit(large);
    TEST_INT(event_ring_first(ring), event_ring_last(ring));
    TEST_INT(strlen(event_ring_get(ring, event_ring_last(ring))->message), EVENT_RING_BYTES + 99);
    emit_many(2);
    TEST_INT(event_ring_last(ring) + 1 - event_ring_first(ring), 2);
    free(large);
    end();
}

static void test_readers(void) {
    struct counter stays = {.reader.on_event = count}, leaves = {.reader.on_event = count, .leaves = true};
    struct counter never = {};

    begin();
    TEST_INT(event_ring_join(ring, &leaves.reader), 0);
    TEST_INT(event_ring_join(ring, &stays.reader), 0);
    TEST_INT(event_ring_readers(ring), 2);
    emit_many(3);
    TEST_INT(leaves.n, 1);
    TEST_INT(stays.n, 3);
    TEST_INT(event_ring_readers(ring), 1);
    event_ring_leave(ring, &leaves.reader);
    event_ring_leave(ring, &never.reader);
    TEST_INT(event_ring_readers(ring), 1);
    event_ring_leave(ring, &stays.reader);
    end();
}

/* A reader that comes back soon misses nothing. Later the ring is freed, and the numbers show how many
 * events were missed. */
static void test_kept_for_a_while(void) {
    struct counter counter = {.reader.on_event = count};

    begin();
    TEST_INT(event_ring_join(ring, &counter.reader), 0);
    emit_many(2);
    event_ring_leave(ring, &counter.reader);
    now += EVENT_RING_KEEP - 1;
    emit_many(2);
    TEST_INT(event_ring_first(ring), 1);
    TEST_INT(counter.n, 2);
    now++;
    emit_many(2);
    TEST_INT(event_ring_first(ring), 7);
    TEST_INT(event_ring_join(ring, &counter.reader), 0);
    emit_many(1);
    TEST_INT(event_ring_first(ring), 7);
    TEST_INT(kept_number(7), 7);
    now += 2 * EVENT_RING_KEEP; /* a reader that stays keeps the ring */
    emit_many(1);
    TEST_INT(event_ring_first(ring), 7);
    end();
}

/* An event that could not be kept is missing, as are those before it. */
static void test_no_memory(void) {
    struct counter counter = {.reader.on_event = count};

    fault_begin(FAULT_MEMORY, 1, 1);
    TEST_INT(event_ring_new(&ring), -ENOMEM);
    CU_ASSERT(fault_end());
    begin();
    fault_begin(FAULT_MEMORY, 1, 1);
    TEST_INT(event_ring_join(ring, &counter.reader), -ENOMEM);
    CU_ASSERT(fault_end());
    TEST_INT(event_ring_readers(ring), 0);
    TEST_INT(event_ring_join(ring, &counter.reader), 0);
    emit_many(3);
    fault_begin(FAULT_MEMORY, 1, 1);
    emit_many(1);
    CU_ASSERT(fault_end());
    TEST_INT(counter.n, 4);
    TEST_INT(event_ring_first(ring), 5);
    CU_ASSERT_PTR_NULL(event_ring_get(ring, 4));
    emit_many(1);
    TEST_INT(event_ring_first(ring), 5);
    TEST_INT(kept_number(5), 5);
    end();
}

static void expect_name(const char *pid, const char *invocation, bool is_taken) {
    TEST_INT(setenv("SYSTEMD_EXEC_PID", pid, 1), 0);
    TEST_INT(setenv("INVOCATION_ID", invocation, 1), 0);
    begin();
    TEST_INT(strlen(event_ring_name(ring)), EVENT_RING_NAME_SIZE - 1);
    TEST_INT(strncmp(event_ring_name(ring), invocation, 8) == 0, is_taken);
    end();
}

/* A berthd that a shell of a service starts inherits the service's invocation id, which is not its own. */
static void test_name(void) {
    char pid[24];

    snprintf(pid, sizeof(pid), "%d", (int) getpid());
    expect_name(pid, "0123456789abcdef0123456789abcdef", true);
    expect_name("1", "0123456789abcdef0123456789abcdef", false);
    expect_name(pid, "0123456789abcdef", false);
    TEST_INT(unsetenv("SYSTEMD_EXEC_PID"), 0);
    TEST_INT(unsetenv("INVOCATION_ID"), 0);
}

/* event_emit() adds each event to the ring, with its fields in the journal. */
static void test_emitted(void) {
    _cleanup_(journal_freep) struct journal *journal = NULL;
    _cleanup_(events_freep) struct events *events = NULL;
    struct counter counter = {.reader.on_event = count};
    const struct kept_event *event;
    struct capture c;

    TEST_INT(journal_new(&journal, "test"), 0);
    TEST_INT(events_new(&events, journal, "ant", "demo"), 0);
    TEST_INT(event_ring_join(events_get_ring(events), &counter.reader), 0);
    capture_begin(&c);
    event_emit(events, &(struct event) {.type = EVENT_EXITED, .job = "a", .run = "0123"}, "%s is over", "a");
    free(capture_end(&c));
    event = event_ring_get(events_get_ring(events), 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(event);
    TEST_STRING(event->message, "a is over");
    TEST_STRING(event->fields, "BERTH_EVENT=exited");
    TEST_STRING(get_field(event, "BERTH_RUN"), "0123");
    TEST_STRING(get_field(event, "BERTH_HOST"), "ant");
    TEST_STRING(get_field(event, "BERTH_SEQ"), "1");
    event_ring_leave(events_get_ring(events), &counter.reader);
}

static CU_TestInfo tests[] = {
    {"nobody reads", test_nobody_reads},
    {"fields", test_fields},
    {"full", test_full},
    {"bytes", test_bytes},
    {"readers", test_readers},
    {"kept for a while", test_kept_for_a_while},
    {"no memory", test_no_memory},
    {"name", test_name},
    {"emitted", test_emitted},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "event-ring", .pTests = tests});
