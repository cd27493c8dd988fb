/* SPDX-License-Identifier: MIT */
#pragma once

/* Inside of the store on Redis; store/store.h is what others see. The files:
 *
 *   store-redis.c          made, started, stopped, freed; what was declared; the store's state
 *   store-redis-link.c     the two connections: connect, load missing scripts, subscribe; what an error calls for
 *   store-redis-hello.c    hello: opens the session, declares limits
 *   store-redis-session.c  the session: its id and file, its end
 *   store-redis-sync.c     the whole truth in parts (R11)
 *   store-redis-beat.c     heartbeats, deadline, epochs and grace, what hosts tell about hosts
 *   store-redis-clock.c    what is remembered of the namespace's clock
 *   store-redis-claim.c    claims, and what becomes of them
 *   store-redis-ask.c      what is asked for them, together where it is alike
 *   store-redis-push.c     what is pushed to this session
 *   store-redis-look.c     whether Redis still has what it confirmed
 *   store-redis-admin.c    override, revoke, end of grace
 *   store-redis-inspect.c  asks for a snapshot
 *   store-redis-snapshot.c reads the answers
 *
 * One call goes EVALSHA sha 1 berth:{ns}:meta session connection ...; its reply begins with a word. Replies that call for
 * something else than what was asked for ("epoch", "gone", "stale", errors) are met in one place, link_judge(). */

#include "base/list.h"
#include "store/redis/client/connection.h"
#include "store/redis/client/resolve.h"
#include "store/redis/client/script.h"
#include "store/redis/client/command.h"
#include "store/store.h"

#define CALL_NUMBER_SIZE 24
#define EPOCH_LENGTH 16     /* digits of an epoch's random id */
#define SYNC_PART 200       /* claims in one part of a sync (R15) */
#define MARKS_MAX 64
#define BUCKETS 1024        /* of claims by id; a power of two */
#define CHAIN_MAX 256       /* pushes that came before the one they name */

enum phase {
    PHASE_DOWN,       /* not connected; a timer tries again */
    PHASE_CONNECTING, /* until both connections are up, the scripts loaded, the subscription acknowledged */
    PHASE_HELLO,      /* hello is on its way, or was refused and is said again by a timer */
    PHASE_SYNC,       /* the truth is being told; other calls wait */
    PHASE_LIVE,
};

struct mark {         /* an answered heartbeat */
    uint64_t count;   /* the beat clock then */
    usec_t sent, received;
};

struct chain_link {   /* a push that names a token not seen yet as its predecessor */
    uint64_t before, number;
};

struct entry {               /* a claim, as long as it is the store's; thousands may wait */
    struct store_redis *redis;
    struct claim *claim;
    struct list link;        /* on redis->entries, in the order in which they were asked for */
    struct list bucket;      /* on redis->buckets[...] */
    struct list finish;      /* on redis->finished: on_released is due */
    unsigned calls;          /* under way for it on this connection */
    bool sent : 1;           /* Redis may know it */
    bool named : 1;          /* Redis confirmed that it has it */
    bool told : 1;           /* held: its owner was told */
    bool lost : 1;           /* held: the lease was lost, it is the owner's to stop */
    bool renew : 1;          /* held beyond a lost lease (`keep`): needs a new token */
    bool revoked : 1;        /* its owner was told */
    bool refused : 1;        /* finished by a refusal: `nowait`, and Redis is away or full */
};

enum data_loss {             /* what Redis has lost of an epoch, though it is the same Redis */
    DATA_LOSS_NONE,
    DATA_LOSS_SEEN,          /* it does not have what it had */
    DATA_LOSS_HALF,          /* a script ended with an error, half of its work may be done */
};

struct clock_memory {
    uint64_t drawn;          /* the highest number that is known to have been drawn */
    uint64_t latest;         /* at `since` (boottime) no number drawn was higher */
    usec_t since, heard;     /* heard: boottime when that was learned; since is earlier */
};

