/* SPDX-License-Identifier: MIT */
#pragma once

/* The configuration as plain values. conf/settings.c makes them from text, without I/O, so tests and fuzzers
 * feed it from memory. conf/load.c reads the files. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/demand.h"
#include "base/schedule/schedule.h"

#define SETTINGS_PATH_DEFAULT "/etc/berth/berth.conf"
#define RUNTIME_DIRECTORY_DEFAULT "/run/berth"
#define RUNTIME_DIRECTORY_MAX 60
#define DAEMON_USER "berth" /* the user of berthd as a service */
#define POOL_LIMIT_MAX 1000000 /* permits, also of an override */
#define SETTINGS_BUFFERS 4

enum pool_scope { POOL_SCOPE_CLUSTER, POOL_SCOPE_HOST };
enum job_overlap { JOB_OVERLAP_SKIP, JOB_OVERLAP_QUEUE, JOB_OVERLAP_ALLOW, JOB_OVERLAP_REPLACE };
enum on_lease_lost { ON_LEASE_LOST_STOP, ON_LEASE_LOST_CONTINUE };
enum job_restart { JOB_RESTART_NO, JOB_RESTART_ALWAYS, JOB_RESTART_ON_FAILURE };
enum job_output_kind { JOB_OUTPUT_JOURNAL, JOB_OUTPUT_NULL, JOB_OUTPUT_FILE };

struct settings_place { /* file and line, for errors */
    const char *file;   /* owned by the settings */
    int line;
};

struct account {               /* a user or group in an option: "alice", "@students" */
    char *name;                /* without the '@'; "": nobody */
    bool is_group;
    bool is_known;             /* settings_find_accounts() found it on the machine; id is its uid or gid */
    id_t id;
    struct settings_place place; /* .file NULL: the default, not in the config */
};

struct accounts {
    struct account *items;
    size_t n;
};

enum tls_minimum { TLS_MINIMUM_1_2, TLS_MINIMUM_1_3 };

struct tls_settings {          /* paths may be "": none, or the credential of berthd */
    bool is_used;              /* the url begins with rediss:// */
    char *ca;                  /* file or directory of trusted certificates; "": the system's */
    char *certificate, *key;   /* both or none */
    char *server_name;         /* "": the host to which berthd connects */
    enum tls_minimum minimum;
};

#define MASTER_DEFAULT "mymaster"

struct sentinel_settings {
    char *hosts;         /* "host[:port],..."; NULL: no sentinels */
    char *master;        /* the name by which they know it */
    char *username;      /* "" : none */
    char *password_file; /* "" : none */
};

struct redis_settings {
    char *unix_path;           /* or NULL */
    char *host;                /* or NULL; an IPv6 address without brackets. Both NULL: sentinels name it */
    uint16_t port;
    char *others;              /* further hosts, as in struct redis_url; or NULL */
    unsigned db;
    char *username;            /* "" : none */
    char *url_username;        /* of the url, until it is checked against `username`; then NULL */
    char *password_file;       /* "" : none */
    struct sentinel_settings sentinels;
    struct tls_settings tls;
    usec_t timeout_usec;         /* of an answer */
    usec_t connect_timeout_usec; /* of name, connect, TLS and login together; of each call after it, until the link is live */
    usec_t failover_margin_usec; /* beyond a lease of grace; USEC_INFINITY: by the kind of server */
    struct settings_place place;
};

struct pool_settings {
    char name[POOL_NAME_SIZE];    /* also a pattern or a key */
    uint32_t limit;            /* permits; 0 pauses */
    enum pool_scope scope;
    uint32_t host_limit;       /* 0: no bound */
    uint32_t queue_limit;
    struct accounts users;     /* who may use it by `berth run`; empty: all who have the right to run */
    usec_t head_start_max_usec; /* of `berth run` by users without the right to operate */
    char *description;
    struct settings_place place;
};

#define JOB_INHERIT INT_MIN
#define SHELL_DEFAULT "/bin/sh"

struct rlimit_setting {        /* setrlimit(2), soft and hard */
    int resource;              /* RLIMIT_... */
    uint64_t value;            /* in the resource's own unit; RLIM_INFINITY: unlimited */
};

struct rlimits {
    struct rlimit_setting *items; /* sorted by resource, each once */
    size_t n;
};

enum job_io_class {            /* the values of ioprio_set(2) */
    JOB_IO_CLASS_NONE,         /* as berth-runner */
    JOB_IO_CLASS_REALTIME,
    JOB_IO_CLASS_BEST_EFFORT,
    JOB_IO_CLASS_IDLE,
};

