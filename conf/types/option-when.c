/* SPDX-License-Identifier: MIT */

/* The types of options that say when a job is due: schedules and zones. */

#include "conf/types/option-types.h"

#include <string.h>

#include "conf/value.h"

/* ---- zones ---- */

static bool parse_zone(const struct value_reader *reader, const struct option *option, const char *text,
                       void *at) {
    struct zone_setting *zone = at;
    bool is_none = *text == '\0' && option_is_optional(option);

    if (!is_none && !zone_name_is_valid(text)) {
        value_error(reader, option->name, 0,
                    "is not the name of a zone; write \"local\", \"UTC\" or a name like \"Europe/Berlin\"");
        return false;
    }
    free(zone->name);
    zone->name = value_copy(reader, text);
    if (value_is_given(reader, option->name) && !is_none)
        zone->place = value_place(reader, option->name);
    return zone->name;
}

static void free_zone(void *at) {
    struct zone_setting *zone = at;

    free(zone->name);
}

const struct option_type option_zone = {.parse = parse_zone, .done = free_zone};

/* ---- schedules ---- */

static void add_texts(const struct value_reader *reader, const struct option *option,
                      struct schedule *schedule,
                      int (*add)(struct schedule *schedule, const char *text, char *error)) {
    char error[CRON_ERROR_SIZE];

    for (size_t i = 0; i < value_option(reader, option->name)->n_values; i++) {
        const char *text = value_get(reader, option->name, i, false);
        int r = text ? add(schedule, text, error) : 0;

        if (r == -ENOMEM)
            reader->notes->out_of_memory = true;
        else if (r < 0)
            value_error(reader, option->name, i, ": %s", error);
    }
}

static void parse_schedule(const struct value_reader *reader, const struct option *option, void *at) {
    add_texts(reader, option, at, schedule_add);
}

static void free_schedule(void *at) {
    schedule_done(at);
}

const struct option_type option_schedule = {.parse_list = parse_schedule, .done = free_schedule};

static void parse_except(const struct value_reader *reader, const struct option *option, void *at) {
    add_texts(reader, option, at, schedule_add_except);
}

const struct option_type option_except = {.parse_list = parse_except};
