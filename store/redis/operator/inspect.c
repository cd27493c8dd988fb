/* SPDX-License-Identifier: MIT */

#include <stdlib.h>
#include <string.h>

#include "store/redis/operator/inspect-internal.h"
#include "store/redis/store-redis.h"

#define MINE_MAX 1000 /* of this host's waiting claims whose positions are requested, for each pool */
#define NAMES_MAX 1000

static void inspection_free(struct inspection *inspection) {
    for (size_t i = 0; i < inspection->n_pools; i++) {
        free(inspection->pools[i].mine);
        free(inspection->pools[i].keys);
    }
    for (size_t i = 0; i < inspection->n_names; i++)
        free(inspection->names[i]);
    free(inspection->names);
    free(inspection->pools);
    snapshot_free(inspection->snapshot);
    list_unlink(&inspection->link);
    free(inspection);
}

void inspection_answer(struct inspection *inspection, int result) {
    store_inspect_fn fn = inspection->fn;
    void *userdata = inspection->userdata;
    struct snapshot *snapshot = result == 0 ? steal_pointer(&inspection->snapshot) : NULL;

    inspection->fn = NULL;
    if (inspection->n_calls == 0)
        inspection_free(inspection);
    fn(result, snapshot, userdata);
}

bool inspection_end_call(struct inspection *inspection) {
    bool wanted = inspection->fn != NULL;

    inspection->n_calls--;
    if (!wanted && inspection->n_calls == 0)
        inspection_free(inspection);
    return wanted;
}

/* --- calls and replies --- */

void inspection_begin_call(struct store_redis *store, struct redis_command *command, const char *what) {
    command_add(command, "EVALSHA");
    command_add(command, redis_script_sha(REDIS_SCRIPT_INSPECT));
    command_add(command, "1");
    command_add(command, store->env.key);
    command_add(command, what);
}

static void inspect_on_pool(const struct redisReply *reply, void *userdata) {
    const struct pool_call *call = userdata;
    struct inspection *inspection = call->inspection;
    const char(*mine)[ID_TEXT_SIZE] = (const char(*)[ID_TEXT_SIZE]) call->mine;
    size_t pool = (size_t) (call - inspection->pools);
    int r;

    if (!inspection_end_call(inspection))
        return;
    r = inspect_parse_pool(inspection->snapshot, pool, inspection->time_realtime, reply);
    if (r >= 0)
        r = inspect_parse_positions(inspection->snapshot, pool, mine, call->n_mine, reply);
    inspection_continue(inspection, r);
}

void inspection_continue(struct inspection *inspection, int r) {
    if (r < 0)
        inspection_answer(inspection, r);
    else if (inspection->n_calls == 0)
        inspection_answer(inspection, inspect_keys_finish(inspection));
}

/* Adds this host's waiting claims. */
static int add_mine(struct store_redis *store, struct pool_call *call, const char *pool,
                    struct redis_command *command) {
    call->mine = calloc(MINE_MAX, sizeof(*call->mine));
    if (!call->mine)
        return -ENOMEM;
    list_foreach(entry, &store->table.entries, struct claim_entry, link) {
        const struct claim *claim = entry->claim;

        if (call->n_mine == MINE_MAX)
            break;
        if (claim->state != CLAIM_STATE_WAITING)
            continue;
        for (size_t i = 0; i < claim->n_demands; i++)
            if (strcmp(claim->demands[i].pool, pool) == 0) {
                memcpy(call->mine[call->n_mine++], claim->id, ID_TEXT_SIZE);
                command_add(command, claim->id);
            }
    }
    return 0;
}

static int send_pool(struct inspection *inspection, struct pool_call *call, const char *pool) {
    _cleanup_command_ struct redis_command command = {0};
    int r;

    call->inspection = inspection;
    inspection_begin_call(inspection->store, &command, "pool");
    command_add(&command, pool);
    r = add_mine(inspection->store, call, pool, &command);
    if (r >= 0)
        r = call_send(inspection->store, &command, inspect_on_pool, call);
    if (r >= 0)
        inspection->n_calls++;
    return r;
}

