/* SPDX-License-Identifier: MIT */

/* What each call must do. The model does not predict the order of grants. It checks each grant that the
 * scripts report, and after each call that no possible grant is missing (check_idle()). */

#include <stdarg.h>
#include <string.h>

#include "tests/model/rules/model-rules.h"

void model_fail(struct world *w, const char *format, ...) {
    va_list ap;

    if (model_failed(w))
        return;
    va_start(ap, format);
    (void) vsnprintf(w->failure, sizeof(w->failure), format, ap);
    va_end(ap);
}

uint64_t reply_number(const struct redisReply *r) {
    uint64_t n;

    return reply_u64(r, &n) < 0 ? 0 : n;
}

const char *reply_word(const struct redisReply *r) {
    const char *text = reply_text(r);

    return text ? text : "";
}

const char *head_format(uint64_t own, uint64_t given, uint64_t number, char buffer[static HEAD_SIZE]) {
    int n = snprintf(buffer, HEAD_SIZE, "%" PRIu64, own);

    if (number > 0)
        (void) snprintf(buffer + n, HEAD_SIZE - (size_t) n, "+%" PRIu64 "@%" PRIu64, given, number);
    return buffer;
}

void head_parse(const char *text, uint64_t *own, uint64_t *given, uint64_t *number) {
    *own = *given = *number = 0;
    (void) sscanf(text, "%" SCNu64 "+%" SCNu64 "@%" SCNu64, own, given, number);
}

unsigned id_number(const char *id) {
    return *id ? (unsigned) strtoul(id + 1, NULL, 10) : 0;
}

usec_t world_redis_time(const struct world *w) {
    return (usec_t) ((int64_t) (1700000000 * USEC_PER_SEC + w->now) + w->redis.skew);
}

void rules_begin(struct world *w) {
    w->redis.now = (struct m_state){.empty = true};
}

/* --- pushes --- */

void rules_granted(struct effect *e, unsigned c, uint64_t before, uint64_t token) {
    struct m_claim *claim = &e->m->claims[c];
    struct m_session *session = &e->m->sessions[claim->session];

    if (e->mismatch || e->m->grace)
        model_fail(e->w, "R10: c%u was granted %s", c, e->mismatch ? "by a Redis that is not that of the epoch" : "in grace");
    if (claim->state != 'W' || claim->revoked || !session->live)
        model_fail(e->w, "c%u was granted, but its state is %c%s", c, claim->state ? claim->state : '-', claim->revoked ? ", revoked" : "");
    if (token <= e->m->clock)
        model_fail(e->w, "R7: c%u got token %" PRIu64 ", the clock was at %" PRIu64 " before", c, token, e->m->clock);
    if (before != session->last)
        model_fail(e->w, "R12: the grant of c%u names %" PRIu64 " as the number before it, that was %" PRIu64, c, before, session->last);
    claim->token = token;
    check_grant(e->w, c);
    claim->state = 'H';
    e->w->runs[c].requested_at = 0;
    session->last = token;
    e->m->clock = token;
}

void rules_park(struct effect *e, struct m_claim *claim) {
    claim->state = 'P';
    for (claim->parked_at = 0; claim->parked_at + 1 < e->w->setup.n_pools; claim->parked_at++)
        if (claim->permits[claim->parked_at] > rules_limit(e->w, claim->parked_at))
            return;
}

