/* SPDX-License-Identifier: MIT */

/* What stands outside of sections, and the redis section. */

#include <string.h>

#include "base/duration.h"
#include "conf/redis-url.h"
#include "conf/settings-read.h"

#define LEASE_DEFAULT (30 * USEC_PER_SEC)
#define LEASE_MAX (86400 * USEC_PER_SEC)
#define HEARTBEAT_MIN (10 * USEC_PER_MSEC)
#define RUN_GROUP_DEFAULT "berth"
#define OPERATE_GROUP_DEFAULT "berth-admin"
#define CONNECTIONS_DEFAULT 4096
#define USER_CONNECTIONS_DEFAULT 1024
#define USER_RUNS_DEFAULT 1000
#define QUOTA_MAX 1000000
#define USER_BUFFER_DEFAULT (16 << 20)
#define USER_BUFFER_MIN (1 << 20) /* a few messages of the greatest size */
#define REDIS_TIMEOUT_DEFAULT (5 * USEC_PER_SEC)
#define REDIS_URL_DEFAULT "redis://127.0.0.1:6379/0"

static usec_t whole_milliseconds(usec_t usec) {
    return usec - usec % USEC_PER_MSEC;
}

static void read_host(struct settings *s, const struct value_reader *r, const char *hostname) {
    char own[NAME_MAX_LENGTH + 1] = "";

    value_name(r, TOP_HOST, s->host);
    if (value_is_given(r, TOP_HOST))
        return;
    if (!hostname) {
        if (gethostname(own, sizeof(own)) < 0)
            own[0] = '\0';
        hostname = own;
    }
    if (name_is_valid(hostname))
        memcpy(s->host, hostname, strlen(hostname) + 1);
    else
        value_note(r, &r->section->place, "host is not given, and the machine's hostname \"%s\" %s; write host = \"NAME\"", hostname,
                   name_explain(hostname));
}

/* The lease alone; what jobs ask of it is judged with them. */
static void check_lease(const struct settings *s, const struct value_reader *r) {
    char lease[DURATION_TEXT_SIZE], heartbeat[DURATION_TEXT_SIZE], margin[DURATION_TEXT_SIZE], least[DURATION_TEXT_SIZE];
    struct settings_place place = value_place(r, value_is_given(r, TOP_HEARTBEAT) ? TOP_HEARTBEAT : TOP_LEASE);

    if (s->lease_usec >= 2 * s->heartbeat_usec + settings_margin(s->lease_usec))
        return;
    value_note(r, &place, "lease %s is shorter than 2 heartbeats of %s and a margin of %s; make it at least %s, or the heartbeat shorter",
               duration_format(s->lease_usec, lease), duration_format(s->heartbeat_usec, heartbeat),
               duration_format(settings_margin(s->lease_usec), margin),
               duration_format(settings_lease_min(2 * s->heartbeat_usec), least));
}

static void read_runtime_directory(struct settings *s, const struct value_reader *r) {
    size_t n;

    value_path(r, TOP_RUNTIME_DIRECTORY, "/run/berth", &s->runtime_directory);
    n = s->runtime_directory ? strlen(s->runtime_directory) : 0;
    if (n > RUNTIME_DIRECTORY_MAX)
        value_error(r, TOP_RUNTIME_DIRECTORY, 0, "has %zu bytes; sockets in it allow at most %d", n, RUNTIME_DIRECTORY_MAX);
    else if (n > 0 && s->runtime_directory[n - 1] == '/')
        value_error(r, TOP_RUNTIME_DIRECTORY, 0, "must not end in '/'");
}

static uint32_t read_count(const struct value_reader *r, unsigned option, uint32_t count) {
    if (value_number(r, option, QUOTA_MAX, &count) && count == 0)
        value_error(r, option, 0, "leaves no room for anybody; make it at least 1");
    return count;
}

static void read_quotas(struct settings *s, const struct value_reader *r) {
    s->connections = read_count(r, TOP_CONNECTIONS, CONNECTIONS_DEFAULT);
    s->user_connections = read_count(r, TOP_USER_CONNECTIONS, USER_CONNECTIONS_DEFAULT);
    s->user_runs = read_count(r, TOP_USER_RUNS, USER_RUNS_DEFAULT);
    s->user_buffer = USER_BUFFER_DEFAULT;
    value_optional_size(r, TOP_USER_BUFFER, &s->user_buffer);
    if (s->user_buffer < USER_BUFFER_MIN)
        value_error(r, TOP_USER_BUFFER, 0, "is too small for a call and its answer; make it at least 1M");
}

