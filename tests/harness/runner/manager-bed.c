/* SPDX-License-Identifier: MIT */
#include "tests/harness/runner/manager-bed.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/protocol.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

#define PATIENCE (5 * USEC_PER_SEC)

struct manager_bed manager_bed;

/* --- the links of daemon/executor/runner-link.h and guard-link.h --- */

int runner_link_new(struct runner_link **ret, _unused_ sd_event *event, _unused_ const char *directory,
                    _unused_ const char *with_runner, _unused_ const char *config, const struct runner_link_handler *handler) {
    manager_bed.runner.handler = *handler;
    *ret = &manager_bed.runner;
    return 0;
}

struct runner_link *runner_link_free(_unused_ struct runner_link *l) {
    return NULL;
}

bool runner_link_is_up(_unused_ const struct runner_link *l) {
    return manager_bed.runner_up;
}

int runner_link_start(_unused_ struct runner_link *l, _unused_ const struct message_writer *start) {
    if (!manager_bed.runner_up)
        return -ENOTCONN;
    manager_bed.n_started++;
    if (manager_bed.on_start)
        manager_bed.on_start();
    return 0;
}

int runner_link_prepare(_unused_ struct runner_link *l, _unused_ const struct message_writer *prepare) {
    if (!manager_bed.runner_up)
        return -ENOTCONN;
    manager_bed.n_prepared++;
    return 0;
}

int runner_link_reap(_unused_ struct runner_link *l, _unused_ const char *run, _unused_ uint64_t token) {
    return 0;
}

int runner_link_kill(_unused_ struct runner_link *l, _unused_ const char *run, _unused_ uint64_t token) {
    if (!manager_bed.runner_up)
        return -ENOTCONN;
    manager_bed.n_killed++;
    return 0;
}

int runner_link_forget(_unused_ struct runner_link *l, _unused_ const char *run) {
    manager_bed.n_forgotten++;
    return 0;
}

int guard_link_new(struct guard_link **ret, _unused_ sd_event *event, _unused_ const char *directory, const char *run,
                   const struct guard_link_handler *handler) {
    struct guard_link *g = manager_bed.guard_error == 0 ? calloc(1, sizeof(*g)) : NULL;

    if (!g)
        return manager_bed.guard_error < 0 ? manager_bed.guard_error : -ENOMEM;
    g->handler = *handler;
    snprintf(g->run, sizeof(g->run), "%s", run);
    manager_bed.guards[manager_bed.n_guards++ % ELEMENTSOF(manager_bed.guards)] = *ret = g;
    return 0;
}

struct guard_link *guard_link_free(struct guard_link *g) {
    for (size_t i = 0; i < ELEMENTSOF(manager_bed.guards); i++)
        if (manager_bed.guards[i] == g)
            manager_bed.guards[i] = NULL;
    free(g);
    return NULL;
}

pid_t guard_link_pid(_unused_ const struct guard_link *g) {
    return manager_bed.is_unaccepted ? 0 : getpid();
}

bool guard_link_awaits_answer(_unused_ const struct guard_link *g) {
    return manager_bed.is_silent;
}

bool guard_link_is_silent(_unused_ const struct guard_link *g, _unused_ usec_t time) {
    return manager_bed.is_silent;
}

void guard_link_set_deadline(_unused_ struct guard_link *g, _unused_ usec_t deadline) {
}

int guard_link_grant(_unused_ struct guard_link *g, _unused_ uint64_t token, _unused_ uint64_t ticket, _unused_ usec_t deadline) {
    if (manager_bed.grant_error < 0)
        return manager_bed.grant_error;
    manager_bed.n_granted++;
    return 0;
}

void guard_link_set_handler(struct guard_link *g, const struct guard_link_handler *handler) {
    g->handler = *handler;
}

void guard_link_stop(_unused_ struct guard_link *g, enum supervise_reason reason) {
    manager_bed.n_stopped++;
    manager_bed.last_stop = reason;
}

void guard_link_done(_unused_ struct guard_link *g) {
    manager_bed.n_done++;
}

/* --- messages of the runner and the newest guard --- */

void manager_bed_recovered(void) {
    manager_bed.runner.handler.on_recovered(manager_bed.runner.handler.userdata);
}

void manager_bed_found_guard(const char *run) {
    manager_bed.runner.handler.on_guard(run, manager_bed.runner.handler.userdata);
}

void manager_bed_started(const struct run *r) {
    manager_bed.runner.handler.on_started(r->id, false, manager_bed.runner.handler.userdata);
}

