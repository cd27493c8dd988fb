/* SPDX-License-Identifier: MIT */
#pragma once

/* The semaphore as the manager sees it. tests/contract runs against both implementations:
 * store-redis (scope cluster: leases, sessions, epochs) and store-memory (scope host: no lease; after a restart
 * it has what was adopted).
 *
 * No call blocks. A call notes the request and returns; the listener receives the result, never from inside
 * the call. The store copes with a Redis that is away, restarted or wiped: requests stay pending, in order,
 * until they are answered or withdrawn. */

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "store/claim.h"
#include "base/journal/event.h"
#include "store/snapshot.h"

struct store;

enum store_state {
    STORE_STATE_AWAY,  /* not connected, or not answering */
    STORE_STATE_GRACE, /* synced with an epoch in grace: claims queue, nothing is granted (R10) */
    STORE_STATE_READY,
};

enum store_refusal {
    STORE_REFUSAL_BUSY,       /* nowait and no immediate grant */
    STORE_REFUSAL_QUEUE_FULL, /* queue-limit */
    STORE_REFUSAL_NO_MEMORY,  /* nowait, and Redis is full (R13) */
};
const char *store_refusal_name(enum store_refusal refusal); /* "busy", "queue-full", "no-memory" */

enum store_loss {
    STORE_LOSS_REVOKED, /* by an administrator (store_revoke) */
    STORE_LOSS_SESSION, /* the lease was lost: the claim is no longer held. Not sent for claims with `keep`
                           and for waiting ones: these return by themselves (R11) */
};

enum store_turn { /* why a turn is not this host's */
    STORE_TURN_TAKEN,   /* its due time was decided before */
    STORE_TURN_SKIPPED, /* decided by this call: a run of the job is not over, or a queue is full */
    STORE_TURN_LATER,   /* it is open, but its delay is not over */
    STORE_TURN_EARLY,   /* the due time is too far ahead of Redis's clock */
};

struct store_turn_answer {
    enum store_turn turn;
    const char *host;  /* TAKEN: the host of the turn; SKIPPED: that of the other run; NULL: not known */
    const char *why;   /* SKIPPED: "overlap", "queue-full" */
    const char *run;   /* SKIPPED: the run that is not over; NULL: not known */
    usec_t after_usec; /* LATER, EARLY: time until the caller may ask again */
    uint32_t attempt;  /* LATER: the open one; 0: not known */
};

struct store_open_turn {
    const char *pool; /* of the job */
    int64_t due;
    uint32_t attempt;
    usec_t after_usec; /* time until it may be taken */
    const char *why;   /* "host-lost", "given-back", "retry" */
};

struct store_ended_turn { /* a turn that was open */
    int64_t due;
    uint32_t attempt;            /* the one that will not follow */
    char chain[TURN_CHAIN_SIZE]; /* as in struct claim_turn */
};

struct store_listener {
    /* Queued, parked or requeued: state, ticket and position are set. */
    void (*on_waiting)(struct claim *c, void *userdata);
    /* Granted, and claim->needs_usec is left before the deadline. */
    void (*on_granted)(struct claim *c, void *userdata);
    /* Not queued; the claim is the owner's again (CLAIM_STATE_NONE). pool: valid during the call. */
    void (*on_refused)(struct claim *c, enum store_refusal refusal, const char *pool, void *userdata);
    /* A held claim must stop (REVOKED: or a waiting one, give up); it stays held until store_release(). */
    void (*on_lost)(struct claim *c, enum store_loss loss, void *userdata);
    /* Answers store_release(): the store has nothing of the claim; the owner may free it. */
    void (*on_released)(struct claim *c, void *userdata);
    /* The deadline of all held claims has moved (boottime, R8). Never with store-memory. */
    void (*on_deadline)(struct store *s, usec_t deadline, void *userdata);
    void (*on_state)(struct store *s, enum store_state state, void *userdata);
    /* The next four are about turns; store-memory never calls them. */
    /* The turn of the claim is not this host's; the claim is the owner's again (CLAIM_STATE_NONE). */
    void (*on_turn_refused)(struct claim *c, const struct store_turn_answer *answer, void *userdata);
    /* Answers store_commit(). False: another host may have the turn; the owner releases the claim. */
    void (*on_committed)(struct claim *c, bool is_ours, void *userdata);
    /* Any host may take the turn. May be called several times for one turn. */
    void (*on_turn_open)(struct store *s, const struct store_open_turn *turn, void *userdata);
    /* This host's turn for the claim replaces one whose delay was not over. Called once; if Redis's reply is lost, no
     * host learns of it. */
    void (*on_turn_superseded)(struct claim *c, const struct store_ended_turn *turn, void *userdata);
    /* Move number claim->moved gave the claim another head start (R2). Never with store-memory, where the reply to
     * store_move() has it. */
    void (*on_moved)(struct claim *c, void *userdata);
    void *userdata;
};

