/* SPDX-License-Identifier: MIT */

/* The same scripts as Redis Functions, whose library is compiled once: what that would save. */

#include "tests/bench/benches.h"

#include <string.h>

#include "store/redis/store-redis.h"
#include "tests/bench/peer.h"
#include "tests/bench/rig.h"

#define ROUNDS 21
#define PAIRS 200

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
    put_function(out, "berth_CLAIM", REDIS_SCRIPT_CLAIM);
    put_function(out, "berth_RELEASE", REDIS_SCRIPT_RELEASE);
    fclose(out);

    _cleanup_reply_ redisReply *reply = redisCommand(peer_connect(s), "FUNCTION LOAD %s", library);
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        rig_fail("FUNCTION LOAD: %s", reply ? reply->str : "no reply");
}

void bench_functions(struct report *r) {
    double by_script[ROUNDS], by_function[ROUNDS];
    struct rig g;

    report_section(r, "Redis Functions");
    rig_up(&g, &(struct rig_options) {.n_hosts = 1, .pools = rig_pools, .n_pools = 1});
    load_library(&g.server);
    peer_ours_use(&g);
    for (size_t i = 0; i < ROUNDS; i++) {
        peer_ours.prepare(&g.server, 0);
        by_script[i] = peer_cost(&peer_ours, &g.server, PAIRS);
        peer_ours_functions.prepare(&g.server, 0);
        by_function[i] = peer_cost(&peer_ours_functions, &g.server, PAIRS);
    }
    size_t m = median_round(by_function, by_script, ROUNDS);
    report_add(r, &(struct figure) {"claim+release as Redis Functions, server time", by_function[m], "µs", "the same by EVALSHA",
                                    by_script[m], GOAL_NONE, 0});
    rig_down(&g);
}