static int send_pools(struct inspection *inspection) {
    const struct snapshot *snapshot = inspection->snapshot;
    int r = 0;

    inspection->pools = calloc(snapshot->n_pools + 1, sizeof(*inspection->pools));
    if (!inspection->pools)
        return -ENOMEM;
    inspection->n_pools = snapshot->n_pools;
    for (size_t i = 0; r >= 0 && i < inspection->n_pools; i++)
        r = send_pool(inspection, &inspection->pools[i], snapshot->pools[i].name);
    for (size_t i = 0; r >= 0 && inspection->keys && i < inspection->n_pools; i++)
        if (pool_name_parse(snapshot->pools[i].name) == POOL_NAME_PATTERN)
            r = inspect_keys_send(&inspection->pools[i], "0");
    return r < 0 ? r : 0;
}

/* A key that is there already is added again without effect. */
static int add_name(struct inspection *inspection, const char *name) {
    char **grown;

    if (inspection->n_names >= NAMES_MAX || pool_name_parse(name) != POOL_NAME_KEY)
        return 0;
    grown = reallocarray(inspection->names, inspection->n_names + 1, sizeof(*grown));
    if (!grown)
        return -ENOMEM;
    inspection->names = grown;
    grown[inspection->n_names] = strdup(name);
    return grown[inspection->n_names] ? (int) inspection->n_names++ : -ENOMEM;
}

/* Adds the keys of this host's claims. */
static int add_own_keys(struct inspection *inspection) {
    int r = 0;

    list_foreach(entry, &inspection->store->table.entries, struct claim_entry, link)
        for (size_t i = 0; r >= 0 && i < entry->claim->n_demands; i++)
            r = add_name(inspection, entry->claim->demands[i].pool);
    return r;
}

static void inspect_on_sessions(const struct redisReply *reply, void *userdata) {
    struct inspection *inspection = userdata;
    int r;

    if (!inspection_end_call(inspection))
        return;
    r = add_own_keys(inspection);
    if (r >= 0)
        r = inspect_parse_sessions(inspection->store, inspection->snapshot, inspection->names, inspection->n_names, reply,
                                   &inspection->time_realtime);
    if (r >= 0)
        r = send_pools(inspection);
    if (r < 0 || inspection->n_calls == 0)
        inspection_answer(inspection, r < 0 ? r : 0);
}

/* Without effect on an error: the link is failing and fails the inspection, or inspect_send_pending()
 * repeats the call. */
static void send_sessions(struct inspection *inspection) {
    _cleanup_command_ struct redis_command command = {0};

    inspection_begin_call(inspection->store, &command, "sessions");
    if (call_send(inspection->store, &command, inspect_on_sessions, inspection) < 0)
        return;
    inspection->n_calls++;
    inspection->is_sent = true;
}

/* --- all inspections --- */

void inspect_send_pending(struct store_redis *store) {
    list_foreach_safe(inspection, &store->inspections, struct inspection, link)
        if (!inspection->is_sent)
            send_sessions(inspection);
}

void inspect_reset(struct store_redis *store) {
    list_foreach_safe(inspection, &store->inspections, struct inspection, link) {
        inspection->n_calls = 0;
        if (!inspection->fn)
            inspection_free(inspection);
    }
}

void inspect_fail(struct store_redis *store) {
    struct list all = LIST_INIT(all);
    struct inspection *inspection;

    list_foreach_safe(each, &store->inspections, struct inspection, link) {
        if (each->n_calls > 0)
            continue;
        list_unlink(&each->link);
        list_append(&all, &each->link);
    }
    while ((inspection = list_first(&all, struct inspection, link)))
        inspection_answer(inspection, -ENOTCONN);
}

static int add_question(struct inspection *inspection, const struct store_question *question) {
    int r = 0;

    inspection->keys = question && question->keys;
    for (size_t i = 0; r >= 0 && question && i < question->n_pools; i++)
        r = add_name(inspection, question->pools[i]);
    return r;
}

int inspect_start(struct store *base, const struct store_question *question, store_inspect_fn fn, void *userdata) {
    struct store_redis *store = store_redis_of(base);
    struct inspection *inspection = calloc(1, sizeof(*inspection));

    if (!inspection)
        return -ENOMEM;
    list_init(&inspection->link);
    inspection->snapshot = calloc(1, sizeof(*inspection->snapshot));
    if (!inspection->snapshot || add_question(inspection, question) < 0) {
        inspection_free(inspection);
        return -ENOMEM;
    }
    inspection->store = store;
    inspection->fn = fn;
    inspection->userdata = userdata;
    list_append(&store->inspections, &inspection->link);
    if (store->link.phase >= PHASE_SYNC)
        send_sessions(inspection);
    else
        link_fail_waiting_later(store);
    return 0;
}
