/* SPDX-License-Identifier: MIT */
#pragma once

/* The parts of runner/runs.c that have files of their own share the list of runs. */

#include "base/list.h"
#include "base/timer.h"
#include "runner/runs.h"

struct entry { /* of a run whose guard lives, or which is being swept */
    struct list link;
    struct runs *runs;
    char run[ID_TEXT_SIZE], job[NAME_MAX_LENGTH + 1]; /* job "": its record was not read yet */
    pid_t pid;              /* of the guard; 0: not known */
    int pidfd;              /* -1: the guard was found before it could write its pid down; looked at again by the timer */
    sd_event_source *source;
    bool is_reaping;
    usec_t stuck_due;       /* while it is reaped: when its processes are reported (again) */
    bool must_die;          /* was to be killed before its pid was known */
    bool is_withdrawn;      /* prepared, and to be killed: also once its pid is known */
    bool is_prepared;       /* was forked for `prepare`; its record tells whether it was granted since */
};

struct runs {
    sd_event *event;
    struct runs_handler handler;
    const struct access *access;
    char *directory, *cgroup;
    struct list entries;          /* struct entry */
    struct timer timer;
    sd_event_source *signal;
    usec_t again;
    int recover_error;             /* a run that was found could not be noted */
    int lifeline[2];              /* a pipe: its writing end is this process's alone, its reading end the prepared guards' */
    size_t room;                  /* so many may be started before runs are counted again */
};

/* runner/runs.c */
struct entry *entry_find(const struct runs *r, const char *run);
struct entry *entry_new(struct runs *r, const char *run, const char *job); /* NULL: out of memory */
void entry_free(struct entry *e);
/* Takes pidfd in any case. Negative errno. */
int entry_watch(struct entry *e, pid_t pid, int pidfd);

/* Whether nothing of the run has begun, nor will begin without a grant. Looks into its record. */
bool entry_is_prepared(struct entry *e);

/* runner/runs-reap.c */
/* Begins to kill all that is left of a run. */
void entry_reap(struct entry *e);
/* Its guard has ended: as it should (it left nothing, or a report), or it died (it left its record). Frees the entry, or reaps. */
void entry_ended(struct entry *e);
int entry_on_end(sd_event_source *source, int fd, uint32_t revents, void *userdata);
/* Kills once more what is left of the runs that are being swept, and sets the timer while there is any. */
void runs_reap(struct runs *r);

/* runner/runs-recover.c: looks again at guards whose pid is not known yet, and sweeps */
void runs_on_timer(void *userdata);
