/* SPDX-License-Identifier: MIT */
#include "tests/harness/redis/script.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <string.h>

#define WORDS_MAX 2100
#define SERIAL 8 /* its place: behind the command's name, digest, keys, session, connection and epoch */

struct redis_server script_server;
char script_epoch[32];
const char *script_serial = script_epoch;
char script_shown[1 << 16];

/* --- saying and seeing --- */

void script_tell(const char *command) {
    _cleanup_reply_ redisReply *r = redis_command(&script_server, command);

    CU_ASSERT(r && r->type != REDIS_REPLY_ERROR);
}

static void show(const redisReply *r, FILE *out) {
    switch (r->type) {
    case REDIS_REPLY_INTEGER:
        fprintf(out, "%lld", r->integer);
        break;
    case REDIS_REPLY_NIL:
        fputs("nil", out);
        break;
    case REDIS_REPLY_ARRAY:
        for (size_t i = 0; i < r->elements; i++) {
            bool list = r->element[i]->type == REDIS_REPLY_ARRAY;

            fputs(i > 0 ? " " : "", out);
            fputs(list ? "[" : "", out);
            show(r->element[i], out);
            fputs(list ? "]" : "", out);
        }
        break;
    default:
        fputs(r->str, out);
    }
}

static const char *show_reply(const redisReply *r) {
    FILE *out = fmemopen(script_shown, sizeof(script_shown), "w");

    if (!r || !out) {
        (void) snprintf(script_shown, sizeof(script_shown), "no reply");
    } else {
        show(r, out);
    }
    if (out)
        fclose(out);
    return script_shown;
}

static enum redis_script find_script(const char *name) {
    for (enum redis_script i = 0; i < REDIS_SCRIPTS; i++)
        if (strcmp(redis_script_name(i), name) == 0)
            return i;
    abort();
}

static const char failing[] =
    "local halfway_redis, halfway_n = redis, 0\n"
    "local redis = setmetatable({call = function(name, ...)\n"
    "    halfway_n = halfway_n + 1\n"
    "    if halfway_n == %u then error('NOPERM halfway') end\n"
    "    if name == 'SPUBLISH' then return halfway_redis.call('RPUSH', '" PUSHES "', (select(2, ...))) end\n"
    "    return halfway_redis.call(name, ...)\n"
    "end}, {__index = halfway_redis})\n"
    "local function halfway_script()\n%s\nend\nreturn halfway_script()\n";

/* Loads a script. Returns its digest, until the next call. */
static const char *failing_sha(enum redis_script script, unsigned at) {
    static char sha[REDIS_SHA_SIZE];
    const char *text = redis_script_text(script), *rest = strchr(text, '\n') + 1; /* the first line is #!lua and flags */
    _cleanup_free_ char *body = NULL, *whole = NULL;
    _cleanup_reply_ redisReply *r = NULL;

    if (asprintf(&body, failing, at, rest) < 0 || asprintf(&whole, "%.*s%s", (int) (rest - text), text, body) < 0)
        abort();
    r = redis_command(&script_server, "SCRIPT LOAD %s", whole);
    CU_ASSERT_FATAL(r && r->type == REDIS_REPLY_STRING && r->len < (long) sizeof(sha));
    memcpy(sha, r->str, r->len + 1);
    return sha;
}

/* Calls a script; the reply stays in `shown` until the next call. at: the call of Redis that fails; 0:
 * none. */
