/* SPDX-License-Identifier: MIT */

/* The jobs of the config. */

#include <signal.h>
#include <string.h>

#include "base/duration.h"
#include "base/nearest.h"
#include "conf/hash.h"
#include "conf/settings-read.h"

#define EVERY_MIN (10 * USEC_PER_MSEC)
#define TIMEOUT_MIN USEC_PER_MSEC
#define UMASK_DEFAULT 022

static const char *const overlaps[] = {
    [JOB_OVERLAP_SKIP] = "skip", [JOB_OVERLAP_QUEUE] = "queue", [JOB_OVERLAP_ALLOW] = "allow"};
static const char *const lost_answers[] = {[ON_LEASE_LOST_STOP] = "stop", [ON_LEASE_LOST_CONTINUE] = "continue"};

/* ---- lists ---- */

/* A NULL-terminated copy of the option's texts; newlines and tabs are allowed in them. */
static char **copy_list(const struct value_reader *r, unsigned option) {
    size_t n = r->section->options[option].n_values, n_copied = 0;
    char **list = calloc(n + 1, sizeof(*list));

    if (!list) {
        r->notes->out_of_memory = true;
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        const char *text = value_get(r, option, i, true);

        if (!text)
            continue;
        list[n_copied] = strdup(text);
        if (list[n_copied])
            n_copied++;
        else
            r->notes->out_of_memory = true;
    }
    return list;
}

static void read_command(struct job_settings *job, const struct value_reader *r) {
    job->command = copy_list(r, JOB_COMMAND);
    if (value_is_missing(r, JOB_COMMAND))
        value_note(r, &r->section->place, "command is missing; write command = {\"/path/to/program\", \"argument\"}");
    else if (job->command && job->command[0] && job->command[0][0] != '/')
        value_error(r, JOB_COMMAND, 0, "must be an absolute path: it is executed without a shell");
}

#define VARIABLE_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"

static void read_environment(struct job_settings *job, const struct value_reader *r) {
    const struct parsed_option *option = &r->section->options[JOB_ENVIRONMENT];

    job->environment = copy_list(r, JOB_ENVIRONMENT);
    for (size_t i = 0; i < option->n_values; i++) {
        const char *text = option->values[i].text;
        size_t n = strspn(text, VARIABLE_LETTERS "0123456789");

        if (strspn(text, VARIABLE_LETTERS) == 0 || text[n] != '=') {
            value_error(r, JOB_ENVIRONMENT, i, "must be NAME=value, NAME of letters, digits and '_', not beginning with a digit");
            continue;
        }
        if (strncmp(text, "BERTH_", 6) == 0)
            value_error(r, JOB_ENVIRONMENT, i, "begins with BERTH_, which berth sets itself; choose another name");
        for (size_t j = 0; j < i; j++)
            if (strncmp(option->values[j].text, text, n + 1) == 0) {
                value_error(r, JOB_ENVIRONMENT, i, "names a variable twice, first in line %d; keep one", option->values[j].line);
                break;
            }
    }
}

/* ---- pools ---- */

static void note_unknown_pool(const struct settings *s, const struct value_reader *r, size_t index, const char *name) {
    _cleanup_free_ const char **known = calloc(s->n_pools + 1, sizeof(*known));
    const char *near;

    if (!known) {
        r->notes->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < s->n_pools; i++)
        known[i] = s->pools[i].name;
    near = nearest(name, known, s->n_pools);
    value_error(r, JOB_POOLS, index, "names a pool that is not defined; %s%s%s", near ? "did you mean \"" : "add pool \"",
                near ? near : name, near ? "\"?" : "\" { limit = N }");
}

