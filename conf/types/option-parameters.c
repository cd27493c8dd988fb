/* SPDX-License-Identifier: MIT */

/* The types of options of templates and parameters. */

#include "conf/types/option-types.h"

#include <string.h>

#include "conf/hash.h"
#include "conf/parameter.h"
#include "conf/value.h"

/* ---- parameters ---- */

/* Returns whether the value is valid; if not, that is noted. */
static bool check(const struct value_reader *reader, const struct option *option, size_t index,
                  const char *text) {
    const struct parsed_value *values = value_option(reader, option->name)->values;
    char error[PARAMETER_ERROR_SIZE];
    int r = parameter_check(text, error);

    if (r == -ENOMEM)
        reader->notes->out_of_memory = true;
    else if (r < 0)
        value_error(reader, option->name, index, "%s", error);
    for (size_t i = 0; r == 0 && i < index; i++)
        if (parameter_is_same(values[i].text, text)) {
            value_error(reader, option->name, index, "names a parameter twice, first in line %d; keep one",
                        values[i].line);
            return false;
        }
    return r == 0;
}

static void parse_parameters(const struct value_reader *reader, const struct option *option, void *at) {
    size_t n = value_option(reader, option->name)->n_values, n_copied = 0;
    char ***field = at, **list = NULL;

    if (n > PARAMETERS_MAX) {
        value_error(reader, option->name, PARAMETERS_MAX, "is one too many; a job has at most %d parameters",
                    PARAMETERS_MAX);
        n = PARAMETERS_MAX;
    }
    if (n > 0) {
        list = calloc(n + 1, sizeof(*list));
        reader->notes->out_of_memory |= !list;
    }
    *field = list;
    for (size_t i = 0; list && i < n; i++) {
        const char *text = value_get(reader, option->name, i, false);

        if (!text || !check(reader, option, i, text))
            continue;
        list[n_copied] = value_copy(reader, text);
        n_copied += list[n_copied] != NULL;
    }
}

static void hash_parameters(uint64_t *hash, const struct option *option, const void *at) {
    char *const *const *list = at;

    for (size_t i = 0; *list && (*list)[i]; i++)
        hash_add_text(hash, option->name, (*list)[i]);
}

const struct option_type option_parameters = {
    .parse_list = parse_parameters, .hash = hash_parameters, .done = option_free_list};

/* ---- instances ---- */

static void note_no_template(const struct value_reader *reader, const struct option *option) {
    struct settings_place place = value_place(reader, option->name);

    value_note(reader, &place, "%s in a job that is no template; write job \"%s@\"", option->name,
               reader->section->title);
}

static void refuse_instances(const struct value_reader *reader, const struct option *option,
                             _unused_ void *at) {
    if (value_option(reader, option->name)->n_values > 0)
        note_no_template(reader, option);
}

static bool check_open(const struct value_reader *reader, const struct option *option, const char *text,
                       _unused_ void *at) {
    bool is_open;

    if (!option_bool.parse(reader, option, text, &is_open))
        return false;
    if (is_open && !reader->section->is_instance)
        note_no_template(reader, option);
    return true;
}

const struct option_type option_instances = {.parse_list = refuse_instances};
const struct option_type option_open_instances = {.parse = check_open};
