/* SPDX-License-Identifier: MIT */
/* Cuts a crontab line into words, from which job.c makes a job. */
#include "cli/import/line.h"

#include <stdbool.h>
#include <string.h>

#define BLANKS " \t\r\f\v"

static char *skip_blanks(char *text) {
    return text + strspn(text, BLANKS);
}

/* Cuts off the next word. Returns NULL if there is none. */
static char *take_word(char **text) {
    char *word = skip_blanks(*text), *end = word + strcspn(word, BLANKS);

    *text = end;
    if (*end)
        *(*text)++ = '\0';
    return *word ? word : NULL;
}

static void trim(char *text) {
    size_t n = strlen(text);

    while (n > 0 && strchr(BLANKS, text[n - 1]))
        text[--n] = '\0';
}

/* Removes one pair of quotes around the text. */
static char *unquote(char *text) {
    size_t n = strlen(text);

    if (n < 2 || (*text != '"' && *text != '\'') || text[n - 1] != *text)
        return text;
    text[n - 1] = '\0';
    return text + 1;
}

/* Reads NAME = VALUE; both may be quoted. Returns false if the line is not a setting; the text is unchanged
 * then. */
static bool read_setting(char *text, struct crontab_line *line) {
    char *end = text + strcspn(text, "=" BLANKS), *equals;

    if (*text == '"' || *text == '\'') {
        end = strchr(text + 1, *text);
        if (!end)
            return false;
        end++;
    }
    equals = skip_blanks(end);
    if (end == text || *equals != '=')
        return false;
    *equals = '\0';
    trim(text);
    line->name = unquote(text);
    line->value = skip_blanks(equals + 1);
    trim(line->value);
    line->value = unquote(line->value);
    line->kind = CRONTAB_LINE_SETTING;
    return true;
}

static void refuse(struct crontab_line *line, const char *error) {
    line->kind = CRONTAB_LINE_WRONG;
    line->error = error;
}

/* Takes flags such as "-n" and "-q" before the command. */
static void take_flags(char **text, struct crontab_line *line) {
    char *end = NULL;

    for (char *word = skip_blanks(*text); word[0] == '-' && word[1] && !strchr(BLANKS, word[1]);
         word = skip_blanks(end))
        end = word + strcspn(word, BLANKS);
    if (!end)
        return;
    line->flags = skip_blanks(*text);
    *text = end;
    if (*end)
        *(*text)++ = '\0';
}

static bool take_user(char **text, struct crontab_line *line) {
    char *class;

    line->user = take_word(text);
    if (!line->user)
        return false;
    class = strchr(line->user, '/'); /* of login.conf(5) */
    if (class)
        *class = '\0';
    line->group = strchr(line->user, ':');
    if (line->group)
        *line->group++ = '\0';
    return true;
}

static void read_entry(char *text, enum crontab_kind kind, struct crontab_line *line) {
    bool is_silent = *text == '-';
    int n = kind == CRONTAB_ANACRON ? 2 : 5;

    line->kind = CRONTAB_LINE_ENTRY;
    text += is_silent;
    if (*text == '@' && kind != CRONTAB_ANACRON) {
        line->word = take_word(&text);
        n = 0;
    }
    for (int i = 0; i < n; i++) {
        line->fields[i] = take_word(&text);
        if (!line->fields[i]) {
            refuse(line, kind == CRONTAB_ANACRON ? "no period and delay" : "fewer than five fields");
            return;
        }
    }
    if (kind == CRONTAB_SYSTEM && !take_user(&text, line)) {
        refuse(line, "no user");
        return;
    }
    if (kind == CRONTAB_ANACRON)
        line->identifier = take_word(&text);
    else
        take_flags(&text, line);
    if (is_silent && !line->flags)
        line->flags = (char *) "-";
    line->command = skip_blanks(text);
    trim(line->command);
    if (*line->command == '\0')
        refuse(line, "no command");
}

void crontab_line_read(char *text, enum crontab_kind kind, struct crontab_line *ret) {
    *ret = (struct crontab_line){.kind = CRONTAB_LINE_EMPTY};
    text = skip_blanks(text);
    if (*text == '\0' || *text == '#')
        return;
    if (!read_setting(text, ret))
        read_entry(text, kind, ret);
}
