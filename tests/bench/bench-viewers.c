/* SPDX-License-Identifier: MIT */

/* What 100 viewers cost running jobs. 20 hosts with five viewers each take a picture a second of five pools,
 * each with 1000 holders and 1000 waiting claims. Meanwhile the permit of another pool passes from host to
 * host. Rounds with and without viewers alternate, and each is compared with the one before it; the viewers'
 * hosts are another process. As root, no other process delays Redis, as if it had a processor of its own. */

#include "tests/bench/benches.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/snapshot.h"
#include "tests/bench/peer.h"
#include "tests/bench/rig.h"
#include "tests/harness/redis/redis-look.h"

#define HOSTS 20
#define VIEWERS 5 /* of a host */
#define POOLS 5
#define CLAIMS 2000 /* of each pool: half of them wait */
#define ROUNDS 24
#define ROUND (3 * USEC_PER_SEC)
#define SAMPLES_MAX 1000000
#define SLOW 100 /* µs; Redis records no shorter calls */

/* --- the viewers: a child --- */

struct viewer {
    struct rig_host *host;
    bool is_asking;
    unsigned n_looks;
};

static void on_look(int r, struct snapshot *snapshot, void *userdata) {
    struct viewer *v = userdata;

    if (r < 0)
        rig_fail("a look has failed: %s", strerror(-r));
    snapshot_free(snapshot);
    v->is_asking = false;
    v->n_looks++;
}

/* As Look with "more": at each whole second each viewer that has its answer asks again. */
static void ask_all(struct viewer *viewers) {
    for (size_t i = 0; i < HOSTS * VIEWERS; i++) {
        if (viewers[i].is_asking)
            continue;
        if (store_inspect(viewers[i].host->store, &(struct store_question){.keys = true}, on_look,
                          &viewers[i]) < 0)
            rig_fail("no look can be asked for");
        viewers[i].is_asking = true;
        rig_touch(viewers[i].host);
    }
}

static bool is_any_asking(const struct viewer *viewers) {
    for (size_t i = 0; i < HOSTS * VIEWERS; i++)
        if (viewers[i].is_asking)
            return true;
    return false;
}

/* Looks for the time of a round. Returns how many pictures came. */
static unsigned view(struct rig *g, struct viewer *viewers) {
    usec_t begun = clock_boottime(), end = begun + ROUND, next = begun - begun % USEC_PER_SEC + USEC_PER_SEC;
    unsigned n = 0;

    for (usec_t now = begun; now < end; now = clock_boottime()) {
        if (now >= next) {
            ask_all(viewers);
            next += USEC_PER_SEC;
        }
        rig_turn(g, next - now);
    }
    RIG_UNTIL(g, !is_any_asking(viewers));
    for (size_t i = 0; i < HOSTS * VIEWERS; i++) {
        n += viewers[i].n_looks;
        viewers[i].n_looks = 0;
    }
    return n;
}

/* Each byte begins a round; the reply is the number of pictures. */
_Noreturn static void run_viewers(const struct rig *of, const struct rig_options *options, int commands,
                                  int answers) {
    struct viewer viewers[HOSTS * VIEWERS] = {};
    struct rig g;
    char command;
    unsigned n = 0;

    (void) nice(10); /* their hosts have processors of their own */
    rig_join(&g, of, options);
    for (size_t i = 0; i < HOSTS * VIEWERS; i++)
        viewers[i].host = &g.hosts[i / VIEWERS];
    do {
        if (write(answers, &n, sizeof(n)) != sizeof(n)) /* first: all are connected */
            _exit(1);
        if (read(commands, &command, 1) != 1)
            _exit(0);
        n = view(&g, viewers);
    } while (true);
}

/* --- those who work --- */

static struct slot *holder;
static double *samples;
static size_t n_samples;

static void on_granted(struct slot *s) {
    if (strcmp(s->demand.pool, "work") == 0)
        holder = s;
}

/* Passes the permit on for the time of a round. Returns the rate per second. */
static double work(struct rig *g, struct slot *slots) {
    usec_t began = clock_boottime(), end = began + ROUND, at = began;

    n_samples = 0;
    while (at < end && n_samples < SAMPLES_MAX) {
        struct slot *s = holder;

        holder = NULL;
        slot_release(s);
        RIG_UNTIL(g, holder);
        samples[n_samples++] = (double) (clock_boottime() - at);
        for (size_t i = 0; i < HOSTS; i++)
            if (slots[i].claim.state == CLAIM_STATE_NONE)
                slot_ask(&slots[i]);
        at = clock_boottime();
    }
    return (double) n_samples * (double) USEC_PER_SEC / (double) (at - began);
}

