/* SPDX-License-Identifier: MIT */

/* Runs sequences. Shortens a failed sequence as long as it still fails. */

#include <string.h>

#include "tests/model/model-sequence.h"

#define SHRINK_RUNS 400

/* --- run --- */

/* Returns whether a late call is under way, or has reopened a session that is to be expired, or has begun an epoch
 * whose grace is not over. */
static bool is_haunted(const struct world *w) {
    for (size_t i = 0; i < w->events.n; i++)
        if (w->events.all[i]->kind == EVENT_CALL &&
            w->events.all[i]->wire != w->hosts[w->events.all[i]->host].network.wire)
            return true;
    for (unsigned s = 1; s <= w->n_sessions; s++)
        if (w->redis.now.sessions[s].live && w->hosts[w->redis.now.sessions[s].host].session != s)
            return true;
    return w->redis.now.grace;
}

static bool is_done(const struct world *w) {
    for (const struct run *r = w->runs; r < w->runs + w->n_runs; r++)
        if (r->state != RUN_DONE && r->state != RUN_NONE)
            return false;
    return true;
}

static void clear_overrides(struct world *w) {
    for (unsigned p = 0; p < w->setup.n_pools; p++)
        for (unsigned i = 0; i < w->setup.n_hosts; i++) {
            struct host *h = &w->hosts[i];

            if (!h->up || h->phase != HOST_LIVE || h->overrides.of_pool[p].version == 0 ||
                strcmp(h->overrides.of_pool[p].words[1], "-") == 0)
                continue;
            world_step(w, &(struct step) {.kind = STEP_CLEAR, .host = i, .a = p});
            break;
        }
}

static void end_all(struct world *w) {
    _cleanup_reply_ redisReply *keys = NULL;

    check_data(w, true);
    for (unsigned i = 0; i < w->setup.n_hosts && !model_failed(w); i++) {
        struct redis_command words = {0};

        vhost_begin(&w->hosts[i], &words);
        freeReplyObject(world_call(w, REDIS_SCRIPT_BYE, &words));
        command_done(&words);
    }
    keys = bridge_keys(w->bridge);
    for (size_t i = 0; reply_at(keys, i); i++) {
        const char *key = reply_word(reply_at(keys, i));

        if (w->setup.tight && strcmp(key, "berth:{m}:unsettled") == 0)
            continue; /* no call is left that settles so many pools */
        if (strcmp(key, MODEL_KEY) != 0 && strcmp(key, "berth:{m}:overrides") != 0 &&
            !(w->turns.is_on &&
              (strcmp(key, "berth:{m}:marks") == 0 || strcmp(key, "berth:{m}:pool:a:turns") == 0)))
            model_fail(w, "R16: %s is left behind", key);
    }
}

/* Runs the sequence. w->failure is "" if it ended well. */
static void run_sequence(struct world *w, struct bridge *bridge, const struct model_mutation *mutation, const struct sequence *q,
                         FILE *trace) {
    usec_t healed;

    if (q->scene)
        scene_make_world(w, bridge, mutation, q->scene);
    else
        sequence_make_world(w, bridge, mutation, q->seed);
    w->trace = trace;
    bridge_wipe(bridge);
    for (size_t i = 0; i < q->n && !model_failed(w); i++) {
        world_advance(w, q->steps[i].at);
        if (!model_failed(w))
            world_step(w, &q->steps[i]);
    }
    if (!model_failed(w))
        world_heal(w);
    healed = w->now;
    while (!model_failed(w) && (!is_done(w) || !vturn_is_done(w) || is_haunted(w) || w->now < healed + 2 * w->longest + w->longest / 2)) {
        if (w->now > healed + 25 * w->longest + w->turns.n_dues * w->turns.period) {
            world_foreach_run(w, r)
                if (r->state != RUN_DONE)
                    model_fail(w, "all faults are over, but c%u of h%u is not served (%c in Redis)",
                               r->id, r->host,
                               w->redis.now.claims[r->id].state ? w->redis.now.claims[r->id].state : '-');
            check_turns_done(w);
            model_fail(w, "R4: old sessions are still there");
            break;
        }
        clear_overrides(w);
        world_advance(w, w->now + w->setup.heartbeat);
    }
    if (!model_failed(w) && w->turns.is_on)
        check_turns(w);
    if (!model_failed(w))
        end_all(w);
    world_done(w);
}

/* --- shrunk --- */

/* Returns whether two failures differ in numbers alone. */
static bool is_alike(const char *a, const char *b) {
    for (; *a && *b; a++, b++) {
        a += strspn(a, "0123456789");
        b += strspn(b, "0123456789");
        if (*a != *b)
            return false;
        if (!*a)
            break;
    }
    return *a == *b;
}

