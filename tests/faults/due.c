/* SPDX-License-Identifier: MIT */
#include "tests/faults/due.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/schedule/schedule.h"
#include "tests/harness/host/host-clock.h"
#include "tests/harness/test.h"

#define MINUTE (60 * USEC_PER_SEC)
#define LASTS USEC_PER_SEC
#define BEFORE (50 * USEC_PER_MSEC) /* from the time to which the clock is set to a due time */
#define FIRST                                                                                               \
    INT64_C(1735693200) /* 2025-01-01T01:00:00Z, so that the audit sees no clock set back */
#define MINUTES 128
#define AT_ONCE 3 /* each third time, so many minutes pass at once */
#define ATTEMPTS 3
#define PATIENCE (20 * USEC_PER_SEC)

enum { CATCHES_UP, FAILS, REPLACES, JOBS };
static const char *const names[JOBS] = {"d-catch", "d-fail", "d-replace"};
#define SHARED "d-any"

const char *due_jobs(void) {
    static char text[4096];
    char witness[512];

    snprintf(witness, sizeof(witness),
             "output = \"null\" stop-timeout = \"300ms\" command = {\"%s/tests/tools/witness\", \"%s\", "
             "\"--id\", \"@due\"",
             cluster.build, cluster.witness);
    snprintf(
        text, sizeof(text),
        "zone = \"UTC\"\n"
        "job \"d-catch\" { %s, \"--for\", \"50\"} schedule = {\"* * * * *\"} backlog = 3 overlap = "
        "\"queue\" }\n"
        "job \"d-fail\" { %s, \"--exit\", \"5\"} schedule = {\"* * * * *\"} retry = %d retry-delay = "
        "\"50ms\" "
        "pools = {\"db\"} on-failure = {\"d-hook\"} }\n"
        "job \"d-replace\" { %s, \"--for\", \"1500\"} schedule = {\"* * * * *\"} overlap = \"replace\" }\n"
        "job \"d-hook\" { %s} }\n"
        "job \"" SHARED "\" { %s, \"--for\", \"100\"} schedule = {\"* * * * *\"} on = \"any\" }\n",
        witness, witness, ATTEMPTS - 1, witness, witness, witness);
    return text;
}

/* --- time --- */

void due_up(struct load *l) {
    for (size_t i = 0; i < LOAD_HOSTS; i++) {
        host_clock_give(l->hosts[i].host);
        host_clock_set_realtime(l->hosts[i].host, (usec_t) FIRST * USEC_PER_SEC - MINUTE / 2);
    }
}

usec_t due_turn(struct load *l) {
    usec_t now = clock_boottime();

    if (l->n_minutes + AT_ONCE > MINUTES)
        return USEC_INFINITY;
    if (now < l->next_minute)
        return l->next_minute;
    if (++l->n_turns % AT_ONCE == 0)
        l->n_minutes += AT_ONCE - 1;
    for (size_t i = 0; i < LOAD_HOSTS; i++)
        host_clock_set_realtime(l->hosts[i].host,
                                (usec_t) FIRST * USEC_PER_SEC + l->n_minutes * MINUTE - BEFORE);
    l->n_minutes++;
    l->next_minute = now + LASTS;
    return l->next_minute;
}

static bool is_alive(const struct load_host *h) {
    return h->host->berthd && !h->host->berthd->ended && !h->host->abandoned;
}

static size_t count_runs(struct host *h, bool show) {
    struct child *c = berth_start(h, "runs --json");
    json_t *document;
    size_t n = 1;

    if (child_await(c, PATIENCE) && c->exit_code == 0 &&
        (document = json_loads(child_text(c, 1), 0, NULL))) {
        n = json_array_size(berth_at(document, "runs"));
        json_decref(document);
    }
    if (show && n > 0)
        printf("%s has runs: %s\n", h->name, child_text(c, 1));
    child_free(c);
    return n;
}

/* Returns SIZE_MAX if the field is not a due time of the test. */
static size_t minute_of(const char *line, const char *field) {
    int64_t at;

    if (schedule_parse_time(event_get(line, field), &at) < 0 || at < FIRST || (at - FIRST) / 60 >= MINUTES)
        return SIZE_MAX;
    return (size_t) ((at - FIRST) / 60);
}

static bool is_event(const char *line, const char *names_of_events) {
    char search[40];
    size_t n = strcspn(line, ":");

    snprintf(search, sizeof(search), " %.*s ", (int) (n < 32 ? n : 32), line);
    return strstr(names_of_events, search) != NULL;
}

/* An event `missed` may stand for several due times. */
static size_t last_minute(const char *line) {
    return is_event(line, " missed ") ? minute_of(line, "until") : minute_of(line, "due");
}

/* Marks the due times of the shared job that a host has decided or knows to be decided. A committed turn
 * whose lease is lost before the start is over (R18). */
static void read_decided(const char *log, bool decided[static MINUTES]) {
    char line[1024];

    for (const char *at = log; at && *at; at = *strchrnul(at, '\n') ? strchrnul(at, '\n') + 1 : NULL) {
        snprintf(line, sizeof(line), "%.*s", (int) strcspn(at, "\n"), at);
        if (!strstr(line, " job=" SHARED " ") ||
            !is_event(line, " started exited withdrawn refused skipped missed turn-taken lease-lost "))
            continue;
        for (size_t m = minute_of(line, "due"); m < MINUTES && m <= last_minute(line); m++)
            decided[m] = true;
    }
}

