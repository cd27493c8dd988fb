/* SPDX-License-Identifier: MIT */
#pragma once

/* Internal to the model's rules: the call that is being checked, and the rules of each verb. */

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
/* Applies a grant of a reply or of a push; before: the session's previous token. */
void rules_granted(struct effect *e, unsigned claim, uint64_t before, uint64_t token);

void rules_park(struct effect *e, struct m_claim *claim); /* at the first pool whose limit is too low */

/* --- model-clock.c --- */
/* Called before the claim counts as waiting, and its ticket as drawn. */
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
/* Gives claims that are requested again to their session, and forgets grants of earlier epochs. Comes
 * first. */
void rules_requested_again(struct effect *e);
/* Comes after grants to others. Several claims count as requested one after the other. */
void rules_request(struct effect *e);
/* The call found another epoch while it requested claims. What it did before stays. */
void rules_requested_in_part(struct effect *e);
/* The call found another epoch while it released claims. They are gone. */
void rules_released_in_part(struct effect *e);
void rules_release(struct effect *e);
void rules_releases(struct effect *e);
void rules_sync(struct effect *e);

/* --- model-rules-move.c --- */
void rules_revoke(struct effect *e);
void rules_move(struct effect *e); /* before its pushes */
/* Applies the push of a move. */
void rules_moved(struct effect *e, unsigned claim, uint64_t before, uint64_t number, const char *text);

/* --- model-rules-turn.c --- */
void rules_turn(struct effect *e);
void rules_turned(struct effect *e); /* before its pushes */
void rules_turn_pushed(struct effect *e, unsigned session, const char *text);
/* Applies the claim of a turn that this host got. */
void rules_granted_turn(struct effect *e);
void rules_ended_turn(struct effect *e);
void rules_turn_epoch_begun(struct world *w);
void rules_turn_grace_ended(struct world *w); /* what hosts have reported until then counts */
