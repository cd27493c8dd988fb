/* SPDX-License-Identifier: MIT */

/* The vocabulary of events and the readable lines of base/journal. */

#include "base/journal/event.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>

#include "base/journal/journal-stream.h"
#include "store/store.h"
#include "tests/harness/capture.h"
#include "tests/harness/test.h"

#define ID "0123456789abcdef0123456789abcdef"

static void test_message_ids(void) {
    for (int i = 0; i < EVENT_TYPES; i++) {
        CU_ASSERT(id_is_valid(event_message_id((enum event_type) i)));
        for (int k = 0; k < i; k++)
            CU_ASSERT(strcmp(event_message_id((enum event_type) i), event_message_id((enum event_type) k)) != 0);
    }
    TEST_STRING(event_message_id(EVENT_QUEUED), "ffb571613522331753fedd97a54fdb39");
}

/* `journalctl -p warning` shows each job that did not succeed, but no failure that the caller of `berth
 * run` sees. */
static void test_priorities_of_events(void) {
    static const struct {
        enum event_type type;
        const char *result;
        int of_job, of_caller;
    } rows[] = {
        {EVENT_EXITED, "success", LOG_INFO, LOG_INFO},          {EVENT_EXITED, "stopped", LOG_INFO, LOG_INFO},
        {EVENT_EXITED, "failure", LOG_WARNING, LOG_NOTICE},     {EVENT_EXITED, "timeout", LOG_WARNING, LOG_NOTICE},
        {EVENT_EXITED, "lease-lost", LOG_WARNING, LOG_NOTICE},  {EVENT_EXITED, "not-started", LOG_WARNING, LOG_NOTICE},
        {EVENT_EXITED, "guard-died", LOG_WARNING, LOG_WARNING}, {EVENT_WITHDRAWN, "queue-timeout", LOG_WARNING, LOG_NOTICE},
        {EVENT_WITHDRAWN, "stopped", LOG_INFO, LOG_INFO},       {EVENT_REFUSED, NULL, LOG_WARNING, LOG_INFO},
        {EVENT_STARTED, NULL, LOG_INFO, LOG_INFO},              {EVENT_LEASE_LOST, NULL, LOG_ERR, LOG_ERR},
    };

    for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
        TEST_INT(event_priority(&(struct event) {.type = rows[i].type, .result = rows[i].result}), rows[i].of_job);
        TEST_INT(event_priority(&(struct event) {.type = rows[i].type, .result = rows[i].result, .caller.is_there = true}), rows[i].of_caller);
    }
}

/* Checks the line that an event writes. */
static void emits(const struct event *event, const char *message, const char *expected) {
    _cleanup_(journal_freep) struct journal *journal = NULL;
    _cleanup_(events_freep) struct events *events = NULL;
    struct capture c;

    TEST_INT(journal_new(&journal, "test"), 0);
    TEST_INT(events_new(&events, journal, "ant", "demo"), 0);
    CU_ASSERT_PTR_EQUAL(events_get_journal(events), journal);
    capture_begin(&c);
    event_emit(events, event, "%s", message);
    _cleanup_free_ char *text = capture_end(&c);
    TEST_STRING(text, expected);
}

