/* SPDX-License-Identifier: MIT */
/* The facts of `berth doctor`: the config and berthd's replies. Each call has a time limit, and a failed
 * call is a fact, too. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json/format.h"
#include "cli/client.h"
#include "cli/doctor/doctor.h"

#define PATH_SIZE 512
#define CALL_TIME (2 * USEC_PER_SEC) /* of one call */
#define SHARED_MAX 100                /* jobs; the next due times of more are not asked for */
#define ALL_TIME (5 * USEC_PER_SEC)  /* of all calls */

/* --- berthd --- */

/* Waits while berthd's listen queue is full. */
static int connect_until(struct client **ret, usec_t until) {
    int r;

    while ((r = client_connect(ret)) == -EAGAIN && clock_boottime() < until)
        (void) usleep(10 * USEC_PER_MSEC);
    return r;
}

/* Returns 0 with a reply, which may be an error of berthd, or a negative errno. params: stolen. */
static int ask(const char *method, json_t *params, usec_t until, struct client_reply *reply) {
    _cleanup_(client_freep) struct client *c = NULL;
    usec_t at = usec_add(clock_boottime(), CALL_TIME);
    int r;

    if (at > until)
        at = until;
    r = connect_until(&c, at);
    if (r < 0)
        json_decref(params);
    else
        r = client_send(c, method, params, 0);
    if (r == 0 || (r == -ECONNRESET && c))
        r = client_receive_before(c, reply, at);
    return r;
}

/* Stores the reply's parameters; NULL after an error. */
static int ask_for(const char *method, json_t *params, usec_t until, json_t **ret) {
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
    int r = ask(method, params, until, &reply);

    if (r == 0 && !reply.error)
        *ret = json_incref(reply.params);
    return r;
}

static void ask_of_redis(struct facts *f, usec_t until) {
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;

    if (ask("io.berth.Redis", NULL, until, &reply) < 0)
        return;
    f->has_no_redis = reply.error && strcmp(reply.error, "io.berth.BadRequest") == 0;
    if (!reply.error)
        f->redis = json_incref(reply.params);
}

/* Asks when the jobs that hosts share are due. Each job costs a call of Redis, which no check needs while this host
 * takes the due times itself. */
static void ask_of_next(struct facts *f, usec_t until) {
    bool is_drained = json_is_true(json_object_get(f->version, "drained"));
    json_t *names = json_array(), *job;
    size_t i;

    json_array_foreach (json_object_get(f->jobs, "jobs"), i, job)
        if (is_drained && strcmp(format_get_text(job, "on"), "any") == 0 && json_array_size(names) < SHARED_MAX)
            (void) json_array_append(names, json_object_get(job, "name"));
    if (json_array_size(names) > 0)
        (void) ask_for("io.berth.Next", json_pack("{s:O, s:i}", "jobs", names, "count", 1), until, &f->next);
    else
        f->next = json_pack("{s:[]}", "next");
    json_decref(names);
}

/* Asks for the version of berthd. A berthd that cannot start replies with the reason. */
static int ask_for_version(struct facts *f, usec_t until) {
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
    int r = ask("io.berth.Version", NULL, until, &reply);

    if (r == 0 && reply.error && *format_get_text(reply.params, "text"))
        f->daemon_refusal = strdup(format_get_text(reply.params, "text"));
    if (r == 0 && !reply.error)
        f->version = json_incref(reply.params);
    return r;
}

/* Calls that wait for Redis come last. */
static void ask_all(struct facts *f) {
    usec_t until = usec_add(clock_boottime(), ALL_TIME);

    f->daemon_error = ask_for_version(f, until);
    if (f->daemon_error == 0 && !f->version)
        f->daemon_error = -EBADMSG;
    if (f->daemon_error < 0)
        return;
    ask_of_redis(f, until);
    (void) ask_for("io.berth.Metrics", NULL, until, &f->metrics);
    (void) ask_for("io.berth.Runs", NULL, until, &f->runs);
    (void) ask_for("io.berth.Jobs", NULL, until, &f->jobs);
    ask_of_next(f, until);
    (void) ask_for("io.berth.Pools", NULL, until, &f->pools);
    if (!f->has_no_redis)
        (void) ask_for("io.berth.Hosts", NULL, until, &f->hosts);
}

