/* SPDX-License-Identifier: MIT */

/* The link: two connections that go up and down together, and what errors call for. */

#include <string.h>
#include <syslog.h>

#include "store/redis/store-redis.h"

#define BACKOFF_MIN (50 * USEC_PER_MSEC)
#define BACKOFF_MAX (2 * USEC_PER_SEC)

static void link_connect(struct store_redis *r);
static void link_ask_or_drop(struct store_redis *r);

/* --- how soon again --- */

/* Before the next try: nothing at first, then twice as long each time, until the link is calm. */
static usec_t next_pause(struct store_redis *r) {
    usec_t pause = r->backoff_usec, max = r->heartbeat_usec < BACKOFF_MAX ? r->heartbeat_usec : BACKOFF_MAX;

    r->backoff_usec = pause * 2 > BACKOFF_MIN ? pause * 2 : BACKOFF_MIN;
    if (r->backoff_usec > max)
        r->backoff_usec = max;
    return pause;
}

void link_calm(struct store_redis *r, usec_t sent) {
    if (sent >= usec_add(r->live_since, r->heartbeat_usec / 2))
        r->backoff_usec = 0;
}

/* --- down --- */

void link_drop(struct store_redis *r) {
    r->commands = redis_connection_free(r->commands);
    r->pushes = redis_connection_free(r->pushes);
    r->resolve = redis_resolve_free(r->resolve);
    r->phase = PHASE_DOWN;
    r->store.is_connecting = false;
    r->subscribed = r->nonsense_told = false;
    r->refused[0] = '\0';
    sync_reset(r);
    beat_reset(r);
    claim_reset(r);
    admin_reset(r);
    inspect_reset(r);
}

void link_stopped(struct store_redis *r, int result) {
    store_reply_fn done = r->stop_done;

    r->stop_done = NULL;
    link_drop(r);
    admin_fail(r);
    inspect_fail(r);
    if (done)
        done(result, r->stop_userdata);
}

void link_retry(struct store_redis *r, usec_t delay) {
    /* Neither call fails for a source that exists. */
    (void) sd_event_source_set_time(r->retry, usec_add(clock_boottime(), delay));
    (void) sd_event_source_set_enabled(r->retry, SD_EVENT_ONESHOT);
}

void link_note_away(struct store_redis *r, const char *why) {
    (void) snprintf(r->store.away_why, sizeof(r->store.away_why), "%s", why);
    if (r->store.state != STORE_STATE_AWAY)
        r->store.away_since = clock_realtime();
}

void link_away(struct store_redis *r) {
    r->store.is_connecting = false;
    redis_set_state(r, STORE_STATE_AWAY);
    claim_refuse_nowait(r);
    admin_fail(r);
    inspect_fail(r);
}

static bool link_is_away(const struct store_redis *r) {
    return r->phase == PHASE_DOWN || r->phase == PHASE_CONNECTING || r->refused[0] != '\0';
}

static int link_on_away(sd_event_source *source, void *userdata) {
    struct store_redis *r = userdata;

    (void) source;
    if (link_is_away(r)) {
        admin_fail(r);
        inspect_fail(r);
    }
    return 0;
}

void link_tell_away(struct store_redis *r) {
    if (link_is_away(r))
        (void) sd_event_source_set_enabled(r->away, SD_EVENT_ONESHOT);
}

void link_down(struct store_redis *r, enum redis_error error, const char *text) {
    usec_t delay = next_pause(r);
    char why[256];

    (void) snprintf(why, sizeof(why), "%s", redis_error_text(text));
    link_drop(r);
    if (error == REDIS_ERROR_FATAL && strcmp(why, r->last_error) != 0)
        journal_log(redis_journal(r), LOG_ERR, "Redis refuses, an administrator is needed: %s", why);
    (void) snprintf(r->last_error, sizeof(r->last_error), "%s", why);
    if (!r->lost_told && !r->stopping)
        event_emit(r->events, &(struct event) {.type = EVENT_REDIS_LOST, .reason = why}, "Redis cannot be used: %s", why);
    link_note_away(r, why);
    r->lost_told = true;
    r->connected_told = false;
    if (error == REDIS_ERROR_FATAL)
        delay = BACKOFF_MAX;
    link_retry(r, delay > BACKOFF_MIN ? delay : BACKOFF_MIN);
    link_away(r);
}

