/* SPDX-License-Identifier: MIT */
/* The job of one line of a crontab. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "base/text.h"
#include "cli/import/fields.h"
#include "cli/import/import.h"

#define DAY_MINUTES 1440
#define HOUR_MINUTES 60
#define DELIMITER "BERTH-STDIN"
#define ACCOUNT_MAX 64
#define BERTH "berth" /* berthd's own user, and the beginning of its groups */

struct job {
    char name[NAME_MAX_LENGTH + 1];
    struct import_schedule schedule;
    bool at_start;
    unsigned every_days; /* 0: by schedule */
    const char *catch_up;
};

/* Prints `before` and text as one string of the config, in double quotes if possible, else in single ones.
 * before: needs no escapes. */
static void quote(FILE *out, const char *before, const char *text) {
    bool is_plain = !strpbrk(text, "\"\\") && !strstr(text, "${");

    if (is_plain) {
        fprintf(out, "\"%s%s\"", before, text);
        return;
    }
    fprintf(out, "'%s", before);
    for (; *text; text++) {
        if (*text == '\\' || *text == '\'')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('\'', out);
}

/* ---- the script ---- */

/* Copies text up to the first unescaped '%', and each "\%" as '%'. further: an unescaped '%' is copied as a
 * newline and does not end the text. Returns where it ended. */
static const char *copy_percent(FILE *out, const char *text, bool further) {
    for (bool escaped = false; *text; text++) {
        if (*text == '%' && !escaped) {
            if (!further)
                return text;
            fputc('\n', out);
            continue;
        }
        if (*text == '\\' && !escaped && text[1] == '%')
            fputc(*++text, out);
        else
            escaped = fputc(*text, out) == '\\' && !escaped;
    }
    return text;
}

static bool has_line(const char *text, const char *line) {
    size_t n = strlen(line);

    for (; text; text = strchr(text, '\n'), text = text ? text + 1 : NULL)
        if (strncmp(text, line, n) == 0 && (text[n] == '\n' || text[n] == '\0'))
            return true;
    return false;
}

static void add_input(FILE *out, const char *input) {
    char delimiter[32] = DELIMITER;

    for (unsigned i = 2; has_line(input, delimiter); i++)
        snprintf(delimiter, sizeof(delimiter), DELIMITER "-%u", i);
    fprintf(out, "\n} <<'%s'\n%s%s%s", delimiter, input,
            *input && input[strlen(input) - 1] == '\n' ? "" : "\n", delimiter);
}

/* Closes a FILE in memory. Returns its text; NULL: out of memory. */
static char *close_text(FILE *f, char **text) {
    bool failed = ferror(f);

    if (fclose(f) == 0 && !failed)
        return *text;
    free(*text);
    *text = NULL;
    return NULL;
}

/* Returns a copy of a command up to its first '%', or of the text after that. NULL: out of memory. */
static char *copy_part(const char *text, bool further, const char **ret_end) {
    char *copy = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&copy, &n);

    if (!f)
        return NULL;
    *ret_end = copy_percent(f, text, further);
    return close_text(f, &copy);
}

/* crontab(5): what follows the first '%' is the standard input of the command. */
static char *make_script(const char *text) {
    const char *end, *ignored;
    char *script = NULL, *command = copy_part(text, false, &end);
    _cleanup_free_ char *input = NULL;
    size_t n = 0;
    FILE *f;

    if (!command || !*end || !end[1])
        return command;
    input = copy_part(end + 1, true, &ignored);
    f = input ? open_memstream(&script, &n) : NULL;
    if (f) {
        fprintf(f, "{ %s", command);
        add_input(f, input);
        script = close_text(f, &script);
    }
    free(command);
    return script;
}

/* ---- when ---- */

/* Returns why an entry of an anacrontab is not converted, or NULL. */
static const char *time_anacron(const struct import_settings *settings, const struct crontab_line *line,
                                struct job *job) {
    static const struct {
        const char *word, *days, *fields, *catch_up;
    } periods[] = {
        {"@daily", "1", "* * *", "1d"},        {"@weekly", "7", "* * 0", "7d"},
        {"@monthly", "30", "1 * *", "31d"},    {"@yearly", "365", "1 1 *", "366d"},
        {"@annually", "366", "1 1 *", "366d"},
    };
    uint64_t days, delay;

    if (number_parse(line->fields[1], DAY_MINUTES, &delay) < 0)
        return "the delay is not a number of minutes up to 1440";
    delay += settings->first_hour * HOUR_MINUTES;
    for (size_t i = 0; i < ELEMENTSOF(periods); i++)
        if (strcasecmp(line->fields[0], periods[i].word) == 0 ||
            strcmp(line->fields[0], periods[i].days) == 0) {
            snprintf(job->schedule.text, sizeof(job->schedule.text), "%u %u %s",
                     (unsigned) (delay % HOUR_MINUTES), (unsigned) (delay / HOUR_MINUTES % 24),
                     periods[i].fields);
            job->catch_up = periods[i].catch_up;
            return NULL;
        }
    if (number_parse(line->fields[0], 3650, &days) < 0 || days == 0)
        return "the period is not a number of days";
    job->every_days = (unsigned) days;
    return NULL;
}

