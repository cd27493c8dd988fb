/* SPDX-License-Identifier: MIT */

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "store/redis/operator/inspect-internal.h"
#include "store/redis/store-redis.h"

#define BRIEF_MAX 100   /* claims listed of a pool that the question does not name */
#define MINE_MAX 1000   /* this host's waiting claims of a pool whose positions are requested */
#define NAMES_MAX 1000
#define CALLS_MAX 100000 /* of a step: 100,000 keys take some 6,500, ten times as many after most keys have gone */
#define TRIM_AFTER (10 * USEC_PER_SEC) /* since somebody last looked */

struct inspect_asker {
    struct list link; /* on inspection->askers */
    store_inspect_fn fn;
    void *userdata;
};

static const struct {
    const char *word; /* of inspect.lua */
    int (*read)(struct inspection *inspection, const struct redisReply *reply);
} steps[] = {
    [INSPECT_SESSIONS] = {"sessions", inspect_read_sessions},
    [INSPECT_POOL] = {"pool", inspect_read_pool},
    [INSPECT_POSITIONS] = {"positions", inspect_read_positions},
    [INSPECT_HELD] = {"held", inspect_read_held},
    [INSPECT_QUEUE] = {"queue", inspect_read_queue},
    [INSPECT_PARKED] = {"parked", inspect_read_parked},
    [INSPECT_KEYS] = {"keys", inspect_read_keys},
    [INSPECT_TIMES] = {"times", inspect_read_times},
};

const char *inspect_step_word(enum inspect_step step) {
    return steps[step].word;
}

static void drop_collected(struct inspection *inspection) {
    inspection->snapshot = snapshot_free(inspection->snapshot);
    free(inspection->mine);
    free(inspection->of_pattern);
    free(inspection->claims);
    inspection->mine = NULL;
    inspection->of_pattern = NULL;
    inspection->claims = NULL;
    inspection->n_claims = 0;
    inspection->part = INSPECT_LIST;
    inspection->n_limits = inspection->n_calls = 0;
    inspection->n_mine = inspection->n_of_pattern = inspection->n_of_pattern_allocated = 0;
}

static void inspection_free(struct inspection *inspection) {
    drop_collected(inspection);
    for (size_t i = 0; i < inspection->n_names; i++)
        free(inspection->names[i]);
    free(inspection->names);
    list_foreach_safe(asker, &inspection->askers, struct inspect_asker, link) {
        list_unlink(&asker->link);
        free(asker);
    }
    list_unlink(&inspection->link);
    free(inspection);
}

/* Answers all askers with the same snapshot. */
static void inspection_answer(struct inspection *inspection, int result) {
    struct snapshot *snapshot = result == 0 ? steal_pointer(&inspection->snapshot) : NULL;
    struct list askers = LIST_INIT(askers);
    struct inspect_asker *asker;

    list_foreach_safe(each, &inspection->askers, struct inspect_asker, link) {
        if (snapshot && !list_is_empty(&askers))
            snapshot->n_shared++;
        list_unlink(&each->link);
        list_append(&askers, &each->link);
    }
    inspection_free(inspection);
    while ((asker = list_first(&askers, struct inspect_asker, link))) {
        store_inspect_fn fn = asker->fn;
        void *userdata = asker->userdata;

        list_unlink(&asker->link);
        free(asker);
        fn(result, snapshot, userdata);
    }
}

/* --- steps --- */

bool inspect_is_named(const struct inspection *inspection, const char *pool) {
    for (size_t i = 0; i < inspection->n_names; i++)
        if (strcmp(inspection->names[i], pool) == 0)
            return true;
    return false;
}

size_t inspect_list_max(const struct inspection *inspection) {
    return inspect_is_named(inspection, inspection->snapshot->pools[inspection->pool].name) ? SNAPSHOT_LIST_MAX : BRIEF_MAX;
}

/* Finds this host's claims that wait in the pool. */
static int find_mine(struct inspection *inspection, const char *pool) {
    inspection->n_mine = inspection->mine_at = 0;
    if (!inspection->mine)
        inspection->mine = calloc(MINE_MAX, sizeof(*inspection->mine));
    if (!inspection->mine)
        return -ENOMEM;
    list_foreach(entry, &inspection->store->table.entries, struct claim_entry, link) {
        const struct claim *claim = entry->claim;

        if (inspection->n_mine == MINE_MAX)
            break;
        if (claim->state != CLAIM_STATE_WAITING)
            continue;
        for (size_t i = 0; i < claim->n_demands; i++)
            if (strcmp(claim->demands[i].pool, pool) == 0)
                memcpy(inspection->mine[inspection->n_mine++], claim->id, ID_TEXT_SIZE);
    }
    return 0;
}

