/* SPDX-License-Identifier: MIT */

/* Faults, each alone, and random mixes of them, while hosts run commands that record themselves (witness.c).
 *
 *     test-faults [--slice] [--failpoints] [--seed N] [--mixes N] [--jobs N] [--no-singles] [--report FILE] [FAULT...]
 *     test-faults --case FAULT|mix --seed N        one of them, in this process
 *
 * --failpoints: also each failpoint with each action; $BERTH_BUILD has a build with -DBERTH_FAILPOINTS.
 * --slice: each fault on one host only, and some not at all; waits may take a little longer.
 *
 * The same seed makes the same plan. Each case is a process with its own hosts and Redis. The journals and
 * records of a failed case stay in BUILD/faults/. Cases that need root or a missing program are skipped. */

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/number.h"
#include "tests/faults/report/report.h"
#include "tests/harness/stall.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

#define CASE_PATIENCE (150 * USEC_PER_SEC)
#define JOBS_MAX 16
#define STALL_MAX (150 * USEC_PER_MSEC)
#define AGAIN_MAX 2
#define FAILPOINTS_MAX 64

static uint64_t arg_seed, arg_mixes, arg_jobs = 4;
static bool arg_singles = true, arg_slice, arg_failpoints;
static const char *arg_case, *arg_report;

/* --- one case --- */

static struct plan the_plan;

static void case_up(void) {
    bed_prepare(&the_plan);
    cluster_up();
    cluster.on_stopped = plan_done;
}

static void case_run(void) {
    plan_run(&the_plan);
}

static void case_down(void) {
    stall_stop();
    cluster_down();
    bed_remove();
}

static int run_case(char *program) {
    CU_TestInfo tests[] = {{"case", case_run}, CU_TEST_INFO_NULL};
    CU_SuiteInfo suites[] = {{.pName = "faults", .pSetUpFunc = case_up, .pTearDownFunc = case_down, .pTests = tests}, CU_SUITE_INFO_NULL};
    const struct fault *f = faults_find(arg_case);

    if (f)
        plan_alone(&the_plan, f, arg_seed, arg_slice ? 1 : 2);
    else if (strcmp(arg_case, "mix") == 0)
        plan_mix(&the_plan, arg_seed);
    else if (!plan_failpoint(&the_plan, arg_case, arg_seed))
        return 64;
    the_plan.beside = arg_slice;
    plan_print(&the_plan);
    return test_main(1, &program, suites);
}

/* --- all cases, some at a time --- */

struct job {
    unsigned again; /* repetitions because the machine stood still */
    const char *name;
    uint64_t seed;
    struct child *child;
    usec_t until;
};

static struct child *start_case(const char *program, const struct job *job) {
    char seed[32];
    char *argv[] = {(char *) program, (char *) "--case", (char *) job->name, (char *) "--seed", seed, (char *) (arg_slice ? "--slice" : NULL), NULL};
    char build[600], redis[280], folder[600];
    char *environment[] = {build, folder, getenv("BERTH_REDIS_SERVER") ? redis : NULL, NULL};

    snprintf(seed, sizeof(seed), "%" PRIu64, job->seed);
    snprintf(build, sizeof(build), "BERTH_BUILD=%s", place_build());
    snprintf(folder, sizeof(folder), "BERTH_FAULTS_DUMP=%s/faults", place_build());
    snprintf(redis, sizeof(redis), "BERTH_REDIS_SERVER=%s", getenv("BERTH_REDIS_SERVER") ? getenv("BERTH_REDIS_SERVER") : "");
    (void) mkdir(folder + strlen("BERTH_FAULTS_DUMP="), 0755);
    return child_start(argv, environment);
}

/* Returns whether the machine stood still at a time that can explain the failure (explaining_stall() in
 * plan.c). */
static bool has_stalled(const struct job *job) {
    const char *text = child_text(job->child, 1), *at = strstr(text, "stalled ");

    while (at && at > text && at[-1] != '\n') /* at the begin of a line */
        at = strstr(at + 1, "stalled ");
    return at && strtoull(at + strlen("stalled "), NULL, 10) > STALL_MAX;
}

/* Prints the text indented, so that no reader takes its last line for the result of this program. */
static void show(const char *text) {
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        printf("    %.*s\n", (int) n, text);
    }
}

/* Prints lines for tests/failures.sh. */
static void show_failures(const struct job *job) {
    const char *text = child_text(job->child, 1), *at = strstr(text, "FAIL: ");

    if (!at)
        printf("FAIL: %s, seed %" PRIu64 ": status %d, signal %d\n", job->name, job->seed, job->child->exit_code, job->child->signal);
    for (; at; at = strstr(at + 1, "FAIL: "))
        if (at == text || at[-1] == '\n')
            printf("FAIL: %s, seed %" PRIu64 ": %.*s\n", job->name, job->seed, (int) strcspn(at, "\n") - 6, at + 6);
}

static bool end_case(struct report *report, struct job *job) {
    bool ok = job->child->exit_code == 0 && job->child->signal == 0;

    report_add(report, job->name, ok, child_text(job->child, 1));
    if (!ok) {
        printf("--- %s, seed %" PRIu64 ": status %d, signal %d\n", job->name, job->seed, job->child->exit_code, job->child->signal);
        show(child_text(job->child, 1));
        show(child_text(job->child, 2));
        show_failures(job);
    }
    job->child = child_free(job->child);
    return ok;
}

