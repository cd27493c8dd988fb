/* SPDX-License-Identifier: MIT */
#pragma once

/* `berth doctor`: facts are collected once, then each check reads them and reports findings. */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/name.h"
#include "base/pool-name.h"
#include "conf/settings.h"

/* --- report.c --- */

enum severity { SEVERITY_NOTE, SEVERITY_UNKNOWN, SEVERITY_WARN, SEVERITY_CRIT };

#define FINDING_TEXT_SIZE 512

struct finding {
    const char *check; /* of the table */
    enum severity severity;
    char text[FINDING_TEXT_SIZE];
    json_t *remedies;                                                        /* sentences */
    json_t *commands;                                                        /* lists of words */
    char host[NAME_MAX_LENGTH + 1], pool[POOL_NAME_SIZE], run[ID_TEXT_SIZE]; /* "": none */
    bool is_measured;
    double value, bound; /* in the unit that the text has */
};

struct report { /* all zero at first */
    struct finding *items;
    size_t n;
    const char *check;  /* the one that runs now */
    bool out_of_memory; /* findings are missing */
};

/* Adds a finding of the check that runs now. The next four functions add to the last finding. */
void report_add(struct report *r, enum severity severity, const char *format, ...) _printf_(3, 4);
/* Adds a sentence about what to do; the words of a command that does it. */
void report_do(struct report *r, const char *format, ...) _printf_(2, 3);
void report_add_command(struct report *r, const char *const *words);
#define report_command(r, ...) report_add_command(r, (const char *const[]){__VA_ARGS__, NULL})
/* Sets what the finding is about; NULL: nothing of that kind. */
void report_about(struct report *r, const char *host, const char *pool, const char *run);
void report_measure(struct report *r, double value, double bound);
/* Sorts by severity, the worst first; findings of the same severity keep their order. */
void report_sort(struct report *r);
/* Returns whether the check has no finding. */
bool report_is_fine(const struct report *r, const char *check);
size_t report_count(const struct report *r, enum severity severity);
/* Returns the status of all findings. Exit status: 0 fine or notes, 1 a warning, 2 critical, 3 a check was
 * not possible. */
const char *report_status(const struct report *r, int *ret_exit);
void report_done(struct report *r);

/* --- facts.c --- */

struct facts {
    usec_t now;                /* realtime, before berthd was asked */
    bool is_root;              /* the caller is */
    const char *config_path;   /* borrowed */
    const char *root;          /* before each path of the machine; "" */
    struct settings *settings; /* NULL: the config has errors, or is not that of this berthd */
    int config_error;          /* of settings_load(): 0, a negative errno or SETTINGS_E_INVALID */
    struct settings_errors errors, machine_errors;
    bool is_other_config;  /* of another host or namespace than this berthd's */
    time_t config_changed; /* the latest change of a file of it, in seconds since 1970 */
    int daemon_error;      /* a negative errno: berthd does not answer */
    char *daemon_refusal;  /* why it serves nobody, in its words; NULL: it gave no reason */
    bool has_no_redis;     /* berthd's config has no redis section */
    json_t *version, *redis, *metrics, *runs, *jobs, *next, *pools, *hosts; /* replies of io.berth; NULL: none */
};

/* Reads the config and asks berthd, for some seconds at most. Failures are facts, too. */
void facts_collect(struct facts *f, const char *config_path);
void facts_done(struct facts *f);
/* Stores the value of a metric (base/metrics.def) without labels. Returns whether it is known. */
bool facts_metric(const struct facts *f, const char *name, double *ret);
/* Returns the name of this host; "" if it is not known. */
const char *facts_host(const struct facts *f);
bool facts_is_redis_away(const struct facts *f);
/* Returns whether this machine has the file or folder. path: absolute. */
bool facts_has_path(const struct facts *f, const char *path);

