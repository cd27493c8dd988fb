/* SPDX-License-Identifier: MIT */

/* Which claims would start: made-up pools, and random ones beside a slow player that follows the rules
 * literally. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/explain/queue.h"
#include "base/json/format.h"
#include "cli/verbs.h"
#include "tests/harness/draw.h"
#include "tests/harness/test.h"

static json_t *pools;

static json_t *parse(const char *text) {
    json_t *json = json_loads(text, 0, NULL);

    CU_ASSERT_PTR_NOT_NULL_FATAL(json);
    return json;
}

static json_t *pool(const char *name, int limit, int used) {
    json_t *p = json_pack("{s:s, s:i, s:i, s:i, s:[], s:[]}", "name", name, "limit", limit, "used", used,
                          "waiting", 0, "holders", "queue");

    (void) json_array_append_new(pools, p);
    return p;
}

static void holder(json_t *p, const char *claim, int permits, const char *since) {
    (void) json_array_append_new(
        json_object_get(p, "holders"),
        json_pack("{s:s, s:i, s:s}", "claim", claim, "permits", permits, "since", since));
}

static void waiter(json_t *p, const char *claim, int permits, int position, int waiting_ms) {
    (void) json_array_append_new(json_object_get(p, "queue"),
                                 json_pack("{s:s, s:i, s:i, s:i}", "claim", claim, "permits", permits,
                                           "position", position, "waiting_ms", waiting_ms));
    (void) json_object_set_new(p, "waiting",
                               json_integer((json_int_t) json_array_size(json_object_get(p, "queue"))));
}

static void begin(void) {
    json_decref(pools);
    pools = json_array();
}

static struct queue *queue(void) {
    struct queue *q = NULL;

    TEST_INT(queue_new(&q, pools), 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(q);
    return q;
}

static bool starts_with_limit(const struct queue *q, const char *name, int limit, const char *claim) {
    return queue_starts(q, &(struct queue_change){.pool = name, .limit = limit}, claim, NULL);
}

/* No claim overtakes another in a queue: the last one needs room for all before it. */
static void in_order(void) {
    _cleanup_(queue_freep) struct queue *q = NULL;
    _cleanup_json_ json_t *started = NULL;
    json_t *db;

    begin();
    db = pool("db", 4, 4);
    holder(db, "h1", 4, "2026-01-01T00:00:00Z");
    waiter(db, "a", 3, 1, 30);
    waiter(db, "b", 2, 2, 20);
    waiter(db, "c", 1, 3, 10);
    q = queue();
    CU_ASSERT(queue_is_complete(q));
    CU_ASSERT(!queue_starts(q, &(struct queue_change){}, "a", NULL));
    TEST_INT(queue_lowest_limit(q, "db", "a"), 7);
    TEST_INT(queue_lowest_limit(q, "db", "c"), 10);
    TEST_INT(queue_lowest_limit(q, "no", "c"), -1);
    TEST_INT(queue_lowest_limit(q, "db", "h1"), -1);
    CU_ASSERT(queue_starts(q, &(struct queue_change){.pool = "db", .limit = 9}, "b", &started));
    TEST_INT(json_array_size(started), 2);
    TEST_STRING(format_get_text(json_array_get(started, 0), "claim"), "a");
    TEST_STRING(format_get_text(json_array_get(started, 1), "claim"), "b");
}

/* A claim of two pools waits for both, and keeps others waiting in both. */
static void two_pools(void) {
    _cleanup_(queue_freep) struct queue *q = NULL;
    json_t *db, *net;

    begin();
    db = pool("db", 2, 2);
    net = pool("net", 1, 0);
    holder(db, "h1", 2, "2026-01-01T00:00:00Z");
    waiter(db, "a", 1, 1, 30);
    waiter(net, "a", 1, 1, 30);
    waiter(net, "b", 1, 2, 20);
    q = queue();
    CU_ASSERT(!starts_with_limit(q, "net", 1, "b"));
    CU_ASSERT(starts_with_limit(q, "db", 3, "a"));
    CU_ASSERT(!starts_with_limit(q, "db", 3, "b"));
    TEST_INT(queue_lowest_limit(q, "net", "b"), -1); /* the first waits for db, whatever net has */
}

/* A parked claim is passed over. A higher limit can bring it back before others: more is not always better.
 */
