/* SPDX-License-Identifier: MIT */
/* Grants whose end is in no journal, because the berthd that knew it was killed or a reply of Redis was
 * lost. */
#include <string.h>

#include "cli/audit/model.h"

/* Returns whether the host of e wrote `other`, in the boot of e. */
static bool is_same_boot(const struct entry *e, const struct entry *other) {
    return !entry_is_of_another(other) && strcmp(other->host, e->host) == 0 &&
           (!other->boot || !e->boot || strcmp(other->boot, e->boot) == 0);
}

/* Returns whether an entry besides granted and withdrawn mentions the grant. */
static bool was_mentioned(const struct audit_run *r, uint64_t token) {
    for (size_t i = 0; i < r->n_events; i++)
        if (r->events[i]->token == token && !entry_is(r->events[i], "granted") && !entry_is(r->events[i], "withdrawn"))
            return true;
    return false;
}

/* Returns the entry with which the next berthd on the host of this grant connected; Redis then released what
 * that berthd did not claim. NULL: none in this boot, or the berthd of the grant was not replaced. */
static const struct entry *next_connection(const struct audit *a, const struct audit_hold *h) {
    const struct event_index *t = &a->connections;
    size_t at = event_index_begin(t, h->entry->host);
    const struct entry *e;

    while ((e = event_index_next(t, h->entry->host, &at, h->entry->time))) {
        bool is_next = is_same_boot(h->entry, e) && strcmp(e->process, h->entry->process) != 0;

        if (is_next && e->clock >= h->token)
            return e;
        at = is_next ? at + 1 : t->others[at];
    }
    return NULL;
}

bool lost_answers_is_unused_run(const struct audit_run *r) {
    if (!r->granted || !r->withdrawn || r->started || r->exited)
        return false;
    for (size_t i = 0; i < r->n_events; i++)
        if (entry_is(r->events[i], "granted") && strcmp(r->events[i]->process, r->withdrawn->process) == 0 &&
            !audit_run_gave_back(r, r->events[i]->token))
            return false;
    return true;
}

static bool was_claimed_again(const struct audit_run *r, const struct audit_hold *h) {
    for (size_t i = 0; i < r->n_events && !r->continues; i++)
        if (entry_is(r->events[i], "granted") && r->events[i]->token > h->token && strcmp(r->events[i]->process, h->entry->process) != 0)
            return true;
    return false;
}

bool lost_answers_is_unused(const struct audit *a, const struct audit_hold *h, uint64_t *ret) {
    const struct entry *next;

    if (!entry_is(h->entry, "granted") || was_mentioned(h->run, h->token) ||
        !(lost_answers_is_unused_run(h->run) || was_claimed_again(h->run, h)))
        return false;
    next = next_connection(a, h);
    if (next)
        *ret = next->clock;
    return next;
}

/* --- lost replies --- */

/* Returns whether this is the last entry of a killed berthd: a later berthd wrote on the same host. *ret:
 * the first entry of that berthd. */
static bool was_killed(const struct audit *a, const struct event_index *begins, size_t i,
                       const struct entry **ret) {
    const struct entry *last = a->events[i], *next = i + 1 < a->n_events ? a->events[i + 1] : NULL;

    if ((next && strcmp(next->process, last->process) == 0) || entry_is(last, "stopping-daemon") ||
        entry_is_of_another(last))
        return false;
    *ret = event_index_first(begins, last->host, last->time + 1);
    return *ret;
}

static bool is_connection(const struct entry *e) {
    return entry_is(e, "redis-connected") && !entry_is_of_another(e);
}

static bool is_session_lost(const struct entry *e) {
    return entry_is(e, "session-lost");
}

static bool is_begin(const struct entry *e) {
    return e->seq == 1;
}

int lost_answers_make(struct audit *a) {
    _cleanup_(event_index_done) struct event_index begins = {.n = 0};
    int k = event_index_make(&a->connections, a, false, is_connection, event_key_time);

    k = k < 0 ? k : event_index_make(&a->sessions_lost, a, true, is_session_lost, event_key_seq);
    k = k < 0 ? k : event_index_make(&begins, a, false, is_begin, event_key_time);
    for (size_t i = 0; i < a->n_events && k == 0; i++) {
        const struct entry *e = a->events[i];
        struct audit_host *h = audit_hosts_find(a, e->host);

        /* A host that loses its session closes the connection, and with it the replies that are on their way. */
        if ((entry_is(e, "redis-lost") || is_session_lost(e) || was_killed(a, &begins, i, &e)) &&
            audit_hosts_time_latest(a, e) > h->answer_lost)
            h->answer_lost = audit_hosts_time_latest(a, e);
    }
    return k;
}

void lost_answers_done(struct audit *a) {
    event_index_done(&a->connections);
    event_index_done(&a->sessions_lost);
}

/* Returns whether another host may have expired this one without logging it, because the reply was lost. */
static bool was_answer_lost(const struct audit *a, const char *host, usec_t after) {
    for (size_t i = 0; i < a->n_hosts; i++)
        if (strcmp(a->hosts[i].name, host) != 0 && a->hosts[i].answer_lost > 0 && a->hosts[i].answer_lost >= after)
            return true;
    return false;
}

uint64_t lost_answers_silent_since(const struct audit *a, const struct entry *granted) {
    const struct entry *last = audit_hosts_last_of_boot(a, granted);

    return was_answer_lost(a, granted->host, audit_hosts_time(a, last)) ? audit_hosts_time(a, last) : 0;
}

bool lost_answers_was_away(const struct audit *a, const struct audit_run *r, uint64_t number) {
    const struct audit_host *h = r->of_host ? NULL : audit_hosts_find(a, audit_run_host(r));
    usec_t time = h ? (usec_t) ((int64_t) number + h->offset) : 0; /* by the host's clock */
    size_t n = h ? index_count_below(&h->moments->time, sizeof(*h->moments), h->n_moments, time) : 0;

    return n > 0 && n < h->n_moments && strcmp(h->moments[n - 1].entry->process, h->moments[n].entry->process) != 0 &&
           was_answer_lost(a, h->name, audit_hosts_time(a, h->moments[n - 1].entry));
}

/* Returns when the host itself logged the end of its session after this grant. A started run counts until
 * its processes are gone. */
static uint64_t session_lost(const struct audit *a, const struct audit_hold *h) {
    const struct entry *e = event_index_first(&a->sessions_lost, h->entry->process, h->entry->seq + 1);

    if (!e || h->run->started)
        return 0;
    return e->clock > h->token ? e->clock : h->token;
}

void lost_answers_set_unlogged_end(const struct audit *a, struct audit_hold *h) {
    const struct entry *next;

    if (!entry_is(h->entry, "granted"))
        return;
    h->unlogged_after = session_lost(a, h);
    h->why = "its host's session was lost before the start";
    if (h->unlogged_after > 0 || h->run->exited || h->run->released)
        return;
    next = was_mentioned(h->run, h->token) ? NULL : next_connection(a, h);
    h->unlogged_after = next ? next->clock : lost_answers_silent_since(a, h->entry);
    h->why = next ? "its berthd was killed, and the next one did not know the grant" : AUDIT_SILENT;
}