void manager_bed_prepared(const struct run *r) {
    manager_bed.runner.handler.on_prepared(r->id, manager_bed.runner.handler.userdata);
}

void manager_bed_refused(const struct run *r, const char *reason) {
    manager_bed.runner.handler.on_refused(r->id, reason, reason, manager_bed.runner.handler.userdata);
}

void manager_bed_report(const struct message *report) {
    manager_bed.runner.handler.on_report(report, manager_bed.runner.handler.userdata);
}

struct guard_link *manager_bed_guard(void) {
    return manager_bed.guards[(manager_bed.n_guards - 1) % ELEMENTSOF(manager_bed.guards)];
}

void manager_bed_parse(struct message *m, const struct message_writer *w) {
    TEST_INT(w->error, 0);
    TEST_INT(message_parse(m, w->text, w->size), 0);
}

void manager_bed_identity(struct message_writer *w, const struct run *r) {
    message_put(w, "run", r->id);
    message_put(w, "job", r->name);
    message_put_u64(w, "token", run_token(r));
    message_put_u64(w, "ticket", r->host_claim->ticket); /* what PROTOCOL_START names where there is no cluster pool */
    message_put(w, "pools", r->n_demands > 0 ? "slot:1" : "");
    message_put(w, "scopes", r->n_demands > 0 ? "h" : "");
    message_put_u64(w, "queued", r->queued.realtime);
    message_put_u64(w, "queued-boot", r->queued.boottime);
}

void manager_bed_make_state(struct message *m, const struct run *r) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_STATE);
    manager_bed_identity(&w, r);
    message_put(&w, "phase", "running");
    message_put(&w, "on-lease-lost", "stop");
    message_put_u64(&w, "pid", (uint64_t) getpid());
    message_put_u64(&w, "started", clock_boottime());
    manager_bed_parse(m, &w);
}

void manager_bed_make_report(struct message *m, const struct run *r, const char *key, uint64_t value,
                             const char *reason) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_REPORT);
    manager_bed_identity(&w, r);
    message_put_u64(&w, key, value);
    if (strcmp(key, "code") == 0 || strcmp(key, "signal") == 0)
        message_put_u64(&w, "started", clock_boottime());
    message_put(&w, "reason", reason);
    message_put_u64(&w, "ended", clock_realtime());
    manager_bed_parse(m, &w);
}

void manager_bed_guard_state(struct guard_link *g, const struct message *state) {
    g->handler.on_state(g, state, g->handler.userdata);
}

void manager_bed_guard_gone(struct guard_link *g) {
    manager_bed.guard_error = -ECONNREFUSED;
    g->handler.on_gone(g, g->handler.userdata);
}

void manager_bed_guard_report(const struct run *r, const char *key, uint64_t value, const char *reason) {
    struct guard_link *g = manager_bed_guard();
    struct message m;

    manager_bed_make_report(&m, r, key, value, reason);
    g->handler.on_report(g, &m, g->handler.userdata);
}

/* --- the manager --- */

static const char config[] = "%s"
                             "runtime-directory = \"%s\"\n"
                             "host = \"here\"\n"
                             "pool \"slot\" { limit = 1 scope = \"host\" }\n"
                             "pool \"wide\" { limit = 8 scope = \"host\" }\n"
                             "job \"one\" { command = {\"/bin/true\"} pools = {\"slot\"} overlap = \"allow\" }\n"
                             "job \"skipped\" { command = {\"/bin/true\"} pools = {\"slot\"} }\n"
                             "job \"queued\" { command = {\"/bin/true\"} pools = {\"slot\"} overlap = \"queue\" }\n"
                             "job \"first\" { command = {\"/bin/true\"} at-start = %s every = \"%s\" }\n";

static void make_manager(void) {
    struct settings_errors errors = {};
    struct manager_options options = {.config = "/nowhere"};
    struct settings *settings = NULL;
    struct settings_source source = {.file = "test.conf"};
    char text[2048];

    snprintf(text, sizeof(text), config,
             manager_bed.has_redis ? "redis { url = \"unix:///nowhere\" }\n" : "", manager_bed.directory, manager_bed.at_start ? "true" : "false",
             manager_bed.every ? manager_bed.every : "");
    source.text = text;
    source.size = strlen(text);
    TEST_INT(settings_parse(&source, 1, "here", &settings, &errors), 0);
    settings_errors_done(&errors);
    TEST_INT(manager_new(&manager_bed.manager, manager_bed.event, manager_bed.journal, settings, &options),
             0);
}