static void check_demand(const struct settings *s, const struct value_reader *r, size_t index, const struct demand *demand) {
    const struct pool_settings *pool = settings_find_pool(s, demand->pool);

    if (!pool) {
        if (!r->notes->incomplete)
            note_unknown_pool(s, r, index, demand->pool);
    } else if (pool->limit > 0 && demand->permits > pool->limit) {
        value_error(r, JOB_POOLS, index, "needs more than the pool's limit; ask for at most %" PRIu32 ", or raise the limit at %s:%d",
                    pool->limit, pool->place.file, pool->place.line);
    } else if (pool->host_limit > 0 && demand->permits > pool->host_limit) {
        value_error(r, JOB_POOLS, index, "needs more than the pool's host-limit; ask for at most %" PRIu32 ", or raise the host-limit at %s:%d",
                    pool->host_limit, pool->place.file, pool->place.line);
    }
}

static void read_demands(const struct settings *s, struct job_settings *job, const struct value_reader *r) {
    for (size_t i = 0; i < r->section->options[JOB_POOLS].n_values; i++) {
        const char *text = value_get(r, JOB_POOLS, i, false);
        int answer = text ? demands_add(&job->pools, text) : 0;

        if (answer != 0)
            value_error(r, JOB_POOLS, i, "%s", demands_explain(answer));
        else if (text)
            check_demand(s, r, i, &job->pools.items[job->pools.n - 1]);
    }
}

/* ---- time ---- */

/* A job that loses its lease must be dead before the lease is over (R8). */
static void check_stop_timeout(const struct settings *s, const struct job_settings *job, const struct value_reader *r) {
    struct settings_place place = value_place(r, JOB_STOP_TIMEOUT);
    char stop[DURATION_TEXT_SIZE], lease[DURATION_TEXT_SIZE], heartbeat[DURATION_TEXT_SIZE], margin[DURATION_TEXT_SIZE];
    char most[DURATION_TEXT_SIZE], least[DURATION_TEXT_SIZE];
    usec_t max = settings_stop_timeout_max(s);

    if (job->on_lease_lost != ON_LEASE_LOST_STOP || !settings_needs_cluster(s, &job->pools) || job->stop_timeout_usec <= max)
        return;
    value_note(r, &place,
               "stop-timeout %s does not fit into the lease of %s beside 2 heartbeats of %s and a margin of %s;"
               " make it at most %s, or the lease at least %s",
               duration_format(job->stop_timeout_usec, stop), duration_format(s->lease_usec, lease),
               duration_format(s->heartbeat_usec, heartbeat), duration_format(settings_margin(s->lease_usec), margin),
               duration_format(max, most), duration_format(settings_lease_min(2 * s->heartbeat_usec + job->stop_timeout_usec), least));
}

static void read_times(const struct settings *s, struct job_settings *job, const struct value_reader *r) {
    value_duration(r, JOB_HEAD_START, 0, VALUE_DURATION_MAX, &job->head_start_usec);
    job->every_usec = job->queue_timeout_usec = job->timeout_usec = USEC_INFINITY;
    value_optional_duration(r, JOB_EVERY, EVERY_MIN, &job->every_usec);
    value_optional_duration(r, JOB_QUEUE_TIMEOUT, TIMEOUT_MIN, &job->queue_timeout_usec);
    value_optional_duration(r, JOB_TIMEOUT, TIMEOUT_MIN, &job->timeout_usec);
    job->stop_timeout_usec = settings_stop_timeout_default(s);
    value_duration(r, JOB_STOP_TIMEOUT, 0, VALUE_DURATION_MAX, &job->stop_timeout_usec);
}

/* ---- the job ---- */

static void read_output(struct job_settings *job, const struct value_reader *r) {
    const char *text = value_get(r, JOB_OUTPUT, 0, false);

    job->output = JOB_OUTPUT_JOURNAL;
    if (!text || strcmp(text, "journal") == 0)
        return;
    if (strcmp(text, "null") == 0) {
        job->output = JOB_OUTPUT_NULL;
    } else if (*text == '/') {
        job->output = JOB_OUTPUT_FILE;
        job->output_path = strdup(text);
        if (!job->output_path)
            r->notes->out_of_memory = true;
    } else {
        value_error(r, JOB_OUTPUT, 0, "must be \"journal\", \"null\" or an absolute path");
    }
}

