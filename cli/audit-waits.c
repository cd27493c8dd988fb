/* SPDX-License-Identifier: MIT */
/* Until when each claim stood in its queues, and when the queues may not have known it: its host was taken for dead, or Redis had lost
 * its data and the host had not told yet. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/audit-model.h"

/* --- hosts --- */

static int add_absence(struct audit_host *h, uint64_t from, uint64_t asked) {
    struct audit_absence *grown = reallocarray(h->absences, h->n_absences + 1, sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    h->absences = grown;
    grown[h->n_absences++] = (struct audit_absence) {.from = from, .to = UINT64_MAX, .asked = asked};
    return 0;
}

/* What it asks for from now on stands in its queues at once, and so does what it had asked for. */
static void end_absence(const struct audit *a, struct audit_absence *x, const struct entry *e) {
    usec_t to = audit_time_latest(a, e);

    x->to = to > e->clock ? to : e->clock;
    if (strcmp(e->event, "redis-connected") == 0 && e->clock > 0)
        x->asked = e->clock;
}

static int hear_own(struct audit *a, struct audit_host *h, const struct entry *e) {
    /* Up to this number its host had heard of everything. */
    uint64_t from = e->clock > 0 ? e->clock : usec_sub(audit_time(a, e), a->options->tolerance);

    if (strcmp(e->event, "redis-connected") == 0 || strcmp(e->event, "grace-ended") == 0)
        for (size_t i = h->n_absences; i-- > 0 && h->absences[i].to == UINT64_MAX;)
            end_absence(a, &h->absences[i], e);
    else if (strcmp(e->event, "grace-begun") == 0 || strcmp(e->event, "session-lost") == 0)
        return add_absence(h, from, audit_time_latest(a, e));
    return 0;
}

/* Told by others: it is back with the first connection after that. */
static int hear_of_others(struct audit *a, struct audit_host *h, const struct entry *e) {
    bool buried = strcmp(e->event, "host-buried") == 0 && strcmp(e->host, h->name) == 0;
    const struct entry *back = NULL;
    int k;

    if (!buried && strcmp(e->event, "grace-begun") != 0)
        return 0;
    for (size_t i = 0; i < a->n_events && !back; i++) {
        const struct entry *other = a->events[i];
        bool connects = strcmp(other->event, "redis-connected") == 0, grace = strcmp(other->event, "grace-ended") == 0;

        if (strcmp(other->host, h->name) == 0 && !audit_is_of_another(other) &&
            (buried ? connects && other->clock >= e->clock : (connects || grace) && audit_time_latest(a, other) > audit_time(a, e)))
            back = other;
    }
    k = add_absence(h, buried && e->clock > 0 ? e->clock : usec_sub(audit_time(a, e), a->options->tolerance), audit_time_latest(a, e));
    if (k == 0 && back)
        end_absence(a, &h->absences[h->n_absences - 1], back);
    return k;
}

bool audit_is_absent(const struct audit *a, const struct audit_run *r, uint64_t number) {
    const struct audit_host *h = r->of_host ? NULL : audit_find_host(a, audit_run_host(r));

    for (size_t i = 0; h && i < h->n_absences; i++)
        if (h->absences[i].from <= number && number <= h->absences[i].to && r->ticket <= h->absences[i].asked)
            return true;
    return false;
}

/* --- claims --- */

/* A client of `berth run` that waits while its berthd is killed asks again when there is another; what a job waits for is kept. */
static bool was_asked_again(const struct audit_run *r) {
    const struct entry *last = r->granted ? r->granted : r->withdrawn;

    return r->queued && last && strcmp(r->queued->process, last->process) != 0 &&
           (r->queued->uid >= 0 || !r->queued->boot || !last->boot || strcmp(r->queued->boot, last->boot) != 0);
}

static void set_until(const struct audit *a, struct audit_run *r) {
    if (!r->has_place || r->n_uses == 0 || was_asked_again(r))
        return;
    if (r->granted)
        r->until = r->granted->token;
    else if (r->released && r->released->token > 0) /* granted when it was withdrawn already */
        r->until = r->released->token;
    else if (r->withdrawn && r->of_host)
        r->until = usec_sub(r->withdrawn->time, a->options->tolerance);
    else if (r->withdrawn)
        r->until = r->withdrawn->clock;
    if (r->revoked && !r->granted && r->revoked->clock < r->until)
        r->until = r->revoked->clock;
    for (size_t i = 0; i < r->n_events; i++) /* granted, and taken back before its host heard of it: then it waited again */
        if (strcmp(r->events[i]->event, "reclaimed") == 0 && r->events[i]->token > 0 && r->events[i]->token < r->until)
            r->until = r->events[i]->token;
    if (r->until <= r->ticket)
        r->until = 0;
}

int audit_make_absences(struct audit *a) {
    int k = 0;

    for (size_t j = 0; j < a->n_hosts; j++) {
        struct audit_host *h = &a->hosts[j];

        for (size_t i = 0; i < a->n_events && k == 0; i++)
            if (!a->events[i]->run && strcmp(a->events[i]->host, h->name) == 0 && !audit_is_of_another(a->events[i]))
                k = hear_own(a, h, a->events[i]);
        for (size_t i = 0; i < a->n_events && k == 0; i++)
            if (!a->events[i]->run && (strcmp(a->events[i]->host, h->name) != 0 || audit_is_of_another(a->events[i])))
                k = hear_of_others(a, h, a->events[i]);
    }
    for (size_t i = 0; i < a->n_runs; i++)
        set_until(a, &a->runs[i]);
    return k;
}
