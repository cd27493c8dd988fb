/* SPDX-License-Identifier: MIT */
#pragma once

/* The runs of berth-runner, for runner/runs*.c alone. */

#include "base/list.h"
#include "base/timer.h"
#include "runner/runs.h"

struct entry { /* a run whose guard lives, or that is being reaped */
    struct list link;
    struct runs *runs;
    char run[ID_TEXT_SIZE], job[NAME_MAX_LENGTH + 1]; /* job "": its record was not read yet */
    pid_t pid;              /* of the guard; 0: not known */
    int pidfd;              /* -1: the guard had not written its pid yet; the timer looks again */
    sd_event_source *source;
    bool is_reaping;
    bool is_adhoc;          /* of `berth run`: only reaped */
    uint64_t token;         /* of the grant whose processes are reaped; 0: all of the run. Only of `berth run` */
    bool is_sought;         /* while it is reaped: only its environment identifies a process of it */
    bool is_empty;          /* no process was left when it was reaped last */
    usec_t stuck_due;       /* while it is reaped: when its processes are reported (again) */
    bool must_die;          /* berthd requested its kill and awaits its end */
    bool is_withdrawn;      /* prepared, and killed as soon as its pid is known */
    bool is_prepared;       /* forked for `prepare`; its guard file has the grant, if one came since */
};

struct runs {
    sd_event *event;
    struct runs_handler handler;
    const struct access *access;
    char *directory, *cgroup;
    struct list entries;          /* struct entry */
    struct timer timer, late;     /* look for processes: when nothing else is pending; in any case */
    sd_event_source *signal;
    usec_t again;
    usec_t reap_due;              /* when the entries are reaped that were added since the last time; 0: none */
    int recover_error;            /* a run that was found could not be added */
    int lifeline[2];              /* a pipe: only we have its write end, prepared guards the read end */
    size_t room;                  /* starts left until the runs are counted again */
};

/* runner/runs.c */
struct entry *entry_find(const struct runs *r, const char *run);
struct entry *entry_new(struct runs *r, const char *run, const char *job); /* NULL: out of memory */
void entry_free(struct entry *e);
/* Takes ownership of pidfd, also on failure. Returns 0 or a negative errno. */
int entry_watch(struct entry *e, pid_t pid, int pidfd);

/* Returns whether the command has not run and will not without a grant. Reads the guard file; one that cannot be
 * read counts as granted. */
bool entry_is_prepared(struct entry *e);

/* runner/runs-reap.c */
/* Begins to kill the processes that are left of a run. */
void entry_reap(struct entry *e);
/* Handles the end of a guard. One that ended in order left nothing or a report, and the entry is freed. One
 * that died left its guard file, and the run is reaped. */
void entry_ended(struct entry *e);
int entry_on_end(sd_event_source *source, int fd, uint32_t revents, void *userdata);
/* Kills what is left of all runs that are being reaped. Returns whether it has set the timer, because there is some. */
bool runs_reap(struct runs *r);
/* Has runs_on_timer() called at this time, or a little later while requests are pending. */
void runs_look_at(struct runs *r, usec_t boottime);

/* runner/runs-recover.c: looks again at guards whose pid is not known yet, and reaps */
void runs_on_timer(void *userdata);
