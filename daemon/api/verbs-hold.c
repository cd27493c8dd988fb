/* SPDX-License-Identifier: MIT */

/* Hold: one `berth run` from its claim to its end. The client receives each change of the run that concerns
 * it, and the hold's descriptor with the first `granted`. */

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "daemon/api/verbs-internal.h"

struct holder { /* one call of Hold */
    struct run_watch watch;
    struct manager *manager;
    struct control_call *call;
    struct run *run;
    char *last_sent; /* the last reply; thousands may wait, and its text has a tenth of the object's size */
    bool granted_sent;
};

static struct holder *holder_free(struct holder *h) {
    if (!h)
        return NULL;
    run_watch_remove(&h->watch);
    free(h->last_sent);
    free(h);
    return NULL;
}
DEFINE_CLEANUP(struct holder, holder_free)

/* --- replies --- */

/* USEC_INFINITY: none, or not known yet. */
static usec_t hold_deadline(struct manager *m, const struct run *r) {
    const struct store *s = manager_cluster_store(m);

    if (r->cluster_claim->n_demands == 0 || r->terms.on_lease_lost == ON_LEASE_LOST_CONTINUE || !s ||
        s->deadline == 0)
        return USEC_INFINITY;
    return s->deadline;
}

/* Returns the claim's position when it was queued, if it needs one pool only; else null. */
static json_t *position_of(const struct run *r) {
    const struct claim *c = r->host_claim->state == CLAIM_STATE_WAITING ? r->host_claim : r->cluster_claim;

    if (c->state != CLAIM_STATE_WAITING || c->n_demands != 1 || c->position == 0)
        return json_null();
    return json_pack("{s:I}", c->demands[0].pool, (json_int_t) c->position);
}

static json_t *waiting(struct manager *m, const struct run *r) {
    char why[MANAGER_WHY_SIZE];

    return json_pack("{s:s, s:s, s:b, s:o, s:o}", "state", "waiting", "run", r->id, "is_near", r->is_near, "position",
                     position_of(r), "blocked_by", json_text(manager_blocked_by(m, r, NULL, NULL, why, sizeof(why))));
}

/* Packs one reply about a run that holds its permits. */
static json_t *json_hold(struct manager *m, const struct run *r, const char *state, const char *reason) {
    usec_t deadline = hold_deadline(m, r);
    char pools[DEMANDS_TEXT_SIZE];

    return json_pack("{s:s, s:s, s:s, s:o, s:s, s:s, s:o, s:o, s:o}", "state", state, "run", r->id, "pools",
                     run_format_pools(r, pools), "token", json_number((json_int_t) run_token(r), run_token(r) > 0), "host",
                     manager_settings(m)->host, "namespace", manager_settings(m)->namespace, "deadline_usec",
                     json_number((json_int_t) deadline, deadline != USEC_INFINITY), "stop_timeout_ms",
                     json_msec(r->terms.stop_timeout_usec), "reason", json_text(reason));
}

static json_t *current(struct manager *m, const struct run *r) {
    switch (r->adhoc.end_reported ? RUN_STATE_DONE : r->state) {
    case RUN_STATE_RETRYING: /* only runs of jobs */
    case RUN_STATE_PENDING:
    case RUN_STATE_WAITING:
        return waiting(m, r);
    case RUN_STATE_STARTING:
    case RUN_STATE_RUNNING:
        return json_hold(m, r, "granted", NULL);
    case RUN_STATE_STOPPING:
        return json_hold(m, r, "stop", supervise_reason_name(r->stop_reason));
    case RUN_STATE_DONE:
        break;
    }
    return json_pack("{s:s, s:s, s:o}", "state", "over", "run", r->id, "reason", json_text(r->reason[0] ? r->reason : NULL));
}

/* Answers for a run that is over and never had its permits. */
static int answer_no_permit(struct control_call *call, const struct run *r) {
    const char *reason = r->reason[0] ? r->reason : run_result_name(r->end.result);

    if (r->stop_reason == SUPERVISE_REASON_SHUTDOWN)
        return control_call_error(call, "io.berth.Stopping", NULL);
    return control_call_error(call, "io.berth.NoPermit",
                              json_pack("{s:s, s:o}", "reason",
                                        r->adhoc.refusal.pool ? r->adhoc.refusal.why : reason, "pool",
                                        json_text(r->adhoc.refusal.pool)));
}

