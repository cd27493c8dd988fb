/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=malloc,--wrap=calloc,--wrap=strdup */

/* Every allocation of the memory store fails once: the call returns -ENOMEM, nothing has changed, and the next try works. */

#include <string.h>

#include "store/store.h"
#include "tests/harness/capture.h"
#include "tests/harness/test.h"
#include "tests/harness/wrap.h"

WRAP(FAULT_MEMORY, NULL, void *, malloc, (size_t size), (size))
WRAP(FAULT_MEMORY, NULL, void *, calloc, (size_t n, size_t size), (n, size))
WRAP(FAULT_MEMORY, NULL, char *, strdup, (const char *s), (s))

static unsigned n_granted, n_released, n_waiting;

static void on_waiting(struct claim *c _unused_, void *userdata _unused_) {
    n_waiting++;
}
static void on_granted(struct claim *c _unused_, void *userdata _unused_) {
    n_granted++;
}
static void on_refused(struct claim *c _unused_, enum store_refusal refusal _unused_, const char *pool _unused_,
                       void *userdata _unused_) {
    CU_FAIL("refused");
}
static void on_lost(struct claim *c _unused_, enum store_loss loss _unused_, void *userdata _unused_) {
    CU_FAIL("lost");
}
static void on_released(struct claim *c _unused_, void *userdata _unused_) {
    n_released++;
}
static void on_state(struct store *s _unused_, enum store_state state _unused_, void *userdata _unused_) {
}

#define NO_REPLY 1000

static void on_reply(int r, void *userdata) {
    *(int *) userdata = r;
}

static void on_inspected(int r, struct snapshot *snapshot, void *userdata) {
    CU_ASSERT((r == 0) == (snapshot != NULL));
    if (snapshot) {
        TEST_INT(snapshot->n_pools, 2);
        TEST_INT(snapshot->pools[0].used, 4);
        TEST_INT(snapshot->n_mine, 1);
        TEST_STRING(snapshot->pools[0].override_reason, "why");
    }
    snapshot_free(snapshot);
    *(int *) userdata = r;
}

static void turn(sd_event *event) {
    while (sd_event_run(event, 0) > 0)
        ;
}

/* Repeats a call that failed for lack of memory, which happens once at most. */
#define TRY(call)                         \
    do {                                  \
        int _r = (call);                  \
        if (_r == -ENOMEM)                \
            _r = (call);                  \
        TEST_INT(_r, 0);                  \
    } while (0)

static int override(struct store *s, sd_event *event, const struct store_override *o) {
    int reply = NO_REPLY, r = store_override(s, o, on_reply, &reply);

    turn(event);
    return r < 0 ? r : reply;
}

static int inspect(struct store *s, sd_event *event) {
    int reply = NO_REPLY, r = store_inspect(s, NULL, on_inspected, &reply);

    turn(event);
    return r < 0 ? r : reply;
}

static int revoke_unknown(struct store *s, sd_event *event) {
    int reply = NO_REPLY, r = store_revoke(s, "00112233445566778899aabbccddeeff", NULL, on_reply, &reply);

    turn(event);
    return r < 0 ? r : reply == STORE_E_UNKNOWN ? 0 : reply;
}

static void scenario(sd_event *event, struct events *events) {
    static const struct store_listener listener = {
        .on_waiting = on_waiting, .on_granted = on_granted, .on_refused = on_refused, .on_lost = on_lost, .on_released = on_released,
        .on_state = on_state};
    const struct store_pool pools[] = {{.name = "db", .limit = 3, .queue_limit = 9}, {.name = "net", .limit = 3, .queue_limit = 9}};
    const struct demand_ref one[] = {{.pool = "db", .permits = 1}}, two[] = {{.pool = "db", .permits = 2}, {.pool = "net", .permits = 2}};
    struct claim held = {.id = "a", .name = "x", .demands = two, .n_demands = 2, .token = 5},
                 granted = {.id = "b", .name = "x", .demands = two, .n_demands = 2},
                 waiting = {.id = "c", .name = "y", .demands = one, .n_demands = 1};
    struct store *s = NULL;
    int reply = NO_REPLY;

    n_granted = n_released = n_waiting = 0;
    TRY(store_memory_new(&s, event, events, "ant", &listener));
    TRY(store_declare(s, pools, 2, false));
    TRY(store_adopt(s, &held));
    TRY(store_start(s));
    TRY(override(s, event, &(struct store_override){.pool = "net", .limit = 4, .for_usec = USEC_INFINITY}));
    TRY(override(s, event, &(struct store_override){.pool = "db", .limit = 4, .for_usec = USEC_INFINITY, .reason = "why"}));
    TRY(override(s, event, &(struct store_override){.pool = "db", .pause = true, .for_usec = USEC_INFINITY, .reason = "pause"}));
    TRY(override(s, event, &(struct store_override){.pool = "db", .resume = true}));
    TRY(store_claim(s, &granted));
    TRY(store_claim(s, &waiting));
    turn(event);
    TEST_INT(n_granted, 1);
    TEST_INT(n_waiting, 1);
    TRY(inspect(s, event));
    TRY(revoke_unknown(s, event));
    store_release(s, &held);
    store_release(s, &granted);
    turn(event);
    TEST_INT(n_granted, 2);
    TEST_INT(n_released, 2);
    store_stop(s, on_reply, &reply);
    turn(event);
    TEST_INT(reply, 0);
    TEST_INT(waiting.state, CLAIM_STATE_NONE);
    store_free(s);
}

static void test_each_fails_once(void) {
    struct journal *journal = NULL;
    struct events *events = NULL;
    sd_event *event = NULL;
    unsigned failing = 0;
    struct capture c;

    capture_begin(&c);
    CU_ASSERT_FATAL(sd_event_new(&event) >= 0 && journal_new(&journal, "test") == 0 &&
                    events_new(&events, journal, "ant", "test") == 0);
    do {
        unsigned n_failures = CU_get_number_of_failures();

        fault_begin(FAULT_MEMORY, ++failing, 1);
        scenario(event, events);
        if (CU_get_number_of_failures() > n_failures)
            printf("with allocation %u failing\n", failing);
    } while (fault_end());
    CU_ASSERT(failing > 20);
    events_free(events);
    journal_free(journal);
    sd_event_unref(event);
    free(capture_end(&c));
}

static CU_TestInfo tests[] = {
    {"each allocation fails once", test_each_fails_once},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "store-memory without memory", .pTests = tests});