void settings_read_top(struct settings *s, const struct parsed_section *top, const char *hostname, struct notes *notes) {
    const struct value_reader r = {top, notes};

    read_host(s, &r, hostname);
    memcpy(s->namespace, "berth", sizeof("berth"));
    value_name(&r, TOP_NAMESPACE, s->namespace);
    s->lease_usec = LEASE_DEFAULT;
    value_duration(&r, TOP_LEASE, 2 * HEARTBEAT_MIN, LEASE_MAX, &s->lease_usec);
    s->heartbeat_usec = whole_milliseconds(s->lease_usec / 6);
    value_duration(&r, TOP_HEARTBEAT, HEARTBEAT_MIN, LEASE_MAX, &s->heartbeat_usec);
    check_lease(s, &r);
    read_runtime_directory(s, &r);
    settings_read_group(&r, TOP_RUN_GROUP, RUN_GROUP_DEFAULT, &s->run_group);
    settings_read_group(&r, TOP_OPERATE_GROUP, OPERATE_GROUP_DEFAULT, &s->operate_group);
    read_quotas(s, &r);
}

/* ---- redis ---- */

static void read_url(struct redis_settings *redis, const struct value_reader *r) {
    const char *text = value_get(r, REDIS_URL, 0, false);
    struct settings_place place = value_place(r, REDIS_URL);
    struct redis_url url = {};
    int answer;

    if (!text && value_is_given(r, REDIS_URL))
        return;
    answer = redis_url_parse(text ? text : REDIS_URL_DEFAULT, &url);
    if (answer < 0)
        r->notes->out_of_memory = true;
    else if (answer > 0 && !notes_is_spoiled(r->notes, &place))
        value_note(r, &place, "url %s", redis_url_explain(answer)); /* the url itself is not shown: it may hold a password */
    if (answer != 0)
        return;
    redis->tls = url.tls;
    redis->unix_path = steal_pointer(&url.unix_path);
    redis->host = steal_pointer(&url.host);
    redis->port = url.port;
    redis->db = url.db;
    redis->username = steal_pointer(&url.username);
    if (redis->tls)
        value_note(r, &place, "url names rediss://, and TLS is not built yet; use redis:// or unix://");
}

static void read_username(struct redis_settings *redis, const struct value_reader *r) {
    char *from_url = steal_pointer(&redis->username);

    value_text(r, REDIS_USERNAME, "", &redis->username);
    if (redis->username && strchr(redis->username, ' '))
        value_error(r, REDIS_USERNAME, 0, "has a space; a user of Redis has none");
    if (!from_url)
        return;
    if (redis->username && *redis->username != '\0')
        value_error(r, REDIS_USERNAME, 0, "is given beside a user in the url; keep one");
    free(redis->username);
    redis->username = from_url;
}

static void read_timeout(const struct settings *s, struct redis_settings *redis, const struct value_reader *r) {
    usec_t half = whole_milliseconds(s->heartbeat_usec / 2);
    char heartbeat[DURATION_TEXT_SIZE];

    redis->timeout_usec = half < REDIS_TIMEOUT_DEFAULT ? half : REDIS_TIMEOUT_DEFAULT;
    value_duration(r, REDIS_TIMEOUT, USEC_PER_MSEC, LEASE_MAX, &redis->timeout_usec);
    if (redis->timeout_usec > s->heartbeat_usec)
        value_error(r, REDIS_TIMEOUT, 0, "is above the heartbeat; make it at most %s", duration_format(s->heartbeat_usec, heartbeat));
}

static struct redis_settings *redis_new(const struct settings *s, const struct parsed_section *section, struct notes *notes) {
    const struct value_reader r = {section, notes};
    struct redis_settings *redis = calloc(1, sizeof(*redis));

    if (!redis) {
        notes->out_of_memory = true;
        return NULL;
    }
    redis->place = section->place;
    read_url(redis, &r);
    read_username(redis, &r);
    value_path(&r, REDIS_PASSWORD_FILE, "", &redis->password_file);
    read_timeout(s, redis, &r);
    return redis;
}

void settings_read_redis(struct settings *s, const struct parsed *parsed, struct notes *notes) {
    for (size_t i = 0; i < parsed->n_sections; i++) {
        const struct parsed_section *section = &parsed->sections[i];

        if (section->kind != SECTION_REDIS)
            continue;
        if (s->redis) {
            notes_add(notes, &section->place, "a second redis section, the first is at %s:%d; keep one", s->redis->place.file,
                      s->redis->place.line);
            continue;
        }
        s->redis = redis_new(s, section, notes);
    }
}

void redis_settings_free(struct redis_settings *redis) {
    if (!redis)
        return;
    free(redis->unix_path);
    free(redis->host);
    free(redis->username);
    free(redis->password_file);
    free(redis);
}
