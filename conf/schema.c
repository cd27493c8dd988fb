/* SPDX-License-Identifier: MIT */

/* The words of the config. A new option begins here. */

#include "conf/schema.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"

static const struct schema_option top_options[] = {
    [TOP_HOST] = {"host", false},
    [TOP_NAMESPACE] = {"namespace", false},
    [TOP_LEASE] = {"lease", false},
    [TOP_HEARTBEAT] = {"heartbeat", false},
    [TOP_RUNTIME_DIRECTORY] = {"runtime-directory", false},
    [TOP_RUN_GROUP] = {"run-group", false},
    [TOP_OPERATE_GROUP] = {"operate-group", false},
    [TOP_CONNECTIONS] = {"connections", false},
    [TOP_USER_CONNECTIONS] = {"user-connections", false},
    [TOP_USER_RUNS] = {"user-runs", false},
    [TOP_USER_BUFFER] = {"user-buffer", false},
};

static const struct schema_option redis_options[] = {
    [REDIS_URL] = {"url", false},
    [REDIS_USERNAME] = {"username", false},
    [REDIS_PASSWORD_FILE] = {"password-file", false},
    [REDIS_TIMEOUT] = {"timeout", false},
};

static const struct schema_option pool_options[] = {
    [POOL_LIMIT] = {"limit", false},
    [POOL_SCOPE] = {"scope", false},
    [POOL_HOST_LIMIT] = {"host-limit", false},
    [POOL_QUEUE_LIMIT] = {"queue-limit", false},
    [POOL_USERS] = {"users", true},
    [POOL_HEAD_START_MAX] = {"head-start-max", false},
    [POOL_DESCRIPTION] = {"description", false},
};

static const struct schema_option job_options[] = {
    [JOB_COMMAND] = {"command", true},
    [JOB_POOLS] = {"pools", true},
    [JOB_HEAD_START] = {"head-start", false},
    [JOB_AT_START] = {"at-start", false},
    [JOB_EVERY] = {"every", false},
    [JOB_OVERLAP] = {"overlap", false},
    [JOB_QUEUE_TIMEOUT] = {"queue-timeout", false},
    [JOB_TIMEOUT] = {"timeout", false},
    [JOB_STOP_SIGNAL] = {"stop-signal", false},
    [JOB_STOP_TIMEOUT] = {"stop-timeout", false},
    [JOB_ON_LEASE_LOST] = {"on-lease-lost", false},
    [JOB_USER] = {"user", false},
    [JOB_GROUP] = {"group", false},
    [JOB_DIRECTORY] = {"directory", false},
    [JOB_ENVIRONMENT] = {"environment", true},
    [JOB_UMASK] = {"umask", false},
    [JOB_OUTPUT] = {"output", false},
    [JOB_LIMITS] = {"limits", true},
    [JOB_NICE] = {"nice", false},
    [JOB_OOM_SCORE_ADJUST] = {"oom-score-adjust", false},
    [JOB_NO_NEW_PRIVILEGES] = {"no-new-privileges", false},
    [JOB_MEMORY_MAX] = {"memory-max", false},
    [JOB_CPU_WEIGHT] = {"cpu-weight", false},
    [JOB_TASKS_MAX] = {"tasks-max", false},
    [JOB_OPERATORS] = {"operators", true},
    [JOB_DESCRIPTION] = {"description", false},
};

static const struct schema_section sections[] = {
    [SECTION_TOP] = {"", false, top_options, ELEMENTSOF(top_options)},
    [SECTION_REDIS] = {"redis", false, redis_options, ELEMENTSOF(redis_options)},
    [SECTION_POOL] = {"pool", true, pool_options, ELEMENTSOF(pool_options)},
    [SECTION_JOB] = {"job", true, job_options, ELEMENTSOF(job_options)},
};

_Static_assert(ELEMENTSOF(job_options) <= SCHEMA_OPTIONS_MAX, "SCHEMA_OPTIONS_MAX is too small");

const struct schema_section *schema_get(enum section_kind kind) {
    return &sections[kind];
}

static bool is_word(const char *known, const char *name, size_t n) {
    return strlen(known) == n && memcmp(known, name, n) == 0;
}

int schema_find_section(const char *name, size_t n) {
    for (int kind = SECTION_TOP + 1; kind < N_SECTION_KINDS; kind++)
        if (is_word(sections[kind].name, name, n))
            return kind;
    return -1;
}

int schema_find_option(enum section_kind kind, const char *name, size_t n) {
    for (size_t i = 0; i < sections[kind].n_options; i++)
        if (is_word(sections[kind].options[i].name, name, n))
            return (int) i;
    return -1;
}

const char *schema_nearest_option(enum section_kind kind, const char *name) {
    const char *known[SCHEMA_OPTIONS_MAX];

    for (size_t i = 0; i < sections[kind].n_options; i++)
        known[i] = sections[kind].options[i].name;
    return nearest(name, known, sections[kind].n_options);
}

const char *schema_nearest_section(const char *name) {
    const char *known[N_SECTION_KINDS - 1];

    for (int kind = SECTION_TOP + 1; kind < N_SECTION_KINDS; kind++)
        known[kind - 1] = sections[kind].name;
    return nearest(name, known, ELEMENTSOF(known));
}

const char *schema_list_options(enum section_kind kind, char buffer[static SCHEMA_LIST_SIZE]) {
    size_t n = 0;

    if (sections[kind].n_options > SCHEMA_LISTED_MAX)
        return "berth.conf(5) lists them";
    for (size_t i = 0; i < sections[kind].n_options && n < SCHEMA_LIST_SIZE; i++)
        n += (size_t) snprintf(buffer + n, SCHEMA_LIST_SIZE - n, "%s%s", i > 0 ? ", " : "there are ", sections[kind].options[i].name);
    return buffer;
}
