/* SPDX-License-Identifier: MIT */
#pragma once

/* Inside of the model's rules: the call that is being judged, and what each verb makes of it. */

#include <string.h>

#include "tests/model/model-internal.h"

struct effect {
    struct world *w;
    struct m_state *m;
    enum redis_script script;
    char **args;
    size_t n_args;
    const redisReply *reply, *pushes, *state;
    const char *word;
    char old_epoch[NUMBER_SIZE];
    bool is_list; /* the answer: a line for each claim */
    bool mismatch;             /* before this call: no epoch, or Redis is another one than that of the epoch */
    bool was_grace;            /* before this call */
    bool went_back;            /* its caller has seen more of this epoch than is there */
    bool ended, new_epoch;     /* in this call: the epoch ended, another one began */
    uint64_t more;
};

static inline bool rules_is_ask(enum redis_script script) {
    return script == REDIS_SCRIPT_CLAIM || script == REDIS_SCRIPT_CLAIMS;
}

static inline uint64_t rules_number(const char *text) {
    return strtoull(text, NULL, 10);
}

/* Places in the arguments of hello. */
enum { HELLO_LEASE = 6, HELLO_DRAWN, HELLO_LATEST, HELLO_EPOCH, HELLO_OWN, HELLO_DEAD, HELLO_LOST, HELLO_FRESH, HELLO_LIMITS };

/* --- model-rules.c --- */
/* A grant that the answer or a push tells; before: the token of this session before it. */
void rules_granted(struct effect *e, unsigned claim, uint64_t before, uint64_t token);

void rules_park(struct effect *e, struct m_claim *claim); /* at the first pool whose limit is too low */

/* --- model-clock.c --- */
/* Before it counts as one that waits, or as drawn. */
void clock_ticket_drawn(struct effect *e, unsigned claim, uint64_t ticket, bool waits);
void clock_check_lead(struct effect *e); /* after each call */

/* --- model-rules-session.c --- */
static inline bool rules_is_refusal(const char *word) { /* of a hello */
    return strcmp(word, "lease-differs") == 0 || strcmp(word, "name-taken") == 0;
}
void rules_hello(struct effect *e);
void rules_heartbeat(struct effect *e);
void rules_bye(struct effect *e);

/* --- model-rules-claim.c --- */
/* Claims that are asked for once more are their session's, and what was held in an epoch before this one is not: before all else. */
void rules_requested_again(struct effect *e);
/* After what was owed to others: the claim, or each of several as if one were asked for after the other. */
void rules_request(struct effect *e);
/* Another epoch was found while they were asked for: what was done before that stays. */
void rules_requested_in_part(struct effect *e);
/* Another epoch was found while claims were given back: they are gone. */
void rules_released_in_part(struct effect *e);
void rules_release(struct effect *e);
void rules_releases(struct effect *e);
void rules_sync(struct effect *e);
void rules_revoke(struct effect *e);
void rules_move(struct effect *e); /* before its pushes */
/* A push tells of a move. */
void rules_moved(struct effect *e, unsigned claim, uint64_t before, uint64_t number, const char *text);

/* --- model-rules-turn.c --- */
void rules_turn(struct effect *e);
void rules_turned(struct effect *e); /* before its pushes */
void rules_turn_pushed(struct effect *e, unsigned session, const char *text);
/* A turn that is this host's, as the claim that it is. */
void rules_granted_turn(struct effect *e);
void rules_ended_turn(struct effect *e);
void rules_turn_epoch_begun(struct world *w);
void rules_turn_grace_ended(struct world *w); /* what hosts have reported until then counts */
