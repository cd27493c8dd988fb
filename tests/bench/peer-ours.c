/* SPDX-License-Identifier: MIT */

/* Our own scripts, called as the peers are: by one client, in the same pipelines. In our hosts an event loop works between
 * two calls, and Redis then finds colder caches: this costs a heartbeat more than all that its script does above its floor. */

#include "store/redis/store-redis.h"
#include "tests/bench/peer.h"
#include "tests/bench/rig.h"

#define CALL "%s %s 1 %s %s %s %s 1" /* of this host's session; its arguments follow */
#define HOW(script) \
    ours.functions ? "FCALL" : "EVALSHA", ours.functions ? "berth_" #script : redis_script_sha(REDIS_SCRIPT_##script), \
        ours.store->env.key, ours.store->session.id, ours.connection, ours.store->epoch.id

static struct {
    const struct store_redis *store; /* whose session is used */
    char connection[24];
    bool functions;
    unsigned oldest; /* of the claims of the pool "full" */
} ours;

void peer_ours_use(struct rig *g) {
    ours.store = store_redis_of(g->hosts[0].store);
    snprintf(ours.connection, sizeof(ours.connection), "%" PRIu64, ours.store->session.connection);
    ours.oldest = 0;
}

static unsigned claim_of(redisContext *c, unsigned number, const char *pool) {
    char id[ID_TEXT_SIZE], details[64];

    snprintf(id, sizeof(id), "%032u", number);
    snprintf(details, sizeof(details), "0 4711 %s pg-dump", ours.store->session.id);
    redisAppendCommand(c, CALL " %s %s 0 0 %s 1 10000000", HOW(CLAIM), id, details, pool);
    return 1;
}

static unsigned claim(redisContext *c, unsigned number) {
    return claim_of(c, number, "busy");
}

static unsigned wait_for(redisContext *c, unsigned number) {
    return claim_of(c, number, "full");
}

static unsigned release(redisContext *c, unsigned number) {
    char id[ID_TEXT_SIZE];

    snprintf(id, sizeof(id), "%032u", number);
    redisAppendCommand(c, CALL " %s", HOW(RELEASE), id);
    return 1;
}

/* The claims of a full pool are granted in their order. */
static unsigned grant(redisContext *c, unsigned number _unused_) {
    return release(c, ours.oldest++);
}

static unsigned beat(redisContext *c, unsigned number _unused_) {
    redisAppendCommand(c, CALL " 0 0 0 0", HOW(HEARTBEAT));
    return 1;
}

static unsigned nothing(redisContext *c _unused_, unsigned number _unused_) {
    return 0;
}

static void use_scripts(struct redis_server *s _unused_, size_t holders _unused_) {
    ours.functions = false;
}

static void use_functions(struct redis_server *s _unused_, size_t holders _unused_) {
    ours.functions = true;
}

const struct peer peer_ours = {"claim+release", "evalsha", SIZE_MAX, use_scripts, claim, release};
const struct peer peer_ours_functions = {"claim+release as Redis Functions", "fcall", SIZE_MAX, use_functions, claim, release};
const struct peer peer_ours_wait = {"claim that has to wait", "evalsha", SIZE_MAX, use_scripts, wait_for, nothing};
const struct peer peer_ours_grant = {"release that grants", "evalsha", SIZE_MAX, use_scripts, grant, nothing};
const struct peer peer_ours_beat = {"heartbeat", "evalsha", SIZE_MAX, use_scripts, beat, nothing};
