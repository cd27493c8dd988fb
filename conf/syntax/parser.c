/* SPDX-License-Identifier: MIT */

/* Parses statements (conf/syntax/scan.h) with libconfuse, which checks their grammar and removes quotes and
 * escapes. Each statement is parsed alone, because libconfuse silently replaces the first of two equal sections.
 * All values are strings or lists of strings; conf/types/option-*.c parses them, so that all errors are reported
 * at once. */

#include "conf/syntax/parser.h"

#include <confuse.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "conf/syntax/scan.h"

/* The statement that is being parsed. libconfuse passes no userdata to its callbacks. */
static struct context {
    struct notes *notes;
    struct parsed_section *section;
    enum section_kind kind;
    const char *file;
    int line; /* of the statement's begin, which libconfuse counts as 1 */
} context;

static void on_error(cfg_t *cfg, const char *format, va_list arguments) _printf_(2, 0);
static void on_error(cfg_t *cfg, const char *format, va_list arguments) {
    struct settings_place place = {context.file, context.line + cfg->line - 1};
    char text[256];

    (void) vsnprintf(text, sizeof(text), format, arguments);
    notes_add(context.notes, &place, "%s; correct the syntax", text);
}

/* libconfuse calls this after each value, and once more at the end of a list. */
static int on_value(cfg_t *cfg, cfg_opt_t *opt) {
    int index = section_find_option(context.kind, opt->name, strlen(opt->name)), line = context.line + cfg->line - 1;
    struct parsed_option *option = &context.section->options[index];
    unsigned n = cfg_opt_size(opt);
    struct parsed_value *values;

    if (n <= option->n_values)
        return 0;
    if (!option->is_given)
        option->place = (struct settings_place) {context.file, line};
    option->is_given = true;
    values = realloc(option->values, n * sizeof(*values));
    if (!values) {
        context.notes->out_of_memory = true;
        return 0;
    }
    option->values = values;
    values[option->n_values] = (struct parsed_value) {strdup(cfg_opt_getnstr(opt, n - 1)), line};
    if (values[option->n_values].text)
        option->n_values++;
    else
        context.notes->out_of_memory = true;
    return 0;
}

/* Describes a section's options to libconfuse. */
static void describe_options(enum section_kind kind, cfg_opt_t opts[static OPTIONS_MAX + 1]) {
    const struct section *section = section_get(kind);

    for (size_t i = 0; i < section->n_options; i++) {
        if (option_is_list(&section->options[i]))
            opts[i] = (cfg_opt_t) CFG_STR_LIST(section->options[i].name, NULL, CFGF_NODEFAULT);
        else
            opts[i] = (cfg_opt_t) CFG_STR(section->options[i].name, NULL, CFGF_NODEFAULT);
        opts[i].validcb = on_value;
    }
    opts[section->n_options] = (cfg_opt_t) CFG_END();
}

static cfg_t *describe(enum section_kind kind) {
    cfg_opt_t options[OPTIONS_MAX + 1], top[2];

    describe_options(kind, options);
    if (kind == SECTION_TOP)
        return cfg_init(options, CFGF_NONE);
    top[0] = (cfg_opt_t) CFG_SEC(section_get(kind)->name, options, section_get(kind)->is_titled ? CFGF_TITLE | CFGF_MULTI : CFGF_MULTI);
    top[1] = (cfg_opt_t) CFG_END();
    return cfg_init(top, CFGF_NONE);
}

/* Parses one statement into context.section. 0, CFG_PARSE_ERROR (noted) or -ENOMEM. */
static int parse_statement(char *text, size_t size) {
    _cleanup_fclose_ FILE *stream = fmemopen(text, size, "r");
    cfg_t *cfg = stream ? describe(context.kind) : NULL;
    cfg_t *section;
    int r;

    if (!cfg)
        return -ENOMEM;
    cfg_set_error_function(cfg, on_error);
    r = cfg_parse_fp(cfg, stream);
    if (r == CFG_SUCCESS && context.kind != SECTION_TOP && section_get(context.kind)->is_titled) {
        section = cfg_opt_getnsec(cfg_getnopt(cfg, 0), 0);
        context.section->title = strdup(cfg_title(section));
        if (!context.section->title)
            context.notes->out_of_memory = true;
    }
    cfg_free(cfg);
    return r;
}

static struct parsed_section *add_section(struct parsed *parsed, enum section_kind kind, const struct settings_place *place) {
    struct parsed_section *section;

    if (!array_grow(parsed->sections, parsed->n_sections))
        return NULL;
    section = &parsed->sections[parsed->n_sections++];
    *section = (struct parsed_section) {.kind = kind, .place = *place};
    return section;
}

static int read_statement(struct parsed *parsed, char *text, const struct statement *statement, const char *file, struct notes *notes) {
    struct settings_place place = {file, statement->line};
    struct parsed_section *section = &parsed->top;

    if (statement->kind != SECTION_TOP) {
        section = add_section(parsed, statement->kind, &place);
        if (!section)
            return -ENOMEM;
        section->refused = statement->refused;
    } else if (section->options[statement->option].is_given) {
        const struct parsed_option *first = &section->options[statement->option];

        notes_add(notes, &place, "\"%s\" is given twice, first at %s:%d; keep one",
                  section_get(SECTION_TOP)->options[statement->option].name, first->place.file, first->place.line);
        return 0;
    }
    context = (struct context) {notes, section, statement->kind, file, statement->line};
    return parse_statement(text + statement->begin, statement->end - statement->begin);
}

int parser_read(struct parsed *parsed, const char *file, const char *text, size_t size, struct notes *notes) {
    struct scan scan = {};
    int r;

    if (!parsed->top.place.file)
        parsed->top.place = (struct settings_place) {file, 1};
    r = scan_text(&scan, file, text, size, notes);
    for (size_t i = 0; i < scan.n_statements && r == 0; i++) {
        r = read_statement(parsed, scan.text, &scan.statements[i], file, notes);
        if (r == CFG_PARSE_ERROR)
            notes->incomplete = true;
    }
    scan_done(&scan);
    if (r < 0 || notes->out_of_memory)
        return -ENOMEM;
    return 0;
}

void parsed_section_done(struct parsed_section *section) {
    for (size_t i = 0; i < OPTIONS_MAX; i++) {
        for (size_t j = 0; j < section->options[i].n_values; j++)
            free(section->options[i].values[j].text);
        free(section->options[i].values);
    }
    free(section->title);
}

void parsed_done(struct parsed *parsed) {
    parsed_section_done(&parsed->top);
    for (size_t i = 0; i < parsed->n_sections; i++)
        parsed_section_done(&parsed->sections[i]);
    for (size_t i = 0; i < parsed->n_open; i++)
        parsed_section_done(&parsed->open[i]);
    free(parsed->sections);
    free(parsed->open);
    *parsed = (struct parsed) {};
}
