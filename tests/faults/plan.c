/* SPDX-License-Identifier: MIT */

/* A case: faults at their times during the load, then the end of all runs, then the checks. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/faults/due.h"
#include "tests/faults/fault.h"
#include "tests/harness/stall.h"
#include "tests/harness/test.h"

#define WARM_UP (700 * USEC_PER_MSEC)
#define LEAD_IN (400 * USEC_PER_MSEC) /* from the start of the run that a fault must stop to the fault */
#define PATIENCE (25 * USEC_PER_SEC)
#define OVERLAP_STALL (300 * USEC_PER_MSEC) /* shorter ones do not use up the margin of 500 ms */

/* --- plans --- */

static void add(struct plan *p, const struct fault *f, usec_t at, usec_t length, size_t host, uint64_t random) {
    p->items[p->n++] = (struct injection) {.fault = f, .at = at, .until = length ? at + length : 0, .host = host, .random = random};
    p->flags |= f->flags;
    if (at + length + USEC_PER_SEC > p->until)
        p->until = at + length + USEC_PER_SEC;
}

/* Injects the fault once, or again on another host when the first host's permits are free (R4). Earlier, a
 * claim might have to wait for both hosts. */
void plan_alone(struct plan *p, const struct fault *f, uint64_t seed, unsigned times) {
    uint64_t random = seed;
    usec_t length = f->msec * USEC_PER_MSEC, over = length > LOAD_LEASE * 4 / 3 ? length : LOAD_LEASE * 4 / 3;
    size_t host = draw_between(&random, 0, LOAD_HOSTS - 1);

    *p = (struct plan) {.seed = seed};
    snprintf(p->name, sizeof(p->name), "%s", f->name);
    add(p, f, WARM_UP, length, host, draw(&random));
    if (times > 1)
        add(p, f, WARM_UP + over + USEC_PER_SEC, length, (host + 1) % LOAD_HOSTS, draw(&random));
}

/* Draws no fault twice at once, and all faults end within the case. Faults that cannot be injected here are
 * drawn again, so a seed gives the same plan on like machines. */
void plan_mix(struct plan *p, uint64_t seed) {
    uint64_t random = seed;
    size_t n = draw_between(&random, 3, 5);

    *p = (struct plan) {.seed = seed, .flags = FAULT_PROXY};
    snprintf(p->name, sizeof(p->name), "mix");
    while (p->n < n) {
        const struct fault *f = faults_get(draw_between(&random, 0, faults_count() - 1));
        usec_t at = WARM_UP + draw_between(&random, 0, 4000) * USEC_PER_MSEC;
        usec_t length = f->msec ? (f->msec / 2 + draw_between(&random, 0, f->msec / 2)) * USEC_PER_MSEC : 0;
        size_t host = draw_between(&random, 0, LOAD_HOSTS - 1);
        uint64_t own = draw(&random);
        bool again = (f->flags & FAULT_ALONE) != 0 || fault_lacks(f);

        for (size_t i = 0; i < p->n; i++)
            again = again || p->items[i].fault == f;
        if (!again)
            add(p, f, at, length, host, own);
    }
    p->has_schedules = !(p->flags & FAULT_HOST_CLOCK) && draw_between(&random, 0, 1) == 0;
}

bool plan_failpoint(struct plan *p, const char *name, uint64_t seed) {
    *p = (struct plan) {.seed = seed, .has_schedules = true};
    if (!failpoint_find(name, &p->failpoint, &p->action))
        return false;
    snprintf(p->name, sizeof(p->name), "%s", name);
    p->until = p->action->msec * USEC_PER_MSEC;
    if (p->failpoint->fault)
        add(p, faults_find(p->failpoint->fault), 2 * WARM_UP, 1800 * USEC_PER_MSEC, 0, seed);
    return true;
}

