/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,--wrap=asprintf,--wrap=tsearch,--wrap=sd_event_add_time,--wrap=sd_event_add_io,--wrap=sd_event_add_defer,--wrap=open,--wrap=open64,--wrap=opendir,--wrap=scandir,--wrap=scandir64,--wrap=pidfd_open */

/* berthd finds a guard, a hold and two queued runs at start, while each allocation or open of a
 * descriptor fails once. Either it recovers all of them, or it exits, and the next berthd recovers them.
 * Nothing is granted beyond the limit, lost, or freed twice (ASan would report that). */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/harness/runner/manager-bed.h"
#include "tests/harness/test.h"
#include "tests/harness/wrap.h"

#define MEMORY(type, name, parameters, arguments) WRAP(FAULT_MEMORY, NULL, type, name, parameters, arguments)
#define EVENT(name, parameters, arguments) WRAP(FAULT_MEMORY, -ENOMEM, int, name, parameters, arguments)
#define DESCRIPTOR(type, value, name, parameters, arguments) WRAP(FAULT_DESCRIPTOR, value, type, name, parameters, arguments)

typedef int filter_fn(const struct dirent *entry);
typedef int order_fn(const struct dirent **a, const struct dirent **b);

MEMORY(void *, malloc, (size_t size), (size))
MEMORY(void *, calloc, (size_t n, size_t size), (n, size))
MEMORY(void *, realloc, (void *old, size_t size), (old, size))
MEMORY(char *, strdup, (const char *text), (text))
MEMORY(void *, tsearch, (const void *key, void **root, int (*compare)(const void *, const void *)), (key, root, compare))
EVENT(sd_event_add_time,
      (sd_event * e, sd_event_source **s, clockid_t c, uint64_t usec, uint64_t accuracy, sd_event_time_handler_t f, void *u),
      (e, s, c, usec, accuracy, f, u))
EVENT(sd_event_add_io, (sd_event * e, sd_event_source **s, int fd, uint32_t events, sd_event_io_handler_t f, void *u),
      (e, s, fd, events, f, u))
EVENT(sd_event_add_defer, (sd_event * e, sd_event_source **s, sd_event_handler_t f, void *u), (e, s, f, u))
DESCRIPTOR(DIR *, NULL, opendir, (const char *path), (path))
DESCRIPTOR(int, -1, open, (const char *path, int flags, mode_t mode), (path, flags, mode))
DESCRIPTOR(int, -1, open64, (const char *path, int flags, mode_t mode), (path, flags, mode))
DESCRIPTOR(int, -1, pidfd_open, (pid_t pid, unsigned flags), (pid, flags))
DESCRIPTOR(int, -1, scandir, (const char *path, struct dirent ***ret, filter_fn *filter, order_fn *order), (path, ret, filter, order))
DESCRIPTOR(int, -1, scandir64, (const char *path, struct dirent ***ret, filter_fn *filter, order_fn *order), (path, ret, filter, order))

int __wrap_asprintf(char **ret, const char *format, ...) _printf_(2, 3);
int __wrap_asprintf(char **ret, const char *format, ...) {
    va_list args;
    int n;

    if (fault_meets(FAULT_MEMORY)) {
        *ret = (char *) -1; /* undefined after an error (asprintf(3)) */
        return -1;
    }
    va_start(args, format);
    n = vasprintf(ret, format, args);
    va_end(args);
    return n;
}

/* --- what is there --- */

static char guarded[ID_TEXT_SIZE], held[ID_TEXT_SIZE], queued[ID_TEXT_SIZE], asked[ID_TEXT_SIZE];
static struct message state; /* of the guard */
static int hold_fd;

static struct run *ask(const char *text) {
    struct demands pools;
    struct adhoc_request hold = {.pools = &pools, .name = "label", .wait_usec = USEC_INFINITY, .stop_timeout_usec = USEC_INFINITY,
                                .uid = getuid(), .pid = getpid()};
    const char *why = NULL;
    struct run *r = NULL;
    bool nested;

    TEST_INT(demands_parse(text, &pools), 0);
    CU_ASSERT_EQUAL_FATAL(manager_hold(manager_bed.manager, &hold, &r, &nested, &why), 0);
    return r;
}

static void set_up(void) {
    struct run *r;

    (void) fault_end();
    manager_bed_up_recovered();
    r = manager_bed_run("one");
    memcpy(guarded, r->id, sizeof(guarded));
    manager_bed_make_state(&state, r);
    r = ask("wide:8");
    CU_ASSERT_FATAL(manager_bed_await_starting(r));
    memcpy(held, r->id, sizeof(held));
    hold_fd = manager_take_hold_fd(r);
    manager_client_started(r, getpid(), 0);
    r = manager_bed_begin("one");
    memcpy(queued, r->id, sizeof(queued));
    CU_ASSERT_FATAL(manager_bed_await_waiting(r));
    r = ask("wide:2");
    memcpy(asked, r->id, sizeof(asked));
    CU_ASSERT_FATAL(manager_bed_await_waiting(r));
}

static void tear_down(void) {
    (void) fault_end();
    manager_bed_down();
    hold_fd = close_fd(hold_fd);
}

/* --- a start --- */