struct declared {
    struct store_pool pool;
    uint64_t lowest, highest; /* last told by limits-differ; equal: they agree */
    uint64_t elsewhere;       /* likewise: sessions that have it with scope host, while others share it */
    uint64_t in_force;        /* the lowest that hosts declare, as it was told last in BERTH_LIMITS; UINT64_MAX: never */
};

struct known_override {       /* the newest that was heard of (R10) */
    char pool[NAME_MAX_LENGTH + 1];
    uint64_t version;
    char limit[12], until[CALL_NUMBER_SIZE], by[ID_TEXT_SIZE], restore[256], reason[256];
};

struct batch;                 /* claims asked for, or given back, with one call: store-redis-ask.c */
struct admin;                 /* an administrator's call: store-redis-admin.c */
struct inspection;            /* a snapshot being collected: store-redis-inspect.c */

#define STORE_REDIS_DRAINED ",drained" /* behind a session's version in Redis */

struct store_redis {
    struct store store;       /* first */
    sd_event *event;
    struct events *events;

    /* options */
    struct redis_settings settings;
    struct redis_connection_options command_options; /* of both connections */
    char *password, *session_path;
    char host[NAME_MAX_LENGTH + 1], version[32], machine[ID_TEXT_SIZE];
    bool drained;                        /* told behind the version */
    char client_name[NAME_MAX_LENGTH + 16];
    char key[NAME_MAX_LENGTH + 24];      /* berth:{ns}:meta */
    char prefix[NAME_MAX_LENGTH + 16];   /* berth:{ns}: */
    usec_t lease_usec, heartbeat_usec;

    /* link */
    enum phase phase;
    bool started, stopping, connected_told, lost_told;
    struct redis_resolve *resolve;       /* while the host's name is looked up */
    struct redis_connection *commands, *pushes;
    bool subscribed;
    bool nonsense_told;                  /* of a push, on this connection */
    bool info_due, scripts_due, probe_due; /* the answers to INFO, SCRIPT EXISTS and probe come before hello */
    usec_t info_asked;                   /* boottime: the last INFO */
    bool snapshot_told;                  /* that the last one failed */
    unsigned loads;                      /* and so many to SCRIPT LOAD */
    sd_event_source *retry;              /* to connect again, or to say hello again */
    sd_event_source *away;               /* defer: tells administrators' calls that Redis is away */
    usec_t backoff_usec;                 /* how long the next try waits; 0: not at all */
    usec_t live_since;                   /* boottime: the last time a sync was finished */
    char last_error[256];                /* told already */
    char refused[24];                    /* hello's last refusal, told already */

    /* session */
    char session[ID_TEXT_SIZE], replaced[ID_TEXT_SIZE], boot[ID_TEXT_SIZE];
    uint64_t connection;
    bool unsaid;                         /* there was no memory for a call: said when the next heartbeat is answered */
    bool awaits_lost;                    /* no hello before what was lost has been stopped */
    bool from_file;                      /* continues the one of an earlier berthd; Redis has not confirmed it yet */

    /* epoch, clock, beats */
    char epoch[CALL_NUMBER_SIZE];        /* "0": none yet */
    usec_t epoch_known;                  /* boottime when it was first heard of */
    bool grace;
    enum data_loss lost;                 /* what the next hello is to tell of this epoch */
    struct clock_memory clock;
    usec_t clock_saved;                  /* clock.heard of what the session's file has */
    usec_t expiry_usec;                  /* the lease by which the dead are told: the longer of ours and the namespace's */
    struct mark marks[MARKS_MAX];        /* oldest first, of this epoch */
    size_t n_marks;
    struct mark own;                     /* the last that Redis noted for this session; count 0: none in this epoch */
    struct mark last;                    /* the newest, also one that is too close to the mark before it; count 0: none */
    sd_event_source *beat_timer, *deadline_timer;
    bool beat_under_way, beat_again, beaten; /* beaten: once since it is live */
    unsigned n_untimely;                 /* calls that answers and pushes called for since the last heartbeat in time */
    bool early_sent;                     /* n_early was not 0 when the heartbeat under way was sent */
    usec_t beat_sent;                    /* of the last one */
    uint64_t beat_drawn;                 /* clock.drawn then */
    unsigned beats;                      /* sent so far: every sixteenth asks for the latest number */
    bool late_told;

