/* SPDX-License-Identifier: MIT */

/* What readers of events cost commands. Another client makes berthd log thousands of events a second. Rounds
 * without a reader alternate with rounds in which one reads, stops for a while, and goes on. Six workers
 * pass a permit of a host pool on in the meantime. A reader must know of each event that it has seen or
 * missed. */

#include "tests/bench/benches.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/client/client.h"
#include "base/socket.h"
#include "tests/bench/race.h"
#include "tests/harness/memory.h"

#define ROUNDS 8
#define ROUND (10 * USEC_PER_SEC)
#define STOPS_AFTER (2500 * USEC_PER_MSEC)
#define STOPPED (5 * USEC_PER_SEC)
#define QUIET (2 * USEC_PER_SEC) /* without an event: all have come */
#define BATCH 50                 /* calls, with two events each */
#define PERIOD (10 * USEC_PER_MSEC)
#define LOOKERS 60
#define LOOKED (10 * USEC_PER_SEC)

struct tally {
    unsigned long long first, last, seen, missed; /* first and last: BERTH_SEQ */
};

static pid_t child_start(void (*run)(const char *socket, int to), const char *socket, int *ret_from) {
    pid_t parent = getpid(), pid;
    int ends[2];

    if (pipe(ends) < 0 || (pid = fork()) < 0)
        rig_fail("no process");
    if (pid == 0) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) close(ends[0]);
        if (getppid() == parent)
            run(socket, ends[1]);
        _exit(0);
    }
    (void) close(ends[1]);
    *ret_from = ends[0];
    return pid;
}

static void child_end(pid_t pid, int from, const char *what, void *ret, size_t size) {
    if (read(from, ret, size) != (ssize_t) size)
        rig_fail("%s has failed", what);
    (void) close(from);
    (void) waitpid(pid, NULL, 0);
}

/* --- who makes berthd log --- */

static void await_replies(int fd, unsigned n) {
    char data[16384];

    while (n > 0) {
        ssize_t size = recv(fd, data, sizeof(data), 0);

        if (size <= 0)
            _exit(1);
        for (ssize_t i = 0; i < size; i++)
            n -= data[i] == '\0';
    }
}

/* Each call sets another limit, because berthd logs only changes. */
static void emit(const char *socket, int to) {
    int fd = socket_connect(socket, SOCK_STREAM);
    usec_t end = clock_boottime() + ROUND;
    unsigned long long n = 0;

    if (fd < 0 || fcntl(fd, F_SETFL, 0) < 0) /* it blocks */
        _exit(1);
    for (usec_t next = clock_boottime(), now; (now = clock_boottime()) < end; next += PERIOD) {
        char calls[BATCH * 96];
        size_t size = 0;

        if (now < next)
            (void) poll(NULL, 0, (int) ((next - now) / USEC_PER_MSEC));
        for (unsigned i = 0; i < BATCH; i++, n++)
            size +=
                (size_t) snprintf(
                    calls + size, sizeof(calls) - size,
                    "{\"method\":\"io.berth.SetLimit\",\"parameters\":{\"pool\":\"spare\",\"limit\":%u}}",
                    10 + (unsigned) (n % 2)) +
                1;
        if (send(fd, calls, size, MSG_NOSIGNAL) != (ssize_t) size)
            _exit(1);
        await_replies(fd, BATCH);
    }
    if (write(to, &n, sizeof(n)) != sizeof(n))
        _exit(1);
}

/* --- who reads --- */

static unsigned long long seq_of(const json_t *at) {
    const char *colon = json_is_string(at) ? strchr(json_string_value(at), ':') : NULL;

    return colon ? strtoull(colon + 1, NULL, 10) : 0;
}

static void take(struct tally *t, const json_t *params) {
    const json_t *event = json_object_get(params, "event");

    if (json_is_object(event)) {
        t->seen++;
        t->last = seq_of(json_object_get(event, "at"));
        return;
    }
    t->last = seq_of(json_object_get(params, "at"));
    t->missed += (unsigned long long) json_integer_value(json_object_get(params, "missed"));
    if (t->first == 0)
        t->first = t->last;
}

static void read_events(const char *socket, int to) {
    usec_t begun = clock_boottime();
    bool has_stopped = false;
    struct tally t = {0};
    struct client *c;

    /* Its own work takes no processor from the workers: this measures what berthd does for it. */
    (void) sched_setscheduler(0, SCHED_IDLE, &(struct sched_param) {0});
    client_set_socket(socket);
    if (client_connect(&c) < 0 || client_send(c, "io.berth.Events", NULL, CLIENT_MORE) < 0)
        _exit(1);
    for (;;) {
        _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
        int r = client_receive_until(c, &reply, clock_boottime() + QUIET);

        if (r == -ETIMEDOUT && clock_boottime() > begun + ROUND)
            break;
        if (r < 0 && r != -ETIMEDOUT)
            _exit(1);
        if (r == 0)
            take(&t, reply.params);
        if (!has_stopped && clock_boottime() > begun + STOPS_AFTER) {
            has_stopped = true;
            (void) poll(NULL, 0, (int) (STOPPED / USEC_PER_MSEC));
        }
    }
    client_free(c);
    if (write(to, &t, sizeof(t)) != sizeof(t))
        _exit(1);
}

