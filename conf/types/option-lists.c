/* SPDX-License-Identifier: MIT */

/* The types of options whose values are lists. */

#include "conf/types/option-types.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/name.h"
#include "base/text.h"
#include "conf/hash.h"
#include "conf/redis-url.h"
#include "conf/value.h"

/* ---- strings ---- */

static void parse_strings(const struct value_reader *reader, const struct option *option, void *at) {
    size_t n = value_option(reader, option->name)->n_values, n_copied = 0;
    char ***field = at, **list = calloc(n + 1, sizeof(*list));

    *field = list;
    if (!list) {
        reader->notes->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const char *text = value_get(reader, option->name, i, true);

        list[n_copied] = text ? value_copy(reader, text) : NULL;
        n_copied += list[n_copied] != NULL;
    }
}

static void hash_strings(uint64_t *hash, const struct option *option, const void *at) {
    char *const *const *list = at;

    for (size_t i = 0; (*list)[i]; i++)
        hash_add_text(hash, option->name, (*list)[i]);
}

void option_free_list(void *at) {
    text_free_list(*(char ***) at);
}

static void parse_command(const struct value_reader *reader, const struct option *option, void *at) {
    char ***command = at;

    parse_strings(reader, option, at);
    if (*command && (*command)[0] && (*command)[0][0] != '/')
        value_error(reader, option->name, 0, "must be an absolute path: it is executed without a shell");
}

const struct option_type option_command = {.parse_list = parse_command, .hash = hash_strings, .done = option_free_list};

#define VARIABLE_FIRST "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"

static void check_variable(const struct value_reader *reader, const struct option *option, size_t index) {
    const struct parsed_value *values = value_option(reader, option->name)->values;
    const char *text = values[index].text;
    size_t n = strspn(text, VARIABLE_FIRST "0123456789");

    if (strspn(text, VARIABLE_FIRST) == 0 || text[n] != '=') {
        value_error(reader, option->name, index,
                    "must be NAME=value, NAME of letters, digits and '_', not beginning with a digit");
        return;
    }
    if (strncmp(text, "BERTH_", 6) == 0)
        value_error(reader, option->name, index, "begins with BERTH_, which berth sets itself; choose another name");
    for (size_t i = 0; i < index; i++)
        if (strncmp(values[i].text, text, n + 1) == 0) {
            value_error(reader, option->name, index, "names a variable twice, first in line %d; keep one", values[i].line);
            return;
        }
}

static void parse_environment(const struct value_reader *reader, const struct option *option, void *at) {
    parse_strings(reader, option, at);
    for (size_t i = 0; i < value_option(reader, option->name)->n_values; i++)
        check_variable(reader, option, i);
}

const struct option_type option_environment = {
    .parse_list = parse_environment, .hash = hash_strings, .done = option_free_list};

/* ---- files ---- */

/* Notes a value that has the same first n bytes as an earlier one. */
static void check_twice(const struct value_reader *reader, const struct option *option, size_t index, size_t n,
                        const char *what) {
    const struct parsed_value *values = value_option(reader, option->name)->values;

    for (size_t i = 0; i < index; i++)
        if (strncmp(values[i].text, values[index].text, n) == 0 && strchr("=", values[i].text[n])) {
            value_error(reader, option->name, index, "names a %s twice, first in line %d; keep one", what, values[i].line);
            return;
        }
}

static void parse_files(const struct value_reader *reader, const struct option *option, void *at) {
    const struct parsed_option *written = value_option(reader, option->name);

    parse_strings(reader, option, at);
    for (size_t i = 0; i < written->n_values; i++)
        if (written->values[i].text[written->values[i].text[0] == '-'] != '/')
            value_error(reader, option->name, i, "must be an absolute path, with '-' before it if the file may be missing");
}

const struct option_type option_files = {.parse_list = parse_files, .hash = hash_strings, .done = option_free_list};

/* The credentials of units/berthd.service that are passwords. */
#define REDIS_PASSWORD "redis-password"
#define SENTINEL_PASSWORD "sentinel-password"

static void check_credential(const struct value_reader *reader, const struct option *option, size_t index) {
    const char *text = value_option(reader, option->name)->values[index].text;
    size_t n = strcspn(text, "=");
    char name[NAME_MAX_LENGTH + 2];

    snprintf(name, sizeof(name), "%.*s", (int) (n < sizeof(name) ? n : sizeof(name)), text);
    if (!name_is_valid(name))
        value_error(reader, option->name, index, "must be NAME=/path, or NAME of berth-runner's own; " NAME_RULE);
    else if (text[n] == '=' && text[n + 1] != '/')
        value_error(reader, option->name, index, "must have an absolute path after '='");
    else if (strcmp(name, REDIS_PASSWORD) == 0 || strcmp(name, SENTINEL_PASSWORD) == 0)
        value_error(reader, option->name, index, "has the name of a password of berthd; choose another name");
    else
        check_twice(reader, option, index, n, "credential");
}