static void apply_push(struct effect *e, const char *channel, const char *text) {
    char verb[16] = "", epoch[NUMBER_SIZE] = "", id[16] = "";
    uint64_t one = 0, two = 0;
    unsigned s = id_number(strstr(channel, "to:") ? strstr(channel, "to:") + 3 : ""), c;

    if (sscanf(text, "%15s %23s %" SCNu64 " %" SCNu64 " %15s", verb, epoch, &one, &two, id) != 5) {
        model_fail(e->w, "a push makes no sense: %s", text);
        return;
    }
    if (strcmp(verb, "turn") == 0) {
        rules_turn_pushed(e, s, text);
        return;
    }
    if (strcmp(verb, "grace-over") == 0) {
        if (reply_number(reply_at(e->state, 1)) == 1 || strcmp(epoch, e->m->epoch) != 0)
            model_fail(e->w, "R10: the end of grace of epoch %s was pushed to s%u", epoch, s);
        return;
    }
    c = id_number(id);
    if (strcmp(epoch, e->m->epoch) != 0 && !(e->ended && strcmp(epoch, e->old_epoch) == 0))
        model_fail(e->w, "R12: a push names epoch %s, it is %s", epoch, e->m->epoch);
    if (e->m->claims[c].session != s)
        model_fail(e->w, "R12: a push about c%u went to s%u", c, s);
    if (strcmp(verb, "granted") == 0) {
        rules_granted(e, c, one, two);
    } else if (strcmp(verb, "moved") == 0) {
        rules_moved(e, c, one, two, text);
    } else if (strcmp(verb, "revoked") == 0) {
        if (one != e->m->sessions[s].last || two <= e->m->clock)
            model_fail(e->w, "R12: the revocation of c%u has number %" PRIu64 " after %" PRIu64, c, two, one);
        e->m->sessions[s].last = two;
        e->m->clock = two;
    } else {
        bool parked = strcmp(verb, "parked") == 0;

        struct m_claim *claim = &e->m->claims[c];

        if (parked ? !rules_may_be_parked(e->w, claim) : rules_stays_parked(e->w, claim))
            model_fail(e->w, "R2: c%u was %s", c,
                       parked ? "parked, but no limit is too low, or all its pools are paused" : "brought back, but a limit is too low");
        claim->state = 'W';
        if (parked)
            rules_park(e, claim);
    }
}

static void apply_pushes(struct effect *e) {
    for (size_t i = 0; reply_at(e->pushes, i + 1); i += 2)
        apply_push(e, reply_word(reply_at(e->pushes, i)), reply_word(reply_at(e->pushes, i + 1)));
}

/* --- all together --- */

/* Returns the word that must refuse a call of another epoch, session or connection, or NULL. */
static const char *gate(const struct effect *e, bool was_mismatch) {
    const struct m_session *session = &e->m->sessions[id_number(e->args[0])];

    if (e->script == REDIS_SCRIPT_HELLO || e->script == REDIS_SCRIPT_BYE)
        return NULL;
    if (strcmp(e->args[2], e->old_epoch) != 0 || !*e->old_epoch)
        return "epoch";
    if (was_mismatch && e->script == REDIS_SCRIPT_SYNC)
        return "epoch";
    if (!session->live || session->ending)
        return "gone";
    if (rules_number(e->args[1]) != session->connection)
        return "stale";
    return e->went_back ? "epoch" : NULL;
}

static void begin_epoch(struct effect *e, const char *epoch) {
    struct world *w = e->w;
    uint64_t began = reply_number(reply_at(e->state, 5));

    if (e->script != REDIS_SCRIPT_HELLO || (!e->mismatch && !e->went_back))
        model_fail(w, "R10: %s began a new epoch, but Redis is the same", redis_script_name(e->script));
    for (unsigned i = 0; i < w->epochs.n_begun && i < EPOCHS_MAX; i++)
        if (strcmp(w->epochs.begun[i], epoch) == 0)
            model_fail(w, "R10: epoch %s came twice", epoch);
    if (began <= e->m->clock)
        model_fail(w, "R10: an epoch began at number %" PRIu64 ", the clock was at %" PRIu64, began, e->m->clock);
    (void) snprintf(w->epochs.begun[w->epochs.n_begun++ % EPOCHS_MAX], NUMBER_SIZE, "%s", epoch);
    (void) snprintf(e->m->epoch, sizeof(e->m->epoch), "%s", epoch);
    e->m->replid = w->redis.replid;
    e->m->began = began;
    e->m->grace = e->new_epoch = true;
    e->m->empty = e->mismatch = false;
    w->redis.stepped = w->now;
    rules_turn_epoch_begun(w);
}

static void apply_epoch(struct effect *e) {
    const char *epoch = reply_word(reply_at(e->state, 0));

    if (strcmp(epoch, e->m->epoch) == 0) {
        if (e->script == REDIS_SCRIPT_HELLO && strcmp(e->word, "stale") != 0 && (e->mismatch || e->went_back))
            model_fail(e->w, "R10: %s, but hello began no new epoch", e->mismatch ? "Redis is another one" : "Redis's memory went back");
        return;
    }
    if (*epoch) {
        begin_epoch(e, epoch);
        return;
    }
    if (!e->mismatch && !e->went_back)
        model_fail(e->w, "R10: an epoch ended, but Redis is the same");
    e->m->epoch[0] = '\0';
    e->ended = true;
}