static bool still_fails(struct world *w, struct bridge *b, const struct model_mutation *mutation, const struct sequence *q,
                        const char *failure) {
    run_sequence(w, b, mutation, q, NULL);
    return model_failed(w) && is_alike(w->failure, failure);
}

/* Leaves out as many steps as it can, in ever smaller pieces. */
static void shrink(struct world *w, struct bridge *b, const struct model_mutation *mutation, struct sequence *q, const char *failure) {
    struct sequence *shorter = malloc(sizeof(*shorter));
    unsigned runs = 0;

    if (!shorter)
        abort();
    for (size_t piece = q->n; piece > 0; piece = piece > 1 ? (piece + 1) / 2 : 0) {
        bool again = true;

        while (again && runs < SHRINK_RUNS) {
            again = false;
            for (size_t at = 0; at < q->n && runs < SHRINK_RUNS; runs++) {
                size_t end = at + piece < q->n ? at + piece : q->n;

                *shorter = *q;
                memmove(&shorter->steps[at], &q->steps[end], (q->n - end) * sizeof(*q->steps));
                shorter->n = q->n - (end - at);
                if (still_fails(w, b, mutation, shorter, failure)) {
                    *q = *shorter;
                    again = piece == 1;
                } else {
                    at += piece;
                }
            }
        }
    }
    free(shorter);
}

static void print_failure(struct world *w, struct bridge *b, const struct model_mutation *mutation, struct sequence *q) {
    const char *wanted = getenv("MODEL_TRACE");
    char first[sizeof(w->failure)];

    (void) snprintf(first, sizeof(first), "%s", w->failure);
    if (q->scene)
        printf("scene \"%s\" fails: %s\n", q->scene->name, first);
    else
        printf("sequence %" PRIu64 " fails: %s\n", q->seed, first);
    shrink(w, b, mutation, q, first);
    run_sequence(w, b, mutation, q, wanted ? stdout : NULL);
    printf("the shortest sequence that fails so: %s\n  %u hosts, %u pools (limits %u %u %u %u), lease %" PRIu64
           " s, bounds %s, rates",
           w->failure, w->setup.n_hosts, w->setup.n_pools, w->setup.limits[0], w->setup.limits[1],
           w->setup.limits[2], w->setup.limits[3], w->setup.lease / USEC_PER_SEC,
           w->setup.tight ? "low" : "as they are");
    for (unsigned i = 0; i < w->setup.n_hosts; i++)
        printf(" %.5f", w->hosts[i].rate);
    printf("\n");
    for (size_t i = 0; i < q->n; i++) {
        const struct step *s = &q->steps[i];

        printf("  %9.3f h%u %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", (double) s->at / 1e6,
               s->host % w->setup.n_hosts, step_name(s->kind), s->a, s->b, s->c, s->d);
    }
    printf("  %9.3f it fails (", (double) w->now / 1e6);
    if (!q->scene)
        printf("SEED=%" PRIu64 " SEQUENCES=1 ", q->seed);
    printf("MODEL_TRACE=1 shows each call)\n");
}

int model_run_scene(const char *name, const struct model_mutation *mutation, bool tell_it, bool *ret_failed) {
    const struct scene *scene = scene_find(name);
    struct bridge bridge = {0};
    struct world *w = calloc(1, sizeof(*w));
    struct sequence *q = calloc(1, sizeof(*q));
    int k = w && q ? bridge_open(&bridge, mutation) : -ENOMEM;

    *ret_failed = false;
    if (k >= 0 && !scene)
        k = -ENOENT;
    if (k >= 0) {
        scene_make(q, scene);
        run_sequence(w, &bridge, mutation, q, NULL);
        *ret_failed = model_failed(w);
        k = 1;
    }
    if (k >= 0 && *ret_failed && tell_it)
        print_failure(w, &bridge, mutation, q);
    bridge_close(&bridge);
    free(q);
    free(w);
    return k;
}

int model_run(uint64_t first_seed, unsigned n, const struct model_mutation *mutation, bool tell_it, bool *ret_failed) {
    struct bridge bridge = {0};
    struct world *w = calloc(1, sizeof(*w));
    struct sequence *q = calloc(1, sizeof(*q));
    int k = w && q ? bridge_open(&bridge, mutation) : -ENOMEM;

    *ret_failed = false;
    for (unsigned i = 0; k >= 0 && i < n && !*ret_failed; i++) {
        sequence_make_world(w, &bridge, mutation, first_seed + i);
        sequence_make(q, first_seed + i, w);
        run_sequence(w, &bridge, mutation, q, NULL);
        *ret_failed = model_failed(w);
        if (*ret_failed && tell_it)
            print_failure(w, &bridge, mutation, q);
        k = (int) i + 1;
    }
    bridge_close(&bridge);
    free(q);
    free(w);
    return k;
}
