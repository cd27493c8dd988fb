/* SPDX-License-Identifier: MIT */

#include "conf/options.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"
#include "conf/hash.h"
#include "conf/types/option-types.h"
#include "conf/value.h"

#define MS ((int64_t) USEC_PER_MSEC)
#define DAY (INT64_C(86400) * (int64_t) USEC_PER_SEC)
#define QUOTA_MAX 1000000
#define QUEUE_LIMIT_MAX 1000000
#define RETRIES_MAX 1000
#define BROKEN_AFTER_MAX 1000
#define BACKLOG_MAX 1000       /* due times */
#define CPU_WEIGHT_MAX 10000  /* Linux: admin-guide/cgroup-v2.rst, cpu.weight */
#define TASKS_MAX_MAX 4194304 /* PID_MAX_LIMIT of Linux */

#define AT(field) offsetof(struct settings, field)
static const struct option top_options[] = {
    /* name              type              field                  min      max        default        hash */
    {"host",              &option_name,     AT(host),              0,       0,         NULL,          HASH},
    {"namespace",         &option_name,     AT(namespace),         0,       0,         "berth",       HASH},
    {"lease",             &option_duration, AT(lease_usec),        20 * MS, DAY,       "30s",         HASH},
    {"heartbeat",         &option_duration, AT(heartbeat_usec),    10 * MS, DAY,       NULL,          HASH},
    {"runtime-directory", &option_path,     AT(runtime_directory), 0,       0,         RUNTIME_DIRECTORY_DEFAULT, HASH},
    {"state-directory",   &option_path,     AT(state_directory),   0,       0,         NULL,          HASH},
    {"zone",              &option_zone,     AT(zone),              0,       0,         "local",       HASH_NOT},
    {"run-group",         &option_group,    AT(run_group),         0,       0,         "berth",       HASH_NOT},
    {"operate-group",     &option_group,    AT(operate_group),     0,       0,         "berth-admin", HASH_NOT},
    {"connections",       &option_number,   AT(connections),       1,       QUOTA_MAX, "4096",        HASH_NOT},
    {"user-connections",  &option_number,   AT(user_connections),  1,       QUOTA_MAX, "1024",        HASH_NOT},
    {"user-runs",         &option_number,   AT(user_runs),         1,       QUOTA_MAX, "1000",        HASH_NOT},
    {"user-buffer",       &option_size,     AT(user_buffer),       1 << 20, INT64_MAX, "16M",         HASH_NOT},
};
#undef AT

#define AT(field) offsetof(struct redis_settings, field)
static const struct option redis_options[] = {
    {"url",             &option_url,         0,                        0,      0,   "redis://127.0.0.1:6379/0", HASH},
    {"sentinels",       &option_sentinels,   AT(sentinels.hosts),      0,      0,   NULL,                       HASH_NOT},
    {"master",          &option_text,        AT(sentinels.master),     0,      0,   MASTER_DEFAULT,             HASH},
    {"username",        &option_text,        AT(username),             0,      0,   "",                         HASH_NOT},
    {"password-file",   &option_path,        AT(password_file),        0,      0,   "",                         HASH_NOT},
    {"sentinel-username", &option_text,      AT(sentinels.username),   0,      0,   "",                         HASH_NOT},
    {"sentinel-password-file", &option_path, AT(sentinels.password_file), 0,   0,   "",                         HASH_NOT},
    {"tls-ca",          &option_path,        AT(tls.ca),               0,      0,   "",                         HASH_NOT},
    {"tls-certificate", &option_path,        AT(tls.certificate),      0,      0,   "",                         HASH_NOT},
    {"tls-key",         &option_path,        AT(tls.key),              0,      0,   "",                         HASH_NOT},
    {"tls-server-name", &option_server_name, AT(tls.server_name),      0,      0,   "",                         HASH_NOT},
    {"tls-minimum",     &option_tls_minimum, AT(tls.minimum),          0,      0,   "1.2",                      HASH_NOT},
    {"timeout",         &option_duration,    AT(timeout_usec),         1 * MS, DAY, NULL,                       HASH_NOT},
    {"connect-timeout", &option_duration,    AT(connect_timeout_usec), 1 * MS, DAY, NULL,                       HASH_NOT},
    {"failover-margin", &option_duration,    AT(failover_margin_usec), 0,      OPTION_DURATION_MAX, "",         HASH_NOT},
};
#undef AT

