/* SPDX-License-Identifier: MIT */

/* A virtual host's claims and processes: a second implementation of store/redis/claims.c and the guards. A process ends after its
 * time, or at its guard's deadline, whatever its berthd does. */

#include <string.h>

#include "tests/model/model-internal.h"

const char *vclaim_id(const struct run *r, char buffer[static 16]) {
    (void) snprintf(buffer, 16, "c%u", r->id);
    return buffer;
}

/* --- processes --- */

static void process_start(struct world *w, struct host *h, struct run *r) {
    r->process.alive = true;
    r->process.over_lease = false;
    r->process.ends = w->now + r->duration;
    r->process.guard_deadline = h->deadline;
    if (r->token > h->clock.max_started)
        h->clock.max_started = r->token;
    if (w->trace)
        fprintf(w->trace, "%9.3f h%u: process of c%u begins, deadline %.3f\n", (double) w->now / 1e6,
                h->index, r->id, (double) r->process.guard_deadline / 1e6);
    check_start(w, r);
    if (r->turn.is)
        check_turn_start(w, r);
    r->process.started = true;
    if (w->disaster.phase == DISASTER_ARMED) {
        w->disaster.phase = DISASTER_DUE;
        w->disaster.host = h->index;
    }
}

usec_t vclaim_next_end(const struct world *w) {
    usec_t next = USEC_INFINITY;

    for (const struct run *r = w->runs; r < w->runs + w->n_runs; r++) {
        if (!r->process.alive)
            continue;
        if (r->process.ends < next)
            next = r->process.ends;
        if (!r->process.over_lease && r->process.guard_deadline < next)
            next = r->process.guard_deadline;
    }
    return next;
}

void vclaim_pass_time(struct world *w) {
    world_foreach_run(w, r) {
        if (!r->process.alive)
            continue;
        if (r->process.ends <= w->now ||
            (r->process.guard_deadline <= w->now && !r->keep && !r->process.over_lease)) {
            r->process.alive = false;
            if (w->trace)
                fprintf(w->trace, "%9.3f h%u: process of c%u %s\n", (double) w->now / 1e6, r->host, r->id,
                        r->process.ends <= w->now ? "ends" : "is stopped at its deadline");
        } else if (r->process.guard_deadline <= w->now) {
            r->process.over_lease = true;
        }
    }
}

void vclaim_reap(struct world *w, struct host *h) {
    world_foreach_run(w, r)
        if (r->host == h->index && r->state == RUN_HELD && r->notified && !r->process.alive) {
            vturn_process_ended(w, r);
            vclaim_release(w, r);
        }
}

void vclaim_extend(struct world *w, struct host *h) {
    world_foreach_run(w, r)
        if (r->host == h->index && r->process.alive && r->state == RUN_HELD && r->notified && !r->lost &&
            !r->renew && !r->process.over_lease)
            r->process.guard_deadline =
                h->deadline > r->process.guard_deadline ? h->deadline : r->process.guard_deadline;
}

/* --- what Redis replies --- */

static void start_notified(struct world *w, struct host *h, struct run *r) {
    if (r->notified || h->deadline == 0 || w->now >= h->deadline)
        return;
    if (vturn_is_unsure(r))
        return;
    if (r->turn.is && !r->turn.committed && !(w->mutation && w->mutation->commit_late)) {
        vturn_commit(w, r);
        return;
    }
    r->notified = true;
    process_start(w, h, r);
}

void vclaim_start_notified(struct world *w, struct host *h) {
    world_foreach_run(w, r) if (r->host == h->index && r->state == RUN_HELD && !r->notified && !r->lost) start_notified(w, h, r);
}

void vclaim_apply_held(struct world *w, struct host *h, struct run *r, uint64_t ticket, uint64_t token) {
    if (r->state == RUN_RELEASING || r->state == RUN_DONE || r->lost)
        return;
    r->token = token;
    if (r->process.alive && token > h->clock.max_started)
        h->clock.max_started = token;
    if (ticket > 0)
        r->ticket = ticket;
    r->renew = false;
    if (r->state == RUN_HELD)
        return;
    r->state = RUN_HELD;
    start_notified(w, h, r);
}

void vclaim_apply_waiting(struct run *r, uint64_t ticket) {
    if (r->state != RUN_ASKED && r->state != RUN_WAITING)
        return;
    r->state = RUN_WAITING;
    r->ticket = ticket;
}

