/* SPDX-License-Identifier: MIT */
#pragma once

/* One line of a crontab (crontab(5) of cronie, Debian, BSD) or of an anacrontab (anacrontab(5)), cut into
 * its words. */

enum crontab_kind { CRONTAB_OF_USER, CRONTAB_SYSTEM, CRONTAB_ANACRON };
enum crontab_line_kind { CRONTAB_LINE_EMPTY, CRONTAB_LINE_SETTING, CRONTAB_LINE_ENTRY, CRONTAB_LINE_WRONG };

struct crontab_line { /* all texts point into the line */
    enum crontab_line_kind kind;
    char *name, *value; /* SETTING */
    char *word;         /* ENTRY: "@daily"; NULL: fields */
    char *fields[5];    /* ANACRON: period and delay are the first two */
    char *user, *group; /* SYSTEM; NULL: none */
    char *identifier;   /* ANACRON */
    char *flags;        /* "-n -q" before the command; NULL: none */
    char *command;
    const char *error; /* WRONG */
};

/* text: one line without its newline; modified. */
void crontab_line_read(char *text, enum crontab_kind kind, struct crontab_line *ret);
