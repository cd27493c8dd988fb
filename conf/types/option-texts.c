/* SPDX-License-Identifier: MIT */

/* The types of options whose values are texts: names, paths, accounts, the url of Redis. */

#include "conf/types/option-types.h"

#include <string.h>

#include "base/text.h"
#include "conf/hash.h"
#include "conf/redis-url.h"
#include "conf/value.h"

/* Replaces *at by a copy. False: memory is short. */
static bool set_copy(const struct value_reader *reader, const char *text, void *at) {
    char **field = at;

    free(*field);
    *field = value_copy(reader, text);
    return *field;
}

static void hash_copy(uint64_t *hash, const struct option *option, const void *at) {
    char *const *text = at;

    if (option->hash == HASH || strcmp(*text, option->text) != 0)
        hash_add_text(hash, option->name, *text);
}

static void free_copy(void *at) {
    char **text = at;

    free(*text);
}

static bool parse_text(const struct value_reader *reader, _unused_ const struct option *option, const char *text, void *at) {
    return set_copy(reader, text, at);
}

const struct option_type option_text = {.parse = parse_text, .hash = hash_copy, .done = free_copy};

static bool parse_path(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    if (*text == '/' || (*text == '\0' && option_is_optional(option)))
        return set_copy(reader, text, at);
    value_error(reader, option->name, 0, "must be an absolute path");
    return false;
}

const struct option_type option_path = {.parse = parse_path, .hash = hash_copy, .done = free_copy};

static bool parse_directory(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    if (*text == '/' || strcmp(text, "~") == 0)
        return set_copy(reader, text, at);
    value_error(reader, option->name, 0, "must be an absolute path, or \"~\" for the user's home");
    return false;
}

const struct option_type option_directory = {.parse = parse_directory, .hash = hash_copy, .done = free_copy};

/* ---- scripts and stdin ---- */

const struct option_type option_script = {
    .parse = parse_text, .hash = hash_copy, .done = free_copy, .may_break = true};

static bool parse_stdin(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    if (*text == '/')
        return set_copy(reader, text, at);
    if (strcmp(text, "null") == 0)
        return set_copy(reader, "", at);
    value_error(reader, option->name, 0, "must be \"null\" or an absolute path");
    return false;
}

static void hash_stdin(uint64_t *hash, const struct option *option, const void *at) {
    char *const *path = at;

    if (**path)
        hash_add_text(hash, option->name, *path);
}

const struct option_type option_stdin = {.parse = parse_stdin, .hash = hash_stdin, .done = free_copy};

/* ---- names ---- */

static bool parse_name(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    if (name_is_valid(text)) {
        memcpy(at, text, strlen(text) + 1);
        return true;
    }
    value_error(reader, option->name, 0, "%s; " NAME_RULE, name_explain(text));
    return false;
}

static void hash_name(uint64_t *hash, const struct option *option, const void *at) {
    hash_add_text(hash, option->name, at);
}

const struct option_type option_name = {.parse = parse_name, .hash = hash_name};

/* ---- accounts ---- */

static bool parse_account(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    if (*text != '\0' && !value_account(reader, option->name, 0, text, false))
        return false;
    return set_copy(reader, text, at);
}

const struct option_type option_account = {.parse = parse_account, .hash = hash_copy, .done = free_copy};

static bool parse_group(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    struct account *account = at;

    if (!parse_account(reader, option, text, &account->name))
        return false;
    account->is_group = true;
    if (value_is_given(reader, option->name))
        account->place = value_place(reader, option->name);
    return true;
}

static void hash_group(uint64_t *hash, const struct option *option, const void *at) {
    const struct account *account = at;

    hash_add_text(hash, option->name, account->name);
}

static void free_group(void *at) {
    struct account *account = at;

    free(account->name);
}

const struct option_type option_group = {.parse = parse_group, .hash = hash_group, .done = free_group};

/* ---- output ---- */

static bool parse_output(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    struct job_output *output = at;

    if (strcmp(text, "journal") == 0)
        output->kind = JOB_OUTPUT_JOURNAL;
    else if (strcmp(text, "null") == 0)
        output->kind = JOB_OUTPUT_NULL;
    else if (*text == '/') {
        output->kind = JOB_OUTPUT_FILE;
        return set_copy(reader, text, &output->path);
    } else {
        value_error(reader, option->name, 0, "must be \"journal\", \"null\" or an absolute path");
        return false;
    }
    return true;
}

static void hash_output(uint64_t *hash, const struct option *option, const void *at) {
    const struct job_output *output = at;

    hash_add_number(hash, option->name, output->kind);
    hash_add_text(hash, "output-path", output->path ? output->path : "");
}

static void free_output(void *at) {
    struct job_output *output = at;

    free(output->path);
}

const struct option_type option_output = {.parse = parse_output, .hash = hash_output, .done = free_output};

/* ---- the url of Redis ---- */

static bool parse_url(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    struct redis_settings *redis = at;
    struct settings_place place = value_place(reader, option->name);
    struct redis_url url = {};
    int answer = redis_url_parse(text, &url);

    if (answer < 0)
        reader->notes->out_of_memory = true;
    else if (answer > 0 && !notes_is_spoiled(reader->notes, &place))
        value_note(reader, &place, "url %s", redis_url_explain(answer)); /* without the url, which may hold a password */
    if (answer != 0)
        return false;
    redis->tls.is_used = url.tls;
    redis->unix_path = url.unix_path;
    redis->host = url.host;
    redis->port = url.port;
    redis->others = url.others;
    redis->db = url.db;
    redis->url_username = url.username;
    return true;
}

static void hash_url(uint64_t *hash, _unused_ const struct option *option, const void *at) {
    const struct redis_settings *redis = at;

    hash_add_number(hash, "tls", redis->tls.is_used);
    hash_add_text(hash, redis->unix_path ? "unix" : "host", redis->unix_path ? redis->unix_path : redis->host ? redis->host : "");
    hash_add_number(hash, "port", redis->port);
    hash_add_text(hash, "others", redis->others ? redis->others : "");
    hash_add_number(hash, "db", redis->db);
}

static void free_url(void *at) {
    struct redis_settings *redis = at;

    free(redis->unix_path);
    free(redis->host);
    free(redis->others);
    free(redis->url_username);
}

static bool parse_server_name(const struct value_reader *reader, const struct option *option, const char *text, void *at) {
    if (*text == '\0' || redis_url_is_host(text))
        return set_copy(reader, text, at);
    value_error(reader, option->name, 0, "must be a host name or an address, without a port");
    return false;
}

const struct option_type option_server_name = {.parse = parse_server_name, .hash = hash_copy, .done = free_copy};

const struct option_type option_url = {.parse = parse_url, .hash = hash_url, .done = free_url};
