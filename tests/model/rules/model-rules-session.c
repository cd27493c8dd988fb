/* SPDX-License-Identifier: MIT */

/* What must become of sessions: hello, bye, heartbeats, and the sessions that they expire. */

#include <string.h>

#include "tests/model/rules/model-rules.h"

/* --- expired sessions --- */

/* The call that ends another session reports its claims, and no other call does. With low bounds an earlier call may have done so. */
static void check_reclaimed(struct effect *e, unsigned claim, const redisReply *reclaimed) {
    const redisReply *item;

    for (size_t i = 0; (item = reply_at(reclaimed, i)); i++)
        if (id_number(reply_word(reply_at(item, 0))) == claim && reply_number(reply_at(item, 5)) == e->m->claims[claim].token)
            return;
    if (!e->w->setup.tight)
        model_fail(e->w, "R4: the permits of c%u are free, but no reply reports that", claim);
}

static void end_session(struct effect *e, unsigned s, const redisReply *reclaimed) {
    check_session_end(e->w, s);
    for (unsigned i = 0; i < e->w->n_runs; i++)
        if (e->m->claims[i].session == s) {
            if (e->m->claims[i].state == 'H' && reclaimed)
                check_reclaimed(e, i, reclaimed);
            e->m->claims[i].state = 0;
        }
    e->m->sessions[s] = (struct m_session) {0};
}

/* at: the place of the ended sessions in the reply; the reclaimed claims follow. */
static void apply_ended(struct effect *e, size_t at, unsigned replaced, uint64_t dead, bool may_expire) {
    const redisReply *list = reply_at(e->reply, at);
    const redisReply *item;
    unsigned self = id_number(e->args[0]);

    for (size_t i = 0; (item = reply_at(list, i)); i++) {
        unsigned s = id_number(reply_word(reply_at(item, 0)));
        const struct m_session *session = &e->m->sessions[s];

        if (s != replaced || replaced == 0) {
            if (e->mismatch || e->new_epoch)
                model_fail(e->w, "R10: s%u was expired by a Redis that is not that of the epoch", s);
            else if (!session->ending && (!may_expire || session->count > dead || s == self))
                model_fail(e->w, "R4: s%u with count %" PRIu64 " was expired though the dead are up to %" PRIu64, s, session->count, dead);
        }
        end_session(e, s, reply_at(e->reply, at + 1));
    }
    for (unsigned s = 1; s <= e->w->n_sessions; s++)
        if (e->m->sessions[s].live && ((may_expire && s != self && e->m->sessions[s].count <= dead) || (s == replaced && s != self))) {
            if (e->more == 0)
                model_fail(e->w, "R4: s%u with count %" PRIu64 " was not expired, the dead are up to %" PRIu64, s, e->m->sessions[s].count,
                           dead);
            e->m->sessions[s].ending = true;
        }
}

/* --- admission --- */

/* Permits held under a longer lease may be in use until that lease is over, though the host now names a
 * shorter one (R8). No run uses the permits of a session that is being ended. */
static bool is_bound(const struct effect *e, unsigned s, usec_t lease, uint64_t dead, bool may_expire) {
    const struct m_session *session = &e->m->sessions[s];

    if (!session->live || session->ending || lease >= e->m->lease || (may_expire && session->count <= dead))
        return false;
    for (unsigned i = 0; i < e->w->n_runs; i++)
        if (e->m->claims[i].state && e->m->claims[i].session == s)
            return true;
    return false;
}

/* Checks that hello is refused only for the lease or the name of another live session. */
static void check_admission(struct effect *e, unsigned s, uint64_t dead, bool may_expire) {
    unsigned name = id_number(e->args[3]), machine = id_number(e->args[4]);
    usec_t lease = rules_number(e->args[6]);
    bool taken = false, surely = false, others = false, differs, ok = strcmp(e->word, "ok") == 0;

    for (unsigned i = 1; i <= e->w->n_sessions; i++) {
        const struct m_session *d = &e->m->sessions[i];

        if (i == s || !d->live || d->ending)
            continue;
        others = true;
        taken = taken || (d->name == name && d->host != machine);
        surely = surely || (d->name == name && d->host != machine && !d->superseded);
    }
    differs = e->m->lease > 0 && lease != e->m->lease && (others || is_bound(e, s, lease, dead, may_expire));
    if (e->more > 0)
        return; /* sessions that are still to be expired may hinder it */
    if (strcmp(e->word, "name-taken") == 0 && !taken)
        model_fail(e->w, "name: s%u was refused, but no live session has that name", s);
    if (strcmp(e->word, "lease-differs") == 0 && !differs)
        model_fail(e->w, "R4: s%u was refused for its lease of %s us, but no live session has another one", s,
                   e->args[6]);
    if (ok && surely)
        model_fail(e->w, "name: s%u of h%u was admitted as n%u, but another machine has that name", s, machine,
                   name);
    if (ok && differs)
        model_fail(e->w, "R4: s%u was admitted with a lease of %s us, others have %" PRIu64, s, e->args[6],
                   e->m->lease);
}

