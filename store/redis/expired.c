/* SPDX-License-Identifier: MIT */

#include <string.h>

#include "store/redis/store-redis.h"

void expired_log(struct store_redis *store, const struct sessions_reply *sessions, bool skip_declared) {
    struct expired_reply session;
    struct reclaimed_reply claim;

    for (size_t i = 0; expired_reply_at(sessions->expired, i, &session) == 0; i++)
        if (strcmp(session.session, store->session.replaced) != 0)
            event_emit(
                store->env.events,
                &(struct event) {.type = EVENT_HOST_EXPIRED, .host = session.host, .clock = session.clock},
                "host %s sent no heartbeat for a lease: its permits are reclaimed", session.host);
    for (size_t i = 0; reclaimed_reply_at(sessions->reclaimed, i, &claim) == 0; i++)
        event_emit(store->env.events,
                   &(struct event) {.type = EVENT_RECLAIMED,
                                   .job = claim.name,
                                   .run = claim.run,
                                   .pools = claim.pools,
                                   .host = claim.host,
                                   .token = claim.token,
                                   .clock = claim.clock},
                   "permits of %s (%s) on host %s are reclaimed: the host's lease is over", claim.name,
                   claim.pools, *claim.host ? claim.host : "(name unknown)");
    limits_apply_undeclared(store, sessions->undeclared, skip_declared);
}