/* --- rounds --- */

static void watch_rounds(struct report *r, struct race *race) {
    static struct race_gaps gaps[2];
    const char *socket = race->fleet.daemons[0].socket;
    unsigned long long calls = 0, lost = 0, missed = 0;

    for (size_t i = 0; i < ROUNDS; i++) {
        bool is_read = i % 2;
        unsigned long long n;
        struct tally t = {0};
        int from_reader = -1, from;
        pid_t reader = is_read ? child_start(read_events, socket, &from_reader) : 0;
        pid_t emitter = child_start(emit, socket, &from);

        race_for(race, RACE_HOST, ROUND - USEC_PER_SEC, &gaps[is_read]);
        child_end(emitter, from, "who sets limits", &n, sizeof(n));
        calls += n;
        if (!is_read)
            continue;
        child_end(reader, from_reader, "the reader", &t, sizeof(t));
        lost += t.last - t.first - t.seen - t.missed;
        missed += t.missed;
    }
    report_add(r, &(struct figure){"events while commands run on a host",
                                   2.0 * (double) calls * USEC_PER_SEC / ROUND / ROUNDS, "/s", NULL, 0,
                                   GOAL_VALUE_AT_LEAST, 10000});
    report_add(r, &(struct figure){"  hand-over in a host pool, p50, with a reader that stops for 5 s",
                                   quantile(gaps[1].usec, gaps[1].n, 0.5), "µs", "without",
                                   quantile(gaps[0].usec, gaps[0].n, 0.5), GOAL_NONE, 0});
    report_add(r, &(struct figure){"  hand-over in a host pool, p99, with a reader that stops for 5 s",
                                   quantile(gaps[1].usec, gaps[1].n, 0.99), "µs", "without",
                                   quantile(gaps[0].usec, gaps[0].n, 0.99), GOAL_RATIO_AT_MOST, 1.1});
    report_add(r, &(struct figure){"  missed events, counted in gaps", (double) missed, "",
                                   NULL, 0, GOAL_NONE, 0});
    report_add(r, &(struct figure){"  events neither read nor counted", (double) lost, "", NULL, 0,
                                   GOAL_VALUE_AT_MOST, 0});
}

/* --- many who look --- */

static uint64_t calls_of(struct fleet *f) {
    uint64_t calls;

    (void) rig_server_usec(&f->redis, "evalsha", &calls);
    return calls;
}

/* Reads pictures and drops them. */
static void look(const char *socket, int to) {
    struct client *clients[LOOKERS];
    struct pollfd waits[1] = {{.fd = to}};

    client_set_socket(socket);
    for (size_t i = 0; i < LOOKERS; i++)
        if (client_connect(&clients[i]) < 0 ||
            client_send(clients[i], "io.berth.Look", NULL, CLIENT_MORE) < 0)
            _exit(1);
    if (write(to, "l", 1) != 1)
        _exit(1);
    while (poll(waits, 1, 0) == 0) /* until the reader of the pipe is gone */
        for (size_t i = 0; i < LOOKERS; i++) {
            _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;

            if (client_receive_until(clients[i], &reply, clock_boottime() + 5 * USEC_PER_SEC) < 0 ||
                reply.error)
                _exit(1);
        }
}

static void lookers(struct report *r, struct race *race) {
    struct bench_daemon *d = &race->fleet.daemons[0];
    uint64_t calls;
    double cpu;
    char ready;
    int from;
    pid_t pid = child_start(look, d->socket, &from);

    if (read(from, &ready, 1) != 1)
        rig_fail("nobody looks");
    (void) poll(NULL, 0, 1500);
    calls = calls_of(&race->fleet);
    cpu = process_cpu(d->pid);
    (void) poll(NULL, 0, (int) (LOOKED / USEC_PER_MSEC));
    report_add(r, &(struct figure){"60 clients that look at a host, processor time of berthd",
                                   100 * (process_cpu(d->pid) - cpu) * USEC_PER_SEC / LOOKED, "%", NULL, 0,
                                   GOAL_VALUE_AT_MOST, 2});
    report_add(r, &(struct figure){"  calls of Redis",
                                   (double) (calls_of(&race->fleet) - calls) * USEC_PER_SEC / LOOKED, "/s",
                                   NULL, 0, GOAL_NONE, 0});
    report_add(r, &(struct figure){"  berthd's RSS", (double) memory_kib(d->pid, "VmRSS"), "KiB", NULL, 0,
                                   GOAL_VALUE_AT_MOST, 20480});
    (void) close(from);
    (void) waitpid(pid, NULL, 0);
}

void bench_watch(struct report *r) {
    struct race race;

    report_section(r, "readers of events");
    race_up(&race);
    lookers(r, &race);
    watch_rounds(r, &race);
    race_down(&race);
}