/* What a check needs. */
enum {
    NEEDS_DAEMON = 1,
    NEEDS_REDIS = 2, /* what berthd knows of its Redis; without a redis section there is nothing to check */
    NEEDS_METRICS = 4,
    NEEDS_RUNS = 8,
    NEEDS_POOLS = 16, /* fresh from Redis */
    NEEDS_HOSTS = 32, /* the same; without a redis section there is nothing to check */
    NEEDS_SETTINGS = 64,
    NEEDS_JOBS = 128, /* with their next due times */
};
/* Returns why a check with these needs is not possible; NULL: it is. */
const char *facts_missing(const struct facts *f, unsigned needs);

/* --- checks --- */

struct check {
    const char *name; /* never changes once released */
    void (*fn)(const struct facts *f, struct report *r);
    unsigned needs;
    const char *finds; /* for --list */
};

extern const struct check doctor_checks[];
extern const size_t doctor_n_checks;

void doctor_daemon(const struct facts *f, struct report *r);
void doctor_config(const struct facts *f, struct report *r);
void doctor_redis_away(const struct facts *f, struct report *r);
void doctor_redis_policy(const struct facts *f, struct report *r);
void doctor_redis_replicas(const struct facts *f, struct report *r);
void doctor_redis_version(const struct facts *f, struct report *r);
void doctor_redis_latency(const struct facts *f, struct report *r);
void doctor_redis_memory(const struct facts *f, struct report *r);
void doctor_redis_persistence(const struct facts *f, struct report *r);
void doctor_redis_acl(const struct facts *f, struct report *r);
void doctor_redis_shared(const struct facts *f, struct report *r);
void doctor_redis_warnings(const struct facts *f, struct report *r);
void doctor_heartbeat(const struct facts *f, struct report *r);
void doctor_grace(const struct facts *f, struct report *r);
void doctor_clock_offset(const struct facts *f, struct report *r);
void doctor_clock_rate(const struct facts *f, struct report *r);
void doctor_suspend(const struct facts *f, struct report *r);
void doctor_limits_differ(const struct facts *f, struct report *r);
void doctor_pools_differ(const struct facts *f, struct report *r);
void doctor_jobs_differ(const struct facts *f, struct report *r);
void doctor_open_turns(const struct facts *f, struct report *r);
void doctor_version_skew(const struct facts *f, struct report *r);
void doctor_hosts_twice(const struct facts *f, struct report *r);
void doctor_hosts_silent(const struct facts *f, struct report *r);
void doctor_host_drained(const struct facts *f, struct report *r);
void doctor_overcommitted(const struct facts *f, struct report *r);
void doctor_paused(const struct facts *f, struct report *r);
void doctor_impossible(const struct facts *f, struct report *r);
void doctor_long_queue(const struct facts *f, struct report *r);
void doctor_broken_jobs(const struct facts *f, struct report *r);
void doctor_stuck_run(const struct facts *f, struct report *r);
void doctor_leaked_hold(const struct facts *f, struct report *r);
void doctor_stray_process(const struct facts *f, struct report *r);
void doctor_guard(const struct facts *f, struct report *r);
void doctor_journal(const struct facts *f, struct report *r);
void doctor_journal_rate(const struct facts *f, struct report *r);
void doctor_journal_age(const struct facts *f, struct report *r);
void doctor_unit(const struct facts *f, struct report *r);
void doctor_files(const struct facts *f, struct report *r);

/* Stores the age of a heartbeat, in seconds, that is a warning and the one that is critical; 0: not
 * known. */
void doctor_heartbeat_bounds(const struct facts *f, double *ret_warn, double *ret_crit);

/* --- show.c --- */

struct shown {
    const struct facts *facts;
    const struct report *report;
    const bool *is_wanted; /* of the table */
    FILE *out;
};

void show_text(const struct shown *s);
void show_nagios(const struct shown *s);
json_t *show_as_json(const struct shown *s); /* NULL: out of memory */
