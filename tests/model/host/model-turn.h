/* SPDX-License-Identifier: MIT */
#pragma once

/* Inside of the model: turns (R18). There is one job, that of pool a; its due times are those of the world. */

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct batch;
struct host;
struct run;
struct world;

#define DUES_MAX 240
#define DUES_DEFAULT 30
#define ATTEMPTS_MAX 8
#define SKIPS_KEPT 8 /* of a job, by Redis */
#define EPOCH_SIZE 24

enum turn_call { TURN_NONE, TURN_ASK, TURN_COMMIT, TURN_END, TURN_TELL, TURN_LOOK };

/* What a host knows of the job that is `on = "any"`: the job of pool a. */
struct turn_host {
    int64_t skew;            /* of its wall clock, us */
    unsigned next;           /* the oldest due time for which it has no answer; outlives its berthd */
    uint64_t mark;           /* the latest due time that it knows to be decided; outlives its berthd */
    usec_t open_at[DUES_MAX]; /* when it asks for the open turn; 0: it knows of none */
    unsigned asking;         /* run of the question under way, RUNS_MAX: none */
    unsigned spare;          /* run that asked, and of which Redis has kept nothing; NOBODY: none */
    usec_t not_before;       /* the next question */
    usec_t again_at;         /* when `asking` asks again, because Redis was full; 0: it was not */
    usec_t look_at;          /* 0: none is due */
    usec_t drained_until;
    char epoch[EPOCH_SIZE]; /* in which Redis got its marks and turns */
};

struct turn_run { /* of a run that a due time began */
    bool is;        /* it is one */
    unsigned due, attempt;
    bool committed, taken, lost; /* taken, lost: Redis answered that it is this host's, or is not any more */
    unsigned back;  /* attempt as which it is given back; 0: it is over */
    uint64_t delay_ms;
};

struct due {
    usec_t at;               /* true time */
    unsigned starts[ATTEMPTS_MAX];
    unsigned last_attempt;   /* that was started */
    bool untold;             /* a grace ended before any host reported that it is decided: it may come again */
    bool given_back;         /* for another attempt, after the last start */
    bool is_open;            /* its turn is given back or its host is lost, and no host took it since; a new epoch forgets it */
    bool skipped, excused;   /* a host logged so; it may be lost */
    unsigned known_epoch;    /* in which Redis knows that it was decided; 0: none */
    unsigned skipped_by; /* host + 1 whose question was answered so */
    unsigned holder, committer; /* run + 1 that took it last, and that committed it, which its host may not know */
    usec_t not_before;       /* end of its delay by Redis's clock, in the epoch back_epoch */
    bool is_at_once;         /* it was given back without a delay in that epoch, and no host took it since */
    unsigned back_epoch;
    unsigned stopped_epoch; /* epoch in which an operator ended it; 0: none */
    unsigned back_by; /* run + 1 that gave it back then; from that run Redis takes nothing twice (R6) */
};

/* --- model-turn.c --- */
void vturn_init(struct world *w); /* of a sequence with turns */
usec_t vturn_next_timer(const struct world *w, const struct host *h);
void vturn_on_timer(struct world *w, struct host *h);
void vturn_ask(struct world *w, struct run *r);    /* once more, if it was asked before */
bool vturn_is_unsure(const struct run *r); /* the claim is there, but its host had no answer: which attempt it is */
void vturn_commit(struct world *w, struct run *r);
void vturn_end(struct world *w, struct run *r);    /* over, or given back */
void vturn_process_ended(struct world *w, struct run *r); /* whether it is tried again */
void vturn_lose(struct world *w, struct run *r);   /* its session is lost */
void vturn_crash(struct world *w, struct host *h);
void vturn_drain(struct world *w, struct host *h, usec_t duration);
void vturn_on_live(struct world *w, struct host *h); /* after a sync */
void vturn_on_push(struct world *w, struct host *h, const char *text);
void vturn_on_reply(struct world *w, struct host *h, const struct batch *batch, const redisReply *reply);
bool vturn_is_done(const struct world *w);
uint64_t vturn_due(const struct world *w, unsigned due); /* seconds since 1970 */
unsigned vturn_find(const struct world *w, uint64_t due); /* n_dues: there is none */
usec_t vturn_wait(const struct world *w, const struct host *h, unsigned due); /* after it is due, or open */
void vturn_forget(struct host *h, struct run *r); /* it does not ask any more */

/* --- model-rules-turn.c --- */
void check_turn_start(struct world *w, const struct run *r);
void check_turns(struct world *w); /* at the end */
void check_turns_done(struct world *w); /* no host still asks */