struct store_pool { /* as this host's config declares it */
    char name[POOL_NAME_SIZE];
    uint32_t limit, queue_limit;
    bool is_host_scoped; /* declared only to report the other scope (R14): no claim in this store names it */
    bool is_former;      /* store-memory: not declared; the claims that it still has get this limit */
    uint32_t due_hash;   /* of a job's pool: differs where the due times differ; 0: not known */
};

/* A handler is called once, at the latest by store_free(): r is 0, a positive named answer, or a negative
 * errno (-ENOTCONN: Redis is away). */
enum {
    STORE_E_UNKNOWN = 1, /* no such pool, no such claim */
    STORE_E_CONFLICT,    /* another administrator changed the override meanwhile */
    STORE_E_NOT_KEPT = 6, /* the override of a host pool is in force, but not after a restart of berthd */
};
typedef void (*store_reply_fn)(int r, void *userdata);
/* The handler frees the snapshot, and may sort its lists. */
typedef void (*store_inspect_fn)(int r, struct snapshot *snapshot, void *userdata);

/* Answers of store_pass(). 0: the due times were missed, and this host logs that. -ENOTCONN: the caller asks again
 * when the store is READY. -EAGAIN: they are ahead of Redis's clock, or Redis is in grace. */
enum { STORE_E_TAKEN = 3 }; /* they were decided before */
struct store_pass {
    const char *pool; /* of the job */
    int64_t due;      /* all due times up to this one are missed, if they were not decided before */
    const char *id;   /* of the call, made by id_make(); a repeated call has the same one (R6) */
};

/* What store_end_turns() found of a job in the cluster. */
struct store_other_run { /* of another host; it goes on */
    char run[ID_TEXT_SIZE], host[NAME_MAX_LENGTH + 1];
    bool waits; /* for its permits */
};
struct store_ended_turns {
    struct store_ended_turn *turns;
    size_t n_turns;
    struct store_other_run *runs; /* some of them, if there are many */
    size_t n_runs;
};
/* ended: NULL unless r is 0; valid during the call. r: 0; -ENOTCONN: no reply came, and some turns may have ended;
 * -EAGAIN: Redis is in grace. */
typedef void (*store_ended_turns_fn)(int r, const struct store_ended_turns *ended, void *userdata);

/* What Redis has of a job that hosts share. */
struct store_shared_turn { /* an open turn */
    int64_t due;
    uint32_t attempt;
    usec_t after_usec; /* time until it may be taken */
};
struct store_shared {
    char (*hosts)[NAME_MAX_LENGTH + 1]; /* hosts that may begin it; drained ones may not */
    size_t n_hosts;
    struct store_shared_turn *turns;
    size_t n_turns;
};
/* shared: NULL unless r is 0; valid during the call. r: 0, or -ENOTCONN: no reply came. */
typedef void (*store_shared_fn)(int r, const struct store_shared *shared, void *userdata);

struct store_override {
    const char *pool;
    bool clear;         /* remove the override */
    bool pause, resume; /* pause: limit 0, replacing the override until resume */
    uint32_t limit;
    usec_t for_usec;    /* USEC_INFINITY: until cleared */
    const char *reason; /* or NULL */
};

