/* SPDX-License-Identifier: MIT */
#pragma once

/* An answer of the fake Redis as words, and as the bytes of the protocol. "[" and "]" begin and end a list, "''" is an empty
 * word. */

#include "tests/harness/redis/redis-peer.h"

#define PEER_WORDS_MAX 256

struct peer_answer {
    char text[8192];
    const char *words[PEER_WORDS_MAX]; /* in text, or of the caller of peer_answer_change() */
    size_t n;
    bool line; /* one text of all its words */
};

/* Adds text: words with a blank between. */
void peer_answer_put(struct peer_answer *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Cuts the text into words. */
void peer_answer_split(struct peer_answer *a);
/* A "_" in a word becomes a blank, for lists of lines. After peer_answer_split(). */
void peer_answer_open_lines(struct peer_answer *a);
/* Changes a word; the other kinds of changes do nothing here. text must outlive the answer. */
void peer_answer_change(struct peer_answer *a, enum peer_change how, unsigned at, const char *text);
/* Returns the number of bytes. A list that a change left open ends with the answer, so its reader waits. */
size_t peer_answer_write(const struct peer_answer *a, char *buffer, size_t size);
