/* SPDX-License-Identifier: MIT */

/* berthd is killed before one of its effects (writes, sends, syncs, renames, removals) around a due time,
 * from the wake-up over retries and hooks to the last release. The command of each due time, attempt and
 * hook runs once. $DUE_DEATHS: the number of effects, evenly spread (20); "60x100": 60 effects, 100 times
 * each, with the effects next to them. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/schedule/schedule.h"
#include "tests/harness/host/host-clock.h"
#include "tests/harness/test.h"
#include "tests/harness/judge/witness.h"

#define HOUR (3600 * USEC_PER_SEC)
#define BEFORE (30 * USEC_PER_MSEC)  /* from the time to which the clock is set to a due time */
#define FIRST "2025-01-01T01:00:00Z" /* so that the audit sees no clock set back */
#define EACH_HOUR 9U                 /* commands */
#define MANY 1000000U
#define PATIENCE (30 * USEC_PER_SEC)

static struct host *ant;

static void up(void) {
    cluster_up_without_redis();
}

static const char *witness(const char *words) {
    static char text[512];

    snprintf(text, sizeof(text),
             "command = {\"%s/tests/tools/witness\", \"%s\", \"--id\", \"@due\", %s} output = \"null\"",
             cluster.build, cluster.witness, words);
    return text;
}

static void start_host(usec_t first) {
    char plain[512], tried[512], late[512];

    snprintf(plain, sizeof(plain), "%s", witness("\"--for\", \"0\""));
    snprintf(tried, sizeof(tried), "%s", witness("\"--exit\", \"3\""));
    snprintf(late, sizeof(late), "%s", witness("\"--for\", \"1\""));
    ant = host_add_alone(
        "ant",
        "zone = \"UTC\"\npool \"slot\" { limit = 2 scope = \"host\" }\n"
        "job \"plain\" { %s schedule = {\"0 * * * *\"} pools = {\"slot\"} overlap = \"allow\" on-success = "
        "{\"note\"} }\n"
        "job \"tried\" { %s schedule = {\"0 * * * *\"} overlap = \"allow\" retry = 2 retry-delay = \"10ms\" "
        "on-failure = {\"note\"} }\n"
        "job \"late\" { %s schedule = {\"0,20,40 * * * *\"} catch-up = \"1d\" backlog = 50 overlap = "
        "\"queue\" }\n"
        "job \"note\" { %s }\n",
        plain, tried, late, witness("\"--for\", \"0\""));
    host_clock_give(ant);
    host_clock_set_realtime(ant, first - HOUR + USEC_PER_SEC);
    host_start(ant);
}

/* --- rounds --- */

/* Returns how many commands have ended. */
static unsigned count_ended(void) {
    static char path[128], *text;
    static size_t read_to;
    static unsigned n;
    static ino_t of;
    struct stat st;
    FILE *f;

    snprintf(path, sizeof(path), "%s/records", cluster.witness);
    f = fopen(path, "re");
    if (!f)
        return 0;
    if (fstat(fileno(f), &st) == 0 && st.st_ino != of) {
        of = st.st_ino;
        read_to = n = 0;
    }
    (void) fseek(f, (long) read_to, SEEK_SET);
    for (size_t size = 0; getline(&text, &size, f) > 0 && strchr(text, '\n');
         free(text), text = NULL, size = 0) {
        read_to += strlen(text);
        n += strncmp(text, "end ", 4) == 0;
    }
    free(text);
    text = NULL;
    (void) fclose(f);
    return n;
}

/* Starts berthd again, as a service manager does. */
static bool start_again(void) {
    if (!ant->berthd->ended)
        return false;
    host_mark(ant);
    child_reap_orphans(); /* or else thousands of zombies fill the table of processes */
    host_launch(ant);
    return true;
}

static unsigned go_on_until(unsigned ended) {
    usec_t until = clock_boottime() + PATIENCE;
    unsigned n_deaths = 0;

    while (count_ended() < ended && clock_boottime() < until) {
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
        n_deaths += start_again();
    }
    return n_deaths;
}

