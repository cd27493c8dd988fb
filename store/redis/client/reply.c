/* SPDX-License-Identifier: MIT */
#include "store/redis/client/reply.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/text.h"
#include "store/redis/client/compat.h"

#define YEAR ((usec_t) 31556952 * USEC_PER_SEC)
#define BERTH_EPOCH (56 * YEAR) /* 2026: the earliest plausible time, whatever this host's clock shows */
#define AHEAD_MAX (10 * YEAR)
#define NO_DATABASE "ERR SELECT is not allowed in cluster mode"
#define NO_INDEX "ERR DB index is out of range"
#define NO_APPEND "MISCONF Errors writing to the AOF file" /* ": No space left on device" */
#define NO_ROOM "ERR max number of clients" /* " reached", in a cluster " + cluster connections reached" */
#define NO_PASSWORD "ERR AUTH <password> called without any password configured"

static const struct meaning {
    const char *word; /* first word of the error */
    enum redis_error error;
    const char *text; /* NULL: the error itself */
} meanings[] = {
    {"LOADING", REDIS_ERROR_BUSY, "Redis is still loading its data (LOADING)"},
    {"BUSY", REDIS_ERROR_BUSY, "a script of another client keeps Redis busy (BUSY)"},
    {"TRYAGAIN", REDIS_ERROR_WAIT, "the cluster moves the slot of this namespace to another node (TRYAGAIN)"},
    {"NOREPLICAS", REDIS_ERROR_RETRY, "Redis refuses writes: it has fewer replicas than min-replicas-to-write requires (NOREPLICAS)"},
    {"MASTERDOWN", REDIS_ERROR_RETRY, NULL},
    {"CLUSTERDOWN", REDIS_ERROR_RETRY, NULL},
    {"MISCONF", REDIS_ERROR_RETRY, "Redis refuses writes because its last snapshot failed: free its disk or set stop-writes-on-bgsave-error no"},
    {"UNKILLABLE", REDIS_ERROR_RETRY, NULL},
    {"NOSCRIPT", REDIS_ERROR_RELOAD, NULL},
    {"MOVED", REDIS_ERROR_REDIRECT, NULL},
    {"ASK", REDIS_ERROR_WAIT, "the cluster moves the slot of this namespace to another node (ASK)"},
    {"READONLY", REDIS_ERROR_REDIRECT, "this Redis is a replica (READONLY)"},
    {"OOM", REDIS_ERROR_FULL, "the memory of Redis is full (OOM)"},
    {"NOAUTH", REDIS_ERROR_FATAL, "Redis asks for a password, and the config names none (NOAUTH)"},
    {"DENIED", REDIS_ERROR_FATAL, "Redis in protected mode refuses other hosts (DENIED): give its user default a password"},
    {"WRONGPASS", REDIS_ERROR_FATAL, "Redis refuses the user or the password (WRONGPASS)"},
};

static const struct meaning *find_meaning(const char *text) {
    size_t length = strcspn(text, " ");

    for (size_t i = 0; i < ELEMENTSOF(meanings); i++)
        if (strlen(meanings[i].word) == length && strncmp(meanings[i].word, text, length) == 0)
            return &meanings[i];
    return NULL;
}

enum redis_error redis_error_class(const char *text) {
    const struct meaning *m = find_meaning(text);

    if (strncmp(text, NO_ROOM, strlen(NO_ROOM)) == 0)
        return REDIS_ERROR_LATER;
    return m ? m->error : REDIS_ERROR_FATAL;
}

bool redis_error_is_of_client(const char *text) {
    const struct meaning *m = find_meaning(text);

    return m && m->error == REDIS_ERROR_FATAL;
}

const char *redis_error_text(const char *text) {
    const struct meaning *m = find_meaning(text);

    if (strncmp(text, NO_DATABASE, strlen(NO_DATABASE)) == 0)
        return "a cluster has only database 0: remove the database from the url";
    if (strncmp(text, NO_PASSWORD, strlen(NO_PASSWORD)) == 0)
        return "Redis asks for no password, and the config names one: wrong url, or remove password-file";
    if (strncmp(text, NO_INDEX, strlen(NO_INDEX)) == 0)
        return "Redis does not have the database that the url names (DB index is out of range)";
    if (strncmp(text, NO_APPEND, strlen(NO_APPEND)) == 0)
        return "Redis refuses writes because it cannot write its append-only file: free its disk, and see its log";
    return m && m->text ? m->text : text;
}