void link_bad_reply(struct store_redis *r, const char *what) {
    char text[128];

    (void) snprintf(text, sizeof(text), "an answer to %s makes no sense: its form is wrong, or a number in it is too high", what);
    link_down(r, REDIS_ERROR_RETRY, text);
}

static void link_on_down(struct redis_connection *c, enum redis_error error, const char *text, void *userdata) {
    struct store_redis *r = userdata;

    (void) c;
    if (r->stopping) {
        link_stopped(r, -ENOTCONN);
        return;
    }
    link_down(r, error, text);
}

static int link_on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
    struct store_redis *r = userdata;

    (void) source, (void) usec;
    if (r->stopping) {
        link_stopped(r, -ENOTCONN);
    } else if (r->phase == PHASE_DOWN) {
        link_connect(r);
    } else if (r->phase == PHASE_HELLO) {
        hello_say(r);
    } else if (r->phase == PHASE_CONNECTING && r->commands) {
        link_ask_or_drop(r);
    }
    return 0;
}

/* --- calls --- */

void link_begin(struct store_redis *r, struct redis_command *w, enum redis_script script) {
    command_add(w, "EVALSHA");
    command_add(w, redis_script_sha(script));
    command_add(w, "1");
    command_add(w, r->key);
    command_add(w, r->session);
    command_add_u64(w, r->connection);
}

void link_no_memory(struct store_redis *r) {
    r->unsaid = true;
    journal_log(redis_journal(r), LOG_ERR, "no memory for a call to Redis");
}

int link_call(struct store_redis *r, const struct redis_command *w, redis_reply_fn fn, void *userdata) {
    int k = command_check(w);

    ask_say(r);
    if (k >= 0)
        k = r->commands ? redis_connection_call(r->commands, w->n, (const char *const *) w->items, fn, userdata) : -ENOTCONN;
    if (k == -ENOMEM)
        link_no_memory(r);
    return k;
}

/* A turn of the event loop is over. */
static void link_on_writing(struct redis_connection *c, void *userdata) {
    struct store_redis *r = userdata;

    if (c == r->commands)
        ask_say(r);
}

/* --- up --- */

static void link_probe(struct store_redis *r);

static void link_advance(struct store_redis *r) {
    if (r->phase != PHASE_CONNECTING || r->info_due || r->scripts_due || r->loads > 0 || !r->subscribed)
        return;
    if (r->probe_due) {
        link_probe(r);
        return;
    }
    r->phase = PHASE_HELLO;
    hello_say(r);
}

/* Whether an answer is still for this attempt, and no error: that ends it. */
static bool link_is_coming_up(struct store_redis *r, const struct redisReply *reply) {
    const char *error = reply_error(reply);

    if (r->phase != PHASE_CONNECTING)
        return false;
    if (error)
        link_down(r, redis_error_class(error), error);
    return !error;
}

static void link_on_loaded(const struct redisReply *reply, void *userdata) {
    struct store_redis *r = userdata;

    if (!link_is_coming_up(r, reply))
        return;
    r->loads--;
    link_advance(r);
}

