/* SPDX-License-Identifier: MIT */
#pragma once

/* The configuration as plain values. conf/settings.c makes them from text (no I/O: tests and fuzzers feed it from memory);
 * conf/load.c reads the files. Nothing of libconfuse is seen outside conf/. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/demand.h"

#define SETTINGS_PATH_DEFAULT "/etc/berth/berth.conf"
#define RUNTIME_DIRECTORY_MAX 60
#define DAEMON_USER "berth" /* whom berthd runs as, as a service */
#define POOL_LIMIT_MAX 1000000 /* permits, also of an override */
#define SETTINGS_BUFFERS 4

enum pool_scope { POOL_SCOPE_CLUSTER, POOL_SCOPE_HOST };
enum job_overlap { JOB_OVERLAP_SKIP, JOB_OVERLAP_QUEUE, JOB_OVERLAP_ALLOW };
enum on_lease_lost { ON_LEASE_LOST_STOP, ON_LEASE_LOST_CONTINUE };
enum job_output_kind { JOB_OUTPUT_JOURNAL, JOB_OUTPUT_NULL, JOB_OUTPUT_FILE };

struct settings_place { /* where in the config something stands, for errors */
    const char *file;   /* owned by the settings */
    int line;
};

struct account {               /* a user or a group that an option names: "alice", "@students" */
    char *name;                /* without the '@'; "": nobody */
    bool is_group;
    bool is_known;             /* by settings_find_accounts(): the machine has it, and id is its uid or gid */
    id_t id;
    struct settings_place place; /* .file NULL: a default that the config does not name */
};

struct accounts {
    struct account *items;
    size_t n;
};

struct redis_settings {
    bool tls;                  /* rediss://; accepted by the parser, refused by --check until TLS is built */
    char *unix_path;           /* or NULL */
    char *host;                /* or NULL; an IPv6 address without brackets */
    uint16_t port;
    unsigned db;
    char *username;            /* "" : none */
    char *url_username;        /* of the url, until it is checked against `username`; then NULL */
    char *password_file;       /* "" : none */
    usec_t timeout_usec;
    struct settings_place place;
};

struct pool_settings {
    char name[NAME_MAX_LENGTH + 1];
    uint32_t limit;            /* permits; 0 pauses */
    enum pool_scope scope;
    uint32_t host_limit;       /* 0: no bound */
    uint32_t queue_limit;
    struct accounts users;     /* who may use it by `berth run`; none: whoever has the right to run */
    usec_t head_start_max_usec; /* what `berth run` may ask for without the right to operate */
    char *description;
    struct settings_place place;
};

#define JOB_INHERIT INT_MIN

struct rlimit_setting {        /* setrlimit(2), soft and hard */
    int resource;              /* RLIMIT_... */
    uint64_t value;            /* in the resource's own unit; RLIM_INFINITY: unlimited */
};

struct rlimits {
    struct rlimit_setting *items; /* sorted by resource, each once */
    size_t n;
};

struct job_process {           /* what the command's first process sets for itself, and its children inherit */
    struct rlimits rlimits;
    int nice;                  /* -20 to 19, or JOB_INHERIT */
    int oom_score_adjust;      /* -1000 to 1000, or JOB_INHERIT */
    bool no_new_privileges;
};

struct resource_control {      /* of the run's cgroup */
    uint64_t memory_max;       /* bytes; 0: none */
    uint32_t cpu_weight;       /* 1 to 10000; 0: the kernel's default */
    uint32_t tasks_max;        /* processes and threads; 0: none */
};

struct job_output {
    enum job_output_kind kind;
    char *path;                /* of JOB_OUTPUT_FILE, else NULL */
};

struct job_settings {
    char name[NAME_MAX_LENGTH + 1];
    char **command;            /* argv, NULL-terminated, at least one */
    struct demands pools;
    usec_t head_start_usec;
    bool at_start;
    usec_t every_usec;         /* USEC_INFINITY: not by time */
    enum job_overlap overlap;
    usec_t queue_timeout_usec; /* USEC_INFINITY: none */
    usec_t timeout_usec;       /* USEC_INFINITY: none */
    int stop_signal;
    usec_t stop_timeout_usec;
    enum on_lease_lost on_lease_lost;
    char *user, *group;        /* "": as the runner */
    char *directory;
    char **environment;        /* NAME=value, NULL-terminated */
    mode_t umask;
    struct job_output output;
    struct job_process process;
    struct resource_control resources;
    struct accounts operators; /* may start and stop it without the right to operate */
    char *description;
    char hash[17];             /* of all options, 16 hex digits: equal jobs have equal hashes, wherever they stand */
    struct settings_place place;
};

