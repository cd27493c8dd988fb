/* SPDX-License-Identifier: MIT */

/* The result of a load: collects what the judge needs from the requested runs and the hosts' journals. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "tests/faults/due.h"
#include "tests/harness/judge/record.h"

#define SLACK USEC_PER_SEC

static bool touches(const struct load_host *h, usec_t from, usec_t until) {
    for (size_t i = 0; i < h->n_touched; i++)
        if (h->touched[i].from < until && h->touched[i].until > from)
            return true;
    return false;
}

/* Returns all messages of the host. */
static char *whole_log(struct host *h) {
    const char *now;
    char *text;

    child_turn(0);
    now = h->berthd ? child_text(h->berthd, 2) : "";
    if (asprintf(&text, "%s%s", h->log.data ? h->log.data : "", now) < 0)
        abort();
    return text;
}

static bool starts_with(const char *line, const char *event) {
    size_t n = strlen(event);

    return strncmp(line, event, n) == 0 && line[n] == ':';
}

/* --- exit statuses --- */

/* Statuses of runs that berth stopped or never started. */
enum { LEASE_LOST = 76, KILLED = 128 + SIGKILL };

static bool is_excuse(int status) {
    static const int excuses[] = {69, 70, 75, LEASE_LOST, 124, 125, 128 + SIGTERM};

    for (size_t i = 0; i < ELEMENTSOF(excuses); i++)
        if (status == excuses[i])
            return true;
    return false;
}

/* berth reports the status of a command that ended by itself, whatever fails around it, except for a command
 * that ended while it was stopped for a lost lease. */
static bool is_wrong(const struct load_item *item, const struct witness_run *run) {
    if (item->status == item->expected)
        return !item->job && !run; /* the status claims a run that did not start */
    if (item->killed)
        return false;
    if (!item->job && run && run->end && run->signal == 0)
        return item->status != LEASE_LOST;
    return item->status != KILLED && !is_excuse(item->status);
}

static void judge_item(const struct load_item *item, const struct witness *w, struct verdict *ret) {
    const struct witness_run *run = witness_find(w, item->job ? item->run : item->id);

    ret->n_open += item->status < 0;
    ret->n_clean += item->status == item->expected;
    if (item->status < 0 || !is_wrong(item, run) || ret->n_lost++ > 0)
        return;
    snprintf(ret->first, sizeof(ret->first), "%s%s ended with %d, expected %d; its command %s", item->id, item->job ? " (a job)" : "",
             item->status, item->expected, !run ? "did not run" : run->end ? "has ended" : "was killed");
}

/* Returns the `exited` event of a run, from any of the journals, or NULL. */
static const char *find_exited(char *const logs[static LOAD_HOSTS], const char *id) {
    char search[96];

    snprintf(search, sizeof(search), " run=%s ", id);
    for (size_t h = 0; h < LOAD_HOSTS; h++)
        for (const char *at = logs[h]; (at = strstr(at, search)); at++) {
            const char *line = at;

            while (line > logs[h] && line[-1] != '\n')
                line--;
            if (starts_with(line, "exited"))
                return line;
        }
    return NULL;
}

/* Checks that the logged end is the real one, unless the guard was killed or the run was stopped. */
static bool has_true_status(const char *exited, const struct witness_run *run) {
    char line[1024], result[32];

    snprintf(line, sizeof(line), "%.*s", (int) strcspn(exited, "\n"), exited);
    snprintf(result, sizeof(result), "%s", event_get(line, "result"));
    if (strcmp(result, "success") != 0 && strcmp(result, "failure") != 0)
        return true;
    return (int) event_get_u64(line, "exit_code") == load_exit_of(run->name);
}

/* Checks that each run of a job that ended by itself is in a journal as `exited`, with its status. */
static void judge_job_runs(const struct witness *w, char *const logs[static LOAD_HOSTS], struct verdict *ret) {
    for (size_t i = 0; i < w->n; i++) {
        const struct witness_run *run = &w->runs[i];
        const char *exited;

        if (strlen(run->id) != ID_TEXT_SIZE - 1 || !run->end || run->signal)
            continue;
        ret->n_jobs++;
        exited = find_exited(logs, run->id);
        if ((!exited || !has_true_status(exited, run)) && ret->n_jobs_unrecorded++ == 0 && !ret->first[0])
            snprintf(ret->first, sizeof(ret->first), "run %s of %s on %s ended, and %s", run->id, run->name, run->host,
                     exited ? "its exited event has another status" : "no exited event has its status");
    }
}

/* --- journals --- */

static void read_fenced(struct verdict *ret, const char *line) {
    const char *at = strstr(line, " was gone ");
    char text[32], when[8];
    usec_t margin;

    if (at && sscanf(at, " was gone %31s %7s", text, when) == 2 && strcmp(when, "before") == 0 && duration_parse(text, &margin) == 0 && ret->n_margins < ELEMENTSOF(ret->margins))
        ret->margins[ret->n_margins++] = margin;
}

