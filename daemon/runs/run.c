/* SPDX-License-Identifier: MIT */
#include "daemon/runs/run.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *run_state_name(enum run_state state) {
    static const char *const names[RUN_STATES] = {
        [RUN_STATE_RETRYING] = "retrying",
        [RUN_STATE_PENDING] = "pending", [RUN_STATE_WAITING] = "waiting",   [RUN_STATE_STARTING] = "starting",
        [RUN_STATE_RUNNING] = "running", [RUN_STATE_STOPPING] = "stopping", [RUN_STATE_DONE] = "done",
    };

    return names[state];
}

static const char *const result_names[] = {
    [RUN_RESULT_SUCCESS] = "success",         [RUN_RESULT_FAILURE] = "failure",
    [RUN_RESULT_TIMEOUT] = "timeout",         [RUN_RESULT_STOPPED] = "stopped",
    [RUN_RESULT_LEASE_LOST] = "lease-lost",   [RUN_RESULT_QUEUE_TIMEOUT] = "queue-timeout",
    [RUN_RESULT_NOT_STARTED] = "not-started", [RUN_RESULT_GUARD_DIED] = "guard-died",
    [RUN_RESULT_HOST_LOST] = "host-lost",
};

const char *run_result_name(enum run_result result) {
    return result_names[result];
}

enum run_result run_result_parse(const char *name) {
    for (size_t i = RUN_RESULT_SUCCESS; i < ELEMENTSOF(result_names); i++)
        if (strcmp(name, result_names[i]) == 0)
            return (enum run_result) i;
    return RUN_RESULT_NONE;
}

static bool in_host_store(const struct settings *settings, const char *pool) {
    const struct pool_settings *p = settings_find_pool(settings, pool);

    return p && (p->scope == POOL_SCOPE_HOST || p->host_limit > 0);
}

/* A pool that is no longer defined (of a run recovered after a reload) counts as a cluster pool. */
static bool in_cluster_store(const struct settings *settings, const char *pool) {
    const struct pool_settings *p = settings_find_pool(settings, pool);

    return !p || p->scope == POOL_SCOPE_CLUSTER;
}

static int claim_init(struct claim *c, struct run *r, const struct settings *settings,
                      bool (*is_part)(const struct settings *, const char *)) {
    struct demand *part;

    list_init(&c->link);
    c->owner = r;
    memcpy(c->id, r->id, sizeof(c->id));
    c->run = r->id;
    c->name = r->name;
    for (size_t i = 0; i < r->n_demands; i++)
        c->n_demands += is_part(settings, r->demands[i].pool);
    if (c->n_demands == 0)
        return 0;
    if (c->n_demands == r->n_demands) { /* the usual case: all are of one scope */
        c->demands = r->demands;
        return 0;
    }
    c->demands = part = calloc(c->n_demands, sizeof(*part));
    if (!part)
        return -ENOMEM;
    for (size_t i = 0; i < r->n_demands; i++)
        if (is_part(settings, r->demands[i].pool))
            *part++ = r->demands[i];
    return 0;
}

static void claim_done(struct claim *c, const struct run *r) {
    if (c->demands != r->demands)
        free((void *) (uintptr_t) c->demands);
}

int run_new(struct run **ret, const struct run_spec *spec, const struct settings *settings) {
    size_t demands_size = spec->pools->n * sizeof(spec->pools->items[0]), name_size = strlen(spec->name) + 1;
    _cleanup_(run_freep) struct run *r = calloc(1, sizeof(*r) + demands_size + name_size);
    int k;

    if (!r)
        return -ENOMEM;
    list_init(&r->link);
    list_init(&r->watches);
    list_init(&r->job.of_job);
    r->kind = spec->kind;
    r->state = RUN_STATE_PENDING;
    r->end.exit_code = r->end.signal = r->adhoc.hold_fd = -1;
    r->terms.queue_timeout_usec = USEC_INFINITY;
    r->reason = "";
    memcpy(r->demands, spec->pools->items, demands_size);
    r->n_demands = spec->pools->n;
    r->name = memcpy(r->demands + r->n_demands, spec->name, name_size);
    if (spec->id)
        snprintf(r->id, sizeof(r->id), "%s", spec->id);
    else if ((k = id_make(r->id)) < 0)
        return k;
    run_origin_init(&r->job.origin, r->id);
    k = claim_init(&r->host_claim, r, settings, in_host_store);
    if (k >= 0)
        k = claim_init(&r->cluster_claim, r, settings, in_cluster_store);
    if (k < 0)
        return k;
    *ret = steal_pointer(&r);
    return 0;
}