struct settings {
    char host[NAME_MAX_LENGTH + 1];
    char namespace[NAME_MAX_LENGTH + 1];
    usec_t lease_usec, heartbeat_usec;
    char *runtime_directory;
    struct account run_group, operate_group; /* whose members have that right (daemon/rights.h) */
    uint32_t connections;         /* to control.sock, in all */
    uint32_t user_connections;    /* of these of one user; this and the next two bind neither root nor berthd's own user */
    uint32_t user_runs;           /* of `berth run`, waiting and granted, of one user */
    uint64_t user_buffer;         /* bytes of one user's calls and answers; all users together have SETTINGS_BUFFERS times as much */
    struct redis_settings *redis; /* NULL: no `redis` section */
    struct pool_settings *pools;  /* sorted by name */
    size_t n_pools;
    struct job_settings *jobs;    /* sorted by name */
    size_t n_jobs;
    char **files;                 /* all files read; the places point here */
    size_t n_files;
};

/* max(500 ms, 1 % of the lease), R8. */
usec_t settings_margin(usec_t lease_usec);
/* The shortest lease, in whole milliseconds, that leaves so much beside its margin. */
usec_t settings_lease_min(usec_t needed_usec);
/* The longest stop timeout that fits a lease (contract, `lease`): lease - 2 heartbeats - margin; 0 if nothing fits. */
usec_t settings_stop_timeout_max(const struct settings *s);
/* The default of stop-timeout: 5s, or a sixth of the lease if that is less. */
usec_t settings_stop_timeout_default(const struct settings *s);

/* "db:4,local:2/host", all pools by name, as in BERTH_LIMITS; to be freed. NULL: out of memory, or there are no pools. */
char *settings_format_limits(const struct settings *s);
const struct pool_settings *settings_find_pool(const struct settings *s, const char *name);
const struct job_settings *settings_find_job(const struct settings *s, const char *name);
/* Whether a job or ad hoc run on these pools holds permits of the cluster (and so has a deadline). */
bool settings_needs_cluster(const struct settings *s, const struct demands *pools);
/* The first option that a running daemon cannot change (host, namespace, lease, heartbeat, runtime-directory, redis) and in
 * which the two differ; NULL if there is none. */
const char *settings_find_fixed_change(const struct settings *running, const struct settings *loaded);

/* All that is wrong, one line each: "file:line: what is wrong, and what would be right". */
struct settings_errors {
    char **lines;
    size_t n;
    bool out_of_memory; /* something could not even be noted */
};
void settings_errors_done(struct settings_errors *errors);

struct settings_source { /* one file's bytes */
    const char *file;    /* name for errors */
    const char *text;    /* NUL-terminated */
    size_t size;
};

enum { SETTINGS_E_INVALID = 1 }; /* named answer: the config is wrong, `errors` says where */

/* hostname: default of `host`, NULL for gethostname(2). 0, SETTINGS_E_INVALID or -ENOMEM. What is wrong is
 * appended to errors (begin with {}), sorted by file and line. The settings keep nothing of the sources. */
int settings_parse(const struct settings_source *sources, size_t n_sources, const char *hostname, struct settings **ret,
                   struct settings_errors *errors);
/* PATH and PATH.d/ *.conf in lexical order; for the default path /etc/berth/berth.conf and /etc/berth/berth.conf.d/. Each
 * must be a regular file, owned by root or the caller, not writable by group or others; so must the .d directory, and all directories above
 * them, but sticky ones (/tmp) may be writable. */
int settings_load(const char *path, struct settings **ret, struct settings_errors *errors);
/* Looks up the users and groups that the config names for rights. It blocks (NSS), so it belongs right after a config is read. Appends a
 * line for each account that the machine does not have; that account matches nobody. 0 or -ENOMEM. */
int settings_find_accounts(struct settings *s, struct settings_errors *missing);
/* What this machine does not have: controllers of cgroup v2 for memory-max, cpu-weight and tasks-max, and accounts. For whoever checks a
 * config; a service runs without, and warns. available: a mask of base/process/cgroup-control.h. 0, SETTINGS_E_INVALID (appended to errors) or
 * -ENOMEM. settings_check_machine() looks at the machine; where its controllers cannot be known, nothing is wrong with them. */
int settings_check_controllers(const struct settings *s, unsigned available, struct settings_errors *errors);
/* Part of settings_check_machine(): users, groups, commands and directories of jobs that are not there, and a password file that everybody
 * may read. A running berthd takes such a config, and the job fails at its start. 0, SETTINGS_E_INVALID or -ENOMEM. */
int settings_check_commands(const struct settings *s, struct settings_errors *errors);
int settings_check_machine(struct settings *s, struct settings_errors *errors);
/* The password of Redis crosses a network as it is: there is one, and Redis is on another machine. A warning, "file:line: warning: ...", to
 * be freed; NULL: nothing to warn of, or out of memory. */
char *settings_warn_of_cleartext(const struct settings *s);
struct settings *settings_free(struct settings *s);
DEFINE_CLEANUP(struct settings, settings_free)