static void parse_credentials(const struct value_reader *reader, const struct option *option, void *at) {
    parse_strings(reader, option, at);
    for (size_t i = 0; i < value_option(reader, option->name)->n_values; i++)
        check_credential(reader, option, i);
}

const struct option_type option_credentials = {
    .parse_list = parse_credentials, .hash = hash_strings, .done = option_free_list};

/* ---- demands ---- */

static void parse_demands(const struct value_reader *reader, const struct option *option, void *at) {
    struct demands *demands = at;

    for (size_t i = 0; i < value_option(reader, option->name)->n_values; i++) {
        const char *text = value_get(reader, option->name, i, false);
        int answer = text ? demands_add(demands, text) : 0;

        if (answer != 0)
            value_error(reader, option->name, i, "%s", demands_explain(answer));
    }
}

static void hash_demands(uint64_t *hash, const struct option *option, const void *at) {
    char text[DEMANDS_TEXT_SIZE];

    hash_add_text(hash, option->name, demands_format(at, text));
}

const struct option_type option_demands = {.parse_list = parse_demands, .hash = hash_demands};

/* ---- accounts ---- */

/* Returns whether the value is valid and was copied. */
static bool copy_account(const struct value_reader *reader, const struct option *option, size_t index, struct account *ret) {
    const struct parsed_option *written = value_option(reader, option->name);
    const char *text = value_get(reader, option->name, index, false);
    const char *name = text ? value_account(reader, option->name, index, text, true) : NULL;

    if (!name)
        return false;
    *ret = (struct account) {.name = value_copy(reader, name), .is_group = text[0] == '@',
                             .place = {written->place.file, written->values[index].line}};
    return ret->name;
}

static void parse_accounts(const struct value_reader *reader, const struct option *option, void *at) {
    size_t n = value_option(reader, option->name)->n_values;
    struct accounts *accounts = at;

    if (n == 0)
        return;
    accounts->items = calloc(n, sizeof(*accounts->items));
    if (!accounts->items) {
        reader->notes->out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < n; i++)
        accounts->n += copy_account(reader, option, i, &accounts->items[accounts->n]);
}

/* Hashes the names: which ids they have on this machine is not part of the config. */
static void hash_accounts(uint64_t *hash, _unused_ const struct option *option, const void *at) {
    const struct accounts *accounts = at;

    for (size_t i = 0; i < accounts->n; i++)
        hash_add_text(hash, accounts->items[i].is_group ? "operator-group" : "operator", accounts->items[i].name);
}

static void free_accounts(void *at) {
    struct accounts *accounts = at;

    for (size_t i = 0; i < accounts->n; i++)
        free(accounts->items[i].name);
    free(accounts->items);
}

const struct option_type option_accounts = {.parse_list = parse_accounts, .hash = hash_accounts, .done = free_accounts};

/* ---- sentinels ---- */

static void check_sentinel(const struct value_reader *reader, const struct option *option, size_t index, const char *text) {
    char host[REDIS_HOST_SIZE];
    uint16_t port = 0;
    int r = strchr(text, ',') ? REDIS_URL_E_HOST : redis_url_get_host(text, 0, host, sizeof(host), &port);

    if (r == -ENOMEM)
        reader->notes->out_of_memory = true;
    else if (r == REDIS_URL_E_PORT)
        value_error(reader, option->name, index, "%s", redis_url_explain(r));
    else if (r != 0)
        value_error(reader, option->name, index, "must be host or host:port, IPv6 in [ ]");
}

/* Joins the values with commas. */
static void parse_sentinels(const struct value_reader *reader, const struct option *option, void *at) {
    const struct parsed_option *written = value_option(reader, option->name);
    char **field = at, *hosts = NULL;

    if (written->n_values > REDIS_HOSTS_MAX)
        value_error(reader, option->name, REDIS_HOSTS_MAX, "is one of %zu; name at most %d sentinels", written->n_values,
                    REDIS_HOSTS_MAX);
    for (size_t i = 0; i < written->n_values; i++) {
        const char *text = value_get(reader, option->name, i, false);
        char *longer = NULL;

        if (!text)
            continue;
        check_sentinel(reader, option, i, text);
        if (asprintf(&longer, "%s%s%s", hosts ? hosts : "", hosts ? "," : "", text) < 0) {
            reader->notes->out_of_memory = true;
            break;
        }
        free(hosts);
        hosts = longer;
    }
    *field = hosts;
}

static void free_sentinels(void *at) {
    char **field = at;

    free(*field);
}

const struct option_type option_sentinels = {.parse_list = parse_sentinels, .done = free_sentinels};
