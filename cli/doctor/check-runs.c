/* SPDX-License-Identifier: MIT */
/* Checks of jobs, runs and their processes on this host. */
#include <stdlib.h>
#include <string.h>

#include "base/json/format.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/processes.h"

#define INT "%" JSON_INTEGER_FORMAT
#define HOLD_AGE (60 * USEC_PER_SEC)
#define STRAYS_SHOWN 5
#define OF_OTHERS "of another user" /* as process_describe() writes it */
#define STRAY_SLACK USEC_PER_SEC /* the age of a process is known by clock ticks */

/* Returns the age of a process by the clock of the facts, which tests move. */
static usec_t age_of(const struct facts *f, const struct process *p) {
    usec_t now = clock_realtime();

    return f->now > now ? usec_add(p->age, f->now - now) : p->age;
}

static int find_processes(const struct facts *f, struct report *r, bool with_holds, struct processes *ret) {
    _cleanup_free_ char *holds = NULL;
    int k;

    if (with_holds && asprintf(&holds, "%s/holds", f->settings->runtime_directory) < 0)
        holds = NULL;
    k = with_holds && !holds
            ? -1
            : processes_find(ret, facts_host(f), format_get_text(f->version, "namespace"), holds);
    if (k < 0)
        r->out_of_memory = true;
    return k;
}

static void add_partial(const struct facts *f, struct report *r, const struct processes *all) {
    if (all->is_partial)
        report_add(r, SEVERITY_UNKNOWN, "%s",
                   f->is_root ? "some processes could not be examined" : "needs root");
}

#define foreach_run(f, i, run) json_array_foreach (json_object_get((f)->runs, "runs"), i, run)

/* --- broken-jobs --- */

static void add_broken(const struct facts *f, struct report *r, const json_t *job) {
    const char *name = format_get_text(job, "name");
    json_int_t bad = format_get_number(job, "bad");
    char result[FORMAT_SIZE];

    if (bad > 0)
        report_add(r, SEVERITY_WARN, "job %s is broken: " INT " failed run%s, the last one ended with %s", name, bad,
                   bad == 1 ? "" : "s in a row",
                   format_result(job, "last_result", "last_exit_code", "last_signal", result));
    else
        report_add(r, SEVERITY_WARN, "job %s is broken: it had no success for its max-silence", name);
    report_about(r, facts_host(f), NULL, NULL);
    report_measure(r, (double) bad, 0);
    report_do(r, "what it printed:");
    report_command(r, "berth", "logs", name, "-n", "20");
}

void doctor_broken_jobs(const struct facts *f, struct report *r) {
    json_t *job;
    size_t i;

    json_array_foreach (json_object_get(f->jobs, "jobs"), i, job)
        if (json_is_true(json_object_get(job, "broken")))
            add_broken(f, r, job);
}

/* --- stuck-run --- */

static json_int_t limit_of(const struct facts *f, const char *name) {
    json_t *pool;
    size_t i;

    json_array_foreach (json_object_get(f->pools, "pools"), i, pool)
        if (strcmp(format_get_text(pool, "name"), name) == 0)
            return format_get_number(pool, "limit");
    return 0;
}

static void add_silent(const struct facts *f, struct report *r, const json_t *run) {
    const char *id = format_get_text(run, "run"), *name = format_get_text(run, "name");

    report_add(r, SEVERITY_WARN, "the guard of %s (run %.8s) does not answer: %s", name, id, format_get_text(run, "stuck"));
    report_about(r, facts_host(f), NULL, id);
    report_do(r, "nothing notices the end of its command. kill -CONT lets a stopped guard go on; it then stops a run whose lease it "
                 "has missed. To end the run without its guard:");
    report_command(r, "berth", "stop", id);
}

static const char *stuck_remedy(const char *stuck) {
    if (strstr(stuck, OF_OTHERS))
        return "`berth run` may not stop the processes of another user";
    if (strstr(stuck, ", state T"))
        return "that process is stopped: kill -CONT lets it go on";
    return "check for a disk or network mount that hangs";
}

static void add_stuck(const struct facts *f, struct report *r, const json_t *run) {
    const char *id = format_get_text(run, "run"), *name = format_get_text(run, "name"), *pool;
    char pools[FORMAT_SIZE], reason[FORMAT_SIZE], limit[32];
    json_t *permits;

    report_add(r, SEVERITY_WARN, "%s (run %.8s) was killed and does not end: %s", name, id,
               format_get_text(run, "stuck"));
    report_about(r, facts_host(f), NULL, id);
    if (!*format_pools(run, "pools", pools))
        return;
    report_do(r,
              "its permits (%s) stay taken until it ends; %s. Until then:",
              pools,
              stuck_remedy(format_get_text(run, "stuck")));
    (void) snprintf(reason, sizeof(reason), "stuck %s on %s", name, facts_host(f));
    json_object_foreach (json_object_get(run, "pools"), pool, permits) {
        (void) snprintf(limit, sizeof(limit), INT, limit_of(f, pool) + json_integer_value(permits));
        if (limit_of(f, pool) > 0)
            report_command(r, "berth", "limit", pool, limit, "--for", "1d", "--reason", reason);
    }
}

