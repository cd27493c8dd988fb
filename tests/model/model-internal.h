/* SPDX-License-Identifier: MIT */
#pragma once

/* Inside of the model test; tests/model/model.h says what it is. All times are µs of the one virtual time; where a host measures,
 * its rate is reckoned in (vhost_lasts()). */

#include "base/clock.h"
#include "tests/model/model-bridge.h"
#include "tests/model/model-turn.h"

#define HOSTS_MAX 4
#define POOLS_MAX 4
#define RUNS_MAX 200
#define SESSIONS_MAX 250
#define EVENTS_MAX 2048
#define STEPS_MAX 96
#define MARKS_KEPT 40
#define EARLY_MAX 64
#define ASK_MAX 8 /* claims in one call */
#define NUMBER_SIZE 24
#define EPOCHS_MAX 200
#define OVERRIDE_SIZE 200

/* --- what Redis must have --- */

struct m_session {
    bool live, ending; /* ending: its end was begun, the rest comes with later calls */
    unsigned host, name; /* host: the machine */
    bool superseded;     /* its host has a newer session: the name is that one's */
    uint64_t connection, last, count;
    bool is_declared[POOLS_MAX], is_host_scoped[POOLS_MAX];
    uint32_t limits[POOLS_MAX];
    usec_t heartbeat_at; /* when its last heartbeat was executed */
};

struct m_claim {
    char state; /* 0: not there; W, P, H */
    unsigned session;
    uint64_t ticket, token, head;
    uint32_t permits[POOLS_MAX];
    bool revoked, unsynced;
    unsigned parked_at; /* the pool whose limit was too low */
};

struct m_state { /* copied for snapshots */
    bool empty, grace;
    char epoch[NUMBER_SIZE]; /* "": it has ended, or none has begun */
    unsigned replid;
    uint64_t clock, heartbeat_count, began; /* began: the clock when the epoch did */
    usec_t lease; /* of the namespace; 0: none yet */
    char overrides[POOLS_MAX][OVERRIDE_SIZE]; /* "": none */
    struct m_session sessions[SESSIONS_MAX];
    struct m_claim claims[RUNS_MAX];
};

/* --- hosts --- */

enum host_phase { HOST_DOWN, HOST_HELLO, HOST_SYNC, HOST_LIVE };

struct batch { /* a call for claims, or one that gives them back */
    bool release;
    enum turn_call turn; /* or one about a turn: of runs[0], where n is 1 */
    unsigned n, runs[ASK_MAX];
};

struct mark {
    uint64_t count;
    usec_t received;
};

struct known_override {
    uint64_t version;
    char words[6][64]; /* version limit until by restore reason */
};

struct host {
    unsigned index, name;  /* index: its machine */
    usec_t lease, expiry;  /* as its config says; it calls others dead after so long */
    double rate;           /* its clock's; 1: true time */
    bool up;               /* berthd runs */
    usec_t start_at;       /* berthd begins again; 0: it runs */
    usec_t live_since;     /* first time since then; 0: not yet */
    usec_t frozen_until, cut_until;
    /* network */
    unsigned wire;         /* number of the present pair of connections; answers and pushes of an older one are lost */
    bool wire_dead;        /* a message was lost: nothing more gets through until the host notices */
    usec_t last_call, last_answer, last_push; /* arrivals: order is kept */
    bool lose_call, lose_answer, lose_push;   /* the next one */
    usec_t stall_call, stall_answer, stall_push;
    bool twice;            /* the next call for claims comes twice */
    /* session */
    enum host_phase phase;
    unsigned session, replaced; /* 0: none */
    uint64_t connection;
    bool from_file, has_file;
    unsigned file_session;
    uint64_t file_connection;
    usec_t retry;          /* 0: none */
    char epoch[NUMBER_SIZE];
    usec_t epoch_known;
    bool grace;
    uint64_t max_started;  /* the highest token that this berthd saw a process start with */
    uint64_t drawn, latest; /* of the clock: known to have been drawn; none was higher at `since` */
    usec_t since, heard;
    uint64_t given;        /* the highest number given to this session in this epoch */
    unsigned lost;         /* what the next hello tells of the epoch's data */
    uint64_t file_latest;
    usec_t file_since;
    uint64_t last_count;   /* of the last answer, and when that was asked for */
    usec_t last_sent;
    uint64_t own;          /* the last count that Redis noted for this session in this epoch */
    usec_t own_sent;
    struct mark marks[MARKS_KEPT];
    size_t n_marks;
    usec_t deadline;       /* 0: none */
    /* heartbeats */
    usec_t next_beat, beat_sent, hello_sent, looked;
    uint64_t beat_drawn;
    unsigned n_heartbeats;
    bool ends_grace;       /* an administrator asks it to */
    bool heartbeat_under_way, heartbeat_again, heartbeat_answered, early_sent;
    uint64_t chain, doubt;
    struct { uint64_t before, number; } early[EARLY_MAX];
    size_t n_early;
    struct batch open;       /* what this turn asks for, and did not say yet */
    /* sync */
    unsigned sync[RUNS_MAX];
    size_t n_sync, sync_at;
    bool sync_begun, sync_heard;
    uint64_t sync_chain;
    /* turns */
    struct turn_host turns;
    /* config and administrators */
    uint32_t limits[POOLS_MAX];
    bool host_scoped[POOLS_MAX]; /* there it is of scope host */
    bool declare_again;
    struct known_override overrides[POOLS_MAX];
    uint64_t overrides_version;
    /* for the rules */
    usec_t healthy_since, last_beat; /* in touch with Redis without a gap (0: not); its last heartbeat that was executed */
};

