/* SPDX-License-Identifier: MIT */
#include "conf/expand.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/job-name.h"
#include "base/text.h"
#include "conf/value.h"

#define SAMPLE "i" /* the instance with which an open template is checked */

/* Options of a template in which % has a meaning. */
static const char *const expanded[] = {
    "command", "environment", "directory",  "output",    "stdin",        "environment-file", "credentials",
    "pools",   "on-success",  "on-failure", "on-broken", "on-recovered", "description",
};

static bool is_expanded(size_t option) {
    const char *name = section_get(SECTION_JOB)->options[option].name;

    for (size_t i = 0; i < ELEMENTSOF(expanded); i++)
        if (strcmp(expanded[i], name) == 0)
            return true;
    return false;
}

/* Options that an instance loses if its template does not list it: only a caller starts it. */
static const char *const listed_alone[] = {"schedule", "except",   "zone",     "splay",
                                           "every",    "at-start", "catch-up", "max-silence"};

static bool is_left_out(size_t option, bool is_open) {
    const char *name = section_get(SECTION_JOB)->options[option].name;

    for (size_t i = 0; is_open && i < ELEMENTSOF(listed_alone); i++)
        if (strcmp(listed_alone[i], name) == 0)
            return true;
    return strcmp(name, "instances") == 0;
}

static bool is_template(const struct parsed_section *section) {
    return section->kind == SECTION_JOB && section->title &&
           job_name_parse(section->title) == JOB_NAME_TEMPLATE;
}

/* Returns whether the section is a template with open-instances = true. */
static bool is_open(const struct parsed_section *section) {
    const struct value_reader reader = {section, NULL};
    const struct parsed_option *option =
        is_template(section) ? value_option(&reader, "open-instances") : NULL;

    return option && option->n_values > 0 && strcmp(option->values[0].text, "true") == 0;
}

/* ---- texts ---- */

int template_expand_text(const char *text, const char *instance, char **ret, size_t *ret_at) {
    size_t n_instance = strlen(instance), n_percents = 0, size = 0;
    char *copy;

    for (const char *p = text; *p; p++)
        n_percents += *p == '%';
    copy = malloc(strlen(text) + n_percents * n_instance + 1);
    if (!copy)
        return -ENOMEM;
    for (const char *p = text; *p; p++) {
        if (*p != '%') {
            copy[size++] = *p;
        } else if (*++p == '%') {
            copy[size++] = '%';
        } else if (*p == 'i') {
            memcpy(copy + size, instance, n_instance);
            size += n_instance;
        } else {
            free(copy);
            *ret_at = (size_t) (p - 1 - text);
            return -EINVAL;
        }
    }
    copy[size] = '\0';
    *ret = copy;
    return 0;
}

/* ---- the template ---- */

static bool check_percents(const struct value_reader *template) {
    size_t n_before = template->notes->n;

    for (size_t i = 0; i < ELEMENTSOF(expanded); i++) {
        const struct parsed_option *option = value_option(template, expanded[i]);

        for (size_t k = 0; k < option->n_values; k++) {
            _cleanup_free_ char *text = NULL;
            size_t at;
            int r = template_expand_text(option->values[k].text, "", &text, &at);

            if (r == -ENOMEM)
                template->notes->out_of_memory = true;
            else if (r < 0)
                value_error(template, expanded[i], k,
                            "has a '%%' at byte %zu; write %%i for the instance, %%%% for a percent sign",
                            at + 1);
        }
    }
    return template->notes->n == n_before;
}

static bool check_instance(const struct value_reader *template, size_t index) {
    const struct parsed_value *values = value_option(template, "instances")->values;
    const char *text = value_get(template, "instances", index, false);

    if (!text)
        return false;
    if (!name_is_valid(text)) {
        value_error(template, "instances", index, "%s; " NAME_RULE, name_explain(text));
        return false;
    }
    if (strlen(template->section->title) + strlen(text) > NAME_MAX_LENGTH) {
        value_error(template, "instances", index, "makes %s%s longer than %d characters; shorten one",
                    template->section->title, text, NAME_MAX_LENGTH);
        return false;
    }
    for (size_t i = 0; i < index; i++)
        if (strcmp(values[i].text, text) == 0) {
            value_error(template, "instances", index, "is listed twice, first in line %d; keep one",
                        values[i].line);
            return false;
        }
    return true;
}

static bool check_instances(const struct value_reader *template) {
    const struct parsed_option *instances = value_option(template, "instances");
    struct settings_place place = value_place(template, "instances");
    bool is_right = true;

    if (instances->n_values == 0) {
        if (is_open(template->section))
            return true;
        if (!instances->is_given && !value_is_missing(template, "instances"))
            return false;
        value_note(
            template, &place,
            "a template without instances; write instances = {\"a\", \"b\"}, or open-instances = true");
        return false;
    }
    if (instances->n_values > INSTANCES_MAX) {
        value_note(template, &place, "%zu instances; at most %d", instances->n_values, INSTANCES_MAX);
        return false;
    }
    for (size_t i = 0; i < instances->n_values; i++)
        is_right &= check_instance(template, i);
    return is_right;
}

