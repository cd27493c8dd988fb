/* SPDX-License-Identifier: MIT */
#pragma once

/* Inside of the model's rules: the call that is being judged, and what each verb makes of it. */

#include "tests/harness/model-internal.h"

struct effect {
    struct world *w;
    struct m_state *m;
    enum redis_script script;
    char **args;
    size_t n_args;
    const redisReply *reply, *pushes, *state;
    const char *word;
    char old_epoch[NUMBER_SIZE];
    bool mismatch, new_epoch; /* Redis was found to be another one than that of the epoch: before, in this call */
    uint64_t more;
};

static inline uint64_t rules_number(const char *text) {
    return strtoull(text, NULL, 10);
}

/* --- model-rules.c --- */
/* A grant that the answer or a push tells; before: the token of this session before it. */
void rules_granted(struct effect *e, unsigned claim, uint64_t before, uint64_t token);

/* --- model-rules-session.c --- */
void rules_hello(struct effect *e);
void rules_beat(struct effect *e);
void rules_bye(struct effect *e);

/* --- model-rules-claim.c --- */
void rules_claim(struct effect *e);
void rules_release(struct effect *e);
void rules_sync(struct effect *e);
void rules_revoke(struct effect *e);
