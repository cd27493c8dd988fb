/* SPDX-License-Identifier: MIT */
/* Verbs that override a pool's limit: limit, pause, resume. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/client.h"
#include "cli/verbs.h"
#include "conf/settings.h"

static int set_limit(char **argv, const char *duration, const char *reason) {
    json_int_t for_ms = 0;
    uint64_t limit;
    json_t *params;
    int r;

    if (number_parse(argv[2], POOL_LIMIT_MAX, &limit) < 0)
        return wrong_usage(argv[0], "%.100s: a limit is a number of 0 to %d", argv[2], POOL_LIMIT_MAX);
    r = duration ? parse_msec(argv[0], "--for", duration, &for_ms) : 0;
    if (r != 0)
        return r;
    params = json_pack("{s:s, s:I, s:s*}", "pool", argv[1], "limit", (json_int_t) limit, "reason", reason);
    if (duration && json_object_set_new(params, "for_ms", json_integer(for_ms)) < 0) {
        json_decref(params);
        return client_explain_errno(-ENOMEM);
    }
    return client_ask("io.berth.SetLimit", params, NULL);
}

int verb_limit(int argc, char **argv) {
    const char *duration = NULL, *reason = NULL;
    bool clear = false;
    const struct verb_option options[] = {{"--clear", &clear, NULL, NULL}, {"--for", NULL, &duration, NULL}, {"--reason", NULL, &reason, NULL}};
    int words, status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), 1, 2, &words, &status) != 0)
        return status;
    status = check_name(argv[0], "pool", argv[1]);
    if (status != 0)
        return status;
    if (clear && (words == 2 || duration || reason))
        return wrong_usage(argv[0], "--clear goes with a pool and nothing else");
    if (clear)
        return client_ask("io.berth.ClearLimit", json_pack("{s:s}", "pool", argv[1]), NULL);
    if (words == 1)
        return wrong_usage(argv[0], "a limit or --clear is missing");
    return set_limit(argv, duration, reason);
}

/* Each pool in turn; the first failure's status. */
static int each_pool(char **argv, int words, const char *method, const char *reason) {
    int first = 0, status;

    for (int i = 1; i <= words; i++) {
        status = check_name(argv[0], "pool", argv[i]);
        if (status != 0)
            return status;
    }
    for (int i = 1; i <= words; i++) {
        status = client_ask(method, json_pack("{s:s, s:s*}", "pool", argv[i], "reason", reason), NULL);
        first = first != 0 ? first : status;
    }
    return first;
}

int verb_pause(int argc, char **argv) {
    const char *reason = NULL;
    const struct verb_option options[] = {{"--reason", NULL, &reason, NULL}};
    int words, status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), 1, WORDS_ANY, &words, &status) != 0)
        return status;
    return each_pool(argv, words, "io.berth.Pause", reason);
}

int verb_resume(int argc, char **argv) {
    int words, status;

    if (options_parse(argc, argv, NULL, 0, 1, WORDS_ANY, &words, &status) != 0)
        return status;
    return each_pool(argv, words, "io.berth.Resume", NULL);
}
