/* SPDX-License-Identifier: MIT */
/* What is told of one run, or by one berthd: does it fit together, and does every grant end? */
#include <string.h>

#include "cli/audit-model.h"

/* --- ends --- */

static bool goes_on(const struct audit *a, const struct entry *after, bool other_boot) {
    bool lost = false, later = false;

    for (size_t i = 0; i < a->n_events; i++) {
        const struct entry *e = a->events[i];

        if (e->time <= after->time || strcmp(e->host, after->host) != 0 || audit_is_of_another(e))
            continue;
        if (other_boot && e->boot && after->boot && strcmp(e->boot, after->boot) == 0)
            continue;
        if (!other_boot && strcmp(e->process, after->process) != 0)
            continue;
        lost |= strcmp(e->event, "redis-lost") == 0 || strcmp(e->event, "session-lost") == 0 || strcmp(e->event, "grace-begun") == 0;
        later |= e->time > after->time + AUDIT_RELEASE_USEC;
    }
    return later && (other_boot || !lost);
}

/* Redis lost its data since: there is nothing to give back. */
static bool was_wiped(const struct audit *a, const struct entry *after) {
    for (size_t i = 0; i < a->n_events; i++)
        if (strcmp(a->events[i]->event, "grace-begun") == 0 && a->events[i]->time > after->time)
            return true;
    return false;
}

/* Whether what this host's berthds wrote before is there: what is missing of a run then is missing. */
static bool has_earlier_berthd(const struct audit *a, const struct entry *e) {
    for (size_t i = 0; i < a->n_events; i++)
        if (a->events[i]->time < e->time && !audit_is_of_another(a->events[i]) && strcmp(a->events[i]->host, e->host) == 0 &&
            strcmp(a->events[i]->process, e->process) != 0)
            return true;
    return false;
}

static void check_begin(struct audit *a, const struct audit_run *r) {
    const struct entry *e = r->started ? r->started : r->exited ? r->exited : r->released;

    if (e && (r->queued || (!r->withdrawn && has_earlier_berthd(a, e))))
        audit_find(a, AUDIT_NOT_GRANTED, e, "%s, and nothing tells that it was granted its permits", e->event);
}

static void check_end(struct audit *a, const struct audit_run *r) {
    if (!r->granted) {
        if (!r->withdrawn)
            check_begin(a, r);
        return;
    }
    a->report->n_granted++;
    if (r->reclaimed || r->released || audit_is_unused_run(r))
        return;
    if (!r->exited)
        a->report->n_running++;
    if (r->n_uses == 0 || r->of_host)
        return; /* permits of its own host end with its last process */
    if (r->exited && goes_on(a, r->exited, false))
        audit_find(a, AUDIT_NOT_ENDED, r->exited, "it is over, and nothing tells that its permits were released or reclaimed");
    else if (!r->exited && goes_on(a, r->granted, true) && !was_wiped(a, r->granted) && audit_silent_since(a, r->granted) > 0)
        audit_doubt(a, AUDIT_NOT_ENDED, r->granted, "its host was booted anew since, and nothing tells that its permits were reclaimed: "
                    AUDIT_SILENT);
    else if (!r->exited && goes_on(a, r->granted, true) && !was_wiped(a, r->granted))
        audit_find(a, AUDIT_NOT_ENDED, r->granted, "its host was booted anew since, and nothing tells that its permits were reclaimed");
}

/* --- what entries say of one another --- */

static bool differ(const char *x, const char *y) {
    return x && y && strcmp(x, y) != 0;
}

/* What is taken back may be a grant that its host had not heard of: it waited again, and was granted anew later. */
static bool is_token_of(const struct audit_run *r, const struct entry *e) {
    bool granted = false;

    for (size_t i = 0; i < r->n_events; i++)
        if (strcmp(r->events[i]->event, "granted") == 0) {
            granted = true;
            if (r->events[i]->token == e->token || (audit_is_of_another(e) && e->token < r->events[i]->token))
                return true;
        }
    return !granted;
}

