/* SPDX-License-Identifier: MIT */
/* Moves: the score of a claim is a step function of the namespace's clock, and each event `moved` is a
 * step. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/demand.h"
#include "cli/audit/model.h"

bool audit_event_is_move(const struct entry *e) {
    return entry_is(e, "moved");
}

static uint64_t score_of(uint64_t ticket, int64_t head_start_ms) {
    return usec_sub(ticket, head_start_ms > 0 ? (usec_t) head_start_ms * USEC_PER_MSEC : 0);
}

/* Returns whether the host of the run logged the move when it received it; it does not know who asked. */
static bool is_received(const struct entry *e) {
    return e->uid < 0;
}

/* Returns whether a berthd of the run's host made the move, and so knows it. */
static bool was_asked_at_home(const struct audit_run *r, const struct entry *move) {
    for (size_t i = 0; i < r->n_events; i++)
        if (!entry_is_of_another(r->events[i]) && strcmp(r->events[i]->process, move->process) == 0)
            return true;
    return false;
}

/* Orders by run and number; of one move the entry with the user comes first. */
static int compare(const void *a, const void *b) {
    const struct entry *x = *(const struct entry *const *) a, *y = *(const struct entry *const *) b;
    int c = strcmp(x->run, y->run);

    if (c != 0 || x->clock != y->clock)
        return c != 0 ? c : x->clock < y->clock ? -1 : 1;
    return is_received(x) - is_received(y);
}

/* Returns whether the move concerns the queues that drew the run's ticket. A run that first waits for host
 * pools has no place in the cluster yet. */
static bool is_of_its_queues(const struct audit *a, const struct audit_run *r, const struct entry *e) {
    struct demands demands;

    if (!e->pools || demands_parse(e->pools, &demands) != 0)
        return false;
    for (size_t i = 0; i < r->n_uses; i++)
        if (strcmp(demands.items[0].pool, a->pools[r->uses[i].pool].name) == 0)
            return !a->pools[r->uses[i].pool].host == !r->of_host;
    return false;
}

static void add_stand(struct audit *a, struct audit_run *r, uint64_t from, uint64_t score, bool is_unsure) {
    a->stands.items[a->stands.n++] = (struct audit_stand) {.run = r, .from = from, .score = score, .is_unsure = is_unsure};
    r->stands.n++;
}

/* moves: of this run, one or two of each number. */
static void add_stands(struct audit *a, struct audit_run *r, const struct entry *const *moves, size_t n) {
    const struct entry *placed = r->granted ? r->granted : r->queued;

    r->stands.items = &a->stands.items[a->stands.n];
    if (!r->has_place)
        return;
    add_stand(a, r, r->ticket, score_of(r->ticket, placed->asked.head_start_ms), false);
    for (size_t i = 0; i < n; i++) {
        bool is_known_to_host = r->of_host || is_received(moves[i]) || was_asked_at_home(r, moves[i]);

        for (; i + 1 < n && moves[i + 1]->clock == moves[i]->clock; i++)
            is_known_to_host |= is_received(moves[i + 1]);
        if (moves[i]->clock > r->ticket && is_of_its_queues(a, r, moves[i]))
            add_stand(a, r, moves[i]->clock, score_of(r->ticket, moves[i]->asked.head_start_ms),
                      !is_known_to_host &&
                          a->last_wipe >= usec_sub(audit_hosts_time(a, moves[i]), a->options->tolerance));
    }
}

/* Lists one entry of each move; with --no-moves each is a violation. */
static int report_moves(struct audit *a, const struct entry *const *moves, size_t n) {
    struct audit_report *report = a->report;

    report->moves = calloc(n + 1, sizeof(*report->moves));
    if (!report->moves)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        bool is_known = i > 0 && moves[i]->clock == moves[i - 1]->clock && strcmp(moves[i]->run, moves[i - 1]->run) == 0;

        if (is_known || moves[i]->time < a->options->since)
            continue;
        report->moves[report->n_moves++] = moves[i];
        if (a->options->no_moves)
            audit_report_violation(a, AUDIT_MOVED, moves[i], "run %s was moved%s%s", moves[i]->run, moves[i]->reason ? ": " : "",
                                   moves[i]->reason ? moves[i]->reason : "");
    }
    return 0;
}

int audit_moves_make(struct audit *a) {
    _cleanup_free_ const struct entry **moves = calloc(a->n_events + 1, sizeof(*moves));
    size_t n = 0, at = 0;

    a->stands.items = calloc(a->n_runs + a->n_events + 1, sizeof(*a->stands.items));
    if (!moves || !a->stands.items)
        return -ENOMEM;
    for (size_t i = 0; i < a->n_events; i++)
        if (audit_event_is_move(a->events[i]) && a->events[i]->run)
            moves[n++] = a->events[i];
    qsort(moves, n, sizeof(*moves), compare);
    for (size_t i = 0; i < a->n_runs; i++) {
        size_t first;

        while (at < n && strcmp(moves[at]->run, a->runs[i].id) < 0)
            at++;
        for (first = at; at < n && strcmp(moves[at]->run, a->runs[i].id) == 0;)
            at++;
        add_stands(a, &a->runs[i], &moves[first], at - first);
    }
    return report_moves(a, moves, n);
}
