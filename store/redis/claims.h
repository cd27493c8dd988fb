/* SPDX-License-Identifier: MIT */
#pragma once

/* Requests for claims, and the effects of replies and pushes on them. batch.h sends the calls. */

#include <stdbool.h>

#include "store/redis/claim-table.h"
#include "store/redis/replies.h"
#include "store/store.h"

struct store_redis;

struct claims {
    bool undelivered_grants; /* there may be a held claim whose owner was not notified */
};

/* --- operations of the store --- */

int claims_request(struct store *base, struct claim *claim);
int claims_adopt(struct store *base, struct claim *claim);
void claims_release(struct store *base, struct claim *claim);

/* --- all claims --- */

/* Sends what waited for a live link. */
void claims_send_pending(struct store_redis *store);
/* Asks again for the first claim that Redis had no memory for. Returns whether there is one. */
bool claims_retry_first(struct store_redis *store);
/* Redis is away: refuses claims with `nowait`. */
void claims_refuse_nowait(struct store_redis *store);
/* Forgets calls under way. */
void claims_reset(struct store_redis *store);
/* Before a sync: nothing is confirmed, and Redis decides about grants that no owner was notified of. */
void claims_prepare_sync(struct store_redis *store);
/* After a sync: finishes released claims that Redis does not have. */
void claims_finish_released(struct store_redis *store);
/* Notifies owners of grants that waited for a deadline. */
void claims_deliver_grants(struct store_redis *store);
/* The session is lost. Held claims without `keep` are over; those with it, and waiting ones, return in the
 * new session. */
void claims_lose(struct store_redis *store);
bool claims_any_held(const struct store_redis *store);
/* Returns whether a lost claim has not stopped yet. */
bool claims_any_stopping(const struct store_redis *store);

/* --- calls and replies for one claim --- */

#define CLAIM_HEAD_SIZE 72 /* of three numbers */
/* The head start as it stands in a record in Redis; returns buffer. */
const char *claims_format_head(const struct claim *claim, char buffer[static CLAIM_HEAD_SIZE]);

void claims_begin_call(struct claim_entry *entry);
void claims_end_call(struct claim_entry *entry);
void claims_mark_sent(struct claim_entry *entry);
/* lead: how far the token is ahead of Redis's TIME. */
void claims_handle_held(struct claim_entry *entry, uint64_t ticket, uint64_t token, usec_t queued, usec_t lead);
/* position, since: 0: not known. */
void claims_handle_waiting(struct claim_entry *entry, bool parked, uint64_t ticket, uint32_t position,
                           usec_t since);
/* number: the clock's number of the revocation; 0: not known. */
void claims_handle_revoked(struct claim_entry *entry, uint64_t number);
/* The claim was moved, and has this head start besides its own. An earlier move than the last one is ignored. */
void claims_handle_moved(struct claim_entry *entry, usec_t given, uint64_t number);
/* The claim was refused: it is its owner's again. */
void claims_handle_refused(struct claim_entry *entry, enum store_refusal refusal, const char *pool);
/* The claim was released; -EBADMSG if the reply contradicts its token. */
int claims_handle_released(struct claim_entry *entry, const struct release_reply *reply);
/* Redis had no memory for the claim: it is refused if it would not wait, else requested again, before all
 * later ones. */
void claims_handle_full(struct claim_entry *entry);
/* Redis does not know the claim. */
void claims_handle_unknown(struct claim_entry *entry);
