/* SPDX-License-Identifier: MIT */

/* The health of a job: which hooks a sequence of ends starts. */

#include "daemon/jobs/health.h"

#include <stdlib.h>
#include <string.h>

#include "tests/harness/draw.h"
#include "tests/harness/test.h"

#define SEC USEC_PER_SEC
#define HOUR (3600 * SEC)
#define NOW (2000000000 * SEC)

static struct job_hooks make_hooks(void) {
    return (struct job_hooks){
        .broken_after = 1, .remind_after_usec = USEC_INFINITY, .max_silence_usec = USEC_INFINITY};
}

static struct health make_health(void) {
    return (struct health){.known_since = NOW};
}

/* `ends` has a letter for each hour: a "g"ood, "b"ad or "n"eutral end, "." for none. `expected` has a
 * word for each letter. */
static void expect(const struct job_hooks *hooks, const char *ends, const char *expected) {
    struct health health = make_health();
    char text[512];
    size_t size = 0;
    usec_t now = NOW;

    for (size_t i = 0; ends[i]; i++) {
        enum chain_end end = ends[i] == 'g'   ? CHAIN_END_GOOD
                             : ends[i] == 'b' ? CHAIN_END_BAD
                                              : CHAIN_END_NEUTRAL;
        unsigned events;

        now += HOUR;
        events = ends[i] == '.' ? health_note_time(&health, hooks, now)
                                : health_note_end(&health, hooks, end, now);
        size += (size_t) snprintf(text + size, sizeof(text) - size, "%s%s%s%s%s%s%s%s", i > 0 ? " " : "",
                                  events & HEALTH_OVERDUE ? "O" : "", events & HEALTH_SUCCESS ? "s" : "",
                                  events & HEALTH_FAILURE ? "f" : "", events & HEALTH_BROKEN ? "B" : "",
                                  events & HEALTH_REMINDER ? "m" : "", events & HEALTH_RECOVERED ? "R" : "",
                                  events == 0 ? "-" : "");
    }
    TEST_STRING(text, expected);
}

static void test_broken(void) {
    struct job_hooks hooks = make_hooks();

    expect(&hooks, "ggbbbggb", "s s fB f f sR s fB");
    expect(&hooks, "bnnbg", "fB - - f sR");
    hooks.broken_after = 3;
    expect(&hooks, "bbgbbnbbg",
           "f f s f f - fB f sR"); /* three in a row; a neutral end counts neither way */
    hooks.broken_after = 2;
    expect(&hooks, "bgbgbg", "f s f s f s");
}

static void test_reminders(void) {
    struct job_hooks hooks = make_hooks();

    hooks.remind_after_usec = 3 * HOUR;
    expect(&hooks, "bbbbbbbgb", "fB f f fm f f fm sR fB");
    expect(&hooks, "bnnnnbb", "fB - - - - fm f"); /* at the next bad end alone */
}

static void test_silence(void) {
    struct job_hooks hooks = make_hooks();

    expect(&hooks, "......", "- - - - - -");
    hooks.max_silence_usec = 3 * HOUR;
    expect(&hooks, ".......", "- - OB - - O -");  /* known, and never ran */
    expect(&hooks, "g...g..", "s - - OB sR - -"); /* counts from the last good end */
    expect(&hooks, "bb.g", "fB f O sR");          /* broken already */
    hooks.broken_after = 5;
    expect(&hooks, "bb.bg", "f f OB f sR"); /* broken at once */
    hooks.remind_after_usec = 2 * HOUR;
    expect(&hooks, "...bbb", "- - OB f fm f"); /* the reminders count from `overdue` */
}

static void test_facts(void) {
    struct job_hooks hooks = make_hooks();
    struct health health = make_health();

    hooks.broken_after = 2;
    (void) health_note_end(&health, &hooks, CHAIN_END_BAD, NOW + 1);
    (void) health_note_end(&health, &hooks, CHAIN_END_BAD, NOW + 2);
    (void) health_note_end(&health, &hooks, CHAIN_END_BAD, NOW + 3);
    TEST_INT(health.n_bad, 3);
    TEST_INT(health.bad_since, NOW + 1);
    TEST_INT(health.is_broken, 1);
    TEST_INT(health.last_good, 0);
    (void) health_note_end(&health, &hooks, CHAIN_END_GOOD, NOW + 4);
    TEST_INT(health.n_bad, 0);
    TEST_INT(health.bad_since, 0);
    TEST_INT(health.is_broken, 0);
    TEST_INT(health.last_good, NOW + 4);
    health.n_bad = UINT32_MAX;
    (void) health_note_end(&health, &hooks, CHAIN_END_BAD, NOW + 5);
    TEST_INT(health.n_bad, UINT32_MAX);
}