struct round {
    double rate, p99, worst, longest, empty;
    unsigned pictures;
};

/* Notes the longest call of all, and the longest that looks. */
static void read_slow_calls(struct redis_server *s, struct round *r) {
    _cleanup_reply_ redisReply *log = redis_command(s, "SLOWLOG GET 4000");

    for (size_t i = 0; log && i < log->elements; i++) {
        double usec = (double) log->element[i]->element[2]->integer;
        size_t n;
        bool is_look = redis_look_words(log->element[i], &n) != NULL;

        if (!is_look && strcasecmp(log->element[i]->element[3]->element[0]->str, "EVALSHA") != 0)
            continue;
        r->worst = usec > r->worst ? usec : r->worst;
        if (is_look && usec > r->longest)
            r->longest = usec;
    }
}

static struct round run_round(struct rig *g, struct slot *slots, const int pipes[2][2], bool is_viewed) {
    struct round r = {.longest = SLOW, .empty = peer_cost(&peer_empty, &g->server, 200) / 2};

    redis_reply_freep(&(redisReply *){redis_command(&g->server, "SLOWLOG RESET")});
    if (is_viewed && write(pipes[0][1], "v", 1) != 1)
        rig_fail("the viewers are gone");
    r.rate = work(g, slots);
    r.p99 = quantile(samples, n_samples, 0.99);
    read_slow_calls(&g->server, &r);
    if (is_viewed && read(pipes[1][0], &r.pictures, sizeof(r.pictures)) != sizeof(r.pictures))
        rig_fail("the viewers are gone");
    return r;
}

/* Returns the share of a second that Redis computes for viewers while nobody works. */
static double look_alone(struct rig *g, const int pipes[2][2]) {
    double before = rig_server_cpu(&g->server);
    unsigned pictures;

    if (write(pipes[0][1], "v", 1) != 1 ||
        read(pipes[1][0], &pictures, sizeof(pictures)) != sizeof(pictures))
        rig_fail("the viewers are gone");
    return (rig_server_cpu(&g->server) - before) * USEC_PER_SEC / ROUND;
}

static double median_of(const struct round *rounds, bool is_viewed, double (*get)(const struct round *r)) {
    double values[ROUNDS / 2];
    size_t n = 0;

    for (size_t i = is_viewed; i < ROUNDS; i += 2)
        values[n++] = get(&rounds[i]);
    return quantile(values, n, 0.5);
}
static double rate_of(const struct round *r) {
    return r->rate;
}
/* With viewers as a share of that without, which is the round before. */
static double rate_ratio_of(const struct round *r) {
    return r->rate / r[-1].rate;
}
static double p99_of(const struct round *r) {
    return r->p99;
}
static double worst_of(const struct round *r) {
    return r->worst;
}
static double longest_of(const struct round *r) {
    return r->longest;
}
static double empty_of(const struct round *r) {
    return r->empty;
}
static double pictures_of(const struct round *r) {
    return r->pictures;
}

static void report_rounds(struct report *r, const struct round *rounds) {
    double rate = median_of(rounds, false, rate_of), p99 = median_of(rounds, false, p99_of);

    report_add(r, &(struct figure){"hand-overs, 20 hosts with 5 viewers each on 5 pools of 1000 + 1000",
                                   rate * median_of(rounds, true, rate_ratio_of), "/s", "nobody looks", rate,
                                   GOAL_RATIO_AT_LEAST, 0.95});
    report_add(r,
               &(struct figure){"  99 %, more than without viewers", median_of(rounds, true, p99_of) - p99,
                                "µs", "without", p99, GOAL_VALUE_AT_MOST, 500});
    report_add(r, &(struct figure){"  the longest call of a viewer in a round, 100 µs at least",
                                   median_of(rounds, true, longest_of), "µs", "an empty script",
                                   median_of(rounds, true, empty_of), GOAL_RATIO_AT_MOST, 250});
    report_add(r, &(struct figure){"  the longest call of all", median_of(rounds, true, worst_of), "µs",
                                   "nobody looks", median_of(rounds, false, worst_of), GOAL_NONE, 0});
    report_add(r, &(struct figure){"  pictures of all viewers",
                                   median_of(rounds, true, pictures_of) * USEC_PER_SEC / ROUND, "/s", NULL,
                                   0, GOAL_NONE, 0});
}

