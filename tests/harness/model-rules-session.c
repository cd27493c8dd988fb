/* SPDX-License-Identifier: MIT */

/* What must become of sessions: hello, bye, heartbeats, and who is buried by them. */

#include <string.h>

#include "tests/harness/model-rules.h"

static void end_session(struct effect *e, unsigned s) {
    check_session_end(e->w, s);
    for (unsigned i = 0; i < e->w->n_runs; i++)
        if (e->m->claims[i].session == s)
            e->m->claims[i].state = 0;
    e->m->sessions[s] = (struct m_session) {0};
}

static void apply_ended(struct effect *e, const redisReply *list, unsigned replaced, uint64_t dead, bool may_bury) {
    const redisReply *item;
    unsigned self = id_number(e->args[0]);

    for (size_t i = 0; (item = reply_at(list, i)); i++) {
        unsigned s = id_number(reply_word(reply_at(item, 0)));
        const struct m_session *session = &e->m->sessions[s];

        if (s != replaced || replaced == 0) {
            if (e->mismatch || e->new_epoch)
                model_fail(e->w, "R10: s%u was buried by a Redis that is not that of the epoch", s);
            else if (!session->ending && (!may_bury || session->count > dead || s == self))
                model_fail(e->w, "R4: s%u with count %" PRIu64 " was buried though the dead are up to %" PRIu64, s, session->count, dead);
        }
        end_session(e, s);
    }
    for (unsigned s = 1; s <= e->w->n_sessions; s++)
        if (e->m->sessions[s].live && ((may_bury && s != self && e->m->sessions[s].count <= dead) || (s == replaced && s != self))) {
            if (e->more == 0)
                model_fail(e->w, "R4: s%u with count %" PRIu64 " was not buried, the dead are up to %" PRIu64, s, e->m->sessions[s].count,
                           dead);
            e->m->sessions[s].ending = true;
        }
}

void rules_hello(struct effect *e) {
    unsigned s = id_number(e->args[0]), replaced = id_number(e->args[2]), n = (unsigned) rules_number(e->args[10]);
    struct m_session *session = &e->m->sessions[s];
    uint64_t connection = rules_number(e->args[1]), dead = rules_number(e->args[9]);
    bool may_bury = strcmp(e->args[8], e->m->epoch) == 0 && !e->new_epoch;

    if (session->live && !session->ending && session->connection > connection) {
        if (strcmp(e->word, "stale") != 0)
            model_fail(e->w, "R6: a hello on connection %" PRIu64 " was answered '%s', %" PRIu64 " is there", connection, e->word,
                       session->connection);
        return;
    }
    if (e->mismatch)
        model_fail(e->w, "R10: hello did not see that this is another Redis");
    if (strcmp(e->word, "ok") != 0) {
        model_fail(e->w, "hello was answered '%s'", e->word);
        return;
    }
    apply_ended(e, reply_at(e->reply, 10), replaced, dead, may_bury);
    session->last = session->live && !session->ending ? session->last : 0;
    session->live = true;
    session->ending = false;
    session->host = (unsigned) (e->args[3][1] - '0');
    session->connection = connection;
    session->count = reply_number(reply_at(e->reply, 4));
    session->beat = e->w->now;
    memset(session->is_declared, 0, sizeof(session->is_declared));
    for (size_t i = 11; i < 11 + 2 * n; i += 2) {
        session->is_declared[e->args[i][0] - 'a'] = true;
        session->limits[e->args[i][0] - 'a'] = (uint32_t) rules_number(e->args[i + 1]);
    }
}

void rules_beat(struct effect *e) {
    struct m_session *session = &e->m->sessions[id_number(e->args[0])];
    bool grace = reply_number(reply_at(e->state, 1)) == 1;

    if (e->m->grace && !grace) {
        if (e->mismatch)
            model_fail(e->w, "R10: grace was ended by a Redis that is not that of the epoch");
        if (rules_number(e->args[4]) < e->w->lease)
            model_fail(e->w, "R10: grace was ended by a host that knew the epoch for %s us", e->args[4]);
        e->m->grace = false;
    } else if (e->m->grace && rules_number(e->args[4]) >= e->w->lease && !e->mismatch) {
        model_fail(e->w, "R10: grace was not ended by a host that knew the epoch for %s us", e->args[4]);
    }
    if (reply_number(reply_at(e->reply, 4)) <= session->count)
        model_fail(e->w, "R4: the beat clock stands still at %" PRIu64, session->count);
    session->count = reply_number(reply_at(e->reply, 4));
    session->beat = e->w->now;
    apply_ended(e, reply_at(e->reply, 9), 0, rules_number(e->args[3]), !e->mismatch);
}

void rules_bye(struct effect *e) {
    unsigned s = id_number(e->args[0]);

    if (!e->m->sessions[s].live || strcmp(e->word, "ok") != 0)
        return;
    if (e->more > 0)
        e->m->sessions[s].ending = true;
    else
        end_session(e, s);
}