/* Whether Redis lets us run all that the scripts do. */
static void link_on_probed(const struct redisReply *reply, void *userdata) {
    struct store_redis *r = userdata;
    const struct redisReply *refused = reply_at(reply, 1);
    char why[400];
    size_t n = 0, used;

    if (!link_is_coming_up(r, reply))
        return;
    if (!reply_is(reply_at(reply, 0), "ok") || reply_count(refused, &n) < 0) {
        link_bad_reply(r, "probe");
        return;
    }
    if (n == 0) {
        r->probe_due = false;
        link_advance(r);
        return;
    }
    used = (size_t) snprintf(why, sizeof(why), "Redis's user may not run all that berth needs (see redis.acl); it lacks");
    for (size_t i = 0; i < n && used < sizeof(why); i++)
        used += (size_t) snprintf(why + used, sizeof(why) - used, "%s %.30s", i > 0 ? "," : "",
                                  reply_text(reply_at(refused, i)) ? reply_text(reply_at(refused, i)) : "?");
    link_down(r, REDIS_ERROR_FATAL, why);
}

static void link_probe(struct store_redis *r) {
    _cleanup_command_ struct redis_command w = {0};

    link_begin(r, &w, REDIS_SCRIPT_PROBE);
    if (link_call(r, &w, link_on_probed, r) == -ENOMEM)
        link_down(r, REDIS_ERROR_RETRY, strerror(ENOMEM));
}

/* Which scripts Redis has: those that it has not got are sent. When thousands of hosts come back to a Redis that restarted, the first
 * ones load them for all. */
static void link_on_scripts(const struct redisReply *reply, void *userdata) {
    struct store_redis *r = userdata;

    if (!link_is_coming_up(r, reply))
        return;
    r->scripts_due = false;
    for (enum redis_script i = 0; i < REDIS_SCRIPTS; i++) {
        const char *words[] = {"SCRIPT", "LOAD", redis_script_text(i)};
        uint64_t exists;

        if (reply_u64(reply_at(reply, i), &exists) < 0) {
            link_bad_reply(r, "SCRIPT EXISTS");
            return;
        }
        if (exists)
            continue;
        if (redis_connection_call(r->commands, ELEMENTSOF(words), words, link_on_loaded, r) < 0) {
            link_down(r, REDIS_ERROR_RETRY, strerror(ENOMEM));
            return;
        }
        r->loads++;
    }
    link_advance(r);
}

/* The value of "key:value\r\n" in INFO's text; "" if it is not there. */
static void find_info(const char *text, const char *key, char *value, size_t size) {
    size_t length = strlen(key);

    value[0] = '\0';
    for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, key, length) == 0 && line[length] == ':') {
            (void) snprintf(value, size, "%.*s", (int) strcspn(line + length + 1, "\r\n"), line + length + 1);
            return;
        }
}

/* Whether Redis is what berth needs; else the link is down. */
static bool link_accepts(struct store_redis *r, const char *info) {
    char role[16], policy[40], why[160];

    find_info(info, "role", role, sizeof(role));
    find_info(info, "maxmemory_policy", policy, sizeof(policy));
    if (strcmp(role, "slave") == 0) { /* also one that takes writes: its master knows nothing of them */
        link_down(r, REDIS_ERROR_REDIRECT, "this Redis is a replica (role:slave)");
        return false;
    }
    if (strcmp(policy, "noeviction") != 0) {
        (void) snprintf(why, sizeof(why), "Redis evicts keys (maxmemory-policy is \"%s\"): set it to noeviction", policy);
        link_down(r, REDIS_ERROR_FATAL, why);
        return false;
    }
    return true;
}

static void warn_of_replicas(struct store_redis *r, const char *info) {
    char replicas[24], good[24];

    find_info(info, "connected_slaves", replicas, sizeof(replicas));
    find_info(info, "min_slaves_good_slaves", good, sizeof(good));
    if (strcmp(replicas, "0") != 0 && *replicas && !*good)
        journal_log(redis_journal(r), LOG_WARNING,
                    "Redis has %s replica(s) and min-replicas-to-write is 0: a partitioned old master would go on granting", replicas);
}

