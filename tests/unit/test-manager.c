/* SPDX-License-Identifier: MIT */

/* The manager's decisions, with the real memory store and a runner and guards that are played here (their symbols stand before those
 * of the archive). The event loop runs until what is awaited is there. */

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/protocol.h"
#include "daemon/manager.h"
#include "daemon/runner-link.h"
#include "tests/harness/test.h"

#define TURN_MAX (5 * USEC_PER_SEC)

/* --- the runner and its guards, as this test plays them --- */

struct runner_link {
    struct runner_link_handler handler;
};
struct guard_link {
    struct guard_link_handler handler;
    char run[ID_TEXT_SIZE];
};

static struct runner_link runner;
static bool runner_up;
static unsigned n_started, n_killed, n_forgotten, n_stopped, n_done;
static struct message_writer last_start;
static enum supervise_reason last_stop;
static struct guard_link *guards[8]; /* by number of connection; NULL: gone */
static size_t n_guards;

int runner_link_new(struct runner_link **ret, _unused_ sd_event *event, _unused_ const char *directory,
                    _unused_ const char *with_runner, _unused_ const char *config, const struct runner_link_handler *handler) {
    runner.handler = *handler;
    *ret = &runner;
    return 0;
}
struct runner_link *runner_link_free(_unused_ struct runner_link *l) {
    return NULL;
}
bool runner_link_is_up(_unused_ const struct runner_link *l) {
    return runner_up;
}
int runner_link_start(_unused_ struct runner_link *l, const struct message_writer *start) {
    if (!runner_up)
        return -ENOTCONN;
    last_start = *start;
    n_started++;
    return 0;
}
int runner_link_kill(_unused_ struct runner_link *l, _unused_ const char *run) {
    n_killed++;
    return 0;
}
int runner_link_forget(_unused_ struct runner_link *l, _unused_ const char *run) {
    n_forgotten++;
    return 0;
}
int guard_link_new(struct guard_link **ret, _unused_ sd_event *event, _unused_ const char *directory, const char *run,
                   const struct guard_link_handler *handler) {
    struct guard_link *g = calloc(1, sizeof(*g));

    g->handler = *handler;
    snprintf(g->run, sizeof(g->run), "%s", run);
    guards[n_guards++ % ELEMENTSOF(guards)] = *ret = g;
    return 0;
}
struct guard_link *guard_link_free(struct guard_link *g) {
    for (size_t i = 0; i < ELEMENTSOF(guards); i++)
        if (guards[i] == g)
            guards[i] = NULL;
    free(g);
    return NULL;
}
pid_t guard_link_pid(_unused_ const struct guard_link *g) {
    return getpid();
}
void guard_link_set_deadline(_unused_ struct guard_link *g, _unused_ usec_t deadline) {
}
void guard_link_stop(_unused_ struct guard_link *g, enum supervise_reason reason) {
    n_stopped++;
    last_stop = reason;
}
void guard_link_done(_unused_ struct guard_link *g) {
    n_done++;
}

static struct guard_link *newest_guard(void) {
    return guards[(n_guards - 1) % ELEMENTSOF(guards)];
}

static void parse(struct message *m, const struct message_writer *w) {
    TEST_INT(w->error, 0);
    TEST_INT(message_parse(m, w->text, w->size), 0);
}

static void put_identity(struct message_writer *w, const struct run *r) {
    message_put(w, "run", r->id);
    message_put(w, "job", r->name);
    message_put(w, "claim", r->cluster_claim.id);
    message_put_u64(w, "token", run_token(r));
    message_put_u64(w, "ticket", 1);
    message_put(w, "pools", "slot:1");
    message_put_u64(w, "queued", r->queued_realtime);
}

static void guard_says_started(const struct run *r) {
    struct guard_link *g = newest_guard();
    struct message_writer w;
    struct message m;

    message_begin(&w, PROTOCOL_STATE);
    put_identity(&w, r);
    message_put(&w, "phase", "running");
    message_put_u64(&w, "pid", (uint64_t) getpid());
    message_put_u64(&w, "started", clock_realtime());
    parse(&m, &w);
    g->handler.on_state(g, &m, g->handler.userdata);
}