const char *reply_error(const struct redisReply *reply) {
    return reply && reply->type == REDIS_REPLY_ERROR ? reply->str : NULL;
}

int reply_count(const struct redisReply *reply, size_t *ret) {
    if (!reply || reply->type != REDIS_REPLY_ARRAY)
        return -EBADMSG;
    *ret = reply->elements;
    return 0;
}

const struct redisReply *reply_at(const struct redisReply *reply, size_t i) {
    return reply && reply->type == REDIS_REPLY_ARRAY && i < reply->elements ? reply->element[i] : NULL;
}

const char *reply_text(const struct redisReply *reply) {
    if (!reply || (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_STATUS))
        return NULL;
    return reply->str && strlen(reply->str) == reply->len ? reply->str : NULL;
}

bool reply_is(const struct redisReply *reply, const char *text) {
    const char *s = reply_text(reply);

    return s && strcmp(s, text) == 0;
}

uint64_t reply_number_max(void) {
    usec_t now = clock_realtime();

    return (now > BERTH_EPOCH ? now : BERTH_EPOCH) + AHEAD_MAX;
}

int reply_number_parse(const char *text, uint64_t *ret) {
    return number_parse(text, reply_number_max(), ret) == 0 ? 0 : -EBADMSG;
}

int reply_u64(const struct redisReply *reply, uint64_t *ret) {
    const char *s;

    if (reply && reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0 && (uint64_t) reply->integer <= reply_number_max()) {
        *ret = (uint64_t) reply->integer;
        return 0;
    }
    s = reply_text(reply);
    return s ? reply_number_parse(s, ret) : -EBADMSG;
}

int reply_u32(const struct redisReply *reply, uint32_t *ret) {
    uint64_t value;

    if (reply_u64(reply, &value) < 0 || value > UINT32_MAX)
        return -EBADMSG;
    *ret = (uint32_t) value;
    return 0;
}

int reply_copy(const struct redisReply *reply, char *buffer, size_t size) {
    const char *s = reply_text(reply);
    size_t length = s ? strlen(s) : 0;

    if (!s || length >= size)
        return -EBADMSG;
    memcpy(buffer, s, length + 1);
    return 0;
}

void reply_escape(const struct redisReply *reply, char *buffer, size_t size) {
    buffer[0] = '\0';
    if (reply && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS || reply->type == REDIS_REPLY_ERROR))
        text_escape(reply->str, (size_t) reply->len, buffer, size);
    else if (reply && reply->type == REDIS_REPLY_INTEGER)
        (void) snprintf(buffer, size, "%lld", reply->integer);
}

void reply_readable(const struct redisReply *reply, char *buffer, size_t size) {
    const char *text = reply_text(reply);

    if (text && text_is_utf8(text) && !text_has_control(text, false) && strlen(text) < size)
        (void) snprintf(buffer, size, "%s", text);
    else
        reply_escape(reply, buffer, size);
}

int reply_line_read(const struct redisReply *reply, struct reply_line *line) {
    char *rest = line->text, *word;

    line->n = 0;
    if (reply_copy(reply, line->text, sizeof(line->text)) < 0)
        return -EBADMSG;
    while ((word = strsep(&rest, " "))) {
        if (line->n == REPLY_FIELDS_MAX)
            return -EBADMSG;
        line->fields[line->n++] = word;
    }
    return 0;
}

int reply_line_u64(const struct reply_line *line, size_t i, uint64_t *ret) {
    return i < line->n ? reply_number_parse(line->fields[i], ret) : -EBADMSG;
}

const char *reply_line_field(const struct reply_line *line, size_t i) {
    return i < line->n ? line->fields[i] : "";
}
