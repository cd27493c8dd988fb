/* SPDX-License-Identifier: MIT */
#pragma once

/* What triggered the run of a job, and which attempt it is. The command gets the same as BERTH_TRIGGER,
 * BERTH_ATTEMPT and so on. Records and messages share the fields of base/protocol.h. */

#include "base/clock.h"
#include "base/message.h"
#include "base/name.h"
#include "base/schedule/schedule.h"

enum run_trigger {
    RUN_TRIGGER_NONE, /* not known, or not the run of a job */
    RUN_TRIGGER_START,
    RUN_TRIGGER_EVERY,
    RUN_TRIGGER_AT_START,
    RUN_TRIGGER_SCHEDULE,
    RUN_TRIGGER_BACKLOG,
    RUN_TRIGGER_RETRY,
    RUN_TRIGGER_RESTART,
    RUN_TRIGGER_HOOK,
};
const char *run_trigger_name(enum run_trigger trigger); /* NULL for NONE */
enum run_trigger run_trigger_parse(const char *name);   /* NONE if it is no trigger's name */

struct run_of { /* of a hook: the run before it */
    char job[NAME_MAX_LENGTH + 1], run[ID_TEXT_SIZE]; /* from the lines; "": none */
    char lines[];                                     /* "of-job=x\n" and so on */
};

struct run_origin {
    enum run_trigger trigger;
    char due[SCHEDULE_TEXT_SIZE]; /* "": none */
    char first_run[ID_TEXT_SIZE]; /* of the chain of attempts; this run, if it is the first */
    usec_t first_queued_realtime; /* 0: not known */
    uint32_t attempt;             /* from 1 */
    uint32_t depth;               /* how many hooks led to this run */
    struct run_of *of;            /* owned; or NULL */
    char **set;                   /* NAME=VALUE of --set or the schedule; NULL-terminated, owned; or NULL */
};

/* Copies a list of NAME=VALUE, for text_free_list(); NULL and {NULL} become NULL. 0 or -ENOMEM. */
int run_set_copy(char *const *set, char ***ret);

/* Makes the origin of a first attempt, without a trigger. */
void run_origin_init(struct run_origin *origin, const char *run);
void run_origin_done(struct run_origin *origin);
/* Frees what `to` has. 0 or -ENOMEM. */
int run_origin_copy(struct run_origin *to, const struct run_origin *from);

/* Replaces `of` by a copy of these lines. 0 or -ENOMEM. */
int run_origin_set_of(struct run_origin *origin, const char *lines);

void run_origin_put(const struct run_origin *origin, struct message_writer *w);
/* Reads the fields that are present and valid. 0 or -ENOMEM. */
int run_origin_read(struct run_origin *origin, const struct message *m);