static const char *say(const char *line, unsigned at) {
    _cleanup_free_ char *copy = strdup(line);
    _cleanup_reply_ redisReply *reply = NULL;
    static unsigned epochs;
    char fresh[16];
    const char *argv[WORDS_MAX] = {"EVALSHA", NULL, "2", META, NONE};
    char *rest = copy, *word;
    enum redis_script script = REDIS_SCRIPTS;
    int argc = 1;

    (void) snprintf(fresh, sizeof(fresh), "e%u", ++epochs);
    while ((word = strsep(&rest, " ")) && argc < WORDS_MAX)
        if (argc == 1) {
            script = find_script(word);
            argv[1] = at > 0 ? failing_sha(script, at) : redis_script_sha(script);
            argc = 5;
        } else {
            argv[argc++] = strcmp(word, "~") == 0 ? "" : strcmp(word, "$") == 0 ? script_epoch : strcmp(word, "!") == 0 ? fresh : word;
            for (char *c = word; (c = strchr(c, '_'));)
                *c = ' ';
            if (argc == SERIAL && script_has_serial(script))
                argv[argc++] = script_serial;
        }
    script_tell("PING"); /* connects again if needed */
    reply = script_server.client ? redisCommandArgv(script_server.client, argc, argv, NULL) : NULL;
    return show_reply(reply);
}

const char *script_say(const char *line) {
    return say(line, 0);
}

const char *script_say_failing(const char *line, unsigned at) {
    return say(line, at);
}

const char *script_sayf(const char *format, ...) {
    _cleanup_free_ char *line = NULL;
    va_list ap;

    va_start(ap, format);
    if (vasprintf(&line, format, ap) < 0)
        line = NULL;
    va_end(ap);
    return script_say(line ? line : "");
}

void script_expect(const char *file, unsigned line, const char *actual, const char *pattern) {
    char full[2048], text[4096];
    size_t n = 0;

    for (const char *p = pattern; *p && n + sizeof(script_epoch) < sizeof(full); p++)
        if (*p == '$')
            n += (size_t) snprintf(full + n, sizeof(full) - n, "%s", script_epoch);
        else if (*p == '[' || *p == ']')
            n += (size_t) snprintf(full + n, sizeof(full) - n, "\\%c", *p);
        else
            full[n++] = *p;
    full[n] = '\0';
    (void) snprintf(text, sizeof(text), "is \"%.1500s\", expected \"%s\"", actual, full);
    CU_assertImplementation(fnmatch(full, actual, 0) == 0, line, text, file, "", CU_FALSE);
}

void script_learn_epoch(void) {
    _cleanup_reply_ redisReply *r = redis_command(&script_server, "HGET " META " epoch");

    (void) snprintf(script_epoch, sizeof(script_epoch), "%s", r && r->str ? r->str : "0");
}

void script_learn_new_epoch(void) {
    char old[sizeof(script_epoch)];

    memcpy(old, script_epoch, sizeof(old));
    script_learn_epoch();
    CU_ASSERT(strcmp(old, script_epoch) != 0 && strcmp(script_epoch, "0") != 0);
}

/* Returns a word of the last reply, from 0. */
uint64_t script_number(unsigned index) {
    const char *p = script_shown;

    for (; index > 0 && p; index--)
        p = strchr(p, ' ') ? strchr(p, ' ') + 1 : NULL;
    return p ? strtoull(p, NULL, 10) : 0;
}

/* hello of a session "s1" of host "s1", with limits "db 2 net 1" and how many there are */
const char *script_hello(const char *session, int connection, unsigned n, const char *limits) {
    return script_sayf("hello %s %d ~ %s m1 v1 %d 0 0 %s 0 0 0 ! %u%s%s", session, connection, session, LEASE, script_epoch, n, n > 0 ? " " : "",
                       limits);
}

const char *script_claim(const char *session, const char *id, const char *pools) {
    return script_sayf("claim %s 1 $ %s 0_7_r-%s_name 0 0 %s", session, id, id, pools);
}

const char *script_claims(const char *session, const char *pool, const char *ids) {
    _cleanup_free_ char *copy = strdup(ids);
    char line[1024], *rest = copy, *id;
    int n = snprintf(line, sizeof(line), "claims %s 1 $ %s 100", session, pool);

    while ((id = strsep(&rest, " ")) && n < (int) sizeof(line))
        n += snprintf(line + n, sizeof(line) - (size_t) n, " %s 0_7_r-%s_name", id, id);
    return script_say(line);
}

void script_fail_over(void) {
    script_tell("DEBUG CHANGE-REPL-ID");
}

