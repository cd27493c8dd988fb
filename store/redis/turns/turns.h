/* SPDX-License-Identifier: MIT */
#pragma once

/* Turns of jobs that hosts share (R18): asked for, committed and given back with their claims; due times
 * that are passed; open turns; and what is reported in grace. */

#include "store/redis/claim-table.h"
#include "store/redis/client/command.h"
#include "store/redis/client/reply.h"
#include "store/store.h"

struct store_redis;

struct turns {
    struct list passes; /* struct turn_pass: on their way */
    struct list questions; /* struct turn_question: likewise */
    usec_t looked; /* boottime of the last look for open turns; 0: not on this connection */
};

void turns_init(struct store_redis *store);
void turns_done(struct store_redis *store);
/* The connection is closed: what was not answered is sent again, but for passes and questions, which fail. */
void turns_reset(struct store_redis *store);
/* The host has lost its session, and with it this turn. */
void turns_lose(struct claim_entry *entry);
/* After a sync, in grace: reports turns and marks. */
void turns_report(struct store_redis *store);
/* A heartbeat was answered: looks for open turns, after a sync and then once a lease. */
void turns_look(struct store_redis *store);

/* The rest of the call `turn`. */
void turns_add_request(struct store_redis *store, struct redis_command *command, const struct claim *claim,
                       const char *details);
/* Applies a reply of `turn`, but for what it has in common with that of `claim`. 0: the claim is queued or
 * granted; 1: it is not, and the owner has it; -EBADMSG. */
int turns_handle_reply(struct claim_entry *entry, const struct reply_line *line);
/* Delivers what the reply has after its line. */
void turns_handle_superseded(struct claim_entry *entry, const struct redisReply *reply);
/* Commits, if the owner wants it and Redis has not answered; sends the end of a claim with a turn. */
void turns_send_commit(struct claim_entry *entry);
void turns_send_end(struct claim_entry *entry);
/* A push. Numbers as they are in it. */
void turns_handle_open(struct store_redis *store, const char *pool, uint64_t due, uint64_t attempt,
                       uint64_t delay_ms, const char *why);

/* The words AGAIN and CHAIN of a call. */
void turns_add_again(struct redis_command *command, const struct claim_turn *turn);
/* Begins a call of `turned`. */
void turns_begin_call(struct store_redis *store, struct redis_command *command, const char *what);
/* A due time as a number of a call: 0 if it is before 1970. */
static inline uint64_t turns_number(int64_t due) {
    return due > 0 ? (uint64_t) due : 0;
}

/* Of struct store_ops. */
void turns_commit(struct store *base, struct claim *claim);
void turns_give_back(struct store *base, struct claim *claim, uint32_t attempt, usec_t delay_usec);
int turns_pass(struct store *base, const struct store_pass *pass, store_reply_fn fn, void *userdata);
void turns_remember(struct store *base, const char *pool, int64_t due);

/* --- turn-questions.c --- */
int turn_questions_stop(struct store *base, const char *pool, store_ended_turns_fn fn, void *userdata);
int turn_questions_ask(struct store *base, const char *pool, store_shared_fn fn, void *userdata);
void turn_questions_reset(struct store_redis *store); /* the connection is closed: they fail */