/* --- what hosts declare --- */

struct declared {
    uint32_t lowest, highest; /* 0: nobody */
    unsigned host_scoped;
};

static struct declared declared_of(const struct effect *e, unsigned pool) {
    struct declared d = {0};

    for (unsigned s = 1; s <= e->w->n_sessions; s++) {
        const struct m_session *session = &e->m->sessions[s];
        uint32_t limit = session->live && session->is_declared[pool] ? session->limits[pool] : 0;

        if (limit > 0 && (d.lowest == 0 || limit < d.lowest))
            d.lowest = limit;
        if (limit > d.highest)
            d.highest = limit;
        d.host_scoped += session->live && session->is_host_scoped[pool];
    }
    return d;
}

/* hello reports hosts that declare different limits or scopes (R14). */
static void check_differing(struct effect *e, const struct m_session *session) {
    const redisReply *list = reply_at(e->reply, 8), *item;

    for (unsigned p = 0; p < e->w->setup.n_pools && e->more == 0; p++) {
        struct declared want = declared_of(e, p), sent = {0};
        bool differ = want.lowest > 0 && (want.lowest != want.highest || want.host_scoped > 0), found = false;

        for (size_t i = 0; (item = reply_at(list, i)); i++)
            if (strcmp(reply_word(reply_at(item, 0)), model_pool(e->w, p)) == 0) {
                found = true;
                sent = (struct declared) {(uint32_t) reply_number(reply_at(item, 1)), (uint32_t) reply_number(reply_at(item, 2)),
                                          (unsigned) reply_number(reply_at(item, 3))};
            }
        if (found != (differ && (session->is_declared[p] || session->is_host_scoped[p])) ||
            (found && (sent.lowest != want.lowest || sent.highest != want.highest || sent.host_scoped != want.host_scoped)))
            model_fail(e->w, "R14: of pool %s hosts declare %u to %u, %u have it elsewhere; the reply has %s %u to %u, %u", model_pool(e->w, p), want.lowest,
                       want.highest, want.host_scoped, found ? "that it differs:" : "nothing", sent.lowest, sent.highest, sent.host_scoped);
    }
}

static void note_lowest(const struct effect *e, uint32_t lowest[static POOLS_MAX]) {
    for (unsigned p = 0; p < POOLS_MAX; p++)
        lowest[p] = declared_of(e, p).lowest;
}

/* A reply that ends a declaration names the lowest limit now, but for pools that `but` (may be NULL) declares itself. */
static void check_undeclared(struct effect *e, const uint32_t before[static POOLS_MAX], size_t at, const struct m_session *but) {
    const redisReply *list = reply_at(e->reply, at), *item;

    for (unsigned p = 0; p < e->w->setup.n_pools; p++) {
        uint32_t lowest = declared_of(e, p).lowest, sent = before[p];

        if (but && but->is_declared[p])
            continue;

        for (size_t i = 0; (item = reply_at(list, i)); i++)
            if (strcmp(reply_word(reply_at(item, 0)), model_pool(e->w, p)) == 0) /* -1: nobody */
                sent = reply_at(item, 1)->type == REDIS_REPLY_INTEGER && reply_at(item, 1)->integer > 0
                           ? (uint32_t) reply_at(item, 1)->integer : 0;
        if (sent != lowest)
            model_fail(e->w, "R14: the lowest limit of pool %s is %u now, it was %u; the reply has %u", model_pool(e->w, p), lowest, before[p], sent);
    }
}

/* --- hello, heartbeats, bye --- */

static void declare(struct effect *e, struct m_session *session) {
    unsigned n = (unsigned) rules_number(e->args[HELLO_LIMITS]);

    memset(session->is_declared, 0, sizeof(session->is_declared));
    memset(session->is_host_scoped, 0, sizeof(session->is_host_scoped));
    for (size_t i = HELLO_LIMITS + 1; i < HELLO_LIMITS + 1 + 2 * n; i += 2) {
        unsigned p = model_find_pool(e->w, e->args[i]);

        session->is_host_scoped[p] = strcmp(e->args[i + 1], "host") == 0;
        session->is_declared[p] = !session->is_host_scoped[p];
        session->limits[p] = (uint32_t) rules_number(e->args[i + 1]);
    }
}