/* Stops the kills, and waits until berthd has the ends of all runs. */
static void settle(void) {
    usec_t until = clock_boottime() + PATIENCE;
    size_t n = 1;

    host_clock_end_berthd(ant, 0);
    while (n > 0 && clock_boottime() < until) {
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
        (void) start_again(); /* after the last kill */
        host_await(ant, "ready", " ");
        n = berth_count_runs(ant);
    }
    TEST_INT(n, 0);
}

static int by_id(const void *a, const void *b) {
    return strcmp(((const struct witness_run *) a)->id, ((const struct witness_run *) b)->id);
}

static void judge(unsigned n_rounds) {
    struct witness w = {0};

    witness_read(&w, cluster.witness);
    qsort(w.runs, w.n, sizeof(*w.runs), by_id);
    for (size_t i = 1; i < w.n; i++)
        if (strcmp(w.runs[i - 1].id, w.runs[i].id) == 0) {
            printf("%s ran twice\n", w.runs[i].id);
            CU_FAIL("a due time, an attempt or a hook began twice");
        }
    TEST_INT(w.n, n_rounds * EACH_HOUR);
    witness_done(&w);
}

static size_t log_end(void) {
    size_t mark = ant->mark, end;

    host_mark(ant);
    end = ant->mark;
    ant->mark = mark;
    return end;
}

/* Prints the messages of each berthd from there on. */
static void show_log(size_t from, bool has_died) {
    ant->mark = from;
    printf("berthd said:\n%s\n", host_log(ant));
    if (has_died)
        printf("the last one:\n%s\n", child_text(ant->berthd, 2));
}

/* Runs the n-th due time, from 0. Returns whether all of its commands have ended. */
static bool pass_hour(usec_t first, unsigned n, unsigned *n_deaths) {
    unsigned wanted = (n + 1) * EACH_HOUR, n_before = *n_deaths;
    size_t from = log_end();

    host_clock_set_realtime(ant, first + n * HOUR - BEFORE);
    *n_deaths += go_on_until(wanted);
    if (count_ended() >= wanted)
        return true;
    printf("due time %u: %u of %u commands ended\n", n, count_ended(), wanted);
    show_log(from, *n_deaths > n_before);
    CU_FAIL("a due time, an attempt or a hook was lost");
    return false;
}

/* Counts the effects of one due time without a kill. */
static unsigned count_effects(usec_t first) {
    unsigned n_deaths = 0;

    host_clock_end_berthd(ant, MANY);
    if (!pass_hour(first, 0, &n_deaths))
        return 0;
    host_await(ant, "released", "job=note of_job=tried");
    return MANY - host_clock_effects(ant);
}

static void deaths_at_due_times(void) {
    const char *wanted = getenv("DUE_DEATHS"), *times = wanted ? strchr(wanted, 'x') : NULL;
    unsigned n_steps = wanted ? (unsigned) strtoul(wanted, NULL, 10) : 20;
    unsigned n_rounds = n_steps * (times ? (unsigned) strtoul(times + 1, NULL, 10) : 1);
    unsigned n_effects, n_deaths = 0, n = 1;
    int64_t seconds;
    usec_t first;

    TEST_INT(schedule_parse_time(FIRST, &seconds), 0);
    first = (usec_t) seconds * USEC_PER_SEC;
    start_host(first);
    n_effects = count_effects(first);
    host_clock_end_berthd(ant, 0);
    for (bool ok = n_effects > 0; ok && n <= n_rounds; n++) {
        if (host_clock_effects(ant) == 0) /* or else the last kill has not come yet */
            host_clock_end_berthd(ant, 1 + ((n - 1) * n_effects / n_steps + (n - 1) / n_steps) % n_effects);
        ok = pass_hour(first, n, &n_deaths);
    }
    settle();
    printf("%u due times, %u effects each, berthd killed %u times\n", n, n_effects, n_deaths);
    CU_ASSERT(n_deaths >= n_rounds / 2);
    judge(n);
}

static CU_TestInfo tests[] = {{"deaths at due times", deaths_at_due_times}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "due-deaths", .pSetUpFunc = up, .pTearDownFunc = cluster_down, .pTests = tests});