#define AT(field) offsetof(struct pool_settings, field)
static const struct option pool_options[] = {
    {"limit",          &option_number,   AT(limit),               0, POOL_LIMIT_MAX,      NULL,      HASH_NOT},
    {"scope",          &option_scope,    AT(scope),               0, 0,                   "cluster", HASH_NOT},
    {"host-limit",     &option_number,   AT(host_limit),          0, POOL_LIMIT_MAX,      "0",       HASH_NOT},
    {"queue-limit",    &option_number,   AT(queue_limit),         0, QUEUE_LIMIT_MAX,     "10000",   HASH_NOT},
    {"users",          &option_accounts, AT(users),               0, 0,                   NULL,      HASH_NOT},
    {"head-start-max", &option_duration, AT(head_start_max_usec), 0, OPTION_DURATION_MAX, "5m",      HASH_NOT},
    {"description",    &option_text,     AT(description),         0, 0,                   "",        HASH_NOT},
};
#undef AT

#define AT(field) offsetof(struct job_settings, field)
static const struct option job_options[] = {
    /* The order is that of the hash. */
    {"command",           &option_command,       AT(command.argv),                  0, 0,                       NULL,      HASH},
    {"pools",             &option_demands,       AT(pools),                         0, 0,                       NULL,      HASH},
    {"head-start",        &option_duration,      AT(head_start_usec),               0, OPTION_DURATION_MAX,     "0s",      HASH},
    {"at-start",          &option_bool,          AT(triggers.at_start),             0, 0,                       "false",   HASH},
    {"every",             &option_duration,      AT(triggers.every_usec),     10 * MS, OPTION_DURATION_MAX,     "",        HASH},
    {"overlap",           &option_overlap,       AT(triggers.overlap),              0, 0,                       "skip",    HASH},
    {"queue-timeout",     &option_duration,      AT(queue_timeout_usec),       1 * MS, OPTION_DURATION_MAX,     "",        HASH},
    {"timeout",           &option_duration,      AT(timeout_usec),             1 * MS, OPTION_DURATION_MAX,     "",        HASH},
    {"stop-signal",       &option_signal,        AT(stop_signal),                   0, 0,                       "TERM",    HASH},
    {"stop-timeout",      &option_duration,      AT(stop_timeout_usec),             0, OPTION_DURATION_MAX,     NULL,      HASH},
    {"on-lease-lost",     &option_on_lease_lost, AT(on_lease_lost),                 0, 0,                       "stop",    HASH},
    {"user",              &option_account,       AT(user),                          0, 0,                       "",        HASH},
    {"group",             &option_account,       AT(group),                         0, 0,                       "",        HASH},
    {"directory",         &option_directory,     AT(directory),                     0, 0,                       "/",       HASH},
    {"environment",       &option_environment,   AT(input.environment),             0, 0,                       NULL,      HASH},
    {"umask",             &option_umask,         AT(umask),                         0, 0777,                    "022",     HASH},
    {"output",            &option_output,        AT(output),                        0, 0,                       "journal", HASH},
    {"description",       &option_text,          AT(description),                   0, 0,                       "",        HASH},
    {"limits",            &option_rlimits,       AT(process.rlimits),               0, 0,                       NULL,      HASH},
    {"nice",              &option_integer,       AT(process.nice),                -20, 19,                      "",        HASH_IF_SET},
    {"oom-score-adjust",  &option_integer,       AT(process.oom_score_adjust),  -1000, 1000,                    "",        HASH_IF_SET},
    {"no-new-privileges", &option_bool,          AT(process.no_new_privileges),     0, 0,                       "false",   HASH_IF_SET},
    {"memory-max",        &option_size,          AT(resources.memory_max),          1, INT64_MAX,               "",        HASH_IF_SET},
    {"memory-high",       &option_size,          AT(resources.memory_high),         1, INT64_MAX,               "",        HASH_IF_SET},
    {"cpu-weight",        &option_number,        AT(resources.cpu_weight),          1, CPU_WEIGHT_MAX,          "",        HASH_IF_SET},
    {"tasks-max",         &option_number,        AT(resources.tasks_max),           1, TASKS_MAX_MAX,           "",        HASH_IF_SET},
    {"schedule",          &option_schedule,      AT(triggers.schedule),             0, 0,                       NULL,      HASH_NOT},
    {"except",            &option_except,        AT(triggers.schedule),             0, 0,                       NULL,      HASH_NOT},
    {"zone",              &option_zone,          AT(triggers.zone),                 0, 0,                       "",        HASH_NOT},
    {"splay",             &option_duration,      AT(triggers.splay_usec),           0, OPTION_DURATION_MAX,     "0s",      HASH_NOT},
    {"catch-up",          &option_duration,      AT(triggers.catch_up_usec),        0, OPTION_DURATION_MAX,     "10m",     HASH_NOT},
    {"backlog",           &option_number,        AT(triggers.backlog),              1, BACKLOG_MAX,             "1",       HASH_NOT},
    {"on",                &option_on,            AT(triggers.sharing.on),           0, 0,                       "each",    HASH_NOT},
    {"prefer",            &option_hosts,         AT(triggers.sharing.prefer),       0, 0,                       NULL,      HASH_NOT},
    {"io-class",          &option_io_class,      AT(process.io_class),              0, 0,                       "",        HASH_IF_SET},
    {"io-priority",       &option_integer,       AT(process.io_priority),           0, 7,                       "",        HASH_IF_SET},
    {"script",            &option_script,        AT(command.script),                0, 0,                       "",        HASH_IF_SET},
    {"shell",             &option_path,          AT(command.shell),                 0, 0,                       SHELL_DEFAULT, HASH_IF_SET},
    {"environment-file",  &option_files,         AT(input.environment_files),       0, 0,                       NULL,      HASH_IF_SET},
    {"credentials",       &option_credentials,   AT(input.credentials),             0, 0,                       NULL,      HASH_IF_SET},
    {"stdin",             &option_stdin,         AT(input.file),                    0, 0,                       "null",    HASH_IF_SET},
    {"parameters",        &option_parameters,    AT(input.parameters),              0, 0,                       NULL,      HASH_IF_SET},
    {"operators",         &option_accounts,      AT(operators),                     0, 0,                       NULL,      HASH},
    {"instances",         &option_instances,     0,                                 0, 0,                       NULL,      HASH_NOT},
    {"open-instances",    &option_open_instances, 0,                                0, 0,                       "false",   HASH_NOT},
    {"retry",             &option_number,        AT(retry.retries),                 0, RETRIES_MAX,             "0",       HASH_NOT},
    {"retry-on",          &option_retry_on,      AT(retry.on),                      0, 0,                       NULL,      HASH_NOT},
    {"retry-delay",       &option_duration,      AT(retry.delay_usec),         1 * MS, OPTION_DURATION_MAX,     "30s",     HASH_NOT},
    {"retry-delay-max",   &option_duration,      AT(retry.delay_max_usec),     1 * MS, OPTION_DURATION_MAX,     "15m",     HASH_NOT},
    {"retry-within",      &option_duration,      AT(retry.within_usec),        1 * MS, OPTION_DURATION_MAX,     "",        HASH_NOT},
    {"success-on",        &option_statuses,      AT(retry.success),                 0, 0,                       NULL,      HASH_NOT},
    {"restart",           &option_restart,       AT(retry.restart),                 0, 0,                       "no",      HASH_NOT},
    {"on-success",        &option_job_names,     AT(hooks.on_success),              0, 0,                       NULL,      HASH_NOT},
    {"on-failure",        &option_job_names,     AT(hooks.on_failure),              0, 0,                       NULL,      HASH_NOT},
    {"on-broken",         &option_job_names,     AT(hooks.on_broken),               0, 0,                       NULL,      HASH_NOT},
    {"on-recovered",      &option_job_names,     AT(hooks.on_recovered),            0, 0,                       NULL,      HASH_NOT},
    {"broken-after",      &option_number,        AT(hooks.broken_after),            1, BROKEN_AFTER_MAX,        "1",       HASH_NOT},
    {"remind-after",      &option_duration,      AT(hooks.remind_after_usec),  1 * MS, OPTION_DURATION_MAX,     "",        HASH_NOT},
    {"max-silence",       &option_duration,      AT(hooks.max_silence_usec),   1 * MS, OPTION_DURATION_MAX,     "",        HASH_NOT},
};
#undef AT

