/* SPDX-License-Identifier: MIT */
/* berth start: its options and words. front/main.c carries out the usual form itself. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/name.h"
#include "cli/client.h"
#include "cli/start-jobs.h"
#include "cli/verbs.h"
#include "conf/parameter.h"

/* Checks all names before anything is started. Returns 0, or an exit status whose reason was printed. */
static int check_jobs(int argc, char **argv, json_t *set) {
    _cleanup_json_ json_t *found = NULL;
    int status =
        argc > 1 ? find_names("start", argv, argc, set, &found) : options_check_job("start", "job", argv[0]);

    for (int i = 0; status == 0 && i < (int) json_array_size(found); i++)
        if (!json_is_true(json_object_get(json_array_get(found, (size_t) i), "is_job"))) {
            fprintf(stderr, "berth: %s: a run, not a job; nothing was started\n", argv[i]);
            status = EXIT_UNKNOWN_NAME;
        }
    return status;
}

/* Reads NAME=VALUE of --set. berthd knows the parameters of each job. Returns 0, or an exit status whose
 * reason was printed. */
static int read_set(const struct string_list *list, json_t *ret) {
    char error[PARAMETER_ERROR_SIZE], name[PARAMETER_NAME_MAX + 1];

    for (size_t i = 0; i < list->n; i++) {
        const char *text = list->items[i];
        size_t n = parameter_name_length(text);

        if (parameter_check_set(text, error) < 0)
            return options_wrong_usage("start", "--set %s", error);
        snprintf(name, sizeof(name), "%.*s", (int) n, text);
        if (json_object_get(ret, name))
            return options_wrong_usage("start", "--set %s is given twice; keep one", name);
        if (json_object_set_new(ret, name, json_string(text + n + 1)) < 0)
            return client_explain_errno(-ENOMEM);
    }
    return 0;
}

int verb_start(int argc, char **argv) {
    _cleanup_json_ json_t *set = json_object();
    struct string_list sets = {};
    bool wait = false;
    const struct verb_option options[] = {OPTION_FLAG("--wait", &wait), OPTION_LIST("--set", &sets)};
    int words, status;

    words = options_parse(argc, argv, options, ELEMENTSOF(options), &status);
    if (words >= 0)
        status = read_set(&sets, set);
    if (words < 0 || status != 0)
        return status;
    status = check_jobs(words, argv + 1, set);
    return status != 0 ? status : start_jobs((size_t) words, argv + 1, set, wait);
}
