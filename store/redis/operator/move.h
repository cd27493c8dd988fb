/* SPDX-License-Identifier: MIT */
#pragma once

/* The arguments and the reply of a move. */

#include "store/redis/client/command.h"
#include "store/redis/client/reply.h"
#include "store/store.h"

/* Adds the arguments after the epoch. */
void move_add(struct redis_command *command, const struct store_move *move);
/* 0, a named answer of store_move(), -EAGAIN (Redis is in grace) or -EBADMSG. */
int move_reply_parse(const struct redisReply *reply, struct store_move *ret);
