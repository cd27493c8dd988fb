/* SPDX-License-Identifier: MIT */
#pragma once

/* Turns of jobs that hosts share (R18): requests, commits and returns of turns with their claims; due times that are
 * passed; open turns; and the reports in grace. */

#include "store/redis/claim-table.h"
#include "store/redis/client/command.h"
#include "store/redis/client/reply.h"
#include "store/store.h"

struct store_redis;

struct turns {
    struct list questions; /* struct turn_question, not answered yet */
    usec_t looked; /* boottime of the last look for open turns; 0: none on this connection */
};

void turns_init(struct store_redis *store);
/* Fails questions, because the connection is closed. Other calls are sent again. */
void turns_reset(struct store_redis *store);
/* Forgets the turn of a claim, because the session is lost. */
void turns_lose(struct claim_entry *entry);
/* Reports turns and marks after a sync in grace. */
void turns_report(struct store_redis *store);
/* Looks for open turns after a sync, and then once a lease. To be called after each answered heartbeat. */
void turns_look(struct store_redis *store);

/* Adds the arguments of `turn` after the epoch. */
void turns_add_request(struct store_redis *store, struct redis_command *command, const struct claim *claim,
                       const char *details);
/* Applies a reply of `turn`, without the part that `claim` has, too. 0: the claim is queued or granted; 1: it is
 * neither; -EBADMSG. */
int turns_handle_reply(struct claim_entry *entry, const struct reply_line *line);
/* Delivers the superseded turns of the reply. */
void turns_handle_superseded(struct claim_entry *entry, const struct redisReply *reply);
/* Commits the turn, if the owner wants it and no call is under way. */
void turns_send_commit(struct claim_entry *entry);
/* Releases a claim with a turn. */
void turns_send_end(struct claim_entry *entry);
/* Applies a push, with the numbers as they are in it. */
void turns_handle_open(struct store_redis *store, const char *pool, uint64_t due, uint64_t attempt,
                       uint64_t delay_ms, const char *why);

/* Adds the arguments AGAIN and CHAIN of a call. */
void turns_add_again(struct redis_command *command, const struct claim_turn *turn);
/* Begins a call of `turned`. */
void turns_begin_call(struct store_redis *store, struct redis_command *command, const char *what);
/* Returns a due time as an argument: 0 if it is before 1970. */
static inline uint64_t turns_number(int64_t due) {
    return due > 0 ? (uint64_t) due : 0;
}

/* Of struct store_ops. */
void turns_commit(struct store *base, struct claim *claim);
void turns_give_back(struct store *base, struct claim *claim, uint32_t attempt, usec_t delay_usec);
void turns_remember(struct store *base, const char *pool, int64_t due);

/* --- turn-questions.c --- */
int turn_questions_stop(struct store *base, const char *pool, store_ended_turns_fn fn, void *userdata);
int turn_questions_pass(struct store *base, const struct store_pass *pass, store_reply_fn fn, void *userdata);
int turn_questions_ask(struct store *base, const char *pool, store_shared_fn fn, void *userdata);
void turn_questions_reset(struct store_redis *store); /* fails them, because the connection is closed */
