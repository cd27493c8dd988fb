/* SPDX-License-Identifier: MIT */
/* Checks that the entries of one run, or of one berthd, agree, and that every grant has an end. */
#include <string.h>

#include "cli/audit/model.h"

/* --- ends --- */

/* Returns whether Redis lost its data later; then nothing was released. */
static bool was_wiped(const struct audit *a, const struct entry *after) {
    return a->last_wipe > after->time;
}

/* Returns whether the host went down while the run waited or ran. */
static bool is_lost(const struct audit_run *r) {
    return r->exited && r->exited->result && strcmp(r->exited->result, "host-lost") == 0;
}

static void check_begin(struct audit *a, const struct audit_run *r) {
    const struct entry *e = r->started ? r->started : r->exited ? r->exited : r->released;

    if (e && !(is_lost(r) && !r->started) && (r->queued || (!r->withdrawn && audit_hosts_have_earlier_berthd(a, e))))
        audit_report_violation(a, AUDIT_NOT_GRANTED, e, "%s without a logged grant", e->event);
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
        return; /* permits of the run's own host end with its last process */
    if (r->exited && audit_hosts_process_goes_on(a, r->exited))
        audit_report_violation(a, AUDIT_NOT_ENDED, r->exited,
                               "the run is over, and no entry releases or reclaims its permits");
    else if (!r->exited && audit_hosts_other_boot_goes_on(a, r->granted) && !was_wiped(a, r->granted) &&
             lost_answers_silent_since(a, r->granted) > 0)
        audit_report_unproved(
            a, AUDIT_NOT_ENDED, r->granted,
            "its host has rebooted since, and no entry reclaims its permits: " AUDIT_SILENT);
    else if (!r->exited && audit_hosts_other_boot_goes_on(a, r->granted) && !was_wiped(a, r->granted))
        audit_report_violation(a, AUDIT_NOT_ENDED, r->granted,
                               "its host has rebooted since, and no entry reclaims its permits");
}

/* --- whether entries agree --- */

static bool differ(const char *x, const char *y) {
    return x && y && strcmp(x, y) != 0;
}

/* The host may never have learned of a reclaimed grant; then the run waited again and was granted later. */
static bool is_token_of_grant(const struct entry *e, const struct entry *granted) {
    return entry_is(granted, "granted") &&
           (granted->token == e->token || (entry_is_of_another(e) && e->token < granted->token));
}

/* Returns whether the token is that of one of the run's grants, most often of the last one before. */
static bool is_token_of(const struct audit_run *r, size_t place) {
    for (size_t i = place + 1; i-- > 0;)
        if (is_token_of_grant(r->events[place], r->events[i]))
            return true;
    for (size_t i = place + 1; i < r->n_events; i++)
        if (is_token_of_grant(r->events[place], r->events[i]))
            return true;
    return !r->granted;
}

/* Returns whether the entry is a second grant: a berthd that does not know the first one claims again before
 * the start, and later entries belong to the new grant. */
static bool is_claimed_again(const struct entry *e, const struct entry *granted) {
    return granted && entry_is(e, "granted") && strcmp(e->process, granted->process) != 0;
}

/* Returns whether the entry has another ticket than its grant. */
static bool has_other_ticket(const struct audit_run *r, const struct entry *e, const struct entry *granted) {
    return r->granted && !r->of_host && e->ticket > 0 && r->granted->ticket > 0 &&
           e->ticket != granted->ticket && !entry_is(e, "queued") &&
           !entry_is(e, "parked");
}

/* Returns whether another host may have written the entry: any host may give up an open attempt. */
static bool may_be_of_any_host(const struct entry *e) {
    return entry_is(e, "gave-up");
}

/* Returns the field of entry i that contradicts the run's first entry or the current grant; NULL: none. */
static const char *find_contradiction(const struct audit_run *r, size_t i, const struct entry *first,
                                      const struct entry *granted) {
    const struct entry *e = r->events[i];

    if (differ(e->job, first->job))
        return "BERTH_JOB";
    if (differ(e->pools, first->pools))
        return "BERTH_POOLS";
    if (*e->host && strcmp(e->host, first->host) != 0 && !may_be_of_any_host(e))
        return "BERTH_HOST";
    if (e->uid != first->uid && !entry_is_of_another(e) && !entry_is_of_another(first))
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
        granted = !started && is_claimed_again(e, granted) ? e : granted;
        field = find_contradiction(r, i, first, granted);
        if (field)
            audit_report_violation(a, AUDIT_DIFFERS, e,
                                   "its %s differs from this run's other entries (%s)", field,
                                   first->event);
    }
}

/* Returns the position of an event in the life of a run; 0: any. */
static int turn_of(const char *event) {
    static const struct {
        const char *event;
        int turn;
    } turns[] = {{"queued", 1},  {"parked", 1}, {"granted", 2},
                 {"started", 3}, {"exited", 4}, {"released", 5}};

    for (size_t i = 0; i < ELEMENTSOF(turns); i++)
        if (strcmp(turns[i].event, event) == 0)
            return turns[i].turn;
    return 0;
}

/* Checks the order of the events that one berthd wrote. After a lost lease permits are granted again while
 * the run continues. */
static void check_turns(struct audit *a, const struct audit_run *r) {
    const struct entry *before = NULL;

    for (size_t i = 0; i < r->n_events; i++) {
        const struct entry *e = r->events[i];

        if (turn_of(e->event) == 0 || (r->continues && entry_is(e, "granted")))
            continue;
        if (before && strcmp(before->process, e->process) == 0 && turn_of(before->event) > turn_of(e->event))
            audit_report_violation(a, AUDIT_DIFFERS, e, "%s is logged after %s", e->event, before->event);
        before = audit_event_gives_back(e) ? NULL : e; /* the run begins again */
    }
}

/* A command that ended was started; permits are released after the end of their run. */
static void check_whole(struct audit *a, const struct audit_run *r) {
    if (r->granted && r->exited && !r->started && (r->exited->exit.code >= 0 || r->exited->exit.signal >= 0))
        audit_report_violation(a, AUDIT_DIFFERS, r->exited, "its command ended without a logged start");
    if (r->granted && r->released && !r->exited && !lost_answers_is_unused_run(r))
        audit_report_violation(a, AUDIT_DIFFERS, r->released,
                               "its permits were released without a logged end of the run");
}

static void check_run(struct audit *a, const struct audit_run *r) {
    check_whole(a, r);
    check_fields(a, r);
    check_turns(a, r);
    if (r->granted && r->withdrawn && !lost_answers_is_unused_run(r))
        audit_report_violation(a, AUDIT_DIFFERS, r->withdrawn, "withdrawn after its grant");
    check_end(a, r);
}

/* A berthd belongs to one host. */
static void check_processes(struct audit *a) {
    const struct entry *first = NULL;

    for (size_t i = 0; i < a->n_events; i++) {
        const struct entry *e = a->events[i];

        if (entry_is_of_another(e))
            continue;
        if (!first || strcmp(first->process, e->process) != 0)
            first = e;
        else if (strcmp(first->host, e->host) != 0)
            audit_report_violation(a, AUDIT_DIFFERS, e, "its berthd belongs to host %s",
                                   first->host);
    }
}

void lifecycle_check(struct audit *a) {
    check_processes(a);
    for (size_t i = 0; i < a->n_runs; i++)
        check_run(a, &a->runs[i]);
}
