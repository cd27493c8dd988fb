/* SPDX-License-Identifier: MIT */

/* Scripts that fail in the middle of their work, because berth's user lacks a right or a key has a wrong
 * type. Redis undoes nothing. The host that got the error reports it in its next hello. This hello drops
 * everything except the clock and the overrides, and hosts report again. */

#include <fnmatch.h>
#include <string.h>

#include "store/redis/client/reply.h"
#include "tests/harness/redis/script.h"

#define CALLS_MAX 120
#define TURNS_MAX 30

/* Claims as the hosts know them, independent of Redis. */
struct known {
    const char *id, *session, *pools; /* pools: "db:4" */
    unsigned db, net;
    char state; /* '-': not requested; A: requested without a reply; W; H; D: released */
};

static const struct known before[] = {
    {"a", "s1", "db:4", 4, 0, 'H'}, {"b", "s2", "db:2", 2, 0, 'W'}, {"c", "s1", "db:1", 1, 0, 'W'},
    {"e", "s1", "db:1,net:1", 1, 1, 'W'}, {"n", "s2", "net:1", 0, 1, 'H'}, {"d", "s2", "net:2", 0, 2, 'W'},
    {"x", "s1", "db:1", 1, 0, '-'}, {"y", "s2", "db:1", 1, 0, '-'}, {"z", "s1", "db:1", 1, 0, '-'},
};
static struct known known[ELEMENTSOF(before)];
static char clock_before[32], override_before[200];

static struct known *find(const char *id) {
    for (size_t i = 0; i < ELEMENTSOF(known); i++)
        if (strcmp(known[i].id, id) == 0)
            return &known[i];
    abort();
}

static void note(char *to, size_t size, const char *field) {
    (void) snprintf(to, size, "%s", script_field("meta", field));
}

/* a holds all of db; b, c and e wait for it; n holds the one permit of net that an override leaves; d wants
 * two and is parked. */