/* Returns why an entry is not converted, or NULL. */
static const char *time_job(const struct import_source *source, const struct import_settings *settings,
                            const struct crontab_line *line, struct job *job) {
    job->catch_up = "0s";
    if (source->kind == CRONTAB_ANACRON)
        return time_anacron(settings, line, job);
    job->at_start = line->word && strcasecmp(line->word, "@reboot") == 0;
    if (job->at_start)
        return NULL;
    if ((line->word ? import_schedule_word(line->word, &job->schedule)
                    : import_schedule(line->fields, &job->schedule)) < 0)
        return job->schedule.note;
    if (job->schedule.splay_minutes + settings->random_delay >= DAY_MINUTES)
        return "\"~\" and RANDOM_DELAY together are a day or more";
    return NULL;
}

static void write_time(struct import *import, const struct import_settings *settings,
                       const struct job *job) {
    unsigned splay = job->schedule.splay_minutes + settings->random_delay;
    FILE *out = import->out;

    if (job->schedule.note[0])
        fprintf(out, "    # %s\n", job->schedule.note);
    if (job->at_start)
        fputs("    # cron runs it at boot, berth when its service starts (not when berthd is "
              "restarted).\n    at-start = true\n",
              out);
    else if (job->every_days > 0)
        fprintf(out, "    every = \"%ud\"\n", job->every_days);
    else
        fprintf(out, "    schedule = {\"%s\"}\n", job->schedule.text);
    if (splay > 0 && !job->at_start)
        fprintf(out, "    splay = \"%um\"\n", splay);
    if (settings->zone && !job->at_start && job->every_days == 0) {
        fputs("    zone = ", out);
        quote(out, "", settings->zone);
        fputc('\n', out);
    }
}

/* ---- the job ---- */

static void write_option(FILE *out, const char *name, const char *value) {
    fprintf(out, "    %s = ", name);
    quote(out, "", value);
    fputc('\n', out);
}

static void write_user(struct import *import, const struct import_source *source,
                       const struct import_settings *settings, const struct crontab_line *line) {
    const char *user = source->kind == CRONTAB_SYSTEM    ? line->user
                       : source->kind == CRONTAB_ANACRON ? "root"
                                                         : source->user;
    bool has_home = !source->has_home || source->has_home(user, source->userdata);

    write_option(import->out, "user", user);
    if (line->group && *line->group)
        write_option(import->out, "group", line->group);
    if (!has_home && !settings->home)
        fprintf(import->out, "    # This machine does not know the home of this user.\n");
    write_option(import->out, "directory", settings->home ? settings->home : has_home ? "~" : "/");
}

static void write_environment(FILE *out, const struct import_settings *settings) {
    if (settings->n == 0)
        return;
    fputs("    environment = {", out);
    for (size_t i = 0; i < settings->n; i++) {
        char name[VARIABLE_MAX + 2];

        snprintf(name, sizeof(name), "%s=", settings->items[i].name);
        fputs(i > 0 ? ", " : "", out);
        quote(out, name, settings->items[i].value);
    }
    fputs("}\n", out);
}

/* Returns whether a config can have a user or group of this name (berth.conf(5)). */
static bool is_account(const char *name) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.-";
    size_t n = strspn(name, letters);

    return n > 0 && n <= ACCOUNT_MAX && !strchr("0123456789.-", *name) &&
           (name[n] == '\0' || strcmp(name + n, "$") == 0);
}

static const char *check(const struct import_source *source, const struct import_settings *settings,
                         const struct crontab_line *line, struct job *job) {
    const char *why = time_job(source, settings, line, job);

    if (why)
        return why;
    if (line->user && (!is_account(line->user) || strcmp(line->user, BERTH) == 0))
        return "no job can have this user";
    if (line->group && *line->group &&
        (!is_account(line->group) || strncmp(line->group, BERTH, strlen(BERTH)) == 0))
        return "no job can have this group";
    if (!text_is_utf8(line->command) || text_has_control(line->command, true))
        return "the command has a control character, or is not UTF-8";
    return NULL;
}

int import_job(struct import *import, const struct import_source *source,
               const struct import_settings *settings, unsigned number, struct crontab_line *line) {
    struct job job = {};
    _cleanup_free_ char *script = NULL;
    const char *why = check(source, settings, line, &job);
    int r;

    if (why) {
        import->n_left_out++;
        import_comment(import, source, number, "not converted: %s", why);
        return 0;
    }
    script = make_script(line->command);
    import_name(job.name, source->prefix, line->identifier, line->command);
    r = script ? import_take_name(import, job.name) : -ENOMEM;
    if (r < 0)
        return r;
    fputc('\n', import->out);
    import_comment(import, source, number, "%s", line->command);
    if (strstr(line->command, "flock "))
        import_comment(import, source, number,
                       "instead of flock: overlap = \"skip\" for this job alone, a pool of limit 1 and scope \"host\" for several");
    if (line->flags)
        import_comment(import, source, number,
                       "flag %.60s is not converted: berth mails nothing, and logs each run", line->flags);
    fprintf(import->out, "job \"%s\" {\n", job.name);
    write_time(import, settings, &job);
    write_option(import->out, "script", script);
    if (settings->shell)
        write_option(import->out, "shell", settings->shell);
    write_user(import, source, settings, line);
    write_environment(import->out, settings);
    if (!job.at_start && job.every_days == 0)
        fprintf(import->out, "    catch-up = \"%s\"\n", job.catch_up);
    fputs("    overlap = \"allow\"\n}\n", import->out);
    import->n_jobs++;
    return 0;
}
