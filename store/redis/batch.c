/* SPDX-License-Identifier: MIT */

#include <stdlib.h>
#include <string.h>

#include "base/failpoint.h"
#include "store/redis/store-redis.h"

#define BATCH_MAX 32 /* a larger batch delays others for longer and saves little */

struct batch { /* one call for claims, or for releases */
    struct store_redis *store;
    struct list link; /* on batches.all */
    bool is_release;
    size_t n;
    struct claim_entry *entries[BATCH_MAX]; /* in the table until the reply, or until the connection is closed */
};

static struct batch *batch_free(struct batch *batch) {
    if (batch)
        list_unlink(&batch->link);
    free(batch);
    return NULL;
}
DEFINE_CLEANUP(struct batch, batch_free)

static void end_calls(struct batch *batch) {
    for (size_t i = 0; i < batch->n; i++)
        claims_end_call(batch->entries[i]);
}

/* --- replies --- */

/* Reads the line for one entry. Only the reply to several entries is a list of lines. */
static int read_line(const struct batch *batch, const struct redisReply *reply, size_t i,
                     struct reply_line *ret) {
    size_t n;

    if (batch->n == 1) /* a reply to `turn` may have more lines */
        return reply_line_read(reply_count(reply, &n) < 0 ? reply : reply_at(reply, 0), ret);
    if (reply_count(reply, &n) < 0 || n != batch->n)
        return -EBADMSG;
    return reply_line_read(reply_at(reply, i), ret);
}

static int handle_claim(struct claim_entry *entry, const struct reply_line *line, uint64_t *ret_more) {
    struct store_redis *store = entry->store;
    struct claim_reply reply;
    int r = entry->claim->turn ? turns_handle_reply(entry, line) : 0;

    if (r != 0)
        return r < 0 ? r : 0;
    if (claim_reply_parse(line, &reply) < 0)
        return -EBADMSG;
    *ret_more = reply.more;
    if (reply.refusal) {
        claims_handle_refused(
            entry, strcmp(reply.refusal, "busy") == 0 ? STORE_REFUSAL_BUSY : STORE_REFUSAL_QUEUE_FULL,
            reply.pool);
        return 0;
    }
    claim_table_confirm(entry, true);
    clock_observe_drawn(store, reply.token > reply.ticket ? reply.token : reply.ticket);
    if (reply.state == 'H') {
        push_observe_number(store, reply.previous, reply.token);
        claims_handle_held(entry, reply.ticket, reply.token, reply.since_realtime,
                           usec_sub(reply.token, reply.since_realtime));
    } else {
        claims_handle_waiting(entry, reply.state == 'P', reply.ticket, reply.position, reply.since_realtime);
    }
    return 0;
}

static int handle_release(struct claim_entry *entry, const struct reply_line *line, uint64_t *ret_more) {
    struct release_reply reply;

    if (release_reply_parse(line, &reply) < 0)
        return -EBADMSG;
    *ret_more = reply.more;
    return claims_handle_released(entry, &reply);
}

static void handle_full(struct batch *batch) {
    for (size_t i = 0; i < batch->n; i++)
        claims_handle_full(batch->entries[i]);
}

static void batch_on_reply(const struct redisReply *reply, void *userdata) {
    _cleanup_(batch_freep) struct batch *batch = userdata;
    struct store_redis *store = batch->store;
    const char *error = reply_error(reply);
    bool any_more = false;

    list_unlink(&batch->link); /* a listener may reset the other batches */
    end_calls(batch);
    FAILPOINT(batch->is_release ? "release-answered" : "claim-answered");
    if (!batch->is_release && error && redis_error_class(error) == REDIS_ERROR_FULL) {
        handle_full(batch);
        return;
    }
    if (!call_accept_reply(store, reply, PHASE_LIVE))
        return;
    for (size_t i = 0; i < batch->n; i++) {
        struct reply_line line;
        uint64_t more = 0;
        int r = read_line(batch, reply, i, &line);

        if (r >= 0 && !batch->is_release && batch->entries[i]->claim->turn)
            turns_handle_superseded(batch->entries[i], reply);
        if (r >= 0)
            r = batch->is_release ? handle_release(batch->entries[i], &line, &more)
                                  : handle_claim(batch->entries[i], &line, &more);
        if (r < 0) {
            call_bad_reply(store, batch->is_release ? "release" : "claim");
            return;
        }
        any_more = any_more || more > 0;
    }
    if (any_more)
        heartbeat_send_extra(store);
    if (!batch->is_release && store->link.phase == PHASE_LIVE)
        full_end(store); /* requests what was not answered: behind the replies, which end claims */
}

/* --- calls --- */

