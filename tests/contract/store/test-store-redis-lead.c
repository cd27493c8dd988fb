/* SPDX-License-Identifier: MIT */

/* The namespace's clock after Redis's clock was a day ahead and was set right (R2, R7): thirty days pass
 * with heartbeats, reloads, and restarts of berthds and of Redis. The lead over TIME does not grow, and head
 * starts have their full length. The test drives all clocks. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/clock-file.h"
#include "tests/harness/redis/redis-bed.h"
#include "tests/harness/redis/redis-clock.h"

#define MINUTE (60 * (long long) USEC_PER_SEC)
#define DAY (24 * 60 * MINUTE)
#define DAYS 30
#define RESTART_EVERY 10 /* days: Redis */
#define LEASE ((usec_t) (6 * 60 * MINUTE))
#define RESTART (2 * LEASE) /* until all hosts are back */
#define STEP (LEASE / 12) /* half a heartbeat */
#define LATER 600 /* claims */
#define PAUSE (100 * (long long) USEC_PER_MSEC) /* between two claims */
#define HEAD_START (2 * (long long) USEC_PER_SEC)

static struct bed b;
static usec_t begun;            /* when Redis's clock was right */
static long long stepped;       /* how far it is wrong */
static char session_paths[2][sizeof(redis_bed.server.directory) + 16];

/* Lets Redis's clock follow that of the stores. */
static void set_time(long long step) {
    stepped = step;
    CU_ASSERT(redis_clock_set((long long) (clock_boottime() - begun) + stepped));
}

/* Advances the clock in steps; all due timers run after each. */
static void pass(usec_t usec) {
    usec_t end = clock_boottime() + usec, now;

    while ((now = clock_boottime()) < end) {
        usec_t next = end - now < STEP ? end : now + STEP;

        clock_file_stand(&own_clock, next);
        set_time(stepped);
        next += 50 * USEC_PER_MSEC; /* also for reconnecting */
        while (clock_boottime() < next && bed_turn(&b, next))
            ;
    }
}

static long long field(const char *name) {
    return redis_number(&redis_bed.server, "HGET berth:{test}:meta %s", name);
}

static long long redis_time(void) {
    _cleanup_reply_ redisReply *r = redis_command(&redis_bed.server, "TIME");

    CU_ASSERT_FATAL(r && r->type == REDIS_REPLY_ARRAY && r->elements == 2);
    return strtoll(r->element[0]->str, NULL, 10) * (long long) USEC_PER_SEC + strtoll(r->element[1]->str, NULL, 10);
}

/* Returns how far the next number can be ahead of TIME. */
static long long lead(void) {
    long long ahead = field("clock") - redis_time(), kept = field("lead");

    return ahead > kept ? ahead : kept;
}

static bool begin(long long step) {
    redis_bed.lease = LEASE;
    redis_bed.heartbeat = LEASE / 6;
    begun = clock_boottime();
    set_time(step);
    for (unsigned i = 0; i < 2; i++) {
        (void) snprintf(session_paths[i], sizeof(session_paths[i]), "%s/session-%u", redis_bed.server.directory, i);
        redis_bed.session_path[i] = session_paths[i];
    }
    return redis_bed_begin(&b, 2);
}

static void end(void) {
    bed_done(&b);
    redis_bed.session_path[0] = redis_bed.session_path[1] = NULL;
}

static void reload(unsigned host) {
    TEST_INT(bed_declare(&b, host, redis_bed_pools, ELEMENTSOF(redis_bed_pools)), 0);
}

/* Restarts berthd of a host without claims. */
static void restart_berthd(void) {
    bed_die(&b, 1);
    bed_come_back(&b, 1);
    b.in_call = true;
    TEST_INT(store_start(b.stores[1]), 0);
    b.in_call = false;
    BED_UNTIL(&b, bed_all_ready(&b));
}

/* A restart of Redis with its data: a new epoch, and a lease of grace. */
static void restart_redis(void) {
    TEST_INT(redis_server_restart(&redis_bed.server, true), 0);
    pass(RESTART);
    BED_UNTIL(&b, bed_all_ready(&b));
}

/* Bound of the growth. The age of a number received before a new epoch is known only to one percent (R8,
 * R10). The number was received a heartbeat before Redis restarted, and reported again before that restart
 * was over. */
#define GROWTH ((long long) (DAYS / RESTART_EVERY * (RESTART + LEASE / 6) / 100))

/* Passes DAYS days with reloads and restarts. Returns the highest lead. */
static long long live_on(void) {
    long long highest = 0;

    for (unsigned day = 1; day <= DAYS; day++) {
        pass((usec_t) DAY);
        reload(day % 2);
        if (day % 5 == 0)
            restart_berthd();
        if (day % RESTART_EVERY == 0)
            restart_redis();
        bed_settle(&b);
        if (lead() > highest)
            highest = lead();
    }
    return highest;
}

