/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <string.h>
#include <syslog.h>

#include "store/redis/store-redis.h"

#define PUSH_SIZE_MAX 1024

/* --- numbers --- */

/* Extends the sequence by gaps that it has reached. */
static void close_gaps(struct push_log *pushes) {
    for (size_t i = 0; i < pushes->n_gaps;) {
        if (pushes->gaps[i].before > pushes->seq) {
            i++;
            continue;
        }
        if (pushes->gaps[i].number > pushes->seq)
            pushes->seq = pushes->gaps[i].number;
        pushes->gaps[i] = pushes->gaps[--pushes->n_gaps];
        i = 0;
    }
}

void push_observe_number(struct store_redis *store, uint64_t before, uint64_t number) {
    struct push_log *pushes = &store->pushes;

    if (number > pushes->highest)
        pushes->highest = number;
    if (number <= pushes->seq)
        return;
    if (before > pushes->seq) { /* one in between was missed, or is still on the other connection */
        if (pushes->n_gaps < PUSH_GAPS_MAX)
            pushes->gaps[pushes->n_gaps++] = (struct push_gap) {.before = before, .number = number};
        return;
    }
    pushes->seq = number;
    close_gaps(pushes);
}

void push_skip_to(struct store_redis *store, uint64_t number) {
    push_observe_number(store, store->pushes.seq, number);
}

void push_note_heartbeat(struct store_redis *store) {
    store->pushes.gaps_at_heartbeat = store->pushes.n_gaps > 0;
}

/* A push may arrive later than the heartbeat's reply that includes it. So a push counts as missing if it was missing
 * a heartbeat ago. */
bool push_check_gaps(struct store_redis *store, uint64_t last_number) {
    struct push_log *pushes = &store->pushes;
    bool missed = (pushes->gaps_at_heartbeat && pushes->n_gaps > 0) ||
                  (pushes->missing > 0 && pushes->seq < pushes->missing);

    pushes->missing = last_number > pushes->seq ? last_number : 0;
    return missed;
}

void push_reset_gaps(struct store_redis *store) {
    store->pushes.n_gaps = 0;
    store->pushes.gaps_at_heartbeat = false;
    store->pushes.missing = 0;
}

void push_reset_connection(struct store_redis *store) {
    store->pushes.malformed_logged = false;
}

void push_reset_epoch(struct store_redis *store) {
    store->pushes.highest = 0;
}

void push_reset_session(struct store_redis *store) {
    store->pushes.seq = store->pushes.highest = 0;
}

/* --- messages --- */

/* Cuts the next word off a push; NULL: there is none. */
static char *next_word(char **text) {
    char *word = *text, *end;

    if (!word)
        return NULL;
    end = strchr(word, ' ');
    *text = end ? end + 1 : NULL;
    if (end)
        *end = '\0';
    return word;
}

/* granted|revoked EPOCH BEFORE NUMBER CLAIM ..., moved EPOCH BEFORE NUMBER CLAIM GIVEN-µs, parked|queued EPOCH POSITION TICKET CLAIM ...,
 * grace-over EPOCH 0 0 -,
 * turn EPOCH BEFORE NUMBER POOL DUE ATTEMPT DELAY-MS WHY */
enum push_field {
    PUSH_VERB,
    PUSH_EPOCH,
    PUSH_ONE,
    PUSH_TWO,
    PUSH_CLAIM,
    PUSH_TICKET,
    PUSH_SINCE,
    PUSH_LEAD,
    PUSH_DELAY = PUSH_LEAD,
    PUSH_WHY,
    PUSH_FIELDS
};

struct push {
    const char *verb, *id;
    uint64_t one, two;      /* before and number; or position and ticket */
    uint64_t ticket, since; /* 0: not known; of a move: the head start that it gave; of a turn: due, attempt */
    uint64_t delay;         /* of a turn, ms */
    uint64_t lead;          /* of a grant: how far its token is ahead of Redis's TIME, µs */
    const char *why;        /* of a turn */
};