/* --- runs: a claim and its process --- */

enum run_state { RUN_NONE, RUN_ASKED, RUN_WAITING, RUN_HELD, RUN_RELEASING, RUN_DONE };

struct run {
    enum run_state state;
    unsigned host, id;
    uint32_t permits[POOLS_MAX];
    uint64_t head;
    bool nowait, keep;
    uint32_t queue_limit;
    usec_t duration;
    unsigned calls;
    bool sent, named, notified, lost, renew, revoked;
    uint64_t ticket, token;
    /* its process */
    bool alive, over_lease;
    usec_t ends, guard_deadline, granted_at;
    uint32_t granted_limit[POOLS_MAX]; /* in force when it was granted */
    uint64_t granted_number;           /* orders grants */
    uint64_t granted_floor;            /* its token, or the time when it was granted if that is less: who remembered more than there
                                          was may have put the clock ahead just then, which no other host had received */
    bool started;                      /* its process has begun once */
    struct turn_run turn;
    usec_t requested_at;                   /* waits since it was given its ticket then; 0: not so, or that was in grace */
};

/* --- the world --- */

enum event_kind { EVENT_CALL, EVENT_ANSWER, EVENT_PUSH, EVENT_BROKEN };

struct model_event {
    enum event_kind kind;
    usec_t at;
    uint64_t order;
    unsigned host, wire, session;
    struct batch batch; /* n = 0: it is about no claims */
    bool is_unawaited; /* a call: nobody waits for its answer */
    enum redis_script script;
    enum host_phase during;
    struct redis_command words; /* of a call */
    redisReply *reply;  /* of an answer: {reply, pushes, state} */
    usec_t sent;
    char *text;         /* of a push */
};

struct world {
    struct bridge *bridge;
    const struct model_mutation *mutation;
    uint64_t seed, draws;
    FILE *trace; /* or NULL */
    /* what does not change in a sequence */
    unsigned n_hosts, n_pools;
    bool has_keys; /* see POOL_PATTERN */
    usec_t lease, heartbeat;
    bool tight;
    bool turns; /* pool a is the pool of a job that is `on = "any"` */
    const char *overlap;
    char again[24];
    unsigned n_dues;
    usec_t due_period;
    struct due dues[DUES_MAX];
    size_t sync_part;
    uint32_t limits[POOLS_MAX];
    /* now */
    usec_t now, redis_frozen_until, full_until, replica_until;
    usec_t longest; /* lease that any host had in its config */
    int64_t redis_skew;
    enum { DISASTER_NONE, DISASTER_ARMED, DISASTER_DUE } disaster; /* armed: due with the next process that begins */
    unsigned disaster_host;
    bool by_hand;   /* a grace was ended by hand, so that it may have been too short for clocks to age */
    bool was_ahead; /* Redis' clock was stepped forward once */
    unsigned replid, n_sessions, n_runs, n_calls, n_admin, n_epochs;
    usec_t went_back;  /* when Redis's memory went back under one replication id; 0: never. Until hosts had time to tell, nobody can know */
    usec_t stepped;    /* when Redis's clock or data last jumped, or an epoch began */
    int64_t lead;      /* how far the clock was ahead of Redis's after the last call, or could be with the next number */
    usec_t lead_noted; /* when that was; 0: never */
    struct m_state m, saved;
    bool has_saved;
    uint64_t n_grants, order;
    char epochs[EPOCHS_MAX][NUMBER_SIZE]; /* all that there were: none may come twice */
    unsigned n_begun;
    uint64_t admin_versions[STEPS_MAX + 1]; /* what an override replaces, so that it can be said again */
    struct host hosts[HOSTS_MAX];
    struct run runs[RUNS_MAX];
    struct model_event *events[EVENTS_MAX];
    size_t n_events;
    char failure[400]; /* "": none */
};