void plan_print(const struct plan *p) {
    for (size_t i = 0; i < p->n; i++) {
        const struct injection *in = &p->items[i];

        printf("plan %s seed %" PRIu64 ": at %" PRIu64 " ms for %" PRIu64 " ms on host %zu: %s\n", p->name, p->seed, in->at / USEC_PER_MSEC,
               in->until ? (in->until - in->at) / USEC_PER_MSEC : 0, in->host, in->fault->name);
    }
}

/* --- running it --- */

static void inject(struct bed *b, struct plan *p, usec_t since) {
    usec_t now = clock_boottime() - since;

    for (size_t i = 0; i < p->n; i++) {
        struct injection *in = &p->items[i];

        if (!in->led_in && now + LEAD_IN >= in->at) {
            in->led_in = true;
            if ((in->fault->flags & (FAULT_HOST | FAULT_REDIS)) && in->until)
                load_begin_long(&b->load, in->host, (unsigned) ((in->until - in->at) / USEC_PER_MSEC) + 1000);
        }
        if (!in->begun && now >= in->at) {
            in->begun = true;
            in->fault->begin(b, in);
        }
        if (in->begun && !in->ended && in->until && now >= in->until) {
            in->ended = true;
            if (in->fault->end)
                in->fault->end(b, in);
        }
    }
}

/* Returns the next time of the plan. */
static usec_t next_time(const struct plan *p) {
    usec_t next = p->until;

    for (size_t i = 0; i < p->n; i++) {
        const struct injection *in = &p->items[i];

        if (!in->led_in && in->at - LEAD_IN < next)
            next = in->at - LEAD_IN;
        if (in->led_in && !in->begun && in->at < next)
            next = in->at;
        if (in->begun && !in->ended && in->until && in->until < next)
            next = in->until;
    }
    return next;
}

/* Starts a program that died at the failpoint again, as a service manager does. Returns `next`. */
static usec_t attend_failpoint(struct bed *b, usec_t next) {
    struct load_host *h = &b->load.hosts[0];

    if (h->n_touched == 0)
        load_touch(&b->load, 0, USEC_INFINITY);
    if (h->host->berthd && h->host->berthd->ended && b->n_down[0] == 0)
        host_launch(h->host);
    return next;
}

static void run_load(struct bed *b, struct plan *p) {
    usec_t since = clock_boottime(), now;

    while ((now = clock_boottime() - since) < p->until) {
        usec_t next = next_time(p);

        if (p->failpoint)
            next = attend_failpoint(b, next < now + 50 * USEC_PER_MSEC ? next : now + 50 * USEC_PER_MSEC);
        if (p->has_schedules) {
            usec_t minute = usec_sub(due_turn(&b->load), since);

            next = minute < next ? minute : next;
        }
        load_turn(&b->load, since + (next > now ? next : now));
        inject(b, p, since);
    }
    inject(b, p, since);
    for (usec_t until = clock_boottime() + 10 * USEC_PER_SEC;
         (b->limit_owed || b->pattern_owed) && clock_boottime() < until;) {
        load_turn(&b->load, clock_boottime() + 200 * USEC_PER_MSEC);
        if (b->limit_owed)
            restore_limit(b, NULL);
        if (b->pattern_owed)
            restore_pattern(b, NULL);
    }
    /* Finds hosts that ended without being stopped. */
    for (size_t i = 0; i < LOAD_HOSTS; i++) {
        struct host *h = b->load.hosts[i].host;

        if (h->berthd && h->berthd->ended && !h->abandoned) {
            printf("%s ended by itself, status %d, signal %d:\n%s\n", h->name, h->berthd->exit_code, h->berthd->signal,
                   child_text(h->berthd, 2));
            CU_FAIL("berthd ended by itself");
        }
    }
}

/* All permits are free soon. No counter has drifted (PrefectHQ/prefect#21794,
 * apache/airflow#43448, apache/airflow#15399, taskforcesh/bullmq#3929, mperham/sidekiq#6185). */
