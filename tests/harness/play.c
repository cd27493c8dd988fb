/* SPDX-License-Identifier: MIT */
#include "tests/harness/play.h"

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

struct play play;

/* --- the links, as daemon/executor/runner-link.h has them --- */

int runner_link_new(struct runner_link **ret, _unused_ sd_event *event, _unused_ const char *directory,
                    _unused_ const char *with_runner, _unused_ const char *config, const struct runner_link_handler *handler) {
    play.runner.handler = *handler;
    *ret = &play.runner;
    return 0;
}

struct runner_link *runner_link_free(_unused_ struct runner_link *l) {
    return NULL;
}

bool runner_link_is_up(_unused_ const struct runner_link *l) {
    return play.runner_up;
}

int runner_link_start(_unused_ struct runner_link *l, _unused_ const struct message_writer *start) {
    if (!play.runner_up)
        return -ENOTCONN;
    play.n_started++;
    if (play.on_start)
        play.on_start();
    return 0;
}

int runner_link_kill(_unused_ struct runner_link *l, _unused_ const char *run, _unused_ uint64_t token) {
    if (!play.runner_up)
        return -ENOTCONN;
    play.n_killed++;
    return 0;
}

int runner_link_forget(_unused_ struct runner_link *l, _unused_ const char *run) {
    play.n_forgotten++;
    return 0;
}

int guard_link_new(struct guard_link **ret, _unused_ sd_event *event, _unused_ const char *directory, const char *run,
                   const struct guard_link_handler *handler) {
    struct guard_link *g = play.guard_error == 0 ? calloc(1, sizeof(*g)) : NULL;

    if (!g)
        return play.guard_error < 0 ? play.guard_error : -ENOMEM;
    g->handler = *handler;
    snprintf(g->run, sizeof(g->run), "%s", run);
    play.guards[play.n_guards++ % ELEMENTSOF(play.guards)] = *ret = g;
    return 0;
}

struct guard_link *guard_link_free(struct guard_link *g) {
    for (size_t i = 0; i < ELEMENTSOF(play.guards); i++)
        if (play.guards[i] == g)
            play.guards[i] = NULL;
    free(g);
    return NULL;
}

pid_t guard_link_pid(_unused_ const struct guard_link *g) {
    return getpid();
}

void guard_link_set_deadline(_unused_ struct guard_link *g, _unused_ usec_t deadline) {
}

void guard_link_stop(_unused_ struct guard_link *g, enum supervise_reason reason) {
    play.n_stopped++;
    play.last_stop = reason;
}

void guard_link_done(_unused_ struct guard_link *g) {
    play.n_done++;
}

/* --- what the runner and the newest guard say --- */

void play_recovered(void) {
    play.runner.handler.on_recovered(play.runner.handler.userdata);
}

void play_finds_guard(const char *run) {
    play.runner.handler.on_guard(run, play.runner.handler.userdata);
}

void play_started(const struct run *r) {
    play.runner.handler.on_started(r->id, false, play.runner.handler.userdata);
}

void play_reports(const struct message *report) {
    play.runner.handler.on_report(report, play.runner.handler.userdata);
}

struct guard_link *play_guard(void) {
    return play.guards[(play.n_guards - 1) % ELEMENTSOF(play.guards)];
}

void play_parse(struct message *m, const struct message_writer *w) {
    TEST_INT(w->error, 0);
    TEST_INT(message_parse(m, w->text, w->size), 0);
}

void play_identity(struct message_writer *w, const struct run *r) {
    message_put(w, "run", r->id);
    message_put(w, "job", r->name);
    message_put_u64(w, "token", run_token(r));
    message_put_u64(w, "ticket", r->host_claim.ticket); /* what PROTOCOL_START names where there is no cluster pool */
    message_put(w, "pools", r->n_demands > 0 ? "slot:1" : "");
    message_put_u64(w, "queued", r->queued.realtime);
}

void play_make_state(struct message *m, const struct run *r) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_STATE);
    play_identity(&w, r);
    message_put(&w, "phase", "running");
    message_put(&w, "on-lease-lost", "stop");
    message_put_u64(&w, "pid", (uint64_t) getpid());
    message_put_u64(&w, "started", clock_realtime());
    play_parse(m, &w);
}

void play_make_report(struct message *m, const struct run *r, const char *key, uint64_t value, const char *reason) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_REPORT);
    play_identity(&w, r);
    message_put_u64(&w, key, value);
    if (strcmp(key, "code") == 0 || strcmp(key, "signal") == 0)
        message_put_u64(&w, "started", clock_realtime());
    message_put(&w, "reason", reason);
    message_put_u64(&w, "ended", clock_realtime());
    play_parse(m, &w);
}

