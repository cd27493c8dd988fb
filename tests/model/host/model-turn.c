/* SPDX-License-Identifier: MIT */

/* The turns of virtual hosts (R18): when a host asks for a due time, commits it, gives it back, and what it reports after a new
 * epoch. model-turn-answer.c has what it learns. */

#include <stdlib.h>
#include <string.h>

#include "tests/model/model-internal.h"

#define NOBODY RUNS_MAX

/* $MODEL_DUES, or the default. */
static unsigned count_dues(void) {
    const char *text = getenv("MODEL_DUES");
    unsigned long n = text ? strtoul(text, NULL, 10) : 0;

    return n > 0 && n <= DUES_MAX ? (unsigned) n : DUES_DEFAULT;
}

void vturn_init(struct world *w) {
    static const char *const overlaps[] = {"skip", "skip", "queue"};
    uint64_t dice = model_mix(w->setup.seed, 501);

    w->setup.limits[0] = 1;
    w->turns.overlap = overlaps[dice % 3];
    w->turns.again[0] = '-';
    if (dice / 3 % 2 == 0)
        (void) snprintf(w->turns.again, sizeof(w->turns.again), "%" PRIu64,
                        (uint64_t) (uint32_t) (dice / 6 % 2 * (w->setup.lease / 5000)));
    w->turns.n_dues = count_dues();
    w->turns.period = (1 + model_mix(dice, 1) % (w->setup.lease / USEC_PER_SEC)) * USEC_PER_SEC;
    if (w->turns.n_dues > DUES_DEFAULT) /* all of them while there are faults */
        w->turns.period = (1 + 6 * w->setup.lease / USEC_PER_SEC / w->turns.n_dues) * USEC_PER_SEC;
    for (unsigned k = 0; k < w->turns.n_dues; k++)
        w->turns.dues[k].at = (2 + w->setup.lease / USEC_PER_SEC / 2) * USEC_PER_SEC + k * w->turns.period;
    for (unsigned i = 0; i < w->setup.n_hosts; i++) {
        struct turn_host *t = &w->hosts[i].turns;

        w->hosts[i].config.limits[0] = 1;
        t->asking = t->spare = NOBODY;
        t->skew = (int64_t) (model_mix(dice, 10 + i) % (8 * USEC_PER_SEC)) - (int64_t) (4 * USEC_PER_SEC);
        if (model_mix(dice, 20 + i) % 16 == 0)
            t->skew += (int64_t) (86400 * USEC_PER_SEC); /* early */
    }
}

uint64_t vturn_due(const struct world *w, unsigned due) {
    return 1700000000 + w->turns.dues[due].at / USEC_PER_SEC;
}

unsigned vturn_find(const struct world *w, uint64_t due) {
    unsigned k = 0;

    while (k < w->turns.n_dues && vturn_due(w, k) != due)
        k++;
    return k;
}

/* Returns how long a host waits before it asks. The order of hosts differs for each due time. */
usec_t vturn_wait(const struct world *w, const struct host *h, unsigned due) {
    return model_mix(w->setup.seed, 7000 + due * 10 + h->index) % USEC_PER_SEC;
}

static usec_t due_at(const struct world *w, const struct host *h) {
    int64_t at;

    if (h->turns.next == w->turns.n_dues)
        return USEC_INFINITY;
    at = (int64_t) (w->turns.dues[h->turns.next].at + vturn_wait(w, h, h->turns.next)) - h->turns.skew;
    return at > 0 ? (usec_t) at : 0;
}

static usec_t later(usec_t a, usec_t b) {
    return a > b ? a : b;
}

static bool may_ask(const struct host *h) {
    return h->up && h->phase == HOST_LIVE && h->heartbeat.answered;
}

static bool is_asking(const struct world *w, const struct host *h) {
    const struct run *r = h->turns.asking != NOBODY ? &w->runs[h->turns.asking] : NULL;

    return r && r->state != RUN_DONE && r->state != RUN_RELEASING; /* withdrawn: it asks by another one */
}

usec_t vturn_next_timer(const struct world *w, const struct host *h) {
    const struct turn_host *t = &h->turns;
    usec_t next = due_at(w, h);

    if (!may_ask(h))
        return USEC_INFINITY;
    for (unsigned k = 0; k < w->turns.n_dues; k++)
        if (t->open_at[k] > 0 && t->open_at[k] < next)
            next = t->open_at[k];
    if (is_asking(w, h))
        next = t->again_at > 0 ? t->again_at : USEC_INFINITY;
    else
        next = later(later(next, t->not_before), t->drained_until);
    if (t->look_at > 0 && t->look_at < next)
        next = t->look_at;
    return next == USEC_INFINITY ? next : later(next, w->now + 1);
}