static void test_fields(void) {
    emits(&(struct event){.type = EVENT_READY, .limits = "db:4,own:1/host"}, "m",
          "ready: m host=ant namespace=demo limits=db:4,own:1/host seq=1\n");
    emits(&(struct event){.type = EVENT_GRANTED, .continues = true, .head_start_usec = 1500 * USEC_PER_MSEC}, "m",
          "granted: m host=ant namespace=demo head_start_ms=1500 on_lease_lost=continue seq=1\n");
    emits(&(struct event){.type = EVENT_READY}, "berthd is ready", "ready: berthd is ready host=ant namespace=demo seq=1\n");
    emits(&(struct event){.type = EVENT_GRANTED, .job = "pg-dump", .run = "0123", .pools = "db:2", .token = 1763640079123456,
                          .ticket = 1763640079000001, .clock = 1763640079000002, .took.has_wait = true, .took.wait_usec = 1999, .position = 3},
          "pg-dump may start",
          "granted: pg-dump may start job=pg-dump run=0123 pools=db:2 token=1763640079123456 ticket=1763640079000001 clock=1763640079000002 host=ant "
          "namespace=demo wait_ms=1 position=3 seq=1\n");
    emits(&(struct event){.type = EVENT_STARTED, .job = "copy@db1", .run = "0123", .origin.first_run = "4567"},
          "copy@db1 began",
          "started: copy@db1 began job=copy@db1 run=0123 host=ant namespace=demo first_run=4567 instance=db1 seq=1\n");
    emits(&(struct event){.type = EVENT_EXITED, .job = "a", .run = "b", .host = "bee", .exit.has_code = true, .exit.has_signal = true,
                          .exit.signal = 15, .caller.has_uid = true, .took.has_run = true, .took.run_usec = 2500000, .result = "failure",
                          .reason = "it said \"no\""},
          "a is over",
          "exited: a is over job=a run=b host=bee namespace=demo run_ms=2500 result=failure exit_code=0 signal=15 uid=0 "
          "reason=\"it said \\\"no\\\"\" seq=1\n");
}

static void test_sequence(void) {
    _cleanup_(journal_freep) struct journal *journal = NULL;
    _cleanup_(events_freep) struct events *events = NULL;
    struct capture c;

    TEST_INT(journal_new(&journal, "test"), 0);
    TEST_INT(events_new(&events, journal, "ant", "demo"), 0);
    capture_begin(&c);
    for (int i = 0; i < 3; i++)
        event_emit(events, &(struct event){.type = EVENT_READY}, "%d", i);
    _cleanup_free_ char *text = capture_end(&c);
    TEST_STRING(text, "ready: 0 host=ant namespace=demo seq=1\nready: 1 host=ant namespace=demo seq=2\n"
                      "ready: 2 host=ant namespace=demo seq=3\n");
}

/* Checks the line that an entry without an event writes. */
static void logs(int priority, const char *message, const struct journal_field *fields, size_t n, const char *expected) {
    _cleanup_(journal_freep) struct journal *journal = NULL;
    struct capture c;

    TEST_INT(journal_new(&journal, "test"), 0);
    capture_begin(&c);
    journal_send(journal, priority, NULL, NULL, message, fields, n);
    _cleanup_free_ char *text = capture_end(&c);
    TEST_STRING(text, expected);
}

static void test_priorities(void) {
    logs(LOG_CRIT, "x", NULL, 0, "error: x\n");
    logs(LOG_ERR, "x", NULL, 0, "error: x\n");
    logs(LOG_WARNING, "x", NULL, 0, "warning: x\n");
    logs(LOG_NOTICE, "x", NULL, 0, "x\n");
    logs(LOG_DEBUG, "x", NULL, 0, "x\n");
}

static void test_escapes(void) {
    logs(LOG_INFO, "two\nlines \"quoted\" \033[31m \303\244", NULL, 0,
         "two\\nlines \"quoted\" \\x1b[31m \\xc3\\xa4\n");
    logs(LOG_INFO, "m", (struct journal_field[]){{"BERTH_REASON", ""}, {"BERTH_RUN", "a b"}, {"OTHER", "a=b"}}, 3,
         "m reason=\"\" run=\"a b\" other=\"a=b\"\n");
    logs(LOG_INFO, "m", (struct journal_field[]){{"BERTH_REASON", "\\ \n\t\x7f"}}, 1, "m reason=\"\\\\ \\n\\t\\x7f\"\n");
}

