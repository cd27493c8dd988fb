/* SPDX-License-Identifier: MIT */

/* What hosts learn of turns from replies and pushes, and what they lose with a session or their berthd. */

#include <string.h>

#include "tests/model/model-internal.h"

static void note_decided(const struct world *w, struct host *h, uint64_t mark) {
    struct turn_host *t = &h->turns;

    if (mark > t->mark)
        t->mark = mark;
    while (t->next < w->turns.n_dues && vturn_due(w, t->next) <= mark)
        t->next++;
}

static void note_open(struct world *w, const struct host *h, const struct run *r) {
    struct due *due = &w->turns.dues[r->turn.due];

    due->is_open = true;
    if (r->turn.committed || due->committer == r->id + 1 || strcmp(h->turns.epoch, w->redis.now.epoch) != 0)
        due->excused = true;
}

/* The host or its session is lost. Another host may take the turn. In a new epoch or after the commit the
 * turn is over. */
static void note_lost(struct world *w, const struct host *h, const struct run *r) {
    if (!r->process.started && r->state != RUN_DONE && (r->turn.taken || r->state != RUN_ASKED || r->sent))
        note_open(w, h, r);
}

void vturn_lose(struct world *w, struct run *r) {
    struct host *h = &w->hosts[r->host];

    if (r->state == RUN_ASKED) { /* it asks again */
        r->sent = false;
        if (w->turns.dues[r->turn.due].holder == r->id + 1) /* the turn was this host's, which got no reply */
            note_open(w, h, r);
        return;
    }
    vturn_forget(h, r);
    note_lost(w, h, r);
    r->state = RUN_DONE;
}

void vturn_crash(struct world *w, struct host *h) {
    for (unsigned k = 0; k < w->turns.n_dues; k++)
        if (w->turns.dues[k].skipped_by == h->index + 1) /* only this host could log the skip */
            w->turns.dues[k].excused = true;
    h->turns.asking = RUNS_MAX;
    h->turns.look_at = 0;
    h->turns.not_before = h->turns.again_at = 0;
    memset(h->turns.open_at, 0, sizeof(h->turns.open_at));
    world_foreach_run(w, r) {
        if (r->host != h->index || !r->turn.is || r->state == RUN_NONE || r->process.alive)
            continue;
        note_lost(w, h, r);
        r->state = RUN_DONE;
    }
    h->turns.epoch[0] = '\0';
}

static usec_t later_question(const struct world *w, const struct run *r) {
    return w->now + USEC_PER_SEC + model_mix(w->setup.seed, 600 + r->id) % (w->setup.lease / 4);
}

/* reply: NULL if Redis is full. The same run asks again then, because Redis may have kept its answer. */
static void on_asked(struct world *w, struct host *h, struct run *r, const redisReply *reply) {
    const char *word = reply_word(reply_at(reply, 0));
    struct due *due = &w->turns.dues[r->turn.due];
    usec_t ms = reply_number(reply_at(reply, 3));

    if (!reply) {
        h->turns.asking = r->id;
        h->turns.again_at = later_question(w, r);
        return;
    }
    vturn_forget(h, r);
    if (strcmp(word, "ok") == 0) {
        size_t n = reply ? reply->elements : 0, at = 9;

        r->turn.taken = true;
        r->turn.attempt = (unsigned) reply_number(reply_at(reply, at));
        for (size_t i = at + 2; i < n; i++) {
            unsigned k = vturn_find(w, reply_number(reply_at(reply_at(reply, i), 0)));

            if (k < w->turns.n_dues)
                w->turns.dues[k].excused = true; /* it gave up */
        }
        h->turns.open_at[r->turn.due] = 0;
        note_decided(w, h, vturn_due(w, r->turn.due));
        vbatch_on_reply(w, h, &(struct batch) {.n = 1, .runs = {r->id}}, reply);
        vclaim_start_notified(w, h);
        return;
    }
    r->state = RUN_DONE;
    if (strcmp(word, "skipped") != 0)
        h->turns.spare = r->id;
    if (strcmp(word, "later") == 0) {
        h->turns.open_at[r->turn.due] = w->now + ms * 1000 + vturn_wait(w, h, r->turn.due);
        note_decided(w, h, vturn_due(w, r->turn.due));
        return;
    }
    if (strcmp(word, "taken") != 0 && strcmp(word, "skipped") != 0) { /* grace, early */
        h->turns.not_before = later_question(w, r);
        return;
    }
    h->turns.open_at[r->turn.due] = 0;
    due->skipped = due->skipped || *word == 's';
    note_decided(w, h, *word == 's' ? vturn_due(w, r->turn.due) : ms);
}

static void on_committed(struct world *w, struct host *h, struct run *r, const redisReply *reply) {
    const char *word = reply_word(reply_at(reply, 0));

    if (strcmp(word, "ok") == 0)
        r->turn.committed = true;
    else if (strcmp(word, "lost") == 0 && r->state == RUN_HELD && !r->process.started) {
        r->turn.lost = true;
        vclaim_release(w, r);
    }
    vclaim_start_notified(w, h);
}

static void on_look(struct world *w, struct host *h, const redisReply *list) {
    note_decided(w, h, reply_number(reply_at(list, 1)));
    for (size_t i = 2; reply_at(list, i); i++) {
        unsigned k = vturn_find(w, reply_number(reply_at(reply_at(list, i), 0)));

        if (k < w->turns.n_dues && h->turns.open_at[k] == 0)
            h->turns.open_at[k] = w->now + 1 + reply_number(reply_at(reply_at(list, i), 2)) * 1000 + vturn_wait(w, h, k);
    }
}

void vturn_on_reply(struct world *w, struct host *h, const struct batch *batch, const redisReply *reply) {
    struct run *r = &w->runs[batch->runs[0]];

    switch (batch->turn) {
    case TURN_ASK:
        if (r->state == RUN_ASKED || vturn_is_unsure(r))
            on_asked(w, h, r, reply);
        break;
    case TURN_COMMIT:
        on_committed(w, h, r, reply);
        break;
    case TURN_END:
        vbatch_on_reply(w, h, &(struct batch) {.n = 1, .runs = {r->id}, .release = true}, reply);
        if (r->turn.back > 0 && h->turns.open_at[r->turn.due] == 0)
            h->turns.open_at[r->turn.due] = w->now + r->turn.delay_ms * 1000 + 2 * USEC_PER_SEC;
        break;
    case TURN_TELL:
        (void) snprintf(h->turns.epoch, sizeof(h->turns.epoch), "%s", h->clock.epoch);
        break;
    case TURN_LOOK:
        on_look(w, h, reply_at(reply, 3));
        break;
    case TURN_NONE:
        break;
    }
}

void vturn_on_push(struct world *w, struct host *h, const char *text) {
    uint64_t due = 0, ms = 0;
    unsigned k;

    if (sscanf(text, "turn %*s %*u %*u %*s %" SCNu64 " %*u %" SCNu64, &due, &ms) != 2)
        return;
    k = vturn_find(w, due);
    if (k < w->turns.n_dues)
        h->turns.open_at[k] = w->now + ms * 1000 + vturn_wait(w, h, k);
}
