/* SPDX-License-Identifier: MIT */
#pragma once

/* The functions of the model's parts. */

#include "tests/model/model-state.h"

#define world_foreach_run(w, r) for (struct run *r = (w)->runs; r < (w)->runs + (w)->n_runs; r++)

void model_fail(struct world *w, const char *format, ...) _printf_(2, 3); /* the first one counts */
static inline bool model_failed(const struct world *w) {
    return w->failure[0] != '\0';
}
/* Keyed pools: in such sequences the pools are a, t/x, t/y, and the pattern of the latter, which no claim names. */
#define POOL_PATTERN 3
const char *model_pool(const struct world *w, unsigned pool); /* its name */
unsigned model_find_pool(const struct world *w, const char *text); /* POOLS_MAX: there is none; the name may be followed by ':' */
bool model_is_key(const struct world *w, unsigned pool);
uint64_t model_mix(uint64_t a, uint64_t b);
uint64_t reply_number(const struct redisReply *r); /* 0 if it is no number */
const char *reply_word(const struct redisReply *r); /* "" if it is no word */
/* A head start as a record has it: the claim's own, that from moves, the number of the last move. */
#define HEAD_SIZE 72
const char *head_format(uint64_t own, uint64_t given, uint64_t number, char buffer[static HEAD_SIZE]);
void head_parse(const char *text, uint64_t *own, uint64_t *given, uint64_t *number);
unsigned id_number(const char *id);                 /* of "c12" or "s3" */

/* --- model-rules.c (its parts: model-rules.h) --- */
usec_t world_redis_time(const struct world *w);
void rules_begin(struct world *w); /* the data is gone */
/* Applies what a call did, by its answer; complains if a rule is broken. */
void rules_apply(struct world *w, enum redis_script script, const struct redis_command *arguments, const redisReply *answer);

/* --- model-rules-queue.c --- */
/* Returns whether no claim that could be granted stands before it in any of its queues. Two claims have one
 * place if Redis lost the first one's ticket and its clock was set back. Either is first then; with
 * `surely`, neither is. */
bool rules_is_first(const struct world *w, unsigned claim, bool surely);
bool rules_fits(const struct world *w, unsigned claim, uint32_t limit_slack);
bool rules_wants_too_much(const struct world *w, const struct m_claim *c);
bool rules_may_be_parked(const struct world *w, const struct m_claim *c);
bool rules_stays_parked(const struct world *w, const struct m_claim *c); /* the pool for which it is parked has too low a limit */
uint32_t rules_held(const struct world *w, unsigned pool, bool ending);

/* --- model-limits.c --- */
uint32_t rules_limit(const struct world *w, unsigned pool); /* in force */
/* Takes over the overrides that a call has changed; complains if it may not have. */
void limits_apply(struct world *w, enum redis_script script, char **args, size_t n_args, const char *word, const redisReply *state);

/* --- model-check.c --- */
void check_grant(struct world *w, unsigned claim);     /* before it counts as held */
void check_session_end(struct world *w, unsigned session);
void check_start(struct world *w, const struct run *r); /* its process has just begun */
void check_heartbeat(struct world *w, const struct host *h);  /* others are expired in time (R4) */
void check_idle(struct world *w);                        /* no possible grant is missing */
void check_data(struct world *w, bool at_rest);

/* --- model-host.c --- */
usec_t vhost_lasts(const struct host *h, usec_t duration); /* true time in which the host's clock shows this */
usec_t vhost_margin(const struct host *h);                 /* how long before the end of its lease its guards are done */
usec_t vhost_measures(const struct host *h, usec_t duration); /* what the host's clock shows in this true time */
void vhost_start(struct world *w, struct host *h);         /* berthd begins */
void vhost_crash(struct world *w, struct host *h);         /* berthd is killed */
void vhost_down(struct world *w, struct host *h, usec_t retry_in); /* its connections break */
void vhost_resync(struct world *w, struct host *h);
void vhost_declare(struct world *w, struct host *h);
void vhost_session_lost(struct world *w, struct host *h);
void vhost_on_timer(struct world *w, struct host *h);
usec_t vhost_next_timer(const struct world *w, const struct host *h); /* USEC_INFINITY: none */
void vhost_on_answer(struct world *w, const struct model_event *e);
void vhost_begin(struct host *h, struct redis_command *words);
void vhost_put_session(struct redis_command *words, unsigned session); /* "s1"; "" for 0 */

/* --- model-hello.c --- */
void vhello_send(struct world *w, struct host *h);
void vhello_on_answer(struct world *w, struct host *h, const redisReply *reply);
void vhello_on_declared(struct world *w, struct host *h, const redisReply *reply);
void vhello_on_sync(struct world *w, struct host *h, const redisReply *reply);

