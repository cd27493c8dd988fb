/* SPDX-License-Identifier: MIT */
#pragma once

/* Parses the replies of `turn` and `turned` into plain structs, as replies.h does. Texts are valid as long
 * as the reply, or the line, is. */

#include "store/redis/client/reply.h"
#include "store/store.h"

struct turn_reply {
    enum {
        TURN_REPLY_OURS,    /* the claim is queued or granted: the rest of the line is that of `claim` */
        TURN_REPLY_REFUSED,
        TURN_REPLY_GRACE,   /* to be asked again when grace is over */
        TURN_REPLY_OTHER,   /* not about turns: the line is that of `claim` */
    } kind;
    uint32_t attempt;                 /* OURS: from 1 */
    const char *chain;                /* OURS: as in struct claim_turn */
    struct store_turn_answer refusal; /* REFUSED */
};
/* 0 or -EBADMSG. */
int turn_reply_parse(const struct reply_line *line, struct turn_reply *ret);

/* Reads turn i of those that this one supersedes. 0, -ENOENT behind the last one (also if the reply is one line), or
 * -EBADMSG. */
int superseded_reply_at(const struct redisReply *reply, size_t i, struct store_ended_turn *ret);

/* Parses the reply of `pass`. 0: missed; STORE_E_TAKEN; -EAGAIN: ahead of Redis's clock, or in grace; -EBADMSG. */
int pass_reply_parse(const struct redisReply *reply);

/* Parses the reply of `stop`. 0: the caller frees *ret with ended_turns_done(); -EAGAIN: Redis is in grace; -ENOMEM,
 * -EBADMSG. */
int ended_turns_parse(const struct redisReply *reply, struct store_ended_turns *ret);
void ended_turns_done(struct store_ended_turns *ended);

/* Parses the reply of `hosts`. 0: the caller frees *ret with shared_done(); -ENOMEM, -EBADMSG. */
int shared_parse(const struct redisReply *reply, struct store_shared *ret);
void shared_done(struct store_shared *shared);

/* Makes an open turn from the numbers of a push or a reply. 0 or -EBADMSG. */
int open_turn_make(const char *pool, uint64_t due, uint64_t attempt, uint64_t delay_ms, const char *why,
                   struct store_open_turn *ret);
/* Checks the reply of `look`. 0 or -EBADMSG. */
int look_reply_parse(const struct redisReply *reply);
/* Reads open turn i of job k in a checked reply. -ENOENT behind the last. */
int look_reply_at(const struct redisReply *reply, size_t k, size_t i, struct store_open_turn *ret);
/* Returns the number of jobs in a checked reply. */
size_t look_reply_jobs(const struct redisReply *reply);
