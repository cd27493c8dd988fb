/* SPDX-License-Identifier: MIT */

/* What must become of turns (R18): no attempt begins twice, and each due time is decided once a host could
 * ask. */

#include <string.h>

#include "tests/model/rules/model-rules.h"

void rules_turn_pushed(struct effect *e, unsigned session, const char *text) {
    char epoch[NUMBER_SIZE] = "", job[16] = "";
    uint64_t before = 0, number = 0, due = 0, attempt = 0, ms = 0;
    struct m_session *s = &e->m->sessions[session];

    if (sscanf(text, "turn %23s %" SCNu64 " %" SCNu64 " %15s %" SCNu64 " %" SCNu64 " %" SCNu64, epoch, &before, &number, job, &due, &attempt,
               &ms) != 7 || strcmp(job, "a") != 0)
        model_fail(e->w, "a push makes no sense: %s", text);
    if (number <= e->m->clock || (s->live && before != s->last)) /* not live: it was ended later in this call */
        model_fail(e->w, "R12: the open turn of s%u has number %" PRIu64 " after %" PRIu64, session, number, before);
    if (e->mismatch)
        model_fail(e->w, "R18: a Redis that is not that of the epoch opened a turn");
    if (s->live)
        s->last = number;
    e->m->clock = number;
}

/* Returns whether the host of a late call has lost this run since, with its session or its berthd. */
static bool has_given_up(const struct run *r) {
    return r->state == RUN_DONE && !r->process.started;
}

static bool is_kept(const struct m_state *m, unsigned run) {
    for (unsigned i = 0; i < SKIPS_KEPT; i++)
        if (m->skips[i] == run + 1)
            return true;
    return false;
}

/* Redis repeats the latest replies of this kind. The host of an older one may never receive it. */
static void keep_skip(const struct effect *e, unsigned run) {
    unsigned *skips = e->m->skips, oldest = skips[SKIPS_KEPT - 1];

    if (oldest > 0)
        e->w->turns.dues[e->w->runs[oldest - 1].turn.due].excused = true;
    memmove(skips + 1, skips, (SKIPS_KEPT - 1) * sizeof(*skips));
    skips[0] = run + 1;
}

/* skipped_by: host + 1; 0: it was taken. */
static void note_decided(const struct effect *e, unsigned k, unsigned skipped_by) {
    struct due *due = &e->w->turns.dues[k];
    unsigned c = id_number(e->args[3]);

    due->is_open = false;
    due->not_before = 0; /* its delay is over, also by a clock that is set back later */
    due->is_at_once = false;
    due->skipped_by = skipped_by;
    due->holder = c + 1;
    due->known_epoch = e->w->epochs.n_begun;
    if (skipped_by == 0)
        return;
    keep_skip(e, c);
    if (has_given_up(&e->w->runs[c]))
        due->excused = true;
}

static void check_delay(struct effect *e) {
    unsigned k = vturn_find(e->w, rules_number(e->args[5]));

    if (k < e->w->turns.n_dues && e->w->turns.dues[k].back_epoch == e->w->epochs.n_begun &&
        e->m->claims[id_number(e->args[3])].state == 0 &&
        world_redis_time(e->w) + USEC_PER_MSEC < e->w->turns.dues[k].not_before)
        model_fail(e->w, "R18: due time %u is taken by c%u before its delay is over", k, id_number(e->args[3]));
}

/* Without a delay no clock matters, also if it was set back since. */
static void check_later(const struct effect *e, unsigned k) {
    const struct due *due = &e->w->turns.dues[k];

    if (due->is_at_once && due->back_epoch == e->w->epochs.n_begun)
        model_fail(e->w, "R18: due time %u was given back without a delay, and is answered 'later'", k);
}

static void check_stopped(const struct effect *e) {
    unsigned k = vturn_find(e->w, rules_number(e->args[5]));

    if (k < e->w->turns.n_dues && e->w->turns.dues[k].stopped_epoch == e->w->epochs.n_begun &&
        e->m->claims[id_number(e->args[3])].state == 0)
        model_fail(e->w, "R18: due time %u is taken by c%u after it was stopped", k, id_number(e->args[3]));
}

static void check_early(const struct effect *e) {
    usec_t due = rules_number(e->args[5]) * USEC_PER_SEC, now = world_redis_time(e->w);
    bool is_early = strcmp(e->word, "early") == 0;

    if (is_early != (due > now + 60 * USEC_PER_SEC + USEC_PER_MSEC) && strcmp(e->word, "ok") != 0 &&
        strcmp(e->word, "grace") != 0 && due > now + 61 * USEC_PER_SEC)
        model_fail(e->w, "R18: %s is far ahead of Redis' clock, and was answered '%s'", e->args[5], e->word);
}