static void apply_revoked(struct world *w, struct run *r) {
    if (r->revoked || r->lost || r->state == RUN_RELEASING || r->state == RUN_DONE)
        return;
    r->revoked = true;
    r->process.alive = false;
    vclaim_release(w, r);
}

static void apply_moved(struct run *r, uint64_t given, uint64_t number) {
    if (number <= r->moved || r->state == RUN_DONE)
        return;
    r->given = given;
    r->moved = number;
}

void vclaim_apply_number(struct host *h, uint64_t before, uint64_t number) {
    if (number > h->clock.given)
        h->clock.given = number;
    if (number <= h->pushes.chain)
        return;
    if (before > h->pushes.chain) {
        if (h->pushes.n_early < EARLY_MAX) {
            h->pushes.early[h->pushes.n_early].before = before;
            h->pushes.early[h->pushes.n_early++].number = number;
        }
        return;
    }
    h->pushes.chain = number;
    for (size_t i = 0; i < h->pushes.n_early;) {
        if (h->pushes.early[i].before > h->pushes.chain) {
            i++;
            continue;
        }
        if (h->pushes.early[i].number > h->pushes.chain)
            h->pushes.chain = h->pushes.early[i].number;
        h->pushes.early[i] = h->pushes.early[--h->pushes.n_early];
        i = 0;
    }
}

void vclaim_on_push(struct world *w, struct host *h, const char *text) {
    char verb[16] = "", epoch[NUMBER_SIZE] = "", id[16] = "";
    uint64_t one = 0, two = 0, ticket = 0;
    struct run *r;

    if (sscanf(text, "%15s %23s %" SCNu64 " %" SCNu64 " %15s %" SCNu64, verb, epoch, &one, &two, id, &ticket) < 5)
        return;
    if (strcmp(epoch, h->clock.epoch) != 0 && !(w->mutation && w->mutation->any_epoch))
        return;
    if (strcmp(verb, "turn") == 0) {
        vclaim_apply_number(h, one, two);
        vheartbeat_observe_drawn(w, h, two);
        vturn_on_push(w, h, text);
        if (h->pushes.n_early > 0)
            vheartbeat_send(w, h);
        return;
    }
    if (strcmp(verb, "grace-over") == 0) {
        if (h->clock.grace)
            vheartbeat_send(w, h);
        return;
    }
    r = &w->runs[id_number(id)];
    if (strcmp(verb, "granted") != 0 && strcmp(verb, "revoked") != 0 && strcmp(verb, "moved") != 0) {
        vclaim_apply_waiting(r, ticket);
        return;
    }
    vclaim_apply_number(h, one, two);
    vheartbeat_observe_drawn(w, h, two);
    if (strcmp(verb, "granted") == 0)
        vclaim_apply_held(w, h, r, ticket, two);
    else if (strcmp(verb, "moved") == 0)
        apply_moved(r, ticket, two);
    else
        apply_revoked(w, r);
    if (h->pushes.n_early > 0)
        vheartbeat_send(w, h);
}

/* --- requests and releases --- */

void vclaim_request(struct world *w, struct run *r) {
    struct host *h = &w->hosts[r->host];

    r->state = RUN_ASKED;
    if (h->phase == HOST_LIVE && h->heartbeat.answered)
        vbatch_claim(w, r);
    else if (r->nowait)
        r->state = RUN_DONE;
}

void vclaim_release(struct world *w, struct run *r) {
    struct host *h = &w->hosts[r->host];

    if (r->state == RUN_RELEASING || r->state == RUN_DONE || r->state == RUN_NONE)
        return;
    r->state = RUN_RELEASING;
    if (r->lost || (!r->sent && r->calls == 0))
        r->state = RUN_DONE;
    else if (h->phase == HOST_LIVE && h->heartbeat.answered)
        vbatch_release(w, r);
}

void vclaim_flush(struct world *w, struct host *h) {
    world_foreach_run(w, r) {
        if (r->host != h->index || r->calls > 0)
            continue;
        if (r->state == RUN_RELEASING)
            vbatch_release(w, r);
        else if ((r->state == RUN_ASKED && !r->sent) || vturn_is_unsure(r))
            vbatch_claim(w, r);
    }
}

void vclaim_forget_calls(struct world *w, struct host *h) {
    h->open.n = 0;
    world_foreach_run(w, r) if (r->host == h->index) r->calls = 0;
}

size_t vclaim_count(const struct world *w, const struct host *h) {
    size_t n = 0;

    for (const struct run *r = w->runs; r < w->runs + w->n_runs; r++)
        n += r->host == h->index && r->state != RUN_NONE && r->state != RUN_DONE && r->named;
    return n;
}

