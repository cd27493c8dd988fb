/* SPDX-License-Identifier: MIT */

/* A namespace with 100 000 sessions, without a berthd: their calls, with the arguments that a host sends, pipelined over
 * 64 connections. What a heartbeat, a claim and a release cost then, what memory a session takes, and how long it takes
 * to expire 20 000 dead ones. */

#include "tests/bench/benches.h"

#include <string.h>

#include "store/redis/client/script.h"
#include "tests/bench/rig.h"

#define SESSIONS 100000
#define FEW 100
#define DEAD 20000
#define CONNECTIONS 64
#define DEPTH 16      /* calls in flight on each */
#define MEASURED 50000 /* calls */
#define META "berth:{sessions}:meta"
#define NONE "berth:{sessions}:none"
#define FRESH "00112233445566778899aabbccddeeff,+0123456789abcdef0123456789abcdef"
#define EPOCH "00112233445566778899aabbccddeeff"
#define SERIAL "1" /* of each call */
#define A_LEASE "30000000"
#define ARGUMENTS_MAX 32

static struct redis_server server;
static redisContext *connections[CONNECTIONS];
static size_t n_sessions;

struct call {
    const char *argv[ARGUMENTS_MAX];
    int argc;
    char session[36], host[24], claim[36], details[80], dead[24];
};

static void add(struct call *c, const char *word) {
    c->argv[c->argc++] = word;
}

static void begin(struct call *c, enum redis_script script, size_t session) {
    snprintf(c->session, sizeof(c->session), "%032zx", session + 1);
    c->argc = 0;
    add(c, "EVALSHA");
    add(c, redis_script_sha(script));
    add(c, "2");
    add(c, META);
    add(c, NONE);
    add(c, c->session);
    add(c, "1");
}

static void add_list(struct call *c, const char *const *words) {
    for (; *words; words++)
        add(c, *words);
}

static void compose_hello(struct call *c, size_t i) {
    static const char *const rest[] = {"0123456789abcdef0123456789abcdef", "1.0.0", A_LEASE, "0", "0", "0", "0", "0", "0",
                                       FRESH, "2", "db", "1000000", "one", "1", NULL};

    begin(c, REDIS_SCRIPT_HELLO, i);
    snprintf(c->host, sizeof(c->host), "host-%06zu", i);
    add(c, "");
    add(c, c->host);
    add_list(c, rest);
}

static void compose_heartbeat(struct call *c, size_t i) {
    begin(c, REDIS_SCRIPT_HEARTBEAT, i % n_sessions);
    add_list(c, (const char *const[]){EPOCH, SERIAL, "0", "0", "0", "0", NULL});
}

static void add_claim(struct call *c, size_t i) {
    snprintf(c->claim, sizeof(c->claim), "%024zx%08x", i, 0xabcdef);
    add(c, EPOCH);
    add(c, SERIAL);
    add(c, c->claim);
}

static void compose_claim(struct call *c, size_t i) {
    begin(c, REDIS_SCRIPT_CLAIM, i % n_sessions);
    add_claim(c, i);
    snprintf(c->details, sizeof(c->details), "0 4711 %s backup", c->claim);
    add(c, c->details);
    add_list(c, (const char *const[]){"0", "0", "db", "1", "1000000", NULL});
}

static void compose_release(struct call *c, size_t i) {
    begin(c, REDIS_SCRIPT_RELEASE, i % n_sessions);
    add_claim(c, i);
}

/* Returns the first word of a reply, or of its first element. */
static const char *word_of(const redisReply *reply) {
    if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements > 0)
        reply = reply->element[0];
    return reply && reply->str ? reply->str : "no reply";
}

static void check(const redisReply *reply) {
    if (strncmp(word_of(reply), "ok", 2) != 0)
        rig_fail("a call of a session: %s", word_of(reply));
}

/* Makes n calls. */
static void run(size_t n, void (*compose)(struct call *c, size_t i)) {
    size_t sent[CONNECTIONS];
    struct call c;

    for (size_t i = 0; i < n;) {
        memset(sent, 0, sizeof(sent));
        for (size_t k = 0; k < CONNECTIONS; k++)
            for (; sent[k] < DEPTH && i < n; i++, sent[k]++) {
                compose(&c, i);
                (void) redisAppendCommandArgv(connections[k], c.argc, c.argv, NULL);
            }
        for (size_t k = 0; k < CONNECTIONS; k++)
            while (sent[k]-- > 0) {
                redisReply *reply = NULL;

                (void) redisGetReply(connections[k], (void **) &reply);
                check(reply);
                freeReplyObject(reply);
            }
    }
}

static redisReply *call_once(struct call *c) {
    return redisCommandArgv(connections[0], c->argc, c->argv, NULL);
}

/* Returns the server time of each of n calls, µs. */
static double cost(size_t n, void (*compose)(struct call *c, size_t i)) {
    uint64_t calls;
    double usec;

    rig_reset_stats(&server);
    run(n, compose);
    usec = rig_server_usec(&server, "evalsha", &calls);
    return usec / (double) calls;
}