static void test_long_line(void) {
    _cleanup_(journal_freep) struct journal *journal = NULL;
    char message[2 * PIPE_BUF];
    struct capture c;

    memset(message, 'x', sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    TEST_INT(journal_new(&journal, "test"), 0);
    capture_begin(&c);
    journal_log(journal, LOG_INFO, "%s", message);
    journal_send(journal, LOG_INFO, NULL, NULL, "m", &(struct journal_field){"A", message}, 1);
    _cleanup_free_ char *text = capture_end(&c);
    char *second = strchr(text, '\n') + 1;
    TEST_INT(second - text <= PIPE_BUF, 1);
    CU_ASSERT(strlen(second) <= PIPE_BUF);
    CU_ASSERT(strncmp(second, "m a=xxx", 7) == 0);
    TEST_STRING(second + strlen(second) - 7, "x[cut]\n");
}

/* JOURNAL_STREAM names standard error, but nothing listens on the journal's socket: lines go to standard error. */
static void test_journal_is_gone(void) {
    char stream[64];
    struct stat st;

    if (access("/run/systemd/journal/socket", F_OK) == 0)
        TEST_SKIP("this machine has a journal");
    struct capture c;
    _cleanup_(journal_freep) struct journal *journal = NULL;
    capture_begin(&c);
    CU_ASSERT(fstat(STDERR_FILENO, &st) == 0);
    snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t) st.st_dev, (uintmax_t) st.st_ino);
    CU_ASSERT(setenv("JOURNAL_STREAM", stream, 1) == 0);
    int r = journal_new(&journal, "test");
    journal_log(journal, LOG_WARNING, "hello");
    CU_ASSERT(unsetenv("JOURNAL_STREAM") == 0);
    _cleanup_free_ char *text = capture_end(&c);
    TEST_INT(r, 0);
    TEST_STRING(text, "warning: hello\n");
}

/* The number of lines that standard error refused comes before the next line. */
static void test_lost_lines(void) {
    _cleanup_(journal_freep) struct journal *journal = NULL;
    struct capture c;

    TEST_INT(journal_new(&journal, "test"), 0);
    capture_begin(&c);
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    CU_ASSERT(full >= 0 && dup2(full, STDERR_FILENO) >= 0);
    journal_log(journal, LOG_INFO, "one");
    journal_log(journal, LOG_INFO, "two");
    CU_ASSERT(dup2(c.file, STDERR_FILENO) >= 0);
    journal_log(journal, LOG_INFO, "three");
    journal_log(journal, LOG_INFO, "four");
    close_fd(full);
    _cleanup_free_ char *text = capture_end(&c);
    TEST_STRING(text, "error: 2 lines before this one were lost\nthree\nfour\n");
}

static void test_stream(void) {
    struct capture c;

    if (access("/run/systemd/journal/stdout", F_OK) == 0)
        TEST_SKIP("this machine has a journal");
    capture_begin(&c);
    int fd = journal_stream_open("job", ID, LOG_INFO), flags = fcntl(fd, F_GETFD);
    CU_ASSERT(write(fd, "output\n", 7) == 7);
    close_fd(fd);
    _cleanup_free_ char *text = capture_end(&c);
    CU_ASSERT(fd > STDERR_FILENO);
    TEST_INT(flags & FD_CLOEXEC, FD_CLOEXEC);
    TEST_STRING(text, "output\n");
}

static void test_refusal_names(void) {
    TEST_STRING(store_refusal_name(STORE_REFUSAL_BUSY), "busy");
    TEST_STRING(store_refusal_name(STORE_REFUSAL_QUEUE_FULL), "queue-full");
    TEST_STRING(store_refusal_name(STORE_REFUSAL_NO_MEMORY), "no-memory");
}

/* Another host may write any bytes into Redis; an event is UTF-8, because journalctl makes JSON of it. */
static void test_bytes(void) {
    emits(&(struct event){.type = EVENT_HOST_EXPIRED, .host = "b\xff\xfe" "e", .reason = "a\x1b[2J"}, "host b\xff" "e",
          "host-expired: host b?e host=b??e namespace=demo reason=a?[2J seq=1\n");
}

static CU_TestInfo tests[] = {
    {"priorities of events", test_priorities_of_events},
    {"message ids", test_message_ids},
    {"fields", test_fields},
    {"sequence", test_sequence},
    {"priorities", test_priorities},
    {"escapes", test_escapes},
    {"bytes", test_bytes},
    {"long line", test_long_line},
    {"journal is gone", test_journal_is_gone},
    {"lost lines", test_lost_lines},
    {"stream", test_stream},
    {"refusal names", test_refusal_names},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "event", .pTests = tests});