/* Returns whether the caller proves that Redis's memory went back in the epoch that it names. */
static bool proves_loss(const struct effect *e) {
    const struct m_state *m = e->m;
    const struct m_session *session = &m->sessions[id_number(e->args[0])];
    uint64_t own;

    if (e->script == REDIS_SCRIPT_HEARTBEAT) /* by its own count only where it does anything to others: see rules_heartbeat() */
        return rules_number(e->args[6]) > session->last || rules_number(e->args[3]) > m->heartbeat_count ||
               (rules_number(e->args[4]) > session->count && strcmp(e->word, "epoch") == 0);
    if (e->script != REDIS_SCRIPT_HELLO || !*m->epoch)
        return false;
    own = session->live && !session->ending ? session->count : 0; /* an end that has begun proves it, too */
    if (strcmp(e->args[HELLO_EPOCH], m->epoch) == 0)
        return *e->args[HELLO_LOST] != '0' || rules_number(e->args[HELLO_OWN]) > own || rules_number(e->args[HELLO_DRAWN]) > m->clock;
    return !m->grace && rules_number(e->args[HELLO_DRAWN]) > m->clock;
}

static void apply_verb(struct effect *e) {
    switch (e->script) {
    case REDIS_SCRIPT_HELLO:
        rules_hello(e);
        break;
    case REDIS_SCRIPT_BYE:
        rules_bye(e);
        break;
    case REDIS_SCRIPT_HEARTBEAT:
        rules_heartbeat(e);
        break;
    case REDIS_SCRIPT_CLAIM:
    case REDIS_SCRIPT_CLAIMS:
        rules_requested_again(e);
        break; /* pending grants come first */
    case REDIS_SCRIPT_RELEASE:
        rules_release(e);
        break;
    case REDIS_SCRIPT_RELEASES:
        rules_releases(e);
        break;
    case REDIS_SCRIPT_SYNC:
        rules_sync(e);
        break;
    case REDIS_SCRIPT_REVOKE:
        rules_revoke(e);
        break;
    case REDIS_SCRIPT_MOVE:
        rules_move(e);
        break;
    case REDIS_SCRIPT_TURNED:
        rules_turned(e);
        break;
    case REDIS_SCRIPT_TURN: /* what is owed comes before it */
    case REDIS_SCRIPT_VERIFY: /* finds nothing where nobody deletes keys; another epoch would be one without a reason */
    case REDIS_SCRIPT_OVERRIDE:
    case REDIS_SCRIPT_INSPECT:
    case REDIS_SCRIPT_PROBE:
    case REDIS_SCRIPTS:
        break;
    }
}

/* With low bounds, a session ends in parts that no reply names. Finds out which claims are still there. */
static void apply_partial(struct effect *e) {
    _cleanup_reply_ redisReply *look = bridge_inspect(e->w->bridge);

    for (unsigned s = 1; s <= e->w->n_sessions; s++) {
        struct m_session *session = &e->m->sessions[s];

        if (session->live && session->ending && bridge_has_session(e->w->bridge, s))
            session->ending = false; /* its turn has not come yet */
        else if (session->live && session->ending)
            check_session_end(e->w, s);
    }
    for (unsigned i = 0; i < e->w->n_runs; i++) {
        struct m_claim *claim = &e->m->claims[i];
        bool found = false;

        if (claim->state == 0 || (!claim->unsynced && !e->m->sessions[claim->session].ending))
            continue;
        for (size_t k = 2; reply_at(look, k); k += 6)
            found = found || id_number(reply_word(reply_at(look, k))) == i;
        if (!found)
            claim->state = 0;
    }
}