static double memory_used(void) {
    _cleanup_reply_ redisReply *reply = redis_command(&server, "INFO memory");
    const char *at = reply && reply->str ? strstr(reply->str, "used_memory:") : NULL;

    return at ? strtod(at + strlen("used_memory:"), NULL) : 0;
}

static void set_up(void) {
    static const enum redis_script scripts[] = {REDIS_SCRIPT_HELLO, REDIS_SCRIPT_HEARTBEAT, REDIS_SCRIPT_CLAIM, REDIS_SCRIPT_RELEASE};
    struct call c;

    if (redis_server_start(&server, (const char *const[]){"--slowlog-log-slower-than", "1000", "--slowlog-max-len", "4096", NULL}) < 0)
        rig_fail("no redis-server");
    for (size_t i = 0; i < ELEMENTSOF(scripts); i++)
        redis_reply_freep(&(redisReply *){redis_command(&server, "SCRIPT LOAD %s", redis_script_text(scripts[i]))});
    for (size_t k = 0; k < CONNECTIONS; k++) {
        connections[k] = redisConnectUnix(server.socket);
        if (!connections[k] || connections[k]->err)
            rig_fail("cannot connect");
    }
    run(1, compose_hello);
    n_sessions = 1;
    compose_heartbeat(&c, 0);
    add(&c, A_LEASE); /* ends grace */
    add(&c, "0");
    _cleanup_reply_ redisReply *reply = call_once(&c);
    check(reply);
}

static void tear_down(void) {
    for (size_t k = 0; k < CONNECTIONS; k++)
        redisFree(connections[k]);
    redis_server_done(&server);
}

struct costs {
    double heartbeat, claim, release;
};

static struct costs measure(void) {
    struct costs costs;

    costs.heartbeat = cost(MEASURED, compose_heartbeat);
    costs.claim = cost(MEASURED, compose_claim);
    costs.release = cost(MEASURED, compose_release);
    return costs;
}

/* One living session expires 20 000 dead ones, and calls again while more are left. */
static void expire(struct report *r) {
    struct call c;
    usec_t began;
    double worst = 0, cpu;
    unsigned calls = 0;
    long long count = redis_number(&server, "HGET " META " heartbeat_count");

    n_sessions = SESSIONS - DEAD;
    run(n_sessions, compose_heartbeat);
    redis_reply_freep(&(redisReply *){redis_command(&server, "SLOWLOG RESET")});
    cpu = rig_server_cpu(&server);
    began = clock_boottime();
    while (redis_number(&server, "ZCARD berth:{sessions}:heartbeats") > (long long) n_sessions) {
        begin(&c, REDIS_SCRIPT_HEARTBEAT, 0);
        snprintf(c.dead, sizeof(c.dead), "%lld", count);
        add_list(&c, (const char *const[]){EPOCH, SERIAL, c.dead, "0", "0", "0", NULL});
        _cleanup_reply_ redisReply *reply = call_once(&c);
        check(reply);
        if (++calls > 2 * DEAD)
            rig_fail("the dead are not expired");
    }
    report_add(r, &(struct figure){"expiry of 20 000 dead sessions of 100 000", (double) (clock_boottime() - began) / USEC_PER_MSEC, "ms",
                                   NULL, 0, GOAL_VALUE_AT_MOST, 60000});
    report_add(r, &(struct figure){"  Redis's CPU time of a call of it", 1000 * (rig_server_cpu(&server) - cpu) / calls, "ms", NULL, 0,
                                   GOAL_VALUE_AT_MOST, 20});
    _cleanup_reply_ redisReply *slow = redis_command(&server, "SLOWLOG GET 4096");
    for (size_t i = 0; slow && i < slow->elements; i++)
        if ((double) slow->element[i]->element[2]->integer > worst)
            worst = (double) slow->element[i]->element[2]->integer;
    report_add(r, &(struct figure){"  the longest call of it", worst / USEC_PER_MSEC, "ms", NULL, 0, GOAL_VALUE_AT_MOST, 20});
}

void bench_sessions(struct report *r) {
    struct costs few, many;
    double memory;

    report_section(r, "100 000 sessions");
    set_up();
    run(FEW, compose_hello);
    n_sessions = FEW;
    few = measure();
    memory = memory_used();
    run(SESSIONS, compose_hello);
    memory = (memory_used() - memory) / (SESSIONS - FEW);
    n_sessions = SESSIONS;
    many = measure();
    report_add(r, &(struct figure){"heartbeat, 100 000 sessions", many.heartbeat, "µs", "100 sessions", few.heartbeat, GOAL_RATIO_AT_MOST, 1.2});
    report_add(r, &(struct figure){"claim, 100 000 sessions", many.claim, "µs", "100 sessions", few.claim, GOAL_NONE, 0});
    report_add(r, &(struct figure){"release, 100 000 sessions", many.release, "µs", "100 sessions", few.release, GOAL_NONE, 0});
    report_add(r, &(struct figure){"memory of Redis for each session", memory, "bytes", NULL, 0, GOAL_VALUE_AT_MOST, 1536});
    expire(r);
    tear_down();
}
