/* SPDX-License-Identifier: MIT */
#pragma once

/* For daemon/api/ alone.
 *     verbs.c         the table of methods; those that answer at once
 *     verbs-params.c  parameters, strictly
 *     verbs-set.c     what a trigger sets
 *     verbs-rights.c  rights to the job, run or pools that a call names
 *     verbs-json.c    runs, jobs, names as JSON
 *     verbs-pools.c   pools as JSON, from snapshots or from what this host knows; verbs-hosts.c: hosts
 *     verbs-usual.c   how long runs usually hold their permits, as JSON
 *     verbs-picture.c the replies of Pools, Hosts and Look
 *     verbs-show.c    Pools, Hosts, Runs: answered when the stores have answered
 *     verbs-look.c    Look: a picture of pools and hosts, or a stream of them
 *     verbs-places.c  how many calls of Look and Events may stay open
 *     verbs-redis.c   Redis: what this host knows of its Redis
 *     verbs-metrics.c Metrics: values of base/metrics.def; verbs-metrics-pools.c: those of pools and hosts
 *     verbs-next.c    Next: the next begins of jobs
 *     verbs-events.c  Events: the latest events and those that follow
 *     verbs-find.c    Find: names that people type
 *     verbs-act.c     SetLimit and others: answered when a store has changed
 *     verbs-change.c  who requested a change
 *     verbs-move.c    Move: a claim to another place in its queues
 *     verbs-start.c   Start, Await: the end of a run
 *     verbs-stop.c    Stop
 *     verbs-drain.c   Drain, Undrain
 *     verbs-hold.c    Hold, Started, Ended: one `berth run` */

#include <jansson.h>

#include "base/job-name.h"
#include "base/metric.h"
#include "daemon/control/control.h"
#include "daemon/manager.h"

#define VERBS_TEXT_MAX 200 /* bytes of a reason */
#define ON_BEHALF_MAX 64
#define STRINGS_MAX 1000 /* of a PARAM_STRINGS: a call looks at all pools or runs for each of them */
#define VERBS_MSEC_MAX ((json_int_t) 3650 * 24 * 3600 * 1000)

#define _cleanup_json_ _cleanup_(json_decrefp)

/* --- verbs-params.c --- */

enum param_type { PARAM_STRING, PARAM_INT, PARAM_BOOL, PARAM_STRINGS, PARAM_TEXTS };

struct param {
    const char *name;
    enum param_type type;
    bool required;
    void *ret; /* const char *, json_int_t, bool, json_t * (borrowed; TEXTS: an object of strings) */
    json_int_t min, max; /* of PARAM_INT */
};

enum { VERBS_ANSWERED = 1 }; /* the call was answered with an error and is gone */

/* Returns 0, VERBS_ANSWERED (InvalidParameter, with the name; BadRequest: more than STRINGS_MAX), or a negative errno.
 * Methods that change something also take on_behalf: 1 to 64 printable characters. */
int params_read(struct control_call *call, json_t *params, const struct param *table, size_t n);
/* Return 0 or VERBS_ANSWERED (BadRequest). Names follow berth.conf(5), reasons are one line. text may be
 * NULL. */
int params_check_name(struct control_call *call, const char *kind, const char *text);
int params_check_job(struct control_call *call, const char *kind, const char *text); /* a template, too */
int params_check_pool(struct control_call *call, const char *text);
int params_check_run(struct control_call *call, const char *text); /* an id */
int params_check_reason(struct control_call *call, const char *text);

/* --- verbs-change.c --- */

struct change { /* targets that a call names; NULL: none */
    const char *pool, *run, *job, *reason;
};
/* Logs the event operated: who calls this method, and on whose behalf. Called after berthd accepted the
 * call, so that nobody can fill the journal with refused calls. */
void verbs_record(struct control_call *call, struct manager *m, const json_t *params, const struct change *change);
/* Returns on whose behalf the caller acts; NULL: its own. */
const char *verbs_on_behalf(const json_t *params);

/* --- verbs-set.c --- */

/* Returns an object of strings. set: NAME=VALUE, or NULL. NULL: no memory. */
json_t *json_set(char *const *set);
/* Returns what an object of strings (or NULL) sets, for text_free_list(). NULL: no memory. */
char **params_list_set(json_t *set);
/* Checks what a trigger of this job sets. Returns 0, VERBS_ANSWERED (BadRequest) or -ENOMEM. An unknown job
 * has no parameters. */