static void check_free(struct bed *b) {
    for (size_t i = 0; i < LOAD_HOSTS; i++) {
        struct child *c = berth_start(b->load.hosts[i].host,
                                      "run --wait 15s -p db:%d -p net:%d " LOAD_KEYS " -- true", LOAD_DB,
                                      LOAD_NET);

        if (!child_await(c, PATIENCE) || c->exit_code != 0) {
            printf("%s: after all runs permits are not free: status %d: %s\n", b->load.hosts[i].host->name, c->exit_code, child_text(c, 2));
            CU_FAIL("permits are not free at the end");
        }
        child_free(c);
    }
}

/* Living hosts expire sessions that ended without bye. Then Redis has only the sessions of living hosts. */
static void check_expired(struct bed *b) {
    usec_t until = clock_boottime() + 2 * LOAD_LEASE + USEC_PER_SEC;
    long long sessions;

    while ((sessions = redis_number(b->master, "ZCARD berth:{test}:heartbeats")) != LOAD_HOSTS && clock_boottime() < until)
        child_turn(clock_boottime() + 20 * USEC_PER_MSEC);
    if (sessions != LOAD_HOSTS) {
        printf("%lld sessions, not %d\n", sessions, LOAD_HOSTS);
        CU_FAIL("dead sessions are not expired");
    }
    for (size_t i = 0; i < LOAD_HOSTS; i++)
        b->load.hosts[i].host->abandoned = false;
}

/* Returns how long a permit may be unused while a claim waits for it. The permits of a dead host are free
 * after 4/3 of a lease (R4). A living host cannot start a granted run while its runner, guards or clients
 * hang. While Redis is broken, nothing is granted; then there is a grace period of a lease. In a mix, the
 * faults of several hosts may follow each other. A second is added for the machine, or three under other
 * load. */
static usec_t allowed_idle(const struct plan *p) {
    usec_t longest = LOAD_LEASE * 4 / 3, sum = 0;

    for (size_t i = 0; i < p->n; i++) {
        usec_t length = p->items[i].until ? p->items[i].until - p->items[i].at : 0;

        if (p->items[i].fault->flags & FAULT_REDIS)
            sum += length + LOAD_LEASE + USEC_PER_SEC;
        else if (p->n > 2)
            sum += length > LOAD_LEASE ? length : LOAD_LEASE;
        else if ((p->items[i].fault->flags & FAULT_HOST) && length > longest)
            longest = length;
    }
    return longest + sum + (p->beside ? 3 : 1) * USEC_PER_SEC + (p->failpoint ? 2 * LOAD_LEASE : 0);
}

static void keep_file(const char *from, const char *folder, const char *name, const char *part) {
    char path[400], line[4096];
    _cleanup_fclose_ FILE *in = NULL, *out = NULL;

    snprintf(path, sizeof(path), "%s/%s-%s", folder, name, part);
    in = fopen(from, "re");
    out = in ? fopen(path, "we") : NULL;
    while (out && fgets(line, sizeof(line), in))
        (void) fputs(line, out);
}

/* Keeps the messages of each berthd, with times, and the records of the witness. */
static void dump(const char *name, struct bed *b) {
    const char *folder = getenv("BERTH_FAULTS_DUMP");
    char from[128], part[64];

    if (!folder)
        return;
    for (size_t i = 0; i < LOAD_HOSTS; i++)
        for (unsigned k = 0; k < b->load.hosts[i].host->n_launched; k++) {
            snprintf(part, sizeof(part), "%s.%u.record", b->load.hosts[i].host->name, k);
            snprintf(from, sizeof(from), "%s/%s", cluster.folder, part);
            keep_file(from, folder, name, part);
        }
    snprintf(from, sizeof(from), "%s/records", cluster.witness);
    keep_file(from, folder, name, "witness.records");
}

