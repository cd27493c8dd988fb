/* SPDX-License-Identifier: MIT */

/* Reads the redis section, and checks its options against each other and against the lease. */

#include <string.h>

#include "base/duration.h"
#include "base/name.h"
#include "base/text.h"
#include "conf/settings-read.h"

#define TIMEOUT_DEFAULT (5 * USEC_PER_SEC)
#define CONNECT_TIMEOUT_DEFAULT_MAX (10 * USEC_PER_SEC)
#define LEASES_OF_MARGIN 10

static usec_t whole_milliseconds(usec_t usec) {
    return usec - usec % USEC_PER_MSEC;
}

static void check_failover_margin(const struct settings *s, const struct redis_settings *redis, const struct value_reader *reader) {
    char text[DURATION_TEXT_SIZE];

    if (redis->failover_margin_usec != USEC_INFINITY && redis->failover_margin_usec > LEASES_OF_MARGIN * s->lease_usec)
        value_error(reader, "failover-margin", 0, "is above 10 leases; make it at most %s",
                    duration_format(LEASES_OF_MARGIN * s->lease_usec, text));
}

/* The url or the option may name the user. */
static void check_username(struct redis_settings *redis, const struct value_reader *reader) {
    if (redis->username && strchr(redis->username, ' '))
        value_error(reader, "username", 0, "has a space; a user of Redis has none");
    if (!redis->url_username)
        return;
    if (redis->username && *redis->username != '\0')
        value_error(reader, "username", 0, "is given beside a user in the url; keep one");
    free(redis->username);
    redis->username = steal_pointer(&redis->url_username);
}

static usec_t default_timeout(const struct settings *s) {
    usec_t half = whole_milliseconds(s->heartbeat_usec / 2);

    return half < TIMEOUT_DEFAULT ? half : TIMEOUT_DEFAULT;
}

static void check_timeout(const struct settings *s, const struct redis_settings *redis,
                          const struct value_reader *reader) {
    char heartbeat[DURATION_TEXT_SIZE];

    if (redis->timeout_usec > s->heartbeat_usec)
        value_error(reader, "timeout", 0, "is above the heartbeat; make it at most %s",
                    duration_format(s->heartbeat_usec, heartbeat));
}

/* While thousands of hosts connect at once, a handshake takes longer than an answer, so this limit is above
 * `timeout`. */
static void read_connect_timeout(const struct settings *s, struct redis_settings *redis,
                                 const struct value_reader *reader) {
    usec_t quarter = whole_milliseconds(s->lease_usec / 4), most = whole_milliseconds(s->lease_usec / 2);
    char text[DURATION_TEXT_SIZE];

    if (!value_is_given(reader, "connect-timeout")) {
        quarter = quarter < CONNECT_TIMEOUT_DEFAULT_MAX ? quarter : CONNECT_TIMEOUT_DEFAULT_MAX;
        redis->connect_timeout_usec = redis->timeout_usec > quarter ? redis->timeout_usec : quarter;
    } else if (redis->connect_timeout_usec > most) {
        value_error(reader, "connect-timeout", 0, "is above half the lease; make it at most %s",
                    duration_format(most, text));
    }
}

/* ---- TLS ---- */

static void check_tls_is_used(const struct redis_settings *redis, const struct value_reader *reader) {
    const struct tls_settings *tls = &redis->tls;
    const struct {
        const char *option;
        bool is_set;
    } options[] = {
        {"tls-ca", tls->ca && *tls->ca},
        {"tls-certificate", tls->certificate && *tls->certificate},
        {"tls-key", tls->key && *tls->key},
        {"tls-server-name", tls->server_name && *tls->server_name},
        {"tls-minimum", tls->minimum != TLS_MINIMUM_1_2},
    };

    for (size_t i = 0; i < ELEMENTSOF(options) && !tls->is_used; i++)
        if (options[i].is_set) {
            struct settings_place place = value_place(reader, options[i].option);

            value_note(reader, &place,
                       "%s is given, and url does not begin with rediss://; remove it, or change the url",
                       options[i].option);
        }
}

static void check_tls_pair(const struct redis_settings *redis, const struct value_reader *reader) {
    bool has_certificate = redis->tls.certificate && *redis->tls.certificate,
         has_key = redis->tls.key && *redis->tls.key;
    const char *given = has_certificate ? "tls-certificate" : "tls-key",
               *missing = has_certificate ? "tls-key" : "tls-certificate";

    if (redis->tls.is_used && has_certificate != has_key) {
        struct settings_place place = value_place(reader, given);

        value_note(reader, &place, "%s is given without %s; name both", given, missing);
    }
}

/* ---- sentinels ---- */