static void parked(void) {
    _cleanup_(queue_freep) struct queue *q = NULL;
    json_t *db;

    begin();
    db = pool("db", 2, 2);
    holder(db, "h1", 2, "2026-01-01T00:00:00Z");
    waiter(db, "c", 1, 1, 10);
    waiter(db, "big", 5, 0, 50);
    q = queue();
    CU_ASSERT(starts_with_limit(q, "db", 3, "c"));
    CU_ASSERT(!starts_with_limit(q, "db", 5, "c")); /* big is first again and needs 5 */
    CU_ASSERT(starts_with_limit(q, "db", 8, "c"));
    TEST_INT(queue_lowest_limit(q, "db", "c"), 3);
    TEST_INT(queue_lowest_limit(q, "db", "big"), 7);
}

/* queue_enough() returns a holder whose end is enough: of several the one that began last. */
static void one_ends(void) {
    _cleanup_(queue_freep) struct queue *q = NULL;
    json_t *db, *cpu;

    begin();
    db = pool("db", 5, 5);
    cpu = pool("cpu", 2, 1);
    holder(db, "old", 2, "2026-01-01T00:00:00Z");
    holder(db, "new", 2, "2026-01-01T00:05:00Z");
    holder(db, "small", 1, "2026-01-01T00:09:00Z");
    holder(cpu, "a", 1, "2026-01-01T00:09:30Z"); /* the same run waits in db: it holds its host's permit */
    waiter(db, "a", 2, 1, 30);
    waiter(db, "b", 2, 2, 20);
    q = queue();
    CU_ASSERT(queue_is_complete(q));
    TEST_STRING(format_get_text(queue_enough(q, "a", false), "claim"), "new");
    CU_ASSERT_PTR_NULL(queue_enough(q, "b", false));
    CU_ASSERT(!queue_starts(q, &(struct queue_change){.ended = "a"}, "a",
                            NULL)); /* ends what it holds, not what it waits for */
}

/* Lists that were cut are incomplete. */
static void incomplete(void) {
    static const char *const texts[] = {
        "[{\"name\": \"db\", \"limit\": 4, \"used\": 2, \"waiting\": 0, \"holders\": [{\"claim\": \"h\", "
        "\"permits\": 1}], \"queue\": []}]",
        "[{\"name\": \"db\", \"limit\": 4, \"used\": 0, \"waiting\": 2, \"holders\": [], \"queue\": "
        "[{\"claim\": \"w\", \"permits\": 1, "
        "\"position\": 1}]}]",
    };

    for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
        _cleanup_json_ json_t *cut = parse(texts[i]);
        _cleanup_(queue_freep) struct queue *q = NULL;

        TEST_INT(queue_new(&q, cut), 0);
        CU_ASSERT(!queue_is_complete(q));
    }
}

/* --- random pools, and a slow player --- */

#define POOLS 3
#define CLAIMS 8

static struct {
    int limits[POOLS], used[POOLS], wants[CLAIMS][POOLS]; /* claims in the order of their tickets */
    bool started[CLAIMS];
} slow;

static bool slow_is_parked(int c) {
    for (int p = 0; p < POOLS; p++)
        if (slow.wants[c][p] > slow.limits[p])
            return true;
    return false;
}

static bool slow_may_start(int c) {
    for (int p = 0; p < POOLS; p++) {
        if (slow.wants[c][p] == 0)
            continue;
        if (slow.used[p] + slow.wants[c][p] > slow.limits[p])
            return false;
        for (int before = 0; before < c; before++)
            if (!slow.started[before] && slow.wants[before][p] > 0 && !slow_is_parked(before))
                return false;
    }
    return true;
}

static void slow_play(void) {
    for (int round = 0; round < CLAIMS; round++)
        for (int c = 0; c < CLAIMS; c++)
            if (!slow.started[c] && !slow_is_parked(c) && slow_may_start(c)) {
                slow.started[c] = true;
                for (int p = 0; p < POOLS; p++)
                    slow.used[p] += slow.wants[c][p];
            }
}

static uint64_t state;

static int pick(int n) {
    return (int) draw_below(&state, (uint64_t) n);
}