/* 0; a positive number: a push of another epoch, which is ignored (R12); -EBADMSG. */
static int push_parse(struct store_redis *store, char *text, struct push *ret) {
    const char *fields[PUSH_FIELDS] = {NULL};

    for (size_t i = 0; i < ELEMENTSOF(fields); i++)
        fields[i] = next_word(&text);
    *ret = (struct push) {.verb = fields[PUSH_VERB], .id = fields[PUSH_CLAIM], .why = fields[PUSH_WHY]};
    if (ret->id && !epoch_is(store, fields[PUSH_EPOCH]))
        return 1;
    if (!ret->id || reply_number_parse(fields[PUSH_ONE], &ret->one) < 0 ||
        reply_number_parse(fields[PUSH_TWO], &ret->two) < 0)
        return -EBADMSG;
    if (strcmp(ret->verb, "revoked") == 0 || strcmp(ret->verb, "grace-over") == 0) /* what follows is for people, or nothing */
        return 0;
    if (strcmp(ret->verb, "moved") == 0)
        return fields[PUSH_TICKET] ? reply_number_parse(fields[PUSH_TICKET], &ret->ticket) : -EBADMSG;
    if (!fields[PUSH_SINCE] || reply_number_parse(fields[PUSH_TICKET], &ret->ticket) < 0)
        return -EBADMSG;
    if (strcmp(ret->verb, "turn") == 0 && (!fields[PUSH_DELAY] || reply_number_parse(fields[PUSH_DELAY], &ret->delay) < 0))
        return -EBADMSG;
    if (strcmp(ret->verb, "granted") == 0 &&
        (!fields[PUSH_LEAD] || reply_number_parse(fields[PUSH_LEAD], &ret->lead) < 0))
        return -EBADMSG;
    return reply_number_parse(fields[PUSH_SINCE], &ret->since);
}

/* Ignores a malformed push, which any client with the right to publish may have sent. If a valid one was lost, the
 * next heartbeat's reply shows the gap. */
static void handle_malformed(struct store_redis *store) {
    if (!store->pushes.malformed_logged)
        journal_log(store_redis_journal(store), LOG_WARNING,
                    "ignoring a malformed message on the channel of this host");
    store->pushes.malformed_logged = true;
    heartbeat_send_extra(store);
}

static void handle_numbered(struct store_redis *store, const struct push *push, struct claim_entry *entry) {
    push_observe_number(store, push->one, push->two);
    clock_observe_drawn(store, push->two);
    if (entry && strcmp(push->verb, "granted") == 0)
        claims_handle_held(entry, push->ticket, push->two, push->since, push->lead);
    else if (entry && strcmp(push->verb, "revoked") == 0)
        claims_handle_revoked(entry, push->two);
    else if (entry && strcmp(push->verb, "moved") == 0)
        claims_handle_moved(entry, push->ticket, push->two);
    else if (strcmp(push->verb, "turn") == 0)
        turns_handle_open(store, push->id, push->ticket, push->since, push->delay, push->why);
    if (store->pushes.n_gaps > 0) /* the next reply shows whether one is missing */
        heartbeat_send_extra(store);
}

static void handle_push(struct store_redis *store, char *text) {
    struct push push;
    struct claim_entry *entry;
    bool is_parked;
    int r = push_parse(store, text, &push);

    if (r < 0)
        handle_malformed(store);
    if (r != 0)
        return;
    if (strcmp(push.verb, "grace-over") == 0) {
        if (store->epoch.in_grace) /* the reply shows it */
            heartbeat_send_extra(store);
        return;
    }
    entry = claim_table_find(store, push.id);
    is_parked = strcmp(push.verb, "parked") == 0;
    if (!is_parked && strcmp(push.verb, "queued") != 0)
        handle_numbered(store, &push, entry);
    else if (entry && push.one <= UINT32_MAX)
        claims_handle_waiting(entry, is_parked, push.ticket, (uint32_t) push.one, push.since);
}

void push_on_message(const struct redisReply *reply, void *userdata) {
    enum { KIND, CHANNEL, TEXT };
    struct store_redis *store = userdata;
    char text[PUSH_SIZE_MAX];

    if (store->stop.is_under_way || !reply_is(reply_at(reply, KIND), "smessage"))
        return;
    if (reply_copy(reply_at(reply, TEXT), text, sizeof(text)) == 0)
        handle_push(store, text);
    else
        handle_malformed(store);
}