void vclaim_put_named(const struct world *w, const struct host *h, struct redis_command *words) {
    char id[16];

    for (const struct run *r = w->runs; r < w->runs + w->n_runs; r++)
        if (r->host == h->index && r->named && vclaim_is_notified(r) && !r->revoked && !r->renew)
            command_add(words, vclaim_id(r, id));
}

/* --- a new session, and sync --- */

void vclaim_lose(struct world *w, struct host *h) {
    world_foreach_run(w, r) {
        if (r->host != h->index || r->lost)
            continue;
        r->named = false;
        if (r->turn.is && r->state != RUN_NONE && r->state != RUN_DONE && !r->process.alive) {
            vturn_lose(w, r);
        } else if (r->state == RUN_RELEASING) {
            r->state = RUN_DONE;
        } else if (r->state == RUN_HELD && !r->notified) {
            r->state = RUN_WAITING;
            r->token = 0;
        } else if (r->state == RUN_HELD && r->keep && r->process.alive) {
            r->renew = r->process.over_lease = true;
        } else if (r->state == RUN_HELD) { /* its guard stops it at its deadline */
            r->lost = true;
        } else if (r->state == RUN_ASKED) {
            r->sent = false;
        }
    }
}

bool vclaim_is_notified(const struct run *r) {
    return r->sent && !r->lost && (r->state != RUN_RELEASING || r->turn.is) && r->state != RUN_DONE && r->state != RUN_NONE;
}

static bool comes_before(const struct run *a, const struct run *b) {
    if ((a->state == RUN_HELD) != (b->state == RUN_HELD))
        return a->state == RUN_HELD;
    return a->ticket < b->ticket;
}

void vclaim_collect(struct world *w, struct host *h) {
    h->sync.n = h->sync.at = 0;
    h->sync.begun = h->sync.heard = false;
    world_foreach_run(w, r) {
        size_t at;

        if (r->host != h->index)
            continue;
        r->named = false;
        if (r->state == RUN_HELD && !r->notified && !r->lost) { /* the reply shows whether it still is */
            r->state = RUN_WAITING;
            r->token = 0;
        }
        if (!vclaim_is_notified(r))
            continue;
        for (at = h->sync.n++; at > 0 && comes_before(r, &w->runs[h->sync.runs[at - 1]]); at--)
            h->sync.runs[at] = h->sync.runs[at - 1];
        h->sync.runs[at] = r->id;
    }
}

void vclaim_put(const struct world *w, struct redis_command *words, const struct run *r) {
    bool held = r->state == RUN_HELD;
    char text[64] = "", id[16], head[HEAD_SIZE];
    size_t size = 0;

    command_add(words, vclaim_id(r, id));
    command_add(words, held ? r->renew ? "K" : "H" : r->ticket > 0 ? "W" : "A");
    command_add_u64(words, held ? r->token : 0);
    command_add_u64(words, r->ticket);
    command_add(words, head_format(r->head, r->given, r->moved, head));
    command_add(words, "1");
    command_add(words, "1");
    command_add(words, "run");
    command_add(words, "name");
    for (unsigned p = 0; p < POOLS_MAX; p++)
        if (r->permits[p] > 0)
            size += (size_t) snprintf(text + size, sizeof(text) - size, "%s%s:%u", size > 0 ? "," : "", model_pool(w, p), r->permits[p]);
    command_add(words, text);
}

void vclaim_apply_item(struct world *w, struct host *h, const redisReply *item) {
    struct run *r = &w->runs[id_number(reply_word(reply_at(item, 0)))];
    const char *state = reply_word(reply_at(item, 1));
    uint64_t ticket = reply_number(reply_at(item, 2)), token = reply_number(reply_at(item, 3)), own, given, number;

    if (r->state == RUN_DONE)
        return;
    if (strcmp(state, "-") == 0) {
        r->sent = false;
        if (r->state == RUN_RELEASING)
            r->state = RUN_DONE;
        return;
    }
    r->named = true;
    if (*reply_word(reply_at(item, 7))) {
        head_parse(reply_word(reply_at(item, 7)), &own, &given, &number);
        apply_moved(r, given, number);
    }
    if (strcmp(state, "H") == 0)
        vclaim_apply_held(w, h, r, ticket, token);
    else
        vclaim_apply_waiting(r, ticket);
    if (*reply_word(reply_at(item, 6)))
        apply_revoked(w, r);
}
