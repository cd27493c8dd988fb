/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray,--wrap=strdup */

/* The scheduler, while each of its allocations fails once. It asks for each shared due time once, or logs
 * it as missed once. Retries and a reload are tested, too. */

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/removals.h"
#include "daemon/jobs/job.h"
#include "daemon/jobs/scheduler.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"
#include "tests/harness/wrap.h"

WRAP(FAULT_MEMORY, NULL, void *, malloc, (size_t size), (size))
WRAP(FAULT_MEMORY, NULL, void *, calloc, (size_t n, size_t size), (n, size))
WRAP(FAULT_MEMORY, NULL, void *, realloc, (void *old, size_t size), (old, size))
WRAP(FAULT_MEMORY, NULL, void *, reallocarray, (void *old, size_t n, size_t size), (old, n, size))
WRAP(FAULT_MEMORY, NULL, char *, strdup, (const char *text), (text))

#define FIRST INT64_C(1735693200) /* 2025-01-01T01:00:00Z */
#define HOUR INT64_C(3600)
#define ROUNDS_MAX 300
#define PATIENCE (10 * USEC_PER_SEC)

static struct bed {
    char directory[32];
    sd_event *event;
    struct journal *journal;
    struct events *events;
    struct removals *removals;
    struct run_table runs;
    struct state state;
    struct settings *settings;
    struct scheduler *scheduler;
    int64_t ahead;     /* of the wall clock, us */
    struct run *asked; /* the latest question */
    unsigned n_asked, n_passed;
    char id[ID_TEXT_SIZE]; /* of the latest due time that was passed */
    int64_t passed;
} bed;

/* --- what the manager does --- */

static struct run_time now(void) {
    return (struct run_time){.boottime = clock_boottime(), .realtime = (usec_t) ((int64_t) clock_realtime() + bed.ahead)};
}

static void on_begin(struct run *run, _unused_ void *userdata) {
    run_enter(run, RUN_STATE_WAITING);
    bed.asked = run;
    bed.n_asked++;
}

static enum scheduler_turns may_ask(_unused_ void *userdata) {
    return SCHEDULER_TURNS_ASK;
}

static void on_pass(_unused_ const char *pool, int64_t due, const char *id, _unused_ void *userdata) {
    bed.n_passed++;
    bed.passed = due;
    memcpy(bed.id, id, sizeof(bed.id));
}

static void on_decided(_unused_ const char *pool, _unused_ int64_t due, _unused_ void *userdata) {
}

static void on_await(_unused_ struct run *run, _unused_ usec_t boottime, _unused_ void *userdata) {
}

static void on_change(_unused_ struct run_table *table) {
}

static void drop(struct run *run) {
    run_release_timer(run);
    state_remove_run(&bed.state, run);
    run_enter(run, RUN_STATE_DONE);
    run_table_drop(&bed.runs, run);
}

/* --- the bed --- */

static void clock_at(int64_t seconds) {
    bed.ahead = seconds * (int64_t) USEC_PER_SEC - (int64_t) clock_realtime();
}

static struct settings *parse_settings(const char *zone) {
    struct settings_source source = {.file = "test.conf"};
    struct settings_errors errors = {};
    struct settings *settings = NULL;
    char text[512];

    snprintf(text, sizeof(text),
             "runtime-directory = \"%s\"\nstate-directory = \"%s/lasting\"\nhost = \"here\"\nzone = \"%s\"\n"
             "redis { url = \"unix:///nowhere\" }\n"
             "job \"j\" { command = {\"/bin/true\"} schedule = {\"0 * * * *\"} on = \"any\" }\n"
             "job \"r\" { command = {\"/bin/true\"} retry = 1 parameters = {\"X=[0-9]\"} }\n",
             bed.directory, bed.directory, zone);
    source.text = text;
    source.size = strlen(text);
    TEST_INT(settings_parse(&source, 1, "here", &settings, &errors), 0);
    settings_errors_done(&errors);
    return settings;
}

static void up(void) {
    static const struct scheduler_handler handler = {
        .begin = on_begin, .await = on_await, .now = now, .may_ask = may_ask, .pass = on_pass, .decided = on_decided};

    bed = (struct bed){.directory = "/tmp/berth-turns-XXXXXX", .state.lock_fd = -1};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(bed.directory));
    clock_at(FIRST - HOUR / 2);
    bed.settings = parse_settings("UTC");
    TEST_INT(sd_event_new(&bed.event), 0);
    TEST_INT(journal_new(&bed.journal, "test"), 0);
    TEST_INT(events_new(&bed.events, bed.journal, "here", "test"), 0);
    TEST_INT(removals_new(&bed.removals, bed.event), 0);
    TEST_INT(run_table_init(&bed.runs, bed.event, on_change), 0);
    bed.runs.events = bed.events;
    TEST_INT(state_open(&bed.state, bed.directory, bed.journal, bed.removals), 0);
    TEST_INT(scheduler_new(&bed.scheduler, bed.event, &bed.runs, &bed.state, bed.journal, &handler), 0);
    TEST_INT(scheduler_update(bed.scheduler, bed.settings, now()), 0);
    scheduler_start(bed.scheduler, now());
}