#define world_foreach_run(w, r) for (struct run *r = (w)->runs; r < (w)->runs + (w)->n_runs; r++)

void model_fail(struct world *w, const char *format, ...) _printf_(2, 3); /* the first one counts */
static inline bool model_failed(const struct world *w) {
    return w->failure[0] != '\0';
}
/* Keyed pools: in such sequences the pools are a, t/x, t/y, and their pattern, of which nobody claims anything. */
#define POOL_PATTERN 3
const char *model_pool(const struct world *w, unsigned pool); /* its name */
unsigned model_find_pool(const struct world *w, const char *text); /* POOLS_MAX: there is none; the name may be followed by ':' */
bool model_is_key(const struct world *w, unsigned pool);
uint64_t model_mix(uint64_t a, uint64_t b);
uint64_t reply_number(const struct redisReply *r); /* 0 if it is no number */
const char *reply_word(const struct redisReply *r); /* "" if it is no word */
unsigned id_number(const char *id);                 /* of "c12" or "s3" */

/* --- model-rules.c (its parts: model-rules.h) --- */
usec_t world_redis_time(const struct world *w);
void rules_begin(struct world *w); /* the data is gone */
/* What a call did, by its answer; complains where a rule is broken. */
void rules_apply(struct world *w, enum redis_script script, const struct redis_command *arguments, const redisReply *answer);
/* Nobody who could be served stands before it in any of its queues. Of two with one place (Redis lost the first's ticket, its clock was set
 * back, and the second claimed before any host had reported) either may be first; none must be. */
bool rules_is_first(const struct world *w, unsigned claim, bool surely);
bool rules_fits(const struct world *w, unsigned claim, uint32_t limit_slack);
bool rules_wants_too_much(const struct world *w, const struct m_claim *c);
bool rules_may_be_parked(const struct world *w, const struct m_claim *c);
bool rules_stays_parked(const struct world *w, const struct m_claim *c); /* the pool for which it is parked has too low a limit */
uint32_t rules_held(const struct world *w, unsigned pool, bool ending);

/* --- model-limits.c --- */
uint32_t rules_limit(const struct world *w, unsigned pool); /* in force */
/* Takes over the overrides that a call has changed; complains if it may not have. */
void limits_apply(struct world *w, enum redis_script script, char **args, size_t n_args, const char *word, const redisReply *state);

/* --- model-check.c --- */
void check_grant(struct world *w, unsigned claim);     /* before it counts as held */
void check_session_end(struct world *w, unsigned session);
void check_start(struct world *w, const struct run *r); /* its process has just begun */
void check_heartbeat(struct world *w, const struct host *h);  /* others are expired in time (R4) */
void check_idle(struct world *w);                        /* nothing that is possible is left undone */
void check_data(struct world *w, bool at_rest);

/* --- model-host.c --- */
usec_t vhost_lasts(const struct host *h, usec_t duration); /* true time that the host takes for so much */
usec_t vhost_margin(const struct host *h);                 /* before the end of its lease its guards are done */
usec_t vhost_measures(const struct host *h, usec_t duration); /* what its clock shows then */
void vhost_start(struct world *w, struct host *h);         /* berthd begins */
void vhost_crash(struct world *w, struct host *h);         /* berthd ends without a word */
void vhost_down(struct world *w, struct host *h, usec_t retry_in); /* its connections break */
void vhost_resync(struct world *w, struct host *h);
void vhost_declare(struct world *w, struct host *h);
void vhost_session_lost(struct world *w, struct host *h);
void vhost_on_timer(struct world *w, struct host *h);
usec_t vhost_next_timer(const struct world *w, const struct host *h); /* USEC_INFINITY: none */
void vhost_on_answer(struct world *w, const struct model_event *e);
void vhost_begin(struct host *h, struct redis_command *words);
void vhost_put_session(struct redis_command *words, unsigned session); /* "s1"; "" for 0 */

