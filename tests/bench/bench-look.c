/* SPDX-License-Identifier: MIT */

/* What looking costs Redis: the calls of one look at full pools, and the share of Redis's time if many hosts
 * look all the time. */

#include "tests/bench/benches.h"

#include <stdlib.h>
#include <string.h>

#include "store/snapshot.h"
#include "tests/bench/peer.h"
#include "tests/bench/rig.h"
#include "tests/harness/redis/redis-look.h"

#define HOSTS 20
#define POOLS 5
#define CLAIMS 2000 /* of each pool: half of them wait */
#define LOOKS 10
#define CALLS_MAX 1000 /* of a look */
#define LOGGED_MAX 40000 /* also commands of scripts */
#define WORDS 4        /* records POOL LIST CLAIM, HMGET KEY CLAIM CLAIM */
#define WARM (10 * USEC_PER_SEC) /* what a host may cost at once is spent by then */
#define WATCHED (10 * USEC_PER_SEC)

static const char *const names[POOLS] = {"a", "b", "c", "d", "e"};

struct viewer {
    struct rig_host *host;
    const struct store_question *question;
    unsigned n_looks;
    bool goes_on; /* asks again after each answer */
};

static void look(struct viewer *v);

static void on_look(int r, struct snapshot *snapshot, void *userdata) {
    struct viewer *v = userdata;

    if (r < 0 && v->goes_on)
        rig_fail("a look has failed: %s", strerror(-r));
    snapshot_free(snapshot);
    v->n_looks++;
    if (v->goes_on)
        look(v);
}

static void look(struct viewer *v) {
    if (store_inspect(v->host->store, v->question, on_look, v) < 0)
        rig_fail("no look can be asked for");
    rig_touch(v->host);
}

/* One call, which each look makes again. */
struct look_call {
    char words[200]; /* those that tell it from others */
    double usec[LOOKS];
    size_t n;
};

static struct look_call *find_call(struct look_call *calls, size_t *n_calls, const char *words) {
    for (size_t i = 0; i < *n_calls; i++)
        if (strcmp(calls[i].words, words) == 0)
            return &calls[i];
    if (*n_calls == CALLS_MAX)
        rig_fail("a look has too many calls");
    (void) snprintf(calls[*n_calls].words, sizeof(calls->words), "%s", words);
    return &calls[(*n_calls)++];
}

struct looks { /* all calls that look, µs */
    double sum, longest;
    size_t n;
};

/* Adds logged calls. calls: notes each of them; may be NULL. */
static void read_calls(struct redis_server *s, struct looks *looks, struct look_call *calls, size_t *n_calls) {
    _cleanup_reply_ redisReply *log = redis_command(s, "SLOWLOG GET %d", LOGGED_MAX);

    for (size_t i = 0; log && i < log->elements; i++) {
        double usec = (double) log->element[i]->element[2]->integer;
        char text[sizeof(calls->words)] = "";
        redisReply *const *words;
        struct look_call *call;
        size_t n;

        if (!(words = redis_look_words(log->element[i], &n)))
            continue;
        looks->n++;
        looks->sum += usec;
        looks->longest = usec > looks->longest ? usec : looks->longest;
        if (!calls)
            continue;
        for (size_t k = 0, at = 0; k < n && k < WORDS && at < sizeof(text); k++)
            at += (size_t) snprintf(text + at, sizeof(text) - at, "%s ", words[k]->str);
        call = find_call(calls, n_calls, text);
        if (call->n < LOOKS)
            call->usec[call->n++] = usec;
    }
}

/* A machine that delays one call of a hundred delays some call of each look. So each call counts by its median of
 * all looks, and the longest is that of the dearest call. */
static double dearest_call(struct look_call *calls, size_t n) {
    double dearest = 0;

    for (size_t i = 0; i < n; i++) {
        double usec = calls[i].n > LOOKS / 2 ? quantile(calls[i].usec, calls[i].n, 0.5) : 0;

        dearest = usec > dearest ? usec : dearest;
    }
    return dearest;
}

