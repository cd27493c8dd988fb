/* SPDX-License-Identifier: MIT */

/* The steps of a sequence: what hosts ask for, and what befalls hosts, network and Redis. */

#include <string.h>

#include "tests/model/model-sequence.h"

/* Returns the limit of a pool: its own, or that of its pattern; 0: it is not declared, or has scope host. */
static uint32_t limit_for(const struct world *w, unsigned pool, const uint32_t *limits, const bool *host_scoped) {
    bool is_own = limits[pool] > 0 || host_scoped[pool];
    unsigned p = model_is_key(w, pool) && !is_own ? POOL_PATTERN : pool;

    return host_scoped[p] ? 0 : limits[p];
}

static void step_claim(struct world *w, struct host *h, const struct step *s) {
    struct run *r = &w->runs[w->n_runs];
    uint32_t sum = 0;

    if (!h->up || h->frozen_until > w->now || w->n_runs >= CLAIMS_MAX - (w->turns.is_on ? 2 * DUES_DEFAULT : 0))
        return;
    *r = (struct run) {.host = h->index, .id = w->n_runs, .head = s->b, .nowait = s->c & 1, .keep = s->c & 2, .duration = s->d,
                       .queue_limit = s->c >> 2 > 0 ? (uint32_t) (s->c >> 2) : 1000};
    for (unsigned p = 0; p < w->setup.n_pools; p++) {
        r->permits[p] = (uint32_t) (s->a >> (8 * p)) & 0xff;
        if (limit_for(w, p, h->config.limits, h->config.host_scoped) == 0 ||
            (w->setup.has_keys && p == POOL_PATTERN))
            r->permits[p] = 0;
        if (r->permits[p] > limit_for(w, p, w->setup.limits, (const bool[POOLS_MAX]){false}))
            r->permits[p] = limit_for(w, p, w->setup.limits, (const bool[POOLS_MAX]){false});
        sum += r->permits[p];
    }
    if (sum == 0 && h->config.host_scoped[0]) /* Redis knows nothing of host pools */
        return;
    if (sum == 0)
        r->permits[0] = 1;
    w->n_runs++;
    world_trace(w, "h%u: c%u asks for %u %u %u", h->index, r->id, r->permits[0], r->permits[1], r->permits[2]); /* none has permits of a pattern */
    vclaim_request(w, r);
}

/* Several claims of one permit of one pool, in one turn. */
static void step_claims(struct world *w, struct host *h, const struct step *s) {
    unsigned p = (unsigned) (s->a % (w->setup.has_keys ? POOL_PATTERN : w->setup.n_pools)),
             n = 2 + (unsigned) (s->c & 7) % 5;

    for (unsigned i = 0; i < n; i++)
        step_claim(w, h, &(struct step) {.a = 1u << (8 * p), .b = (s->c >> (8 + i) & 1) != 0 ? s->b : 0, .c = s->c >> 16 << 2,
                                         .d = (s->c & 8) != 0 ? s->d : s->d / (i + 1)});
}

static void withdraw_one(struct world *w, struct host *h, uint64_t which) {
    unsigned n = 0;

    for (unsigned pass = 0; pass < 2; pass++) {
        unsigned k = 0;

        world_foreach_run(w, r) {
            if (r->host != h->index || !h->up || r->state < RUN_ASKED || r->state > RUN_HELD)
                continue;
            if (pass == 1 && k++ == which % n) {
                r->process.alive = false;
                vclaim_release(w, r);
                return;
            }
            n += pass == 0;
        }
        if (n == 0)
            return;
    }
}

static void step_withdraw(struct world *w, struct host *h, const struct step *s) {
    for (uint64_t i = 0; i <= s->b; i++)
        withdraw_one(w, h, s->a + i);
}

static void step_bye(struct world *w, struct host *h) {
    struct redis_command words = {0};

    if (!h->up || h->phase == HOST_DOWN)
        return;
    vhost_begin(h, &words);
    vturn_crash(w, h);
    world_foreach_run(w, r) {
        if (r->host != h->index)
            continue;
        r->process.alive = false;
        r->state = RUN_DONE;
    }
    world_send(w, h, REDIS_SCRIPT_BYE, &words, h->phase, NULL);
    vhost_crash(w, h);
    h->file.exists = false;
    h->replaced = h->session;
}

static void break_all(struct world *w) {
    for (unsigned i = 0; i < w->setup.n_hosts; i++)
        if (w->hosts[i].up && w->hosts[i].phase != HOST_DOWN)
            world_break(w, &w->hosts[i], world_draw(w, w->setup.heartbeat / 4));
}

/* Events that were put off until then must not be overtaken. */
static usec_t longer(usec_t until, usec_t other) {
    return until > other ? until : other;
}

static void step_clock(struct world *w, usec_t by, bool back) {
    w->redis.skew += back ? -(int64_t) by : (int64_t) by;
    w->redis.was_ahead = w->redis.was_ahead || !back;
    w->redis.stepped = w->now;
}

