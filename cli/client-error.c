/* SPDX-License-Identifier: MIT */
/* berthd's errors as an exit status and a sentence (berth(1), EXIT STATUS). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/job-name.h"
#include "base/json/format.h"
#include "base/name.h"
#include "base/nearest.h"
#include "base/pool-name.h"
#include "cli/choice.h"
#include "cli/client.h"

#define KNOWN_SHOWN 20 /* names */

/* Returns whether the written name is that of a pattern without a key. */
static bool is_pattern_known(const char *written, const char *const *names, size_t n) {
    size_t length = strlen(written);

    for (size_t i = 0; i < n; i++)
        if (pool_name_parse(names[i]) == POOL_NAME_PATTERN && strncmp(names[i], written, length) == 0 &&
            strcmp(names[i] + length, "/*") == 0)
            return true;
    return false;
}

/* "no such pool: dbb (did you mean "db"? known: db, net)" */
static void explain_unknown(const json_t *params, const char *kind) {
    const json_t *known = json_object_get(params, "known");
    const char *written = format_get_text(params, "name"), *near;
    _cleanup_free_ const char **names = calloc(json_array_size(known) + 1, sizeof(*names));
    size_t n = 0, i;
    json_t *item;

    fprintf(stderr, "berth: no such %s: %s", kind, written);
    json_array_foreach(known, i, item)
        if (names && json_is_string(item))
            names[n++] = json_string_value(item);
    if (is_pattern_known(written, names, n)) {
        fprintf(stderr, " (did you mean \"%s/KEY\"?)", written);
    } else if (n > 0) {
        near = job_name_parse(written) == JOB_NAME_TEMPLATE ? NULL : nearest(written, names, n);
        fprintf(stderr, near ? " (did you mean \"%s\"? known: " : " (known: ", near);
        for (i = 0; i < n && i < KNOWN_SHOWN; i++)
            fprintf(stderr, "%s%s", i > 0 ? ", " : "", names[i]);
        fputs(n > KNOWN_SHOWN ? ", ...)" : ")", stderr);
    } else if (job_name_parse(written) == JOB_NAME_TEMPLATE) {
        fprintf(stderr, " (a template; name an instance, such as %sNAME)", written);
    } else if (json_is_array(known))
        fprintf(stderr, " (there is no %s)", kind);
    if (strcmp(kind, "job") == 0 && choice_is_short_id(written))
        fprintf(stderr, "; a run needs %d digits at least", ID_PREFIX_MIN);
    fputs("\n", stderr);
}

static void explain_pool(const json_t *params) {
    explain_unknown(params, "pool");
}
static void explain_job(const json_t *params) {
    explain_unknown(params, "job");
}
static void explain_run(const json_t *params) {
    explain_unknown(params, "run");
}
static void explain_claim(const json_t *params) {
    fprintf(stderr,
            "berth: no run %s holds permits or waits for them; `berth pools POOL` lists those that do\n",
            format_get_text(params, "name"));
}

static void explain_ambiguous(const json_t *params) {
    struct candidates candidates = {};
    json_t *item;
    size_t i;

    json_array_foreach(json_object_get(params, "candidates"), i, item)
        candidates_add(&candidates, format_get_text(item, "run"), format_get_text(item, "name"));
    (void) candidates_explain(&candidates, format_get_text(params, "name"));
}

static void explain_text(const json_t *params) {
    fprintf(stderr, "berth: %s\n", format_get_text(params, "text"));
}

static void explain_no_permit(const json_t *params) {
    const char *pool = json_string_value(json_object_get(params, "pool")), *reason = format_get_text(params, "reason");

    if (strcmp(reason, "grace") == 0)
        reason = "grace period: nothing is granted yet; berth redis says for how long";
    fprintf(stderr, pool ? "berth: no permit: %s (pool %s)\n" : "berth: no permit: %s\n", reason, pool);
}

static void explain_skipped(const json_t *params) {
    const char *run = json_string_value(json_object_get(params, "run"));
    const char *host = json_string_value(json_object_get(params, "host"));

    if (host)
        fprintf(stderr, "berth: skipped: a run of %s is on %s\n", format_get_text(params, "job"), host);
    else
        fprintf(stderr,
                run ? "berth: skipped: a run of %s is not over: %s\n"
                    : "berth: skipped: a run of %s is not over\n",
                format_get_text(params, "job"), run);
}

static void explain_config(const json_t *params) {
    const json_t *errors = json_object_get(params, "errors");
    json_t *item;
    size_t i;

    json_array_foreach(errors, i, item)
        fprintf(stderr, "%s\n", json_is_string(item) ? json_string_value(item) : "?");
    fputs("berth: the config was refused; nothing was changed\n", stderr);
}