/* Returns 1 if the step needs a call, 0 or a negative errno. */
static int is_needed(struct inspection *inspection) {
    struct snapshot_pool *pool = &inspection->snapshot->pools[inspection->pool];
    int r;

    switch (inspection->step) {
    case INSPECT_SESSIONS:
    case INSPECT_POOL:
        return 1;
    case INSPECT_POSITIONS:
        r = pool->waiting > 0 ? find_mine(inspection, pool->name) : 0;
        return r < 0 ? r : pool->waiting > 0 && inspection->n_mine > 0;
    case INSPECT_HELD:
        return pool->used > 0;
    case INSPECT_QUEUE:
        return pool->waiting > 0;
    case INSPECT_PARKED:
        pool->is_cut |= pool->parked > 0 && pool->n_queue >= inspect_list_max(inspection);
        return pool->parked > 0 && pool->n_queue < inspect_list_max(inspection);
    case INSPECT_KEYS:
        return inspection->keys && pool_name_parse(pool->name) == POOL_NAME_PATTERN;
    case INSPECT_TIMES: /* of no pool: next_step() */
        break;
    }
    return 0;
}

/* Goes to the next step. Returns 1, 0 (that was the last one) or a negative errno. */
static int next_step(struct inspection *inspection) {
    int r;

    if (inspection->step == INSPECT_SESSIONS) {
        r = inspect_collect_pools(inspection);
        if (r < 0)
            return r;
        inspection->n_pools = inspection->snapshot->n_pools;
        inspection->pool = 0;
    }
    if (inspection->step == INSPECT_TIMES)
        return 0;
    (void) snprintf(inspection->cursor, sizeof(inspection->cursor), "0");
    inspection->n_calls = 0;
    do {
        if (inspection->step == INSPECT_KEYS) {
            inspection->step = INSPECT_POOL;
            inspection->pool++;
        } else {
            inspection->step++;
        }
        if (inspection->pool == inspection->n_pools) {
            inspection->step = INSPECT_TIMES;
            return inspect_collect_hosts(inspection);
        }
        r = is_needed(inspection);
    } while (r == 0);
    return r;
}

/* --- calls and replies --- */

static int begin(struct inspection *inspection) {
    inspect_budget_begin(&inspection->store->operator.inspections.budget, clock_boottime());
    drop_collected(inspection);
    inspection->snapshot = calloc(1, sizeof(*inspection->snapshot));
    if (!inspection->snapshot)
        return -ENOMEM;
    inspection->snapshot->begun = clock_boottime();
    inspection->is_begun = true;
    inspection->step = INSPECT_SESSIONS;
    (void) snprintf(inspection->cursor, sizeof(inspection->cursor), "0");
    return 0;
}

/* Returns 1 if the step has another call, 0 or a negative errno. */
static int read_reply(struct inspection *inspection, const struct redisReply *reply) {
    int r;

    if (inspect_is_plain(inspection))
        return steps[inspection->step].read(inspection, reply);
    r = reply_is(reply_at(reply, INSPECT_ANSWER), "ok") ? steps[inspection->step].read(inspection, reply) : -EBADMSG;
    inspect_malformed_read(inspection->snapshot, reply_at(reply, INSPECT_MALFORMED));
    return r;
}

static void inspect_on_reply(const struct redisReply *reply, void *userdata) {
    struct inspection *inspection = userdata;
    struct store_redis *store = inspection->store;
    bool is_other_epoch;
    int r;

    inspection->is_under_way = false;
    inspect_budget_spend(&store->operator.inspections.budget, clock_boottime(), inspect_cost_of(inspection, reply));
    r = read_reply(inspection, reply);
    is_other_epoch = r == -ESTALE;
    if (r > 0 && ++inspection->n_calls == CALLS_MAX)
        r = -EBADMSG; /* a Redis whose lists never end */
    if (r == 0)
        r = next_step(inspection);
    if (r > 0) {
        inspect_send_call(inspection, inspect_on_reply);
    } else if (is_other_epoch && !inspection->is_repeated) {
        inspection->is_repeated = true;
        inspection->is_begun = false;
    } else {
        inspection_answer(inspection, r);
    }
    /* Redis has lost its data, or has an epoch that this host does not know yet: claims are missing there until hosts have reported
     * them. The snapshot begins again after the sync. */
    if (is_other_epoch && store->link.phase == PHASE_LIVE && !store->stop.is_under_way)
        link_resync(store);
    if (list_is_empty(&store->operator.inspections.list))
        timer_set_in(&store->operator.inspections.timer, TRIM_AFTER);
    inspect_send_pending(store);
}

/* --- all inspections --- */

