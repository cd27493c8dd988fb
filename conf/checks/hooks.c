/* SPDX-License-Identifier: MIT */

/* Checks that each hook is a job of the config, and that hooks form no circle. */

#include <string.h>

#include "base/job-name.h"
#include "base/nearest.h"
#include "conf/checks/checks.h"
#include "conf/parameter.h"
#include "conf/settings-read.h"

#define CIRCLE_TEXT_MAX 400
#define CIRCLE_TEXT_SIZE (CIRCLE_TEXT_MAX + NAME_MAX_LENGTH + 8)

/* An option that names hooks, and the list in the settings of a job. */
static const struct {
    const char *name;
    size_t at;
} options[] = {
    {"on-success", offsetof(struct job_hooks, on_success)},
    {"on-failure", offsetof(struct job_hooks, on_failure)},
    {"on-broken", offsetof(struct job_hooks, on_broken)},
    {"on-recovered", offsetof(struct job_hooks, on_recovered)},
};

/* ---- names ---- */

static void note_unknown(const struct settings *s, const struct value_reader *reader, const char *option,
                         size_t index) {
    _cleanup_free_ const char **known = calloc(s->n_jobs + 1, sizeof(*known));
    const char *name = value_option(reader, option)->values[index].text, *near;

    if (!known) {
        reader->notes->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < s->n_jobs; i++)
        known[i] = s->jobs[i].name;
    near = nearest(name, known, s->n_jobs);
    value_error(reader, option, index, "names a job that is not defined; %s%s%s",
                near ? "did you mean \"" : "add job \"", near ? near : name,
                near ? "\"?" : "\" { command = {...} }");
}

/* Nobody sets the parameters of a hook, so all of them need defaults. */
static void check_required(const struct value_reader *reader, const char *option, size_t index,
                           const struct job_settings *hook) {
    const struct parameters parameters = {hook->name, hook->input.parameters, hook->input.environment};
    const char *missing = parameters_find_missing(&parameters, NULL, 0);

    if (missing)
        value_error(reader, option, index,
                    "names a job whose parameter %.*s has no default; add %.*s=... to its environment",
                    (int) parameter_name_length(missing), missing, (int) parameter_name_length(missing),
                    missing);
}

static void check_names(const struct settings *s, const struct value_reader *reader, const char *option) {
    const struct parsed_option *written = value_option(reader, option);

    for (size_t i = 0; i < written->n_values; i++) {
        const char *name = written->values[i].text;
        bool is_template = job_name_parse(name) == JOB_NAME_TEMPLATE;
        const struct job_settings *hook = is_template ? NULL : settings_find_job(s, name);

        if (is_template)
            value_error(reader, option, i, "names a template; name one of its instances");
        else if (hook && hook->triggers.sharing.on == JOB_ON_ANY)
            value_error(reader, option, i, "names a job with on = \"any\"; a hook runs where the job ended, so remove on there");
        else if (hook)
            check_required(reader, option, i, hook);
        else if (job_name_is_runnable(name))
            note_unknown(s, reader, option, i);
    }
}

/* ---- circles ---- */

struct step {             /* a job on the way */
    size_t job;           /* index in the settings */
    size_t option, index; /* of its hook that is followed next */
};

enum mark { MARK_NEW, MARK_ON_WAY, MARK_DONE };

struct walk { /* a depth-first search; each job is at most once on the way */
    const struct settings *settings;
    unsigned char *marks; /* enum mark, by job */
    struct step *way;
    size_t n;
    struct notes *notes;
};

/* Returns the next hook of the last job on the way, or NULL. */
static const struct job_settings *next_hook(const struct walk *walk, struct step *step) {
    const struct job_hooks *hooks = &walk->settings->jobs[step->job].hooks;

    for (; step->option < ELEMENTSOF(options); step->option++, step->index = 0) {
        char *const *list = *(char **const *) ((const char *) hooks + options[step->option].at);

        while (list && list[step->index]) {
            const struct job_settings *job = settings_find_job(walk->settings, list[step->index++]);

            if (job)
                return job;
        }
    }
    return NULL;
}

static void push(struct walk *walk, size_t job) {
    walk->marks[job] = MARK_ON_WAY;
    walk->way[walk->n++] = (struct step){.job = job};
}

/* Notes "on-success: a -> b -> a". A long circle is cut before its end. */
static void note_circle(const struct walk *walk, size_t job) {
    const struct job_settings *jobs = walk->settings->jobs, *first = &jobs[job];
    const char *option;
    char text[CIRCLE_TEXT_SIZE];
    size_t i = walk->n, size = 0;

    do
        i--;
    while (walk->way[i].job != job);
    option = options[walk->way[i].option].name;
    for (; i < walk->n && size < CIRCLE_TEXT_MAX; i++)
        size += (size_t) snprintf(text + size, sizeof(text) - size, "%s -> ", jobs[walk->way[i].job].name);
    notes_add(walk->notes, &first->place,
              "job \"%s\": %s: %s%s%s is a circle, which would never end; remove one of these hooks",
              first->name, option, text, i < walk->n ? "... -> " : "", first->name);
}

static void follow(struct walk *walk, size_t job) {
    switch ((enum mark) walk->marks[job]) {
    case MARK_NEW:
        push(walk, job);
        break;
    case MARK_ON_WAY:
        note_circle(walk, job);
        break;
    case MARK_DONE:
        break;
    }
}

static void find_circles(struct walk *walk) {
    for (size_t i = 0; i < walk->settings->n_jobs; i++) {
        if (walk->marks[i] == MARK_NEW)
            push(walk, i);
        while (walk->n > 0) {
            struct step *last = &walk->way[walk->n - 1];
            const struct job_settings *hook = next_hook(walk, last);

            if (hook) {
                follow(walk, (size_t) (hook - walk->settings->jobs));
            } else {
                walk->marks[last->job] = MARK_DONE;
                walk->n--;
            }
        }
    }
}

static void mark_hooks(struct settings *s) {
    for (size_t i = 0; i < s->n_jobs; i++) {
        struct step step = {.job = i};
        const struct walk walk = {.settings = s};
        const struct job_settings *hook;

        while ((hook = next_hook(&walk, &step)))
            s->jobs[hook - s->jobs].hooks.is_hook = true;
    }
}

static void check_circles(const struct settings *s, struct notes *notes) {
    _cleanup_free_ unsigned char *marks = calloc(s->n_jobs, sizeof(*marks));
    _cleanup_free_ struct step *way = calloc(s->n_jobs, sizeof(*way));
    struct walk walk = {.settings = s, .marks = marks, .way = way, .notes = notes};

    if (marks && way)
        find_circles(&walk);
    else
        notes->out_of_memory = true;
}

void settings_check_hooks(struct settings *s, const struct parsed *parsed, struct notes *notes) {
    const struct parsed_section *failed = NULL;

    for (size_t i = 0; i < parsed->n_sections && !notes->incomplete; i++) {
        const struct parsed_section *section = &parsed->sections[i];
        size_t n_notes = notes->n;

        if (section->kind != SECTION_JOB || settings_is_same_template(failed, section))
            continue;
        for (size_t k = 0; k < ELEMENTSOF(options); k++)
            check_names(s, &(struct value_reader){section, notes}, options[k].name);
        if (section->is_instance && notes->n > n_notes)
            failed = section;
    }
    check_circles(s, notes);
    mark_hooks(s);
}
