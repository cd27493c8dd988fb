/* SPDX-License-Identifier: MIT */
#pragma once

/* Replies of Redis from their text. */

#include <hiredis/hiredis.h>
#include <string.h>

#include "tests/harness/test.h"

/* Returns the reply of a text in the protocol of Redis, such as "*1\r\n:42\r\n". The caller frees it. */
static inline redisReply *resp_parse(const char *text) {
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;

    CU_ASSERT_FATAL(redisReaderFeed(reader, text, strlen(text)) == REDIS_OK);
    CU_ASSERT_FATAL(redisReaderGetReply(reader, &reply) == REDIS_OK && reply);
    redisReaderFree(reader);
    return reply;
}