void doctor_stuck_run(const struct facts *f, struct report *r) {
    json_t *run;
    size_t i;

    foreach_run(f, i, run) {
        if (*format_get_text(run, "stuck") && strcmp(format_get_text(run, "state"), "stopping") != 0)
            add_silent(f, r, run);
        else if (*format_get_text(run, "stuck"))
            add_stuck(f, r, run);
    }
}

/* --- leaked-hold --- */

/* Returns whether the command of a `berth run` is over, although its permits are held. */
static bool is_command_over(const json_t *run) {
    json_int_t pid = format_get_number(run, "pid");
    char state = pid > 0 ? process_state((pid_t) pid) : '\0';

    if (strcmp(format_get_text(run, "kind"), "adhoc") != 0 || !*format_get_text(run, "started"))
        return false;
    return *format_get_text(run, "ended") || (pid > 0 && (state == '\0' || state == 'Z'));
}

/* A process of berth itself: `berth run` waits for what its command left behind. */
static bool is_own(const struct process *p) {
    return strcmp(p->name, "berth") == 0 || strcmp(p->name, "berthd") == 0;
}

static void add_leaked(const struct facts *f, struct report *r, const json_t *run,
                       const struct processes *all) {
    const char *id = format_get_text(run, "run");
    char pools[FORMAT_SIZE], age[FORMAT_SIZE], pid[16];

    for (size_t i = 0; i < all->n; i++) {
        const struct process *p = &all->items[i];

        if (strcmp(p->hold, id) != 0 || is_own(p) || age_of(f, p) < HOLD_AGE)
            continue;
        report_add(r, SEVERITY_WARN,
                   "%s (run %.8s): its command is over, process %d (%s, %s old) has the hold open",
                   format_get_text(run, "name"), id, (int) p->pid, p->name,
                   format_msec((json_int_t) (age_of(f, p) / USEC_PER_MSEC), age));
        report_about(r, facts_host(f), NULL, id);
        report_do(r,
                  "its permits (%s) are held until that process ends, or closes the descriptor BERTH_HOLD:",
                  format_pools(run, "pools", pools));
        (void) snprintf(pid, sizeof(pid), "%d", (int) p->pid);
        report_command(r, "kill", pid);
    }
}

void doctor_leaked_hold(const struct facts *f, struct report *r) {
    _cleanup_(processes_done) struct processes all = {0};
    json_t *run;
    size_t i, n = 0;

    foreach_run(f, i, run) n += is_command_over(run);
    if (n == 0 || find_processes(f, r, true, &all) < 0)
        return;
    foreach_run(f, i, run) if (is_command_over(run)) add_leaked(f, r, run, &all);
    add_partial(f, r, &all);
}

/* --- stray-process --- */

static bool is_known(const struct facts *f, const char *id) {
    json_t *run;
    size_t i;

    foreach_run(f, i, run) if (strcmp(format_get_text(run, "run"), id) == 0) return true;
    return false;
}

/* Returns whether the process is younger than berthd's reply, which then may lack its run. */
static bool is_younger(const struct facts *f, const struct process *p) {
    return p->age < usec_add(usec_sub(clock_realtime(), f->now), STRAY_SLACK);
}

void doctor_stray_process(const struct facts *f, struct report *r) {
    _cleanup_(processes_done) struct processes all = {0};
    size_t n = 0;

    if (json_is_true(json_object_get(f->runs, "recovering")) || find_processes(f, r, false, &all) < 0)
        return;
    for (size_t i = 0; i < all.n; i++) {
        const struct process *p = &all.items[i];
        char age[FORMAT_SIZE], pid[16];

        if (!p->run[0] || p->state == 'Z' || is_known(f, p->run) || is_younger(f, p) || n++ >= STRAYS_SHOWN)
            continue;
        report_add(r, SEVERITY_WARN, "process %d (%s, %s old) was started in run %.8s, which is over",
                   (int) p->pid, p->name, format_msec((json_int_t) (p->age / USEC_PER_MSEC), age), p->run);
        report_about(r, facts_host(f), NULL, p->run);
        report_do(r, "it holds no permits; to end it:");
        (void) snprintf(pid, sizeof(pid), "%d", (int) p->pid);
        report_command(r, "kill", pid);
    }
    if (n > STRAYS_SHOWN)
        report_do(r, "and %zu more", n - STRAYS_SHOWN);
    add_partial(f, r, &all);
}
