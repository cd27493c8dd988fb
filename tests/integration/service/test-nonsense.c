/* SPDX-License-Identifier: MIT */

/* Whatever one host writes into Redis by hand, each verb answers with UTF-8 JSON, shows the malformed
 * records as such, and all the rest. One row for each field that a host can write. */

#include <stdio.h>
#include <string.h>

#include "tests/harness/host/host.h"
#include "tests/harness/test.h"

#define POOLS "pool \"db\" { limit = 4 }\npool \"net\" { limit = 2 }\npool \"site/*\" { limit = 2 }\n"
#define NS "berth:{test}:"
#define SESSION "ffffffffffffffffffffffffffffffff"
#define CLAIM "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
#define RUN "dddddddddddddddddddddddddddddddd"
#define BYTES "\xff\xfe\x80"
#define LONG "0123456789012345678901234567890123456789012345678901234567890123456789"
#define BEATS {"ZADD", NS "heartbeats", "1000000000", SESSION}
#define HELD {"SADD", NS "pool:db:held", CLAIM "#1"}
#define NO_SESSION {"HDEL", NS "sessions", SESSION}, {"ZREM", NS "heartbeats", SESSION}
#define NO_CLAIM {"HDEL", NS "claims", CLAIM}, {"SREM", NS "pool:db:held", CLAIM "#1"}

struct row {
    const char *name;
    const char *write[2][5], *undo[2][5];
    const char *key, *id; /* of the malformed record, parts; NULL: none is named */
};