/* A move of a claim to another place in all its queues, and its result (R2). */
enum store_move_kind {
    STORE_MOVE_FIRST,  /* before all others */
    STORE_MOVE_BEFORE, /* right before another one, in the queues that both are in */
    STORE_MOVE_BY,     /* by_usec more head start; a negative one undoes moves */
};
#define STORE_PASSED_MAX 4
struct store_move { /* the caller's until its handler is called; the store copies nothing */
    enum store_move_kind kind;
    char claim[ID_TEXT_SIZE], before[ID_TEXT_SIZE];
    int64_t by_usec;

    /* the store's; all but `about` valid only if the handler gets 0 */
    char about[ID_TEXT_SIZE]; /* the claim that a named answer is about */
    uint64_t number;          /* of the move, by the namespace's clock; 0: the claim was at that place already */
    uint64_t ticket;
    usec_t head_start_usec; /* the new one, its own included */
    bool is_parked, is_held; /* is_held: granted by the move */
    char host[NAME_MAX_LENGTH + 1], name[NAME_MAX_LENGTH + 1];
    char pools[DEMANDS_TEXT_SIZE]; /* "db:2,net:1" */
    size_t n_places; /* none if it is parked */
    struct store_place {
        char pool[POOL_NAME_SIZE];
        uint32_t place, passed; /* before any grant; passed: how many claims were ahead and are now behind */
    } places[DEMAND_POOLS_MAX];
    size_t n_passed; /* some of those claims, of the queue with the most */
    struct store_passed {
        char host[NAME_MAX_LENGTH + 1], name[NAME_MAX_LENGTH + 1];
    } passed[STORE_PASSED_MAX];
};
/* Named answers besides STORE_E_UNKNOWN (`about` neither waits nor holds). -EAGAIN: Redis is in grace. -EREMOTEIO:
 * Redis did not reply and may have moved the claim, because the call is sent once. */
enum {
    STORE_E_HELD = 4, /* `about` holds its permits */
    STORE_E_APART,    /* the two claims share no queue */
};

/* What a snapshot includes besides the pools that configs name and the keys of this host's claims. Of the pools
 * named here, and of those keys, it lists SNAPSHOT_LIST_MAX claims; of others a tenth. */
struct store_question {
    const char *const *pools; /* pools and keys */
    size_t n_pools;
    bool keys; /* all keys with claims (SNAPSHOT_KEYS_MAX of each pattern), only with their counts */
    bool times; /* of hosts whose claims are in the pools named here */
};

#define STORE_PUBLISHED_MAX ((size_t) 9 * 1024)

struct store_ops {
    struct store *(*free)(struct store *s);
    int (*start)(struct store *s);
    void (*stop)(struct store *s, store_reply_fn done, void *userdata);
    int (*declare)(struct store *s, const struct store_pool *pools, size_t n, bool drained);
    int (*claim)(struct store *s, struct claim *c);
    int (*adopt)(struct store *s, struct claim *c);
    void (*release)(struct store *s, struct claim *c);
    void (*send)(struct store *s);
    /* NULL: store-memory, which has no turns. */
    void (*commit)(struct store *s, struct claim *c);
    void (*give_back)(struct store *s, struct claim *c, uint32_t attempt, usec_t delay_usec);
    int (*pass)(struct store *s, const struct store_pass *pass, store_reply_fn fn, void *userdata);
    void (*remember)(struct store *s, const char *pool, int64_t due);
    int (*end_turns)(struct store *s, const char *pool, store_ended_turns_fn fn, void *userdata);
    int (*ask_shared)(struct store *s, const char *pool, store_shared_fn fn, void *userdata);
    int (*override)(struct store *s, const struct store_override *o, store_reply_fn fn, void *userdata);
    int (*revoke)(struct store *s, const char *claim, const char *reason, store_reply_fn fn, void *userdata);
    int (*move)(struct store *s, struct store_move *move, store_reply_fn fn, void *userdata);
    int (*end_grace)(struct store *s, store_reply_fn fn, void *userdata);
    int (*inspect)(struct store *s, const struct store_question *question, store_inspect_fn fn,
                   void *userdata);
    void (*publish)(struct store *s, char *text); /* NULL: store-memory, which nobody else reads */
};

