/* SPDX-License-Identifier: MIT */
#pragma once

/* The state of the model test (tests/model/model.h): Redis, hosts, runs and the world around them. All times are µs of
 * the one virtual time; vhost_lasts() converts what a host measures, because its clock has a rate. */

#include "base/clock.h"
#include "tests/model/model-bridge.h"
#include "tests/model/host/model-turn.h"

#define HOSTS_MAX 4
#define POOLS_MAX 4
#define RUNS_MAX 1600
#define CLAIMS_MAX 200 /* runs that steps ask for, and turns of a sequence with DUES_DEFAULT due times */
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
    bool superseded;     /* a newer session has the name */
    uint64_t connection, last, count;
    bool is_declared[POOLS_MAX], is_host_scoped[POOLS_MAX];
    uint32_t limits[POOLS_MAX];
    usec_t heartbeat_at; /* when its last heartbeat was executed */
};

struct m_claim {
    char state; /* 0: not there; W, P, H */
    unsigned session;
    uint64_t ticket, token, head;
    uint64_t given, moved; /* by moves; number of the last one */
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
    unsigned skips[SKIPS_KEPT]; /* run + 1 of the latest questions that were answered so, newest first */
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

struct host_config { /* read when berthd starts, except limits and scopes */
    unsigned name;
    usec_t lease, expiry; /* expiry: sessions of other hosts expire after this time without a heartbeat */
    uint32_t limits[POOLS_MAX];
    bool host_scoped[POOLS_MAX];
    bool declare_again; /* limits or scopes have changed meanwhile */
};

struct host_network {
    unsigned wire;    /* number of the present pair of connections; answers and pushes of an older one are lost */
    bool wire_dead;   /* a message was lost: nothing more gets through until the host notices */
    usec_t cut_until;
    usec_t last_call, last_answer, last_push; /* arrivals: order is kept */
    bool lose_call, lose_answer, lose_push;   /* the next one */
    usec_t stall_call, stall_answer, stall_push;
    bool twice; /* the next call for claims comes twice */
};

struct host_file { /* of the session */
    bool exists, in_use; /* in_use: the session was read from it */
    unsigned session;
    uint64_t connection;
    uint64_t latest; /* of struct host_clock */
    usec_t since;
};

struct host_clock { /* what the host knows of the present epoch, and of Redis's clock in it */
    char epoch[NUMBER_SIZE];
    usec_t epoch_known;
    bool grace;
    uint64_t max_started;   /* the highest token that this berthd saw a process start with */
    uint64_t drawn, latest; /* drawn: known to have been drawn; latest: none was higher at `since` */
    usec_t since, heard;
    uint64_t given;         /* the highest number given to this session */
    unsigned lost;          /* what the next hello reports of the epoch's data */
};

struct host_heartbeat {
    usec_t next, sent, looked;
    uint64_t drawn;
    unsigned n;
    bool ends_grace; /* an operator asks for it */
    bool under_way, again, answered;
    bool is_slow;        /* `next` is that of an idle host */
    uint64_t last_count; /* of the last answer, and when the host asked for it */
    usec_t last_sent;
    uint64_t own;        /* the last count that Redis noted for this session in this epoch */
    usec_t own_sent;
    struct mark marks[MARKS_KEPT];
    size_t n_marks;
};

struct host_pushes {
    uint64_t chain, doubt;
    struct { uint64_t before, number; } early[EARLY_MAX];
    size_t n_early;
    bool early_sent;
};

struct host_sync {
    unsigned runs[RUNS_MAX];
    size_t n, at;
    bool begun, heard;
    uint64_t chain;
};

struct host_overrides {
    struct known_override of_pool[POOLS_MAX];
    uint64_t version;
};

struct host_health { /* for the rules */
    usec_t since;      /* in touch with Redis without a gap; 0: not */
    usec_t idle_since; /* the same, and gaps as those of an idle host do not count */
    usec_t last_beat;  /* its last heartbeat that was executed */
};

struct host {
    unsigned index;     /* its machine */
    double rate;        /* its clock's; 1: true time */
    bool up;            /* berthd runs */
    usec_t start_at;    /* berthd begins again; 0: it runs */
    usec_t live_since;  /* first time since then; 0: not yet */
    usec_t frozen_until;
    enum host_phase phase;
    unsigned session, replaced; /* 0: none */
    uint64_t connection;
    usec_t retry;       /* 0: none */
    usec_t hello_sent;
    usec_t deadline;    /* 0: none */
    struct batch open;  /* what this turn of the loop will ask for */
    struct turn_host turns;
    struct host_overrides overrides;
    struct host_config config;
    struct host_network network;
    struct host_file file;
    struct host_clock clock;
    struct host_heartbeat heartbeat;
    struct host_pushes pushes;
    struct host_sync sync;
    struct host_health health;
};

/* --- runs: a claim and its process --- */

enum run_state { RUN_NONE, RUN_ASKED, RUN_WAITING, RUN_HELD, RUN_RELEASING, RUN_DONE };

struct run_grant {
    usec_t at;
    uint32_t limit[POOLS_MAX]; /* in force when it was granted */
    uint64_t number;           /* orders grants */
    uint64_t floor; /* the lower of its token and the time of its grant: a host may have put the clock ahead just
                     * then by a number that no other host had received */
};

struct run_process {
    bool started; /* once */
    bool alive, over_lease;
    usec_t ends, guard_deadline;
};

struct run {
    enum run_state state;
    unsigned host, id;
    uint32_t permits[POOLS_MAX];
    uint64_t head, given, moved;
    bool nowait, keep;
    uint32_t queue_limit;
    usec_t duration;
    unsigned calls;
    bool sent, named, notified, lost, renew, revoked;
    uint64_t ticket, token;
    usec_t requested_at; /* when it got its ticket, if it has waited since; 0: it has not, or that was in grace */
    struct run_grant grant;
    struct run_process process;
    struct turn_run turn;
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

struct world_setup { /* what does not change in a sequence */
    uint64_t seed;
    unsigned n_hosts, n_pools;
    bool has_keys; /* see POOL_PATTERN */
    bool has_moves;
    usec_t lease, heartbeat;
    bool tight;
    size_t sync_part;
    uint32_t limits[POOLS_MAX];
};

struct world_turns {
    bool is_on; /* pool a is the pool of a job that is `on = "any"` */
    const char *overlap;
    char again[24];
    unsigned n_dues;
    usec_t period;
    struct due dues[DUES_MAX];
};

struct world_redis {
    usec_t frozen_until, full_until, replica_until;
    int64_t skew;
    unsigned replid;
    bool was_ahead;    /* its clock was stepped forward once */
    usec_t went_back;  /* when its memory went back under one replication id; 0: never */
    usec_t stepped;    /* when its clock or data last jumped, or an epoch began */
    int64_t lead;      /* how far the clock was ahead of its time after the last call, or could be with the next number */
    usec_t lead_noted; /* when that was; 0: never */
    struct m_state now, saved;
    bool has_saved;
};

struct world_disaster {
    enum { DISASTER_NONE, DISASTER_ARMED, DISASTER_DUE } phase; /* armed: due with the next process that begins */
    unsigned host;
};

struct world_operators {
    bool ended_grace; /* a grace was ended by hand, so that it may have been too short for clocks to age */
    unsigned n;
    uint64_t versions[STEPS_MAX + 1]; /* what an override replaces, so that it can be sent again */
};

struct world_epochs { /* none may come twice */
    unsigned n_proposed, n_begun;
    char begun[EPOCHS_MAX][NUMBER_SIZE];
};

struct world_events {
    struct model_event *all[EVENTS_MAX];
    size_t n;
    uint64_t order;
};

struct world {
    struct bridge *bridge;
    const struct model_mutation *mutation;
    FILE *trace; /* or NULL */
    struct world_setup setup;
    uint64_t draws;
    usec_t now;
    usec_t longest; /* lease that any host had in its config */
    unsigned n_sessions, n_runs, n_calls;
    uint64_t n_grants;
    struct world_turns turns;
    struct world_redis redis;
    struct world_disaster disaster;
    struct world_operators operators;
    struct world_epochs epochs;
    struct world_events events;
    struct host hosts[HOSTS_MAX];
    struct run runs[RUNS_MAX];
    char failure[400]; /* "": none */
};