static const struct row rows[] = {
    {"host: bytes", {{"HSET", NS "sessions", SESSION, BYTES " m 1 db=3"}, BEATS}, {NO_SESSION}, "sessions", SESSION},
    {"host: too long", {{"HSET", NS "sessions", SESSION, LONG " m 1 db=3"}, BEATS}, {NO_SESSION}, "sessions", SESSION},
    {"host: empty", {{"HSET", NS "sessions", SESSION, " m 1 db=3"}, BEATS}, {NO_SESSION}, "sessions", SESSION},
    {"version: bytes", {{"HSET", NS "sessions", SESSION, "cow m " BYTES " db=3"}, BEATS}, {NO_SESSION}, "sessions", SESSION},
    {"version: too long", {{"HSET", NS "sessions", SESSION, "cow m " LONG " db=3"}, BEATS}, {NO_SESSION}, "sessions", SESSION},
    {"version: terminal", {{"HSET", NS "sessions", SESSION, "cow m \x1b[2J db=3"}, BEATS}, {NO_SESSION}, "sessions", SESSION},
    {"session: one word", {{"HSET", NS "sessions", SESSION, "x"}, BEATS}, {NO_SESSION}, "sessions", SESSION},
    {"session: no record", {BEATS}, {NO_SESSION}, "sessions", SESSION},
    {"declared: no number", {{"HSET", NS "sessions", SESSION, "cow m 1 db=x"}, BEATS}, {NO_SESSION}, "sessions", SESSION},
    {"declared: no pool", {{"HSET", NS "sessions", SESSION, "cow m 1 =4"}, BEATS}, {NO_SESSION}, "sessions", SESSION},
    {"declared: bytes", {{"HSET", NS "sessions", SESSION, "cow m 1 " BYTES "=4"}, BEATS}, {NO_SESSION}, "sessions", SESSION},
    {"declared: too much", {{"HSET", NS "sessions", SESSION, "cow m 1 db=99999999999"}, BEATS}, {NO_SESSION}, "sessions", SESSION},
    {"session: its id", {{"ZADD", NS "heartbeats", "1000000000", BYTES}}, {{"ZREM", NS "heartbeats", BYTES}}, "sessions", "\\xff\\xfe\\x80"},
    {"heartbeats: infinite", {{"HSET", NS "sessions", SESSION, "cow m 1 db=4"}, {"ZADD", NS "heartbeats", "inf", SESSION}}, {NO_SESSION}, "sessions", SESSION},
    {"heartbeats: a fraction", {{"HSET", NS "sessions", SESSION, "cow m 1 db=4"}, {"ZADD", NS "heartbeats", "1000000.5", SESSION}}, {NO_SESSION}, "sessions", SESSION},
    {"limits: no session", {{"ZADD", NS "pool:net:limits", "0", SESSION}}, {{"ZREM", NS "pool:net:limits", SESSION}}, NULL, NULL},
    {"limits: negative", {{"ZADD", NS "pool:net:limits", "-3", BYTES}}, {{"ZREM", NS "pool:net:limits", BYTES}}, "limits", "\\xff\\xfe\\x80"},
    {"held: no record", {{"SADD", NS "pool:db:held", BYTES}}, {{"SREM", NS "pool:db:held", BYTES}}, "pool:db:held", "\\xff\\xfe\\x80"},
    {"claim: one word", {{"HSET", NS "claims", CLAIM, BYTES}, HELD}, {NO_CLAIM}, "pool:db:held", CLAIM},
    {"claim: another pool", {{"HSET", NS "claims", CLAIM, "H 5 s net:1 5 5 0 7 " RUN " job "}, HELD}, {NO_CLAIM}, "pool:db:held", CLAIM},
    {"name: bytes", {{"HSET", NS "claims", CLAIM, "H 5 s db:1 5 5 0 7 " RUN " " BYTES " "}, HELD}, {NO_CLAIM}, "pool:db:held", CLAIM},
    {"name: too long", {{"HSET", NS "claims", CLAIM, "H 5 s db:1 5 5 0 7 " RUN " " LONG " "}, HELD}, {NO_CLAIM}, "pool:db:held", CLAIM},
    {"token: too high", {{"HSET", NS "claims", CLAIM, "H 9223372036854775807 s db:1 5 5 0 7 " RUN " job "}, HELD}, {NO_CLAIM}, "pool:db:held", CLAIM},
    {"since: too high", {{"HSET", NS "claims", CLAIM, "H 5 s db:1 5 99999999999999999999999 0 7 " RUN " job "}, HELD}, {NO_CLAIM}, "pool:db:held", CLAIM},
    {"pid: too high", {{"HSET", NS "claims", CLAIM, "H 5 s db:1 5 5 0 99999999999 " RUN " job "}, HELD}, {NO_CLAIM}, "pool:db:held", CLAIM},
    {"permits: too many", {{"HSET", NS "claims", CLAIM, "H 5 s db:99999999999999999999999 5 5 0 7 " RUN " job "}, HELD}, {NO_CLAIM}, "pool:db:held", CLAIM},
    {"claim: its session", {{"HSET", NS "claims", CLAIM, "H 5 " BYTES " db:1 5 5 0 7 " RUN " job "}, HELD}, {NO_CLAIM}, NULL, NULL},
    {"queue: no record", {{"ZADD", NS "pool:net:queue", "1", BYTES}}, {{"ZREM", NS "pool:net:queue", BYTES}}, "pool:net:queue", "\\xff\\xfe\\x80"},
    {"parked: no record", {{"ZADD", NS "pool:net:parked", "1", BYTES}}, {{"ZREM", NS "pool:net:parked", BYTES}}, "pool:net:parked", "\\xff"},
    {"override: one word", {{"HSET", NS "meta", "o:net", BYTES}}, {{"HDEL", NS "meta", "o:net"}}, "meta", "o:net"},
    {"override: its limit", {{"HSET", NS "meta", "o:net", "5\t99999999999\t0\tid\t\twhy"}}, {{"HDEL", NS "meta", "o:net"}}, "", ""},
    {"override: its reason", {{"HSET", NS "meta", "o:net", "5\t1\t0\tid\t\t" BYTES}}, {{"HDEL", NS "meta", "o:net"}}, NULL, NULL},
    {"override: its end", {{"HSET", NS "meta", "o:net", "5\t1\t99999999999999999999\tid\t\twhy"}}, {{"HDEL", NS "meta", "o:net"}}, "meta", ""},
    {"keys: bytes", {{"SADD", NS "pool:site/*:keys", BYTES}}, {{"SREM", NS "pool:site/*:keys", BYTES}}, "pool:site/*:keys", "\\xff\\xfe\\x80"},
    {"keys: another pool", {{"SADD", NS "pool:site/*:keys", "net"}}, {{"SREM", NS "pool:site/*:keys", "net"}}, "pool:site/*:keys", "net"},
    {"keys of another type", {{"SET", NS "pool:site/*:keys", "x"}}, {{"DEL", NS "pool:site/*:keys"}}, "pool:site/*:keys", ""},
    {"limit in force", {{"HSET", NS "meta", "l:net", BYTES}}, {{"HSET", NS "meta", "l:net", "2"}}, NULL, NULL},
    {"clock", {{"HSET", NS "meta", "lead", BYTES}}, {{"HSET", NS "meta", "lead", "0"}}, NULL, NULL},
    {"host names: bytes", {{"HSET", NS "meta", "h:bee", BYTES}}, {{"HDEL", NS "meta", "h:bee"}}, NULL, NULL},
    {"times of another type", {{"SET", NS "times", "x"}}, {{"DEL", NS "times"}}, NULL, NULL},
    {"marks of another type", {{"SET", NS "marks", "x"}}, {{"DEL", NS "marks"}}, NULL, NULL},
    {"marks: bytes", {{"ZADD", NS "marks", "1", BYTES}}, {{"ZREM", NS "marks", BYTES}}, NULL, NULL},
    {"grace_elapsed", {{"HSET", NS "meta", "grace_elapsed", BYTES}}, {{"HSET", NS "meta", "grace_elapsed", "0"}}, NULL, NULL},
    {"held of another type", {{"SET", NS "pool:net:held", "x"}}, {{"DEL", NS "pool:net:held"}}, "pool:net:held", ""},
    {"queue of another type", {{"SET", NS "pool:net:queue", "x"}}, {{"DEL", NS "pool:net:queue"}}, "pool:net:queue", ""},
    {"parked of another type", {{"SET", NS "pool:net:parked", "x"}}, {{"DEL", NS "pool:net:parked"}}, "pool:net:parked", ""},
};