void manager_bed_up(void) {
    bool at_start = manager_bed.at_start, has_redis = manager_bed.has_redis;
    const char *every = manager_bed.every;

    manager_bed = (struct manager_bed){
        .directory = "/tmp/berth-manager-XXXXXX", .runner_up = true, .has_redis = has_redis, .at_start = at_start, .every = every};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(manager_bed.directory));
    TEST_INT(sd_event_new(&manager_bed.event), 0);
    TEST_INT(journal_new(&manager_bed.journal, "test"), 0);
    make_manager();
    TEST_INT(manager_start(manager_bed.manager), 0);
}

void manager_bed_up_recovered(void) {
    manager_bed_up();
    manager_bed_recovered();
}

void manager_bed_restart(void) {
    manager_bed.manager = manager_free(manager_bed.manager);
    make_manager();
    TEST_INT(manager_start(manager_bed.manager), 0);
}

void manager_bed_new_manager(void) {
    manager_bed.manager = manager_free(manager_bed.manager);
    manager_bed.event = sd_event_unref(manager_bed.event);
    TEST_INT(sd_event_new(&manager_bed.event), 0);
    make_manager();
}

void manager_bed_down(void) {
    manager_bed.manager = manager_free(manager_bed.manager);
    manager_bed.journal = journal_free(manager_bed.journal);
    manager_bed.event = sd_event_unref(manager_bed.event);
    manager_bed.at_start = false;
    manager_bed.every = NULL;
    place_remove(manager_bed.directory);
}

void manager_bed_turn(void) {
    for (unsigned i = 0; i < 5; i++)
        TEST_INT(sd_event_run(manager_bed.event, 0) >= 0, 1);
}

bool manager_bed_await(bool (*is_there)(void *), void *userdata) {
    usec_t end = clock_boottime() + PATIENCE;

    while (!is_there(userdata)) {
        if (clock_boottime() > end || sd_event_run(manager_bed.event, USEC_PER_SEC) < 0)
            return false;
    }
    return true;
}

static bool is_starting(void *r) {
    return ((struct run *) r)->state == RUN_STATE_STARTING;
}

bool manager_bed_await_starting(struct run *r) {
    return manager_bed_await(is_starting, r);
}

static bool is_waiting(void *userdata) {
    struct run *r = userdata;

    return r->recorded.waiting && r->state == RUN_STATE_WAITING && r->recorded.queued;
}

bool manager_bed_await_waiting(struct run *r) {
    return manager_bed_await(is_waiting, r);
}

static bool is_over(void *r) {
    return ((struct run *) r)->state == RUN_STATE_DONE;
}

bool manager_bed_await_over(struct run *r) {
    return manager_bed_await(is_over, r);
}

static bool is_released(void *r) {
    return is_over(r) && !((struct run *) r)->granted;
}

bool manager_bed_await_released(struct run *r) {
    return manager_bed_await(is_released, r);
}

static bool has_started(void *n) {
    return manager_bed.n_started >= *(unsigned *) n;
}

bool manager_bed_await_starts(unsigned n) {
    return manager_bed_await(has_started, &n);
}

struct run *manager_bed_begin(const char *job) {
    struct run *r = NULL;

    TEST_INT(manager_start_job(manager_bed.manager, job, NULL, &r), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

struct run *manager_bed_run(const char *job) {
    struct run *r = manager_bed_begin(job);
    struct message state;

    CU_ASSERT(manager_bed_await_starting(r));
    manager_bed_started(r);
    manager_bed_make_state(&state, r);
    manager_bed_guard_state(manager_bed_guard(), &state);
    TEST_INT(r->state, RUN_STATE_RUNNING);
    return r;
}

size_t manager_bed_count_files(const char *folder) {
    char path[64];
    size_t n = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/%s", manager_bed.directory, folder);
    dir = opendir(path);
    CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    (void) closedir(dir);
    return n;
}

size_t manager_bed_count_runs(const char *name) {
    struct manager_job job;

    manager_get_job(manager_bed.manager, settings_find_job(manager_settings(manager_bed.manager), name),
                    &job);
    return job.n_runs;
}

void manager_bed_end_first(void) {
    struct run *r;

    CU_ASSERT(manager_bed_await_starts(1));
    r = list_first(manager_runs(manager_bed.manager, RUN_STATE_STARTING), struct run, link);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    manager_bed_started(r);
    manager_bed_guard_report(r, "code", 0, "none");
}
