/* SPDX-License-Identifier: MIT */
#pragma once

/* The calls of a snapshot in SLOWLOG. Redis logs 32 words of a call, the last one as "... (70 more arguments)". */

#include <hiredis/hiredis.h>

/* Returns the words after the keys of a logged call of inspect.lua, or all words of a plain command that reads claims;
 * NULL: of any other call, and of a command of a script. */
redisReply *const *redis_look_words(const redisReply *logged, size_t *ret_n);