static struct host *ant;

static void up(void) {
    cluster_up_patient();
}

static void say(const char *const words[5]) {
    _cleanup_reply_ redisReply *reply =
        words[3] ? redis_command(&cluster.redis, "%s %s %s %s", words[0], words[1], words[2], words[3])
                 : redis_command(&cluster.redis, "%s %s %s", words[0], words[1], words[2] ? words[2] : "");

    CU_ASSERT(reply && reply->type != REDIS_REPLY_ERROR);
}

static void say_all(const char *const commands[2][5]) {
    for (size_t i = 0; i < 2 && commands[i][0]; i++) {
        if (commands[i][2]) {
            say(commands[i]);
        } else {
            _cleanup_reply_ redisReply *reply = redis_command(&cluster.redis, "%s %s", commands[i][0], commands[i][1]);

            CU_ASSERT(reply && reply->type != REDIS_REPLY_ERROR);
        }
    }
}

static bool is_listed(const json_t *answer, const struct row *row) {
    json_t *item;
    size_t i;

    json_array_foreach(json_object_get(answer, "malformed"), i, item)
        if (row->key && strstr(json_string_value(json_object_get(item, "key")), row->key) &&
            strstr(json_string_value(json_object_get(item, "id")), row->id))
            return true;
    return false;
}