static void slices(struct report *r, struct rig *g, const struct store_question *question, const char *what) {
    static struct look_call calls[CALLS_MAX];
    struct viewer v = {.host = &g->hosts[0], .question = question};
    double longest[LOOKS], empty = peer_cost(&peer_empty, &g->server, 200) / 2, usec = 0;
    size_t n_calls = 0, n_made = 0;
    char name[100];

    memset(calls, 0, sizeof(calls));
    for (unsigned i = 0; i < LOOKS; i++) {
        struct looks looks = {};

        redis_reply_freep(&(redisReply *) {redis_command(&g->server, "SLOWLOG RESET")});
        look(&v);
        RIG_UNTIL(g, v.n_looks > i);
        read_calls(&g->server, &looks, calls, &n_calls);
        longest[i] = looks.longest;
        usec += looks.sum;
        n_made += looks.n;
    }
    snprintf(name, sizeof(name), "%s, server time in all", what);
    report_add(r, &(struct figure) {name, usec / LOOKS, "µs", NULL, 0, GOAL_NONE, 0});
    snprintf(name, sizeof(name), "%s, calls", what);
    report_add(r, &(struct figure) {name, (double) n_made / LOOKS, "calls", NULL, 0, GOAL_NONE, 0});
    snprintf(name, sizeof(name), "%s, its dearest call", what);
    report_add(r, &(struct figure) {name, dearest_call(calls, n_calls), "µs", "an empty script", empty, GOAL_RATIO_AT_MOST, 250});
    snprintf(name, sizeof(name), "%s, its longest call, delays of the machine included", what);
    report_add(r, &(struct figure) {name, quantile(longest, LOOKS, 0.5), "µs", "an empty script", empty, GOAL_NONE, 0});
}

static void share(struct report *r, struct rig *g) {
    static struct viewer viewers[HOSTS]; /* some get their answer when the rig goes down */
    struct looks calls = {};
    uint64_t looks = 0;
    char name[100];
    usec_t began;

    for (size_t i = 0; i < HOSTS; i++) {
        viewers[i] = (struct viewer) {.host = &g->hosts[i], .goes_on = true};
        look(&viewers[i]);
    }
    rig_run_for(g, WARM);
    for (size_t i = 0; i < HOSTS; i++)
        viewers[i].n_looks = 0;
    redis_reply_freep(&(redisReply *) {redis_command(&g->server, "SLOWLOG RESET")});
    began = clock_boottime();
    rig_run_for(g, WATCHED);
    began = clock_boottime() - began;
    read_calls(&g->server, &calls, NULL, NULL);
    snprintf(name, sizeof(name), "%d hosts that are looked at all the time, share of Redis's core", HOSTS);
    report_add(r, &(struct figure) {name, 100 * calls.sum / (double) began, "%", NULL, 0, GOAL_VALUE_AT_MOST, 5});
    for (size_t i = 0; i < HOSTS; i++) {
        looks += viewers[i].n_looks;
        viewers[i].goes_on = false;
    }
    report_add(r, &(struct figure) {"  looks of each host", (double) (looks * USEC_PER_SEC) / (double) (HOSTS * WATCHED), "/s", NULL, 0, GOAL_NONE, 0});
}

void bench_look(struct report *r) {
    struct store_pool pools[POOLS];
    struct slot *slots[POOLS];
    struct rig g;

    report_section(r, "looking");
    for (size_t i = 0; i < POOLS; i++) {
        pools[i] = (struct store_pool) {.limit = CLAIMS / 2, .queue_limit = CLAIMS};
        (void) snprintf(pools[i].name, sizeof(pools[i].name), "%s", names[i]);
    }
    rig_up(&g, &(struct rig_options) {.n_hosts = HOSTS, .pools = pools, .n_pools = POOLS,
                                      .redis = (const char *const[]) {"--slowlog-log-slower-than", "0", "--slowlog-max-len", "40000", NULL}});
    peer_empty.prepare(&g.server, 0);
    for (size_t i = 0; i < POOLS; i++) {
        slots[i] = rig_slots(&g, CLAIMS, 0, names[i], 1);
        rig_ask_all(&g, slots[i], CLAIMS);
    }
    slices(r, &g, NULL, "a look at 5 pools of 1000 + 1000 claims");
    slices(r, &g, &(struct store_question) {.pools = names, .n_pools = POOLS}, "the same, all claims listed");
    share(r, &g);
    rig_down(&g);
    for (size_t i = 0; i < POOLS; i++)
        free(slots[i]);
}