static void step_redis(struct world *w, const struct step *s) {
    switch (s->kind) {
    case STEP_WIPE:
    case STEP_FLUSH:
        bridge_wipe(w->bridge);
        rules_begin(w);
        break;
    case STEP_RESTORE:
        if (!w->redis.has_saved)
            return;
        bridge_restore(w->bridge);
        w->redis.now = w->redis.saved;
        break;
    case STEP_BACK: /* the whole machine of Redis goes back, so its connections break */
        if (!w->redis.has_saved || w->redis.saved.replid != w->redis.replid)
            return;
        bridge_restore(w->bridge);
        w->redis.now = w->redis.saved;
        w->redis.went_back = w->redis.stepped = w->now;
        break_all(w);
        return;
    case STEP_SAVE:
        bridge_save(w->bridge);
        w->redis.saved = w->redis.now;
        w->redis.has_saved = true;
        return;
    default:
        break;
    }
    if (s->kind == STEP_FLUSH)
        return;
    if (s->a / 2 % 3 == 0) /* it comes back where the clock is behind */
        step_clock(w, s->a % w->setup.lease, true);
    w->redis.stepped = w->now;
    w->redis.replid++;
    if (s->a % 2 == 0) /* a replica promoted and demoted again can keep connections */
        break_all(w);
}

/* Name and lease are of a config that is read when berthd starts. */
static void change_config(struct world *w, struct host *h, unsigned name, usec_t lease) {
    h->config.name = name;
    h->config.lease = lease;
    w->longest = lease > w->longest ? lease : w->longest;
}

static void step_end_berthd(struct world *w, struct host *h, const struct step *s) {
    unsigned session = h->session;

    if (!h->up)
        return;
    if (s->kind == STEP_BYE) {
        step_bye(w, h);
    } else {
        if (s->kind == STEP_REBOOT)
            world_foreach_run (w, r)
                if (r->host == h->index)
                    r->process.alive = false;
        vhost_crash(w, h);
        if (s->kind == STEP_REBOOT || s->kind == STEP_LOSE_FILE)
            h->file.exists = false;
        h->replaced = s->kind == STEP_REBOOT ? session : 0;
        if (s->kind == STEP_NAME)
            change_config(w, h, (unsigned) s->b % w->setup.n_hosts, h->config.lease);
    }
    h->start_at = w->now + 1 + s->a;
}

/* One host alone; or all of them: the others are stopped before and started after it. */
static void step_lease(struct world *w, struct host *h, const struct step *s) {
    usec_t lease = s->b == 0 ? w->setup.lease : s->b == 1 ? w->setup.lease / 2 : w->setup.lease * 2;

    for (unsigned i = 0; s->c == 1 && i < w->setup.n_hosts; i++)
        if (i != h->index) {
            step_end_berthd(w, &w->hosts[i],
                            &(struct step){.kind = STEP_BYE, .a = s->a + w->setup.heartbeat});
            change_config(w, &w->hosts[i], w->hosts[i].config.name, lease);
        }
    step_end_berthd(w, h, s);
    change_config(w, h, h->config.name, lease);
}

/* The host with the newest token is gone, and no other host received that token. The numbers that the others remember must suffice. */
void world_disaster(struct world *w) {
    struct host *h = &w->hosts[w->disaster.host];

    w->disaster.phase = DISASTER_NONE;
    world_trace(w, "-- h%u and Redis' data are lost", h->index);
    step_end_berthd(w, h, &(struct step){.kind = STEP_REBOOT, .a = 3 * w->setup.lease});
    step_redis(w, &(struct step) {.kind = STEP_WIPE, .a = 2});
    step_clock(w, 3600 * USEC_PER_SEC, true);
}

/* --- each kind of step: these four ignore the kinds of the others --- */

static void take_host_step(struct world *w, struct host *h, const struct step *s) {
    switch (s->kind) {
    case STEP_CLAIM:
        step_claim(w, h, s);
        break;
    case STEP_CLAIMS:
        step_claims(w, h, s);
        break;
    case STEP_WITHDRAW:
        step_withdraw(w, h, s);
        break;
    case STEP_CRASH:
    case STEP_REBOOT:
    case STEP_LOSE_FILE:
    case STEP_BYE:
    case STEP_NAME:
        step_end_berthd(w, h, s);
        break;
    case STEP_LEASE:
        step_lease(w, h, s);
        break;
    case STEP_FREEZE:
        h->frozen_until = longer(h->frozen_until, w->now + s->a);
        break;
    case STEP_DISASTER:
        w->disaster.phase = DISASTER_ARMED;
        break;
    default:
        break;
    }
}