/* --- model-hello.c --- */
void vhello_send(struct world *w, struct host *h);
void vhello_on_answer(struct world *w, struct host *h, const redisReply *reply);
void vhello_on_declared(struct world *w, struct host *h, const redisReply *reply);
void vhello_on_sync(struct world *w, struct host *h, const redisReply *reply);

/* --- model-heartbeat.c --- */
void vheartbeat_observe_epoch(struct world *w, struct host *h, const char *epoch);
void vheartbeat_observe_drawn(struct world *w, struct host *h, uint64_t number);
void vheartbeat_observe_latest(struct world *w, struct host *h, uint64_t number, usec_t sent);
void vheartbeat_apply_overrides(const struct world *w, struct host *h, const redisReply *list);
uint64_t vheartbeat_latest(const struct world *w, const struct host *h);
void vheartbeat_add_sample(struct world *w, struct host *h, uint64_t count, usec_t sent);
uint64_t vheartbeat_expired_count(const struct world *w, const struct host *h);
void vheartbeat_send(struct world *w, struct host *h);
void vheartbeat_on_reply(struct world *w, struct host *h, const redisReply *reply);

/* --- model-claim.c --- */
const char *vclaim_id(const struct run *r, char buffer[static 16]);
void vclaim_request(struct world *w, struct run *r);
void vclaim_release(struct world *w, struct run *r);
void vclaim_flush(struct world *w, struct host *h);
void vclaim_forget_calls(struct world *w, struct host *h);
void vclaim_lose(struct world *w, struct host *h);
void vclaim_apply_item(struct world *w, struct host *h, const redisReply *item);
void vclaim_apply_number(struct host *h, uint64_t before, uint64_t number);
void vclaim_apply_held(struct world *w, struct host *h, struct run *r, uint64_t ticket, uint64_t token);
void vclaim_apply_waiting(struct run *r, uint64_t ticket);
void vclaim_on_push(struct world *w, struct host *h, const char *text);
void vclaim_start_notified(struct world *w, struct host *h);
void vclaim_extend(struct world *w, struct host *h);
size_t vclaim_count(const struct world *w, const struct host *h);
/* All that Redis confirmed: what a host may name in a look. */
void vclaim_put_named(const struct world *w, const struct host *h, struct redis_command *words);
/* Claims of a sync: those to be named, held ones first, then by ticket. */
void vclaim_collect(struct world *w, struct host *h);
void vclaim_put(const struct world *w, struct redis_command *words, const struct run *r);
bool vclaim_is_notified(const struct run *r);
/* Processes whose time is over end; their berthd, if it is there, gives their permits back. */
void vclaim_pass_time(struct world *w);
void vclaim_reap(struct world *w, struct host *h);
usec_t vclaim_next_end(const struct world *w);

/* --- model-batch.c --- */
/* The request is sent with the like ones of this turn, before any other call of its host. */
void vbatch_claim(struct world *w, struct run *r);
void vbatch_release(struct world *w, struct run *r);
void vbatch_flush(struct world *w, struct host *h);
void vbatch_on_sent_reply(struct world *w, const struct batch *batch); /* whatever it is */
void vbatch_refuse(struct world *w, const struct batch *batch);
void vbatch_on_reply(struct world *w, struct host *h, const struct batch *batch, const redisReply *reply);

/* --- model-world.c --- */
/* Takes ownership of `words`. batch: the claims that the call is about; NULL: none. */
void world_send(struct world *w, struct host *h, enum redis_script script, struct redis_command *words, enum host_phase during,
                const struct batch *batch);
void world_end_turn(struct world *w); /* what hosts did not say yet they say now */
void world_push(struct world *w, unsigned session, const char *text);
void world_break(struct world *w, struct host *h, usec_t after); /* the host will notice then */
void world_thaw(struct world *w); /* Redis and hosts go on where they were frozen */
void world_advance(struct world *w, usec_t until);
redisReply *world_call(struct world *w, enum redis_script script, const struct redis_command *words);
void world_done(struct world *w);
usec_t world_draw(struct world *w, usec_t most); /* a short delay */
void world_trace(const struct world *w, const char *format, ...) _printf_(2, 3);

/* --- model-steps.c --- */
struct step;
void world_step(struct world *w, const struct step *s);
void world_heal(struct world *w); /* all faults end */
void world_disaster(struct world *w); /* the host that began a process last, and Redis' data */

/* --- model-operator.c --- */
void operator_override(struct world *w, struct host *h, const struct step *s); /* also clears, pauses, resumes */
void operator_revoke(struct world *w, struct host *h, const struct step *s);
void operator_end_grace(struct world *w, struct host *h);