int params_check_set(struct control_call *call, struct manager *m, const char *name, char *const *set);

/* --- answers: 0 or a negative errno, so a method can end in them --- */

/* Answers an error with a text. */
int verbs_error(struct control_call *call, const char *error, const char *format, ...) _printf_(3, 4);
#define verbs_bad_request(call, ...) verbs_error(call, "io.berth.BadRequest", __VA_ARGS__)
int verbs_no_such_pool(struct control_call *call, struct manager *m, const char *name);
int verbs_no_such_job(struct control_call *call, struct manager *m, const char *name);
int verbs_no_such_run(struct control_call *call, const char *name);
int verbs_no_such_claim(struct control_call *call, const char *name);
/* Answers a result that the manager may return for any request: _STOPPING, _DRAINED, _RECOVERING, or a
 * negative errno. */
int verbs_refused(struct control_call *call, int answer);
/* Returns why Redis does not answer: "Redis is away (...)", "berthd is connecting to Redis". */
#define VERBS_AWAY_SIZE 320
const char *verbs_explain_away(struct manager *m, char buffer[static VERBS_AWAY_SIZE]);

/* --- verbs-places.c --- */
struct place { /* of a call that stays open */
    struct list link;
    uid_t uid;
};
/* Takes a place for the call, which leaves it by list_unlink(). what: "watch". Returns 0, VERBS_ANSWERED (TooMany: all
 * places, or all of this user, are taken) or a negative errno. */
int places_take(struct list *places, struct place *place, struct control_call *call, const char *what);

/* --- verbs-rights.c: 0, or VERBS_ANSWERED (NotAllowed, or an unknown target) --- */

/* Returns the job, or the open template of which the name is an instance; NULL: there is neither. */
const struct job_settings *verbs_find_job(struct manager *m, const char *name);

int verbs_check_job(struct control_call *call, struct manager *m, const char *job);
int verbs_check_stop(struct control_call *call, struct manager *m, const char *target); /* a job or a run */
/* For a new `berth run`. The manager refuses pools that are not in the config. */
int verbs_check_hold(struct control_call *call, struct manager *m, const struct demands *pools, usec_t head_start_usec);

/* --- verbs-json.c; NULL: no memory --- */

/* Returns o. k < 0: something could not be added to it; frees it then. */
json_t *json_complete(json_t *o, int k);
json_t *json_text(const char *text);           /* NULL: null */
json_t *json_time(usec_t realtime);            /* 0: null */
json_t *json_msec(usec_t usec);
json_t *json_seen(usec_t usec);                /* USEC_INFINITY: null */
json_t *json_number(json_int_t n, bool known); /* null if not known */
/* position, blocked_by: stolen; NULL: null. */
json_t *json_run(const struct settings *settings, const struct run *r, json_t *position, const char *blocked_by);
json_t *json_job(struct manager *m, const struct job_settings *settings);

/* --- verbs-pools.c --- */

struct pools_text { /* the list of pools, written claim by claim: its document would have six times the size */
    FILE *f;             /* borrowed */
    json_t *names;       /* an object, to which "HOST NAME" of each claim is added; NULL: not wanted */
    const char *unknown; /* a name among those wanted; NULL: none */
    bool is_complete;    /* all claims of all pools are listed */
    bool failed;         /* for lack of memory */
};
/* wanted: the names to show, or NULL. 0 or -ENOMEM. */
int pools_text_write(struct pools_text *pools, struct manager *m, const struct snapshot *host, const struct snapshot *cluster,
                     json_t *wanted);

/* Returns a list of Usual for these runs (verbs-usual.c). cluster: NULL if Redis is away or not configured.
 * names: of struct pools_text. NULL: no memory. */
json_t *json_usual(struct manager *m, const struct snapshot *cluster, const json_t *names);

/* --- verbs-hosts.c; NULL: no memory. cluster: as above --- */

json_t *json_hosts(struct manager *m, const struct snapshot *cluster);
json_t *json_malformed(const struct snapshot *cluster);
json_t *json_redis(struct manager *m, const struct snapshot *cluster);