static bool has_ended(void) {
    return sd_event_get_state(manager_bed.event) == SD_EVENT_FINISHED;
}

static bool is_connected(void *before) {
    return has_ended() || manager_bed.n_guards > *(size_t *) before;
}

static bool is_ready(_unused_ void *userdata) {
    return has_ended() || manager_host_store(manager_bed.manager)->state == STORE_STATE_READY;
}

/* Starts berthd. Returns whether it became ready. */
static bool start(void) {
    size_t before = manager_bed.n_guards;

    if (manager_start(manager_bed.manager) < 0)
        return false;
    manager_bed_found_guard(guarded);
    manager_bed_recovered();
    CU_ASSERT(manager_bed_await(is_connected, &before));
    if (!has_ended())
        manager_bed_guard_state(manager_bed_guard(), &state);
    CU_ASSERT(manager_bed_await(is_ready, NULL));
    return !has_ended();
}

static void check_run(const char *id, enum run_state expected, bool holds) {
    const struct run *r = manager_find_run(manager_bed.manager, id);

    CU_ASSERT_PTR_NOT_NULL(r);
    if (!r)
        return;
    TEST_INT(r->state, expected);
    TEST_INT(r->host_claim->state == CLAIM_STATE_HELD, holds);
}

static void check_all(void) {
    for (unsigned i = 0; i < 5; i++)
        (void) sd_event_run(manager_bed.event, 0);
    check_run(guarded, RUN_STATE_RUNNING, true);
    check_run(held, RUN_STATE_RUNNING, true);
    check_run(queued, RUN_STATE_WAITING, false);
    check_run(asked, RUN_STATE_WAITING, false);
    TEST_INT(manager_bed.n_killed, 0);
    TEST_INT(manager_bed.n_started, 0);
}

/* Returns whether there was an n-th call to fail. */
static bool check_nth(enum fault_kind kind, unsigned nth, unsigned *n_ended) {
    bool ready, is_nth;

    manager_bed_new_manager();
    manager_bed.n_killed = manager_bed.n_started = 0;
    fault_begin(kind, nth, 1);
    ready = start();
    is_nth = fault_end();
    if (ready)
        check_all();
    else
        ++*n_ended;
    TEST_INT(manager_bed_count_files("holds"), 2);
    TEST_INT(manager_bed_count_files("waiting"), 2);
    manager_bed_new_manager();
    manager_bed.n_killed = manager_bed.n_started = 0;
    CU_ASSERT_FATAL(start());
    check_all();
    return is_nth;
}

static void check_each(enum fault_kind kind) {
    unsigned nth = 1, n_ended = 0, n_failures = CU_get_number_of_failures();

    while (check_nth(kind, nth, &n_ended) && CU_get_number_of_failures() == n_failures)
        nth++;
    CU_ASSERT(nth > 5);
    CU_ASSERT(n_ended > 2);
    CU_ASSERT(n_ended < nth);
}

static void test_memory(void) {
    check_each(FAULT_MEMORY);
}

/* The runner names a guard after berthd became ready. berthd recovers its run as a whole, or has it
 * killed. The store then frees the permits that it had adopted. */
static bool check_late(unsigned nth) {
    struct claim host = {.token = 7}, none = {};
    struct run late = {
        .id = "00000000000000000000000000000000", .name = "one", .host_claim = &host, .cluster_claim = &none};
    struct message its_state, report;
    size_t before = manager_bed.n_guards;
    struct run *r;
    bool is_nth;

    (void) snprintf(late.id, sizeof(late.id), "%032x", nth);
    manager_bed_make_state(&its_state, &late);
    manager_bed_make_report(&report, &late, "lost", 1, "none");
    manager_bed.n_killed = 0;
    fault_begin(FAULT_MEMORY, nth, 1);
    manager_bed_found_guard(late.id);
    /* Without memory for the connection, berthd tries again. */
    while (manager_bed.n_killed == 0 && manager_bed.n_guards == before)
        CU_ASSERT_FATAL(sd_event_run(manager_bed.event, USEC_PER_SEC) >= 0);
    if (manager_bed.n_killed == 0)
        manager_bed_guard_state(manager_bed_guard(), &its_state);
    is_nth = fault_end();
    r = manager_find_run(manager_bed.manager, late.id);
    CU_ASSERT(r || manager_bed.n_killed > 0);
    manager_bed_report(&report);
    r = manager_find_run(manager_bed.manager, late.id);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    CU_ASSERT(manager_bed_await_released(r));
    return is_nth;
}

static void test_late(void) {
    struct message report;
    unsigned nth = 1;

    while (check_late(nth))
        nth++;
    CU_ASSERT(nth > 5);
    manager_bed_make_report(&report, manager_find_run(manager_bed.manager, guarded), "code", 0, "none");
    manager_bed_report(&report);
    CU_ASSERT(manager_bed_await_starting(manager_find_run(manager_bed.manager, queued)));
}
static void test_descriptors(void) {
    check_each(FAULT_DESCRIPTOR);
}

static CU_TestInfo tests[] = {
    {"memory", test_memory},
    {"memory, after berthd is ready", test_late},
    {"descriptors", test_descriptors},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "manager-recover, failing", .pSetUpFunc = set_up, .pTearDownFunc = tear_down,
             .pTests = tests});
