/* SPDX-License-Identifier: MIT */
#pragma once

/* The five fields of a crontab line as an entry of berth's `schedule`, with cronie's meaning. */

#define IMPORT_SCHEDULE_SIZE 1024
#define IMPORT_NOTE_SIZE 320

struct import_schedule {
    char text[IMPORT_SCHEDULE_SIZE];
    unsigned splay_minutes;      /* of "~": less than a day */
    char note[IMPORT_NOTE_SIZE]; /* what was changed, and why; "": nothing */
};

/* Returns 0, or -EINVAL with the reason in ret->note. */
int import_schedule(char *const fields[5], struct import_schedule *ret);
/* The same for a word such as "@daily", or BSD's @every_minute. */
int import_schedule_word(const char *word, struct import_schedule *ret);
