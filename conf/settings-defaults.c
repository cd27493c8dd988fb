/* SPDX-License-Identifier: MIT */

/* Values that are derived from settings. */

#include <string.h>

#include "base/job-name.h"
#include "conf/hash.h"
#include "conf/options.h"
#include "conf/settings.h"

#define MARGIN_MIN (500 * USEC_PER_MSEC)
#define STOP_TIMEOUT_DEFAULT (5 * USEC_PER_SEC)

usec_t settings_margin(usec_t lease_usec) {
    return lease_usec / 100 > MARGIN_MIN ? lease_usec / 100 : MARGIN_MIN;
}

usec_t settings_lease_min(usec_t needed_usec) {
    usec_t with_percent = (needed_usec * 100 + 98) / 99, with_minimum = needed_usec + MARGIN_MIN;
    usec_t lease = with_percent > with_minimum ? with_percent : with_minimum;

    return (lease + USEC_PER_MSEC - 1) / USEC_PER_MSEC * USEC_PER_MSEC;
}

usec_t settings_stop_timeout_max(const struct settings *s) {
    return usec_sub(s->lease_usec, 2 * s->heartbeat_usec + settings_margin(s->lease_usec));
}

usec_t settings_stop_timeout_default(const struct settings *s) {
    usec_t sixth = s->lease_usec / 6 / USEC_PER_MSEC * USEC_PER_MSEC;

    return sixth < STOP_TIMEOUT_DEFAULT ? sixth : STOP_TIMEOUT_DEFAULT;
}

char *settings_format_limits(const struct settings *s) {
    char *text = NULL;
    size_t size;
    FILE *f = s->n_pools > 0 ? open_memstream(&text, &size) : NULL;

    if (!f)
        return NULL;
    for (size_t i = 0; i < s->n_pools; i++)
        fprintf(f, "%s%s:%" PRIu32 "%s", i > 0 ? "," : "", s->pools[i].name, s->pools[i].limit,
                s->pools[i].scope == POOL_SCOPE_HOST ? "/host" : "");
    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

size_t settings_count_pools(const struct settings *s) {
    size_t n = 0;

    for (size_t i = 0; i < s->n_pools; i++)
        n += pool_name_parse(s->pools[i].name) != POOL_NAME_JOB;
    return n;
}

static int compare_pool(const void *name, const void *pool) {
    return strcmp(name, ((const struct pool_settings *) pool)->name);
}

static const struct pool_settings *find_pool(const struct settings *s, const char *name) {
    return s->n_pools > 0 ? bsearch(name, s->pools, s->n_pools, sizeof(*s->pools), compare_pool) : NULL;
}

const struct pool_settings *settings_find_pool(const struct settings *s, const char *name) {
    const struct pool_settings *pool = find_pool(s, name);
    char pattern[POOL_NAME_SIZE];

    return pool || !pool_name_pattern(name, pattern) ? pool : find_pool(s, pattern);
}

const struct pool_settings *settings_find_pattern(const struct settings *s, const char *name) {
    char pattern[POOL_NAME_SIZE];

    if (!name_is_valid(name))
        return NULL;
    (void) snprintf(pattern, sizeof(pattern), "%s/*", name);
    return find_pool(s, pattern);
}

static int compare_job(const void *name, const void *job) {
    return strcmp(name, ((const struct job_settings *) job)->name);
}

static int compare_open_job(const void *name, const void *job) {
    return strcmp(name, (*(struct job_settings *const *) job)->name);
}

const struct job_settings *settings_find_job(const struct settings *s, const char *name) {
    const struct job_settings *job = NULL;
    struct job_settings **open = NULL;

    if (s->n_jobs > 0)
        job = bsearch(name, s->jobs, s->n_jobs, sizeof(*s->jobs), compare_job);
    if (!job && s->open.n_jobs > 0)
        open = bsearch(name, s->open.jobs, s->open.n_jobs, sizeof(*open), compare_open_job);
    return open ? *open : job;
}

const struct job_settings *settings_get_job(const struct settings *s, size_t index) {
    if (index < s->n_jobs)
        return &s->jobs[index];
    index -= s->n_jobs;
    return index < s->open.n_jobs ? s->open.jobs[index] : NULL;
}

const struct job_settings *settings_find_instance(const struct settings *s, const char *template) {
    const struct job_settings *job;

    for (size_t i = 0; (job = settings_get_job(s, i)); i++)
        if (job_name_matches(template, job->name))
            return job;
    return NULL;
}

const struct job_settings *settings_find_open_template(const struct settings *s, const char *name) {
    for (size_t i = 0; i < s->open.n_templates; i++) {
        const char *template = s->open.templates[i].name;

        if (strcmp(name, template) == 0 || job_name_matches(template, name))
            return &s->open.templates[i];
    }
    return NULL;
}

bool exit_statuses_have(const struct exit_statuses *statuses, int status) {
    return status >= 0 && status <= 255 && statuses->bits[status / 64] >> (status % 64) & 1;
}

bool settings_needs_cluster(const struct settings *s, const struct demands *pools) {
    for (size_t i = 0; i < pools->n; i++) {
        const struct pool_settings *pool = settings_find_pool(s, pools->items[i].pool);

        if (pool && pool->scope == POOL_SCOPE_CLUSTER)
            return true;
    }
    return false;
}

/* Returns whether two lists, "a,b:1", have an item in common. */
static bool share_item(const char *a, const char *b) {
    for (size_t n; *a; a += n + (a[n] == ',')) {
        n = strcspn(a, ",");
        for (const char *at = b; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
            if (strcspn(at, ",") == n && strncmp(at, a, n) == 0)
                return true;
    }
    return false;
}

/* Other sentinels than all of those before may know another master of the name. */
static bool are_sentinels_replaced(const struct redis_settings *running, const struct redis_settings *loaded) {
    const char *a = running->sentinels.hosts, *b = loaded->sentinels.hosts;

    return a && b && !share_item(a, b);
}

const char *settings_find_fixed_change(const struct settings *running, const struct settings *loaded) {
    const char *changed = option_find_difference(SECTION_TOP, running, loaded);
    bool is_redis_changed = !running->redis != !loaded->redis ||
                            (running->redis && (option_find_difference(SECTION_REDIS, running->redis, loaded->redis) ||
                                                are_sentinels_replaced(running->redis, loaded->redis)));

    return changed ? changed : is_redis_changed ? "redis" : NULL;
}

uint64_t settings_hash_redis(const struct redis_settings *redis) {
    uint64_t hash = HASH_EMPTY;

    option_hash_section(SECTION_REDIS, redis, &hash);
    hash_add_text(&hash, "sentinels", redis->sentinels.hosts ? redis->sentinels.hosts : "");
    return hash;
}
