/* SPDX-License-Identifier: MIT */

/* The reply to a call for a turn is lost, or a push of the grant overtakes it. Only this reply names the attempt and the chain
 * of attempts, so nothing is granted without it. */

#include <stdio.h>
#include <string.h>

#include "tests/harness/redis/redis-bed.h"

#define DUE INT64_C(1700000000)
#define CHAIN "11111111111111111111111111111111:5"

static struct proxy proxy;
static const struct store_pool pools[] = {
    {.name = "@j", .limit = 1, .queue_limit = 100},
    {.name = "one", .limit = 1, .queue_limit = 100},
};

static struct probe *ask_for(struct bed *b, unsigned host, struct claim_turn *turn) {
    struct probe *p = bed_probe(b, host, "x:1,one:1");

    snprintf(p->demands.items[0].pool, sizeof(p->demands.items[0].pool), "@j");
    *turn = (struct claim_turn) {.pool = p->demands.items[0].pool, .due = DUE, .again_usec = USEC_INFINITY};
    p->claim.turn = turn;
    return p;
}

static void commit(struct probe *p) {
    if (p->claim.turn)
        store_commit(p->bed->stores[p->host], &p->claim);
}

/* Makes the bed. Its first host has given the turn back as attempt 2. */
static bool begin(struct bed *b) {
    struct claim_turn turn;
    struct probe *p;

    proxy_set(&proxy, PROXY_PASS, 0, false);
    if (!bed_init(b, redis_bed_fixture(2), pools, ELEMENTSOF(pools)) || !bed_start(b))
        return false;
    p = ask_for(b, 0, &turn);
    TEST_INT(store_claim(b->stores[0], &p->claim), 0);
    BED_UNTIL(b, p->n_granted > 0);
    snprintf(turn.chain, sizeof(turn.chain), CHAIN);
    store_commit(b->stores[0], &p->claim);
    BED_UNTIL(b, b->n_committed == 1);
    store_give_back(b->stores[0], &p->claim, 2, 0);
    BED_UNTIL(b, p->n_released > 0);
    p->claim.turn = NULL;
    b->on_granted = commit; /* as the manager does */
    bed_settle(b);
    return true;
}

/* Awaits the commit, checks what its owner knows of the turn, and ends the bed. */
static void finish_granted(struct bed *b, struct probe *p, const struct claim_turn *turn) {
    BED_UNTIL(b, b->n_committed == 2 && bed_all_ready(b));
    TEST_INT(p->n_granted, 1);
    TEST_INT(turn->attempt, 2);
    CU_ASSERT_STRING_EQUAL(turn->chain, CHAIN);
    p->claim.turn = NULL;
    bed_done(b);
}

/* Turns the loop until Redis has a claim of this state. */
static void await_state(struct bed *b, const struct probe *p, char state) {
    usec_t end = clock_boottime() + BED_DEADLINE_USEC;
    bool is_there = false;

    while (!is_there && clock_boottime() < end) {
        _cleanup_reply_ redisReply *reply = redis_command(&redis_bed.server, "HGET berth:{test}:claims %s", p->claim.id);

        is_there = reply && reply->type == REDIS_REPLY_STRING && reply->str[0] == state;
        (void) bed_turn(b, clock_boottime() + 5 * USEC_PER_MSEC);
    }
    CU_ASSERT_FATAL(is_there);
}

/* Asks for the turn while replies do not come, until Redis has the claim in this state. */
static void ask_without_reply(struct bed *b, struct probe *p, char state) {
    proxy_set(&proxy, PROXY_HOLD_REPLIES, 0, false);
    TEST_INT(store_claim(b->stores[1], &p->claim), 0);
    await_state(b, p, state);
}

/* All connections end, and so does what the proxy has kept. */
static void cut(struct bed *b) {
    proxy_set(&proxy, PROXY_CUT, 0, false);
    BED_UNTIL(b, b->stores[0]->state == STORE_STATE_AWAY && b->stores[1]->state == STORE_STATE_AWAY);
    proxy_set(&proxy, PROXY_PASS, 0, false);
}

static void test_granted(void) {
    struct claim_turn turn;
    struct probe *p;
    struct bed b;

    if (!begin(&b))
        return;
    p = ask_for(&b, 1, &turn);
    ask_without_reply(&b, p, 'H');
    cut(&b);
    finish_granted(&b, p, &turn);
}