static void print_result(const struct plan *p, const struct verdict *v, const char *verdict) {
    unsigned hits = 0, injected = 0;

    for (size_t i = 0; i < p->n; i++) {
        injected += p->items[i].begun;
        hits += p->items[i].n_hit;
    }
    printf("result %s %" PRIu64 " %s injected %u hits %u runs %zu clean %zu overlaps %zu overlap_us %" PRIu64 " idle_us %" PRIu64
           " doubled %zu open %zu lost %zu jobs %zu unrecorded %zu overtaken %zu due %zu untold %zu\n",
           p->name, p->seed, verdict, injected, hits, v->n_runs, v->n_clean, v->j.n_overlaps, v->j.worst_overlap, v->j.longest_idle,
           v->j.n_doubled, v->n_open, v->n_lost, v->n_jobs, v->n_jobs_unrecorded, v->j.n_overtaken, v->n_due, v->n_due_lost);
    if (v->j.n_excused > 0)
        printf("excused %zu\n", v->j.n_excused);
    for (size_t i = 0; i < v->n_margins; i++)
        printf("margin %" PRIu64 "\n", v->margins[i]);
}

static bool check(bool ok, const char *text) {
    if (!ok) {
        printf("WRONG: %s\n", text);
        CU_FAIL("a wrong result");
    }
    return ok;
}

static bool check_verdict(const struct plan *p, const struct verdict *v) {
    bool ok = check(v->j.n_overlaps == 0, v->j.overlap);
    char text[512];

    ok &= check(v->j.n_doubled == 0, "a run was started twice");
    ok &= check(v->n_lost == 0, v->first);
    ok &= check(v->n_jobs_unrecorded == 0, v->first);
    ok &= check(v->n_due_lost == 0, v->first_due);
    if (p->action && p->action->keeps_reports)
        ok &= check(v->n_unreported == 0, "a berthd without memory lost what `berth run` reported");
    snprintf(text, sizeof(text), "%s waited %" PRIu64 " ms from %" PRIu64 " on for what was free, allowed are %" PRIu64 " ms", v->j.idle,
             v->j.longest_idle / USEC_PER_MSEC, v->j.idle_from, allowed_idle(p) / USEC_PER_MSEC);
    ok &= check(v->j.longest_idle <= allowed_idle(p), text);
    ok &= check((p->flags & FAULT_REDIS) || v->j.n_overtaken == 0, v->j.overtaken);
    return ok;
}

static struct bed b;

/* Returns how long the machine stood still at a time that could explain a failure. For an overlap, that is
 * during it or in the lease before it. For late waits, that is any time since the begin. */
static usec_t explaining_stall(const struct verdict *v, usec_t since) {
    usec_t stall = v->j.n_overlaps > 0 ? stall_between(usec_sub(v->j.overlap_from, LOAD_LEASE), v->j.overlap_until)
                                       : stall_between(since, USEC_INFINITY);

    return v->j.n_overlaps > 0 && stall < OVERLAP_STALL ? 0 : stall;
}

void plan_run(struct plan *p) {
    static struct verdict v;
    usec_t since = clock_boottime();
    size_t open;
    char name[128];
    bool ok;

    b = (struct bed) {0};
    stall_start();
    bed_up(&b, p);
    run_load(&b, p);
    for (usec_t until = clock_boottime() + PATIENCE; p->failpoint && load_drain(&b.load, 0) > 0 && clock_boottime() < until;)
        load_turn(&b.load, attend_failpoint(&b, clock_boottime() + 50 * USEC_PER_MSEC));
    open = load_drain(&b.load, PATIENCE);
    if (p->has_schedules)
        due_settle(&b.load);
    if (open == 0) {
        check_free(&b);
        check_expired(&b);
    }
    load_judge(&b.load, &v);
    ok = check(open == 0 && v.n_open == 0, "runs did not end");
    ok = check(!p->failpoint || failpoint_is_over(), "the failpoint was not reached") && ok;
    ok = check_verdict(p, &v) && ok;
    printf("stalled %" PRIu64 "\n", explaining_stall(&v, since));
    stall_stop();
    print_result(p, &v, ok && CU_get_number_of_failures() == 0 ? "ok" : "FAILED");
    snprintf(name, sizeof(name), "%s-%" PRIu64, p->name, p->seed);
    if (!ok || CU_get_number_of_failures() > 0)
        dump(name, &b);
    load_done(&b.load);
}

void plan_done(void) {
    bed_done(&b);
}