static void fill(void) {
    memcpy(known, before, sizeof(known));
    script_begin();
    EXPECT(script_say("override s1 1 $ net 0 id1 set 1 0 why"), "ok $ 0 *");
    EXPECT(script_claim("s1", "a", "db 4 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "b", "db 2 100"), "ok $ 0 W *");
    EXPECT(script_claim("s1", "c", "db 1 100"), "ok $ 0 W *");
    EXPECT(script_claim("s2", "n", "net 1 100"), "ok $ 0 H *");
    EXPECT(script_claim("s2", "d", "net 2 100"), "ok $ 0 P *");
    EXPECT(script_claim("s1", "e", "db 1 100 net 1 100"), "ok $ 0 W *");
    note(clock_before, sizeof(clock_before), "clock");
    note(override_before, sizeof(override_before), "o:net");
}

/* --- replies to hosts --- */

static void hear_pushes(void) {
    _cleanup_reply_ redisReply *pushes = redis_command(&script_server, "LRANGE " PUSHES " 0 -1");
    char id[8];

    for (size_t i = 0; pushes && i < pushes->elements; i++)
        if (sscanf(pushes->element[i]->str, "granted %*s %*s %*s %7s", id) == 1)
            find(id)->state = 'H';
    script_tell("DEL " PUSHES);
}

/* Checks that no permit is granted twice. */
static void check_limits(const char *when) {
    unsigned db = 0, net = 0;

    for (size_t i = 0; i < ELEMENTSOF(known); i++)
        if (known[i].state == 'H') {
            db += known[i].db;
            net += known[i].net;
        }
    CU_assertImplementation(db <= 4 && net <= 2, __LINE__, when, __FILE__, "", CU_FALSE);
}

/* --- all hosts report again --- */

static void tell_truth(const char *session) {
    char line[2048];
    int n = snprintf(line, sizeof(line), "sync %s 1 $ 0 1 1", session);

    for (unsigned pass = 0; pass < 2; pass++) /* held ones first */
        for (unsigned i = 0; i < ELEMENTSOF(known); i++) {
            const struct known *k = &known[i];
            bool held = k->state == 'H';

            if (strcmp(k->session, session) != 0 || k->state == '-' || k->state == 'D' || held != (pass == 0))
                continue;
            n += snprintf(line + n, sizeof(line) - (size_t) n, " %s %c %u %u 0 0 7 r-%s name %s", k->id, k->state, held ? 11 + i : 0,
                          k->state == 'A' ? 0 : 11 + i, k->id, k->pools);
        }
    EXPECT(script_say(line), "ok $ 0 1 *");
}

static void say_hello(const char *session, const char *epoch, unsigned lost) {
    EXPECT(script_sayf("hello %s 1 ~ %s m1 v1 %d %s 0 %s 0 0 %u ! 2 db 4 net 2", session, session, LEASE, clock_before, epoch, lost), "ok * 0 1 *");
}

static void check_wiped(const char *session) {
    TEST_INT(script_used("db"), 0);
    TEST_INT(script_used("net"), 0);
    TEST_INT(redis_number(&script_server, "EXISTS berth:{t}:claims berth:{t}:waiting "
             "berth:{t}:session:s1:claims berth:{t}:session:s2:claims"), 0);
    TEST_INT(redis_number(&script_server, "EXISTS berth:{t}:pool:db:queue berth:{t}:pool:net:queue berth:{t}:pool:net:parked"), 0);
    TEST_INT(redis_number(&script_server, "HLEN berth:{t}:sessions"), 1);
    TEST_INT(redis_number(&script_server, "HEXISTS berth:{t}:sessions %s", session), 1);
    CU_ASSERT(strtoull(script_field("meta", "clock"), NULL, 10) > strtoull(clock_before, NULL, 10));
}

/* First the host that got the error reports, then the other one. */
static void start_anew(const char *first) {
    const char *other = strcmp(first, "s1") == 0 ? "s2" : "s1";
    char old[sizeof(script_epoch)];

    memcpy(old, script_epoch, sizeof(old));
    say_hello(first, old, 2);
    script_learn_new_epoch();
    check_wiped(first);
    tell_truth(first);
    EXPECT(script_sayf("heartbeat %s 1 %s 0 0 0 0", other, old), "epoch $");
    say_hello(other, old, 0);
    tell_truth(other);
    for (size_t i = 0; i < ELEMENTSOF(known); i++)
        if (known[i].state == 'W')
            TEST_INT(script_state(known[i].id), 'W');
    EXPECT(script_beat(first, 0, LEASE), "ok $ 0 0 *");
}

/* Checks that each claim is granted in the end. */
static void serve_all(void) {
    bool all = false;

    for (unsigned turn = 0; turn < TURNS_MAX && !all; turn++) {
        all = true;
        for (size_t i = 0; i < ELEMENTSOF(known); i++) {
            struct known *k = &known[i];

            if (k->state == 'A') /* Redis lost it: requested again */
                k->state = *script_sayf("claim %s 1 $ %s 0_7_r-%s_name 0 0 db 1 100", k->session, k->id, k->id) == 'o' ? 'W' : 'A';
            if (k->state != '-' && script_state(k->id) == 'H') {
                EXPECT(script_sayf("release %s 1 $ %s", k->session, k->id), "ok $ *");
                k->state = 'D';
            }
            all = all && (k->state == '-' || k->state == 'D');
        }
        if (turn == TURNS_MAX / 2 && strncmp(script_field("meta", "o:net"), "nothing", 7) != 0)
            EXPECT(script_sayf("override s1 1 $ net %llu id9 clear 0 0 why", strtoull(script_field("meta", "o:net"), NULL, 10)), "ok *");
    }
    for (size_t i = 0; i < ELEMENTSOF(known); i++)
        CU_assertImplementation(known[i].state == '-' || known[i].state == 'D', __LINE__, known[i].id, __FILE__, "is not served", CU_FALSE);
    script_end();
}

/* --- calls that fail --- */

struct halfway {
    const char *session, *line;
    const char *requests, *releases, *releases_too; /* claims, or NULL */
    bool wipes; /* the epoch ends before any claim is lost */
};

static const struct halfway calls[] = {
    {.session = "s1", .line = "hello s1 1 ~ s1 m1 v1 30000000 0 0 $ 0 0 0 ! 2 db 3 net 2"},
    {.session = "s1", .line = "hello s1 1 ~ s1 m1 v1 30000000 0 0 $ 0 0 1 ! 2 db 4 net 2"},
    {.session = "s1", .line = "hello s1 1 ~ s1 m1 v1 30000000 0 0 $ 0 0 2 ! 2 db 4 net 2", .wipes = true},
    {.session = "s1", .line = "hello s1 1 ~ s1 m1 v1 30000000 0 0 0 0 0 2 ! 2 db 4 net 2", .wipes = true}, /* of a host that was in no epoch */
    {.session = "s1", .line = "heartbeat s1 1 $ 0 0 0 0 0 0"},
    {.session = "s1", .line = "heartbeat s1 1 $ 2 0 0 0"}, /* expires s2 */
    {.session = "s1", .line = "claim s1 1 $ x 0_7_r-x_name 0 0 db 1 100", .requests = "x"},
    {.session = "s1", .line = "claims s1 1 $ db 100 x 0_7_r-x_name z 0_7_r-z_name", .requests = "x"},
    {.session = "s1", .line = "sync s1 1 $ 0 1 1 a H 11 11 0 0 7 r-a name db:4 c W 0 13 0 0 7 r-c name db:1"},
    {.session = "s1", .line = "release s1 1 $ a", .releases = "a"},
    {.session = "s2", .line = "release s2 1 $ n", .releases = "n"},
    {.session = "s1", .line = "releases s1 1 $ a c", .releases = "a", .releases_too = "c"},
    {.session = "s2", .line = "revoke s2 1 $ b enough"},
    {.session = "s1", .line = "revoke s1 1 $ n enough"},
    {.session = "s1", .line = "override s1 1 $ db 0 id2 set 3 0 why"},
    {.session = "s1", .line = "verify s1 1 $ a c e"},
    {.session = "s2", .line = "verify s2 1 $ n b d"},
};

/* Sends a claim of the other host before any host has reported again. */
static void ask_meanwhile(const char *failed) {
    const char *reply;

    if (strcmp(failed, "s2") == 0)
        return;
    reply = script_say("claim s2 1 $ y 0_7_r-y_name 0 0 db 1 100");
    if (fnmatch("ok * 0 H *", reply, 0) == 0)
        find("y")->state = 'H';
    else if (strncmp(reply, "ok ", 3) == 0)
        find("y")->state = 'W';
}

/* Returns false if the script makes fewer calls. */
static bool fails_at(const struct halfway *h, unsigned at) {
    const char *reply;

    fill();
    reply = script_say_failing(h->line, at);
    if (!strstr(reply, "halfway"))
        return false;
    CU_ASSERT(strstr(reply, "script: ") && redis_error_class(reply) == REDIS_ERROR_FATAL); /* berthd recognizes the error by this */
    if (h->wipes && strcmp(script_field("meta", "epoch"), script_epoch) == 0)
        TEST_INT(redis_number(&script_server, "HLEN berth:{t}:claims"), ELEMENTSOF(before) - 3);
    if (h->requests)
        find(h->requests)->state = 'A';
    if (h->releases)
        find(h->releases)->state = 'D';
    if (h->releases_too)
        find(h->releases_too)->state = 'D';
    hear_pushes();
    ask_meanwhile(h->session);
    check_limits(h->line);
    start_anew(h->session);
    if (strncmp(h->line, "override", 8) != 0)
        TEST_STRING(script_field("meta", "o:net"), override_before);
    check_limits(h->line);
    serve_all();
    return true;
}

static void test_each_call(void) {
    for (size_t i = 0; i < ELEMENTSOF(calls); i++) {
        unsigned failed = CU_get_number_of_failures(), at = 1;

        while (at < CALLS_MAX && fails_at(&calls[i], at) && CU_get_number_of_failures() == failed)
            at++;
        if (CU_get_number_of_failures() != failed)
            printf("when call %u of this failed: %s\n", at, calls[i].line);
        CU_ASSERT(at > 2 && at < CALLS_MAX);
    }
}

/* --- keys of a wrong type --- */

static const char *const keys[] = {
    "claims", "sessions", "heartbeats", "waiting", "unsettled", "overrides",
    "session:s1:claims", "session:s2:claims", "pool:db:held", "pool:db:queue", "pool:net:held",
    "pool:net:parked", "pool:db:limits", "pool:net:host_scoped", "session:s1:unsynced", "meta",
};

/* Makes the calls that a host makes sooner or later, until one fails. */
static const char *meet_error(void) {
    static const char *const lines[] = {
        "verify s1 1 $ a c e", "verify s2 1 $ n b d", "heartbeat s1 1 $ 0 0 0 0 0 0", "claim s2 1 $ y 0_7_r-y_name 0 0 db 1 100",
        "hello s1 1 ~ s1 m1 v1 30000000 0 0 $ 0 0 0 ! 2 db 3 net 2", "sync s1 1 $ 0 1 1 a H 11 11 0 0 7 r-a name db:4",
        "override s2 1 $ db 0 id2 set 4 0 why", "hello s1 1 ~ s1 m1 v1 30000000 0 0 $ 0 0 1 ! 2 db 4 net 2",
    };

    for (size_t i = 0; i < ELEMENTSOF(lines); i++)
        if (strstr(script_say(lines[i]), "WRONGTYPE"))
            return strstr(lines[i], " s1 ") ? "s1" : "s2";
        else if (strncmp(lines[i], "claim ", 6) == 0)
            find("y")->state = 'W';
    return NULL;
}

static void test_wrong_types(void) {
    for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
        unsigned failed = CU_get_number_of_failures();
        const char *session;

        fill();
        (void) redis_number(&script_server, "DEL berth:{t}:%s", keys[i]);
        (void) redis_number(&script_server, "APPEND berth:{t}:%s x", keys[i]);
        session = meet_error();
        if (session) {
            start_anew(session);
            check_limits(keys[i]);
            serve_all();
        }
        CU_assertImplementation(session && CU_get_number_of_failures() == failed, __LINE__, keys[i], __FILE__, "", CU_FALSE);
    }
}

static CU_TestInfo tests[] = {
    {"halfway: each call of each script fails", test_each_call},
    {"halfway: each key is of a wrong type", test_wrong_types},
    CU_TEST_INFO_NULL,
};

static CU_SuiteInfo suites[] = {
    {.pName = "scripts-halfway", .pTests = tests},
    CU_SUITE_INFO_NULL,
};

int main(int argc, char **argv) {
    return script_main(argc, argv, suites);
}
