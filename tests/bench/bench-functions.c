/* SPDX-License-Identifier: MIT */

/* The same scripts as Redis Functions, whose library is compiled once: what that would save. */

#include "tests/bench/benches.h"

#include <string.h>

#include "store/redis/store-redis.h"
#include "tests/bench/peer.h"
#include "tests/bench/rig.h"

#define ROUNDS 21
#define PAIRS 200

static const struct store_pool pools[] = {{.name = "busy", .limit = 10000000, .queue_limit = 10000000}};

static struct {
    const struct store_redis *store; /* whose session is used */
    bool functions;
} how;

static unsigned claim(redisContext *c, unsigned number) {
    const struct store_redis *store = how.store;
    char id[ID_TEXT_SIZE], connection[24], who[64];

    snprintf(id, sizeof(id), "%032u", number);
    snprintf(connection, sizeof(connection), "%" PRIu64, store->session.connection);
    snprintf(who, sizeof(who), "0 4711 %s pg-dump", store->session.id);
    redisAppendCommand(c, "%s %s 2 %s %s %s %s %s 1 %s %s 0 0 busy 1 10000000", how.functions ? "FCALL" : "EVALSHA",
                       how.functions ? "berth_claim" : redis_script_sha(REDIS_SCRIPT_CLAIM), store->env.key, store->env.none, store->session.id, connection, store->epoch.id, id,
                       who);
    return 1;
}

static unsigned release(redisContext *c, unsigned number) {
    const struct store_redis *store = how.store;
    char id[ID_TEXT_SIZE], connection[24];

    snprintf(id, sizeof(id), "%032u", number);
    snprintf(connection, sizeof(connection), "%" PRIu64, store->session.connection);
    redisAppendCommand(c, "%s %s 2 %s %s %s %s %s 1 %s", how.functions ? "FCALL" : "EVALSHA",
                       how.functions ? "berth_release" : redis_script_sha(REDIS_SCRIPT_RELEASE), store->env.key, store->env.none, store->session.id, connection, store->epoch.id, id);
    return 1;
}

static void put_function(FILE *out, const char *name, enum redis_script script) {
    const char *body = strchr(redis_script_text(script), '\n'); /* without "#!lua" */

    fprintf(out, "redis.register_function{function_name='%s', flags={'allow-oom'}, callback=function(KEYS, ARGV)%s\nend}\n", name, body);
}

static void load_library(struct redis_server *s) {
    _cleanup_free_ char *library = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&library, &size);

    if (!out)
        abort();
    fputs("#!lua name=berth\n", out);
    put_function(out, "berth_claim", REDIS_SCRIPT_CLAIM);
    put_function(out, "berth_release", REDIS_SCRIPT_RELEASE);
    fclose(out);

    _cleanup_reply_ redisReply *reply = redisCommand(peer_connect(s), "FUNCTION LOAD %s", library);
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        rig_fail("FUNCTION LOAD: %s", reply ? reply->str : "no reply");
}

void bench_functions(struct report *r) {
    static const struct peer scripts = {"", "evalsha", SIZE_MAX, NULL, claim, release};
    static const struct peer functions = {"", "fcall", SIZE_MAX, NULL, claim, release};
    double by_script[ROUNDS], by_function[ROUNDS];
    struct rig g;

    report_section(r, "Redis Functions");
    rig_up(&g, &(struct rig_options) {.n_hosts = 1, .pools = pools, .n_pools = ELEMENTSOF(pools)});
    load_library(&g.server);
    how.store = store_redis_of(g.hosts[0].store);
    for (size_t i = 0; i < ROUNDS; i++) {
        how.functions = false;
        by_script[i] = peer_cost(&scripts, &g.server, PAIRS);
        how.functions = true;
        by_function[i] = peer_cost(&functions, &g.server, PAIRS);
    }
    size_t m = median_round(by_function, by_script, ROUNDS);
    report_add(r, &(struct figure) {"claim+release as Redis Functions, server time", by_function[m], "µs", "the same by EVALSHA",
                                    by_script[m], GOAL_NONE, 0});
    rig_down(&g);
}
