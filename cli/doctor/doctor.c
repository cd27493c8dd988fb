/* SPDX-License-Identifier: MIT */
/* `berth doctor`: the table of checks, which of them are wanted, and the exit status. */
#include "cli/doctor/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/verbs.h"

const struct check doctor_checks[] = {
    {"daemon", doctor_daemon, 0, "berthd does not answer, or berth-runner does not run"},
    {"config", doctor_config, 0, "the config has errors, or is not the one in force"},
    {"redis-away", doctor_redis_away, NEEDS_REDIS, "Redis is away"},
    {"redis-policy", doctor_redis_policy, NEEDS_REDIS, "Redis evicts keys"},
    {"redis-replicas", doctor_redis_replicas, NEEDS_REDIS, "replicas, and min-replicas-to-write is 0"},
    {"redis-version", doctor_redis_version, NEEDS_REDIS, "too old, or not tested with berth"},
    {"redis-latency", doctor_redis_latency, NEEDS_REDIS,
     "heartbeats take more than a tenth of their interval"},
    {"redis-memory", doctor_redis_memory, NEEDS_REDIS, "Redis's memory is nearly full, or it has evicted keys"},
    {"redis-persistence", doctor_redis_persistence, NEEDS_REDIS, "Redis cannot save its data, or does not"},
    {"redis-acl", doctor_redis_acl, NEEDS_REDIS, "rights that the user of Redis lacks"},
    {"redis-shared", doctor_redis_shared, NEEDS_REDIS | NEEDS_HOSTS, "many clients of Redis that are not hosts"},
    {"redis-warnings", doctor_redis_warnings, NEEDS_REDIS, "other warnings of `berth redis`"},
    {"heartbeat", doctor_heartbeat, NEEDS_REDIS | NEEDS_METRICS,
     "unanswered for more than a quarter of the lease"},
    {"grace", doctor_grace, NEEDS_REDIS, "a grace period: nothing is granted"},
    {"clock-offset", doctor_clock_offset, NEEDS_REDIS, "clocks of this host and of Redis that differ"},
    {"clock-rate", doctor_clock_rate, NEEDS_REDIS, "a clock that runs faster or slower than that of Redis"},
    {"suspend", doctor_suspend, NEEDS_REDIS, "berthd or this machine stood still today"},
    {"limits-differ", doctor_limits_differ, NEEDS_POOLS | NEEDS_HOSTS, "hosts declare different limits"},
    {"pools-differ", doctor_pools_differ, NEEDS_HOSTS, "pools that not every host defines"},
    {"jobs-differ", doctor_jobs_differ, NEEDS_HOSTS, "a shared job that has other due times elsewhere"},
    {"open-turns", doctor_open_turns, NEEDS_HOSTS | NEEDS_JOBS, "due times of a shared job that no host takes"},
    {"version-skew", doctor_version_skew, NEEDS_DAEMON | NEEDS_HOSTS, "hosts run different versions"},
    {"hosts-silent", doctor_hosts_silent, NEEDS_REDIS | NEEDS_HOSTS, "hosts that have missed heartbeats"},
    {"hosts-twice", doctor_hosts_twice, NEEDS_REDIS | NEEDS_HOSTS, "two machines that have one name"},
    {"host-drained", doctor_host_drained, NEEDS_DAEMON, "hosts that begin no runs"},
    {"overcommitted", doctor_overcommitted, NEEDS_POOLS | NEEDS_METRICS,
     "more permits in use than the limit"},
    {"paused", doctor_paused, NEEDS_POOLS, "a pause or an override without an end"},
    {"impossible", doctor_impossible, NEEDS_POOLS, "a run that wants more than any limit"},
    {"long-queue", doctor_long_queue, NEEDS_POOLS | NEEDS_METRICS,
     "a run that waits ten times as long as others"},
    {"broken-jobs", doctor_broken_jobs, NEEDS_JOBS, "jobs whose last runs failed"},
    {"stuck-run", doctor_stuck_run, NEEDS_RUNS, "a run whose processes outlive their kill, or whose guard hangs"},
    {"leaked-hold", doctor_leaked_hold, NEEDS_RUNS | NEEDS_SETTINGS,
     "a `berth run` that left a process with permits"},
    {"stray-process", doctor_stray_process, NEEDS_RUNS, "a process of a run that is over"},
    {"guard", doctor_guard, NEEDS_SETTINGS, "a guard that is gone, or an end that berthd did not take"},
    {"journal", doctor_journal, 0, "no journal on the disk, or events that it lost"},
    {"journal-rate", doctor_journal_rate, 0, "messages that journald has dropped today"},
    {"journal-age", doctor_journal_age, 0, "berthd's journal is younger than a week"},
    {"unit", doctor_unit, 0, "units that are weaker than the shipped ones"},
    {"files", doctor_files, NEEDS_SETTINGS, "owners and modes below the runtime directory"},
};
const size_t doctor_n_checks = ELEMENTSOF(doctor_checks);