static void test_next(void) {
    struct job_hooks hooks = make_hooks();
    struct health health = make_health();

    TEST_INT(health_next(&health, &hooks, NOW) == USEC_INFINITY, 1);
    hooks.max_silence_usec = 26 * HOUR;
    TEST_INT(health_next(&health, &hooks, NOW), NOW + 26 * HOUR);
    TEST_INT(health_note_time(&health, &hooks, NOW + 26 * HOUR - 1), 0);
    TEST_INT(health_note_time(&health, &hooks, NOW + 26 * HOUR), HEALTH_OVERDUE | HEALTH_BROKEN);
    TEST_INT(health_next(&health, &hooks, NOW + 26 * HOUR), NOW + 52 * HOUR);
    TEST_INT(health_note_time(&health, &hooks, NOW + 200 * HOUR),
             HEALTH_OVERDUE); /* berthd was away: one event */
    TEST_INT(health_next(&health, &hooks, NOW + 200 * HOUR), NOW + 226 * HOUR);
}

/* A clock that is set back neither delays events for ever nor causes them at once. */
static void test_clock_set_back(void) {
    struct job_hooks hooks = make_hooks();
    struct health health = make_health();

    hooks.max_silence_usec = 3 * HOUR;
    hooks.remind_after_usec = HOUR;
    (void) health_note_end(&health, &hooks, CHAIN_END_GOOD, NOW + 1000 * HOUR);
    TEST_INT(health_next(&health, &hooks, NOW), NOW + 3 * HOUR); /* the record is from before a reboot */
    TEST_INT(health_note_time(&health, &hooks, NOW), 0);
    TEST_INT(health_next(&health, &hooks, NOW), NOW + 3 * HOUR);
    TEST_INT(health_note_end(&health, &hooks, CHAIN_END_BAD, NOW + 2000 * HOUR),
             HEALTH_FAILURE | HEALTH_BROKEN);
    TEST_INT(health_note_end(&health, &hooks, CHAIN_END_BAD, NOW), HEALTH_FAILURE);
    TEST_INT(health_note_end(&health, &hooks, CHAIN_END_BAD, NOW + HOUR), HEALTH_FAILURE | HEALTH_REMINDER);
}

/* 1000 bad ends in a row within 80 hours: one alert, or four with remind-after = "1d", and one all-clear. */
static void count(usec_t remind_after, unsigned expected_alerts) {
    struct job_hooks hooks = make_hooks();
    struct health health = make_health();
    unsigned alerts = 0, failures = 0, recovered = 0;

    hooks.remind_after_usec = remind_after;
    for (unsigned i = 0; i <= 1000; i++) {
        unsigned events = health_note_end(&health, &hooks, i < 1000 ? CHAIN_END_BAD : CHAIN_END_GOOD,
                                          NOW + i * (80 * HOUR / 1000));

        alerts += (events & (HEALTH_BROKEN | HEALTH_REMINDER)) != 0;
        failures += (events & HEALTH_FAILURE) != 0;
        recovered += (events & HEALTH_RECOVERED) != 0;
    }
    TEST_INT(alerts, expected_alerts);
    TEST_INT(failures, 1000);
    TEST_INT(recovered, 1);
}

static void test_many_bad_ends(void) {
    count(USEC_INFINITY, 1);
    count(24 * HOUR, 4);
}

#define STEPS 60

/* The events agree with the whole history: a job breaks with the broken-after-th bad end since its last
 * good one. */
static void test_random_rows(void) {
    struct job_hooks hooks = make_hooks();
    uint64_t seed = 11;

    for (int round = 0; round < 2000; round++) {
        struct health health = make_health();
        char ends[STEPS];

        hooks.broken_after = 1 + (uint32_t) draw_below(&seed, 4);
        for (size_t i = 0; i < STEPS; i++) {
            enum chain_end end = (enum chain_end) draw_below(&seed, 3);
            unsigned events = health_note_end(&health, &hooks, end, NOW + i * SEC), n_bad = 0;

            ends[i] = end == CHAIN_END_GOOD ? 'g' : end == CHAIN_END_BAD ? 'b' : 'n';
            for (size_t k = i; k-- > 0 && ends[k] != 'g';)
                n_bad += ends[k] == 'b';
            TEST_INT((events & HEALTH_BROKEN) != 0, end == CHAIN_END_BAD && n_bad + 1 == hooks.broken_after);
            TEST_INT((events & HEALTH_RECOVERED) != 0, end == CHAIN_END_GOOD && n_bad >= hooks.broken_after);
            TEST_INT((events & HEALTH_FAILURE) != 0, end == CHAIN_END_BAD);
            TEST_INT((events & HEALTH_SUCCESS) != 0, end == CHAIN_END_GOOD);
        }
    }
}

static CU_TestInfo tests[] = {
    {"broken", test_broken},
    {"reminders", test_reminders},
    {"silence", test_silence},
    {"facts", test_facts},
    {"next", test_next},
    {"clock-set-back", test_clock_set_back},
    {"many-bad-ends", test_many_bad_ends},
    {"random-rows", test_random_rows},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "health", .pTests = tests});