/* Returns the first minute whose due time of the shared job no host has decided; l->n_minutes: none. */
static size_t first_undecided(const struct load *l) {
    bool decided[MINUTES] = {};
    size_t m = 0;

    for (size_t i = 0; i < LOAD_HOSTS; i++) {
        const struct host *h = l->hosts[i].host;

        read_decided(h->log.data, decided);
        read_decided(h->berthd ? child_text(h->berthd, 2) : NULL, decided);
    }
    while (m < l->n_minutes && decided[m])
        m++;
    return m;
}

void due_settle(struct load *l) {
    usec_t patience = clock_boottime() + PATIENCE;

    while (first_undecided(l) < l->n_minutes && clock_boottime() < patience)
        load_turn(l, clock_boottime() + 100 * USEC_PER_MSEC);
    for (size_t i = 0; i < LOAD_HOSTS; i++) {
        usec_t until = clock_boottime() + PATIENCE;

        while (is_alive(&l->hosts[i]) && count_runs(l->hosts[i].host, false) > 0 && clock_boottime() < until)
            load_turn(l, clock_boottime() + 20 * USEC_PER_MSEC);
        if (is_alive(&l->hosts[i]))
            TEST_INT(count_runs(l->hosts[i].host, true), 0);
    }
}

/* --- events of one host --- */

static struct journal {
    bool due[JOBS][MINUTES];
    bool begun[MINUTES][ATTEMPTS + 2],
        failed[MINUTES][ATTEMPTS + 2]; /* of d-fail, by attempt from 1 */
    bool gave_up[MINUTES], hook[MINUTES];
    char last_run[MINUTES][ID_TEXT_SIZE]; /* the run whose end the hook is for */
} journal;

static void read_hook(const char *line) {
    const char *of = event_get(line, "of_run");

    for (size_t m = 0; m < MINUTES && *of; m++)
        if (strcmp(journal.last_run[m], of) == 0)
            journal.hook[m] = true;
}

static void read_fails(const char *line, size_t minute) {
    uint64_t attempt = event_get_u64(line, "attempt");

    attempt = attempt > 0 ? attempt : 1;
    if (attempt > ATTEMPTS)
        return;
    if (is_event(line, " gave-up ")) {
        journal.gave_up[minute] = true;
        if (strcmp(event_get(line, "reason"), "attempts") == 0)
            snprintf(journal.last_run[minute], ID_TEXT_SIZE, "%s", event_get(line, "run"));
    } else if (is_event(line, " started exited withdrawn ")) {
        journal.begun[minute][attempt] = true;
        if (is_event(line, " exited ") && strcmp(event_get(line, "result"), "failure") == 0)
            journal.failed[minute][attempt] = true;
    }
}

static void read_line(const char *line) {
    const char *name = event_get(line, "job");
    size_t job = 0, first, last;

    if (strcmp(name, "d-hook") == 0 && is_event(line, " started exited withdrawn skipped refused "))
        read_hook(line);
    while (job < JOBS && strcmp(event_get(line, "job"), names[job]) != 0)
        job++;
    first = job < JOBS ? minute_of(line, "due") : SIZE_MAX;
    if (first == SIZE_MAX)
        return;
    last = last_minute(line);
    if (last != SIZE_MAX && is_event(line, " started exited withdrawn refused skipped missed "))
        for (size_t m = first; m <= last; m++)
            journal.due[job][m] = true;
    if (job == FAILS)
        read_fails(line, first);
}

/* --- verdicts --- */

static void complain(struct verdict *ret, const struct load_host *h, size_t minute, const char *what) {
    if (ret->n_due_lost++ == 0)
        snprintf(ret->first_due, sizeof(ret->first_due), "%s, minute %zu: %s", h->host->name, minute, what);
}

static void judge_host(const struct load *l, const struct load_host *h, struct verdict *ret) {
    char text[96];

    for (size_t m = 0; m < l->n_minutes; m++) {
        for (size_t j = 0; j < JOBS; j++) {
            ret->n_due++;
            snprintf(text, sizeof(text), "%s neither began nor was missed", names[j]);
            if (!journal.due[j][m])
                complain(ret, h, m, text);
        }
        for (size_t a = 1; a < ATTEMPTS; a++)
            if (journal.failed[m][a] && !journal.begun[m][a + 1] && !journal.gave_up[m])
                complain(ret, h, m, "no attempt followed a failed one");
        if (journal.last_run[m][0] && !journal.hook[m])
            complain(ret, h, m, "the hook of the last attempt did not begin");
    }
}

void due_judge(const struct load *l, char *const logs[static LOAD_HOSTS], struct verdict *ret) {
    size_t undecided = first_undecided(l);

    ret->n_due += l->n_minutes;
    if (undecided < l->n_minutes)
        complain(ret, &l->hosts[0], undecided, SHARED " neither began on any host nor was missed");
    for (size_t i = 0; i < LOAD_HOSTS; i++) {
        char *copy = strdup(logs[i]), *rest = copy;

        journal = (struct journal){};
        for (char *line; (line = strsep(&rest, "\n"));)
            if (strstr(line, " job=d-"))
                read_line(line);
        free(copy);
        if (is_alive(&l->hosts[i]))
            judge_host(l, &l->hosts[i], ret);
    }
}