static void read_log(const char *log, struct verdict *ret) {
    char *copy = strdup(log), *rest = copy;

    for (char *line; (line = strsep(&rest, "\n"));)
        if (starts_with(line, "fenced"))
            read_fenced(ret, line);
        else if (starts_with(line, "exited") && strstr(line, "`berth run` could not report"))
            ret->n_unreported++;
    free(copy);
}

static bool is_of(const struct entry *e, const struct load_item *item) {
    return e->run && (item->job ? strcmp(e->run, item->run) == 0 : e->job && strcmp(e->job, item->id) == 0);
}

/* The last ticket counts: a client of a killed berthd claims again at the next one. The recorder wrote the
 * times. */
static void fill_ticket(const struct entries *logged, const struct load_item *item, struct judge_wait *wait) {
    usec_t ahead = clock_realtime() - clock_boottime();

    for (size_t i = 0; i < logged->n; i++) {
        const struct entry *e = &logged->items[i];

        if (e->ticket == wait->ticket || !is_of(e, item) || (strcmp(e->event, "queued") != 0 && strcmp(e->event, "granted") != 0))
            continue;
        wait->ticket = e->ticket;
        wait->ticketed = usec_sub(e->time, ahead);
    }
}

/* Returns when the host reconnected after one of its events; USEC_INFINITY: never. */
static usec_t connected_after(const struct entries *logged, size_t lost, usec_t ahead) {
    for (size_t i = lost + 1; i < logged->n && strcmp(logged->items[i].host, logged->items[lost].host) == 0; i++)
        if (strcmp(logged->items[i].event, "redis-connected") == 0)
            return usec_sub(logged->items[i].time, ahead);
    return USEC_INFINITY;
}

/* Returns whether the claim lost its place because its session ended (R4). Without a fault, a session ends
 * when the machine is too busy for Redis to reply to heartbeats. */
static bool is_displaced(const struct entries *logged, const char *host, const struct judge_wait *wait) {
    usec_t ahead = clock_realtime() - clock_boottime();

    for (size_t i = 0; i < logged->n; i++)
        if (strcmp(logged->items[i].event, "session-lost") == 0 && strcmp(logged->items[i].host, host) == 0 &&
            usec_sub(logged->items[i].time, ahead) < wait->until && connected_after(logged, i, ahead) > wait->from)
            return true;
    return false;
}

/* Fills in the wait of a run, which ends with its start. */
static void fill_wait(const struct load *l, const struct load_item *item, const struct witness *w, struct judge_wait *wait) {
    const struct witness_run *run = witness_find(w, item->job ? item->run : item->id);

    *wait = (struct judge_wait) {.pools = item->pools, .from = item->from, .until = run ? run->start : item->until, .head_start = item->head_start};
    snprintf(wait->id, sizeof(wait->id), "%s", item->id);
    if (!wait->until)
        wait->until = clock_boottime();
    wait->token = run ? run->token : 0;
    wait->excused = touches(&l->hosts[item->host], wait->from, wait->until);
}

void load_judge(struct load *l, struct verdict *ret) {
    static struct judge_wait waits[LOAD_ITEMS];
    struct witness w = {0};
    _cleanup_(entries_done) struct entries logged = {};
    char *logs[LOAD_HOSTS];
    struct judge j;

    *ret = (struct verdict) {.n_runs = l->n};
    witness_watch_turn(&l->watch, cluster.witness);
    witness_read(&w, cluster.witness);
    witness_watch_apply(&l->watch, &w);
    for (size_t i = 0; i < LOAD_HOSTS; i++) {
        logs[i] = whole_log(l->hosts[i].host);
        read_log(logs[i], ret);
    }
    record_read(&logged);
    for (size_t i = 0; i < l->n; i++) {
        judge_item(&l->items[i], &w, ret);
        fill_wait(l, &l->items[i], &w, &waits[i]);
        fill_ticket(&logged, &l->items[i], &waits[i]);
        waits[i].displaced = is_displaced(&logged, l->hosts[l->items[i].host].host->name, &waits[i]);
    }
    judge_job_runs(&w, logs, ret);
    if (l->has_schedules)
        due_judge(l, logs, ret);
    j = (struct judge) {.w = &w, .limits = l->limits, .n_limits = l->n_limits, .waits = waits, .n_waits = l->n,
                        .excuses = l->excuses, .n_excuses = l->n_excuses, .slack = SLACK};
    judge(&j, &ret->j);
    for (size_t i = 0; i < LOAD_HOSTS; i++)
        free(logs[i]);
    witness_done(&w);
}