struct store { /* embedded first in each implementation */
    const struct store_ops *ops;
    struct store_listener listener;
    enum store_state state;
    char away_why[256]; /* AWAY: the last error, for people; "": none yet */
    usec_t away_since;  /* AWAY: realtime */
    bool is_full; /* Redis has no memory for new claims; these are requested again, in order */
    bool is_connecting; /* AWAY and connecting; false in the pause before the next attempt */
    usec_t deadline; /* boottime; of all held claims; 0: none yet; USEC_INFINITY: leases do not exist here */
    uint64_t known;  /* this host has received every grant up to this number (R7); 0: not known */
};

static inline struct store *store_free(struct store *s) {
    return s ? s->ops->free(s) : NULL;
}
DEFINE_CLEANUP(struct store, store_free)

/* Starts. Only store_declare() and store_adopt() may be called before. */
static inline int store_start(struct store *s) {
    return s->ops->start(s);
}
/* Ends the session (bye) if it is connected; `done` is called when that is answered or cannot be. The store
 * gives up its claims without calling their listener. */
static inline void store_stop(struct store *s, store_reply_fn done, void *userdata) {
    s->ops->stop(s, done, userdata);
}
/* Declares the pools and limits of this host's config and replaces earlier ones (reload). Copied. drained:
 * this host requests nothing new, which other hosts can see. 0 or -ENOMEM. */
static inline int store_declare(struct store *s, const struct store_pool *pools, size_t n, bool drained) {
    return s->ops->declare(s, pools, n, drained);
}
/* Requests a claim in CLAIM_STATE_NONE whose owner's part is filled. With a ticket it gets its old place,
 * whatever the queue limit. 0, -ENOMEM, or -ENOENT if a pool is not declared. */
static inline int store_claim(struct store *s, struct claim *c) {
    return s->ops->claim(s, c);
}
/* Takes over a claim of a recovered guard or hold; id, token and ticket are filled. Before store_start().
 * With a token the claim is HELD at once, beyond the limit if necessary, without a call of its listener.
 * Without one its listener is called after store_start(). */
static inline int store_adopt(struct store *s, struct claim *c) {
    return s->ops->adopt(s, c);
}
/* Releases or withdraws a claim in any state but NONE; idempotent. on_released follows: at once if Redis
 * never had the claim, else after Redis's reply or the next sync. */
static inline void store_release(struct store *s, struct claim *c) {
    s->ops->release(s, c);
}
/* Sends the calls that this turn of the event loop has collected, or calls the listeners, without waiting for the
 * end of the turn: for releases that other claims wait for. Not to be called by a listener. */
static inline void store_send(struct store *s) {
    s->ops->send(s);
}
/* Commits the turn of a held claim before its command starts (R18). on_committed follows, once Redis is back if it is
 * away. A turn may be committed twice. */
static inline void store_commit(struct store *s, struct claim *c) {
    s->ops->commit(s, c);
}
/* Releases a claim and opens its turn as this attempt, with turn->chain, after the delay. on_released follows.
 * store_release() would end the turn. */
static inline void store_give_back(struct store *s, struct claim *c, uint32_t attempt, usec_t delay_usec) {
    s->ops->give_back(s, c, attempt, delay_usec);
}
static inline int store_pass(struct store *s, const struct store_pass *pass, store_reply_fn fn, void *userdata) {
    return s->ops->pass(s, pass, fn, userdata);
}
/* Notes that the due times up to this one are decided. This host reports that after a loss of data (R10) while it
 * declares the pool. */