static void random_pools(void) {
    static const char *const names[] = {"p0", "p1", "p2"};

    begin();
    memset(&slow, 0, sizeof(slow));
    for (int c = 0; c < CLAIMS; c++) {
        for (int p = 0; p < POOLS; p++)
            slow.wants[c][p] = pick(3) == 0 ? 1 + pick(4) : 0;
        slow.wants[c][pick(POOLS)] = 1 + pick(3);
    }
    for (int p = 0; p < POOLS; p++) {
        slow.limits[p] = 1 + pick(6);
        slow.used[p] = pick(slow.limits[p] + 1);
    }
    for (int p = 0; p < POOLS; p++) {
        json_t *json = pool(names[p], slow.limits[p], slow.used[p]);
        int place = 0;

        if (slow.used[p] > 0)
            holder(json, names[p], slow.used[p], "2026-01-01T00:00:00Z");
        for (int parked_too = 0; parked_too < 2; parked_too++)
            for (int c = 0; c < CLAIMS; c++) {
                char id[2] = {(char) ('a' + c)};

                if (slow.wants[c][p] > 0 && slow_is_parked(c) == parked_too)
                    waiter(json, id, slow.wants[c][p], parked_too ? 0 : ++place, (CLAIMS - c) * 10);
            }
    }
}

static void as_the_rules(void) {
    int n_started = 0;

    for (unsigned seed = 1; seed <= 3000; seed++) {
        _cleanup_(queue_freep) struct queue *q = NULL;
        struct queue_change change = {.pool = "p1"};

        state = seed;
        random_pools();
        change.limit = slow.limits[1] + pick(6);
        q = queue();
        slow.limits[1] = (int) change.limit;
        slow_play();
        for (int c = 0; c < CLAIMS; c++) {
            char id[2] = {(char) ('a' + c)};

            n_started += slow.started[c];
            if (queue_starts(q, &change, id, NULL) != slow.started[c]) {
                printf("seed %u, claim %s\n", seed, id);
                CU_FAIL("queue_starts() differs from the rules");
            }
        }
    }
    CU_ASSERT(n_started > 3000);
}

/* Permits of its host that a run holds while it waits are free when it has run. */
static void both_claims(void) {
    double msec[4] = {};
    const json_t *claim;
    bool is_held;

    begin();
    json_t *host = pool("host", 1, 1), *db = pool("db", 1, 1);
    holder(host, "run", 1, "2027-01-15T08:00:00Z");
    waiter(host, "next", 1, 1, 10);
    holder(db, "old", 1, "2027-01-15T08:00:00Z");
    waiter(db, "run", 1, 1, 20);
    _cleanup_(queue_freep) struct queue *q = queue();
    TEST_INT(queue_count(q), ELEMENTSOF(msec));
    for (size_t i = 0; i < ELEMENTSOF(msec); i++) {
        claim = queue_claim(q, i, &is_held);
        msec[i] = strcmp(format_get_text(claim, "claim"), "old") == 0 ? 10000 : is_held ? 1 : 5000;
    }
    TEST_INT(queue_start_time(q, &(struct queue_change){}, "run", &(struct queue_times){.msec = msec}), 10000);
    TEST_INT(queue_start_time(q, &(struct queue_change){}, "next", &(struct queue_times){.msec = msec}), 15000);
}

/* The times of those before the claim in its second pool count. */
static void second_needed(void) {
    bool needs[3], is_held;

    begin();
    json_t *db = pool("db", 1, 0), *net = pool("net", 1, 1);
    holder(net, "old", 1, "2027-01-15T08:00:00Z");
    waiter(net, "before", 1, 1, 20);
    waiter(db, "run", 1, 1, 10);
    waiter(net, "run", 1, 2, 10);
    _cleanup_(queue_freep) struct queue *q = queue();
    TEST_INT(queue_count(q), ELEMENTSOF(needs));
    TEST_INT(queue_needs(q, &(struct queue_change){}, "run", &(struct queue_times){}, needs), 0);
    for (size_t i = 0; i < ELEMENTSOF(needs); i++)
        CU_ASSERT_EQUAL(needs[i], strcmp(format_get_text(queue_claim(q, i, &is_held), "claim"), "run") != 0);
}

/* The time of a run that frees permits of its host counts, though it waits for nobody. */
static void both_needed(void) {
    bool needs[4];

    begin();
    json_t *host = pool("host", 1, 1), *db = pool("db", 1, 0);
    holder(host, "run", 1, "2027-01-15T08:00:00Z");
    waiter(host, "next", 1, 1, 10);
    waiter(db, "run", 1, 1, 20);
    _cleanup_(queue_freep) struct queue *q = queue();
    TEST_INT(queue_needs(q, &(struct queue_change){}, "next", &(struct queue_times){}, needs), 0);
    CU_ASSERT(needs[queue_number(q, "run")]);
}