static void take_network_step(struct world *w, struct host *h, const struct step *s) {
    switch (s->kind) {
    case STEP_CUT:
        h->network.cut_until = w->now + s->a;
        world_break(w, h, w->setup.heartbeat / 2);
        break;
    case STEP_LOSE_CALL:
        h->network.lose_call = true;
        break;
    case STEP_LOSE_ANSWER:
        h->network.lose_answer = true;
        break;
    case STEP_LOSE_PUSH:
        h->network.lose_push = true;
        break;
    case STEP_STALL_CALL:
        h->network.stall_call = s->a;
        break;
    case STEP_STALL_ANSWER:
        h->network.stall_answer = s->a;
        break;
    case STEP_STALL_PUSH:
        h->network.stall_push = s->a;
        break;
    case STEP_TWICE:
        h->network.twice = true;
        break;
    case STEP_RECONNECT:
        vhost_down(w, h, 1);
        break;
    default:
        break;
    }
}

static void take_redis_step(struct world *w, const struct step *s) {
    switch (s->kind) {
    case STEP_WIPE:
    case STEP_FLUSH:
    case STEP_RESTART:
    case STEP_SAVE:
    case STEP_RESTORE:
    case STEP_BACK:
        step_redis(w, s);
        break;
    case STEP_AGAIN: /* the same older copy as before, or a twin of the replica that was promoted before */
        step_redis(w, &(struct step) {.kind = STEP_RESTORE, .a = s->a});
        break;
    case STEP_REDIS_FROZEN:
        w->redis.frozen_until = longer(w->redis.frozen_until, w->now + s->a);
        break;
    case STEP_CLOCK:
        step_clock(w, s->a, s->b % 2 == 1);
        break;
    case STEP_FULL:
        w->redis.full_until = w->now + s->a;
        break;
    case STEP_REPLICA:
        w->redis.replica_until = w->now + s->a;
        w->redis.replid++; /* nobody reads it before it is promoted */
        break;
    default:
        break;
    }
}

/* pool: of a limit or a scope. */
static void take_operator_step(struct world *w, struct host *h, const struct step *s, unsigned pool) {
    switch (s->kind) {
    case STEP_LIMIT:
        h->config.limits[pool] = (uint32_t) s->b;
        vhost_declare(w, h);
        break;
    case STEP_SCOPE:
        h->config.host_scoped[pool] = s->b == 1;
        vhost_declare(w, h);
        break;
    case STEP_OVERRIDE:
    case STEP_CLEAR:
    case STEP_PAUSE:
    case STEP_RESUME:
        operator_override(w, h, s);
        break;
    case STEP_REVOKE:
        operator_revoke(w, h, s);
        break;
    case STEP_MOVE:
        operator_move(w, h, s);
        break;
    case STEP_GRACE:
        operator_end_grace(w, h);
        break;
    case STEP_DRAIN:
        vturn_drain(w, h, s->a);
        break;
    case STEP_STOP:
        operator_turns(w, h, "stop");
        break;
    case STEP_HOSTS:
        operator_turns(w, h, "hosts");
        break;
    default:
        break;
    }
}

void world_step(struct world *w, const struct step *s) {
    struct host *h = &w->hosts[s->host % w->setup.n_hosts];
    unsigned p = (unsigned) (s->a % w->setup.n_pools);

    world_trace(w, "-- %s h%u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64, step_name(s->kind), h->index, s->a, s->b, s->c, s->d);
    if (w->turns.is_on && p == 0 &&
        (s->kind == STEP_LIMIT || s->kind == STEP_OVERRIDE || s->kind == STEP_SCOPE ||
         s->kind == STEP_RESUME))
        return; /* no config names the pool of a job, and it has one permit */
    take_host_step(w, h, s);
    take_network_step(w, h, s);
    take_redis_step(w, s);
    take_operator_step(w, h, s, p);
    world_end_turn(w);
}

void world_heal(struct world *w) {
    world_trace(w, "-- all faults end");
    world_thaw(w);
    w->redis.full_until = w->redis.replica_until = 0;
    w->disaster.phase = DISASTER_NONE;
    if (w->turns.is_on) { /* or due times would stay ahead of it */
        w->redis.skew = 0;
        w->redis.stepped = w->now;
    }
    world_foreach_run(w, r) { /* no need to watch them run */
        if (r->duration > w->setup.lease / 20)
            r->duration = w->setup.lease / 20;
        if (r->process.alive && r->process.ends > w->now + w->setup.lease / 20)
            r->process.ends = w->now + w->setup.lease / 20;
    }
    for (unsigned i = 0; i < w->setup.n_hosts; i++) {
        struct host *h = &w->hosts[i];

        h->network.cut_until = 0;
        h->network.lose_call = h->network.lose_answer = h->network.lose_push = h->network.twice = false;
        h->network.stall_call = h->network.stall_answer = h->network.stall_push = 0;
        memcpy(h->config.limits, w->setup.limits, sizeof(h->config.limits));
        memset(h->config.host_scoped, 0, sizeof(h->config.host_scoped));
        if (h->up && (h->config.name != i || h->config.lease != w->setup.lease))
            vhost_crash(w, h);
        change_config(w, h, i, w->setup.lease);
        if (h->up)
            vhost_declare(w, h);
        else
            h->start_at = w->now + 1;
    }
}