/* Adds a single claim with all its pools. */
static void add_single(struct redis_command *command, const struct claim_entry *entry, const char *details) {
    const struct claim *claim = entry->claim;

    command_add(command, claim->id);
    command_add(command, details);
    command_add_u64(command, claim->ticket);
    command_add(command, claim->nowait ? "1" : "0");
    for (size_t i = 0; i < claim->n_demands; i++) {
        command_add(command, claim->demands[i].pool);
        command_add_u64(command, claim->demands[i].permits);
        command_add_u64(command, limits_queue_limit(entry->store, claim->demands[i].pool));
    }
}

static void add_claims(struct redis_command *command, const struct batch *batch) {
    const char *pool = batch->entries[0]->claim->demands[0].pool;

    if (batch->n > 1) {
        command_add(command, pool);
        command_add_u64(command, limits_queue_limit(batch->store, pool));
    }
    for (size_t i = 0; i < batch->n; i++) {
        const struct claim *claim = batch->entries[i]->claim;
        char head[CLAIM_HEAD_SIZE], details[CLAIM_HEAD_SIZE + 24 + ID_TEXT_SIZE + NAME_MAX_LENGTH];

        (void) snprintf(details, sizeof(details), "%s %" PRIu64 " %s %s", claims_format_head(claim, head),
                        (uint64_t) claim->pid, claim->id, claim->name);
        if (claim->turn) {
            turns_add_request(batch->store, command, claim, details);
        } else if (batch->n == 1) {
            add_single(command, batch->entries[i], details);
        } else {
            command_add(command, claim->id);
            command_add(command, details);
        }
    }
}

static void add_releases(struct redis_command *command, const struct batch *batch) {
    for (size_t i = 0; i < batch->n; i++)
        command_add(command, batch->entries[i]->claim->id);
}

static int batch_send(struct batch *batch) {
    static const enum redis_script scripts[2][2] = {
        {REDIS_SCRIPT_CLAIM, REDIS_SCRIPT_CLAIMS},
        {REDIS_SCRIPT_RELEASE, REDIS_SCRIPT_RELEASES},
    };
    _cleanup_command_ struct redis_command command = {0};

    call_begin(batch->store, &command,
               !batch->is_release && batch->entries[0]->claim->turn ? REDIS_SCRIPT_TURN
                                                                    : scripts[batch->is_release][batch->n > 1]);
    if (batch->is_release)
        add_releases(&command, batch);
    else
        add_claims(&command, batch);
    return call_send(batch->store, &command, batch_on_reply, batch);
}

void batch_flush(struct store_redis *store) {
    struct batch *batch = store->batches.open;

    if (!batch)
        return;
    store->batches.open = NULL;
    FAILPOINT(batch->is_release ? "release-sending" : "claim-sending");
    if (batch_send(batch) < 0) { /* claims are requested again once the link is live */
        end_calls(batch);
        batch_free(batch);
        return;
    }
    if (batch->is_release)
        return;
    FAILPOINT("claim-sent");
    for (size_t i = 0; i < batch->n; i++)
        claims_mark_sent(batch->entries[i]);
}

/* --- batches --- */

/* Returns whether a claim can share a call with others. */
static bool is_simple(const struct claim *claim) {
    return claim->ticket == 0 && !claim->turn && !claim->nowait && claim->n_demands == 1 && claim->demands[0].permits == 1;
}

static bool joins(const struct batch *batch, const struct claim *claim, bool is_release) {
    const struct claim *first = batch->entries[0]->claim;

    if (batch->n == BATCH_MAX || batch->is_release != is_release)
        return false;
    return is_release || (is_simple(claim) && is_simple(first) &&
                          strcmp(claim->demands[0].pool, first->demands[0].pool) == 0);
}

static void batch_add(struct claim_entry *entry, bool is_release) {
    struct store_redis *store = entry->store;
    struct batches *batches = &store->batches;

    if (batches->open && !joins(batches->open, entry->claim, is_release))
        batch_flush(store);
    if (!batches->open) {
        batches->open = calloc(1, sizeof(*batches->open));
        if (!batches->open) {
            call_note_no_memory(store);
            return;
        }
        batches->open->store = store;
        batches->open->is_release = is_release;
        list_append(&batches->all, &batches->open->link);
        redis_connection_flush(store->link.commands);
    }
    batches->open->entries[batches->open->n++] = entry;
    claims_begin_call(entry);
}

void batch_add_claim(struct claim_entry *entry) {
    batch_add(entry, false);
}

void batch_add_release(struct claim_entry *entry) {
    batch_add(entry, true);
}

void batch_reset(struct store_redis *store) {
    list_foreach_safe(batch, &store->batches.all, struct batch, link)
        batch_free(batch);
    store->batches.open = NULL;
}

void batch_init(struct store_redis *store) {
    list_init(&store->batches.all);
}