    /* claims */
    struct list entries;                 /* struct entry */
    struct list buckets[BUCKETS];        /* struct entry */
    struct list finished;                /* struct entry */
    struct list batches;                 /* struct batch: what is asked, and not answered yet */
    struct batch *open;                  /* the one that is not said yet; NULL: none */
    struct entry *look;                  /* the next to be looked after; NULL: the first */
    usec_t looked;
    bool look_under_way;
    size_t n_named;                      /* entries with `named`; a heartbeat walks over none of them */
    bool untold;                         /* there may be one that is held and not told */
    sd_event_source *finish;             /* defer: tells them */
    sd_event_source *full;               /* timer: asks for the first claim again, for which Redis had no memory */
    usec_t full_pause, full_told;        /* until then; boottime of the last warning, 0: none */
    uint64_t given;                      /* the highest number given to this session in this epoch */
    uint64_t chain;                      /* up to this number all that concerns this session was heard */
    struct chain_link early[CHAIN_MAX];
    size_t n_early;
    uint64_t doubt;                      /* a number not heard of when a heartbeat's answer named it; 0: none */

    /* sync */
    struct entry **sync;                 /* held ones first, then by ticket */
    size_t n_sync, sync_at;
    bool sync_begun, sync_heard;         /* its first part was sent, was answered */
    uint64_t sync_chain;                 /* the last number given to this session, in the first answer */

    /* declared, overrides */
    struct declared *declared;
    size_t n_declared;
    struct known_override *overrides;
    size_t n_overrides;
    uint64_t overrides_version;
    bool overrides_heard;                /* once, so changes are news */
    bool declare_again;
    uint64_t cut;                        /* the clock's last number before what we declare took effect */

    struct list admins;                  /* struct admin */
    struct list inspections;             /* struct inspection */
    struct list questions;               /* struct question, under way */
    store_reply_fn stop_done;
    void *stop_userdata;
};

static inline struct store_redis *store_redis_of(struct store *s) {
    return (struct store_redis *) (void *) s;
}

/* --- store-redis.c --- */
void redis_set_state(struct store_redis *r, enum store_state state);
struct journal *redis_journal(struct store_redis *r);

/* --- store-redis-link.c --- */
int link_start(struct store_redis *r);
/* Drops both connections; what was under way is forgotten. */
void link_drop(struct store_redis *r);
/* Drops them and says so; the next try comes after a while. */
void link_down(struct store_redis *r, enum redis_error error, const char *text);
/* Tries to connect in so long. */
void link_retry(struct store_redis *r, usec_t delay);
/* Both connections stay: hello and sync once more; hello alone. At once, or after a pause if that is so again and again. */
void link_resync(struct store_redis *r);
void link_hello_again(struct store_redis *r);
/* A heartbeat that was sent then was answered, and nothing is wrong: what goes wrong next is tried again at once. Not before the link was
 * live for a while, or a Redis that lies would keep us busy. */
void link_calm(struct store_redis *r, usec_t sent);
/* The session is over, or could not be ended: tells who asked for the stop. */
void link_stopped(struct store_redis *r, int result);
/* A call came that cannot be answered as long as Redis is away: said a turn later, if that is still so. */
void link_tell_away(struct store_redis *r);
int link_init(struct store_redis *r);
/* The words of a call, up to session and connection number. */
void link_begin(struct store_redis *r, struct redis_command *w, enum redis_script script);
/* Sends it. 0, or a negative errno: then the connection is going down, or there is no memory (-ENOMEM): what has a state of its own, a
 * claim or a question, is said again with the next heartbeat that is answered. */
int link_call(struct store_redis *r, const struct redis_command *w, redis_reply_fn fn, void *userdata);
void link_no_memory(struct store_redis *r);
/* Whether a reply is an answer ("ok", or a word that is not met here). If not, and if we still are in the phase in which it was
 * asked for, it is met: connect again, hello again, an error told. */
bool link_judge(struct store_redis *r, const struct redisReply *reply, enum phase during);
/* A reply that does not have the form it must have. */
void link_bad_reply(struct store_redis *r, const char *what);