/* --- the config --- */

static void read_config(struct facts *f) {
    f->config_error = settings_load(f->config_path, &f->settings, &f->errors);
    if (f->config_error != 0)
        return;
    (void) settings_check_machine(f->settings, &f->machine_errors);
    for (size_t i = 0; i < f->settings->n_files; i++) {
        struct stat st;

        if (stat(f->settings->files[i], &st) == 0 && st.st_mtime > f->config_changed)
            f->config_changed = st.st_mtime;
    }
}

static bool is_config_of(const struct settings *s, const json_t *version) {
    return strcmp(s->host, format_get_text(version, "host")) == 0 &&
           strcmp(s->namespace, format_get_text(version, "namespace")) == 0;
}

void facts_collect(struct facts *f, const char *config_path) {
    *f = (struct facts){.root = "", .config_path = config_path, .is_root = geteuid() == 0};
    read_config(f);
    f->now = clock_realtime();
    ask_all(f);
    if (f->settings && f->version && !is_config_of(f->settings, f->version)) {
        f->is_other_config = true;
        f->settings = settings_free(f->settings);
    }
}

void facts_done(struct facts *f) {
    json_t **replies[] = {&f->version, &f->redis, &f->metrics, &f->runs, &f->jobs, &f->next, &f->pools, &f->hosts};

    for (size_t i = 0; i < ELEMENTSOF(replies); i++)
        json_decref(*replies[i]);
    free(f->daemon_refusal);
    settings_errors_done(&f->errors);
    settings_errors_done(&f->machine_errors);
    f->settings = settings_free(f->settings);
    *f = (struct facts){0};
}

/* --- questions --- */

bool facts_metric(const struct facts *f, const char *name, double *ret) {
    const json_t *samples = json_object_get(json_object_get(f->metrics, "metrics"), name);
    const json_t *value = json_object_get(json_array_get(samples, 0), "value");

    *ret = json_number_value(value);
    return json_is_number(value);
}

const char *facts_host(const struct facts *f) {
    return format_get_text(f->version, "host");
}

bool facts_is_redis_away(const struct facts *f) {
    return f->redis && strcmp(format_get_text(f->redis, "state"), "connected") != 0;
}

bool facts_has_path(const struct facts *f, const char *path) {
    char whole[PATH_SIZE];
    struct stat st;

    (void) snprintf(whole, sizeof(whole), "%s%s", f->root, path);
    return stat(whole, &st) == 0;
}

/* Returns whether a reply describes Redis as it was some time ago. */
static bool is_stale(const json_t *reply) {
    return json_is_true(json_object_get(reply, "stale"));
}

const char *facts_missing(const struct facts *f, unsigned needs) {
    if (needs & NEEDS_SETTINGS && !f->settings)
        return f->is_other_config ? "needs the config of this berthd: -c"
                                  : "needs a readable config";
    if (needs & ~NEEDS_SETTINGS && !f->version)
        return "needs berthd";
    if (needs & NEEDS_REDIS && !f->redis && !f->has_no_redis)
        return "berthd did not answer in time";
    if (needs & NEEDS_JOBS && (!f->jobs || !f->next))
        return "berthd did not answer in time";
    if ((needs & NEEDS_METRICS && !f->metrics) || (needs & NEEDS_RUNS && !f->runs))
        return "berthd did not answer in time";
    if ((needs & NEEDS_POOLS && is_stale(f->pools)) || (needs & NEEDS_HOSTS && is_stale(f->hosts)))
        return "needs Redis";
    if ((needs & NEEDS_POOLS && !f->pools) || (needs & NEEDS_HOSTS && !f->hosts && !f->has_no_redis))
        return "berthd did not answer in time";
    return NULL;
}