static void check_master(const struct redis_settings *redis, const struct value_reader *reader) {
    const char *master = redis->sentinels.master;

    if (master && !name_is_valid(master))
        value_error(reader, "master", 0, "must be the name by which the sentinels know the master; " NAME_RULE);
}

static bool has_text(const char *text) {
    return text && *text != '\0';
}

static void check_sentinels_are_used(const struct redis_settings *redis, const struct value_reader *reader) {
    const struct sentinel_settings *sentinels = &redis->sentinels;
    const struct {
        const char *option;
        bool is_set;
    } options[] = {
        {"master", sentinels->master && strcmp(sentinels->master, MASTER_DEFAULT) != 0},
        {"sentinel-username", has_text(sentinels->username)},
        {"sentinel-password-file", has_text(sentinels->password_file)},
    };

    for (size_t i = 0; i < ELEMENTSOF(options) && !sentinels->hosts; i++)
        if (options[i].is_set) {
            struct settings_place place = value_place(reader, options[i].option);

            value_note(reader, &place, "%s is given without sentinels; name them, or remove it", options[i].option);
        }
}

/* Either the url or the sentinels name the server. */
static void check_sentinels(const struct redis_settings *redis, const struct value_reader *reader) {
    struct settings_place url = value_place(reader, "url"), place = value_place(reader, "sentinels");
    bool has_host = redis->host || redis->unix_path;

    if (redis->sentinels.hosts && !value_is_given(reader, "url"))
        value_note(reader, &place,
                   "sentinels are given without url; write url = \"redis:///0\", or \"rediss:///0\" for TLS");
    else if (redis->sentinels.hosts && has_host)
        value_note(reader, &url, "url names a host beside sentinels; keep one: the sentinels know where the master is");
    else if (!redis->sentinels.hosts && !has_host)
        value_note(reader, &url, "url must name a host or an address, IPv6 in [ ]; or name sentinels");
    check_sentinels_are_used(redis, reader);
    check_master(redis, reader);
}

static struct redis_settings *redis_new(const struct settings *s, const struct parsed_section *section,
                                        struct notes *notes) {
    const struct value_reader reader = {section, notes};
    struct redis_settings *redis = calloc(1, sizeof(*redis));

    if (!redis) {
        notes->out_of_memory = true;
        return NULL;
    }
    redis->place = section->place;
    redis->timeout_usec = default_timeout(s);
    option_read_section(&reader, redis);
    check_username(redis, &reader);
    check_timeout(s, redis, &reader);
    read_connect_timeout(s, redis, &reader);
    check_failover_margin(s, redis, &reader);
    if (redis->port > 0 || redis->unix_path) { /* else the url is wrong */
        check_sentinels(redis, &reader);
        check_tls_is_used(redis, &reader);
        check_tls_pair(redis, &reader);
    }
    return redis;
}

void settings_read_redis(struct settings *s, const struct parsed *parsed, struct notes *notes) {
    for (size_t i = 0; i < parsed->n_sections; i++) {
        const struct parsed_section *section = &parsed->sections[i];

        if (section->kind != SECTION_REDIS)
            continue;
        if (s->redis) {
            notes_add(notes, &section->place, "a second redis section, the first is at %s:%d; keep one",
                      s->redis->place.file, s->redis->place.line);
            continue;
        }
        s->redis = redis_new(s, section, notes);
    }
}

/* ---- copies ---- */

int redis_settings_copy(struct redis_settings *ret, const struct redis_settings *redis) {
    char **to[] = {&ret->unix_path,     &ret->host,           &ret->username,
                   &ret->password_file, &ret->tls.ca,         &ret->tls.certificate,
                   &ret->tls.key,       &ret->tls.server_name, &ret->others,
                   &ret->sentinels.hosts, &ret->sentinels.master, &ret->sentinels.username,
                   &ret->sentinels.password_file};
    const char *from[] = {redis->unix_path,     redis->host,           redis->username,
                          redis->password_file, redis->tls.ca,         redis->tls.certificate,
                          redis->tls.key,       redis->tls.server_name, redis->others,
                          redis->sentinels.hosts, redis->sentinels.master, redis->sentinels.username,
                          redis->sentinels.password_file};
    int r = 0;

    *ret = *redis;
    ret->url_username = NULL;
    for (size_t i = 0; i < ELEMENTSOF(to); i++)
        *to[i] = NULL;
    for (size_t i = 0; i < ELEMENTSOF(to) && r == 0; i++)
        r = text_copy(to[i], from[i]);
    return r;
}

void redis_settings_done(struct redis_settings *redis) {
    option_done_section(SECTION_REDIS, redis);
    *redis = (struct redis_settings){};
}
