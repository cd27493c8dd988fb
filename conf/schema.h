/* SPDX-License-Identifier: MIT */
#pragma once

/* The words of the config: its sections and their options. What their values mean is said in settings-*.c. */

#include <stdbool.h>
#include <stddef.h>

enum section_kind { SECTION_TOP, SECTION_REDIS, SECTION_POOL, SECTION_JOB, N_SECTION_KINDS };

enum {
    TOP_HOST,
    TOP_NAMESPACE,
    TOP_LEASE,
    TOP_HEARTBEAT,
    TOP_RUNTIME_DIRECTORY,
    TOP_RUN_GROUP,
    TOP_OPERATE_GROUP,
    TOP_CONNECTIONS,
    TOP_USER_CONNECTIONS,
    TOP_USER_RUNS,
    TOP_USER_BUFFER,
    N_TOP
};
enum { REDIS_URL, REDIS_USERNAME, REDIS_PASSWORD_FILE, REDIS_TIMEOUT, N_REDIS };
enum { POOL_LIMIT, POOL_SCOPE, POOL_HOST_LIMIT, POOL_QUEUE_LIMIT, POOL_USERS, POOL_HEAD_START_MAX, POOL_DESCRIPTION, N_POOL };
enum {
    JOB_COMMAND,
    JOB_POOLS,
    JOB_HEAD_START,
    JOB_AT_START,
    JOB_EVERY,
    JOB_OVERLAP,
    JOB_QUEUE_TIMEOUT,
    JOB_TIMEOUT,
    JOB_STOP_SIGNAL,
    JOB_STOP_TIMEOUT,
    JOB_ON_LEASE_LOST,
    JOB_USER,
    JOB_GROUP,
    JOB_DIRECTORY,
    JOB_ENVIRONMENT,
    JOB_UMASK,
    JOB_OUTPUT,
    JOB_LIMITS,
    JOB_NICE,
    JOB_OOM_SCORE_ADJUST,
    JOB_NO_NEW_PRIVILEGES,
    JOB_MEMORY_MAX,
    JOB_CPU_WEIGHT,
    JOB_TASKS_MAX,
    JOB_OPERATORS,
    JOB_DESCRIPTION,
    N_JOB
};
#define SCHEMA_OPTIONS_MAX 32 /* no section has more options; they are bits of an uint32_t, too */

struct schema_option {
    const char *name;
    bool is_list;
};

struct schema_section {
    const char *name; /* "" for what stands outside of any section */
    bool is_titled;
    const struct schema_option *options;
    size_t n_options;
};

const struct schema_section *schema_get(enum section_kind kind);

/* The kind of section, or the index of an option, with this name (n bytes); -1 if there is none. */
int schema_find_section(const char *name, size_t n);
int schema_find_option(enum section_kind kind, const char *name, size_t n);
/* The known name nearest to an unknown one, or NULL. */
const char *schema_nearest_option(enum section_kind kind, const char *name);
const char *schema_nearest_section(const char *name);
/* "there are limit, scope, ...": all options of a kind of section; of one that has more than people read, where to look. */
#define SCHEMA_LISTED_MAX 12
#define SCHEMA_LIST_SIZE (SCHEMA_LISTED_MAX * 20)
const char *schema_list_options(enum section_kind kind, char buffer[static SCHEMA_LIST_SIZE]);