void play_guard_says(struct guard_link *g, const struct message *state) {
    g->handler.on_state(g, state, g->handler.userdata);
}

void play_guard_goes(struct guard_link *g) {
    play.guard_error = -ECONNREFUSED;
    g->handler.on_gone(g, g->handler.userdata);
}

void play_guard_reports(const struct run *r, const char *key, uint64_t value, const char *reason) {
    struct guard_link *g = play_guard();
    struct message m;

    play_make_report(&m, r, key, value, reason);
    g->handler.on_report(g, &m, g->handler.userdata);
}

/* --- the manager --- */

static const char config[] = "runtime-directory = \"%s\"\n"
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

    snprintf(text, sizeof(text), config, play.directory, play.at_start ? "true" : "false",
             play.every ? play.every : "");
    source.text = text;
    source.size = strlen(text);
    TEST_INT(settings_parse(&source, 1, "here", &settings, &errors), 0);
    settings_errors_done(&errors);
    TEST_INT(manager_new(&play.manager, play.event, play.journal, settings, &options), 0);
}

void play_up(void) {
    bool at_start = play.at_start;
    const char *every = play.every;

    play = (struct play) {.directory = "/tmp/berth-manager-XXXXXX", .runner_up = true, .at_start = at_start, .every = every};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(play.directory));
    TEST_INT(sd_event_new(&play.event), 0);
    TEST_INT(journal_new(&play.journal, "test"), 0);
    make_manager();
    TEST_INT(manager_start(play.manager), 0);
}

void play_up_recovered(void) {
    play_up();
    play_recovered();
}

void play_restart(void) {
    play.manager = manager_free(play.manager);
    make_manager();
    TEST_INT(manager_start(play.manager), 0);
}

void play_new_manager(void) {
    play.manager = manager_free(play.manager);
    play.event = sd_event_unref(play.event);
    TEST_INT(sd_event_new(&play.event), 0);
    make_manager();
}

void play_down(void) {
    play.manager = manager_free(play.manager);
    play.journal = journal_free(play.journal);
    play.event = sd_event_unref(play.event);
    play.at_start = false;
    play.every = NULL;
    place_remove(play.directory);
}

void play_turn(void) {
    for (unsigned i = 0; i < 5; i++)
        TEST_INT(sd_event_run(play.event, 0) >= 0, 1);
}

bool play_await(bool (*is_there)(void *), void *userdata) {
    usec_t end = clock_boottime() + PATIENCE;

    while (!is_there(userdata)) {
        if (clock_boottime() > end || sd_event_run(play.event, USEC_PER_SEC) < 0)
            return false;
    }
    return true;
}

static bool is_starting(void *r) {
    return ((struct run *) r)->state == RUN_STATE_STARTING;
}

bool play_await_starting(struct run *r) {
    return play_await(is_starting, r);
}

static bool is_waiting(void *userdata) {
    struct run *r = userdata;

    return r->has_waiting_record && r->state == RUN_STATE_WAITING && r->queued_logged;
}

bool play_await_waiting(struct run *r) {
    return play_await(is_waiting, r);
}

static bool is_over(void *r) {
    return ((struct run *) r)->state == RUN_STATE_DONE;
}

bool play_await_over(struct run *r) {
    return play_await(is_over, r);
}

static bool is_released(void *r) {
    return is_over(r) && !((struct run *) r)->granted;
}

bool play_await_released(struct run *r) {
    return play_await(is_released, r);
}

static bool has_started(void *n) {
    return play.n_started >= *(unsigned *) n;
}

bool play_await_starts(unsigned n) {
    return play_await(has_started, &n);
}

struct run *play_begin(const char *job) {
    struct run *r = NULL;

    TEST_INT(manager_start_job(play.manager, job, NULL, &r), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

struct run *play_run(const char *job) {
    struct run *r = play_begin(job);
    struct message state;

    CU_ASSERT(play_await_starting(r));
    play_started(r);
    play_make_state(&state, r);
    play_guard_says(play_guard(), &state);
    TEST_INT(r->state, RUN_STATE_RUNNING);
    return r;
}

size_t play_count_files(const char *folder) {
    char path[64];
    size_t n = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/%s", play.directory, folder);
    dir = opendir(path);
    CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    (void) closedir(dir);
    return n;
}