/* The grant that this entry is of, by its place among the run's: a berthd that knows nothing of a grant asks anew, until it was started. */
static const struct entry *grant_of(const struct audit_run *r, size_t place) {
    const struct entry *granted = r->granted;

    for (size_t i = 0; i <= place && r->events[i] != r->started; i++)
        if (strcmp(r->events[i]->event, "granted") == 0 && strcmp(r->events[i]->process, granted->process) != 0)
            granted = r->events[i];
    return granted;
}

static void check_fields(struct audit *a, const struct audit_run *r) {
    const struct entry *first = r->granted ? r->granted : r->events[0];

    for (size_t i = 0; i < r->n_events; i++) {
        const struct entry *e = r->events[i];
        const char *field = differ(e->job, first->job)                                          ? "BERTH_JOB"
                            : differ(e->pools, first->pools)                                    ? "BERTH_POOLS"
                            : *e->host && strcmp(e->host, first->host) != 0                     ? "BERTH_HOST"
                            : e->uid != first->uid && !audit_is_of_another(e) && !audit_is_of_another(first) ? "BERTH_UID"
                            : e->ticket > 0 && r->granted && r->granted->ticket > 0 && !r->of_host && strcmp(e->event, "queued") != 0 &&
                                      strcmp(e->event, "parked") != 0 && e->ticket != grant_of(r, i)->ticket
                                  ? "BERTH_TICKET"
                            : e->token > 0 && !is_token_of(r, e)                         ? "BERTH_TOKEN"
                                                                                                : NULL;

        if (field)
            audit_find(a, AUDIT_DIFFERS, e, "its %s is not that of this run's other entries (%s)", field, first->event);
    }
}

/* Their turn in the life of a run; 0: at any time. */
static int turn_of(const char *event) {
    static const char *const turns[] = {"queued parked", "granted", "started", "exited", "released"};

    for (size_t i = 0; i < ELEMENTSOF(turns); i++) {
        const char *found = strstr(turns[i], event);
        size_t length = strlen(event);

        if (found && (found[length] == ' ' || found[length] == '\0') && (found == turns[i] || found[-1] == ' '))
            return (int) i + 1;
    }
    return 0;
}

/* One berthd wrote these in this order. Permits that are held again after a lost lease are granted while it runs. */
static void check_turns(struct audit *a, const struct audit_run *r) {
    const struct entry *before = NULL;

    for (size_t i = 0; i < r->n_events; i++) {
        const struct entry *e = r->events[i];

        if (turn_of(e->event) == 0 || (r->continues && strcmp(e->event, "granted") == 0))
            continue;
        if (before && strcmp(before->process, e->process) == 0 && turn_of(before->event) > turn_of(e->event))
            audit_find(a, AUDIT_DIFFERS, e, "%s is told after %s", e->event, before->event);
        before = e;
    }
}

/* A command that ended had begun; permits are given back when their run is over. */
static void check_whole(struct audit *a, const struct audit_run *r) {
    if (r->granted && r->exited && !r->started && (r->exited->exit_code >= 0 || r->exited->signal >= 0))
        audit_find(a, AUDIT_DIFFERS, r->exited, "its command ended, and nothing tells that it was started");
    if (r->granted && r->released && !r->exited && !audit_is_unused_run(r))
        audit_find(a, AUDIT_DIFFERS, r->released, "its permits were given back, and nothing tells that it was over");
}

static void check_run(struct audit *a, const struct audit_run *r) {
    check_whole(a, r);
    check_fields(a, r);
    check_turns(a, r);
    if (r->granted && r->withdrawn && !audit_is_unused_run(r))
        audit_find(a, AUDIT_DIFFERS, r->withdrawn, "it was granted its permits, and cannot have been withdrawn");
    check_end(a, r);
}

/* A berthd is one host's. */
static void check_processes(struct audit *a) {
    const struct entry *first = NULL;

    for (size_t i = 0; i < a->n_events; i++) {
        const struct entry *e = a->events[i];

        if (audit_is_of_another(e))
            continue;
        if (!first || strcmp(first->process, e->process) != 0)
            first = e;
        else if (strcmp(first->host, e->host) != 0)
            audit_find(a, AUDIT_DIFFERS, e, "the berthd that wrote it is one of host %s", first->host);
    }
}

void audit_check_lives(struct audit *a) {
    check_processes(a);
    for (size_t i = 0; i < a->n_runs; i++)
        check_run(a, &a->runs[i]);
}