static int send_end(struct holder *h) {
    const struct run *r = h->run;

    if (h->granted_sent)
        return control_call_answer(h->call, current(h->manager, r));
    if (r->adhoc.hold_state == HOLD_STATE_FAILED)
        return control_call_error(h->call, "io.berth.Failed",
                                  json_pack("{s:s++}", "text", "granted, but the hold cannot be made (", r->reason,
                                            "); the permits are released"));
    return answer_no_permit(h->call, r);
}

static int send_state(struct holder *h) {
    _cleanup_json_ json_t *now = current(h->manager, h->run);
    _cleanup_free_ char *text = now ? json_dumps(now, JSON_COMPACT) : NULL;
    _cleanup_close_ int fd = -1;

    if (!text)
        return control_call_notify(h->call, NULL, -1);
    if (h->last_sent && strcmp(h->last_sent, text) == 0)
        return 0;
    free(h->last_sent);
    h->last_sent = steal_pointer(&text);
    h->granted_sent = h->run->state >= RUN_STATE_STARTING; /* the run may wait again */
    if (h->run->state >= RUN_STATE_STARTING)
        fd = manager_take_hold_fd(h->run);
    return control_call_notify(h->call, steal_pointer(&now), fd);
}

static void holder_on_change(struct run_watch *watch, struct run *run) {
    struct holder *h = list_entry(watch, struct holder, watch);

    if (!run_is_over(run) && !run->adhoc.end_reported) {
        (void) send_state(h); /* without memory the client is dropped and reconnects */
        return;
    }
    (void) send_end(h);
    holder_free(h);
}

/* Returns whether a client of the run is connected. Not all watches are clients. */
static bool has_holder(const struct run *run) {
    list_foreach(w, &run->watches, struct run_watch, link)
        if (w->on_change == holder_on_change)
            return true;
    return false;
}

static void holder_on_gone(_unused_ struct control_call *call, void *userdata) {
    struct holder *h = userdata;
    struct manager *m = h->manager;
    /* When berthd exits, its clients are not gone: they reconnect to the next berthd and keep their
     * place. */
    bool leaving = sd_event_get_state(manager_event(m)) == SD_EVENT_FINISHED;
    struct run *run = list_is_linked(&h->watch.link) ? h->run : NULL;

    holder_free(h);
    /* A client that attached on a newer connection is still there. */
    if (run && !leaving && !has_holder(run))
        manager_client_gone(run);
}

static int holder_begin(struct control_call *call, struct manager *m, struct run *run) {
    _cleanup_(holder_freep) struct holder *h = calloc(1, sizeof(*h));
    int k = -ENOMEM;

    if (h) {
        list_init(&h->watch.link);
        h->watch.on_change = holder_on_change;
        h->manager = m;
        h->call = call;
        h->run = run;
        if (run_is_over(run))
            return send_end(h);
        k = send_state(h);
    }
    if (k < 0) {
        manager_client_gone(run);
        return k;
    }
    run_watch_add(run, &h->watch);
    control_call_keep(call, holder_on_gone, h);
    (void) steal_pointer(&h);
    return 0;
}

/* --- the request --- */

struct hold_request {
    json_t *pools;
    const char *name, *on_lease_lost, *nested, *run, *time_namespace;
    bool nowait;
    json_int_t wait_ms, head_start_ms, stop_timeout_ms; /* -1: not given */
};