void rules_turn(struct effect *e) {
    unsigned c = id_number(e->args[3]), k = vturn_find(e->w, rules_number(e->args[5]));
    bool is_ok = strcmp(e->word, "ok") == 0, is_skipped = strcmp(e->word, "skipped") == 0;

    if (is_kept(e->m, c)) { /* the reply may have been lost, so the same question gets the same one */
        if (!is_skipped)
            model_fail(e->w, "R18: due time %u was skipped for c%u, which asks again and is answered '%s'", k, c,
                       e->word);
        return;
    }
    if (is_ok) {
        if (e->was_grace && reply_number(reply_at(e->reply, 9)) > 0 && e->m->claims[c].state == 0)
            model_fail(e->w, "R18: a turn was taken in grace");
        check_delay(e);
        check_stopped(e);
        rules_granted_turn(e);
    } else if (!is_skipped && strcmp(e->word, "taken") != 0 && strcmp(e->word, "later") != 0 &&
               strcmp(e->word, "early") != 0 && strcmp(e->word, "grace") != 0) {
        model_fail(e->w, "turn was answered '%s'", e->word);
    }
    if (is_skipped && e->was_grace)
        model_fail(e->w, "R18: a turn was skipped in grace");
    check_early(e);
    if (k < e->w->turns.n_dues && strcmp(e->word, "later") == 0)
        check_later(e, k);
    if (k < e->w->turns.n_dues && (is_ok || is_skipped))
        note_decided(e, k, is_skipped ? e->m->sessions[id_number(e->args[0])].host + 1 : 0);
}

/* A late commit of a host that has given the run up. A real berthd does not, because it keeps the run in
 * waiting/RUN. The run never begins. Its turn ends with the session, or with a sync that does not name
 * it. */
static void note_committed(struct world *w, const struct run *r) {
    struct due *due = &w->turns.dues[r->turn.due];

    due->committer = r->id + 1;
    if (has_given_up(r))
        due->excused = true;
}

/* If the reply was lost, the run gives its turn back again, and a sync may have restored its claim. The
 * first delay lasts (R6). */
static void note_given_back(struct effect *e) {
    unsigned c = id_number(e->args[4]);
    struct due *due = &e->w->turns.dues[e->w->runs[c].turn.due];

    if (e->m->claims[c].state == 0 || (due->back_by == c + 1 && due->back_epoch == e->w->epochs.n_begun))
        return;
    due->is_at_once = rules_number(e->args[6]) == 0;
    due->not_before = due->is_at_once ? 0 : world_redis_time(e->w) + rules_number(e->args[6]) * USEC_PER_MSEC;
    due->back_epoch = e->w->epochs.n_begun;
    due->back_by = c + 1;
}

/* --- stop and hosts --- */

/* Returns whether a host had the turn and none has it any more, so that the turn is open or over. After a
 * loss of data Redis may not know of the turn, which can be taken again. */
static bool is_left(const struct effect *e, const struct due *due) {
    const struct m_claim *claim = due->holder > 0 ? &e->m->claims[due->holder - 1] : NULL;

    return claim && due->known_epoch == e->w->epochs.n_begun && due->skipped_by == 0 && claim->state == 0 && !e->m->sessions[claim->session].ending;
}

/* Returns how many claims of the job are held, or wait, by sessions other than `own`. */
static unsigned count_claims(const struct effect *e, bool is_held, unsigned own) {
    unsigned n = 0;

    for (unsigned c = 0; c < e->w->n_runs; c++) {
        const struct m_claim *claim = &e->m->claims[c];

        if (!is_held && claim->revoked) /* in no queue any more */
            continue;
        n += claim->state != 0 && claim->permits[0] > 0 && claim->session != own &&
             (claim->state == 'H') == is_held && (claim->state != 'P' || claim->parked_at == 0);
    }
    return n;
}

#define STOPS_NAMED 16 /* claims of a kind, of all sessions */

static void check_others(const struct effect *e, const redisReply *list) {
    unsigned own = id_number(e->args[0]), n[2] = {0};
    unsigned held = count_claims(e, true, own), waiting = count_claims(e, false, own);
    bool is_all = count_claims(e, false, SESSIONS_MAX) <= STOPS_NAMED;

    for (size_t i = 0; reply_at(list, i); i++)
        n[reply_number(reply_at(reply_at(list, i), 2)) == 1]++;
    if (n[1] != held || (is_all && n[0] != waiting))
        model_fail(e->w, "R18: stop names %u held and %u waiting claims of others; there are %u and %u",
                   n[1], n[0], held, waiting);
}

static void rules_stop(struct effect *e) {
    if (strcmp(e->word, "grace") == 0 && !e->was_grace && !e->new_epoch)
        model_fail(e->w, "R18: stop is refused, and there is no grace");
    if (strcmp(e->word, "ok") != 0)
        return;
    if (e->was_grace)
        model_fail(e->w, "R18: turns are stopped in grace");
    for (unsigned k = 0; k < e->w->turns.n_dues; k++) {
        struct due *due = &e->w->turns.dues[k];

        if (!is_left(e, due))
            continue;
        due->is_open = false;
        due->excused = true;
        due->stopped_epoch = e->w->epochs.n_begun;
    }
    check_others(e, reply_at(e->reply, 4));
}