static void run_checks(const struct facts *f, const bool *is_wanted, struct report *r) {
    for (size_t i = 0; i < ELEMENTSOF(doctor_checks); i++) {
        const struct check *check = &doctor_checks[i];
        const char *missing = facts_missing(f, check->needs);

        if (!is_wanted[i])
            continue;
        r->check = check->name;
        if (missing)
            report_add(r, SEVERITY_UNKNOWN, "%s", missing);
        else
            check->fn(f, r);
    }
    report_sort(r);
}

/* --- which checks --- */

/* Returns 0 or EXIT_USAGE. */
static int mark_one(const char *name, bool marked[static ELEMENTSOF(doctor_checks)]) {
    const char *known[ELEMENTSOF(doctor_checks)], *near;

    for (size_t i = 0; i < ELEMENTSOF(doctor_checks); i++) {
        known[i] = doctor_checks[i].name;
        if (strcmp(name, known[i]) == 0) {
            marked[i] = true;
            return 0;
        }
    }
    near = nearest(name, known, ELEMENTSOF(known));
    if (near)
        return options_refuse("no check \"%.64s\" (did you mean \"%s\"? --list has all)", name, near);
    return options_refuse("no check \"%.64s\" (--list has all)", name);
}

/* Marks the checks of "NAME,NAME". Returns 0 or EXIT_USAGE. */
static int mark(const char *names, bool marked[static ELEMENTSOF(doctor_checks)]) {
    _cleanup_free_ char *copy = strdup(names);
    char *rest = copy;
    int status = copy ? 0 : output_error(-ENOMEM);

    for (char *name; status == 0 && (name = strsep(&rest, ","));)
        status = mark_one(name, marked);
    return status;
}

static int choose(const char *only, const char *skip, bool is_wanted[static ELEMENTSOF(doctor_checks)]) {
    bool is_only[ELEMENTSOF(doctor_checks)] = {0}, is_skipped[ELEMENTSOF(doctor_checks)] = {0};
    int status = only ? mark(only, is_only) : 0;

    if (status == 0 && skip)
        status = mark(skip, is_skipped);
    for (size_t i = 0; i < ELEMENTSOF(doctor_checks); i++)
        is_wanted[i] = (!only || is_only[i]) && !is_skipped[i];
    return status;
}

static int print_list(void) {
    for (size_t i = 0; i < ELEMENTSOF(doctor_checks); i++)
        printf("%-18s%s\n", doctor_checks[i].name, doctor_checks[i].finds);
    return 0;
}

/* --- the verb --- */

static int show(const struct shown *s, bool json, bool nagios) {
    json_t *document;
    int status, failed = 0;

    (void) report_status(s->report, &status);
    if (json) {
        document = show_as_json(s);
        failed = document ? output_json(document) : EXIT_INTERNAL;
        json_decref(document);
    } else if (nagios) {
        show_nagios(s);
    } else {
        show_text(s);
    }
    return failed != 0 ? failed : status;
}

static int examine(const char *config, const bool *is_wanted, bool json, bool nagios) {
    struct report report = {0};
    struct facts facts;
    int status;

    facts_collect(&facts, config);
    run_checks(&facts, is_wanted, &report);
    status = report.out_of_memory ? output_error(-ENOMEM)
                                  : show(&(struct shown){&facts, &report, is_wanted, stdout}, json, nagios);
    report_done(&report);
    facts_done(&facts);
    return status;
}

int verb_doctor(int argc, char **argv) {
    const char *only = NULL, *skip = NULL, *config = NULL;
    bool json = false, nagios = false, list = false, is_wanted[ELEMENTSOF(doctor_checks)];
    const struct verb_option options[] = {OPTION_FLAG("--json", &json),  OPTION_FLAG("--nagios", &nagios),
                                          OPTION_FLAG("--list", &list),  OPTION_VALUE("--only", &only),
                                          OPTION_VALUE("--skip", &skip), OPTION_VALUE("-c", &config)};
    int status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), &status) < 0)
        return status;
    if (list)
        return print_list();
    if (json && nagios)
        return options_wrong_usage("doctor", "--json and --nagios exclude each other");
    status = choose(only, skip, is_wanted);
    if (status != 0)
        return status;
    return examine(config ? config : SETTINGS_PATH_DEFAULT, is_wanted, json, nagios);
}
