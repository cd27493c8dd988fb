/* SPDX-License-Identifier: MIT */
/* Verbs that do something: stop, revoke, grace, reload, drain. `berth start` is in cli/start.c. */
#include <stdio.h>
#include <string.h>

#include "base/name.h"
#include "cli/client.h"
#include "cli/verbs.h"
#include "cli/words.h"

int verb_stop(int argc, char **argv) {
    int words, status, first = 0;

    if (options_parse(argc, argv, NULL, 0, 1, WORDS_ANY, &words, &status) != 0)
        return status;
    for (int i = 1; i <= words; i++) {
        _cleanup_json_ json_t *answer = NULL;

        status = check_name(argv[0], "job or run", argv[i]);
        if (status == 0)
            status = client_ask("io.berth.Stop", json_pack("{s:s}", "target", argv[i]), &answer);
        if (status == 0 && words_number(answer, "stopped") == 0)
            fprintf(stderr, "berth: %s: nothing to stop\n", argv[i]);
        first = first != 0 ? first : status;
    }
    return first;
}

int verb_revoke(int argc, char **argv) {
    const char *reason = NULL;
    const struct verb_option options[] = {{"--reason", NULL, &reason, NULL}};
    int words, status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), 1, 1, &words, &status) != 0)
        return status;
    if (!id_is_valid(argv[1]))
        return wrong_usage(argv[0], "a claim is named by 32 hex digits, as `berth pools POOL` shows them");
    return client_ask("io.berth.Revoke", json_pack("{s:s, s:s*}", "claim", argv[1], "reason", reason), NULL);
}

int verb_grace(int argc, char **argv) {
    bool end = false;
    const struct verb_option options[] = {{"--end", &end, NULL, NULL}};
    int words, status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), 0, 0, &words, &status) != 0)
        return status;
    if (!end)
        return wrong_usage(argv[0], "--end is needed: only an administrator can know that a namespace is new");
    return client_ask("io.berth.EndGrace", NULL, NULL);
}

int verb_reload(int argc, char **argv) {
    int words, status;

    if (options_parse(argc, argv, NULL, 0, 0, 0, &words, &status) != 0)
        return status;
    return client_ask("io.berth.Reload", NULL, NULL);
}

int verb_drain(int argc, char **argv) {
    bool wait = false;
    const struct verb_option options[] = {{"--wait", &wait, NULL, NULL}};
    int words, status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), 0, 0, &words, &status) != 0)
        return status;
    return client_ask("io.berth.Drain", json_pack("{s:b}", "wait", wait), NULL);
}

int verb_undrain(int argc, char **argv) {
    int words, status;

    if (options_parse(argc, argv, NULL, 0, 0, 0, &words, &status) != 0)
        return status;
    return client_ask("io.berth.Undrain", NULL, NULL);
}