/* Heartbeats come as well, so each call is looked at. */
static void count_idle_looks(struct report *r, struct rig *g) {
    _cleanup_reply_ redisReply *log = NULL;
    size_t looks = 0, n;

    redis_reply_freep(&(redisReply *){redis_command(&g->server, "CONFIG SET slowlog-log-slower-than 0")});
    redis_reply_freep(&(redisReply *){redis_command(&g->server, "SLOWLOG RESET")});
    rig_run_for(g, 2 * USEC_PER_SEC);
    log = redis_command(&g->server, "SLOWLOG GET 4000");
    for (size_t i = 0; log && i < log->elements; i++)
        looks += redis_look_words(log->element[i], &n) != NULL;
    redis_reply_freep(&(redisReply *){redis_command(&g->server, "CONFIG SET slowlog-log-slower-than %d", SLOW)});
    report_add(r, &(struct figure){"  calls that look, while nobody looks or works", (double) looks, "calls",
                                   NULL, 0, GOAL_VALUE_AT_MOST, 0});
}

void bench_viewers(struct report *r) {
    static const char *const names[POOLS + 1] = {"a", "b", "c", "d", "e", "work"};
    struct store_pool pools[POOLS + 1];
    struct slot *slots[POOLS + 1];
    const struct rig_options options = {.n_hosts = HOSTS,
                                        .pools = pools,
                                        .n_pools = POOLS + 1,
                                        .redis = (const char *const[]){"--slowlog-log-slower-than", "100",
                                                                       "--slowlog-max-len", "4000", NULL}};
    struct rig_options viewing = options;
    struct round rounds[ROUNDS];
    double alone[5];
    int pipes[2][2];
    unsigned ready;
    struct rig g;
    pid_t child;

    report_section(r, "viewers");
    samples = calloc(SAMPLES_MAX, sizeof(*samples));
    for (size_t i = 0; i <= POOLS; i++) {
        pools[i] = (struct store_pool){.limit = i < POOLS ? CLAIMS / 2 : 1, .queue_limit = CLAIMS};
        (void) snprintf(pools[i].name, sizeof(pools[i].name), "%s", names[i]);
    }
    rig_up(&g, &options);
    peer_empty.prepare(&g.server, 0);
    (void) sched_setscheduler(g.server.pid, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
    g.on_granted = on_granted;
    viewing.prefix = "viewer";
    if (!samples || pipe(pipes[0]) < 0 || pipe(pipes[1]) < 0 || (child = fork()) < 0)
        rig_fail("no process for the viewers");
    if (child == 0) {
        (void) close(pipes[0][1]);
        run_viewers(&g, &viewing, pipes[0][0], pipes[1][1]);
    }
    for (size_t i = 0; i <= POOLS; i++) {
        slots[i] = rig_slots(&g, i < POOLS ? CLAIMS : HOSTS, 0, names[i], 1);
        rig_ask_all(&g, slots[i], i < POOLS ? CLAIMS : HOSTS);
    }
    if (read(pipes[1][0], &ready, sizeof(ready)) != sizeof(ready))
        rig_fail("the viewers are gone");
    count_idle_looks(r, &g);
    for (size_t i = 0; i < ROUNDS; i++)
        rounds[i] = run_round(&g, slots[POOLS], pipes, i % 2);
    for (size_t i = 0; i < ELEMENTSOF(alone); i++)
        alone[i] = look_alone(&g, pipes);
    report_add(r, &(struct figure){"  processor time of Redis for them, share of a core",
                                   100 * quantile(alone, ELEMENTSOF(alone), 0.5), "%", NULL, 0,
                                   GOAL_VALUE_AT_MOST, 5});
    report_rounds(r, rounds);
    (void) close(pipes[0][1]);
    (void) waitpid(child, NULL, 0);
    rig_down(&g);
    for (size_t i = 0; i <= POOLS; i++)
        free(slots[i]);
    free(samples);
}
