/* SPDX-License-Identifier: MIT */

/* The session: its id outlives berthd in a file (not a reboot), so that a restarted berthd continues it. */

#include <string.h>
#include <syslog.h>

#include "base/file.h"
#include "base/message.h"
#include "store/redis/store-redis.h"

/* Boottime goes on from boot to boot with another zero: then the number's age counts from now on. */
static void read_clock(struct store_redis *r, const struct message *m, uint64_t latest, bool same_boot) {
    usec_t now = clock_boottime();
    uint64_t since;

    r->clock = (struct clock_memory) {.latest = latest, .since = now, .heard = now};
    if (same_boot && message_get_u64(m, "clock-since", &since) == 0 && since < now)
        r->clock.since = since;
}

static int read_file(struct store_redis *r) {
    struct message m;
    _cleanup_free_ char *text = NULL;
    char boot[ID_TEXT_SIZE], session[ID_TEXT_SIZE];
    uint64_t connection, latest;
    size_t size;
    int k;

    if (!r->session_path)
        return -ENOENT;
    k = file_read(r->session_path, MESSAGE_SIZE_MAX, &text, &size);
    if (k < 0)
        return k;
    if (message_parse(&m, text, size) < 0 || !message_is(&m, "session") || message_get_id(&m, "boot", boot) < 0 ||
        message_get_id(&m, "session", session) < 0 || message_get_u64(&m, "connection", &connection) < 0 ||
        message_get_u64(&m, "clock", &latest) < 0)
        return -EBADMSG;
    read_clock(r, &m, latest, strcmp(boot, r->boot) == 0);
    if (strcmp(boot, r->boot) != 0) { /* nothing of it runs any more: its permits are free at once */
        memcpy(r->replaced, session, sizeof(session));
        return -ENOENT;
    }
    memcpy(r->session, session, sizeof(session));
    r->connection = connection;
    r->from_file = true;
    return 0;
}

int session_open(struct store_redis *r) {
    int k = read_file(r);

    if (k >= 0)
        return 0;
    if (k != -ENOENT)
        journal_log(redis_journal(r), LOG_WARNING, "%s cannot be read (%s): a new session begins", r->session_path, strerror(-k));
    return id_make(r->session);
}

void session_save(struct store_redis *r) {
    struct message_writer w;
    int k;

    if (!r->session_path)
        return;
    message_begin(&w, "session");
    message_put(&w, "boot", r->boot);
    message_put(&w, "session", r->session);
    message_put_u64(&w, "connection", r->connection);
    message_put_u64(&w, "clock", r->clock.latest);
    message_put_u64(&w, "clock-since", r->clock.since);
    r->clock_saved = r->clock.heard;
    k = w.error < 0 ? w.error : file_write_atomic(r->session_path, w.text, w.size, 0600);
    if (k < 0)
        journal_log(redis_journal(r), LOG_WARNING, "%s cannot be written (%s): a restart will begin a new session", r->session_path,
                    strerror(-k));
}

void session_save_clock(struct store_redis *r) {
    if (r->clock.heard != r->clock_saved)
        session_save(r);
}

void session_forget(struct store_redis *r) {
    if (r->session_path && unlink(r->session_path) < 0 && errno != ENOENT)
        journal_log(redis_journal(r), LOG_WARNING, "%s cannot be removed: %s", r->session_path, strerror(errno));
}

bool session_was_lost(const struct store_redis *r) {
    if (r->from_file)
        list_foreach(e, &r->entries, struct entry, link) if (e->claim->state == CLAIM_STATE_HELD) return true;
    return false;
}

/* Held claims without `keep` are over; those with it, and waiting ones, come back by themselves in the new session. */
static void lose_claims(struct store_redis *r) {
    list_foreach_safe(e, &r->entries, struct entry, link) {
        struct claim *c = e->claim;

        claim_set_named(e, false);
        if (list_is_linked(&e->finish) || e->lost)
            continue;
        switch (c->state) {
        case CLAIM_STATE_RELEASING:
            claim_finish(e);
            break;
        case CLAIM_STATE_HELD:
            if (!e->told) { /* nobody started anything: back to its place */
                c->state = CLAIM_STATE_WAITING;
                c->token = 0;
            } else if (c->keep) {
                e->renew = true;
            } else {
                e->lost = true;
                r->store.listener.on_lost(c, STORE_LOSS_SESSION, r->store.listener.userdata);
            }
            break;
        case CLAIM_STATE_ASKED:
            e->sent = false;
            break;
        case CLAIM_STATE_WAITING:
        case CLAIM_STATE_PARKED:
        case CLAIM_STATE_NONE:
            break;
        }
    }
}

/* Whether somebody still has to stop what was held. */
static bool is_stopping_lost(const struct store_redis *r) {
    list_foreach(e, &r->entries, struct entry, link) if (e->lost && !list_is_linked(&e->finish)) return true;
    return false;
}

void session_lost_stopped(struct store_redis *r) {
    if (r->awaits_lost && !is_stopping_lost(r)) {
        r->awaits_lost = false;
        link_retry(r, 0);
    }
}

void session_lost(struct store_redis *r, const char *why) {
    char id[ID_TEXT_SIZE];

    if (id_make(id) < 0) /* as long as there is no new id there is no session */
        return;
    event_emit(r->events, &(struct event) {.type = EVENT_SESSION_LOST, .reason = why, .clock = r->store.known},
               "the lease is over (%s): what this host held is no longer its own", why);
    link_drop(r);
    inspect_fail(r);
    memcpy(r->replaced, r->session, sizeof(r->replaced));
    memcpy(r->session, id, sizeof(r->session));
    r->connection = 0;
    r->from_file = false;
    r->chain = r->given = 0;
    r->n_marks = 0; /* what they are compared with went with the session */
    r->last.count = r->own.count = 0;
    r->connected_told = false; /* that the new session is there is news */
    r->store.deadline = 0;
    if (r->store.state != STORE_STATE_AWAY)
        link_note_away(r, why);
    redis_set_state(r, STORE_STATE_AWAY);
    lose_claims(r);
    /* The next hello ends the old session, and gives away what it held, although that may have been expired by nobody yet: not before all
     * of it was stopped. The time for that is the margin, as everywhere (R8); after it anybody may expire. */
    r->awaits_lost = is_stopping_lost(r);
    link_retry(r, r->awaits_lost ? settings_margin(r->lease_usec) : 0);
}