/* --- calls --- */

void vturn_forget(struct host *h, struct run *r) {
    if (h->turns.asking != r->id)
        return;
    h->turns.asking = NOBODY;
    h->turns.again_at = 0;
}

static void begin(struct host *h, struct redis_command *words) {
    vhost_begin(h, words);
    command_add(words, h->clock.epoch);
}

static void send_about(struct world *w, struct run *r, enum turn_call turn, enum redis_script script, struct redis_command *words) {
    struct batch batch = {.n = 1, .runs = {r->id}, .turn = turn};

    r->calls++;
    world_send(w, &w->hosts[r->host], script, words, HOST_LIVE, &batch);
}

bool vturn_is_unsure(const struct run *r) {
    return r->turn.is && !r->turn.taken && (r->state == RUN_WAITING || r->state == RUN_HELD) &&
           !r->process.started;
}

void vturn_ask(struct world *w, struct run *r) {
    struct host *h = &w->hosts[r->host];
    struct redis_command words = {0};
    char id[16], name[16];

    begin(h, &words);
    command_add(&words, vclaim_id(r, id));
    (void) snprintf(name, sizeof(name), "0 1 run a%u", r->turn.due);
    command_add(&words, name);
    command_add_u64(&words, vturn_due(w, r->turn.due));
    command_add(&words, w->turns.overlap);
    for (unsigned p = 0; p < POOLS_MAX; p++) {
        if (r->permits[p] == 0)
            continue;
        command_add(&words, model_pool(w, p));
        command_add_u64(&words, r->permits[p]);
        command_add_u64(&words, r->queue_limit);
    }
    r->sent = true;
    send_about(w, r, TURN_ASK, REDIS_SCRIPT_TURN, &words);
}

static void send_turned(struct world *w, struct run *r, enum turn_call turn, const char *what) {
    struct host *h = &w->hosts[r->host];
    struct redis_command words = {0};
    char id[16];

    begin(h, &words);
    command_add(&words, what);
    command_add(&words, vclaim_id(r, id));
    if (turn == TURN_COMMIT) {
        command_add(&words, w->turns.again);
        command_add(&words, id);
    }
    if (strcmp(what, "back") == 0) {
        command_add_u64(&words, r->turn.back);
        command_add_u64(&words, r->turn.delay_ms);
        command_add(&words, id);
    }
    send_about(w, r, turn, REDIS_SCRIPT_TURNED, &words);
}

void vturn_commit(struct world *w, struct run *r) {
    if (r->calls == 0 && may_ask(&w->hosts[r->host]))
        send_turned(w, r, TURN_COMMIT, "commit");
}

void vturn_end(struct world *w, struct run *r) {
    vturn_forget(&w->hosts[r->host], r);
    if (!r->process.started && !r->turn.lost && r->turn.back == 0)
        w->turns.dues[r->turn.due].excused = true; /* stopped: it is over */
    send_turned(w, r, TURN_END, r->turn.back > 0 ? "back" : "over");
}

void vturn_process_ended(struct world *w, struct run *r) {
    struct due *due = &w->turns.dues[r->turn.due];

    if (!r->turn.is || r->lost || r->turn.attempt >= 3 || model_mix(w->setup.seed, 9000 + r->id) % 3 > 0)
        return;
    r->turn.back = r->turn.attempt + 1; /* it failed */
    r->turn.delay_ms = model_mix(w->setup.seed, 9500 + r->id) % (w->setup.lease / 1000);
    due->given_back = true;
}

static void look(struct world *w, struct host *h) {
    struct redis_command words = {0};
    struct batch batch = {.turn = TURN_LOOK};

    h->turns.look_at = w->now + vhost_lasts(h, h->config.lease);
    begin(h, &words);
    command_add(&words, "look");
    command_add(&words, "a");
    world_send(w, h, REDIS_SCRIPT_TURNED, &words, HOST_LIVE, &batch);
}

