/* SPDX-License-Identifier: MIT */
#include "store/redis/client/sentinel-poll.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "conf/redis-url.h"

#define UNKNOWN_MASTER "ERR No such master with that name"
#define DOWN_AFTER_MAX (UINT64_C(86400) * 1000) /* ms */

struct answer { /* of one sentinel */
    struct moved node;
    uint64_t epoch;
    usec_t down_after;
    bool is_named, has_epoch; /* the fields were there */
    bool is_vote; /* it is a master that is up, and stays */
};

void sentinel_poll_begin(struct sentinel_poll *poll, const char *master, size_t n) {
    bool is_same = strcmp(poll->master, master) == 0;
    struct sentinel_poll next = {
        .n = n,
        .known_epoch = is_same ? poll->known_epoch : 0,
        .error = REDIS_ERROR_RETRY,
    };

    (void) snprintf(next.master, sizeof(next.master), "%s", master);
    *poll = next;
}

/* Formats "10.0.0.5:6379" or "[::1]:6379". */
static void format_node(const struct moved *node, char buffer[static SENTINEL_WHERE_SIZE]) {
    (void) snprintf(buffer, SENTINEL_WHERE_SIZE, strchr(node->host, ':') ? "[%s]:%u" : "%s:%u", node->host, node->port);
}

/* --- one answer --- */

