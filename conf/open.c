/* SPDX-License-Identifier: MIT */

/* Makes the jobs of instances that a template with open-instances does not list. The text of the template is
 * kept, so such an instance has the same checks, errors and hash as a listed one. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/job-name.h"
#include "conf/checks/checks.h"
#include "conf/expand.h"
#include "conf/settings-read.h"

/* ---- templates ---- */

static const struct parsed_section *find_section(const struct parsed *parsed, const char *title) {
    for (size_t i = 0; i < parsed->n_open; i++)
        if (strcmp(parsed->open[i].title, title) == 0)
            return &parsed->open[i];
    return NULL;
}

void settings_keep_open(struct settings *s, struct parsed *parsed, struct notes *notes) {
    size_t n_jobs = 0;

    if (parsed->n_open == 0 || notes->n > 0 || notes->out_of_memory)
        return;
    s->open.templates = calloc(parsed->n_open, sizeof(*s->open.templates));
    s->open.sections = calloc(parsed->n_open, sizeof(*s->open.sections));
    if (!s->open.templates || !s->open.sections) {
        notes->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < s->n_jobs; i++) {
        const struct parsed_section *section = find_section(parsed, s->jobs[i].name);

        if (!section) {
            s->jobs[n_jobs++] = s->jobs[i];
            continue;
        }
        s->open.templates[s->open.n_templates] = s->jobs[i];
        s->open.sections[s->open.n_templates++] = *section;
    }
    s->n_jobs = n_jobs;
    parsed->n_open = 0; /* the settings own their texts now */
}

static void free_job(struct job_settings *job) {
    option_done_section(SECTION_JOB, job);
    free(job);
}

void settings_free_open(struct settings *s) {
    for (size_t i = 0; i < s->open.n_templates; i++) {
        option_done_section(SECTION_JOB, &s->open.templates[i]);
        parsed_section_done(&s->open.sections[i]);
    }
    for (size_t i = 0; i < s->open.n_jobs; i++)
        free_job(s->open.jobs[i]);
    free(s->open.templates);
    free(s->open.sections);
    free(s->open.jobs);
}

/* ---- instances ---- */

static bool is_full(const struct settings *s, const char *template) {
    const struct job_settings *job;
    size_t n = 0;

    for (size_t i = 0; (job = settings_get_job(s, i)); i++)
        n += job_name_matches(template, job->name);
    return n >= INSTANCES_MAX;
}

/* An instance takes the operators of its template, which were looked up when the config was read. */
static void copy_accounts(struct job_settings *job, const struct job_settings *template) {
    for (size_t i = 0; i < job->operators.n && i < template->operators.n; i++) {
        job->operators.items[i].is_known = template->operators.items[i].is_known;
        job->operators.items[i].id = template->operators.items[i].id;
    }
}

/* Returns the job, or NULL: its errors are noted, or memory is short. */
static struct job_settings *read_instance(const struct settings *s, size_t template, const char *name,
                                          struct notes *notes) {
    struct job_settings *job = calloc(1, sizeof(*job));
    struct parsed_section section;

    if (!job) {
        notes->out_of_memory = true;
        return NULL;
    }
    template_open(&s->open.sections[template], name, &section, notes);
    if (!notes->out_of_memory)
        settings_read_job(s, job, &section, notes);
    parsed_section_done(&section);
    if (notes->n == 0 && !notes->out_of_memory) {
        copy_accounts(job, &s->open.templates[template]);
        return job;
    }
    free_job(job);
    return NULL;
}

/* Adds the job in the order of names. 0, or -ENOMEM: the caller still owns the job. */
static int insert(struct open_jobs *open, struct job_settings *job) {
    struct job_settings **jobs = realloc(open->jobs, (open->n_jobs + 1) * sizeof(*jobs));
    size_t at = 0;

    if (!jobs)
        return -ENOMEM;
    open->jobs = jobs;
    while (at < open->n_jobs && strcmp(jobs[at]->name, job->name) < 0)
        at++;
    memmove(jobs + at + 1, jobs + at, (open->n_jobs++ - at) * sizeof(*jobs));
    jobs[at] = job;
    return 0;
}

int settings_open_job(struct settings *s, const char *name, const struct job_settings **ret,
                      struct settings_errors *errors) {
    const struct job_settings *template = settings_find_open_template(s, name);
    struct job_settings *job;
    struct notes notes = {};
    int r;

    *ret = settings_find_job(s, name);
    if (*ret)
        return 0;
    if (!template || !job_name_instance(name))
        return SETTINGS_E_UNKNOWN;
    if (is_full(s, template->name))
        return SETTINGS_E_FULL;
    job = read_instance(s, (size_t) (template - s->open.templates), name, &notes);
    r = notes.out_of_memory ? -ENOMEM : job ? insert(&s->open, job) : SETTINGS_E_INVALID;
    if (r < 0 && job)
        free_job(job);
    if (r == 0)
        *ret = job;
    notes_finish(&notes, s->files, s->n_files, errors);
    notes_done(&notes);
    return r;
}

void settings_close_job(struct settings *s, const char *name) {
    struct open_jobs *open = &s->open;

    for (size_t i = 0; i < open->n_jobs; i++) {
        if (strcmp(open->jobs[i]->name, name) != 0)
            continue;
        free_job(open->jobs[i]);
        memmove(open->jobs + i, open->jobs + i + 1, (--open->n_jobs - i) * sizeof(*open->jobs));
        return;
    }
}