/* A claim that was moved to the front keeps no others waiting while it is parked: their times count. */
static void passed(void) {
    const struct queue_later later = {.pool = 0, .limit = 3, .msec = 1000};
    bool needs[4];

    begin();
    json_t *db = pool("db", 1, 1);
    holder(db, "old", 1, "2027-01-15T08:00:00Z");
    waiter(db, "small", 1, 1, 10);
    waiter(db, "large", 3, 0, 20);
    _cleanup_(queue_freep) struct queue *q = queue();
    TEST_INT(queue_needs(q, &(struct queue_change){.first = "large"}, "large",
                         &(struct queue_times){.later = &later, .n_later = 1}, needs),
             0);
    CU_ASSERT(needs[queue_number(q, "small")]);
}

/* --- what would help, beside each change tried alone --- */

static json_int_t slow_lowest_limit(const struct queue *q, int pool, const char *claim) {
    static const char *const names[] = {"p0", "p1", "p2"};
    json_int_t most = slow.used[pool];

    for (int c = 0; c < CLAIMS; c++)
        most += slow.wants[c][pool];
    for (json_int_t limit = slow.limits[pool] + 1; limit <= most; limit++)
        if (queue_starts(q, &(struct queue_change){.pool = names[pool], .limit = limit}, claim, NULL))
            return limit;
    return -1;
}

/* Returns the holder that began last of those whose end starts the claim; "": none. */
static const char *slow_enough(const struct queue *q, const char *claim, bool first) {
    const json_t *best = NULL;
    bool is_held;

    for (size_t i = 0; i < queue_count(q); i++) {
        const json_t *json = queue_claim(q, i, &is_held);
        const struct queue_change change = {.ended = format_get_text(json, "claim"), .first = first ? claim : NULL};

        if (is_held && queue_starts(q, &change, claim, NULL) &&
            (!best || strcmp(format_get_text(json, "since"), format_get_text(best, "since")) > 0))
            best = json;
    }
    return best ? format_get_text(best, "claim") : "";
}

/* Splits the holders of random_pools(): each has one permit. */
static void split_holders(void) {
    for (int p = 0; p < POOLS; p++) {
        json_t *json = json_array_get(pools, (size_t) p);

        json_array_clear(json_object_get(json, "holders"));
        for (int i = 0; i < slow.used[p]; i++) {
            char id[3] = {(char) ('A' + pick(4)), (char) ('0' + p)}, since[32];

            snprintf(since, sizeof(since), "2026-01-01T00:00:%02dZ", pick(20));
            holder(json, id, 1, since);
        }
    }
}

static void help(void) {
    int n_limits = 0, n_ends = 0;

    for (unsigned seed = 1; seed <= 1000; seed++) {
        _cleanup_(queue_freep) struct queue *q = NULL;

        state = seed;
        random_pools();
        split_holders();
        q = queue();
        for (int c = 0; c < CLAIMS; c++) {
            char id[2] = {(char) ('a' + c)};
            json_int_t limit = slow_lowest_limit(q, 1, id);
            const char *alone = slow_enough(q, id, false);

            n_limits += limit > 0;
            n_ends += *alone != '\0';
            TEST_INT(queue_lowest_limit(q, "p1", id), limit);
            TEST_STRING(format_get_text(queue_enough(q, id, false), "claim"), alone);
            TEST_STRING(format_get_text(queue_enough(q, id, true), "claim"), slow_enough(q, id, true));
        }
    }
    CU_ASSERT(n_limits > 1000 && n_ends > 500);
}

int main(int argc, char **argv) {
    CU_TestInfo tests[] = {
        {"order", in_order},        {"two-pools", two_pools}, {"parked", parked}, {"ends", one_ends},
        {"incomplete", incomplete}, {"rules", as_the_rules},  {"both-claims", both_claims},
        {"second-needed", second_needed}, {"both-needed", both_needed}, {"passed", passed}, {"help", help},
        CU_TEST_INFO_NULL,
    };
    CU_SuiteInfo suites[] = {{.pName = "explain-queue", .pTests = tests}, CU_SUITE_INFO_NULL};
    int r = test_main(argc, argv, suites);

    json_decref(pools);
    return r;
}
