/* SPDX-License-Identifier: MIT */

/* Reads the jobs of the config, and checks their options against each other, and against pools, lease and
 * rights. */

#include <string.h>

#include "base/duration.h"
#include "base/job-name.h"
#include "base/nearest.h"
#include "conf/checks/checks.h"
#include "conf/hash.h"
#include "conf/settings-read.h"

/* ---- pools ---- */

static void note_unknown_pool(const struct settings *s, const struct value_reader *reader, size_t index, const char *name) {
    _cleanup_free_ const char **known = calloc(s->n_pools + 1, sizeof(*known));
    const char *near;

    if (!known) {
        reader->notes->out_of_memory = true;
        return;
    }
    if (settings_find_pattern(s, name)) {
        value_error(reader, "pools", index, "names a pool that is not defined; did you mean \"%s/KEY\"?", name);
        return;
    }
    for (size_t i = 0; i < s->n_pools; i++)
        known[i] = s->pools[i].name;
    near = nearest(name, known, s->n_pools);
    value_error(reader, "pools", index, "names a pool that is not defined; %s%s%s", near ? "did you mean \"" : "add pool \"",
                near ? near : name, near ? "\"?" : "\" { limit = N }");
}

static void check_demand(const struct settings *s, const struct value_reader *reader, size_t index, const struct demand *demand) {
    const struct pool_settings *pool = settings_find_pool(s, demand->pool);

    if (!pool) {
        if (!reader->notes->incomplete)
            note_unknown_pool(s, reader, index, demand->pool);
    } else if (pool->limit > 0 && demand->permits > pool->limit) {
        value_error(reader, "pools", index, "needs more than the pool's limit; ask for at most %" PRIu32 ", or raise the limit at %s:%d",
                    pool->limit, pool->place.file, pool->place.line);
    } else if (pool->host_limit > 0 && demand->permits > pool->host_limit) {
        value_error(reader, "pools", index, "needs more than the pool's host-limit; ask for at most %" PRIu32 ", or raise the host-limit at %s:%d",
                    pool->host_limit, pool->place.file, pool->place.line);
    }
}

/* Returns whether the name of the pool depends on an instance that is not known yet. */
static bool is_pool_open(const struct value_reader *reader, size_t index) {
    const struct parsed_section *template = reader->section->open_of;

    return template && job_name_parse(reader->section->title) == JOB_NAME_TEMPLATE &&
           strchr(value_option(&(struct value_reader){template, NULL}, "pools")->values[index].text, '%');
}

/* Checks the demands of the list that have no error yet. */
static void check_demands(const struct settings *s, const struct value_reader *reader) {
    struct demands demands = {};

    for (size_t i = 0; i < value_option(reader, "pools")->n_values; i++)
        if (!is_pool_open(reader, i) &&
            demands_add(&demands, value_option(reader, "pools")->values[i].text) == 0)
            check_demand(s, reader, i, &demands.items[demands.n - 1]);
}

/* ---- time ---- */

/* A job that loses its lease must be dead before the lease is over (R8). */
static void check_stop_timeout(const struct settings *s, const struct job_settings *job, const struct value_reader *reader) {
    struct settings_place place = value_place(reader, "stop-timeout");
    char stop[DURATION_TEXT_SIZE], lease[DURATION_TEXT_SIZE], heartbeat[DURATION_TEXT_SIZE], margin[DURATION_TEXT_SIZE];
    char most[DURATION_TEXT_SIZE], least[DURATION_TEXT_SIZE];
    usec_t max = settings_stop_timeout_max(s);

    bool needs_cluster = job->triggers.sharing.on == JOB_ON_ANY || settings_needs_cluster(s, &job->pools);

    if (job->on_lease_lost != ON_LEASE_LOST_STOP || !needs_cluster || job->stop_timeout_usec <= max)
        return;
    value_note(reader, &place,
               "stop-timeout %s does not fit into the lease of %s beside 2 heartbeats of %s and a margin of %s;"
               " make it at most %s, or the lease at least %s",
               duration_format(job->stop_timeout_usec, stop), duration_format(s->lease_usec, lease),
               duration_format(s->heartbeat_usec, heartbeat), duration_format(settings_margin(s->lease_usec), margin),
               duration_format(max, most), duration_format(settings_lease_min(2 * s->heartbeat_usec + job->stop_timeout_usec), least));
}