static void explain_stopping(const json_t *params) {
    (void) params;
    fputs("berth: berthd is stopping\n", stderr);
}

static const struct error {
    const char *name;
    int status;
    void (*explain)(const json_t *params);
} errors[] = {
    {"io.berth.NoSuchPool", EXIT_UNKNOWN_NAME, explain_pool},
    {"io.berth.NoSuchJob", EXIT_UNKNOWN_NAME, explain_job},
    {"io.berth.NoSuchRun", EXIT_UNKNOWN_NAME, explain_run},
    {"io.berth.NoSuchClaim", EXIT_UNKNOWN_NAME, explain_claim},
    {"io.berth.Ambiguous", EXIT_UNKNOWN_NAME, explain_ambiguous},
    {"io.berth.BadRequest", EXIT_USAGE, explain_text},
    {"io.berth.NoPermit", EXIT_NO_PERMIT, explain_no_permit},
    {"io.berth.Skipped", EXIT_NO_PERMIT, explain_skipped},
    {"io.berth.Away", EXIT_AWAY, explain_text},
    {"io.berth.NotAllowed", EXIT_NOT_ALLOWED, explain_text},
    {"io.berth.ConfigRefused", EXIT_CONFIG, explain_config},
    {"io.berth.Stopping", EXIT_AWAY, explain_stopping},
    {"io.berth.TooMany", EXIT_AWAY, explain_text},
    {"io.berth.Failed", EXIT_FAILED, explain_text},
    {"io.berth.Conflict", EXIT_INTERNAL, explain_text},
    {"io.berth.Internal", EXIT_INTERNAL, explain_text},
};

static const struct error *find_error(const char *name) {
    for (size_t i = 0; i < ELEMENTSOF(errors); i++)
        if (strcmp(name, errors[i].name) == 0)
            return &errors[i];
    return NULL;
}

int client_exit_status(const struct client_reply *reply) {
    const struct error *error = reply->error ? find_error(reply->error) : NULL;

    return !reply->error ? 0 : error ? error->status : EXIT_INTERNAL;
}

bool client_is_transient(int error, const struct client_reply *reply) {
    if (error < 0)
        return error != -EACCES && error != -EPERM && error != -EBADMSG && error != -EMSGSIZE &&
               error != -ENOMEM;
    return strcmp(reply->error, "io.berth.Away") == 0 || strcmp(reply->error, "io.berth.Stopping") == 0;
}

int client_explain(const struct client_reply *reply) {
    const struct error *error = reply->error ? find_error(reply->error) : NULL;

    if (error)
        error->explain(reply->params);
    else if (reply->error)
        fprintf(stderr, "berth: berthd answered %s\n", reply->error);
    return client_exit_status(reply);
}

int client_explain_errno(int error) {
    const char *path = client_socket();

    switch (-error) {
    case ENOENT:
        fprintf(stderr, "berth: cannot reach berthd: %s does not exist (is berthd running? --socket names another)\n", path);
        return EXIT_AWAY;
    case ECONNREFUSED:
        fprintf(stderr, "berth: cannot reach berthd: no process listens on %s (is berthd running?)\n", path);
        return EXIT_AWAY;
    case EACCES:
    case EPERM:
        fprintf(stderr, "berth: not allowed to use %s (root and the group \"berth\" are; the group \"berth-look\" may look)\n", path);
        return EXIT_NOT_ALLOWED;
    case ECONNRESET:
        fprintf(stderr, "berth: berthd closed the connection on %s\n", path);
        return EXIT_AWAY;
    case EAGAIN:
        fprintf(stderr,
                "berth: berthd accepts no more connections on %s: it hangs or is overloaded (systemctl "
                "status berthd)\n",
                path);
        return EXIT_AWAY;
    case ETIMEDOUT:
        fprintf(stderr,
                "berth: berthd does not answer on %s: it hangs, or another program listens there (systemctl "
                "status berthd)\n",
                path);
        return EXIT_AWAY;
    case EBADMSG:
    case EMSGSIZE:
        fprintf(stderr, "berth: %s: the listening process does not speak Varlink\n", path);
        return EXIT_INTERNAL;
    case ENOMEM:
        fputs("berth: out of memory\n", stderr);
        return EXIT_INTERNAL;
    default:
        fprintf(stderr, "berth: cannot reach berthd on %s: %s\n", path, strerror(-error));
        return EXIT_AWAY;
    }
}