static const struct section sections[] = {
    [SECTION_TOP] = {"", false, top_options, ELEMENTSOF(top_options)},
    [SECTION_REDIS] = {"redis", false, redis_options, ELEMENTSOF(redis_options)},
    [SECTION_POOL] = {"pool", true, pool_options, ELEMENTSOF(pool_options)},
    [SECTION_JOB] = {"job", true, job_options, ELEMENTSOF(job_options)},
};

_Static_assert(ELEMENTSOF(job_options) <= OPTIONS_MAX, "OPTIONS_MAX is too small");

/* ---- names ---- */

const struct section *section_get(enum section_kind kind) {
    return &sections[kind];
}

static bool is_name(const char *known, const char *name, size_t n) {
    return strlen(known) == n && memcmp(known, name, n) == 0;
}

int section_find(const char *name, size_t n) {
    for (int kind = SECTION_TOP + 1; kind < N_SECTION_KINDS; kind++)
        if (is_name(sections[kind].name, name, n))
            return kind;
    return -1;
}

int section_find_option(enum section_kind kind, const char *name, size_t n) {
    for (size_t i = 0; i < sections[kind].n_options; i++)
        if (is_name(sections[kind].options[i].name, name, n))
            return (int) i;
    return -1;
}

const char *section_nearest_option(enum section_kind kind, const char *name) {
    const char *known[OPTIONS_MAX];

    for (size_t i = 0; i < sections[kind].n_options; i++)
        known[i] = sections[kind].options[i].name;
    return nearest(name, known, sections[kind].n_options);
}