static inline void store_remember(struct store *s, const char *pool, int64_t due) {
    s->ops->remember(s, pool, due);
}
/* Ends every open turn of the job with this pool, of any host. 0, or -ENOMEM or -ENOTCONN without any effect. */
static inline int store_end_turns(struct store *s, const char *pool, store_ended_turns_fn fn, void *userdata) {
    return s->ops->end_turns(s, pool, fn, userdata);
}
/* Asks Redis about the job with this pool. 0, -ENOMEM or -ENOTCONN. */
static inline int store_ask_shared(struct store *s, const char *pool, store_shared_fn fn, void *userdata) {
    return s->ops->ask_shared(s, pool, fn, userdata);
}
static inline int store_override(struct store *s, const struct store_override *o, store_reply_fn fn,
                                 void *userdata) {
    return s->ops->override(s, o, fn, userdata);
}
static inline int store_revoke(struct store *s, const char *claim, const char *reason, store_reply_fn fn,
                               void *userdata) {
    return s->ops->revoke(s, claim, reason, fn, userdata);
}
static inline int store_move(struct store *s, struct store_move *move, store_reply_fn fn, void *userdata) {
    return s->ops->move(s, move, fn, userdata);
}
static inline int store_end_grace(struct store *s, store_reply_fn fn, void *userdata) {
    return s->ops->end_grace(s, fn, userdata);
}
/* question: copied; NULL: nothing more is included. */
static inline int store_inspect(struct store *s, const struct store_question *question, store_inspect_fn fn,
                                void *userdata) {
    return s->ops->inspect(s, question, fn, userdata);
}

/* Publishes how long this host's runs held their permits (snapshot_times), with one of the next heartbeats and for the
 * life of the session. text: taken over, at most STORE_PUBLISHED_MAX bytes with the NUL; replaces the one before. */
static inline void store_publish(struct store *s, char *text) {
    s->ops->publish(s, text);
}

/* --- implementations --- */

int store_memory_new(struct store **ret, sd_event *event, struct events *events, const char *host,
                     const struct store_listener *listener);

/* Sets the overrides that an earlier berthd of this boot kept at path, and keeps later ones there. To be called between store_declare()
 * and store_start(). Returns 0 or -ENOMEM; other errors are logged. */
int store_memory_keep_overrides(struct store *s, const char *path, const char *boot);
/* Emits `limit-changed` for each override, behind an event that gave the declared limits. */
void store_memory_emit_overrides(struct store *s);

struct redis_settings;
struct store_redis_options { /* copied */
    const struct redis_settings *redis;
    uint64_t redis_hash; /* settings_hash_redis() */
    const char *host, *namespace, *version;
    usec_t lease_usec, heartbeat_usec;
    const char *session_path; /* file that stores the session's id over a restart of berthd, or NULL */
};
int store_redis_new(struct store **ret, sd_event *event, struct events *events,
                    const struct store_redis_options *options, const struct store_listener *listener);
/* Checks the certificates and the key of TLS that this process may read. 0, a negative errno, or 1: `why` names the
 * file and what is wrong with it. */
int store_redis_check(const struct redis_settings *settings, char *why, size_t size);
/* Takes other settings of the same server, copied, and reads again the files that they name. A live store to which
 * that makes a difference connects a second time, and keeps the old connections until the new ones are up. A store
 * that is away connects at once. 0 or -ENOMEM. */
int store_redis_use(struct store *s, const struct redis_settings *settings);

/* Accepts the namespace of a Redis that replaced the one of this host. The host joins as a new one and loses what it
 * holds. 0, or STORE_E_UNKNOWN: there is no such namespace. */
int store_redis_accept(struct store *s);

struct store_use_watch { /* waits until other settings are in use */
    struct list link;
    /* Called once, after the watch was unlinked. why: the reason why they are not in use, valid during the call; NULL:
     * they are. */
    void (*on_used)(struct store_use_watch *watch, const char *why);
};
/* Returns whether a change of settings is under way. Then on_used follows, never from inside this call; list_unlink()
 * ends the watch. */
bool store_redis_watch_use(struct store *s, struct store_use_watch *watch);