/* To be called after each answered heartbeat: looks once a lease whether Redis still is what berth needs (INFO). */
void link_check(struct store_redis *r);
/* Why Redis is away, for people; since now, if it was not. */
void link_note_away(struct store_redis *r, const char *why);
/* Whoever does not want to wait for Redis is told that it is away. */
void link_away(struct store_redis *r);

/* --- store-redis-hello.c --- */
void hello_say(struct store_redis *r);
/* Tells changed limits on a live connection. */
void hello_declare(struct store_redis *r);
/* The lowest limit that hosts declare is this one since this number of the clock: an event if that is news. */
void hello_tell_lowest(struct store_redis *r, const char *pool, uint64_t lowest, uint64_t cut);
/* What is in force, for BERTH_LIMITS; to be freed. NULL: no memory, or no pools. */
char *hello_format_limits(struct store_redis *r);
/* NULL: not declared here, or with scope host. */
struct declared *hello_find_declared(struct store_redis *r, const char *pool);

/* --- store-redis-session.c --- */
int session_open(struct store_redis *r);
void session_save(struct store_redis *r);
/* What is remembered of the clock survives berthd, too: written at most once a heartbeat. */
void session_save_clock(struct store_redis *r);
/* It was ended by a bye: the next berthd has nothing to continue. */
void session_forget(struct store_redis *r);
/* Redis does not know the session, and it is no grace: whether anything was lost with it, held by an earlier berthd. */
bool session_was_lost(const struct store_redis *r);
/* What was held and lost has been stopped: if that was all of it, the new session begins. */
void session_lost_stopped(struct store_redis *r);
/* The lease is over: claims are lost; a new session begins when they have been stopped, or after the margin. */
void session_lost(struct store_redis *r, const char *why);

/* --- store-redis-sync.c --- */
void sync_start(struct store_redis *r);
void sync_reset(struct store_redis *r);

/* --- store-redis-beat.c --- */
int beat_init(struct store_redis *r);
void beat_done(struct store_redis *r);
void beat_start(struct store_redis *r);
void beat_reset(struct store_redis *r);
void beat_send(struct store_redis *r);
/* Whether another call may be made because an answer or a push calls for it: so many between two heartbeats that a Redis that lies cannot
 * keep us busy. */
bool beat_may_go_on(struct store_redis *r);
/* A heartbeat before its time, if it may be. */
void beat_send_untimely(struct store_redis *r);
void beat_hear_epoch(struct store_redis *r, const char *epoch);
void beat_hear_grace(struct store_redis *r, bool grace);
void beat_add_mark(struct store_redis *r, uint64_t count, usec_t sent);
/* The count up to which sessions are dead (R4). */
uint64_t beat_dead_count(const struct store_redis *r, usec_t now);
/* How long ago at most a session with this count was alive. */
usec_t beat_seen(const struct store_redis *r, uint64_t count, usec_t now);
int beat_hear_overrides(struct store_redis *r, const struct redisReply *list);
int beat_hear_ended(struct store_redis *r, const struct redisReply *ended, const struct redisReply *reclaimed);
/* but_own: leaves out the pools that this host declares (what it sent says more of them). */
int beat_hear_undeclared(struct store_redis *r, const struct redisReply *list, bool but_own);

/* --- store-redis-clock.c --- */
/* A ticket or token, or the last number drawn, in an answer or a push. It was drawn after the last heartbeat before it that was
 * answered was sent: from then on its age counts, however late this host hears of it. */
void clock_hear_drawn(struct store_redis *r, uint64_t number);
/* Redis's answer to a call sent then (boottime): no number drawn so far is higher. */
void clock_hear_latest(struct store_redis *r, uint64_t number, usec_t sent);
/* No number drawn until now is higher, as far as this host has heard. 0: it has not heard of any. */
uint64_t clock_latest(const struct store_redis *r, usec_t now);