/* ---- its instances ---- */

static void add_value(struct parsed_option *option, const struct parsed_value *value, const char *instance,
                      bool expands, struct notes *notes) {
    char *text = NULL;
    size_t at;

    if (expands)
        (void) template_expand_text(value->text, instance, &text, &at);
    else
        text = strdup(value->text);
    if (text)
        option->values[option->n_values++] = (struct parsed_value){text, value->line};
    else
        notes->out_of_memory = true;
}

static void copy_option(const struct parsed_section *template, size_t index, const char *instance,
                        struct parsed_section *ret, struct notes *notes) {
    const struct parsed_option *from = &template->options[index];
    struct parsed_option *to = &ret->options[index];

    if (is_left_out(index, ret->open_of))
        return;
    to->place = from->place;
    to->is_given = from->is_given;
    if (from->n_values == 0)
        return;
    to->values = calloc(from->n_values, sizeof(*to->values));
    if (!to->values) {
        notes->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < from->n_values; i++)
        add_value(to, &from->values[i], instance, is_expanded(index), notes);
}

static void make_section(const struct parsed_section *template, const char *title, const char *instance,
                         bool open, struct parsed_section *ret, struct notes *notes) {
    *ret = (struct parsed_section){.kind = SECTION_JOB,
                                   .title = strdup(title),
                                   .place = template->place,
                                   .refused = template->refused,
                                   .is_instance = true,
                                   .open_of = open ? template : NULL};
    notes->out_of_memory |= !ret->title;
    for (size_t i = 0; i < section_get(SECTION_JOB)->n_options; i++)
        copy_option(template, i, instance, ret, notes);
}

static void make_instance(const struct parsed_section *template, const char *instance,
                          struct parsed_section *ret, struct notes *notes) {
    char title[NAME_MAX_LENGTH + 1];

    snprintf(title, sizeof(title), "%s%s", template->title, instance);
    make_section(template, title, instance, false, ret, notes);
}

void template_open(const struct parsed_section *template, const char *name, struct parsed_section *ret,
                   struct notes *notes) {
    make_section(template, name, job_name_instance(name), true, ret, notes);
}

/* Returns how many jobs the section stands for. */
static size_t count_jobs(const struct parsed_section *section, struct notes *notes) {
    const struct value_reader reader = {section, notes};
    bool is_right;

    if (!is_template(section))
        return 1;
    is_right = check_percents(&reader);
    if (!check_instances(&reader) || !is_right)
        return 0;
    return value_option(&reader, "instances")->n_values + is_open(section);
}

/* The last section has the name of the template, and stands for all instances that the template does not
 * list. */
static void open_template(struct parsed *parsed, struct parsed_section *section, struct parsed_section *to,
                          struct notes *notes) {
    struct parsed_section *kept = &parsed->open[parsed->n_open++];

    *kept = *section;
    make_section(kept, kept->title, SAMPLE, true, to, notes);
}

static void expand_section(struct parsed *parsed, struct parsed_section *section, size_t n_jobs,
                           struct parsed_section *to, struct notes *notes) {
    const struct value_reader reader = {section, notes};
    size_t n;

    if (!is_template(section)) {
        *to = *section;
        return;
    }
    n = n_jobs > 0 ? value_option(&reader, "instances")->n_values : 0;
    for (size_t i = 0; i < n; i++)
        make_instance(section, value_option(&reader, "instances")->values[i].text, &to[i], notes);
    notes->incomplete |= n_jobs == 0;
    if (n_jobs > n)
        open_template(parsed, section, &to[n], notes);
    else
        parsed_section_done(section);
}

void templates_expand(struct parsed *parsed, struct notes *notes) {
    _cleanup_free_ size_t *counts = calloc(parsed->n_sections + 1, sizeof(*counts));
    struct parsed_section *sections;
    size_t n = 0, n_templates = 0;

    for (size_t i = 0; counts && i < parsed->n_sections; i++) {
        counts[i] = count_jobs(&parsed->sections[i], notes);
        n += counts[i];
        n_templates += is_template(&parsed->sections[i]);
    }
    if (counts && n_templates == 0)
        return;
    sections = counts ? calloc(n + 1, sizeof(*sections)) : NULL;
    parsed->open = calloc(n_templates + 1, sizeof(*parsed->open));
    if (!sections || !parsed->open) {
        free(sections);
        notes->out_of_memory = true;
        return;
    }
    n = 0;
    for (size_t i = 0; i < parsed->n_sections; i++) {
        expand_section(parsed, &parsed->sections[i], counts[i], sections + n, notes);
        n += counts[i];
    }
    free(parsed->sections);
    parsed->sections = sections;
    parsed->n_sections = n;
}