/* Gives the name to its newest session. */
static void take_name(struct effect *e, unsigned s, unsigned name) {
    for (unsigned i = 1; i <= e->w->n_sessions; i++)
        if (e->m->sessions[i].name == name)
            e->m->sessions[i].superseded = true;
    e->m->sessions[s].name = name;
    e->m->sessions[s].superseded = false;
}

void rules_hello(struct effect *e) {
    unsigned s = id_number(e->args[0]), replaced = id_number(e->args[2]);
    struct m_session *session = &e->m->sessions[s];
    uint64_t connection = rules_number(e->args[1]), dead = rules_number(e->args[HELLO_DEAD]);
    bool may_expire = strcmp(e->args[HELLO_EPOCH], e->m->epoch) == 0 && !e->new_epoch, ok = strcmp(e->word, "ok") == 0;
    uint32_t lowest[POOLS_MAX];

    note_lowest(e, lowest);
    if (session->live && !session->ending && session->connection > connection) {
        if (strcmp(e->word, "stale") != 0)
            model_fail(e->w, "R6: a hello on connection %" PRIu64 " was answered '%s', %" PRIu64 " is there", connection, e->word,
                       session->connection);
        return;
    }
    if (e->mismatch)
        model_fail(e->w, "R10: hello did not see that this is another Redis");
    if (!ok && !rules_is_refusal(e->word)) {
        model_fail(e->w, "hello was answered '%s'", e->word);
        return;
    }
    apply_ended(e, ok ? 10 : 6, replaced, dead, may_expire);
    check_admission(e, s, dead, may_expire);
    if (!ok) {
        check_undeclared(e, lowest, 8, NULL);
        return;
    }
    e->m->lease = rules_number(e->args[6]);
    session->last = session->live && !session->ending ? session->last : 0;
    session->live = true;
    session->ending = false;
    session->host = id_number(e->args[4]);
    take_name(e, s, id_number(e->args[3]));
    session->connection = connection;
    session->count = reply_number(reply_at(e->reply, 4));
    session->heartbeat_at = e->w->now;
    declare(e, session);
    check_differing(e, session);
    check_undeclared(e, lowest, 9, session);
}

void rules_heartbeat(struct effect *e) {
    struct m_session *session = &e->m->sessions[id_number(e->args[0])];
    bool grace = reply_number(reply_at(e->state, 1)) == 1;
    uint64_t known = e->n_args > 7 ? rules_number(e->args[7]) : 0;
    uint32_t lowest[POOLS_MAX];

    note_lowest(e, lowest);
    if (rules_number(e->args[4]) > session->count && (reply_at(reply_at(e->reply, 10), 0) || (e->m->grace && !grace)))
        model_fail(e->w, "R10: Redis's memory went back, and a heartbeat that proves it expires sessions or ends grace");
    if (e->m->grace && !grace) {
        if (e->mismatch)
            model_fail(e->w, "R10: grace was ended by a Redis that is not that of the epoch");
        if (known < e->m->lease)
            model_fail(e->w, "R10: grace was ended by a host that knew the epoch for %" PRIu64 " us", known);
        e->m->grace = false;
        rules_turn_grace_ended(e->w);
    } else if (e->m->grace && known >= e->m->lease && !e->mismatch) {
        model_fail(e->w, "R10: grace was not ended by a host that knew the epoch for %" PRIu64 " us", known);
    }
    if (reply_number(reply_at(e->reply, 4)) <= session->count)
        model_fail(e->w, "R4: the heartbeat count stands still at %" PRIu64, session->count);
    session->count = reply_number(reply_at(e->reply, 4));
    session->heartbeat_at = e->w->now;
    apply_ended(e, 10, 0, rules_number(e->args[3]), !e->mismatch);
    check_undeclared(e, lowest, 12, NULL);
}

void rules_bye(struct effect *e) {
    unsigned s = id_number(e->args[0]);

    uint32_t lowest[POOLS_MAX];

    if (!e->m->sessions[s].live || strcmp(e->word, "ok") != 0)
        return;
    note_lowest(e, lowest);
    if (e->more > 0)
        e->m->sessions[s].ending = true;
    else
        end_session(e, s, NULL); /* its host knows */
    check_undeclared(e, lowest, 3, NULL);
}
