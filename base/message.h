/* SPDX-License-Identifier: MIT */
#pragma once

/* One message between berthd, berth-runner and a guard, and one report file: a verb and its fields as text,
 *
 *     start\n
 *     run=0123...\n
 *     job=pg-dump\n
 *
 * one SEQPACKET datagram. Keys are a-z 0-9 and '-', each at most once; values are printable ASCII (space to ~) and
 * may be empty. Anything else is not a message: the parser is strict, because the runner is root. base/protocol.h
 * lists the verbs and their fields. */

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/name.h"

#define MESSAGE_SIZE_MAX 32768
#define MESSAGE_FIELDS_MAX 96

struct message_field {
    const char *key, *value; /* into the message's text */
};

/* A message received. Large: one on the stack at a time. */
struct message {
    char text[MESSAGE_SIZE_MAX + 1];
    const char *verb;
    size_t n_fields;
    struct message_field fields[MESSAGE_FIELDS_MAX];
};

/* A message being written. message_send() returns an earlier error (too long, bad key or value). */
struct message_writer {
    char text[MESSAGE_SIZE_MAX];
    size_t size;
    int error;
};

/* 0 or -EBADMSG; data need not end in NUL. */
int message_parse(struct message *m, const void *data, size_t size);
bool message_is(const struct message *m, const char *verb);
/* Returns the value, or NULL if there is no such field. */
const char *message_get(const struct message *m, const char *key);
/* 0, -ENODATA if there is no such field, -EBADMSG if it has another type; *ret is unchanged then. */
int message_get_u64(const struct message *m, const char *key, uint64_t *ret);
int message_get_id(const struct message *m, const char *key, char ret[static ID_TEXT_SIZE]);
int message_get_name(const struct message *m, const char *key, char ret[static NAME_MAX_LENGTH + 1]);
int message_get_job(const struct message *m, const char *key,
                    char ret[static NAME_MAX_LENGTH + 1]); /* or an instance */
/* Returns a value of a list, which is in the fields KEY-0, KEY-1 and so on, or NULL. */
const char *message_get_nth(const struct message *m, const char *key, unsigned i);

void message_begin(struct message_writer *w, const char *verb);
void message_put(struct message_writer *w, const char *key, const char *value);
void message_put_nth(struct message_writer *w, const char *key, unsigned i, const char *value);
/* Like message_put() for any text, such as an error: replaces invalid characters by '?' and cuts at 512
 * bytes. */
void message_put_text(struct message_writer *w, const char *key, const char *value);
void message_put_u64(struct message_writer *w, const char *key, uint64_t value);

/* Sends one datagram without blocking and without SIGPIPE. 0; the writer's error (-EMSGSIZE, -EINVAL); -EAGAIN if the
 * peer does not read; another negative errno of send(2). */
int message_send(int fd, const struct message_writer *w);
/* Receives one datagram without blocking. 0; -EAGAIN: none is there; -ENOTCONN: the end of the connection;
 * -EBADMSG: not a message (too long and with descriptors included; neither is received); another negative
 * errno. The connection of a peer that is not trusted must then be passed to base/discard.h, not closed. */
int message_receive(int fd, struct message *m);