static void run_jobs(const char *program, struct job *jobs, size_t n, struct report *report, unsigned *ret_failed) {
    size_t next = 0, open = 0;

    while (next < n || open > 0) {
        while (open < arg_jobs && next < n) {
            jobs[next].child = start_case(program, &jobs[next]);
            jobs[next].until = clock_boottime() + CASE_PATIENCE;
            next++;
            open++;
        }
        child_turn(clock_boottime() + 100 * USEC_PER_MSEC);
        for (size_t i = 0; i < next; i++) {
            if (jobs[i].child && !jobs[i].child->ended && clock_boottime() > jobs[i].until)
                child_kill(jobs[i].child, SIGKILL);
            if (!jobs[i].child || !jobs[i].child->ended)
                continue;
            if (jobs[i].child->exit_code != 0 && has_stalled(&jobs[i]) && jobs[i].again < AGAIN_MAX) {
                printf("again: %s, seed %" PRIu64 ": the machine stood still\n", jobs[i].name, jobs[i].seed);
                child_free(jobs[i].child);
                jobs[i].child = start_case(program, &jobs[i]);
                jobs[i].until = clock_boottime() + CASE_PATIENCE;
                jobs[i].again++;
                report->again++;
                continue;
            }
            *ret_failed += !end_case(report, &jobs[i]);
            open--;
        }
    }
}

static bool is_wanted(const struct fault *f, unsigned *skipped) {
    const char *lacks = fault_lacks(f);

    if (arg_slice && (f->flags & FAULT_FULL))
        return false;
    if (lacks) {
        printf("SKIP: %s: %s\n", f->name, lacks);
        ++*skipped;
    }
    return !lacks;
}

static int run_all(const char *program, char **names, size_t n_names) {
    static char steps[FAILPOINT_ACTIONS * FAILPOINTS_MAX][64];
    struct job *jobs = calloc(faults_count() + n_names + arg_mixes + ELEMENTSOF(steps), sizeof(*jobs));
    struct report report = {.seed = arg_seed, .mixes = arg_mixes, .since = clock_boottime()};
    unsigned failed = 0, skipped = 0;
    size_t n = 0;

    if (!jobs)
        return 1;
    for (size_t i = 0; i < n_names; i++)
        jobs[n++] = (struct job) {.name = names[i], .seed = arg_seed};
    for (size_t i = 0; n_names == 0 && arg_singles && faults_get(i); i++)
        if (is_wanted(faults_get(i), &skipped))
            jobs[n++] = (struct job) {.name = faults_get(i)->name, .seed = arg_seed};
    for (size_t i = 0; arg_failpoints && failpoints[i].name; i++)
        for (size_t k = 0; k < FAILPOINT_ACTIONS; k++) {
            char *name = steps[FAILPOINT_ACTIONS * i + k];

            snprintf(name, sizeof(steps[0]), "%s:%s", failpoints[i].name, failpoint_actions[k].name);
            jobs[n++] = (struct job) {.name = name, .seed = arg_seed};
        }
    for (uint64_t i = 0; i < arg_mixes; i++)
        jobs[n++] = (struct job) {.name = "mix", .seed = arg_seed + i};
    for (size_t i = 0; i < n; i++)
        report_expect(&report, jobs[i].name);
    printf("%zu cases, seed %" PRIu64 "\n", n, arg_seed);
    run_jobs(program, jobs, n, &report, &failed);
    report_print(&report);
    if (arg_report && report_write(&report, arg_report) < 0)
        failed++;
    printf("seed %" PRIu64 ", %zu cases in %" PRIu64 " s\n", arg_seed, n, (clock_boottime() - report.since) / USEC_PER_SEC);
    printf("%zu passed, %u failed, %u skipped\n", n - (failed < n ? failed : n), failed, skipped);
    free(jobs);
    report_done(&report);
    return failed > 0 || n == 0;
}

static int parse(int argc, char **argv) {
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'}, {"mixes", required_argument, NULL, 'm'},  {"jobs", required_argument, NULL, 'j'},
        {"case", required_argument, NULL, 'c'}, {"report", required_argument, NULL, 'r'}, {"no-singles", no_argument, NULL, 'n'},
        {"slice", no_argument, NULL, 'l'},    {"failpoints", no_argument, NULL, 'f'},      {0},
    };

    arg_seed = clock_realtime() / USEC_PER_SEC;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) >= 0;)
        switch (c) {
        case 's':
            if (number_parse(optarg, UINT64_MAX, &arg_seed) < 0)
                return -1;
            break;
        case 'm':
            if (number_parse(optarg, 100000, &arg_mixes) < 0)
                return -1;
            break;
        case 'j':
            if (number_parse(optarg, JOBS_MAX, &arg_jobs) < 0 || arg_jobs == 0)
                return -1;
            break;
        case 'c': arg_case = optarg; break;
        case 'r': arg_report = optarg; break;
        case 'f': arg_failpoints = true; break;
        case 'l': arg_slice = true; break;
        case 'n': arg_singles = false; break;
        default: return -1;
        }
    for (int i = optind; i < argc; i++)
        if (!faults_find(argv[i]))
            return -1;
    return 0;
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (parse(argc, argv) < 0) {
        fputs("usage: test-faults [--slice] [--failpoints] [--seed N] [--mixes N] [--jobs N] [--no-singles] [--report FILE] [FAULT...]\n", stderr);
        for (size_t i = 0; faults_get(i); i++)
            fprintf(stderr, "    %-26s %s\n", faults_get(i)->name, faults_get(i)->what);
        return 64;
    }
    return arg_case ? run_case(argv[0]) : run_all(argv[0], argv + optind, (size_t) (argc - optind));
}
