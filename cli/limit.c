/* SPDX-License-Identifier: MIT */
/* Verbs that override a pool's limit: limit, pause, resume. */
#include <stdio.h>
#include <string.h>

#include "base/json/format.h"
#include "base/number.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "conf/settings.h"

#define INT "%" JSON_INTEGER_FORMAT

/* Prints the limits that other hosts declare, where these differ. lowest: the one in force without an override, or null. */
static void print_declared(const json_t *hosts, const json_t *lowest, const char *pool, const char *this_host) {
    const char *lowest_host = format_get_text(lowest, "host");
    json_t *host, *limit;
    size_t i, k;

    if (*lowest_host && strcmp(lowest_host, this_host) != 0)
        printf("declared: " INT " by %s\n", format_get_number(lowest, "limit"), lowest_host);
    json_array_foreach(hosts, i, host)
        json_array_foreach(json_object_get(host, "limits"), k, limit)
            if (strcmp(format_get_text(limit, "pool"), pool) == 0 &&
                strcmp(format_get_text(host, "host"), this_host) != 0)
                printf("declared: " INT " by %s\n", format_get_number(limit, "limit"),
                       format_get_text(host, "host"));
}

static int show_limit(const char *name) {
    _cleanup_json_ json_t *answer = NULL, *hosts = NULL;
    const json_t *pool, *configured;
    char text[FORMAT_SIZE];
    int status = client_call("io.berth.Pools", json_pack("{s:[s]}", "pools", name), &answer);

    if (status == 0)
        status = client_call("io.berth.Hosts", NULL, &hosts);
    if (status != 0)
        return status;
    output_caveats(answer);
    pool = json_array_get(json_object_get(answer, "pools"), 0);
    configured = json_object_get(pool, "configured");
    printf("limit: " INT "\n", format_get_number(pool, "limit"));
    if (json_is_object(json_object_get(pool, "override")))
        printf("override: %s\n", override_text(pool, text));
    if (json_is_integer(configured))
        printf("declared: " INT " by this host\n", json_integer_value(configured));
    print_declared(json_object_get(hosts, "hosts"), json_object_get(pool, "lowest"), name, format_get_text(answer, "host"));
    return 0;
}

static int set_limit(char **argv, const char *duration, const char *reason) {
    json_int_t for_ms = 0;
    uint64_t limit;
    json_t *params;
    int r;

    if (number_parse(argv[2], POOL_LIMIT_MAX, &limit) < 0)
        return options_wrong_usage(argv[0], "%.100s: a limit is a number from 0 to %d", argv[2],
                                   POOL_LIMIT_MAX);
    r = duration ? options_parse_msec(argv[0], "--for", duration, &for_ms) : 0;
    if (r != 0)
        return r;
    params = json_pack("{s:s, s:I, s:s*}", "pool", argv[1], "limit", (json_int_t) limit, "reason", reason);
    if (duration && json_object_set_new(params, "for_ms", json_integer(for_ms)) < 0) {
        json_decref(params);
        return client_explain_errno(-ENOMEM);
    }
    return client_call("io.berth.SetLimit", params, NULL);
}

int verb_limit(int argc, char **argv) {
    const char *duration = NULL, *reason = NULL;
    bool clear = false;
    const struct verb_option options[] = {OPTION_FLAG("--clear", &clear), OPTION_VALUE("--for", &duration),
                                          OPTION_TEXT("--reason", &reason)};
    int words, status;

    words = options_parse(argc, argv, options, ELEMENTSOF(options), &status);
    if (words < 0)
        return status;
    status = options_check_pool(argv[0], argv[1]);
    if (status != 0)
        return status;
    if (clear && (words == 2 || duration || reason))
        return options_wrong_usage(argv[0], "--clear takes a pool and nothing else");
    if (clear)
        return client_call("io.berth.ClearLimit", json_pack("{s:s}", "pool", argv[1]), NULL);
    if (words == 1)
        return duration || reason ? options_wrong_usage(argv[0], "a limit is missing") : show_limit(argv[1]);
    return set_limit(argv, duration, reason);
}

/* Checks that all pools exist, then changes each. Returns the status of the first failure. for_ms 0: without
 * end. */
static int each_pool(char **argv, int words, const char *method, json_int_t for_ms, const char *reason) {
    json_t *pools = json_array();
    int first = 0, status = 0;

    for (int i = 1; i <= words && status == 0; i++) {
        status = options_check_pool(argv[0], argv[i]);
        (void) json_array_append_new(pools, json_string(argv[i]));
    }
    if (status == 0 && words > 1)
        status = client_call("io.berth.Pools", json_pack("{s:O}", "pools", pools), NULL);
    json_decref(pools);
    for (int i = 1; i <= words && status == 0; i++) {
        json_t *params = json_pack("{s:s, s:s*}", "pool", argv[i], "reason", reason);

        if (for_ms > 0)
            (void) json_object_set_new(params, "for_ms", json_integer(for_ms));
        status = client_call(method, params, NULL);
        first = first != 0 ? first : status;
        status = 0;
    }
    return first != 0 ? first : status;
}

int verb_pause(int argc, char **argv) {
    const char *duration = NULL, *reason = NULL;
    const struct verb_option options[] = {OPTION_VALUE("--for", &duration),
                                          OPTION_TEXT("--reason", &reason)};
    json_int_t for_ms = 0;
    int words, status;

    words = options_parse(argc, argv, options, ELEMENTSOF(options), &status);
    if (words < 0)
        return status;
    status = duration ? options_parse_msec(argv[0], "--for", duration, &for_ms) : 0;
    return status != 0 ? status : each_pool(argv, words, "io.berth.Pause", for_ms, reason);
}

int verb_resume(int argc, char **argv) {
    int words, status;

    words = options_parse(argc, argv, NULL, 0, &status);
    if (words < 0)
        return status;
    return each_pool(argv, words, "io.berth.Resume", 0, NULL);
}