struct job_process {           /* what the command's first process sets for itself; its children inherit it */
    struct rlimits rlimits;
    int nice;                  /* -20 to 19, or JOB_INHERIT */
    int oom_score_adjust;      /* -1000 to 1000, or JOB_INHERIT */
    bool no_new_privileges;
    enum job_io_class io_class;
    int io_priority;           /* 0 to 7, or JOB_INHERIT */
};

struct resource_control {      /* of the run's cgroup */
    uint64_t memory_max;       /* bytes; 0: none */
    uint64_t memory_high;      /* bytes; 0: none */
    uint32_t cpu_weight;       /* 1 to 10000; 0: the kernel's default */
    uint32_t tasks_max;        /* processes and threads; 0: none */
};

struct resource_bound {
    const char *option;        /* "memory-max" */
    unsigned controller;       /* base/process/cgroup-control.h */
    const char *file;          /* of the cgroup: "memory.max" */
    uint64_t value;            /* 0: none */
};
#define RESOURCE_BOUNDS 4
void resource_control_list(const struct resource_control *resources, struct resource_bound ret[static RESOURCE_BOUNDS]);

struct job_command {           /* either argv or a script */
    char **argv;               /* NULL-terminated; none with a script */
    char *script;              /* run by `SHELL -c SCRIPT JOB`; "": none */
    char *shell;
};

struct job_input {             /* what the command can read; lists are NULL-terminated */
    char **environment;        /* NAME=value */
    char **environment_files;  /* "/path", or "-/path" if it may be missing */
    char **credentials;        /* "NAME=/path", or "NAME" of berth-runner's own */
    char *file;                /* its standard input; "": /dev/null */
    char **parameters;         /* what a caller or a schedule may set (conf/parameter.h) */
};

struct job_output {
    enum job_output_kind kind;
    char *path;                /* of JOB_OUTPUT_FILE, else NULL */
};

struct exit_statuses {         /* a set of 0 to 255 */
    uint64_t bits[4];          /* status n: bit n % 64 of bits[n / 64] */
};

enum retry_kind {              /* how a run may end */
    RETRY_FAILURE,             /* it exited with a status that is no success, or a signal ended it */
    RETRY_EXIT,                /* it exited with a status from `first` to `last` */
    RETRY_SIGNAL,              /* signal `first` ended it */
    RETRY_TIMEOUT,
    RETRY_LEASE_LOST,
    RETRY_GUARD_DIED,
    RETRY_HOST_LOST,
    RETRY_NOT_STARTED,
    RETRY_QUEUE_TIMEOUT,
};

struct retry_rule {            /* a word of retry-on */
    enum retry_kind kind;
    bool is_negated;           /* "!": a run that ends so is not retried */
    int first, last;           /* RETRY_EXIT, RETRY_SIGNAL; else 0 */
};

struct retry_rules {           /* the last one that matches counts */
    struct retry_rule *items;
    size_t n;
};

struct job_retry {             /* how often and when a job is tried again */
    uint32_t retries;          /* attempts after the first */
    struct retry_rules on;
    usec_t delay_usec, delay_max_usec;
    usec_t within_usec;        /* USEC_INFINITY: no bound */
    struct exit_statuses success;
    enum job_restart restart;
};

struct job_hooks {             /* jobs started after a run: lists of names, NULL or NULL-terminated */
    char **on_success, **on_failure, **on_broken, **on_recovered;
    uint32_t broken_after;     /* failures in a row */
    usec_t remind_after_usec;  /* USEC_INFINITY: never */
    usec_t max_silence_usec;   /* USEC_INFINITY: for ever */
    bool is_hook;              /* another job names this one, so its runs may overlap */
};

struct zone_setting {
    char *name; /* "local", "UTC", or a file below ZONE_DIRECTORY; settings_check_zones() looks for it */
    struct settings_place place; /* .file NULL: the default, not in the config */
};

enum job_on { JOB_ON_EACH, JOB_ON_ANY };

struct job_sharing {           /* which hosts begin a run when the job is due */
    enum job_on on;            /* each host that defines the job, or any one of them */
    char **prefer;             /* the hosts that ask first, in this order; NULL or NULL-terminated */
};

struct job_triggers {          /* when a run begins, and what happens if another has not ended then */
    bool at_start;
    usec_t every_usec;         /* USEC_INFINITY: not given. With on = "any" it is also the period of the schedule */
    enum job_overlap overlap;
    struct schedule schedule;  /* empty: not by schedule */
    struct zone_setting zone;  /* the job's own, or else that of the top level */
    usec_t splay_usec;         /* less than a day */
    usec_t catch_up_usec;      /* 0: never */
    uint32_t backlog;
    struct job_sharing sharing;
    uint64_t schedule_hash;    /* of schedule or period, except, zone, splay and on: jobs with equal ones have equal due times */
};

