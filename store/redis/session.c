/* SPDX-License-Identifier: MIT */

#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "store/redis/store-redis.h"

int session_init(struct store_redis *store, const struct store_redis_options *options, const char *boot) {
    struct session *session = &store->session;
    const char *path = options->session_path;

    (void) snprintf(session->boot, sizeof(session->boot), "%s", boot);
    (void) snprintf(session->configured.namespace, sizeof(session->configured.namespace), "%s", options->namespace);
    session->configured.redis_hash = options->redis_hash;
    session->place = session->configured;
    session->path = path ? strdup(path) : NULL;
    return path && !session->path ? -ENOMEM : 0;
}

void session_done(struct store_redis *store) {
    free(store->session.path);
}

/* --- the place --- */

bool session_is_renamed(const struct session *session) {
    return strcmp(session->place.namespace, session->configured.namespace) != 0;
}

static bool is_elsewhere(const struct session *session) {
    return session_is_renamed(session) || session->place.redis_hash != session->configured.redis_hash;
}

bool session_must_be_known(const struct store_redis *store) {
    return store->session.is_from_file && is_elsewhere(&store->session) && claims_any_leased(store);
}

static void settle_place(struct session *session) {
    if (session_is_renamed(session))
        session->namespace[0] = '\0';
    session->place = session->configured;
}

/* --- the file --- */

static int read_place(struct session *session, const struct message *m) {
    struct session_place place;

    if (message_get_name(m, "name", place.namespace) < 0 || message_get_u64(m, "redis", &place.redis_hash) < 0 ||
        message_get_id(m, "namespace", session->namespace) == -EBADMSG) /* it may have no id yet */
        return -EBADMSG;
    session->place = place;
    return 0;
}

/* Restores the clock. boottime of another boot means nothing, so the number's age then counts from now. */
static void read_clock(struct store_redis *store, uint64_t latest, usec_t since, bool same_boot) {
    usec_t now = clock_boottime();

    clock_restore(store, latest, same_boot && since < now ? since : now);
}

static int read_file(struct store_redis *store) {
    struct session *session = &store->session;
    struct message m;
    _cleanup_free_ char *text = NULL;
    char boot[ID_TEXT_SIZE], id[ID_TEXT_SIZE];
    uint64_t connection, latest, since;
    size_t size;
    int r;

    if (!session->path)
        return -ENOENT;
    r = file_read(session->path, MESSAGE_SIZE_MAX, &text, &size);
    if (r < 0)
        return r;
    if (message_parse(&m, text, size) < 0 || !message_is(&m, "session") || read_place(session, &m) < 0)
        return -EBADMSG;
    if (message_get_id(&m, "session", id) == -ENODATA) /* it was ended by a bye */
        return -ENOENT;
    if (message_get_id(&m, "boot", boot) < 0 || message_get_id(&m, "session", id) < 0 ||
        message_get_u64(&m, "connection", &connection) < 0 || message_get_u64(&m, "clock", &latest) < 0 ||
        message_get_u64(&m, "clock-since", &since) < 0)
        return -EBADMSG;
    read_clock(store, latest, since, strcmp(boot, session->boot) == 0);
    if (strcmp(boot, session->boot) != 0) { /* no run of it is alive: hello frees its permits at once */
        memcpy(session->replaced, id, sizeof(id));
        return -ENOENT;
    }
    memcpy(session->id, id, sizeof(id));
    session->connection = connection;
    session->is_from_file = true;
    return 0;
}

void session_open(struct store_redis *store) {
    int r = read_file(store);

    if (r >= 0)
        return;
    if (r != -ENOENT)
        journal_log(store_redis_journal(store), LOG_WARNING, "%s: cannot read (%s), a new session begins",
                    store->session.path, strerror(-r));
    id_make(store->session.id);
}

/* Each heartbeat writes, so the log has only the first failure and the end of the failures. */
static void write_file(struct store_redis *store, const struct message_writer *w) {
    struct session *session = &store->session;
    int r = w->error < 0 ? w->error : file_write_atomic(session->path, w->text, w->size, 0600);

    if (r < 0 && !session->is_unwritten)
        journal_log(store_redis_journal(store), LOG_WARNING,
                    "%s: cannot write (%s), a restart will begin a new session", session->path, strerror(-r));
    if (r == 0 && session->is_unwritten)
        journal_log(store_redis_journal(store), LOG_NOTICE, "%s: writable again", session->path);
    session->is_unwritten = r < 0;
}

