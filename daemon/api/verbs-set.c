/* SPDX-License-Identifier: MIT */

/* Parameters that a trigger sets (conf/parameter.h): an object of strings in JSON, NAME=VALUE in berthd. */

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "conf/parameter.h"
#include "daemon/api/verbs-internal.h"

json_t *json_set(char *const *set) {
    json_t *o = json_object();
    char name[PARAMETER_NAME_MAX + 1];
    int k = 0;

    for (size_t i = 0; o && set && set[i]; i++) {
        size_t n = parameter_name_length(set[i]);

        snprintf(name, sizeof(name), "%.*s", (int) n, set[i]);
        k |= json_object_set_new(o, name, json_string(set[i] + n + 1));
    }
    if (k == 0)
        return o;
    json_decref(o);
    return NULL;
}

char **params_list_set(json_t *set) {
    char **list = calloc(json_object_size(set) + 1, sizeof(*list));
    const char *name;
    json_t *value;
    size_t n = 0;

    json_object_foreach (set, name, value) {
        if (!list || asprintf(&list[n], "%s=%s", name, json_string_value(value)) < 0) {
            if (list)
                list[n] = NULL;
            text_free_list(list);
            return NULL;
        }
        n++;
    }
    return list;
}

int params_check_set(struct control_call *call, struct manager *m, const char *name, char *const *set) {
    const struct job_settings *job = verbs_find_job(m, name);
    struct parameters parameters = {.job = name};
    char error[PARAMETER_ERROR_SIZE];
    size_t n = 0;
    int k;

    if (job) {
        parameters.texts = job->input.parameters;
        parameters.environment = job->input.environment;
    }
    while (set[n])
        n++;
    k = parameters_check(&parameters, set, n, error);
    if (k != -EINVAL)
        return k;
    k = verbs_bad_request(call, "%s", error);
    return k < 0 ? k : VERBS_ANSWERED;
}