static void check_call(struct effect *e) {
    bool was_mismatch = e->mismatch;
    const char *barred;

    apply_epoch(e);
    if (e->ended && e->script == REDIS_SCRIPT_HEARTBEAT && reply_number(reply_at(e->state, 3)) > e->m->heartbeat_count) /* the heartbeat counted before the loss was seen */
        e->m->sessions[id_number(e->args[0])].count = reply_number(reply_at(e->state, 3));
    barred = gate(e, was_mismatch);
    if (barred && strcmp(e->word, barred) != 0)
        model_fail(e->w, "%s: %s was answered '%s', must be '%s'", strcmp(barred, "stale") == 0 ? "R6" : "R10",
                   redis_script_name(e->script), e->word, barred);
    if (barred)
        return;
    if (e->ended && strcmp(e->word, "epoch") == 0) { /* seen when it was about to grant: before that it may have moved others */
        limits_apply(e->w, e->script, e->args, e->n_args, e->word, e->state);
        if (rules_is_ask(e->script))
            rules_requested_again(e);
        rules_released_in_part(e);
        apply_pushes(e);
        if (rules_is_ask(e->script))
            rules_requested_in_part(e);
        return;
    }
    if (strcmp(e->word, "epoch") == 0 || strcmp(e->word, "gone") == 0) {
        model_fail(e->w, "%s was answered '%s' without a reason", redis_script_name(e->script), e->word);
        return;
    }
    limits_apply(e->w, e->script, e->args, e->n_args, e->word, e->state);
    apply_verb(e);
    apply_pushes(e);
    if (rules_is_ask(e->script))
        rules_request(e);
    if (e->script == REDIS_SCRIPT_TURN)
        rules_turn(e);
    if (e->w->setup.tight)
        apply_partial(e);
    if (e->m->grace != (reply_number(reply_at(e->state, 1)) == 1))
        model_fail(e->w, "R10: grace %s", e->m->grace ? "has ended without a reason" : "has begun without a new epoch");
    /* The next call that settles pools makes the pending grants, a heartbeat at the latest. */
    if (strcmp(e->word, "ok") == 0 && e->more == 0 && !e->mismatch && !e->ended && !e->m->grace && !model_failed(e->w) &&
        (e->script == REDIS_SCRIPT_HEARTBEAT || !*reply_word(reply_at(e->state, 4))))
        check_idle(e->w);
}

/* A full Redis takes no new claims, and does all else; a replica does nothing (R13). */
static bool answer_may_be(const struct world *w, enum redis_script script, const char *error) {
    if (w->now < w->redis.replica_until)
        return error && redis_error_class(error) == REDIS_ERROR_REDIRECT;
    if (w->now < w->redis.full_until && (rules_is_ask(script) || script == REDIS_SCRIPT_TURN))
        return error && redis_error_class(error) == REDIS_ERROR_FULL;
    return !error;
}

void rules_apply(struct world *w, enum redis_script script, const struct redis_command *arguments, const redisReply *answer) {
    struct effect e = {
        .w = w,
        .m = &w->redis.now,
        .script = script,
        .args = arguments->items,
        .n_args = arguments->n,
        .reply = reply_at(answer, 0),
        .pushes = reply_at(answer, 1),
        .state = reply_at(answer, 2),
    };
    const char *error = answer ? reply_error(answer) : "no answer";
    uint64_t clock;

    if (!error)
        error = reply_error(e.reply);
    if (!answer_may_be(w, script, error))
        model_fail(w, "R13: %s of a Redis that is %s was answered '%s'", redis_script_name(script),
                   w->now < w->redis.replica_until ? "a replica"
                   : w->now < w->redis.full_until  ? "full"
                                                   : "well",
                   error ? error : "no error");
    if (error)
        return;
    e.is_list = reply_at(reply_at(e.reply, 0), 0) != NULL;
    e.word = e.is_list ? "ok" : reply_word(reply_at(e.reply, 0)); /* rather one for each claim */
    for (size_t i = 0; e.is_list && reply_at(e.reply, i); i++)
        e.more = reply_number(reply_at(reply_at(e.reply, i), 2)) > 0 ? 1 : e.more;
    if (!e.is_list)
        e.more = strcmp(e.word, "ok") == 0 || rules_is_refusal(e.word) ? reply_number(reply_at(e.reply, 2)) : 0;
    e.mismatch = w->redis.now.empty || !*w->redis.now.epoch || w->redis.now.replid != w->redis.replid;
    e.went_back = proves_loss(&e);
    e.was_grace = w->redis.now.grace;
    (void) snprintf(e.old_epoch, sizeof(e.old_epoch), "%s", w->redis.now.epoch);
    check_call(&e);
    clock = reply_number(reply_at(e.state, 2));
    if (clock < w->redis.now.clock)
        model_fail(w, "R7: the clock went from %" PRIu64 " to %" PRIu64, w->redis.now.clock, clock);
    w->redis.now.clock = clock;
    w->redis.now.heartbeat_count = reply_number(reply_at(e.state, 3));
    clock_check_lead(&e);
}