static void make_report(struct message *m, const struct run *r, const char *key, uint64_t value, const char *reason) {
    struct message_writer w;

    message_begin(&w, PROTOCOL_REPORT);
    put_identity(&w, r);
    message_put_u64(&w, key, value);
    message_put(&w, "reason", reason);
    message_put_u64(&w, "ended", clock_realtime());
    parse(m, &w);
}

static void guard_reports(const struct run *r, const char *key, uint64_t value, const char *reason) {
    struct guard_link *g = newest_guard();
    struct message m;

    make_report(&m, r, key, value, reason);
    g->handler.on_report(g, &m, g->handler.userdata);
}

/* --- a manager in a directory of its own --- */

static char directory[32];
static sd_event *event;
static struct journal *journal;
static struct manager *manager;

static const char config[] = "runtime-directory = \"%s\"\n"
                             "host = \"here\"\n"
                             "pool \"slot\" { limit = 1 scope = \"host\" }\n"
                             "pool \"wide\" { limit = 8 scope = \"host\" }\n"
                             "job \"one\" { command = {\"/bin/true\"} pools = {\"slot\"} overlap = \"allow\" }\n"
                             "job \"skipped\" { command = {\"/bin/true\"} pools = {\"slot\"} }\n"
                             "job \"queued\" { command = {\"/bin/true\"} pools = {\"slot\"} overlap = \"queue\" }\n"
                             "job \"first\" { command = {\"/bin/true\"} at-start = %s }\n";
static bool at_start;

static void make_manager(void) {
    struct settings_errors errors = {};
    struct manager_options options = {.config = "/nowhere"};
    struct settings *settings = NULL;
    struct settings_source source = {.file = "test.conf"};
    char text[2048];

    snprintf(text, sizeof(text), config, directory, at_start ? "true" : "false");
    source.text = text;
    source.size = strlen(text);
    TEST_INT(settings_parse(&source, 1, "here", &settings, &errors), 0);
    settings_errors_done(&errors);
    TEST_INT(manager_new(&manager, event, journal, settings, &options), 0);
    TEST_INT(manager_start(manager), 0);
}