struct job_settings {
    char name[NAME_MAX_LENGTH + 1];
    struct job_command command;
    struct demands pools;
    usec_t head_start_usec;
    struct job_triggers triggers;
    usec_t queue_timeout_usec; /* USEC_INFINITY: none */
    usec_t timeout_usec;       /* USEC_INFINITY: none */
    int stop_signal;
    usec_t stop_timeout_usec;
    enum on_lease_lost on_lease_lost;
    char *user, *group;        /* "": as the runner */
    char *directory;           /* "~": the user's home */
    struct job_input input;
    mode_t umask;
    struct job_output output;
    struct job_process process;
    struct resource_control resources;
    struct job_retry retry;
    struct job_hooks hooks;
    struct accounts operators; /* may start and stop it without the right to operate */
    char *description;
    char hash[17];             /* of the options with HASH (conf/options.c), 16 hex digits: equal jobs have equal hashes, whatever their places */
    struct settings_place place;
};

#define INSTANCES_MAX 1000     /* of one template, open ones included */

struct parsed_section;

struct open_jobs {             /* the jobs that conf/open.c makes of templates with open-instances while berthd runs */
    struct parsed_section *sections; /* of the templates */
    struct job_settings *templates; /* one for each section: "backup@", with what all its instances have in common */
    size_t n_templates;
    struct job_settings **jobs; /* sorted by name */
    size_t n_jobs;
};

struct settings {
    char host[NAME_MAX_LENGTH + 1];
    char namespace[NAME_MAX_LENGTH + 1];
    usec_t lease_usec, heartbeat_usec;
    char *runtime_directory;
    char *state_directory;        /* of the records that outlive a reboot */
    struct zone_setting zone;     /* of schedules of jobs that name none */
    struct account run_group, operate_group; /* their members may run, or operate (daemon/rights.h) */
    uint32_t connections;         /* to control.sock, of all users */
    uint32_t user_connections;    /* of one user; root and berthd's own user are exempt from this and the next two */
    uint32_t user_runs;           /* runs of `berth run` of one user, waiting and granted */
    uint64_t user_buffer;         /* bytes of one user's calls and replies; all users together: SETTINGS_BUFFERS times as much */
    struct redis_settings *redis; /* NULL: no `redis` section */
    struct pool_settings *pools;  /* sorted by name; also the pool "@JOB" of each job with on = "any" */
    size_t n_pools;
    struct job_settings *jobs;    /* sorted by name */
    size_t n_jobs;
    struct open_jobs open;
    char **files;                 /* the names of all files that were read; places point here */
    size_t n_files;
};

/* Returns max(500 ms, 1 % of the lease), R8. */
usec_t settings_margin(usec_t lease_usec);
/* Returns the shortest lease, in whole milliseconds, that leaves this much time beside its margin. */
usec_t settings_lease_min(usec_t needed_usec);
/* Returns the longest stop timeout that fits the lease (contract, `lease`): lease - 2 heartbeats - margin; 0 if none fits. */
usec_t settings_stop_timeout_max(const struct settings *s);
/* Returns the default of stop-timeout: 5s, or a sixth of the lease if that is less. */
usec_t settings_stop_timeout_default(const struct settings *s);

/* Returns all pools, sorted by name, as in BERTH_LIMITS: "db:4,local:2/host"; the caller frees it. NULL: out
 * of memory, or there are no pools. */
char *settings_format_limits(const struct settings *s);
/* Returns how many pools the config defines, those of jobs not counted. */
size_t settings_count_pools(const struct settings *s);
/* Returns the pool of that name, or the pattern of which it is a key, or NULL. */
const struct pool_settings *settings_find_pool(const struct settings *s, const char *name);
/* Returns the pattern whose keys begin with this name and a slash, or NULL. */
const struct pool_settings *settings_find_pattern(const struct settings *s, const char *name);
const struct job_settings *settings_find_job(const struct settings *s, const char *name);
/* Returns the job at this index, open instances last; NULL: there are no more. */
const struct job_settings *settings_get_job(const struct settings *s, size_t index);
/* Returns the first instance of a template, whose name ends in '@'; NULL: there is no such template, or it
 * has no instance. */
const struct job_settings *settings_find_instance(const struct settings *s, const char *template);
bool exit_statuses_have(const struct exit_statuses *statuses, int status); /* false for what is not 0 to 255 */
/* Returns whether a run with these pools holds permits of the cluster, and so has a deadline. */
bool settings_needs_cluster(const struct settings *s, const struct demands *pools);
/* Returns the first option that differs and whose change needs a restart of berthd (one with HASH, outside of
 * pools and jobs), or NULL. */