/* Begins an inspection as soon as the budget allows it. 1: it has begun; 0: it waits; -ENOMEM. */
static int begin_in_time(struct inspection *inspection) {
    struct inspections *all = &inspection->store->operator.inspections;
    usec_t wait = inspect_budget_wait(&all->budget, clock_boottime());
    int r;

    if (wait > 0) {
        timer_set_in(&all->timer, wait);
        return 0;
    }
    r = begin(inspection);
    return r < 0 ? r : 1;
}

void inspect_send_pending(struct store_redis *store) {
    struct inspection *first;

    while (store->link.phase >= PHASE_SYNC && (first = list_first(&store->operator.inspections.list, struct inspection, link)) &&
           !first->is_under_way) {
        int r = first->is_begun ? 1 : begin_in_time(first);

        if (r > 0)
            inspect_send_call(first, inspect_on_reply);
        if (r >= 0)
            break;
        inspection_answer(first, r);
    }
}

static void inspect_on_time(void *userdata) {
    struct store_redis *store = userdata;

    if (list_is_empty(&store->operator.inspections.list))
        (void) malloc_trim(0); /* a picture of thousands of claims took megabytes, in small pieces */
    inspect_send_pending(store);
}

int inspect_init(struct store_redis *store) {
    return timer_init(&store->operator.inspections.timer, store->env.event, SD_EVENT_PRIORITY_NORMAL + 1, inspect_on_time, store);
}

void inspect_done(struct store_redis *store) {
    timer_done(&store->operator.inspections.timer);
}

void inspect_reset(struct store_redis *store) {
    list_foreach(inspection, &store->operator.inspections.list, struct inspection, link)
        inspection->is_begun = inspection->is_under_way = false;
}

void inspect_fail(struct store_redis *store) {
    struct list all = LIST_INIT(all);
    struct inspection *inspection;

    list_foreach_safe(each, &store->operator.inspections.list, struct inspection, link) {
        if (each->is_under_way)
            continue;
        list_unlink(&each->link);
        list_append(&all, &each->link);
    }
    while ((inspection = list_first(&all, struct inspection, link)))
        inspection_answer(inspection, -ENOTCONN);
}

/* --- questions --- */

/* Adds a name once. */
static int add_name(struct inspection *inspection, const char *name) {
    if (inspection->n_names >= NAMES_MAX || inspect_is_named(inspection, name))
        return 0;
    if (!array_grow(inspection->names, inspection->n_names))
        return -ENOMEM;
    inspection->names[inspection->n_names] = strdup(name);
    return inspection->names[inspection->n_names] ? (int) inspection->n_names++ : -ENOMEM;
}

static struct inspection *inspection_new(struct store_redis *store) {
    struct inspection *inspection = calloc(1, sizeof(*inspection));

    if (!inspection)
        return NULL;
    inspection->store = store;
    list_init(&inspection->askers);
    list_init(&inspection->link);
    list_append(&store->operator.inspections.list, &inspection->link);
    return inspection;
}

/* Returns an inspection that is not begun, so that no answer is older than its question. */
static struct inspection *find_or_add(struct store_redis *store) {
    list_foreach(inspection, &store->operator.inspections.list, struct inspection, link)
        if (!inspection->is_begun)
            return inspection;
    return inspection_new(store);
}

/* Adds the question, and the keys of this host's claims. */
static int add_question(struct inspection *inspection, const struct store_question *question) {
    int r = 0;

    for (size_t i = 0; r >= 0 && question && i < question->n_pools; i++)
        r = add_name(inspection, question->pools[i]);
    list_foreach(entry, &inspection->store->table.entries, struct claim_entry, link)
        for (size_t i = 0; r >= 0 && i < entry->claim->n_demands; i++)
            if (pool_name_parse(entry->claim->demands[i].pool) == POOL_NAME_KEY)
                r = add_name(inspection, entry->claim->demands[i].pool);
    inspection->keys |= question && question->keys;
    inspection->times |= question && question->times;
    return r;
}

int inspect_start(struct store *base, const struct store_question *question, store_inspect_fn fn, void *userdata) {
    struct store_redis *store = store_redis_of(base);
    struct inspection *inspection = find_or_add(store);
    struct inspect_asker *asker = inspection ? calloc(1, sizeof(*asker)) : NULL;

    if (!asker || add_question(inspection, question) < 0) {
        if (inspection && list_is_empty(&inspection->askers))
            inspection_free(inspection);
        free(asker);
        return -ENOMEM;
    }
    asker->fn = fn;
    asker->userdata = userdata;
    list_init(&asker->link);
    list_append(&inspection->askers, &asker->link);
    if (store->link.phase >= PHASE_SYNC)
        timer_set_in(&store->operator.inspections.timer, 0); /* other questions of this turn of the loop share it */
    else
        link_fail_waiting_later(store);
    return 0;
}