/* A list of words with commas between. */
static bool has_flag(const char *flags, const char *word) {
    size_t n = strlen(word);

    for (const char *at = flags; *at != '\0'; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',' ? 1 : 0))
        if (strncmp(at, word, n) == 0 && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

/* During a failover the sentinel that leads it names the old master, with the epoch of the new one. */
static bool excludes_master(const char *flags) {
    static const char *const words[] = {"s_down", "o_down", "disconnected", "failover_in_progress"};

    for (size_t i = 0; i < ELEMENTSOF(words); i++)
        if (has_flag(flags, words[i]))
            return true;
    return false;
}

/* Returns whether the value is right, as far as berthd reads the field. */
static bool take_field(const struct sentinel_poll *poll, struct answer *answer, const char *name, const char *value) {
    uint64_t number = 0;

    if (strcmp(name, "name") == 0) {
        answer->is_named = true;
        return strcmp(value, poll->master) == 0;
    }
    if (strcmp(name, "ip") == 0) { /* a name with resolve-hostnames and announce-hostnames */
        (void) snprintf(answer->node.host, sizeof(answer->node.host), "%s", value);
        return strlen(value) < sizeof(answer->node.host) && redis_url_is_host(value);
    }
    if (strcmp(name, "port") == 0) {
        if (number_parse(value, UINT16_MAX, &number) < 0 || number == 0)
            return false;
        answer->node.port = (uint16_t) number;
        return true;
    }
    if (strcmp(name, "config-epoch") == 0) {
        answer->has_epoch = true;
        return number_parse(value, UINT64_MAX, &answer->epoch) >= 0;
    }
    if (strcmp(name, "flags") == 0)
        answer->is_vote = !excludes_master(value);
    if (strcmp(name, "down-after-milliseconds") == 0 && number_parse(value, DOWN_AFTER_MAX, &number) >= 0)
        answer->down_after = number * USEC_PER_MSEC;
    return true;
}

/* Reads a list of names and values. */
static bool read_answer(const struct sentinel_poll *poll, const struct redisReply *reply, struct answer *answer) {
    size_t n;

    if (reply_count(reply, &n) < 0)
        return false;
    for (size_t i = 0; i + 1 < n; i += 2) {
        const char *name = reply_text(reply_at(reply, i)), *value = reply_text(reply_at(reply, i + 1));

        if (!name || !value || !take_field(poll, answer, name, value))
            return false;
    }
    return answer->is_named && answer->has_epoch && answer->node.host[0] != '\0' && answer->node.port > 0;
}

static bool is_same(const struct moved *a, const struct moved *b) {
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

static void take_answer(struct sentinel_poll *poll, const struct answer *answer) {
    poll->n_known++;
    if (answer->down_after > poll->down_after)
        poll->down_after = answer->down_after;
    if (poll->n_known == 1 || answer->epoch > poll->epoch) {
        poll->epoch = answer->epoch;
        poll->best = answer->node;
        poll->other.port = 0;
        poll->is_up = answer->is_vote;
    } else if (answer->epoch == poll->epoch && answer->is_vote) {
        if (!poll->is_up)
            poll->best = answer->node;
        else if (!is_same(&answer->node, &poll->best))
            poll->other = answer->node;
        poll->is_up = true;
    }
}

static void note_reason(struct sentinel_poll *poll, const char *who, const char *text) {
    size_t used = strlen(poll->reasons);
    bool is_named = strstr(text, who) != NULL;

    (void) snprintf(poll->reasons + used, sizeof(poll->reasons) - used, "%s%s%s%s", used > 0 ? "; " : "",
                    is_named ? "" : who, is_named ? "" : ": ", text);
}

void sentinel_poll_fail(struct sentinel_poll *poll, const char *who, enum redis_error error, const char *text) {
    poll->n_failed++;
    note_reason(poll, who, text);
    if (error == REDIS_ERROR_FATAL)
        poll->error = REDIS_ERROR_FATAL;
}

void sentinel_poll_take(struct sentinel_poll *poll, const char *who, const struct redisReply *reply) {
    struct answer answer = {.is_vote = true};
    const char *error = reply_error(reply);

    if (error && strcmp(error, UNKNOWN_MASTER) == 0) {
        poll->n_unknown++;
        note_reason(poll, who, "does not know it");
    } else if (error) {
        sentinel_poll_fail(poll, who, redis_error_class(error), redis_error_text(error));
    } else if (!read_answer(poll, reply, &answer)) {
        sentinel_poll_fail(poll, who, REDIS_ERROR_RETRY, "its answer to SENTINEL MASTER is malformed");
    } else if (answer.epoch < poll->known_epoch) {
        poll->n_old++;
        sentinel_poll_fail(poll, who, REDIS_ERROR_RETRY, "it does not know the latest failover");
    } else {
        take_answer(poll, &answer);
    }
}

/* --- the verdict --- */

static enum sentinel_verdict refuse(struct sentinel_poll *poll, enum redis_error error, const char *text) {
    poll->error = error;
    (void) snprintf(poll->reasons, sizeof(poll->reasons), "%s", text);
    return SENTINEL_VERDICT_NONE;
}

static enum sentinel_verdict refuse_minority(struct sentinel_poll *poll) {
    char text[sizeof(poll->reasons)];

    if (poll->n_unknown > poll->n / 2) {
        (void) snprintf(text, sizeof(text), "sentinels do not know a master \"%s\"; correct the option master",
                        poll->master);
        return refuse(poll, REDIS_ERROR_FATAL, text);
    }
    (void) snprintf(text, sizeof(text), "sentinels: %zu of %zu know the master \"%s\" (%.400s)", poll->n_known, poll->n,
                    poll->master, poll->reasons);
    return refuse(poll, poll->error, text);
}

bool sentinel_poll_has_majority(const struct sentinel_poll *poll) {
    return poll->n_known > poll->n / 2;
}

enum sentinel_verdict sentinel_poll_decide(struct sentinel_poll *poll) {
    size_t n_answered = poll->n_known + poll->n_unknown + poll->n_failed;
    char text[sizeof(poll->reasons)], a[SENTINEL_WHERE_SIZE], b[SENTINEL_WHERE_SIZE];
    bool has_all = n_answered == poll->n || poll->is_late;

    if (poll->n_old == poll->n)
        poll->known_epoch = 0;
    if (!sentinel_poll_has_majority(poll))
        return has_all ? refuse_minority(poll) : SENTINEL_VERDICT_OPEN;
    if (poll->other.port == 0 && poll->is_up) {
        poll->known_epoch = poll->epoch;
        return SENTINEL_VERDICT_FOUND;
    }
    if (!has_all)
        return SENTINEL_VERDICT_OPEN;
    format_node(&poll->best, a);
    format_node(&poll->other, b);
    if (poll->other.port > 0)
        (void) snprintf(text, sizeof(text), "sentinels name different masters \"%s\": %.200s, %.200s",
                        poll->master, a, b);
    else
        (void) snprintf(text, sizeof(text), "sentinels: the master \"%s\" at %.200s is down or being replaced, a failover is awaited",
                        poll->master, a);
    return refuse(poll, REDIS_ERROR_RETRY, text);
}