const char *settings_find_fixed_change(const struct settings *running, const struct settings *loaded);

/* Returns a hash of the options that identify the Redis: the sentinels, and those whose change needs a restart. */
uint64_t settings_hash_redis(const struct redis_settings *redis);

/* One line for each error: "file:line: what is wrong; what to write instead". */
struct settings_errors {
    char **lines;
    size_t n;
    bool out_of_memory; /* some errors are missing */
};
/* Appends a line. 0 or -ENOMEM. */
int settings_errors_add(struct settings_errors *errors, const char *format, ...) _printf_(2, 3);
void settings_errors_done(struct settings_errors *errors);

struct settings_source { /* one file's bytes */
    const char *file;    /* name for errors */
    const char *text;    /* NUL-terminated */
    size_t size;
};

/* Named answers. */
enum {
    SETTINGS_E_INVALID = 1, /* the config is wrong, see `errors` */
    SETTINGS_E_UNKNOWN,     /* neither a job nor an instance of a template with open-instances */
    SETTINGS_E_FULL,        /* the template has INSTANCES_MAX instances */
};

/* hostname: default of `host`; NULL: gethostname(2). 0, SETTINGS_E_INVALID or -ENOMEM. Errors are
 * appended to `errors` (begin with {}), sorted by file and line. The settings keep no pointer to the
 * sources. */
int settings_parse(const struct settings_source *sources, size_t n_sources, const char *hostname, struct settings **ret,
                   struct settings_errors *errors);
/* Reads PATH, then PATH.d/ *.conf in lexical order; by default /etc/berth/berth.conf and /etc/berth/berth.conf.d/. Each
 * must be a regular file that root or the caller owns and that neither group nor others may write. The same holds for the .d directory and
 * all directories above, except that a sticky one (/tmp) may be writable. Returns as settings_parse(). */
int settings_load(const char *path, struct settings **ret, struct settings_errors *errors);
/* Returns the template with open-instances that has this name, or of which the name is an instance, as a job
 * named "backup@"; NULL: there is none. */
const struct job_settings *settings_find_open_template(const struct settings *s, const char *name);
/* Makes the job of an instance that an open template does not list, unless it exists already. The job has no
 * triggers, and exists until settings_close_job(). 0, -ENOMEM or a named answer. */
int settings_open_job(struct settings *s, const char *name, const struct job_settings **ret,
                      struct settings_errors *errors);
void settings_close_job(struct settings *s, const char *name); /* ignores jobs that the config lists */
/* Looks up the users and groups to which the config gives rights. It blocks (NSS), so call it right after the
 * config was read. Appends a line for each account that the machine does not have; such an account matches
 * nobody. 0 or -ENOMEM. */
int settings_find_accounts(struct settings *s, struct settings_errors *missing);
/* Reports zones that are not in `directory` (ZONE_DIRECTORY) or cannot be used, and jobs whose `except`
 * leaves no due time after `now_realtime`. Part of settings_check_machine(). A running berthd accepts such a
 * config, and does without these due times. 0, SETTINGS_E_INVALID (appended to errors) or -ENOMEM. */
int settings_check_zones(const struct settings *s, const char *directory, usec_t now_realtime,
                         struct settings_errors *errors);
/* Reports the controllers of cgroup v2 that this machine does not have but that jobs need for their bounds
 * (struct resource_control). A running service warns and starts such jobs without the bounds. available: a
 * mask of base/process/cgroup-control.h. 0, SETTINGS_E_INVALID (appended to errors) or -ENOMEM. */
int settings_check_controllers(const struct settings *s, unsigned available, struct settings_errors *errors);
/* Part of settings_check_machine(): reports missing users, groups, commands and directories of jobs, and
 * a password file that everybody may read. A running berthd accepts such a config, and the job fails at its
 * start. 0, SETTINGS_E_INVALID or -ENOMEM. */
int settings_check_commands(const struct settings *s, struct settings_errors *errors);
/* Checks accounts, commands, zones, and the controllers if it can find out which ones there are. Returns as
 * settings_check_commands(). */
int settings_check_machine(struct settings *s, struct settings_errors *errors);
/* Returns "file:line: warning: ..." if a password of Redis crosses a network unencrypted; the caller
 * frees it. NULL: no warning, or out of memory. */
char *settings_warn_of_cleartext(const struct settings *s);
/* Copies the settings and their texts; texts may be NULL. 0 or -ENOMEM; call redis_settings_done() in any case. */
int redis_settings_copy(struct redis_settings *ret, const struct redis_settings *redis);
void redis_settings_done(struct redis_settings *redis);
struct settings *settings_free(struct settings *s);
DEFINE_CLEANUP(struct settings, settings_free)