/* --- model-heartbeat.c --- */
void vheartbeat_observe_epoch(struct world *w, struct host *h, const char *epoch);
void vheartbeat_observe_drawn(struct world *w, struct host *h, uint64_t number);
void vheartbeat_observe_latest(struct world *w, struct host *h, uint64_t number, usec_t sent);
void vheartbeat_apply_overrides(const struct world *w, struct host *h, const redisReply *list);
uint64_t vheartbeat_latest(const struct world *w, const struct host *h);
void vheartbeat_add_sample(struct world *w, struct host *h, uint64_t count, usec_t sent);
uint64_t vheartbeat_expired_count(const struct world *w, const struct host *h);
void vheartbeat_send(struct world *w, struct host *h);
/* Sets when the next heartbeat is due. */
void vheartbeat_plan(struct world *w, struct host *h);
usec_t vheartbeat_due(const struct world *w, const struct host *h);
void vheartbeat_on_reply(struct world *w, struct host *h, const redisReply *reply);

/* --- model-claim.c --- */
const char *vclaim_id(const struct run *r, char buffer[static 16]);
void vclaim_request(struct world *w, struct run *r);
void vclaim_release(struct world *w, struct run *r);
void vclaim_flush(struct world *w, struct host *h);
void vclaim_forget_calls(struct world *w, struct host *h);
void vclaim_lose(struct world *w, struct host *h);
void vclaim_apply_item(struct world *w, struct host *h, const redisReply *item);
void vclaim_apply_number(struct host *h, uint64_t before, uint64_t number);
void vclaim_apply_held(struct world *w, struct host *h, struct run *r, uint64_t ticket, uint64_t token);
void vclaim_apply_waiting(struct run *r, uint64_t ticket);
void vclaim_on_push(struct world *w, struct host *h, const char *text);
void vclaim_start_notified(struct world *w, struct host *h);
void vclaim_extend(struct world *w, struct host *h);
size_t vclaim_count(const struct world *w, const struct host *h);
/* All claims that Redis confirmed: those that a host may name in a verification. */
void vclaim_put_named(const struct world *w, const struct host *h, struct redis_command *words);
/* Collects the claims that a sync names: held ones first, then by ticket. */
void vclaim_collect(struct world *w, struct host *h);
void vclaim_put(const struct world *w, struct redis_command *words, const struct run *r);
bool vclaim_is_notified(const struct run *r);
/* Ends processes whose time is over; their berthd, if it runs, returns their permits. */
void vclaim_pass_time(struct world *w);
void vclaim_reap(struct world *w, struct host *h);
usec_t vclaim_next_end(const struct world *w);

/* --- model-batch.c --- */
/* The request is sent with those of the same kind in this turn, before any other call of its host. */
void vbatch_claim(struct world *w, struct run *r);
void vbatch_release(struct world *w, struct run *r);
void vbatch_flush(struct world *w, struct host *h);
void vbatch_on_sent_reply(struct world *w, const struct batch *batch); /* any reply */
void vbatch_refuse(struct world *w, const struct batch *batch);
void vbatch_on_reply(struct world *w, struct host *h, const struct batch *batch, const redisReply *reply);

/* --- model-world.c --- */
/* Takes ownership of `words`. batch: the claims that the call is about; NULL: none. */
void world_send(struct world *w, struct host *h, enum redis_script script, struct redis_command *words, enum host_phase during,
                const struct batch *batch);
void world_end_turn(struct world *w); /* sends the collected calls of all hosts */
void world_push(struct world *w, unsigned session, const char *text);
void world_break(struct world *w, struct host *h, usec_t after); /* the host will notice then */
void world_thaw(struct world *w); /* Redis and hosts go on where they were frozen */
void world_advance(struct world *w, usec_t until);
redisReply *world_call(struct world *w, enum redis_script script, const struct redis_command *words);
void world_done(struct world *w);
usec_t world_draw(struct world *w, usec_t most); /* a short delay */
void world_trace(const struct world *w, const char *format, ...) _printf_(2, 3);

/* --- model-steps.c --- */
struct step;
void world_step(struct world *w, const struct step *s);
void world_heal(struct world *w); /* all faults end */
void world_disaster(struct world *w); /* loses the host that began a process last, and Redis's data */

/* --- model-operator.c --- */
void operator_override(struct world *w, struct host *h, const struct step *s); /* also clears, pauses, resumes */
void operator_revoke(struct world *w, struct host *h, const struct step *s);
void operator_move(struct world *w, struct host *h, const struct step *s);
void operator_turns(struct world *w, struct host *h, const char *what);
void operator_end_grace(struct world *w, struct host *h);
