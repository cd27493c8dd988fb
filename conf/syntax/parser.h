/* SPDX-License-Identifier: MIT */
#pragma once

/* The config as written: sections, options, and values as strings, each with its place. The only user of
 * libconfuse. */

#include "conf/syntax/notes.h"
#include "conf/options.h"

struct parsed_value {
    char *text;
    int line;
};

struct parsed_option {
    struct settings_place place;
    bool is_given;
    struct parsed_value *values; /* exactly one unless the option is a list */
    size_t n_values;
};

struct parsed_section {
    enum section_kind kind;
    char *title; /* or NULL */
    bool is_instance; /* it was made of a template (conf/expand.h) */
    const struct parsed_section *open_of; /* the template of an instance that it does not list; or NULL */
    struct settings_place place;
    uint64_t refused; /* options, as bits by index, with a noted error or a near misspelling: they are not missing */
    struct parsed_option options[OPTIONS_MAX]; /* by index in the section */
};

struct parsed { /* begin with {} */
    struct parsed_section top; /* options outside of sections, of all files; its place is that of the first file */
    struct parsed_section *sections;
    size_t n_sections; /* in the order of the files */
    struct parsed_section *open; /* templates with open-instances, as written */
    size_t n_open;
};

/* Adds one file. Places and notes keep the pointer `file`. Errors are noted. 0 or -ENOMEM. */
int parser_read(struct parsed *parsed, const char *file, const char *text, size_t size, struct notes *notes);
void parsed_section_done(struct parsed_section *section);
void parsed_done(struct parsed *parsed);
