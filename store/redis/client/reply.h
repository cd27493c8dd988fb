/* SPDX-License-Identifier: MIT */
#pragma once

/* Reads replies of Redis without trusting them: a wrong type, count or size is -EBADMSG. Also classifies errors. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#define REPLY_FIELDS_MAX 12
#define REPLY_LINE_SIZE 512

struct redisReply;

/* The reaction to an error (R13). */
enum redis_error {
    REDIS_ERROR_RETRY,    /* temporary: MASTERDOWN ...; also errors of the connection */
    REDIS_ERROR_BUSY,     /* temporary: LOADING, BUSY, no connection in time; Redis is overloaded, so the pauses grow longer */
    REDIS_ERROR_LATER,    /* as BUSY, but frequent attempts make it worse */
    REDIS_ERROR_RELOAD,   /* NOSCRIPT: load the scripts again */
    REDIS_ERROR_REDIRECT, /* MOVED, READONLY: this server is not the master; connect again, to the node that is named */
    REDIS_ERROR_WAIT,     /* TRYAGAIN, ASK: the slot moves to another node (R17); repeat hello on the same connection */
    REDIS_ERROR_FULL,     /* OOM */
    REDIS_ERROR_FATAL,    /* an administrator must act: NOAUTH, WRONGPASS, NOPERM ...; also any unknown error */
};
enum redis_error redis_error_class(const char *text);
/* Returns whether Redis refuses the client (NOAUTH, WRONGPASS, DENIED), not only a command or its form. */
bool redis_error_is_of_client(const char *text);
/* Returns an explanation of an error for administrators, or the error itself. */
const char *redis_error_text(const char *text);

/* Returns the text of an error reply, else NULL. */
const char *reply_error(const struct redisReply *reply);
/* The length of an array, else -EBADMSG. */
int reply_count(const struct redisReply *reply, size_t *ret);
/* Returns element i of an array, or NULL if there is none. The functions below accept NULL. */
const struct redisReply *reply_at(const struct redisReply *reply, size_t i);
/* Returns a text without NUL inside, else NULL. */
const char *reply_text(const struct redisReply *reply);
/* Returns whether a reply is this text. */
bool reply_is(const struct redisReply *reply, const char *text);
/* Returns the highest number that is accepted in a reply or a push: ten years ahead of this host's time, or of 2026 if
 * that is later. The largest valid numbers are those of the namespace's clock (tokens, tickets: µs since 1970). Higher
 * ones are rejected, so that none can end the growth of tokens (R7). A clock that is a year ahead still works. */
uint64_t reply_number_max(void);
/* Parses a decimal text of at most reply_number_max(). 0 or -EBADMSG. */
int reply_number_parse(const char *text, uint64_t *ret);
/* Reads an integer or a decimal text from 0 to reply_number_max(). 0 or -EBADMSG. */
int reply_u64(const struct redisReply *reply, uint64_t *ret);
int reply_u32(const struct redisReply *reply, uint32_t *ret);
/* The fields of a reply that is one line of text: an array would cost Redis 1 µs more. */
struct reply_line {
    size_t n;
    const char *fields[REPLY_FIELDS_MAX]; /* in `text` */
    char text[REPLY_LINE_SIZE];
};
/* 0, or -EBADMSG if the reply is not a text, or too long. */
int reply_line_read(const struct redisReply *reply, struct reply_line *line);
/* Parses a field like reply_number_parse(). -EBADMSG also if there is no such field. */
int reply_line_u64(const struct reply_line *line, size_t i, uint64_t *ret);
/* Returns a field, or "" if there is none. */
const char *reply_line_field(const struct reply_line *line, size_t i);
/* Formats a text of any bytes or a number for people with text_escape(); "" for other types. The second one keeps UTF-8
 * without control characters as it is. */
void reply_escape(const struct redisReply *reply, char *buffer, size_t size);
void reply_readable(const struct redisReply *reply, char *buffer, size_t size);
/* Copies a text. 0, or -EBADMSG if the reply is not a text, or too long. */
int reply_copy(const struct redisReply *reply, char *buffer, size_t size);
