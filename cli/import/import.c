/* SPDX-License-Identifier: MIT */
#include "cli/import/import.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "base/text.h"

#define DAY_MINUTES 1440

void import_comment(struct import *import, const struct import_source *source, unsigned number,
                    const char *format, ...) {
    _cleanup_free_ char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    va_list arguments;

    if (f) {
        fprintf(f, "%s:%u: ", source->file, number);
        va_start(arguments, format);
        (void) vfprintf(f, format, arguments);
        va_end(arguments);
    }
    if (!f || ferror(f) | fclose(f)) {
        import->out_of_memory = true;
        return;
    }
    text_make_printable(text);
    fprintf(import->out, "# %s\n", text);
}

void import_begin(struct import *import) {
    fputs("# Made by `berth import-crontab`. overlap = \"allow\" and catch-up = \"0s\" are the behaviour of cron.\n"
          "# berth's defaults are better for most jobs: overlap = \"skip\" begins no second run beside the first, and\n"
          "# catch-up = \"10m\" begins what was due while berthd was down. cron's PATH is /usr/bin:/bin unless the\n"
          "# crontab sets one. `berth logs JOB` has what cron mails.\n",
          import->out);
}

/* ---- NAME=value lines ---- */

static bool is_variable(const char *name) {
    return *name && strlen(name) <= VARIABLE_MAX && !strchr("0123456789", *name) &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
}

/* Returns false if there are too many. */
static bool set_variable(struct import_settings *settings, char *name, const char *value) {
    size_t i = 0;

    while (i < settings->n && strcmp(settings->items[i].name, name) != 0)
        i++;
    if (i == IMPORT_SETTINGS_MAX)
        return false;
    settings->items[i] = (struct import_setting){name, value};
    settings->n += i == settings->n;
    return true;
}

static const char *set_delay(struct import_settings *settings, const char *value) {
    uint64_t minutes;

    if (number_parse(value, DAY_MINUTES - 1, &minutes) < 0)
        return "is not less than 1440 minutes";
    settings->random_delay = (unsigned) minutes;
    return NULL;
}

/* Returns why a setting is not converted, or NULL. */
static const char *read_setting(const struct import_source *source, struct import_settings *settings,
                                char *name, char *value) {
    static const char *const of_cron[] = {"LOGNAME", "MAILFROM", "CONTENT_TYPE",
                                          "CONTENT_TRANSFER_ENCODING"};

    for (size_t i = 0; i < ELEMENTSOF(of_cron); i++)
        if (strcmp(name, of_cron[i]) == 0)
            return i == 0 ? "cron takes it from the user, too" : "berth sends no mail";
    if (strcmp(name, "CRON_TZ") == 0) {
        if (source->is_zone && !source->is_zone(value, source->userdata))
            return "this machine has no such zone";
        settings->zone = value;
        return NULL;
    }
    if (strcmp(name, "RANDOM_DELAY") == 0)
        return set_delay(settings, value);
    if (source->kind == CRONTAB_ANACRON && strcmp(name, "START_HOURS_RANGE") == 0) {
        if (sscanf(value, "%2u", &settings->first_hour) != 1 || settings->first_hour > 23)
            return "it is not a range of hours";
        return NULL;
    }
    if (strncmp(name, "BERTH_", 6) == 0)
        return "berth sets such variables itself";
    if (!is_variable(name))
        return "this is not a name of a variable";
    if (!text_is_utf8(value) || text_has_control(value, false))
        return "the value has a control character, or is not UTF-8";
    if (strcmp(name, "SHELL") == 0 || strcmp(name, "HOME") == 0) {
        if (*value != '/')
            return "the value is not an absolute path";
        *(name[0] == 'S' ? &settings->shell : &settings->home) = value;
    }
    return set_variable(settings, name, value) ? NULL : "there are more than 64 variables";
}

static void take_setting(struct import *import, const struct import_source *source,
                         struct import_settings *settings, unsigned number,
                         const struct crontab_line *line) {
    const char *why;

    if (strcmp(line->name, "MAILTO") == 0) {
        if (*line->value)
            import_comment(import, source, number,
                           "MAILTO=%.100s: cron mails what a job prints, berth keeps it in the journal; to be "
                           "notified of failures, "
                           "define a job \"mail\" and write on-broken = {\"mail\"}",
                           line->value);
        return;
    }
    why = read_setting(source, settings, line->name, line->value);
    if (why)
        import_comment(import, source, number, "not converted: %.60s=%.200s: %s", line->name, line->value, why);
}

/* ---- a crontab ---- */

int import_crontab(struct import *import, const struct import_source *source) {
    _cleanup_free_ char *copy = strdup(source->text);
    struct import_settings settings = {};
    char *rest = copy, *text;
    unsigned number = 0;
    int r = 0;

    if (!copy)
        return -ENOMEM;
    while (r == 0 && (text = strsep(&rest, "\n"))) {
        const char *whole = source->text + (text - copy);
        unsigned n_left_out = import->n_left_out;
        struct crontab_line line;

        number++;
        crontab_line_read(text, source->kind, &line);
        if (line.kind == CRONTAB_LINE_SETTING) {
            take_setting(import, source, &settings, number, &line);
        } else if (line.kind == CRONTAB_LINE_WRONG) {
            import->n_lines++;
            import->n_left_out++;
            import_comment(import, source, number, "not converted: %s", line.error);
        } else if (line.kind == CRONTAB_LINE_ENTRY) {
            import->n_lines++;
            r = import_job(import, source, &settings, number, &line);
        }
        if (r == 0 && import->n_left_out > n_left_out) /* the crontab may be deleted */
            import_comment(import, source, number, "%.*s", (int) strcspn(whole, "\n"), whole);
    }
    return r < 0 || !import->out_of_memory ? r : -ENOMEM;
}
