/* SPDX-License-Identifier: MIT */

/* Makes settings from the texts of the files, or notes all their errors. No I/O. */

#include "conf/settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/job-name.h"
#include "conf/expand.h"
#include "conf/settings-read.h"
#include "base/text.h"

void settings_read_job_title(const struct value_reader *reader, char ret[static NAME_MAX_LENGTH + 1]) {
    const char *title = reader->section->title;
    const struct settings_place *place = &reader->section->place;

    ret[0] = '\0';
    if (!title)
        return;
    if (!job_name_is_runnable(title) && !reader->section->open_of)
        value_note(reader, place, "its name %s; " NAME_RULE, job_name_explain(title));
    else if (job_name_instance(title) && !reader->section->is_instance)
        value_note(reader, place, "is an instance; write job \"%.*s@\" with instances = {\"%s\"}",
                   (int) strcspn(title, "@"), title, job_name_instance(title));
    else
        memcpy(ret, title, strlen(title) + 1);
}

void settings_read_pool_title(const struct value_reader *reader, char ret[static POOL_NAME_SIZE]) {
    const char *title = reader->section->title;

    ret[0] = '\0';
    if (!title)
        return;
    if (pool_name_parse(title) != POOL_NAME_INVALID && *title != '@')
        memcpy(ret, title, strlen(title) + 1);
    else
        value_note(reader, &reader->section->place, "its name %s; " NAME_RULE ", or NAME/KEY, or NAME/* for all keys",
                   *title == '@' ? "begins with '@', as the pools of jobs do" : pool_name_explain(title));
}

bool settings_is_same_template(const struct parsed_section *first, const struct parsed_section *later) {
    return first && later->is_instance && first->place.file == later->place.file &&
           first->place.line == later->place.line;
}

size_t settings_count(const struct parsed *parsed, enum section_kind kind) {
    size_t n = 0;

    for (size_t i = 0; i < parsed->n_sections; i++)
        n += parsed->sections[i].kind == kind;
    return n;
}

void settings_note_twice(struct notes *notes, const char *what, const char *name, const struct settings_place *first,
                         const struct settings_place *later) {
    notes_add(notes, later, "%s \"%s\" is defined twice, first at %s:%d; rename or remove one", what, name, first->file, first->line);
}

static size_t file_index(const struct settings *s, const char *file) {
    size_t i = 0;

    while (i < s->n_files && s->files[i] != file)
        i++;
    return i;
}

int settings_compare_places(const struct settings *s, const struct settings_place *a, const struct settings_place *b) {
    size_t x = file_index(s, a->file), y = file_index(s, b->file);

    if (x != y)
        return x < y ? -1 : 1;
    return (a->line > b->line) - (a->line < b->line);
}

static int copy_file_names(struct settings *s, const struct settings_source *sources, size_t n) {
    s->files = calloc(n + 1, sizeof(*s->files));
    if (!s->files)
        return -ENOMEM;
    for (; s->n_files < n; s->n_files++) {
        s->files[s->n_files] = strdup(sources[s->n_files].file);
        if (!s->files[s->n_files])
            return -ENOMEM;
    }
    return 0;
}

static int read_all(struct settings *s, const struct settings_source *sources, size_t n_sources, const char *hostname,
                    struct parsed *parsed, struct notes *notes) {
    int r = copy_file_names(s, sources, n_sources);

    for (size_t i = 0; i < n_sources && r == 0; i++)
        r = parser_read(parsed, s->files[i], sources[i].text, sources[i].size, notes);
    if (r < 0)
        return r;
    templates_expand(parsed, notes);
    settings_read_top(s, &parsed->top, hostname, notes);
    settings_read_redis(s, parsed, notes);
    settings_read_pools(s, parsed, notes);
    settings_read_jobs(s, parsed, notes);
    return notes->out_of_memory ? -ENOMEM : 0;
}

int settings_parse(const struct settings_source *sources, size_t n_sources, const char *hostname, struct settings **ret,
                   struct settings_errors *errors) {
    _cleanup_(settings_freep) struct settings *s = calloc(1, sizeof(*s));
    struct parsed parsed = {};
    struct notes notes = {};
    int r;

    if (!s) {
        errors->out_of_memory = true;
        return -ENOMEM;
    }
    r = read_all(s, sources, n_sources, hostname, &parsed, &notes);
    parsed_done(&parsed);
    if (r == 0 && notes.n > 0)
        r = SETTINGS_E_INVALID;
    if (r < 0)
        errors->out_of_memory = true;
    notes_finish(&notes, s->files, s->n_files, errors);
    notes_done(&notes);
    if (r != 0)
        return r;
    *ret = steal_pointer(&s);
    return 0;
}

struct settings *settings_free(struct settings *s) {
    if (!s)
        return NULL;
    option_done_section(SECTION_TOP, s);
    if (s->redis)
        option_done_section(SECTION_REDIS, s->redis);
    for (size_t i = 0; i < s->n_pools; i++)
        option_done_section(SECTION_POOL, &s->pools[i]);
    for (size_t i = 0; i < s->n_jobs; i++)
        option_done_section(SECTION_JOB, &s->jobs[i]);
    settings_free_open(s);
    for (size_t i = 0; i < s->n_files; i++)
        free(s->files[i]);
    free(s->redis);
    free(s->pools);
    free(s->jobs);
    free(s->files);
    free(s);
    return NULL;
}

int settings_errors_add(struct settings_errors *errors, const char *format, ...) {
    char **lines = realloc(errors->lines, (errors->n + 1) * sizeof(*lines)), *line;
    va_list arguments, again;
    size_t size;

    if (!lines)
        return -ENOMEM;
    errors->lines = lines;
    va_start(arguments, format);
    va_copy(again, arguments);
    size = (size_t) vsnprintf(NULL, 0, format, again) + 1;
    va_end(again);
    line = malloc(size);
    if (line)
        (void) vsnprintf(line, size, format, arguments);
    va_end(arguments);
    if (!line)
        return -ENOMEM;
    lines[errors->n++] = line;
    return 0;
}

void settings_errors_done(struct settings_errors *errors) {
    for (size_t i = 0; i < errors->n; i++)
        free(errors->lines[i]);
    free(errors->lines);
    *errors = (struct settings_errors) {};
}