/* ---- accounts ---- */

/* A job that runs as berthd's user could change the files that berth-runner and the guards keep for berthd.
 * A job with the operators' group could start every other job. The run group is allowed. */
static void check_accounts(const struct settings *s, const struct job_settings *job, const struct value_reader *reader) {
    const char *run = s->run_group.name, *operate = s->operate_group.name;

    if (job->user && strcmp(job->user, DAEMON_USER) == 0)
        value_error(reader, "user", 0, "is berthd's own, and the job could act as berthd; make another user for the job");
    if (!job->group || !*job->group)
        return;
    if (operate && strcmp(job->group, operate) == 0)
        value_error(reader, "group", 0, "is that of operators, and the job could act as one; name another group");
    else if (strcmp(job->group, DAEMON_USER) == 0 && (!run || strcmp(run, DAEMON_USER) != 0))
        value_error(reader, "group", 0, "is berthd's own; name another group");
}

/* ---- the job ---- */

static void hash_job(struct job_settings *job) {
    uint64_t hash = HASH_EMPTY;

    hash_add_text(&hash, "name", job->name);
    option_hash_section(SECTION_JOB, job, &hash);
    snprintf(job->hash, sizeof(job->hash), "%016" PRIx64, hash);
}

void settings_read_job(const struct settings *s, struct job_settings *job,
                       const struct parsed_section *section, struct notes *notes) {
    const struct value_reader reader = {section, notes};

    job->place = section->place;
    settings_read_job_title(&reader, job->name);
    job->stop_timeout_usec = settings_stop_timeout_default(s);
    option_read_section(&reader, job);
    settings_check_command(job, &reader);
    check_demands(s, &reader);
    check_accounts(s, job, &reader);
    check_stop_timeout(s, job, &reader);
    settings_read_triggers(s, job, &reader);
    settings_check_sharing(s, job, &reader);
    settings_check_retry(job, &reader);
    settings_check_parameters(job, &reader);
    settings_check_open(job, &reader);
    if (!notes->out_of_memory)
        hash_job(job);
}

static int compare(const void *a, const void *b, void *settings) {
    const struct job_settings *x = a, *y = b;
    int r = strcmp(x->name, y->name);

    return r != 0 ? r : settings_compare_places(settings, &x->place, &y->place);
}

/* The instances of a template have the same errors, so only the first instance with errors is reported. */
static void read_next(struct settings *s, const struct parsed_section *section, struct notes *notes,
                      const struct parsed_section **failed) {
    size_t n_notes = notes->n;

    if (settings_is_same_template(*failed, section)) {
        notes->incomplete = true;
        return;
    }
    settings_read_job(s, &s->jobs[s->n_jobs++], section, notes);
    if (section->is_instance && notes->n > n_notes)
        *failed = section;
}

void settings_read_jobs(struct settings *s, struct parsed *parsed, struct notes *notes) {
    const struct parsed_section *failed = NULL;
    size_t n = settings_count(parsed, SECTION_JOB);

    if (n == 0)
        return;
    s->jobs = calloc(n, sizeof(*s->jobs));
    if (!s->jobs) {
        notes->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < parsed->n_sections; i++)
        if (parsed->sections[i].kind == SECTION_JOB)
            read_next(s, &parsed->sections[i], notes, &failed);
    n = s->n_jobs;
    qsort_r(s->jobs, n, sizeof(*s->jobs), compare, s);
    for (size_t i = 1; i < n; i++)
        if (*s->jobs[i].name != '\0' && strcmp(s->jobs[i - 1].name, s->jobs[i].name) == 0)
            settings_note_twice(notes, "job", s->jobs[i].name, &s->jobs[i - 1].place, &s->jobs[i].place);
    settings_check_hooks(s, parsed, notes);
    settings_keep_open(s, parsed, notes);
    settings_add_job_pools(s, notes);
}
