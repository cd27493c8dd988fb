/* SPDX-License-Identifier: MIT */
/* What is told of one run, or by one berthd: does it fit together, and does every grant end? */
#include <string.h>

#include "cli/audit/model.h"

/* --- ends --- */

/* Whether Redis lost its data since: there is nothing to give back. */
static bool was_wiped(const struct audit *a, const struct entry *after) {
    return a->last_wipe > after->time;
}

static void check_begin(struct audit *a, const struct audit_run *r) {
    const struct entry *e = r->started ? r->started : r->exited ? r->exited : r->released;

    if (e && (r->queued || (!r->withdrawn && audit_hosts_have_earlier_berthd(a, e))))
        audit_report_violation(a, AUDIT_NOT_GRANTED, e, "%s, and nothing tells that it was granted its permits", e->event);
}

static void check_end(struct audit *a, const struct audit_run *r) {
    if (!r->granted) {
        if (!r->withdrawn)
            check_begin(a, r);
        return;
    }
    a->report->n_granted++;
    if (r->reclaimed || r->released || lost_answers_is_unused_run(r) || audit_run_waits_again(r))
        return;
    if (!r->exited)
        a->report->n_running++;
    if (r->n_uses == 0 || r->of_host)
        return; /* permits of its own host end with its last process */
    if (r->exited && audit_hosts_process_goes_on(a, r->exited))
        audit_report_violation(a, AUDIT_NOT_ENDED, r->exited, "it is over, and nothing tells that its permits were released or reclaimed");
    else if (!r->exited && audit_hosts_other_boot_goes_on(a, r->granted) && !was_wiped(a, r->granted) && lost_answers_silent_since(a, r->granted) > 0)
        audit_report_unproved(a, AUDIT_NOT_ENDED, r->granted, "its host was booted anew since, and nothing tells that its permits were reclaimed: "
                    AUDIT_SILENT);
    else if (!r->exited && audit_hosts_other_boot_goes_on(a, r->granted) && !was_wiped(a, r->granted))
        audit_report_violation(a, AUDIT_NOT_ENDED, r->granted, "its host was booted anew since, and nothing tells that its permits were reclaimed");
}

/* --- what entries say of one another --- */

static bool differ(const char *x, const char *y) {
    return x && y && strcmp(x, y) != 0;
}

/* What is taken back may be a grant that its host had not heard of: it waited again, and was granted anew later. */
static bool is_token_of_grant(const struct entry *e, const struct entry *granted) {
    return strcmp(granted->event, "granted") == 0 &&
           (granted->token == e->token || (audit_event_is_of_another(e) && e->token < granted->token));
}

/* Of one of this run's grants, most often the last one that was told before. */
static bool is_token_of(const struct audit_run *r, size_t place) {
    for (size_t i = place + 1; i-- > 0;)
        if (is_token_of_grant(r->events[place], r->events[i]))
            return true;
    for (size_t i = place + 1; i < r->n_events; i++)
        if (is_token_of_grant(r->events[place], r->events[i]))
            return true;
    return !r->granted;
}

/* A berthd that knows nothing of a grant asks anew, until it was started: then what follows is of the grant that it tells. */
static bool is_asked_anew(const struct entry *e, const struct entry *granted) {
    return granted && strcmp(e->event, "granted") == 0 && strcmp(e->process, granted->process) != 0;
}

/* Whether this entry has another ticket than the grant that it is about. */
static bool has_other_ticket(const struct audit_run *r, const struct entry *e, const struct entry *granted) {
    return r->granted && !r->of_host && e->ticket > 0 && r->granted->ticket > 0 && e->ticket != granted->ticket &&
           strcmp(e->event, "queued") != 0 && strcmp(e->event, "parked") != 0;
}

/* Returns the field of the run's entry i that contradicts the run's first entry or the grant in force; NULL: none. */
static const char *find_contradiction(const struct audit_run *r, size_t i, const struct entry *first,
                                      const struct entry *granted) {
    const struct entry *e = r->events[i];

    if (differ(e->job, first->job))
        return "BERTH_JOB";
    if (differ(e->pools, first->pools))
        return "BERTH_POOLS";
    if (*e->host && strcmp(e->host, first->host) != 0)
        return "BERTH_HOST";
    if (e->uid != first->uid && !audit_event_is_of_another(e) && !audit_event_is_of_another(first))
        return "BERTH_UID";
    if (has_other_ticket(r, e, granted))
        return "BERTH_TICKET";
    return e->token > 0 && !is_token_of(r, i) ? "BERTH_TOKEN" : NULL;
}

static void check_fields(struct audit *a, const struct audit_run *r) {
    const struct entry *first = r->granted ? r->granted : r->events[0], *granted = r->granted;
    bool started = false;

    for (size_t i = 0; i < r->n_events; i++) {
        const struct entry *e = r->events[i];
        const char *field;

        started |= e == r->started;
        granted = !started && is_asked_anew(e, granted) ? e : granted;
        field = find_contradiction(r, i, first, granted);
        if (field)
            audit_report_violation(a, AUDIT_DIFFERS, e, "its %s is not that of this run's other entries (%s)", field,
                                   first->event);
    }
}

/* Returns the position of an event in the life of a run; 0: any. */
static int turn_of(const char *event) {
    static const struct {
        const char *event;
        int turn;
    } turns[] = {{"queued", 1}, {"parked", 1}, {"granted", 2}, {"started", 3}, {"exited", 4}, {"released", 5}};

    for (size_t i = 0; i < ELEMENTSOF(turns); i++)
        if (strcmp(turns[i].event, event) == 0)
            return turns[i].turn;
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
            audit_report_violation(a, AUDIT_DIFFERS, e, "%s is told after %s", e->event, before->event);
        before = audit_event_gives_back(e) ? NULL : e; /* its life begins once more */
    }
}

/* A command that ended had begun; permits are given back when their run is over. */
static void check_whole(struct audit *a, const struct audit_run *r) {
    if (r->granted && r->exited && !r->started && (r->exited->exit_code >= 0 || r->exited->signal >= 0))
        audit_report_violation(a, AUDIT_DIFFERS, r->exited, "its command ended, and nothing tells that it was started");
    if (r->granted && r->released && !r->exited && !lost_answers_is_unused_run(r))
        audit_report_violation(a, AUDIT_DIFFERS, r->released, "its permits were given back, and nothing tells that it was over");
}

static void check_run(struct audit *a, const struct audit_run *r) {
    check_whole(a, r);
    check_fields(a, r);
    check_turns(a, r);
    if (r->granted && r->withdrawn && !lost_answers_is_unused_run(r))
        audit_report_violation(a, AUDIT_DIFFERS, r->withdrawn, "it was granted its permits, and cannot have been withdrawn");
    check_end(a, r);
}

/* A berthd is one host's. */
static void check_processes(struct audit *a) {
    const struct entry *first = NULL;

    for (size_t i = 0; i < a->n_events; i++) {
        const struct entry *e = a->events[i];

        if (audit_event_is_of_another(e))
            continue;
        if (!first || strcmp(first->process, e->process) != 0)
            first = e;
        else if (strcmp(first->host, e->host) != 0)
            audit_report_violation(a, AUDIT_DIFFERS, e, "the berthd that wrote it is one of host %s", first->host);
    }
}

void lifecycle_check(struct audit *a) {
    check_processes(a);
    for (size_t i = 0; i < a->n_runs; i++)
        check_run(a, &a->runs[i]);
}