static void down(void) {
    scheduler_stop(bed.scheduler);
    run_table_done(&bed.runs);
    bed.scheduler = scheduler_free(bed.scheduler);
    state_close(&bed.state);
    bed.removals = removals_free(bed.removals);
    bed.events = events_free(bed.events);
    bed.journal = journal_free(bed.journal);
    bed.settings = settings_free(bed.settings);
    bed.event = sd_event_unref(bed.event);
    place_remove(bed.directory);
}

/* Runs the loop until the scheduler has asked for or passed n due times. */
static void go_on(unsigned n) {
    usec_t end = clock_boottime() + PATIENCE;

    while (bed.n_asked + bed.n_passed < n && clock_boottime() < end)
        TEST_INT(sd_event_run(bed.event, 5 * USEC_PER_MSEC) >= 0, 1);
    TEST_INT(bed.n_asked + bed.n_passed, n);
}

/* Runs the loop until this allocation has failed, or the scheduler asks for or passes a due time. Returns
 * whether the allocation failed. */
static bool fails(unsigned from) {
    usec_t end = clock_boottime() + PATIENCE;
    unsigned n = bed.n_asked + bed.n_passed;

    fault_begin(FAULT_MEMORY, from, 1);
    scheduler_start(bed.scheduler, now());
    while (!fault_is_met() && bed.n_asked + bed.n_passed == n && clock_boottime() < end)
        TEST_INT(sd_event_run(bed.event, 5 * USEC_PER_MSEC) >= 0, 1);
    return fault_end();
}

/* --- tests --- */

/* The scheduler asks for each due time once. The answer is that another host has it. */
static void test_asked(void) {
    const struct store_turn_answer taken = {.turn = STORE_TURN_TAKEN, .host = "there"};
    unsigned n = 0, from = 1;
    bool is_met = true;

    up();
    for (; is_met && from < ROUNDS_MAX; from++) {
        clock_at(FIRST + (from - 1) * HOUR + 2);
        is_met = fails(from);
        go_on(++n);
        CU_ASSERT_PTR_NOT_NULL_FATAL(bed.asked);
        CU_ASSERT_PTR_NOT_NULL_FATAL(bed.asked->job.turn);
        TEST_INT(strncmp(bed.asked->job.origin.due, "2025-01-", 8), 0);
        fault_begin(FAULT_MEMORY, 1 + from % 7, 1);
        scheduler_turn_refused(bed.scheduler, bed.asked, &taken, now());
        (void) fault_end();
        drop(bed.asked);
        bed.asked = NULL;
    }
    CU_ASSERT(from > 3 && from < ROUNDS_MAX);
    TEST_INT(bed.n_passed, 0);
    go_on(n); /* nothing more */
    down();
}

/* The scheduler passes due times that are too old once, with the newest of them, and logs them as missed. */
static void test_passed(void) {
    unsigned n = 0, from = 1;
    bool is_met = true;

    up();
    for (; is_met && from < ROUNDS_MAX; from++) {
        int64_t newest = FIRST + from * 24 * HOUR;

        clock_at(newest + HOUR / 2);
        is_met = fails(from);
        go_on(++n);
        TEST_INT(bed.passed, newest);
        scheduler_turns_passed(bed.scheduler, "@j", bed.id, SCHEDULER_PASSED_HERE);
        TEST_INT(events_count(bed.events, EVENT_MISSED), n);
    }
    CU_ASSERT(from > 3 && from < ROUNDS_MAX);
    TEST_INT(bed.n_asked, 0);
    down();
}

/* A pass without an answer is repeated with its id, although the store stays ready. */
static void test_pass_unanswered(void) {
    char id[ID_TEXT_SIZE];

    up();
    clock_at(FIRST + 24 * HOUR + HOUR / 2);
    scheduler_start(bed.scheduler, now());
    go_on(1);
    memcpy(id, bed.id, sizeof(id));
    scheduler_turns_passed(bed.scheduler, "@j", bed.id, SCHEDULER_PASSED_UNKNOWN);
    go_on(2);
    TEST_STRING(bed.id, id);
    TEST_INT(events_count(bed.events, EVENT_MISSED), 0);
    scheduler_turns_passed(bed.scheduler, "@j", bed.id, SCHEDULER_PASSED_HERE);
    TEST_INT(events_count(bed.events, EVENT_MISSED), 1);
    down();
}