/* Each verb answers of Redis, with the two hosts and what is held. */
static void check_verbs(const struct row *row) {
    static const char *const verbs[] = {"hosts", "pools", "pools db net", "pools site/*", "runs", "runs --all", "runs --cluster", "jobs", "runs --json",
                                        "next", "redis", "explain waiting", "metrics --cluster"};
    json_t *hosts, *pools;
    bool listed;

    for (size_t i = 0; i < ELEMENTSOF(verbs); i++) {
        TEST_INT(berth(ant, "%s", verbs[i]), 0);
        CU_ASSERT_PTR_NULL(strstr(berth_err, "Redis is away"));
        for (const char *c = berth_err; *c; c++)
            CU_ASSERT((unsigned char) *c >= ' ' || *c == '\n');
    }
    hosts = berth_json(ant, "hosts");
    pools = berth_json(ant, "pools");
    CU_ASSERT(json_is_false(json_object_get(hosts, "stale")) && json_is_false(json_object_get(pools, "stale")));
    AT_STRING(hosts, "hosts.host=ant.host", "ant");
    AT_STRING(hosts, "hosts.host=bee.host", "bee");
    AT_STRING(pools, "pools.name=db.holders.name=held.host", "ant");
    AT_STRING(pools, "pools.name=net.name", "net");
    listed = is_listed(hosts, row) || is_listed(pools, row);
    CU_ASSERT(listed == (row->key != NULL));
    json_decref(hosts);
    json_decref(pools);
}

static void each_field(void) {
    struct child *holder, *waiting;

    /* No heartbeat in a test: the check of the keys that follows one finds some of the rows, and has all hosts report again. */
    cluster.lease = "24h";
    cluster.heartbeat = "8h";
    ant = host_up("ant", POOLS);
    (void) host_up("bee", POOLS);
    holder = berth_at_gate(ant, "-p db", "held", "started");
    waiting = berth_start(ant, "run -p db:4 --name waiting -- true");
    host_await(ant, "queued", "job=waiting");
    for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
        unsigned before = CU_get_number_of_failures();

        say_all(rows[i].write);
        check_verbs(&rows[i]);
        say_all(rows[i].undo);
        if (CU_get_number_of_failures() > before)
            printf("%s: %s\n", rows[i].name, berth_err);
    }
    test_gate_open(&cluster.gate);
    TEST_INT(berth_end(holder), 0);
    TEST_INT(berth_end(waiting), 0);
    TEST_INT(berth(ant, "run -n -p net:2 -- true"), 0);
}

/* `berth` names who pauses a pool: a host that declares 0, or a session without a host. */
static void who_parks(void) {
    json_t *json;

    ant = host_up("ant", POOLS);
    (void) host_up("bee", "pool \"db\" { limit = 3 }\npool \"net\" { limit = 2 }\n");
    json = berth_json(ant, "pools");
    AT_INT(json, "pools.name=db.lowest.limit", 3);
    AT_STRING(json, "pools.name=db.lowest.host", "bee");
    AT_NULL(json, "pools.name=net.lowest");
    json_decref(json);
    TEST_INT(berth(ant, "pools"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "bee: 3"));
    say((const char *const[5]) {"ZADD", NS "pool:db:limits", "0", SESSION});
    json = berth_json(ant, "pools");
    AT_INT(json, "pools.name=db.limit", 0);
    AT_INT(json, "pools.name=db.lowest.limit", 0);
    AT_NULL(json, "pools.name=db.lowest.host");
    AT_STRING(json, "pools.name=db.lowest.session", SESSION);
    json_decref(json);
    TEST_INT(berth(ant, "pools"), 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(berth_out, "a session without a host: 0"));
    say((const char *const[5]) {"ZREM", NS "pool:db:limits", SESSION});
}

static CU_TestInfo tests[] = {
    {"each field", each_field},
    {"who parks a pool", who_parks},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "nonsense in Redis", .pSetUpFunc = up, .pTearDownFunc = cluster_down,
             .pTests = tests});