static void rules_hosts(struct effect *e) {
    const redisReply *hosts = reply_at(e->reply, 3), *turns = reply_at(e->reply, 4);
    unsigned n = 0;

    if (strcmp(e->word, "ok") != 0)
        return;
    for (unsigned s = 0; s < SESSIONS_MAX; s++) {
        if (e->m->sessions[s].ending)
            return; /* its parts go one after the other */
        n += e->m->sessions[s].live && e->m->sessions[s].is_declared[0] &&
             !e->m->sessions[s].is_host_scoped[0];
    }
    if (!hosts || hosts->elements != 2 * n)
        model_fail(e->w, "R18: %zu hosts define the job, not %u", hosts ? hosts->elements / 2 : 0, n);
    for (size_t i = 0; reply_at(turns, i); i++) {
        unsigned k = vturn_find(e->w, reply_number(reply_at(reply_at(turns, i), 0)));

        if (k == e->w->turns.n_dues || e->w->turns.dues[k].stopped_epoch == e->w->epochs.n_begun)
            model_fail(e->w, "R18: due time %u is open after it was stopped", k);
    }
}

void rules_turned(struct effect *e) {
    if (strcmp(e->args[3], "stop") == 0)
        rules_stop(e);
    if (strcmp(e->args[3], "hosts") == 0)
        rules_hosts(e);
    if (strcmp(e->args[3], "back") == 0)
        note_given_back(e);
    if (strcmp(e->args[3], "commit") == 0 && strcmp(e->word, "ok") == 0)
        note_committed(e->w, &e->w->runs[id_number(e->args[4])]);
    rules_ended_turn(e);
}

/* --- processes --- */

/* Open turns are void, and so are turns whose hosts have not received the reply. A skip that Redis has kept
 * is answered again. */
void rules_turn_epoch_begun(struct world *w) {
    for (unsigned k = 0; k < w->turns.n_dues; k++) {
        struct due *due = &w->turns.dues[k];
        const struct turn_run *holder = due->holder > 0 ? &w->runs[due->holder - 1].turn : NULL;

        if (due->is_open || (holder && !holder->taken && !is_kept(&w->redis.now, due->holder - 1)))
            due->excused = true;
    }
}

void rules_turn_grace_ended(struct world *w) {
    for (unsigned k = 0; k < w->turns.n_dues; k++) {
        bool told = false;

        for (unsigned i = 0; i < w->setup.n_hosts; i++)
            told = told || (w->hosts[i].up && strcmp(w->hosts[i].turns.epoch, w->redis.now.epoch) == 0 &&
                            w->hosts[i].turns.mark >= vturn_due(w, k));
        if (told)
            w->turns.dues[k].known_epoch = w->epochs.n_begun;
        else if (w->turns.dues[k].last_attempt > 0)
            w->turns.dues[k].untold = true;
    }
}

void check_turn_start(struct world *w, const struct run *r) {
    struct due *due = &w->turns.dues[r->turn.due];
    bool was = due->last_attempt > 0;

    if (r->turn.attempt >= ATTEMPTS_MAX)
        return;
    if (was && due->starts[r->turn.attempt] > 0 && !due->untold)
        model_fail(w, "R18: attempt %u of due time %u is begun by c%u, and was begun before", r->turn.attempt, r->turn.due, r->id);
    else if (was && !due->given_back && strcmp(w->turns.again, "-") == 0 && !due->untold)
        model_fail(w, "R18: due time %u is begun again by c%u, and no host gave it back", r->turn.due,
                   r->id);
    due->starts[r->turn.attempt]++;
    due->last_attempt = r->turn.attempt;
    due->given_back = false;
}

void check_turns_done(struct world *w) {
    for (unsigned i = 0; i < w->setup.n_hosts && w->turns.is_on; i++) {
        const struct turn_host *t = &w->hosts[i].turns;

        if (t->asking < RUNS_MAX && w->runs[t->asking].state < RUN_RELEASING)
            model_fail(w, "R18: h%u still asks by c%u, its state is %d", i, t->asking, w->runs[t->asking].state);
        if (t->next < w->turns.n_dues)
            model_fail(w, "R18: h%u does not ask for due time %u", i, t->next);
        for (unsigned k = 0; k < w->turns.n_dues; k++)
            if (t->open_at[k] > 0 && t->open_at[k] < w->now + 2 * w->longest)
                model_fail(w, "R18: h%u does not ask for due time %u, which is open", i, k);
    }
}

void check_turns(struct world *w) {
    for (unsigned k = 0; k < w->turns.n_dues; k++) {
        const struct due *due = &w->turns.dues[k];

        if (due->last_attempt == 0 && !due->skipped && !due->excused && !w->operators.ended_grace)
            model_fail(w, "R18: no host began due time %u, and no host logged why", k);
    }
}