const char *script_beat(const char *session, uint64_t dead, uint64_t known) {
    return script_sayf("heartbeat %s 1 $ %" PRIu64 " 0 0 0 %" PRIu64 " 0", session, dead, known);
}

static void load(void) {
    for (enum redis_script i = 0; i < REDIS_SCRIPTS; i++) {
        _cleanup_reply_ redisReply *r = redis_command(&script_server, "SCRIPT LOAD %s", redis_script_text(i));

        CU_ASSERT_PTR_NOT_NULL_FATAL(r);
        if (r->type == REDIS_REPLY_ERROR)
            printf("%s: %s\n", redis_script_name(i), r->str);
        CU_ASSERT_FATAL(r->type == REDIS_REPLY_STRING);
        TEST_STRING(r->str, redis_script_sha(i));
    }
}

/* Makes a namespace without grace and with two hosts, s1 and s2, with db = 4 and net = 2. */
void script_begin(void) {
    script_tell("FLUSHALL");
    memcpy(script_epoch, "0", sizeof("0"));
    load();
    EXPECT(script_hello("s1", 1, 2, "db 4 net 2"), "ok * 0 1 1 0 * [] [] [] [] [] *");
    script_learn_epoch();
    EXPECT(script_hello("s2", 1, 2, "db 4 net 2"), "ok $ 0 1 2 0 * [] [] [] [] [] *");
    EXPECT(script_say("sync s1 1 $ 0 1 1"), "ok $ 0 1 0 * [] []");
    EXPECT(script_say("sync s2 1 $ 0 1 1"), "ok $ 0 1 0 * [] []");
    script_tell("HDEL " META " grace grace_elapsed"); /* as a heartbeat does, but the beat clock does not move on */
}

long long script_used(const char *pool) {
    return redis_number(&script_server, "SCARD berth:{t}:pool:%s:held", pool);
}

long long script_claims_of(const char *session) {
    return redis_number(&script_server, "SCARD berth:{t}:session:%s:claims", session);
}

const char *script_field(const char *key, const char *field) {
    static char text[512];
    _cleanup_reply_ redisReply *r = redis_command(&script_server, "HGET berth:{t}:%s %s", key, field);

    (void) snprintf(text, sizeof(text), "%s", r && r->type == REDIS_REPLY_STRING ? r->str : "nothing");
    return text;
}

char script_state(const char *id) {
    _cleanup_reply_ redisReply *r = redis_command(&script_server, "HGET berth:{t}:claims %s", id);

    return r && r->type == REDIS_REPLY_STRING ? r->str[0] : '-';
}

/* R16: ends all sessions with bye; checks that nothing that grows is left. */
void script_end(void) {
    _cleanup_reply_ redisReply *sessions = redis_command(&script_server, "ZRANGE berth:{t}:heartbeats 0 -1");

    for (size_t i = 0; sessions && i < sessions->elements; i++)
        do
            EXPECT(script_sayf("bye %s 99", sessions->element[i]->str), "ok * ? *");
        while (script_number(2) > 0);
    _cleanup_reply_ redisReply *keys = redis_command(&script_server, "KEYS *");
    CU_ASSERT_PTR_NOT_NULL_FATAL(keys);
    for (size_t i = 0; i < keys->elements; i++)
        if (strcmp(keys->element[i]->str, "berth:{t}:overrides") != 0 && strcmp(keys->element[i]->str, "berth:{t}:unsettled") != 0)
            TEST_STRING(keys->element[i]->str, META);
    _cleanup_reply_ redisReply *fields = redis_command(&script_server, "HKEYS " META);
    for (size_t i = 0; fields && i < fields->elements; i++)
        CU_ASSERT(strncmp(fields->element[i]->str, "c:", 2) != 0 && strncmp(fields->element[i]->str, "h:", 2) != 0);
}

int script_main(int argc, char **argv, CU_SuiteInfo *suites) {
    int r;

    if (redis_server_start(&script_server, NULL) < 0) {
        puts("no redis-server");
        return 1;
    }
    r = test_main(argc, argv, suites);
    redis_server_done(&script_server);
    return r;
}
