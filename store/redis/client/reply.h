/* SPDX-License-Identifier: MIT */
#pragma once

/* Reading what Redis answered, trusting nothing: types, counts and sizes are looked at; what does not fit is -EBADMSG. Also what
 * an error's text means to us. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>

#define REPLY_WORDS_MAX 12
#define REPLY_LINE_SIZE 512

struct redisReply;

/* What an error calls for (R13). */
enum redis_error {
    REDIS_ERROR_RETRY,    /* it goes by: LOADING, BUSY, MASTERDOWN ...; also errors of the connection */
    REDIS_ERROR_RELOAD,   /* NOSCRIPT: load the scripts again */
    REDIS_ERROR_REDIRECT, /* MOVED, READONLY: this is not (any more) the server to talk to; connect anew */
    REDIS_ERROR_FULL,     /* OOM */
    REDIS_ERROR_FATAL,    /* an administrator must act: NOAUTH, WRONGPASS, NOPERM ...; and anything not known */
};
enum redis_error redis_error_class(const char *text);
/* What an error means to an administrator, where Redis's own words say it badly; else these. */
const char *redis_error_text(const char *text);

/* The text of an error reply, else NULL. */
const char *reply_error(const struct redisReply *r);
/* The length of an array, else -EBADMSG. */
int reply_count(const struct redisReply *r, size_t *ret);
/* Element i of an array, NULL if it is none or there are not so many; the getters below take NULL. */
const struct redisReply *reply_at(const struct redisReply *r, size_t i);
/* A text without NUL inside, else NULL. */
const char *reply_text(const struct redisReply *r);
/* Whether it is this text. */
bool reply_is(const struct redisReply *r, const char *text);
/* The highest number that is believed, in an answer or a push: ten years ahead of this host's time, and of 2026 where that is behind. Times
 * and numbers of the namespace's clock (tokens, tickets, epochs: µs since 1970) are the largest there are; counts and limits are far below.
 * A higher one is not remembered, so that nobody can end the growth of tokens (R7). A clock that is a year ahead goes on working. */
uint64_t reply_number_max(void);
/* A decimal text as a number that is believed. 0 or -EBADMSG. */
int reply_number_parse(const char *text, uint64_t *ret);
/* A number that is not negative and believed, as an integer or as decimal text. 0 or -EBADMSG. */
int reply_u64(const struct redisReply *r, uint64_t *ret);
int reply_u32(const struct redisReply *r, uint32_t *ret);
/* The words of an answer that is one line of them: a list of them would cost Redis 1 µs more. */
struct reply_line {
    size_t n;
    const char *words[REPLY_WORDS_MAX]; /* in `text` */
    char text[REPLY_LINE_SIZE];
};
/* 0, or -EBADMSG if it is no text, or too long. */
int reply_line(const struct redisReply *r, struct reply_line *l);
/* A word as a number that is not negative and believed. 0, or -EBADMSG, also if there are not so many. */
int line_u64(const struct reply_line *l, size_t i, uint64_t *ret);
/* A word; "" if there are not so many. */
const char *line_word(const struct reply_line *l, size_t i);
/* A text or number of any bytes as what can be shown: text_escape(); the second leaves UTF-8 without control characters as it is. "" for
 * anything else. */
void reply_escape(const struct redisReply *r, char *buffer, size_t size);
void reply_readable(const struct redisReply *r, char *buffer, size_t size);
/* A text copied into a buffer. 0, or -EBADMSG if it is none or too long. */
int reply_copy(const struct redisReply *r, char *buffer, size_t size);