/* Reports the mark and the turns of this host, because a new epoch has none. */
static void report(struct world *w, struct host *h) {
    struct batch batch = {.turn = TURN_TELL};
    struct redis_command words = {0};
    char id[16];

    if (h->turns.mark > 0 && !(w->mutation && w->mutation->no_marks)) {
        begin(h, &words);
        command_add(&words, "marks");
        command_add(&words, "a");
        command_add_u64(&words, h->turns.mark);
        world_send(w, h, REDIS_SCRIPT_TURNED, &words, HOST_LIVE, &batch);
        words = (struct redis_command) {0};
    }
    begin(h, &words);
    command_add(&words, "report");
    world_foreach_run(w, r) {
        if (r->host != h->index || !r->turn.is || !vclaim_is_notified(r) ||
            (!r->process.alive && !r->turn.taken))
            continue;
        command_add(&words, vclaim_id(r, id));
        command_add(&words, r->turn.committed ? "C" : "T");
        command_add(&words, "a");
        command_add_u64(&words, vturn_due(w, r->turn.due));
        command_add_u64(&words, r->turn.attempt);
        command_add(&words, w->turns.again);
        command_add(&words, "-");
    }
    world_send(w, h, REDIS_SCRIPT_TURNED, &words, HOST_LIVE, &batch);
}

void vturn_on_live(struct world *w, struct host *h) {
    if (strcmp(h->turns.epoch, h->clock.epoch) != 0)
        report(w, h);
    h->turns.look_at = w->now + 1;
}

/* --- asking --- */

static struct run *make_run(struct world *w, struct host *h, unsigned due) {
    unsigned id = h->turns.spare != NOBODY ? h->turns.spare : w->n_runs;
    struct run *r = &w->runs[id];

    if (id == RUNS_MAX)
        return NULL;
    h->turns.spare = NOBODY;
    w->n_runs = id == w->n_runs ? id + 1 : w->n_runs;
    *r = (struct run) {.host = h->index, .id = id, .queue_limit = 1000, .state = RUN_ASKED};
    r->turn = (struct turn_run) {.is = true, .due = due, .attempt = 1};
    r->permits[0] = 1;
    if (w->setup.n_pools > 1 && h->config.limits[1] > 0 && !h->config.host_scoped[1] &&
        model_mix(w->setup.seed, 300 + due) % 3 == 0)
        r->permits[1] = 1;
    r->duration = model_mix(w->setup.seed, 400 + r->id) % (w->turns.n_dues > DUES_DEFAULT ? 2 * w->turns.period : w->setup.lease / 2);
    return r;
}

/* The oldest due time that this host may ask for now; n_dues: none. */
static unsigned find_question(const struct world *w, const struct host *h) {
    for (unsigned k = 0; k < w->turns.n_dues; k++)
        if (h->turns.open_at[k] > 0 && h->turns.open_at[k] <= w->now)
            return k;
    return due_at(w, h) <= w->now ? h->turns.next : w->turns.n_dues;
}

static void ask_again(struct world *w, struct host *h) {
    struct run *r = &w->runs[h->turns.asking];

    if (h->turns.again_at == 0 || w->now < h->turns.again_at)
        return;
    h->turns.again_at = 0;
    if (r->calls == 0 && (r->state == RUN_ASKED || vturn_is_unsure(r)))
        vturn_ask(w, r);
}

void vturn_on_timer(struct world *w, struct host *h) {
    struct turn_host *t = &h->turns;
    unsigned due;
    struct run *r;

    if (!may_ask(h))
        return;
    if (t->look_at > 0 && w->now >= t->look_at) {
        look(w, h);
        return;
    }
    due = find_question(w, h);
    if (is_asking(w, h)) {
        ask_again(w, h);
        return;
    }
    if (w->now < t->not_before || w->now < t->drained_until || due == w->turns.n_dues)
        return;
    r = make_run(w, h, due);
    if (!r) {
        model_fail(w, "too many turns for the model");
        return;
    }
    t->asking = r->id;
    vturn_ask(w, r);
}

void vturn_drain(struct world *w, struct host *h, usec_t duration) {
    h->turns.drained_until = w->now + duration;
    world_foreach_run(w, r) {
        if (r->host != h->index || !r->turn.is || !r->turn.taken || r->process.started ||
            r->state < RUN_WAITING || r->state > RUN_HELD || !h->up)
            continue;
        r->turn.back = r->turn.attempt;
        w->turns.dues[r->turn.due].is_open = true;
        vclaim_release(w, r);
    }
}

bool vturn_is_done(const struct world *w) {
    if (!w->turns.is_on)
        return true;
    for (unsigned i = 0; i < w->setup.n_hosts; i++) {
        const struct turn_host *t = &w->hosts[i].turns;

        if (is_asking(w, &w->hosts[i]) || t->next < w->turns.n_dues)
            return false;
        for (unsigned k = 0; k < w->turns.n_dues; k++)
            if (t->open_at[k] > 0 && t->open_at[k] < w->now + 2 * w->longest) /* else Redis's clock was set back during its delay */
                return false;
    }
    return true;
}
