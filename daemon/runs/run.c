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

/* held: the letter of permits that the run holds, or 0. They stay in the store that granted them, and host-limit counts them if it
 * is new. A pool that is no longer defined (of a run recovered after a reload) counts as a cluster pool. */
static char scope_of(const struct settings *settings, const char *pool, char held) {
    const struct pool_settings *p = settings_find_pool(settings, pool);
    char scope = !p ? 'c' : p->scope == POOL_SCOPE_HOST ? 'h' : p->host_limit > 0 ? 'b' : 'c';

    return !held || (held == 'h') == (scope == 'h') ? scope : held == 'h' ? 'h' : 'c';
}

static bool is_in(char store, char scope) {
    return scope == store || scope == 'b';
}

static const struct claim no_claim = {.id = "", .name = ""};

static size_t count(const char *scopes, char store) {
    size_t n = 0;

    for (; *scopes; scopes++)
        n += is_in(store, *scopes);
    return n;
}

struct run_memory { /* what is not used yet of the memory behind a run's claims */
    struct demand_ref *demands;
    char *texts;
};

static size_t text_size(const struct run_spec *spec) {
    size_t size = strlen(spec->name) + 1;

    for (size_t i = 0; i < spec->pools->n; i++)
        size += strlen(spec->pools->items[i].pool) + 1;
    return size;
}

static const char *take_text(struct run_memory *memory, const char *text) {
    size_t size = strlen(text) + 1;
    char *at = memcpy(memory->texts, text, size);

    memory->texts += size;
    return at;
}

static struct claim *add_claim(struct run *r, struct run_memory *memory, size_t n, const char *scopes, char store) {
    struct claim *c = &r->claims[r->n_claims];

    if (n == 0)
        return (struct claim *) (uintptr_t) &no_claim;
    r->n_claims++;
    *c = (struct claim) {.owner = r, .id = r->id, .name = r->name, .n_demands = n, .demands = r->demands};
    list_init(&c->link);
    if (n == r->n_demands) /* the usual case: all are of one scope */
        return c;
    c->demands = memory->demands;
    for (size_t i = 0; i < r->n_demands; i++)
        if (is_in(store, scopes[i]))
            *memory->demands++ = r->demands[i];
    return c;
}

static const char *get_scopes(const struct run_spec *spec, const struct settings *settings, char ret[static RUN_SCOPES_SIZE]) {
    for (size_t i = 0; i < spec->pools->n; i++)
        ret[i] = scope_of(settings, spec->pools->items[i].pool, spec->scopes ? spec->scopes[i] : '\0');
    ret[spec->pools->n] = '\0';
    return ret;
}

int run_new(struct run **ret, const struct run_spec *spec, const struct settings *settings) {
    char scopes[RUN_SCOPES_SIZE];
    size_t n = spec->pools->n, n_host = count(get_scopes(spec, settings, scopes), 'h');
    size_t n_cluster = count(scopes, 'c'), n_claims = (n_host > 0) + (n_cluster > 0);
    size_t n_parts = (n_host < n ? n_host : 0) + (n_cluster < n ? n_cluster : 0); /* of claims with a list of their own */
    size_t demands_size = (n + n_parts) * sizeof(struct demand_ref);
    _cleanup_(run_freep) struct run *r =
        calloc(1, sizeof(*r) + n_claims * sizeof(struct claim) + demands_size + text_size(spec));
    struct run_memory memory;

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
    if (spec->id)
        snprintf(r->id, sizeof(r->id), "%s", spec->id);
    else
        id_make(r->id);
    run_origin_init(&r->job.origin, r->id);
    memory.demands = (struct demand_ref *) (void *) (r->claims + n_claims);
    memory.texts = (char *) memory.demands + demands_size;
    r->name = take_text(&memory, spec->name);
    r->n_demands = n;
    r->demands = memory.demands;
    for (size_t i = 0; i < n; i++)
        *memory.demands++ = (struct demand_ref) {take_text(&memory, spec->pools->items[i].pool), spec->pools->items[i].permits};
    r->host_claim = add_claim(r, &memory, n_host, scopes, 'h');
    r->cluster_claim = add_claim(r, &memory, n_cluster, scopes, 'c');
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
    free(r->reason_text);
    free(r->end.stuck);
    run_origin_done(&r->job.origin);
    free(r->job.turn);
    free(r->job.other);
    free(r->job.next_run);
    free(r);
    return NULL;
}

/* Without memory it stays unknown; the event has it. */
void run_set_stuck(struct run *r, const char *what) {
    free(r->end.stuck);
    r->end.stuck = what ? strdup(what) : NULL;
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

static bool has_pool(const struct claim *c, const char *pool) {
    for (size_t i = 0; i < c->n_demands; i++)
        if (strcmp(c->demands[i].pool, pool) == 0)
            return true;
    return false;
}

const char *run_format_scopes(const struct run *r, char buffer[static RUN_SCOPES_SIZE]) {
    for (size_t i = 0; i < r->n_demands; i++) {
        const char *pool = r->demands[i].pool;

        buffer[i] = !has_pool(r->host_claim, pool) ? 'c' : has_pool(r->cluster_claim, pool) ? 'b' : 'h';
    }
    buffer[r->n_demands] = '\0';
    return buffer;
}

uint64_t run_token(const struct run *r) {
    return r->cluster_claim->n_demands > 0 ? r->cluster_claim->token : r->host_claim->token;
}

uint64_t run_ticket(const struct run *r) {
    return r->cluster_claim->n_demands > 0 ? r->cluster_claim->ticket : r->host_claim->ticket;
}

uint32_t run_get_permits(const struct run *r, const char *pool) {
    for (size_t i = 0; i < r->n_demands; i++)
        if (strcmp(r->demands[i].pool, pool) == 0)
            return r->demands[i].permits;
    return 0;
}

const char *run_format_pools(const struct run *r, char buffer[static DEMANDS_TEXT_SIZE]) {
    return demands_format_refs(r->demands, r->n_demands, buffer);
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
