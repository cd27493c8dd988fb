/* SPDX-License-Identifier: MIT */

/* Readers of io.berth.Events stop reading, end, or are too many. berthd keeps bounded buffers for them,
 * serves other clients, and counts the events that a reader misses. */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/journal/event-ring.h"
#include "base/socket.h"
#include "tests/harness/host/host.h"
#include "tests/harness/memory.h"
#include "tests/harness/test.h"

#define READERS_MAX 64
#define N_EVENTS 6000u /* more than the ring and the buffers of a connection keep */
/* With the ring, berthd grows by 1.3 MiB; with all unread events of a reader it would grow by 4.5 MiB.
 * AddressSanitizer keeps freed memory, so the bound is off there. */
#if defined(__SANITIZE_ADDRESS__)
#define GROWTH_MAX_KB (1024 * 1024)
#else
#define GROWTH_MAX_KB 2560
#endif
#define EVENTS                                                                                              \
    "{\"method\":\"io.berth.Events\",\"more\":true,\"parameters\":{\"events\":[\"operated\",\"limit-changed\"]}}"

static struct host *ant_up(void) {
    struct host *ant = host_add_alone("ant", "pool \"db\" { limit = 4 scope = \"host\" }\n");

    host_start(ant);
    return ant;
}

/* --- a connection of this test --- */

struct wire {
    int fd;
    char text[1 << 20];
    size_t size;
};

static void wire_call(struct wire *p, const char *call) {
    TEST_INT(send(p->fd, call, strlen(call) + 1, MSG_NOSIGNAL), strlen(call) + 1);
}

static struct wire *wire_new(struct host *h) {
    struct wire *p = calloc(1, sizeof(*p));

    TEST_FATAL(p != NULL, "no memory");
    p->fd = socket_connect(h->socket, SOCK_STREAM);
    TEST_FATAL(p->fd >= 0, "no connection");
    return p;
}

static struct wire *wire_free(struct wire *p) {
    if (p->fd >= 0)
        close(p->fd);
    free(p);
    return NULL;
}

/* Awaits and returns the next reply; the caller frees it. */
static json_t *wire_reply(struct wire *p) {
    json_t *reply;
    char *end;

    while (!(end = memchr(p->text, '\0', p->size))) {
        struct pollfd waits = {.fd = p->fd, .events = POLLIN};
        ssize_t n;

        TEST_FATAL(poll(&waits, 1, (int) (HOST_PATIENCE / USEC_PER_MSEC)) == 1, "no reply");
        n = recv(p->fd, p->text + p->size, sizeof(p->text) - p->size, 0);
        TEST_FATAL(n > 0, "the connection has ended");
        p->size += (size_t) n;
    }
    reply = json_loads(p->text, 0, NULL);
    p->size -= (size_t) (end + 1 - p->text);
    memmove(p->text, end + 1, p->size);
    return reply;
}

/* Returns a connection that has called io.berth.Events and received the first reply. */
static struct wire *reader_new(struct host *h) {
    struct wire *p = wire_new(h);
    json_t *reply;

    wire_call(p, EVENTS);
    reply = wire_reply(p);
    AT_INT(reply, "parameters.missed", 0);
    CU_ASSERT(json_is_true(json_object_get(reply, "continues")));
    json_decref(reply);
    return p;
}

/* Makes berthd log n events, two for each call, and waits for the replies. n is even. */
static void emit(struct host *h, unsigned n) {
    static unsigned limit = 10; /* berthd logs changes, so each call sets another limit */
    struct wire *p = wire_new(h);
    char call[128];

    for (unsigned i = 0; i < n / 2; i++) {
        json_t *reply;

        (void) snprintf(call, sizeof(call),
                        "{\"method\":\"io.berth.SetLimit\",\"parameters\":{\"pool\":\"db\",\"limit\":%u}}",
                        limit);
        limit = limit == 10 ? 11 : 10;
        wire_call(p, call);
        reply = wire_reply(p);
        CU_ASSERT(json_object_get(reply, "error") == NULL);
        json_decref(reply);
        if (i % 32 == 0)
            child_turn(clock_boottime()); /* reads what berthd logs */
    }
    wire_free(p);
}

static int readers(struct host *h) {
    const char *value;

    TEST_INT(berth(h, "metrics"), 0);
    value = strstr(berth_out, "\nberth_watchers ");
    return value ? atoi(value + strlen("\nberth_watchers ")) : -1;
}

static void await_readers(struct host *h, int n) {
    usec_t until = usec_add(clock_boottime(), HOST_PATIENCE);

    while (readers(h) != n)
        TEST_FATAL(clock_boottime() < until, "another number of readers");
}

/* --- tests --- */

struct sum {
    unsigned long long seen, missed, gaps, last;
};

/* Reads replies up to the event with this BERTH_SEQ, and checks that none comes twice. */
static struct sum read_until(struct wire *p, unsigned long long last) {
    struct sum sum = {};

    while (sum.last < last) {
        json_t *reply = wire_reply(p);
        const char *at = json_string_value(berth_at(reply, "parameters.at"));

        if (!at) {
            at = json_string_value(berth_at(reply, "parameters.event.at"));
            sum.seen++;
            CU_ASSERT(strtoull(strchr(at, ':') + 1, NULL, 10) > sum.last);
        } else {
            sum.missed += (unsigned long long) berth_number_at(reply, "parameters.missed");
            sum.gaps++;
        }
        sum.last = strtoull(strchr(at, ':') + 1, NULL, 10);
        json_decref(reply);
    }
    return sum;
}