/* An open turn that could not be noted is asked for when Redis names it again. */
static void test_opened(void) {
    const struct store_open_turn open = {.pool = "@j", .due = FIRST - HOUR, .attempt = 2, .why = "retry"};
    const struct store_turn_answer taken = {.turn = STORE_TURN_TAKEN};
    unsigned n = 0, from = 1;
    bool is_met = true;

    up();
    for (; is_met && from < ROUNDS_MAX; from++) {
        fault_begin(FAULT_MEMORY, from, 1);
        scheduler_turn_opened(bed.scheduler, &open, now());
        is_met = fault_end();
        scheduler_turn_opened(bed.scheduler, &open, now()); /* from the next look */
        go_on(++n);
        CU_ASSERT_PTR_NOT_NULL_FATAL(bed.asked);
        CU_ASSERT_PTR_NOT_NULL_FATAL(bed.asked->job.turn);
        scheduler_turn_refused(bed.scheduler, bed.asked, &taken, now());
        drop(bed.asked);
        bed.asked = NULL;
    }
    CU_ASSERT(from > 1 && from < ROUNDS_MAX);
    down();
}

static struct run *run_fails(void) {
    char text[] = "X=1", *const set[] = {text, NULL};
    struct run *run = NULL;

    CU_ASSERT_FATAL(scheduler_trigger(bed.scheduler, "r", set, now(), &run) == 0);
    run_enter(run, RUN_STATE_STARTING);
    run_enter(run, RUN_STATE_RUNNING);
    run->granted = true;
    run->end = (struct run_end){.result = RUN_RESULT_FAILURE, .exit_code = 1, .signal = -1};
    return run;
}

#define EXIT_WITHOUT_MEMORY 70

/* Ends the run in a child, while this allocation fails. Returns the child's exit status: 0 if there is a next attempt, 1 if
 * it is missing or would never begin, 2 if all allocations succeeded. */
static int end_in_child(struct run *run, unsigned from) {
    pid_t child = fork();
    int status = 1;

    if (child == 0) {
        struct list *retrying = &bed.runs.lists[RUN_STATE_RETRYING];
        bool is_met, is_good = false;

        fault_begin(FAULT_MEMORY, from, 1);
        scheduler_run_ends(bed.scheduler, run, now());
        is_met = fault_end();
        list_foreach (next, retrying, struct run, link)
            is_good = next->job.begin_due > 0 && strcmp(next->job.origin.set[0], "X=1") == 0;
        _exit(!is_good ? 1 : is_met ? 0 : 2);
    }
    CU_ASSERT_FATAL(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Without memory for the next attempt berthd exits: the next one still has to process the end of the run. */
static void test_retried(void) {
    unsigned from = 1, n_exited = 0;
    int status = 0;

    up();
    for (; status != 2 && from < ROUNDS_MAX; from++) {
        struct run *run = run_fails();

        status = end_in_child(run, from);
        CU_ASSERT(status == 0 || status == 2 || status == EXIT_WITHOUT_MEMORY);
        n_exited += status == EXIT_WITHOUT_MEMORY;
        drop(run);
    }
    CU_ASSERT(n_exited > 1 && from < ROUNDS_MAX);
    down();
}

static void reload(const char *zone, unsigned from) {
    struct settings *settings = parse_settings(zone);

    fault_begin(FAULT_MEMORY, from, from > 0);
    (void) scheduler_update(bed.scheduler, settings, now());
    (void) fault_end();
    settings_free(bed.settings);
    bed.settings = settings;
}

/* A due time is noted; then a reload names a zone for which memory lacks. The due time waits for its
 * zone. */
static void test_zone(void) {
    const struct job *job;

    up();
    job = scheduler_find_job(bed.scheduler, "j");
    clock_at(FIRST + 2);
    scheduler_start(bed.scheduler, now());
    while (list_is_empty(&job->schedule.entries)) /* then it is noted, and waits for the disk */
        CU_ASSERT_FATAL(sd_event_run(bed.event, 5 * USEC_PER_MSEC) >= 0);
    TEST_INT(bed.n_asked, 0);
    for (unsigned from = 1; from < 4; from++) {
        reload("Europe/Berlin", from);
        for (int turn = 0; turn < 20; turn++)
            TEST_INT(sd_event_run(bed.event, USEC_PER_MSEC) >= 0, 1);
    }
    reload("UTC", 0);
    go_on(1);
    down();
}

static CU_TestInfo tests[] = {
    {"asked", test_asked},
    {"passed", test_passed},
    {"passed, unanswered", test_pass_unanswered},
    {"opened", test_opened},
    {"retried", test_retried},
    {"reloaded", test_zone},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "turns, without memory", .pTests = tests});
