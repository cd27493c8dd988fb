/* SPDX-License-Identifier: MIT */

/* Steps of operators: overrides, a revoked run, the end of a grace period. */

#include <string.h>

#include "tests/model/model-sequence.h"

void operator_override(struct world *w, struct host *h, const struct step *s) {
    const char *kind = s->kind == STEP_OVERRIDE ? "set" : s->kind == STEP_CLEAR ? "clear" : s->kind == STEP_PAUSE ? "pause" : "resume";
    unsigned p = (unsigned) (s->a % w->setup.n_pools);
    uint64_t id = s->c % (STEPS_MAX + 1);
    struct redis_command words = {0};
    char by[24];

    if (!h->up || h->phase != HOST_LIVE || h->frozen_until > w->now)
        return;
    if (w->operators.versions[id] == 0) /* else it is a resend */
        w->operators.versions[id] = h->overrides.of_pool[p].version + 1;
    vhost_begin(h, &words);
    command_add(&words, h->clock.epoch);
    command_add(&words, model_pool(w, p));
    command_add_u64(&words, w->operators.versions[id] - 1);
    (void) snprintf(by, sizeof(by), "by%" PRIu64, id > 0 ? id : 1000 + w->operators.n++);
    if (id == 0)
        w->operators.versions[0] = 0;
    command_add(&words, by);
    command_add(&words, kind);
    command_add_u64(&words, s->b);
    command_add_u64(&words, s->d);
    command_add(&words, "why");
    world_send(w, h, REDIS_SCRIPT_OVERRIDE, &words, HOST_LIVE, NULL);
}

void operator_revoke(struct world *w, struct host *h, const struct step *s) {
    struct redis_command words = {0};
    char id[24];

    if (!h->up || h->phase != HOST_LIVE || w->n_runs == 0 || h->frozen_until > w->now)
        return;
    (void) snprintf(id, sizeof(id), "c%u", (unsigned) (s->a % w->n_runs));
    vhost_begin(h, &words);
    command_add(&words, h->clock.epoch);
    command_add(&words, id);
    command_add(&words, "enough");
    world_send(w, h, REDIS_SCRIPT_REVOKE, &words, HOST_LIVE, NULL);
}

/* Ends the open turns of the job, or asks which hosts define it. */
void operator_turns(struct world *w, struct host *h, const char *what) {
    struct redis_command words = {0};

    if (!h->up || h->phase != HOST_LIVE || h->frozen_until > w->now)
        return;
    vhost_begin(h, &words);
    command_add(&words, h->clock.epoch);
    command_add(&words, what);
    command_add(&words, model_pool(w, 0));
    world_send(w, h, REDIS_SCRIPT_TURNED, &words, HOST_LIVE, NULL);
}

/* Returns the run of a waiting claim, if there is one. */
static unsigned some_claim(const struct world *w, uint64_t which) {
    unsigned waiting[RUNS_MAX], n = 0;

    for (unsigned i = 0; i < w->n_runs; i++)
        if (w->redis.now.claims[i].state == 'W' || w->redis.now.claims[i].state == 'P')
            waiting[n++] = i;
    return n > 0 && which % 8 > 0 ? waiting[which % n] : (unsigned) (which % w->n_runs);
}

void operator_move(struct world *w, struct host *h, const struct step *s) {
    static const char *const kinds[] = {"first", "before", "before", "by", "by"};
    struct redis_command words = {0};
    char id[24], other[24];

    if (!h->up || h->phase != HOST_LIVE || w->n_runs == 0 || h->frozen_until > w->now)
        return;
    (void) snprintf(id, sizeof(id), "c%u", some_claim(w, s->a));
    vhost_begin(h, &words);
    command_add(&words, h->clock.epoch);
    command_add(&words, id);
    command_add(&words, kinds[s->b]);
    if (s->b == 0)
        (void) snprintf(other, sizeof(other), "-");
    else if (s->b < 3)
        (void) snprintf(other, sizeof(other), "c%u", some_claim(w, s->c));
    else
        (void) snprintf(other, sizeof(other), "%s%" PRIu64, s->b == 4 ? "-" : "", s->d);
    command_add(&words, other);
    world_send(w, h, REDIS_SCRIPT_MOVE, &words, HOST_LIVE, NULL);
}

/* An operator may end grace only if Redis knows all runs and no other run can still begin. */
static bool may_end_grace(const struct world *w) {
    if (w->redis.now.empty || !*w->redis.now.epoch || w->redis.now.replid != w->redis.replid)
        return false;
    for (unsigned i = 0; i < w->setup.n_hosts; i++)
        if (w->hosts[i].up &&
            (w->hosts[i].phase != HOST_LIVE || strcmp(w->hosts[i].clock.epoch, w->redis.now.epoch) != 0))
            return false;
    for (const struct run *r = w->runs; r < w->runs + w->n_runs; r++)
        if (r->process.alive && !r->process.over_lease &&
            (w->redis.now.claims[r->id].state != 'H' || !w->hosts[r->host].up))
            return false;
    return true;
}

void operator_end_grace(struct world *w, struct host *h) {
    if (h->up && h->phase == HOST_LIVE && h->frozen_until <= w->now && h->clock.grace && may_end_grace(w)) {
        w->operators.ended_grace = true;
        h->heartbeat.ends_grace = true;
        vheartbeat_send(w, h);
    }
}