/* --- verbs-picture.c --- */

/* Returns the reply of Hosts, or what others have besides pools; NULL: no memory. hosts: stolen. NULL: the reply has none. */
json_t *json_picture(struct manager *m, const struct snapshot *cluster, json_t *hosts);

struct picture { /* a reply of Pools or Look; borrowed */
    struct manager *manager;
    json_t *wanted;   /* names of pools; NULL: all */
    bool has_hosts;
    bool has_times;   /* how long runs usually hold their permits */
    bool continues;   /* others follow */
};
/* Returns the reply; NULL: no memory. ret_unknown: a name among those wanted; then the caller answers an error. */
struct control_text *picture_make(const struct picture *p, const struct snapshot *host, const struct snapshot *cluster,
                                  const char **ret_unknown);

/* --- verbs-show.c --- */

/* Answers a call from snapshots of the host's store and, with_cluster, of the cluster's; NULL: there is
 * none. answer always ends the call. */
typedef int (*verbs_answer_fn)(struct control_call *call, struct manager *m, const struct snapshot *host,
                               const struct snapshot *cluster);
int verbs_look(struct control_call *call, struct manager *m, bool with_cluster, verbs_answer_fn answer);

/* Asks both stores about these pools (NULL: all) and the keys of patterns. Returns the question, or NULL
 * without memory. seen is called once, later, with snapshots as above, unless verbs_forget() is called
 * before. */
struct show;
typedef void (*verbs_seen_fn)(const struct snapshot *host, const struct snapshot *cluster, void *userdata);
struct show *verbs_ask(struct manager *m, json_t *pools, verbs_seen_fn seen, void *userdata);
void verbs_forget(struct show *show);

/* --- verbs-metrics.c, verbs-metrics-pools.c: 0 or -1 (no memory) --- */

/* Adds a sample to an object of metrics. labels: stolen; those of the metric's row. */
int metrics_put(json_t *metrics, enum metric metric, json_t *labels, double value);
struct redis_clock;
/* Adds what is known of the clocks. */
int metrics_put_clock(json_t *metrics, const struct redis_clock *clock);
int metrics_put_pools(json_t *metrics, struct manager *m, const struct snapshot *host, const struct snapshot *cluster);
int metrics_put_hosts(json_t *metrics, struct manager *m, const struct snapshot *cluster);

/* --- the methods --- */

int verbs_pools(struct control_call *call, json_t *params, void *userdata);
int verbs_hosts(struct control_call *call, json_t *params, void *userdata);
int verbs_accept_namespace(struct control_call *call, json_t *params, void *userdata);
int verbs_look_on(struct control_call *call, json_t *params, void *userdata);
int verbs_redis(struct control_call *call, json_t *params, void *userdata);
int verbs_metrics(struct control_call *call, json_t *params, void *userdata);
int verbs_runs(struct control_call *call, json_t *params, void *userdata);
int verbs_next(struct control_call *call, json_t *params, void *userdata);
int verbs_events(struct control_call *call, json_t *params, void *userdata);
int verbs_find(struct control_call *call, json_t *params, void *userdata);
int verbs_await(struct control_call *call, json_t *params, void *userdata);
int verbs_start(struct control_call *call, json_t *params, void *userdata);
int verbs_stop(struct control_call *call, json_t *params, void *userdata);
int verbs_set_limit(struct control_call *call, json_t *params, void *userdata);
int verbs_clear_limit(struct control_call *call, json_t *params, void *userdata);
int verbs_pause(struct control_call *call, json_t *params, void *userdata);
int verbs_resume(struct control_call *call, json_t *params, void *userdata);
int verbs_revoke(struct control_call *call, json_t *params, void *userdata);
int verbs_move(struct control_call *call, json_t *params, void *userdata);
int verbs_end_grace(struct control_call *call, json_t *params, void *userdata);
int verbs_drain(struct control_call *call, json_t *params, void *userdata);
int verbs_undrain(struct control_call *call, json_t *params, void *userdata);
int verbs_hold(struct control_call *call, json_t *params, void *userdata);
int verbs_started(struct control_call *call, json_t *params, void *userdata);
int verbs_stuck(struct control_call *call, json_t *params, void *userdata);
int verbs_ended(struct control_call *call, json_t *params, void *userdata);
