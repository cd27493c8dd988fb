/* SPDX-License-Identifier: MIT */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "store/redis/store-redis.h"

/* Only in a cluster can slots move, so only there is the second key needed (R17). It takes 2 % of a call's time. */
void call_begin_plain(struct store_redis *store, struct redis_command *command, enum redis_script script) {
    bool is_standalone = store->handshake.server.is_standalone;

    batch_flush(store); /* its command comes first */
    handshake_add_script(store, command, script);
    command_add(command, is_standalone ? "1" : "2");
    command_add(command, store->env.key);
    if (!is_standalone)
        command_add(command, store->env.none);
}

void call_begin_session(struct store_redis *store, struct redis_command *command, enum redis_script script) {
    call_begin_plain(store, command, script);
    command_add(command, store->session.id);
    command_add_u64(command, store->session.connection);
}

void call_begin(struct store_redis *store, struct redis_command *command, enum redis_script script) {
    call_begin_session(store, command, script);
    command_add(command, store->epoch.id);
    command_add_u64(command, store->link.commands ? redis_connection_next_serial(store->link.commands) : 0);
}

void call_note_no_memory(struct store_redis *store) {
    heartbeat_request_resend(store);
    journal_log(store_redis_journal(store), LOG_ERR,
                "out of memory for a call to Redis, resending it after a heartbeat");
}

int call_send(struct store_redis *store, const struct redis_command *command, redis_reply_fn fn,
              void *userdata) {
    int r = command_check(command);

    if (r >= 0)
        r = store->link.commands ? redis_connection_call(store->link.commands, command->n,
                                                         (const char *const *) command->items, fn, userdata)
                                 : -ENOTCONN;
    if (r == -ENOMEM)
        call_note_no_memory(store);
    return r;
}

/* --- replies --- */

void call_bad_reply(struct store_redis *store, const char *what) {
    char text[128];

    (void) snprintf(text, sizeof(text), "a reply to %s is malformed, or a number in it is too high", what);
    link_fail(store, REDIS_ERROR_RETRY, text);
}

static void handle_error(struct store_redis *store, const char *error, bool is_current) {
    if (redis_error_class(error) == REDIS_ERROR_FATAL && strstr(error, "script: "))
        epoch_note_data_loss(store, DATA_LOSS_HALF);
    if (is_current && redis_error_class(error) == REDIS_ERROR_RELOAD)
        link_reload_scripts(store);
    else if (is_current)
        link_fail(store, redis_error_class(error), error);
}

/* Handles that Redis does not know the session: it has expired, or Redis has lost it. */
static void handle_gone(struct store_redis *store) {
    if (heartbeat_is_past_deadline(store)) {
        session_lose(store, "it was expired");
        return;
    }
    if (store->epoch.data_loss == DATA_LOSS_NONE && store->base.deadline > 0)
        epoch_note_data_loss(store, DATA_LOSS_SEEN);
    link_resync(store);
}

bool call_handle_common_reply(struct store_redis *store, const struct redisReply *reply,
                              enum link_phase during) {
    const char *error = reply_error(reply),
               *word = reply_text(reply_text(reply) ? reply : reply_at(reply, 0));
    bool is_current = store->link.phase == during && !store->stop.is_under_way;

    if (error) {
        handle_error(store, error, is_current);
        return false;
    }
    if (!word) {
        if (is_current)
            call_bad_reply(store, "a call");
        return false;
    }
    if (strcmp(word, "epoch") == 0) {
        if (is_current)
            link_resync(store);
        return false;
    }
    if (strcmp(word, "gone") == 0) {
        if (is_current)
            handle_gone(store);
        return false;
    }
    if (strcmp(word, "stale") == 0) {
        if (is_current)
            link_fail(store, REDIS_ERROR_RETRY, "a newer connection of this session exists");
        return false;
    }
    return true;
}

/* Returns whether a reply names this call, as its second word or element. */
static bool names_call(const struct redisReply *reply, uint64_t serial) {
    const char *line = reply_text(reply_text(reply) ? reply : reply_at(reply, 0)), *space = strchr(line, ' ');
    const char *name = space ? space + 1 : reply_text(reply_at(reply, 1));
    char text[REPLY_NUMBER_TEXT_SIZE];
    int n = snprintf(text, sizeof(text), "%" PRIu64, serial);

    return name && strncmp(name, text, (size_t) n) == 0 && (name[n] == ' ' || name[n] == '\0');
}

bool call_accept_reply(struct store_redis *store, const struct redisReply *reply, enum link_phase during) {
    if (!call_handle_common_reply(store, reply, during))
        return false;
    if (names_call(reply, redis_connection_answered_serial(store->link.commands)))
        return true;
    if (!store->stop.is_under_way) /* in any phase: each later reply is another call's, too */
        link_fail(store, REDIS_ERROR_RETRY, "a reply was lost, and the next one came in its place");
    return false;
}
