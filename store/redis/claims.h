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
/* Applies the loss of the session. Held claims without `keep` are over. Those with it, and waiting ones, return in
 * the new session. */
void claims_lose(struct store_redis *store);
bool claims_any_held(const struct store_redis *store);
/* Returns whether a held claim ends with its lease. */
bool claims_any_leased(const struct store_redis *store);
/* Returns whether a lost claim has not stopped yet. */
bool claims_any_stopping(const struct store_redis *store);

/* --- calls and replies for one claim --- */

#define CLAIM_HEAD_SIZE 72 /* of three numbers */
/* Formats the head start as records in Redis have it. Returns buffer. */
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
/* Takes the head start that a move gave. Ignores a move that is not later than the last one. */
void claims_handle_moved(struct claim_entry *entry, usec_t given, uint64_t number);
/* Returns a refused claim to its owner. */
void claims_handle_refused(struct claim_entry *entry, enum store_refusal refusal, const char *pool);
/* Ends a released claim; -EBADMSG if the reply contradicts its token. */
int claims_handle_released(struct claim_entry *entry, const struct release_reply *reply);
/* Handles that Redis had no memory for the claim: refuses it if it would not wait, else requests it again before all
 * later ones. */
void claims_handle_full(struct claim_entry *entry);
/* Handles that Redis does not know the claim. */
void claims_handle_unknown(struct claim_entry *entry);