/* --- store-redis-claim.c --- */
int claim_init(struct store_redis *r);
void claim_done(struct store_redis *r);
int redis_claim(struct store *s, struct claim *c);
int redis_adopt(struct store *s, struct claim *c);
void redis_release(struct store *s, struct claim *c);
struct entry *claim_find(struct store_redis *r, const char *id);
/* It is the owner's again. */
void claim_free(struct entry *e);
/* Sends what waits for being live. */
void claim_flush(struct store_redis *r);
/* Redis is away: who would not wait is refused. */
void claim_refuse_nowait(struct store_redis *r);
/* Redis had no memory for this claim: it is refused if it would not wait, else asked again after a pause, before all asked after it. */
void claim_hear_full(struct entry *e);
/* A claim was answered: Redis has memory again, and what waited for that is asked. */
void claim_hear_room(struct store_redis *r);
/* Calls under way are forgotten. */
void claim_reset(struct store_redis *r);
/* Says that nothing of it is left in Redis: on_released is called a turn later. */
void claim_finish(struct entry *e);
/* What Redis says of it. */
void claim_doubt_untold(struct store_redis *r); /* before a sync: grants that nothing was started with are Redis's to confirm */
void claim_hear_held(struct entry *e, uint64_t ticket, uint64_t token, usec_t queued);
void claim_hear_waiting(struct entry *e, bool parked, uint64_t ticket, uint32_t position, usec_t since);
void claim_hear_revoked(struct entry *e);
/* Tells grants that waited for a deadline to be there. */
void claim_tell_granted(struct store_redis *r);
void claim_set_named(struct entry *e, bool named);

/* --- store-redis-ask.c --- */
/* Asks for it, gives it back or withdraws it, with what else this turn of the event loop asks for alike. Needs PHASE_LIVE. If there is no
 * memory, or the connection is going down, it is as if nothing had been asked. */
void ask_claim(struct entry *e);
void ask_release(struct entry *e);
/* Says what was collected: something else is about to be said, or the turn is over. */
void ask_say(struct store_redis *r);
/* The connection is down. */
void ask_reset(struct store_redis *r);

/* --- store-redis-push.c --- */
/* A number given to this session and the one before it: whether all between them was heard. */
void push_hear_number(struct store_redis *r, uint64_t before, uint64_t number);
void push_on_message(const struct redisReply *reply, void *userdata);

/* --- store-redis-look.c --- */
/* To be called after each answered heartbeat: looks if it is time. */
void look_send(struct store_redis *r);
/* An entry is about to go. */
void look_forget(struct entry *e);

/* --- store-redis-admin.c --- */
int redis_override(struct store *s, const struct store_override *o, store_reply_fn fn, void *userdata);
int redis_revoke(struct store *s, const char *claim, const char *reason, store_reply_fn fn, void *userdata);
int redis_end_grace(struct store *s, store_reply_fn fn, void *userdata);
void admin_flush(struct store_redis *r);
/* Whether an administrator waits for the end of grace: a heartbeat ends it. */
bool admin_is_ending_grace(const struct store_redis *r);
/* Grace has ended, or there is none: answers those who wait for that. */
void admin_answer_grace(struct store_redis *r);
/* Calls under way will be said again. */
void admin_reset(struct store_redis *r);
/* Those not under way cannot be answered: Redis is away. */
void admin_fail(struct store_redis *r);

/* --- store-redis-snapshot.c --- */
/* What an inspection's answers say; lists what is malformed. 0, -EBADMSG or -ENOMEM. time: Redis's. */
int snapshot_read_sessions(const struct store_redis *r, struct snapshot *s, const struct redisReply *reply, usec_t *ret_time);
int snapshot_read_pool(struct snapshot *s, size_t pool, usec_t time, const struct redisReply *reply);
/* The places of these claims in its queue. */
int snapshot_read_positions(struct snapshot *s, size_t pool, const char (*mine)[ID_TEXT_SIZE], size_t n, const struct redisReply *reply);

/* --- store-redis-inspect.c --- */
int redis_inspect(struct store *s, store_inspect_fn fn, void *userdata);
void inspect_flush(struct store_redis *r);
/* Calls under way are forgotten. */
void inspect_reset(struct store_redis *r);
void inspect_fail(struct store_redis *r);