static void test_queued(void) {
    struct claim_turn turn;
    struct probe *p, *holder;
    struct bed b;

    if (!begin(&b))
        return;
    holder = bed_probe(&b, 0, "one:1");
    probe_grant(holder);
    p = ask_for(&b, 1, &turn);
    ask_without_reply(&b, p, 'W');
    cut(&b);
    BED_UNTIL(&b, p->n_waiting > 0);
    TEST_INT(turn.attempt, 2);
    probe_end(holder);
    finish_granted(&b, p, &turn);
}

/* The claim is queued, and the push of its grant comes while the reply is on its way. */
static struct probe *grant_before_reply(struct bed *b, struct claim_turn *turn) {
    struct probe *holder = bed_probe(b, 0, "one:1"), *p;

    probe_grant(holder);
    p = ask_for(b, 1, turn);
    ask_without_reply(b, p, 'W');
    probe_release(holder);
    BED_UNTIL(b, p->claim.state == CLAIM_STATE_HELD);
    TEST_INT(p->n_granted, 0);
    return p;
}

static void test_overtaken(void) {
    struct claim_turn turn;
    struct probe *p;
    struct bed b;

    if (!begin(&b))
        return;
    p = grant_before_reply(&b, &turn);
    proxy_set(&proxy, PROXY_PASS, 0, false);
    finish_granted(&b, p, &turn);
}

static void test_overtaken_and_lost(void) {
    struct claim_turn turn;
    struct probe *p;
    struct bed b;

    if (!begin(&b))
        return;
    p = grant_before_reply(&b, &turn);
    cut(&b);
    finish_granted(&b, p, &turn);
}

/* The run is withdrawn after the connection broke, and before the host requests the turn again: Redis frees its permits. */
static void test_withdrawn(void) {
    struct claim_turn turn;
    struct probe *p;
    struct bed b;

    if (!begin(&b))
        return;
    p = ask_for(&b, 1, &turn);
    ask_without_reply(&b, p, 'H');
    cut(&b);
    store_release(b.stores[1], &p->claim);
    BED_UNTIL(&b, p->n_released > 0 && bed_all_ready(&b));
    TEST_INT(bed_used(&b, "one") + bed_used(&b, "@j"), 0);
    p->claim.turn = NULL;
    bed_done(&b);
}

/* Redis was full. The first reply after that refuses the turn, and must not lead to another request for it. */
static void test_refused_after_full(void) {
    struct claim_turn taken, turn;
    struct probe *holder, *p, *next;
    struct bed b;

    if (!begin(&b))
        return;
    holder = ask_for(&b, 0, &taken);
    TEST_INT(store_claim(b.stores[0], &holder->claim), 0);
    BED_UNTIL(&b, b.n_committed == 2);
    redis_bed_command("CONFIG SET maxmemory 1");
    p = ask_for(&b, 1, &turn);
    TEST_INT(store_claim(b.stores[1], &p->claim), 0);
    BED_UNTIL(&b, b.stores[1]->is_full);
    redis_bed_command("CONFIG SET maxmemory 0");
    BED_UNTIL(&b, p->claim.state == CLAIM_STATE_NONE && !b.stores[1]->is_full);
    TEST_INT(b.n_turns_refused, 1);
    TEST_INT(p->n_granted, 0);
    holder->claim.turn = NULL;
    probe_release(holder);
    next = bed_probe(&b, 1, "one:1");
    probe_grant(next);
    probe_end(next);
    bed_done(&b);
}

static CU_TestInfo tests[] = {
    {"refused after Redis was full", test_refused_after_full},
    {"the reply to a granted one is lost", test_granted},
    {"the reply to a queued one is lost", test_queued},
    {"the grant overtakes the reply", test_overtaken},
    {"the grant overtakes a reply that is lost", test_overtaken_and_lost},
    {"withdrawn after the reply was lost", test_withdrawn},
    CU_TEST_INFO_NULL,
};

static int prepare(void) {
    return redis_bed_start_proxy(&proxy);
}

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-redis-turn-replies", .pTests = tests}, CU_SUITE_INFO_NULL};
    int r = redis_bed_main(argc, argv, suites, prepare);

    proxy_done(&proxy);
    return r;
}