/* Once until a snapshot succeeds. The option itself cannot be read with the rights that berth has. */
static void warn_of_snapshot(struct store_redis *r, const char *info) {
    char status[16];
    bool failed;

    find_info(info, "rdb_last_bgsave_status", status, sizeof(status));
    failed = strcmp(status, "err") == 0;
    if (failed && !r->snapshot_told)
        journal_log(redis_journal(r), LOG_WARNING,
                    "the last snapshot of Redis failed: with stop-writes-on-bgsave-error yes (its default) it refuses heartbeats, and all "
                    "jobs are stopped; free its disk or set that to no");
    r->snapshot_told = failed;
}

static void link_on_info(const struct redisReply *reply, void *userdata) {
    struct store_redis *r = userdata;
    const char *info = reply_text(reply);

    if (!link_is_coming_up(r, reply))
        return;
    if (!info) {
        link_bad_reply(r, "INFO");
        return;
    }
    if (!link_accepts(r, info))
        return;
    r->info_due = false;
    if (!r->connected_told)
        warn_of_replicas(r, info);
    warn_of_snapshot(r, info);
    link_advance(r);
}

static int link_ask_info(struct store_redis *r, redis_reply_fn fn) {
    r->info_asked = clock_boottime();
    return redis_connection_call(r->commands, 4, (const char *[]) {"INFO", "memory", "replication", "persistence"}, fn, r);
}

static void link_on_info_again(const struct redisReply *reply, void *userdata) {
    struct store_redis *r = userdata;
    const char *info = reply_text(reply);

    if (r->phase == PHASE_LIVE && !r->stopping && info && link_accepts(r, info))
        warn_of_snapshot(r, info);
}

void link_check(struct store_redis *r) {
    if (r->phase == PHASE_LIVE && clock_boottime() >= usec_add(r->info_asked, r->lease_usec))
        (void) link_ask_info(r, link_on_info_again); /* what fails is asked again a lease later */
}

/* Asks what must be known of Redis before hello. */
static int link_ask(struct store_redis *r) {
    const char *scripts[2 + REDIS_SCRIPTS] = {"SCRIPT", "EXISTS"};
    int k = link_ask_info(r, link_on_info);

    for (enum redis_script i = 0; i < REDIS_SCRIPTS; i++)
        scripts[2 + i] = redis_script_sha(i);
    if (k >= 0)
        k = redis_connection_call(r->commands, ELEMENTSOF(scripts), scripts, link_on_scripts, r);
    return k;
}

static void link_ask_or_drop(struct store_redis *r) {
    if (link_ask(r) == -ENOMEM)
        link_down(r, REDIS_ERROR_RETRY, strerror(ENOMEM));
}

static void link_on_pushes(const struct redisReply *reply, void *userdata) {
    struct store_redis *r = userdata;
    const char *error = reply_error(reply);

    if (error) {
        link_down(r, redis_error_class(error), error);
    } else if (reply_is(reply_at(reply, 0), "subscribe")) {
        r->subscribed = true;
        link_advance(r);
    } else {
        push_on_message(reply, r);
    }
}

static void link_on_up(struct redis_connection *c, void *userdata) {
    struct store_redis *r = userdata;
    char channel[sizeof(r->prefix) + ID_TEXT_SIZE + 4];

    if (c == r->commands) {
        link_ask_or_drop(r);
        return;
    }
    (void) snprintf(channel, sizeof(channel), "%sto:%s", r->prefix, r->session);
    if (redis_connection_subscribe(c, channel, link_on_pushes, r) == -ENOMEM)
        link_down(r, REDIS_ERROR_RETRY, strerror(ENOMEM));
}

static void link_connect_to(struct store_redis *r, const char *address) {
    int k = redis_connection_new(&r->commands, r->event, address, &r->command_options);

    if (k >= 0)
        k = redis_connection_new(&r->pushes, r->event, address, &r->command_options);
    if (k < 0)
        link_down(r, REDIS_ERROR_RETRY, strerror(-k));
}

