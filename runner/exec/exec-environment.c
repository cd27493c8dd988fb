/* SPDX-License-Identifier: MIT */
/* The environment of a command, layer by layer; later layers win. The child makes it: if an environment-file
 * is on a disk that does not answer, the guard can still kill the child. */

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/job-name.h"
#include "runner/exec/credentials.h"
#include "runner/exec/exec-internal.h"

#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define LANG_DEFAULT "C.UTF-8"

/* ---- files ---- */

/* Returns why root must not trust this file, or NULL. */
static const char *distrust(int fd, uid_t user) {
    struct stat st;

    if (fstat(fd, &st) < 0)
        return strerror(errno);
    if (!S_ISREG(st.st_mode))
        return "not a regular file";
    if (st.st_uid != 0 && st.st_uid != user)
        return "owned neither by root nor by the job's user";
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return "group or others may write to it";
    return NULL;
}

static int read_file(struct exec_context *context, const char *path) {
    struct environment_error error;
    _cleanup_close_ int fd = exec_open_file(path, O_RDONLY | O_NOFOLLOW);
    _cleanup_free_ char *text = NULL;
    const char *problem = fd < 0 ? NULL : distrust(fd, context->plan->uid);
    size_t size;
    int r;

    if (problem)
        return exec_explain(context, -EPERM, "environment-file %s: %s", path, problem);
    r = fd < 0 ? fd : file_read_fd(fd, ENVIRONMENT_FILE_MAX, &text, &size);
    if (r == -EFBIG)
        return exec_explain(context, r, "environment-file %s: larger than 64K", path);
    if (r == -ELOOP)
        return exec_explain(context, r, "environment-file %s: a symbolic link", path);
    if (r < 0)
        return exec_explain(context, r, "environment-file %s: %s", path, strerror(-r));
    r = environment_parse(&context->environment, text, size, &error);
    if (r == -EBADMSG)
        return exec_explain(context, r, "environment-file %s:%u: %s", path, error.line, error.problem);
    return r;
}

static int add_files(struct exec_context *context) {
    char **files = context->plan->job->input.environment_files;
    int r = 0;

    for (; r == 0 && files && *files; files++) {
        bool may_be_missing = **files == '-';

        r = read_file(context, *files + may_be_missing);
        if (r == -ENOENT && may_be_missing)
            r = 0;
    }
    return r;
}

/* ---- the layers ---- */

int exec_init_environment(struct environment *e, const struct passwd *user) {
    const char *name = user ? user->pw_name : "", *shell = user && user->pw_shell[0] ? user->pw_shell : "/bin/sh";
    const char *lang = getenv("LANG");
    const struct {
        const char *name, *value;
    } variables[] = {
        {"HOME", user ? user->pw_dir : "/"}, {"USER", name}, {"LOGNAME", name},
        {"SHELL", shell}, {"PATH", PATH_DEFAULT}, {"LANG", lang && *lang ? lang : LANG_DEFAULT},
    };
    int r = 0;

    for (size_t i = 0; r == 0 && i < ELEMENTSOF(variables); i++)
        r = environment_set(e, variables[i].name, variables[i].value);
    return r;
}

static int add_list(struct environment *e, char *const *items) {
    int r = 0;

    for (; r == 0 && items && *items; items++)
        r = environment_add(e, *items);
    return r;
}

static int add_fact(const char *variable, const char *value, void *userdata) {
    return environment_set(userdata, variable, value);
}

/* The last layer: a config cannot change the variables with which berth describes a run. */
static int add_run(struct environment *e, const struct guard_file *record) {
    char token[24];
    const struct {
        const char *name, *value;
    } variables[] = {
        {"BERTH_JOB", record->job}, {"BERTH_RUN", record->run},   {"BERTH_POOLS", record->pools},
        {"BERTH_TOKEN", token},     {"BERTH_HOST", record->host}, {"BERTH_NAMESPACE", record->namespace},
    };
    const char *instance = job_name_instance(record->job);
    int r = 0;

    snprintf(token, sizeof(token), "%" PRIu64, record->token);
    for (size_t i = 0; r == 0 && i < ELEMENTSOF(variables); i++)
        r = environment_set(e, variables[i].name, variables[i].value);
    if (r == 0 && instance)
        r = environment_set(e, "BERTH_INSTANCE", instance);
    return r == 0 ? facts_each(&record->facts, add_fact, e) : r;
}

static int add_credentials_directory(struct exec_context *context) {
    char *const *credentials = context->plan->job->input.credentials;
    char path[GUARD_FILE_PATH_SIZE];

    if (!credentials || !*credentials)
        return 0;
    return environment_set(&context->environment, "CREDENTIALS_DIRECTORY",
                           credentials_path(path, context->plan->runs, context->plan->record->run));
}

int exec_environment(struct exec_context *context) {
    struct environment *e = &context->environment;
    const char *sets[PARAMETERS_MAX + 1];
    int r = add_list(e, context->plan->environment.items);

    if (r == 0)
        r = add_files(context);
    if (r == 0)
        r = add_list(e, context->plan->job->input.environment);
    if (r == 0)
        r = add_list(e, sets_list(&context->plan->record->sets, sets));
    if (r == 0)
        r = add_credentials_directory(context);
    return r == 0 ? add_run(e, context->plan->record) : r;
}