static void test_stopped(void) {
    struct host *ant = ant_up();
    struct wire *stopped = reader_new(ant), *reader;
    struct sum sum;
    unsigned long before;

    emit(ant, 10);
    before = memory_kib(ant->berthd->pid, "VmRSS");
    emit(ant, N_EVENTS - 10);
    CU_ASSERT(memory_kib(ant->berthd->pid, "VmRSS") < before + GROWTH_MAX_KB);
    TEST_INT(berth(ant, "pools"), 0); /* berthd serves other clients */
    TEST_INT(berth(ant, "run -p db -- true"), 0);
    TEST_INT(readers(ant), 1);
    reader = reader_new(ant);
    emit(ant, 2);
    sum = read_until(reader, 1 + N_EVENTS + 4 + 2);
    TEST_INT(sum.seen, 2);
    TEST_INT(sum.missed, 0);
    sum = read_until(stopped, 1 + N_EVENTS + 4 + 2);
    printf("  seen %llu, missed %llu in %llu gaps, berthd grew from %lu to %lu KiB\n", sum.seen, sum.missed, sum.gaps,
           before, memory_kib(ant->berthd->pid, "VmRSS"));
    TEST_INT(sum.seen + sum.missed, N_EVENTS + 2);
    TEST_INT(sum.gaps, 1);
    CU_ASSERT(sum.missed > 0 && sum.seen > EVENT_RING_MAX - 8);
    emit(ant, 2);
    TEST_INT(read_until(stopped, 1 + N_EVENTS + 4 + 4).seen, 2);
    wire_free(stopped);
    wire_free(reader);
    await_readers(ant, 0);
}

/* A burst fits into the ring: the reader gets all events, also those that did not fit into the buffers. */
static void test_late(void) {
    struct host *ant = ant_up();
    struct wire *late = reader_new(ant);
    struct sum sum;

    emit(ant, 3000);
    sum = read_until(late, 1 + 3000);
    TEST_INT(sum.seen, 3000);
    TEST_INT(sum.gaps, 0);
    wire_free(late);
    await_readers(ant, 0);
}

/* berthd ends in time although a reader has not read its events. */
static void test_berthd_ends(void) {
    struct host *ant = ant_up();
    struct wire *stopped = reader_new(ant);

    emit(ant, 3000);
    host_stop(ant);
    wire_free(stopped);
}

static void test_ends(void) {
    struct host *ant = ant_up();
    struct wire *reader = reader_new(ant), *other = reader_new(ant);
    json_t *reply;

    TEST_INT(readers(ant), 2);
    reader = wire_free(reader);
    await_readers(ant, 1);
    TEST_INT(shutdown(other->fd, SHUT_WR), 0);
    emit(ant, 2);
    json_decref(wire_reply(other));
    reply = wire_reply(other);
    AT_STRING(reply, "parameters.event.event", "limit-changed");
    AT_STRING(reply, "parameters.event.fields.BERTH_POOLS", "db");
    AT_NULL(reply, "parameters.missed");
    json_decref(reply);
    other = wire_free(other);
    emit(ant, 4);
    await_readers(ant, 0);
}

static void test_too_many(void) {
    struct host *ant = ant_up();
    struct wire *all[READERS_MAX];

    for (size_t i = 0; i < ELEMENTSOF(all); i++)
        all[i] = reader_new(ant);
    TEST_INT(berth(ant, "watch"), 69);
    TEST_STRING(berth_err, "berth: 64 clients watch, as many as berthd serves\n");
    TEST_INT(berth(ant, "pools"), 0);
    all[0] = wire_free(all[0]);
    await_readers(ant, READERS_MAX - 1);
    TEST_INT(berth(ant, "watch --timeout 50ms"), 75);
    for (size_t i = 1; i < ELEMENTSOF(all); i++)
        all[i] = wire_free(all[i]);
    await_readers(ant, 0);
}

static void test_one_reply(void) {
    struct host *ant = ant_up();
    struct wire *p = wire_new(ant);
    json_t *reply;

    wire_call(p, "{\"method\":\"io.berth.Events\"}");
    reply = wire_reply(p);
    AT_STRING(reply, "error", "io.berth.BadRequest");
    json_decref(reply);
    wire_call(p, "{\"method\":\"io.berth.Events\",\"more\":true,\"parameters\":{\"since\":7}}");
    reply = wire_reply(p);
    AT_STRING(reply, "error", "org.varlink.service.InvalidParameter");
    json_decref(reply);
    wire_free(p);
    TEST_INT(readers(ant), 0);
}

/* `berth watch` prints how many events it missed while it was stopped. */
static void test_stopped_verb(void) {
    struct host *ant = ant_up();
    struct child *watch = berth_start(ant, "watch --json -n %u", EVENT_RING_MAX);
    const char *missed;

    await_readers(ant, 1);
    child_kill(watch, SIGSTOP);
    emit(ant, 2 * N_EVENTS);
    child_kill(watch, SIGCONT);
    TEST_INT(berth_end(watch), 0);
    missed = strstr(berth_out, "\"event\": \"gap\", \"message\": \"");
    CU_ASSERT(missed && atoi(missed + strlen("\"event\": \"gap\", \"message\": \"")) > 0);
}

static CU_TestInfo tests[] = {
    {"a peer that stops reading", test_stopped},
    {"a peer that reads late", test_late},
    {"berthd ends while a peer does not read", test_berthd_ends},
    {"a peer that closes", test_ends},
    {"too many readers", test_too_many},
    {"a call for one reply", test_one_reply},
    {"berth watch is stopped and goes on", test_stopped_verb},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "watch slow", .pSetUpFunc = cluster_up_without_redis, .pTearDownFunc = cluster_down,
             .pTests = tests});