struct run *run_free(struct run *r) {
    if (!r)
        return NULL;
    assert(!r->job.guard && !r->adhoc.hold && r->timer.due.heap_index == 0 && r->adhoc.hold_fd < 0);
    list_foreach_safe(w, &r->watches, struct run_watch, link)
        list_unlink(&w->link);
    list_unlink(&r->link);
    list_unlink(&r->job.of_job);
    claim_done(&r->host_claim, r);
    claim_done(&r->cluster_claim, r);
    free(r->reason_text);
    free(r->end.stuck);
    run_origin_done(&r->job.origin);
    free(r->job.turn);
    free(r);
    return NULL;
}

/* Without memory it stays unknown; the event has it. */
void run_set_stuck(struct run *r, const char *what) {
    free(r->end.stuck);
    r->end.stuck = strdup(what);
}

void run_changed(struct run *r) {
    list_foreach_safe(w, &r->watches, struct run_watch, link)
        w->on_change(w, r);
}

#define TO(state) (1U << RUN_STATE_##state)

/* The states that may follow each state. A run that is on no list may enter any state: it was recovered. */
static const unsigned transitions[RUN_STATES] = {
    [RUN_STATE_RETRYING] = TO(PENDING) | TO(DONE),
    [RUN_STATE_PENDING] = TO(WAITING) | TO(DONE),
    [RUN_STATE_WAITING] = TO(STARTING) | TO(DONE),
    [RUN_STATE_STARTING] = TO(RUNNING) | TO(STOPPING) | TO(WAITING) | TO(DONE),
    [RUN_STATE_RUNNING] = TO(STOPPING) | TO(DONE),
    [RUN_STATE_STOPPING] = TO(WAITING) | TO(DONE), /* WAITING: its lease was lost before its command ran */
    [RUN_STATE_DONE] = 0,
};

void run_set_state(struct run *r, struct list lists[static RUN_STATES], enum run_state state) {
    assert(!list_is_linked(&r->link) || (transitions[r->state] & 1U << state));
    list_unlink(&r->link);
    list_append(&lists[state], &r->link);
    r->state = state;
    run_changed(r);
}

void run_set_reason(struct run *r, const char *format, ...) {
    va_list ap;

    if (r->reason[0] != '\0')
        return;
    va_start(ap, format);
    if (vasprintf(&r->reason_text, format, ap) < 0)
        r->reason_text = NULL;
    va_end(ap);
    r->reason = r->reason_text ? r->reason_text : strchr(format, '%') ? "out of memory" : format;
}

void run_clear_reason(struct run *r) {
    free(r->reason_text);
    r->reason_text = NULL;
    r->reason = "";
}

uint64_t run_token(const struct run *r) {
    return r->cluster_claim.n_demands > 0 ? r->cluster_claim.token : r->host_claim.token;
}

uint64_t run_ticket(const struct run *r) {
    return r->cluster_claim.n_demands > 0 ? r->cluster_claim.ticket : r->host_claim.ticket;
}

void run_get_pools(const struct run *r, struct demands *ret) {
    ret->n = r->n_demands;
    for (size_t i = 0; i < r->n_demands; i++)
        ret->items[i] = r->demands[i];
}

const char *run_format_pools(const struct run *r, char buffer[static DEMANDS_TEXT_SIZE]) {
    struct demands d;

    run_get_pools(r, &d);
    return demands_format(&d, buffer);
}

bool run_is_over(const struct run *r) {
    return r->state == RUN_STATE_DONE;
}

void run_set_started(struct run *r, usec_t boottime, struct run_time now) {
    r->started.boottime = boottime;
    r->started.realtime = usec_sub(now.realtime, usec_sub(now.boottime, boottime));
}

usec_t run_wait_usec(const struct run *r, usec_t now_boottime) {
    usec_t end = r->started.boottime ? r->started.boottime : r->end.boottime ? r->end.boottime : now_boottime;

    return usec_sub(end, r->queued.boottime);
}

usec_t run_time_usec(const struct run *r, usec_t now_boottime) {
    if (r->started.boottime == 0)
        return 0;
    return usec_sub(r->end.boottime ? r->end.boottime : now_boottime, r->started.boottime);
}

void run_watch_add(struct run *r, struct run_watch *watch) {
    list_init(&watch->link);
    list_append(&r->watches, &watch->link);
}

void run_watch_remove(struct run_watch *watch) {
    list_unlink(&watch->link);
}