static int read_request(struct control_call *call, json_t *params, struct hold_request *q) {
    const struct param table[] = {
        {"pools", PARAM_STRINGS, true, &q->pools, 0, 0},
        {"name", PARAM_STRING, true, &q->name, 0, 0},
        {"nowait", PARAM_BOOL, false, &q->nowait, 0, 0},
        {"wait_ms", PARAM_INT, false, &q->wait_ms, 0, VERBS_MSEC_MAX},
        {"head_start_ms", PARAM_INT, false, &q->head_start_ms, 0, VERBS_MSEC_MAX},
        {"on_lease_lost", PARAM_STRING, false, &q->on_lease_lost, 0, 0},
        {"stop_timeout_ms", PARAM_INT, false, &q->stop_timeout_ms, 0, VERBS_MSEC_MAX},
        {"nested", PARAM_STRING, false, &q->nested, 0, 0},
        {"run", PARAM_STRING, false, &q->run, 0, 0},
        {"time_namespace", PARAM_STRING, false, &q->time_namespace, 0, 0},
    };

    *q = (struct hold_request){
        .on_lease_lost = "stop", .wait_ms = -1, .head_start_ms = -1, .stop_timeout_ms = -1};
    return params_read(call, params, table, ELEMENTSOF(table));
}

/* Returns 0 or VERBS_ANSWERED. */
static int read_pools(struct control_call *call, json_t *pools, struct demands *ret) {
    json_t *item;
    size_t i;

    json_array_foreach(pools, i, item) {
        int k = demands_add(ret, json_string_value(item));

        if (k != 0) {
            (void) verbs_bad_request(call, "pool \"%.100s\": %s", json_string_value(item), demands_explain(k));
            return VERBS_ANSWERED;
        }
    }
    if (ret->n > 0)
        return 0;
    (void) verbs_bad_request(call, "at least one pool is needed");
    return VERBS_ANSWERED;
}

static usec_t usec_of(json_int_t msec, usec_t missing) {
    return msec < 0 ? missing : (usec_t) msec * USEC_PER_MSEC;
}

static int begin(struct control_call *call, struct manager *m, const struct hold_request *q) {
    const struct peer *peer = control_call_peer(call);
    struct demands pools = {};
    struct adhoc_request hold = {
        .pools = &pools,
        .name = q->name,
        .nowait = q->nowait,
        .wait_usec = usec_of(q->wait_ms, USEC_INFINITY),
        .head_start_usec = usec_of(q->head_start_ms, 0),
        .stop_timeout_usec = usec_of(q->stop_timeout_ms, USEC_INFINITY),
        .on_lease_lost = strcmp(q->on_lease_lost, "continue") == 0 ? ON_LEASE_LOST_CONTINUE : ON_LEASE_LOST_STOP,
        .uid = peer->uid,
        .pid = peer->pid,
        .nested = q->nested,
        .time_namespace = q->time_namespace,
    };
    const char *text = "";
    struct run *run = NULL;
    bool is_nested = false;
    int k;

    if (read_pools(call, q->pools, &pools) != 0 || params_check_name(call, "run", q->name) != 0 ||
        verbs_check_hold(call, m, &pools, hold.head_start_usec) != 0)
        return 0;
    k = manager_hold(m, &hold, &run, &is_nested, &text);
    switch (k) {
    case 0:
        return is_nested ? control_call_answer(call, json_hold(m, run, "nested", NULL)) : holder_begin(call, m, run);
    case MANAGER_E_UNKNOWN:
        return verbs_no_such_pool(call, m, text);
    case MANAGER_E_INVALID:
        return verbs_bad_request(call, "%s", text);
    case MANAGER_E_QUOTA:
        return control_call_error(call, "io.berth.NoPermit", json_pack("{s:s, s:n}", "reason", text, "pool"));
    default:
        return verbs_refused(call, k);
    }
}

static int attach(struct control_call *call, struct manager *m, const struct hold_request *q) {
    const struct peer *peer = control_call_peer(call);
    struct run *r = NULL;
    int k = manager_attach(m, q->run, peer->uid, peer->pid, &r);

    if (k == MANAGER_E_UNKNOWN)
        return verbs_no_such_run(call, q->run);
    return k != 0 ? verbs_refused(call, k) : holder_begin(call, m, r);
}