static void set_up(bool gather) {
    snprintf(directory, sizeof(directory), "/tmp/berth-manager-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
    n_started = n_killed = n_forgotten = n_stopped = n_done = 0;
    n_guards = 0;
    runner_up = true;
    TEST_INT(sd_event_new(&event), 0);
    TEST_INT(journal_new(&journal, "test"), 0);
    make_manager();
    if (gather)
        runner.handler.on_gathered(runner.handler.userdata);
}

static int remove_one(const char *path, _unused_ const struct stat *st, _unused_ int flag, _unused_ struct FTW *ftw) {
    return remove(path);
}

static void tear_down(void) {
    manager = manager_free(manager);
    journal = journal_free(journal);
    event = sd_event_unref(event);
    (void) nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static bool await(bool (*is_there)(void *), void *userdata) {
    usec_t end = clock_boottime() + TURN_MAX;

    while (!is_there(userdata)) {
        if (clock_boottime() > end || sd_event_run(event, USEC_PER_SEC) < 0)
            return false;
    }
    return true;
}

static bool has_state(struct run *r, enum run_state state) {
    return r->state == state;
}
static bool is_waiting(void *r) {
    return ((struct run *) r)->recorded && has_state(r, RUN_STATE_WAITING) && ((struct run *) r)->queued_told;
}
static bool is_starting(void *r) {
    return has_state(r, RUN_STATE_STARTING);
}
static bool is_over(void *r) {
    return has_state(r, RUN_STATE_DONE);
}
static bool is_released(void *r) {
    return is_over(r) && !((struct run *) r)->granted;
}
static bool is_store_ready(_unused_ void *userdata) {
    return manager_host_store(manager)->state == STORE_STATE_READY;
}
static bool has_started(void *n) {
    return n_started >= *(unsigned *) n;
}

static struct run *begin(const char *job) {
    struct run *r = NULL;

    TEST_INT(manager_start_job(manager, job, &r), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    return r;
}

static struct run *run_it(const char *job) {
    struct run *r = begin(job);

    CU_ASSERT(await(is_starting, r));
    runner.handler.on_started(r->id, false, runner.handler.userdata);
    guard_says_started(r);
    TEST_INT(r->state, RUN_STATE_RUNNING);
    return r;
}

static size_t count_files(const char *folder) {
    char path[64];
    size_t n = 0;
    DIR *dir;

    snprintf(path, sizeof(path), "%s/%s", directory, folder);
    dir = opendir(path);
    CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    (void) closedir(dir);
    return n;
}

/* --- tests --- */

static void test_one_run(void) {
    struct run *r;

    set_up(true);
    r = run_it("one");
    TEST_INT(count_files("waiting"), 0);
    guard_reports(r, "code", 3, "none");
    TEST_INT(r->result, RUN_RESULT_FAILURE);
    TEST_INT(r->exit_code, 3);
    TEST_INT(n_done, 1); /* only now may the guard end */
    CU_ASSERT(await(is_released, r));
    tear_down();
}

static void test_nothing_before_gathered(void) {
    struct run *r, *first;
    unsigned two = 2;

    at_start = true;
    set_up(false);
    at_start = false;
    r = begin("one");
    for (int i = 0; i < 5; i++)
        TEST_INT(sd_event_run(event, 0) >= 0, 1);
    TEST_INT(r->state, RUN_STATE_PENDING);
    TEST_INT(n_started, 0);
    runner.handler.on_gathered(runner.handler.userdata);
    CU_ASSERT(await(has_started, &two)); /* and the job that is to run at start */
    first = list_first(manager_runs(manager, RUN_STATE_STARTING), struct run, link);
    CU_ASSERT_PTR_NOT_NULL(first);
    tear_down();
}

static void test_limit_and_order(void) {
    struct run *a, *b, *c;

    set_up(true);
    a = run_it("one");
    b = begin("one");
    c = begin("one");
    CU_ASSERT(await(is_waiting, c));
    TEST_INT(b->state, RUN_STATE_WAITING);
    TEST_INT(count_files("waiting") >= 2, 1);
    guard_reports(a, "code", 0, "none");
    CU_ASSERT(await(is_starting, b));
    TEST_INT(c->state, RUN_STATE_WAITING);
    manager_stop_run(manager, c, "stopped");
    TEST_INT(c->result, RUN_RESULT_STOPPED);
    CU_ASSERT(await(is_released, c));
    tear_down();
}

static void test_overlap(void) {
    struct run *r, *again = NULL;
    unsigned three = 3;

    set_up(true);
    r = run_it("skipped");
    TEST_INT(manager_start_job(manager, "skipped", &again), MANAGER_E_SKIPPED);
    CU_ASSERT_PTR_EQUAL(again, r);
    guard_reports(r, "code", 0, "none");
    r = run_it("queued");
    TEST_INT(manager_start_job(manager, "queued", &again), 0);
    CU_ASSERT_PTR_EQUAL(again, r);
    TEST_INT(manager_start_job(manager, "queued", &again), MANAGER_E_SKIPPED);
    n_started = 2;
    guard_reports(r, "code", 0, "none");
    CU_ASSERT(await(has_started, &three));
    tear_down();
}

static void test_stop(void) {
    struct run *r;

    set_up(true);
    r = run_it("one");
    manager_stop_run(manager, r, "stopped");
    TEST_INT(r->state, RUN_STATE_STOPPING);
    TEST_INT(n_stopped, 1);
    TEST_INT(last_stop, SUPERVISE_REASON_STOPPED);
    manager_stop_run(manager, r, "stopped");
    TEST_INT(n_stopped, 1);
    guard_reports(r, "signal", SIGTERM, "stopped");
    TEST_INT(r->result, RUN_RESULT_STOPPED);
    TEST_INT(r->signal, SIGTERM);
    tear_down();
}

static void test_stop_before_guard(void) {
    struct run *r;

    set_up(true);
    r = begin("one");
    CU_ASSERT(await(is_starting, r));
    manager_stop_run(manager, r, "stopped");
    TEST_INT(r->state, RUN_STATE_STOPPING); /* its guard may be there already: the permit stays */
    runner.handler.on_started(r->id, false, runner.handler.userdata);
    guard_says_started(r);
    TEST_INT(n_stopped, 1);
    tear_down();
}

static void test_guard_gone(void) {
    struct run *r;
    struct guard_link *g;
    struct message report;

    set_up(true);
    r = run_it("one");
    g = newest_guard();
    g->handler.on_gone(g, g->handler.userdata);
    TEST_INT(n_killed, 1);
    TEST_INT(r->state, RUN_STATE_RUNNING); /* nothing is given back without a report */
    make_report(&report, r, "lost", 1, "none");
    runner.handler.on_report(&report, runner.handler.userdata);
    TEST_INT(r->result, RUN_RESULT_GUARD_DIED);
    TEST_INT(n_forgotten, 1);
    runner.handler.on_report(&report, runner.handler.userdata); /* told twice */
    TEST_INT(n_forgotten, 2);
    tear_down();
}

static void test_refused(void) {
    struct run *r;

    set_up(true);
    r = begin("one");
    CU_ASSERT(await(is_starting, r));
    runner.handler.on_refused(r->id, "unknown-job", "no job \"one\"", runner.handler.userdata);
    TEST_INT(r->result, RUN_RESULT_NOT_STARTED);
    CU_ASSERT(await(is_released, r));
    TEST_STRING(r->reason, "unknown-job: no job \"one\"");
    tear_down();
}

static void test_not_started(void) {
    struct run *r;

    set_up(true);
    r = begin("one");
    CU_ASSERT(await(is_starting, r));
    runner.handler.on_started(r->id, false, runner.handler.userdata);
    guard_reports(r, "errno", ENOENT, "none");
    TEST_INT(r->result, RUN_RESULT_NOT_STARTED);
    tear_down();
}

static void test_no_such_user(void) {
    struct message_writer w;
    struct message report;
    struct run *r;

    set_up(true);
    r = begin("one");
    CU_ASSERT(await(is_starting, r));
    message_begin(&w, PROTOCOL_REPORT);
    put_identity(&w, r);
    message_put(&w, "stage", "user");
    message_put_u64(&w, "errno", ESRCH);
    parse(&report, &w);
    runner.handler.on_report(&report, runner.handler.userdata);
    TEST_STRING(r->reason, "user: there is no such user");
    tear_down();
}

static void test_runner_away(void) {
    struct run *r;

    set_up(true);
    runner_up = false;
    r = begin("one");
    CU_ASSERT(await(is_starting, r));
    TEST_INT(r->starting_sent, 0);
    runner_up = true;
    n_started = 0;
    runner.handler.on_gathered(runner.handler.userdata);
    TEST_INT(n_started, 1);
    CU_ASSERT(r->starting_sent);
    tear_down();
}

/* A killed berthd: its guard and its queued run are found again, nothing is started twice. */
static void test_restart(void) {
    struct run *r, *w, *found;
    char running[ID_TEXT_SIZE], waiting[ID_TEXT_SIZE];
    struct message_writer state;
    struct message m;
    struct guard_link *g;

    set_up(true);
    r = run_it("one");
    w = begin("one");
    CU_ASSERT(await(is_waiting, w));
    memcpy(running, r->id, sizeof(running));
    memcpy(waiting, w->id, sizeof(waiting));
    message_begin(&state, PROTOCOL_STATE);
    put_identity(&state, r);
    message_put(&state, "phase", "running");
    message_put(&state, "on-lease-lost", "stop");
    message_put_u64(&state, "pid", (uint64_t) getpid());
    message_put_u64(&state, "started", clock_realtime());
    parse(&m, &state);
    manager = manager_free(manager);

    n_started = 0;
    make_manager();
    runner.handler.on_guard(running, runner.handler.userdata);
    runner.handler.on_gathered(runner.handler.userdata);
    CU_ASSERT_PTR_NULL(manager_find_run(manager, waiting)); /* not before the guard has told */
    g = newest_guard();
    g->handler.on_state(g, &m, g->handler.userdata);
    found = manager_find_run(manager, running);
    CU_ASSERT_PTR_NOT_NULL_FATAL(found);
    TEST_INT(found->state, RUN_STATE_RUNNING);
    w = manager_find_run(manager, waiting);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    TEST_INT(w->state, RUN_STATE_WAITING);
    for (int i = 0; i < 5; i++)
        TEST_INT(sd_event_run(event, 0) >= 0, 1);
    TEST_INT(w->state, RUN_STATE_WAITING); /* the limit of 1 is used by what was found */
    guard_reports(found, "code", 0, "none");
    CU_ASSERT(await(is_starting, w));
    tear_down();
}

/* The runner was lost and came back before a guard told its state: it names that guard once more. */
static void test_guard_named_twice(void) {
    struct message_writer state;
    struct guard_link *twice[2];
    char id[ID_TEXT_SIZE];
    struct message m;
    struct run *r;

    set_up(true);
    r = run_it("one");
    memcpy(id, r->id, sizeof(id));
    message_begin(&state, PROTOCOL_STATE);
    put_identity(&state, r);
    message_put_u64(&state, "pid", (uint64_t) getpid());
    parse(&m, &state);
    manager = manager_free(manager);
    make_manager();
    for (size_t i = 0; i < ELEMENTSOF(twice); i++) {
        runner.handler.on_guard(id, runner.handler.userdata);
        twice[i] = newest_guard();
    }
    runner.handler.on_gathered(runner.handler.userdata);
    for (size_t i = 0; i < ELEMENTSOF(twice); i++)
        twice[i]->handler.on_state(twice[i], &m, twice[i]->handler.userdata);
    r = manager_find_run(manager, id);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    CU_ASSERT(await(is_store_ready, NULL));
    guard_reports(r, "code", 0, "none");
    CU_ASSERT(await(is_released, r));
    tear_down();
}

/* What waited without a ticket (Redis was away) keeps its order over a restart. */
static void test_restart_keeps_order(void) {
    char ids[8][ID_TEXT_SIZE];
    size_t n = 0;

    set_up(true);
    for (size_t i = 0; i < ELEMENTSOF(ids); i++)
        memcpy(ids[i], begin("one")->id, sizeof(ids[i]));
    manager = manager_free(manager);
    make_manager();
    runner.handler.on_gathered(runner.handler.userdata);
    list_foreach(r, manager_runs(manager, RUN_STATE_WAITING), struct run, link) {
        CU_ASSERT_FATAL(n < ELEMENTSOF(ids));
        TEST_STRING(r->id, ids[n++]);
    }
    TEST_INT(n, ELEMENTSOF(ids));
    tear_down();
}

/* A guard that is gone before it told what it held: nothing is granted before the runner's report says that nothing is left. */
static void test_found_guard_gone(void) {
    struct run *r, *w;
    struct message report;
    struct guard_link *g;
    char id[ID_TEXT_SIZE];

    set_up(true);
    r = run_it("one");
    memcpy(id, r->id, sizeof(id));
    make_report(&report, r, "lost", 1, "none");
    manager = manager_free(manager);
    make_manager();
    runner.handler.on_guard(id, runner.handler.userdata);
    runner.handler.on_gathered(runner.handler.userdata);
    g = newest_guard();
    n_killed = 0;
    g->handler.on_gone(g, g->handler.userdata);
    TEST_INT(n_killed, 1);
    w = begin("one");
    for (int i = 0; i < 5; i++)
        TEST_INT(sd_event_run(event, 0) >= 0, 1);
    TEST_INT(w->state, RUN_STATE_PENDING);
    runner.handler.on_report(&report, runner.handler.userdata);
    CU_ASSERT(await(is_starting, w));
    TEST_INT(manager_find_run(manager, id)->result, RUN_RESULT_GUARD_DIED);
    tear_down();
}

static void test_report_of_unknown_run(void) {
    struct run *r;
    char id[ID_TEXT_SIZE];
    struct message report;

    set_up(true);
    r = run_it("one");
    memcpy(id, r->id, sizeof(id));
    make_report(&report, r, "code", 7, "none");
    manager = manager_free(manager);
    make_manager();
    runner.handler.on_report(&report, runner.handler.userdata);
    runner.handler.on_gathered(runner.handler.userdata);
    r = manager_find_run(manager, id);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    TEST_INT(r->result, RUN_RESULT_FAILURE);
    TEST_INT(r->exit_code, 7);
    TEST_INT(n_forgotten, 1);
    tear_down();
}

static void test_ad_hoc(void) {
    struct demands pools, two;
    struct manager_hold hold = {.pools = &pools, .name = "label", .wait_usec = USEC_INFINITY, .stop_timeout_usec = USEC_INFINITY,
                                .uid = getuid(), .pid = getpid()};
    const char *text = NULL;
    struct run *r, *other;
    bool nested;
    int fd;

    set_up(true);
    TEST_INT(demands_parse("slot", &pools), 0);
    TEST_INT(demands_parse("slot:2", &two), 0);
    TEST_INT(manager_hold(manager, &hold, &r, &nested, &text), 0);
    CU_ASSERT(await(is_starting, r));
    fd = manager_take_hold_fd(r);
    CU_ASSERT(fd >= 0);
    TEST_INT(manager_take_hold_fd(r), -1);
    TEST_INT(count_files("holds"), 2);
    manager_client_started(manager, r, getpid());
    TEST_INT(r->state, RUN_STATE_RUNNING);

    hold.nested = r->id; /* this very process is the client: inside */
    TEST_INT(manager_hold(manager, &hold, &other, &nested, &text), 0);
    CU_ASSERT(nested);
    CU_ASSERT_PTR_EQUAL(other, r);
    TEST_INT(demands_parse("slot,wide", &pools), 0);
    TEST_INT(manager_hold(manager, &hold, &other, &nested, &text), MANAGER_E_INVALID);
    hold.nested = NULL;
    hold.pools = &two;
    TEST_INT(manager_hold(manager, &hold, &other, &nested, &text), MANAGER_E_INVALID);
    TEST_STRING(text, "2 permits of pool \"slot\" are more than its limit of 1");
    hold.pools = &pools;
    TEST_INT(demands_parse("slit", &pools), 0);
    TEST_INT(manager_hold(manager, &hold, &other, &nested, &text), MANAGER_E_UNKNOWN);
    TEST_STRING(text, "slit");

    manager_client_ended(manager, r, RUN_RESULT_NONE, 0, -1);
    TEST_INT(r->result, RUN_RESULT_SUCCESS);
    CU_ASSERT(!run_is_over(r)); /* the hold is what counts */
    close_fd(fd);
    manager_client_gone(manager, r);
    tear_down();
}

static void test_client_gone(void) {
    struct demands pools;
    struct manager_hold hold = {.pools = &pools, .name = "label", .wait_usec = USEC_INFINITY, .stop_timeout_usec = USEC_INFINITY,
                                .uid = getuid(), .pid = getpid()};
    const char *text = NULL;
    struct run *r, *w;
    bool nested;

    set_up(true);
    TEST_INT(demands_parse("slot", &pools), 0);
    TEST_INT(manager_hold(manager, &hold, &r, &nested, &text), 0);
    CU_ASSERT(await(is_starting, r));
    TEST_INT(manager_hold(manager, &hold, &w, &nested, &text), 0);
    CU_ASSERT(await(is_waiting, w));
    manager_client_gone(manager, w);
    TEST_INT(w->state, RUN_STATE_DONE);
    TEST_INT(count_files("waiting"), 0);
    manager_client_gone(manager, r); /* granted, but nobody took the write end */
    CU_ASSERT(await(is_released, r));
    TEST_INT(r->result, RUN_RESULT_NOT_STARTED);
    TEST_INT(count_files("holds"), 0);
    tear_down();
}

static void test_nowait_and_queue_timeout(void) {
    struct demands pools;
    struct manager_hold hold = {.pools = &pools, .name = "label", .nowait = true, .wait_usec = USEC_INFINITY,
                                .stop_timeout_usec = USEC_INFINITY, .uid = getuid(), .pid = getpid()};
    const char *text = NULL;
    struct run *r;
    bool nested;

    set_up(true);
    (void) run_it("one");
    TEST_INT(demands_parse("slot", &pools), 0);
    TEST_INT(manager_hold(manager, &hold, &r, &nested, &text), 0);
    CU_ASSERT(await(is_over, r));
    TEST_INT(r->result, RUN_RESULT_NOT_STARTED);
    TEST_STRING(r->reason, "busy: slot");
    hold.nowait = false;
    hold.wait_usec = 20 * USEC_PER_MSEC;
    TEST_INT(manager_hold(manager, &hold, &r, &nested, &text), 0);
    CU_ASSERT(await(is_over, r));
    TEST_INT(r->result, RUN_RESULT_QUEUE_TIMEOUT);
    tear_down();
}

static unsigned n_idle;

static void watch_on_idle(_unused_ struct manager_idle_watch *watch) {
    n_idle++;
}

static void test_drain(void) {
    struct demands pools;
    struct manager_hold hold = {.pools = &pools, .name = "label", .wait_usec = USEC_INFINITY, .stop_timeout_usec = USEC_INFINITY,
                                .uid = getuid(), .pid = getpid()};
    struct manager_idle_watch watch = {.on_idle = watch_on_idle};
    const char *text = NULL;
    struct run *r, *w, *none = NULL;
    bool nested;

    set_up(true);
    n_idle = 0;
    r = run_it("one");
    w = begin("one");
    CU_ASSERT(await(is_waiting, w));
    TEST_INT(manager_drain(manager), 0);
    TEST_INT(manager_drain(manager), 0);
    TEST_INT(w->state, RUN_STATE_DONE); /* what waits goes, what runs stays */
    TEST_INT(r->state, RUN_STATE_RUNNING);
    TEST_INT(manager_start_job(manager, "one", &none), MANAGER_E_DRAINED);
    TEST_INT(demands_parse("wide", &pools), 0);
    TEST_INT(manager_hold(manager, &hold, &none, &nested, &text), MANAGER_E_DRAINED);
    hold.nested = r->id; /* what runs goes on: also what it has inside */
    TEST_INT(demands_parse("slot", &pools), 0);
    TEST_INT(manager_hold(manager, &hold, &none, &nested, &text), 0);
    CU_ASSERT(nested);
    manager_watch_idle(manager, &watch);
    guard_reports(r, "code", 0, "none");
    CU_ASSERT(await(is_released, r));
    TEST_INT(n_idle, 1);

    manager = manager_free(manager); /* it survives a restart */
    at_start = true;
    make_manager();
    at_start = false;
    runner.handler.on_gathered(runner.handler.userdata);
    CU_ASSERT(manager_is_drained(manager));
    CU_ASSERT(manager_is_idle(manager));
    TEST_INT(manager_undrain(manager), 0);
    CU_ASSERT(!manager_is_idle(manager)); /* the job that is to run at start */
    tear_down();
}

static bool has_left(_unused_ void *userdata) {
    return sd_event_get_state(event) == SD_EVENT_FINISHED;
}

static void test_shutdown(void) {
    struct run *r, *w;

    set_up(true);
    r = run_it("one");
    w = begin("one");
    CU_ASSERT(await(is_waiting, w));
    manager_stop(manager, true);
    TEST_INT(w->state, RUN_STATE_DONE);
    TEST_INT(last_stop, SUPERVISE_REASON_SHUTDOWN);
    CU_ASSERT(!has_left(NULL));
    guard_reports(r, "signal", SIGTERM, "shutdown");
    CU_ASSERT(await(has_left, NULL));
    tear_down();
}

static CU_TestInfo tests[] = {
    {"one run", test_one_run},
    {"nothing before gathered", test_nothing_before_gathered},
    {"limit and order", test_limit_and_order},
    {"overlap", test_overlap},
    {"stop", test_stop},
    {"stop before its guard is there", test_stop_before_guard},
    {"guard gone", test_guard_gone},
    {"refused by the runner", test_refused},
    {"not started", test_not_started},
    {"no such user", test_no_such_user},
    {"runner away", test_runner_away},
    {"restart", test_restart},
    {"a guard named twice", test_guard_named_twice},
    {"a restart keeps the order", test_restart_keeps_order},
    {"a guard found at start is gone", test_found_guard_gone},
    {"report of an unknown run", test_report_of_unknown_run},
    {"ad hoc", test_ad_hoc},
    {"client gone", test_client_gone},
    {"nowait and queue timeout", test_nowait_and_queue_timeout},
    {"drain", test_drain},
    {"shutdown", test_shutdown},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "manager", .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