static void link_on_resolved(const char *address, void *userdata) {
    struct store_redis *r = userdata;
    char text[RESOLVE_ADDRESS_SIZE], why[160];

    (void) snprintf(text, sizeof(text), "%s", address ? address : "");
    r->resolve = redis_resolve_free(r->resolve);
    if (*text) {
        link_connect_to(r, text);
        return;
    }
    (void) snprintf(why, sizeof(why), "the name %.100s has no address", r->settings.host);
    link_down(r, REDIS_ERROR_RETRY, why);
}

static void link_connect(struct store_redis *r) {
    int k;

    r->phase = PHASE_CONNECTING;
    r->store.is_connecting = true;
    r->awaits_lost = false;
    r->info_due = r->scripts_due = r->probe_due = true;
    r->n_untimely = 0;
    r->loads = 0;
    r->connection++;
    session_save(r);
    if (r->settings.unix_path || redis_resolve_is_address(r->settings.host)) {
        link_connect_to(r, r->settings.host);
        return;
    }
    k = redis_resolve_new(&r->resolve, r->event, r->settings.host, r->settings.timeout_usec, link_on_resolved, r);
    if (k < 0)
        link_down(r, REDIS_ERROR_RETRY, strerror(-k));
}

int link_init(struct store_redis *r) {
    int k = sd_event_add_time(r->event, &r->retry, CLOCK_BOOTTIME, 0, 1000, link_on_retry, r);

    if (k < 0)
        return k;
    r->command_options = (struct redis_connection_options) {
        .settings = &r->settings,
        .password = r->password,
        .client_name = r->client_name,
        .on_up = link_on_up,
        .on_down = link_on_down,
        .on_writing = link_on_writing,
        .userdata = r,
    };
    k = sd_event_source_set_enabled(r->retry, SD_EVENT_OFF);
    if (k >= 0)
        k = sd_event_add_defer(r->event, &r->away, link_on_away, r);
    return k < 0 ? k : sd_event_source_set_enabled(r->away, SD_EVENT_OFF);
}

void link_hello_again(struct store_redis *r) {
    usec_t pause = next_pause(r);

    r->phase = PHASE_HELLO;
    if (pause > 0)
        link_retry(r, pause);
    else
        hello_say(r);
}

void link_resync(struct store_redis *r) {
    sync_reset(r);
    beat_reset(r);
    link_hello_again(r);
}

/* --- what an answer calls for --- */

/* The scripts are asked for when the pause is over: see link_on_retry(). */
static void link_reload(struct store_redis *r) {
    sync_reset(r);
    beat_reset(r);
    r->phase = PHASE_CONNECTING;
    r->scripts_due = true;
    link_retry(r, next_pause(r));
}

bool link_judge(struct store_redis *r, const struct redisReply *reply, enum phase during) {
    const char *error = reply_error(reply), *word = reply_text(reply_text(reply) ? reply : reply_at(reply, 0));
    bool here = r->phase == during && !r->stopping;

    if (error) {
        if (redis_error_class(error) == REDIS_ERROR_FATAL && strstr(error, "script: "))
            r->lost = DATA_LOSS_HALF;
        if (here && redis_error_class(error) == REDIS_ERROR_RELOAD)
            link_reload(r);
        else if (here)
            link_down(r, redis_error_class(error), error);
        return false;
    }
    if (!word) {
        if (here)
            link_bad_reply(r, "a call");
        return false;
    }
    if (strcmp(word, "epoch") == 0) {
        if (here)
            link_resync(r);
        return false;
    }
    if (strcmp(word, "gone") == 0) {
        if (here && r->store.deadline > 0 && clock_boottime() >= r->store.deadline)
            session_lost(r, "it was expired");
        else if (here) { /* nobody can have expired it yet */
            r->lost = r->lost == DATA_LOSS_NONE && r->store.deadline > 0 ? DATA_LOSS_SEEN : r->lost;
            link_resync(r);
        }
        return false;
    }
    if (strcmp(word, "stale") == 0) {
        if (here)
            link_down(r, REDIS_ERROR_RETRY, "a newer connection of this session is there");
        return false;
    }
    return true;
}
