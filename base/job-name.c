/* SPDX-License-Identifier: MIT */
#include "base/job-name.h"

#include <stdio.h>
#include <string.h>

enum job_name job_name_parse(const char *text) {
    const char *at = strchr(text, '@');
    char first[NAME_FIRST_SIZE];

    if (!at)
        return name_is_valid(text) ? JOB_NAME_PLAIN : JOB_NAME_INVALID;
    name_copy_first(text, (size_t) (at - text), first);
    if (!name_is_valid(first) || strlen(text) > NAME_MAX_LENGTH)
        return JOB_NAME_INVALID;
    if (at[1] == '\0')
        return JOB_NAME_TEMPLATE;
    return name_is_valid(at + 1) ? JOB_NAME_INSTANCE : JOB_NAME_INVALID;
}

const char *job_name_explain(const char *text) {
    const char *at = strchr(text, '@');
    char first[NAME_FIRST_SIZE];

    if (!at)
        return name_explain(text);
    name_copy_first(text, (size_t) (at - text), first);
    if (!name_is_valid(first))
        return name_explain(first);
    if (at[1] != '\0' && !name_is_valid(at + 1))
        return name_explain(at + 1);
    return "is longer than 64 characters, '@' and instance included";
}

bool job_name_is_runnable(const char *text) {
    enum job_name kind = job_name_parse(text);

    return kind == JOB_NAME_PLAIN || kind == JOB_NAME_INSTANCE;
}

const char *job_name_instance(const char *text) {
    return job_name_parse(text) == JOB_NAME_INSTANCE ? strchr(text, '@') + 1 : NULL;
}

const char *job_name_template(const char *text, char buffer[static NAME_MAX_LENGTH + 1]) {
    if (job_name_parse(text) != JOB_NAME_INSTANCE)
        return NULL;
    (void) snprintf(buffer, NAME_MAX_LENGTH + 1, "%.*s@", (int) strcspn(text, "@"), text);
    return buffer;
}

bool job_name_matches(const char *template, const char *name) {
    return job_name_parse(template) == JOB_NAME_TEMPLATE && job_name_instance(name) &&
           strncmp(template, name, strlen(template)) == 0;
}
