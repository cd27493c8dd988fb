/* SPDX-License-Identifier: MIT */

/* Many times and one timer: the right ones are due, in order, and none that was moved away or unset. */

#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/timer-heap.h"
#include "base/list.h"
#include "tests/harness/test.h"

#define THINGS 1000

static struct thing {
    struct due due;
    usec_t wanted; /* USEC_INFINITY: never */
    bool was_due;
} things[THINGS];
static struct dues dues;
static usec_t last;
static unsigned n_due;

static void on_due(struct due *due, _unused_ void *userdata) {
    struct thing *t = list_entry(due, struct thing, due);

    CU_ASSERT(due->place == 0);
    CU_ASSERT(t->wanted <= clock_boottime() && t->wanted >= last);
    CU_ASSERT_FALSE(t->was_due);
    last = t->wanted;
    t->was_due = true;
    n_due++;
}

static void set(struct thing *t, usec_t at) {
    t->wanted = at;
    dues_set(&dues, &t->due, at);
}

static void test_order(void) {
    sd_event *event = NULL;
    usec_t now = clock_boottime();
    unsigned expected = 0;

    srand(1);
    CU_ASSERT_FATAL(sd_event_new(&event) >= 0 && dues_init(&dues, event, SD_EVENT_PRIORITY_NORMAL, on_due, NULL) >= 0);
    for (size_t i = 0; i < THINGS; i++) {
        CU_ASSERT_FATAL(dues_make_room(&dues) == 0);
        set(&things[i], now + (usec_t) (rand() % 20000));
    }
    for (size_t i = 0; i < THINGS; i++) { /* some at another time, some never, some much later */
        if (i % 3 == 0)
            set(&things[i], now + (usec_t) (rand() % 20000));
        else if (i % 7 == 0)
            set(&things[i], USEC_INFINITY);
        else if (i % 11 == 0)
            set(&things[i], now + 3600 * USEC_PER_SEC);
    }
    for (size_t i = 0; i < THINGS; i++)
        expected += things[i].wanted <= now + 20000;
    while (n_due < expected && clock_boottime() < now + 10 * USEC_PER_SEC)
        CU_ASSERT_FATAL(sd_event_run(event, USEC_PER_SEC) >= 0);
    TEST_INT(n_due, expected);
    for (size_t i = 0; i < THINGS; i++) {
        CU_ASSERT(things[i].was_due == (things[i].wanted <= now + 20000));
        dues_unset(&things[i].due);
        dues_give_room(&dues);
    }
    TEST_INT(dues.n, 0);
    dues_done(&dues);
    dues_done(&dues);
    sd_event_unref(event);
}

static struct thing again = {.wanted = 1};

static void on_due_again(struct due *due, void *userdata) {
    n_due++;
    if (n_due < 3)
        dues_set(userdata, due, clock_boottime() + 1000);
}

/* What is set from inside is due in its turn. */
static void test_again(void) {
    struct dues d;
    sd_event *event = NULL;

    n_due = 0;
    CU_ASSERT_FATAL(sd_event_new(&event) >= 0 && dues_init(&d, event, SD_EVENT_PRIORITY_NORMAL, on_due_again, &d) >= 0 &&
                    dues_make_room(&d) == 0);
    dues_set(&d, &again.due, 1);
    while (n_due < 3)
        CU_ASSERT_FATAL(sd_event_run(event, 10 * USEC_PER_SEC) > 0);
    CU_ASSERT(again.due.place == 0);
    dues_done(&d);
    sd_event_unref(event);
}

/* It is due where it was set last, alone. */
static void test_other(void) {
    struct dues first, second;
    sd_event *event = NULL;

    n_due = 0;
    CU_ASSERT_FATAL(sd_event_new(&event) >= 0 && dues_init(&first, event, SD_EVENT_PRIORITY_NORMAL, on_due, NULL) >= 0);
    CU_ASSERT_FATAL(dues_init(&second, event, SD_EVENT_PRIORITY_NORMAL + 10, on_due_again, &second) >= 0);
    CU_ASSERT_FATAL(dues_make_room(&first) == 0 && dues_make_room(&second) == 0);
    dues_set(&first, &again.due, 1);
    dues_set(&second, &again.due, 1);
    TEST_INT(first.n, 0);
    TEST_INT(second.n, 1);
    while (n_due < 3)
        CU_ASSERT_FATAL(sd_event_run(event, 10 * USEC_PER_SEC) > 0);
    dues_done(&first);
    dues_done(&second);
    sd_event_unref(event);
}

static CU_TestInfo tests[] = {
    {"due: in order, moved, unset", test_order},
    {"due: set from inside", test_again},
    {"due: set among others", test_other},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "due", .pTests = tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