/* A job of berthd's user would reach what berth-runner and the guards keep for berthd, and one of the operators' group could start every
 * other job. The group of who may `berth run` is fine: a job may want to. */
static void check_accounts(const struct settings *s, const struct job_settings *job, const struct value_reader *r) {
    const char *run = s->run_group.name, *operate = s->operate_group.name;

    if (job->user && strcmp(job->user, DAEMON_USER) == 0)
        value_error(r, JOB_USER, 0, "is berthd's own, and a job of it could act as berthd; make another user for the job");
    if (!job->group || !*job->group)
        return;
    if (operate && strcmp(job->group, operate) == 0)
        value_error(r, JOB_GROUP, 0, "is that of operators, and the job could act as one; name another group");
    else if (strcmp(job->group, DAEMON_USER) == 0 && (!run || strcmp(run, DAEMON_USER) != 0))
        value_error(r, JOB_GROUP, 0, "is berthd's own; name another group");
}

static void read_job(const struct settings *s, struct job_settings *job, const struct parsed_section *section, struct notes *notes) {
    const struct value_reader r = {section, notes};
    unsigned overlap = JOB_OVERLAP_SKIP, on_lease_lost = ON_LEASE_LOST_STOP;

    job->place = section->place;
    settings_read_title(&r, job->name);
    read_command(job, &r);
    read_demands(s, job, &r);
    read_times(s, job, &r);
    value_bool(&r, JOB_AT_START, &job->at_start);
    value_choice(&r, JOB_OVERLAP, overlaps, ELEMENTSOF(overlaps), &overlap);
    job->overlap = (enum job_overlap) overlap;
    job->stop_signal = SIGTERM;
    value_signal(&r, JOB_STOP_SIGNAL, &job->stop_signal);
    value_choice(&r, JOB_ON_LEASE_LOST, lost_answers, ELEMENTSOF(lost_answers), &on_lease_lost);
    job->on_lease_lost = (enum on_lease_lost) on_lease_lost;
    value_account(&r, JOB_USER, &job->user);
    value_account(&r, JOB_GROUP, &job->group);
    check_accounts(s, job, &r);
    value_path(&r, JOB_DIRECTORY, "/", &job->directory);
    read_environment(job, &r);
    job->umask = UMASK_DEFAULT;
    value_umask(&r, JOB_UMASK, &job->umask);
    read_output(job, &r);
    settings_read_bounds(job, &r);
    settings_read_accounts(&r, JOB_OPERATORS, &job->operators);
    value_text(&r, JOB_DESCRIPTION, "", &job->description);
    check_stop_timeout(s, job, &r);
    if (!notes->out_of_memory)
        job_hash(job, job->hash);
}

static int compare(const void *a, const void *b, void *settings) {
    const struct job_settings *x = a, *y = b;
    int r = strcmp(x->name, y->name);

    return r != 0 ? r : settings_compare_places(settings, &x->place, &y->place);
}

void settings_read_jobs(struct settings *s, const struct parsed *parsed, struct notes *notes) {
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
            read_job(s, &s->jobs[s->n_jobs++], &parsed->sections[i], notes);
    qsort_r(s->jobs, n, sizeof(*s->jobs), compare, s);
    for (size_t i = 1; i < n; i++)
        if (*s->jobs[i].name != '\0' && strcmp(s->jobs[i - 1].name, s->jobs[i].name) == 0)
            settings_note_twice(notes, "job", s->jobs[i].name, &s->jobs[i - 1].place, &s->jobs[i].place);
}

static void list_free(char **list) {
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

void job_settings_done(struct job_settings *job) {
    list_free(job->command);
    list_free(job->environment);
    free(job->user);
    free(job->group);
    free(job->directory);
    free(job->output_path);
    free(job->limits);
    accounts_done(&job->operators);
    free(job->description);
}
