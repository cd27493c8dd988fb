/* SPDX-License-Identifier: MIT */
#pragma once

/* Crontabs as a config of berth: text to text, without I/O. Each line becomes a job, or a comment with the
 * reason. */

#include <stdio.h>

#include "base/cleanup.h"
#include "base/name.h"
#include "cli/import/line.h"

struct import_source {
    const char *text; /* all of the crontab */
    const char *file; /* for comments */
    enum crontab_kind kind;
    const char *user;                                   /* of CRONTAB_OF_USER */
    const char *prefix;                                 /* of the jobs' names */
    bool (*has_home)(const char *user, void *userdata); /* NULL: all users have one */
    bool (*is_zone)(const char *name, void *userdata);  /* NULL: all are */
    void *userdata;
};

struct import { /* initially zero, except `out` */
    FILE *out;
    void *names; /* of the jobs written so far (name.c) */
    unsigned n_lines, n_jobs, n_left_out;
    bool out_of_memory; /* a comment is missing */
};

/* Writes the comment before all jobs. */
void import_begin(struct import *import);
/* Adds the jobs of one crontab. 0 or -ENOMEM. */
int import_crontab(struct import *import, const struct import_source *source);
void import_done(struct import *import); /* name.c */

/* --- name.c --- */

/* Makes a job's name of the prefix and the identifier of an anacrontab, or else the base name of the program that the command runs. */
void import_name(char ret[static NAME_MAX_LENGTH + 1], const char *prefix, const char *identifier, const char *command);

/* Changes a name that another job has: "a" becomes "a-2", "a-3" and so on. 0 or -ENOMEM. */
int import_take_name(struct import *import, char name[static NAME_MAX_LENGTH + 1]);

/* --- job.c --- */

#define IMPORT_SETTINGS_MAX 64
#define VARIABLE_MAX 255 /* bytes of its name */

struct import_setting {
    const char *name, *value;
};

struct import_settings {                              /* of the NAME=value lines before a job */
    struct import_setting items[IMPORT_SETTINGS_MAX]; /* environment */
    size_t n;
    const char *shell, *home, *zone; /* NULL: not set */
    unsigned random_delay;           /* minutes */
    unsigned first_hour;             /* of anacron's START_HOURS_RANGE */
};

/* Writes the job of one entry, or a comment. 0 or -ENOMEM. */
int import_job(struct import *import, const struct import_source *source,
               const struct import_settings *settings, unsigned number, struct crontab_line *line);
/* Prints "# FILE:LINE: ..." with `?` for what cannot stand in a comment. */
void import_comment(struct import *import, const struct import_source *source, unsigned number,
                    const char *format, ...) _printf_(4, 5);