int verbs_hold(struct control_call *call, json_t *params, void *userdata) {
    struct hold_request q;
    int k;

    if (!control_call_wants_more(call))
        return control_call_error(call, "org.varlink.service.ExpectedMore", NULL);
    k = read_request(call, params, &q);
    if (k != 0)
        return k;
    if (strcmp(q.on_lease_lost, "stop") != 0 && strcmp(q.on_lease_lost, "continue") != 0)
        return verbs_bad_request(call, "on_lease_lost is stop or continue");
    return q.run ? attach(call, userdata, &q) : begin(call, userdata, &q);
}

/* --- reports of the client --- */

/* Returns the run whose `berth run` is the calling process, or NULL. gone_too: also one without a client. */
static struct run *find_own(struct control_call *call, struct manager *m, const char *id, bool gone_too) {
    const struct peer *peer = control_call_peer(call);
    struct run *r = manager_find_run(m, id);

    if (!r || r->kind != RUN_KIND_ADHOC || r->adhoc.uid != peer->uid)
        return NULL;
    return r->adhoc.client_pid == peer->pid || (gone_too && r->adhoc.client_pid == 0) ? r : NULL;
}

int verbs_started(struct control_call *call, json_t *params, void *userdata) {
    const char *id = NULL;
    json_int_t pid = 0, started = 0;
    struct run *r;
    const struct param table[] = {
        {"run", PARAM_STRING, true, &id, 0, 0},
        {"pid", PARAM_INT, true, &pid, 1, INT32_MAX},
        {"started_usec", PARAM_INT, false, &started, 0, INT64_MAX},
    };
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k;
    r = find_own(call, userdata, id, false);
    if (!r)
        return verbs_no_such_run(call, id);
    manager_client_started(r, (pid_t) pid, (usec_t) started);
    return control_call_done(call);
}

#define STUCK_MAX 160 /* as long as PROCESS_TEXT_SIZE of base/process/process-describe.h */

int verbs_stuck(struct control_call *call, json_t *params, void *userdata) {
    char text[STUCK_MAX];
    const char *id = NULL, *what = NULL;
    struct run *r;
    const struct param table[] = {
        {"run", PARAM_STRING, true, &id, 0, 0},
        {"what", PARAM_STRING, true, &what, 0, 0},
    };
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k;
    r = find_own(call, userdata, id, false);
    if (!r)
        return verbs_no_such_run(call, id);
    text_escape(what, strlen(what), text, sizeof(text));
    manager_client_stuck(r, text);
    return control_call_done(call);
}

int verbs_ended(struct control_call *call, json_t *params, void *userdata) {
    const char *id = NULL, *result = NULL;
    json_int_t code = -1, signal = -1, ended = 0, until = 0, pid = 0, started = 0;
    enum run_result parsed;
    struct run *r;
    const struct param table[] = {
        {"run", PARAM_STRING, true, &id, 0, 0},
        {"code", PARAM_INT, false, &code, 0, 255},
        {"signal", PARAM_INT, false, &signal, 1, 127},
        {"result", PARAM_STRING, false, &result, 0, 0},
        {"ended_usec", PARAM_INT, false, &ended, 0, INT64_MAX},
        {"until_usec", PARAM_INT, false, &until, 0, INT64_MAX},
        {"pid", PARAM_INT, false, &pid, 1, INT32_MAX},
        {"started_usec", PARAM_INT, false, &started, 0, INT64_MAX},
    };
    int k = params_read(call, params, table, ELEMENTSOF(table));

    if (k != 0)
        return k;
    parsed = result ? run_result_parse(result) : RUN_RESULT_NONE;
    if ((result && parsed == RUN_RESULT_NONE) || (code >= 0 && signal >= 0) || (!result && code < 0 && signal < 0))
        return verbs_bad_request(call, "a command ends with a code or by a signal, or it has a result");
    r = find_own(call, userdata, id, true); /* the connection to an earlier berthd may have been lost */
    if (!r)
        return verbs_no_such_run(call, id);
    manager_client_ended(r, &(struct adhoc_report){.result = parsed,
                                                   .code = (int) code,
                                                   .signal = (int) signal,
                                                   .at = (usec_t) ended,
                                                   .deadline = (usec_t) until,
                                                   .pid = (pid_t) pid,
                                                   .started = (usec_t) started});
    return control_call_done(call);
}
