/* SPDX-License-Identifier: MIT */

#include "store/status.h"

#include <stdlib.h>
#include <string.h>

#include "store/redis/store-redis.h"

static void describe_server(const struct store_redis *store, struct redis_status *ret) {
    const struct server_info *server = &store->handshake.server;

    (void) snprintf(ret->server, sizeof(ret->server), "%s", server->name);
    (void) snprintf(ret->version, sizeof(ret->version), "%s", server->version);
    (void) snprintf(ret->role, sizeof(ret->role), "%s", server->role);
    (void) snprintf(ret->policy, sizeof(ret->policy), "%s", server->policy);
    ret->replicas = (struct redis_replicas){.has_count = server->has_replicas,
                                            .has_good = server->has_good_replicas,
                                            .count = server->replicas,
                                            .good = server->good_replicas};
    ret->clients = server->clients;
    ret->clients_max = server->clients_max;
    ret->is_cluster = server->is_cluster;
    ret->slot = moved_slot(store->env.key);
    ret->has_scripts = true;
    ret->scripts = store->handshake.is_by_text ? 0 : REDIS_SCRIPTS;
}

static void describe_data(const struct server_info *server, struct redis_status *ret) {
    usec_t saved = server->saved_sec * USEC_PER_SEC;

    ret->data = (struct redis_data) {.memory_used = server->memory_used,
                                     .memory_max = server->memory_max,
                                     .evicted = server->evicted,
                                     .snapshot_failed = server->snapshot_failed,
                                     .append_failed = server->append_failed,
                                     .appends = server->appends,
                                     .unsaved = server->unsaved,
                                     .saved = saved > 0 && server->time_usec > 0 ? usec_sub(server->time_usec, saved)
                                                                                 : USEC_INFINITY};
}

static void describe_clock(const struct server_clock *clock, struct redis_status *ret) {
    ret->clock = (struct redis_clock) {
        .is_known = clock->is_known, .offset_usec = clock->offset_usec, .error_usec = clock->error_usec};
    ret->clock.has_rate = server_clock_rate(clock, &ret->clock.rate_ppm);
}

static void describe_tls(const struct store_redis *store, struct redis_status *ret) {
    const struct tls_session *tls = redis_connection_tls(store->link.commands);

    if (!tls)
        return;
    (void) snprintf(ret->tls_version, sizeof(ret->tls_version), "%s", tls_version(tls));
    ret->tls_until = tls_until(tls);
}

static char *next_warning(struct redis_status *ret) {
    return ret->warnings[ret->n_warnings];
}

static void add_warnings(const struct store_redis *store, struct redis_status *ret) {
    const struct redis_dial *dial = &store->link.dial;

    if (redis_dial_warns_of_expiry(dial, store->link.commands, next_warning(ret), STATUS_WARNING_SIZE))
        ret->n_warnings++;
    if (redis_dial_warns_of_files(dial, next_warning(ret), STATUS_WARNING_SIZE))
        ret->n_warnings++;
    if (store->renewal.why[0])
        (void) snprintf(ret->warnings[ret->n_warnings++], STATUS_WARNING_SIZE, "%s", store->renewal.why);
    for (enum server_warning i = 0; i < SERVER_WARNINGS && ret->n_warnings < STATUS_WARNINGS_MAX; i++)
        if (server_info_warns(&store->handshake.server, i, next_warning(ret), STATUS_WARNING_SIZE))
            ret->n_warnings++;
}

/* Returns the longest time until grace ends. The epoch began before this host knew it. */
static usec_t grace_left(const struct store_redis *store) {
    usec_t lasts = usec_add(store->env.lease_usec, slot_failover_margin(store));
    usec_t left = usec_sub(usec_add(store->epoch.known_since, lasts), clock_boottime());

    return !store->epoch.in_grace ? 0 : left > 0 ? left : USEC_PER_MSEC;
}

void store_redis_get_status(const struct store *s, struct redis_status *ret) {
    const struct store_redis *store = (const struct store_redis *) (const void *) s;

    *ret = (struct redis_status) {0};
    (void) snprintf(ret->address, sizeof(ret->address), "%s", store->link.address);
    if (!ret->address[0]) /* it was never up */
        redis_dial_format_target(&store->link.dial, ret->address, sizeof(ret->address));
    if (find_uses_sentinels(store))
        (void) snprintf(ret->master, sizeof(ret->master), "%s", store->link.settings.sentinels.master);
    if (s->state == STORE_STATE_AWAY || !store->link.commands)
        return;
    describe_server(store, ret);
    describe_data(&store->handshake.server, ret);
    describe_clock(&store->handshake.clock, ret);
    describe_tls(store, ret);
    ret->down_after = find_uses_sentinels(store) ? store->finder.down_after : 0;
    ret->round_trip_usec = heartbeat_round_trip(store);
    ret->grace_usec = grace_left(store);
    ret->failover_margin = slot_failover_margin(store);
    add_warnings(store, ret);
}

void store_redis_get_counts(const struct store *s, struct redis_counts *ret) {
    const struct store_redis *store = (const struct store_redis *) (const void *) s;
    usec_t answered = store->heartbeat.answered_sent;

    memcpy(ret->errors, store->link.n_errors, sizeof(ret->errors));
    ret->round_trips = store->heartbeat.all_round_trips;
    ret->standstill = store->heartbeat.standstill;
    ret->view_calls = store->operator.inspections.budget.n_calls;
    ret->view_usec = store->operator.inspections.budget.all_usec;
    ret->heartbeat_age_usec = answered > 0 ? usec_sub(clock_boottime(), answered) : USEC_INFINITY;
}