const char *section_nearest(const char *name) {
    const char *known[N_SECTION_KINDS - 1];

    for (int kind = SECTION_TOP + 1; kind < N_SECTION_KINDS; kind++)
        known[kind - 1] = sections[kind].name;
    return nearest(name, known, ELEMENTSOF(known));
}

const char *section_list_options(enum section_kind kind, char buffer[static OPTIONS_TEXT_SIZE]) {
    const struct section *section = &sections[kind];
    size_t n = 0;

    if (section->n_options > OPTIONS_LISTED_MAX)
        return "berth.conf(5) lists them";
    for (size_t i = 0; i < section->n_options && n < OPTIONS_TEXT_SIZE; i++)
        n += (size_t) snprintf(buffer + n, OPTIONS_TEXT_SIZE - n, "%s%s", i > 0 ? ", " : "there are ",
                               section->options[i].name);
    return buffer;
}

bool option_is_optional(const struct option *option) {
    return option->text && option->text[0] == '\0';
}

bool option_is_list(const struct option *option) {
    return option->type->parse_list != NULL;
}

/* ---- values ---- */

static void read_option(const struct value_reader *reader, const struct option *option, void *at) {
    const char *text;

    if (option_is_list(option)) {
        option->type->parse_list(reader, option, at);
        return;
    }
    text = value_get(reader, option->name, 0, option->type->may_break);
    if (text && option->type->parse(reader, option, text, at))
        return;
    if (option->text)
        (void) option->type->parse(reader, option, option->text, at);
}

void option_read_section(const struct value_reader *reader, void *settings) {
    const struct section *section = &sections[reader->section->kind];

    for (size_t i = 0; i < section->n_options; i++)
        read_option(reader, &section->options[i], (char *) settings + section->options[i].at);
}

static void hash_option(const struct option *option, const void *settings, uint64_t *hash) {
    if (option->hash != HASH_NOT)
        option->type->hash(hash, option, (const char *) settings + option->at);
}

void option_hash_section(enum section_kind kind, const void *settings, uint64_t *hash) {
    for (size_t i = 0; i < sections[kind].n_options; i++)
        hash_option(&sections[kind].options[i], settings, hash);
}

const char *option_find_difference(enum section_kind kind, const void *a, const void *b) {
    for (size_t i = 0; i < sections[kind].n_options; i++) {
        uint64_t x = HASH_EMPTY, y = HASH_EMPTY;

        hash_option(&sections[kind].options[i], a, &x);
        hash_option(&sections[kind].options[i], b, &y);
        if (x != y)
            return sections[kind].options[i].name;
    }
    return NULL;
}

void option_done_section(enum section_kind kind, void *settings) {
    for (size_t i = 0; i < sections[kind].n_options; i++) {
        const struct option *option = &sections[kind].options[i];

        if (option->type->done)
            option->type->done((char *) settings + option->at);
    }
}