static struct probe *ask_later(long long head_start) {
    struct probe *p = bed_probe(&b, 0, "db:4");

    p->claim.head_start_usec = (usec_t) head_start;
    probe_wait(p);
    return p;
}

static long long place_of(const struct probe *p) {
    return redis_number(&redis_bed.server, "ZRANK berth:{test}:pool:db:queue %s", p->claim.id);
}

/* Without waiting claims, the lead is gone when the next number is drawn. */
static void test_idle(void) {
    long long before, highest;

    if (!begin(DAY))
        return;
    struct probe *first = bed_probe(&b, 0, "one");
    probe_grant(first);
    probe_end(first);
    set_time(0);
    before = lead();
    CU_ASSERT(before > DAY - MINUTE && before <= DAY);
    highest = live_on();
    struct probe *last = bed_probe(&b, 0, "one");
    probe_grant(last);
    printf("idle: the lead was %.3f s, at most %.3f s in %d days, then %.3f s\n", (double) before / 1e6, (double) highest / 1e6, DAYS,
           (double) ((long long) last->token - redis_time()) / 1e6);
    CU_ASSERT(highest <= before + GROWTH);
    CU_ASSERT((long long) last->token <= redis_time());
    end();
}

static void check_told(const struct probe *p) {
    long long told = (long long) p->claim.lead_usec, ahead = (long long) p->token - redis_time();

    CU_ASSERT(ahead > DAY - MINUTE && told >= ahead && told < ahead + MINUTE);
}

/* The lead of a grant is how far its token is ahead of TIME, whether a reply or a push brings the grant. */
static void test_told(void) {
    struct probe *held[3];

    if (!begin(DAY))
        return;
    probe_grant(held[0] = bed_probe(&b, 0, "one"));
    CU_ASSERT(held[0]->claim.lead_usec == 0);
    probe_wait(held[1] = bed_probe(&b, 0, "one"));
    set_time(0);
    probe_end(held[0]);
    BED_UNTIL(&b, held[1]->n_granted > 0);
    check_told(held[1]);
    probe_end(held[1]);
    probe_grant(held[2] = bed_probe(&b, 0, "one"));
    check_told(held[2]);
    probe_end(held[2]);
    end();
}

/* No lead appears by itself, at any age of the number that a host remembers. */
static void test_reloaded(void) {
    if (!begin(0))
        return;
    struct probe *p = bed_probe(&b, 0, "one");
    probe_grant(p);
    pass((usec_t) DAYS * DAY);
    reload(0);
    bed_settle(&b);
    printf("reloaded once after %d days: the lead is %.3f s\n", DAYS, (double) lead() / 1e6);
    CU_ASSERT(lead() <= 0);
    end();
}

/* Later claims with a head start precede a plain one only if they came soon enough. n others wait in front
 * of it. */
static void check_order(long long n) {
    struct probe *plain = ask_later(0), *later[LATER];

    for (unsigned i = 0; i < LATER; i++) {
        set_time(stepped + PAUSE);
        later[i] = ask_later(HEAD_START);
        CU_ASSERT(later[i]->ticket >= plain->ticket + (i + 1) * (uint64_t) PAUSE);
    }
    printf("the plain claim is number %lld of %d\n", place_of(plain) - n + 1, LATER + 1);
    CU_ASSERT(place_of(plain) >= n && place_of(plain) <= n + HEAD_START / PAUSE);
    TEST_INT(place_of(later[LATER - 1]), n + LATER);
    for (unsigned i = 0; i < LATER; i++)
        probe_end(later[i]);
    probe_end(plain);
}

/* While a claim waits the lead has to stay. */
static void test_order(void) {
    long long before, highest;

    if (!begin(DAY))
        return;
    probe_grant(bed_probe(&b, 0, "db:4"));
    probe_wait(bed_probe(&b, 0, "db:4"));
    set_time(0);
    (void) ask_later(0); /* draws a number: there is a lead from here on */
    before = lead();
    check_order(2);
    highest = live_on();
    printf("a claim waits: the lead was %.3f s, at most %.3f s in %d days\n", (double) before / 1e6, (double) highest / 1e6, DAYS);
    CU_ASSERT(highest <= before + GROWTH);
    check_order(2);
    end();
}

static CU_TestInfo tests[] = {{"idle", test_idle}, {"told", test_told}, {"reloaded", test_reloaded}, {"order", test_order}, CU_TEST_INFO_NULL};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-redis, lead", .pTests = tests}, CU_SUITE_INFO_NULL};
    int r;

    clock_file_own(argv);
    clock_file_stand(&own_clock, clock_boottime());
    redis_clock_own();
    r = redis_bed_main(argc, argv, suites, NULL);
    redis_clock_done();
    return r;
}
