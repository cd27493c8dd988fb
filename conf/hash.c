/* SPDX-License-Identifier: MIT */

/* The canonical text of a job goes straight into the hash: "key=length:value\n" for each of its values, so that no two jobs
 * have the same text. */

#include "conf/hash.h"

#include <string.h>

/* http://www.isthe.com/chongo/tech/comp/fnv/ */
#define FNV_OFFSET UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

static void add_bytes(uint64_t *hash, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        *hash = (*hash ^ (unsigned char) bytes[i]) * FNV_PRIME;
}

static void add_text(uint64_t *hash, const char *key, const char *value) {
    char head[64];
    int n = snprintf(head, sizeof(head), "%s=%zu:", key, strlen(value));

    add_bytes(hash, head, (size_t) n);
    add_bytes(hash, value, strlen(value));
    add_bytes(hash, "\n", 1);
}

static void add_number(uint64_t *hash, const char *key, uint64_t value) {
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    add_text(hash, key, text);
}

static void add_list(uint64_t *hash, const char *key, char *const *list) {
    for (size_t i = 0; list[i]; i++)
        add_text(hash, key, list[i]);
}

/* What came after the first version counts where it is set alone: a job without it keeps its hash over an upgrade. */
static void add_bounds(uint64_t *hash, const struct job_settings *job) {
    char key[24];

    for (size_t i = 0; i < job->n_limits; i++) {
        snprintf(key, sizeof(key), "limit-%d", job->limits[i].resource);
        add_number(hash, key, job->limits[i].value);
    }
    if (job->nice != JOB_INHERIT)
        add_number(hash, "nice", (uint64_t) job->nice + 20);
    if (job->oom_score_adjust != JOB_INHERIT)
        add_number(hash, "oom-score-adjust", (uint64_t) job->oom_score_adjust + 1000);
    if (job->no_new_privileges)
        add_number(hash, "no-new-privileges", 1);
    if (job->memory_max > 0)
        add_number(hash, "memory-max", job->memory_max);
    if (job->cpu_weight > 0)
        add_number(hash, "cpu-weight", job->cpu_weight);
    if (job->tasks_max > 0)
        add_number(hash, "tasks-max", job->tasks_max);
}

/* By name: which ids the names have on this machine is not part of the config. */
static void add_accounts(uint64_t *hash, const struct accounts *accounts) {
    for (size_t i = 0; i < accounts->n; i++)
        add_text(hash, accounts->items[i].is_group ? "operator-group" : "operator", accounts->items[i].name);
}

void job_hash(const struct job_settings *job, char ret[static 17]) {
    uint64_t hash = FNV_OFFSET;
    char pools[DEMANDS_TEXT_SIZE];

    add_text(&hash, "name", job->name);
    add_list(&hash, "command", job->command);
    add_text(&hash, "pools", demands_format(&job->pools, pools));
    add_number(&hash, "head-start", job->head_start_usec);
    add_number(&hash, "at-start", job->at_start);
    add_number(&hash, "every", job->every_usec);
    add_number(&hash, "overlap", job->overlap);
    add_number(&hash, "queue-timeout", job->queue_timeout_usec);
    add_number(&hash, "timeout", job->timeout_usec);
    add_number(&hash, "stop-signal", (uint64_t) job->stop_signal);
    add_number(&hash, "stop-timeout", job->stop_timeout_usec);
    add_number(&hash, "on-lease-lost", job->on_lease_lost);
    add_text(&hash, "user", job->user);
    add_text(&hash, "group", job->group);
    add_text(&hash, "directory", job->directory);
    add_list(&hash, "environment", job->environment);
    add_number(&hash, "umask", job->umask);
    add_number(&hash, "output", job->output);
    add_text(&hash, "output-path", job->output_path ? job->output_path : "");
    add_text(&hash, "description", job->description);
    add_bounds(&hash, job);
    add_accounts(&hash, &job->operators);
    snprintf(ret, 17, "%016" PRIx64, hash);
}