static void begin_file(const struct session *session, struct message_writer *w) {
    message_begin(w, "session");
    if (session->namespace[0])
        message_put(w, "namespace", session->namespace);
    message_put(w, "name", session->place.namespace);
    message_put_u64(w, "redis", session->place.redis_hash);
}

static void session_save(struct store_redis *store) {
    struct session *session = &store->session;
    struct message_writer w;

    if (!session->path)
        return;
    begin_file(session, &w);
    message_put(&w, "boot", session->boot);
    message_put(&w, "session", session->id);
    message_put_u64(&w, "connection", session->connection);
    message_put_u64(&w, "clock", store->clock.latest);
    message_put_u64(&w, "clock-since", store->clock.since);
    session->clock_saved = store->clock.observed_at;
    write_file(store, &w);
}

void session_note_namespace(struct store_redis *store, const char *id) {
    struct session *session = &store->session;

    if (*id == '\0' || strcmp(session->namespace, id) == 0)
        return;
    (void) snprintf(session->namespace, sizeof(session->namespace), "%s", id);
    session_save(store);
}

void session_forget_namespace(struct store_redis *store) {
    store->session.namespace[0] = '\0';
    session_save(store);
}

void session_save_clock(struct store_redis *store) {
    if (store->clock.observed_at != store->session.clock_saved)
        session_save(store);
}

void session_forget(struct store_redis *store) {
    const char *path = store->session.path;
    struct message_writer w;

    if (path && store->session.namespace[0]) {
        begin_file(&store->session, &w);
        write_file(store, &w);
        return;
    }
    if (path && unlink(path) < 0 && errno != ENOENT)
        journal_log(store_redis_journal(store), LOG_WARNING, "%s: cannot remove: %s", path, strerror(errno));
}

/* --- connections --- */

void session_begin_connection(struct store_redis *store) {
    store->session.awaits_stops = false;
    store->session.connection++;
    session_save(store);
}

void session_skip_connections(struct store_redis *store, uint64_t connection) {
    store->session.connection = connection + 1;
    session_save(store);
}

void session_confirm(struct store_redis *store) {
    struct session *session = &store->session;

    session->is_from_file = false;
    session->replaced[0] = '\0';
    if (!is_elsewhere(session))
        return;
    settle_place(session);
    session_save(store);
}

/* --- the end of the lease --- */

bool session_has_lost_claims(const struct store_redis *store) {
    return store->session.is_from_file && claims_any_held(store);
}

void session_check_stops(struct store_redis *store) {
    if (store->session.awaits_stops && !claims_any_stopping(store)) {
        store->session.awaits_stops = false;
        link_retry(store, 0);
    }
}

/* Replaces the session by a new one, of which Redis knows nothing. */
static void session_replace(struct store_redis *store, const char *id) {
    struct session *session = &store->session;

    memcpy(session->replaced, session->id, sizeof(session->replaced));
    memcpy(session->id, id, sizeof(session->id));
    session->connection = 0;
    session->is_from_file = false;
    settle_place(session);
    push_reset_session(store);
    samples_reset(store);
    link_log_forget_connected(store);
    heartbeat_drop_deadline(store);
}

void session_lose(struct store_redis *store, const char *why) {
    char id[ID_TEXT_SIZE];

    id_make(id);
    event_emit(store->env.events,
               &(struct event) {.type = EVENT_SESSION_LOST, .reason = why, .clock = store->base.known},
               "the lease is over (%s): this host has lost its permits", why);
    link_close(store);
    inspect_fail(store);
    session_replace(store, id);
    if (store->base.state != STORE_STATE_AWAY)
        link_note_away(store, why);
    store_redis_set_state(store, STORE_STATE_AWAY);
    claims_lose(store);
    /* The next hello ends the old session and frees its permits, perhaps before any host has expired it. So
     * it waits until all lost claims have stopped, but no longer than the margin (R8): after that any host
     * may expire the session. */
    store->session.awaits_stops = claims_any_stopping(store);
    link_retry(store, store->session.awaits_stops ? settings_margin(store->env.lease_usec) : 0);
}
