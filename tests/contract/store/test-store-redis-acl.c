/* SPDX-License-Identifier: MIT */

/* store-redis keeps its contract with no more rights than packaging/redis.acl gives. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "store/redis/client/script.h"
#include "tests/harness/redis/redis-bed.h"
#include "tests/harness/store/store-suite.h"

#define ACL_FILE "packaging/redis.acl"
#define LUA "store/redis/lua"
#define FILE_MAX (64 * 1024)
#define PASSWORD "a password"
#define SUBCOMMANDS 9 /* their place in the reply of COMMAND INFO */
#define SEEN_SIZE (16 * 1024)

/* Returns the only line of the file that is not a comment, or NULL. */
static char *read_acl(void) {
    _cleanup_free_ char *text = NULL;
    char *line, *rest;
    size_t size;

    if (file_read(ACL_FILE, FILE_MAX, &text, &size) < 0)
        return NULL;
    for (rest = text; (line = strsep(&rest, "\n"));)
        if (strncmp(line, "user berth ", 11) == 0)
            return strdup(line);
    return NULL;
}

static bool is_error(const redisReply *reply, const char *code) {
    return reply && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, code, strlen(code)) == 0;
}

/* Calls Redis as its administrator. */
static int make_user(void) {
    _cleanup_free_ char *line = read_acl(), *command = NULL;
    _cleanup_reply_ redisReply *made = NULL, *password = NULL;

    if (!line || asprintf(&command, "ACL SETUSER %s", line + 5) < 0) {
        command = NULL;
        return -EINVAL;
    }
    made = redis_command(&redis_bed.server, command);
    password = redis_command(&redis_bed.server, "ACL SETUSER berth >%s", PASSWORD);
    if (!made || made->type != REDIS_REPLY_STATUS || !password || password->type != REDIS_REPLY_STATUS) {
        printf("%s: %s\n", ACL_FILE, made && made->str ? made->str : "no answer");
        return -EINVAL;
    }
    return 0;
}

static void test_nothing_besides(void) {
    static const char *const refused[] = {
        "GET berth:{test}:meta", "SET x 1", "HGET other x", "DEL other", "KEYS *", "SCAN 0", "FLUSHALL", "FLUSHDB", "EVAL x 0",
        "CONFIG GET maxmemory", "CONFIG SET maxmemory 1", "ACL LIST", "ACL WHOAMI", "CLIENT LIST", "CLIENT KILL ID 1", "DEBUG SLEEP 0",
        "SCRIPT FLUSH", "FUNCTION LIST", "MONITOR", "SPUBLISH other x", "PUBLISH other x", "SSUBSCRIBE other", "PSUBSCRIBE *", "SHUTDOWN NOSAVE",
        "REPLICAOF NO ONE", "HKEYS berth:{test}:meta",
    };
    redisContext *c = redisConnectUnix(redis_bed.server.socket);
    _cleanup_reply_ redisReply *hello = NULL, *mine = NULL;

    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    hello = redisCommand(c, "AUTH berth %s", PASSWORD);
    CU_ASSERT(hello && hello->type == REDIS_REPLY_STATUS);
    mine = redisCommand(c, "HGET berth:{test}:meta x");
    CU_ASSERT(mine && mine->type == REDIS_REPLY_NIL);
    for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
        _cleanup_reply_ redisReply *reply = redisCommand(c, refused[i]);

        TEST_STRING(is_error(reply, "NOPERM") ? "refused" : refused[i], "refused");
    }
    redisFree(c);
}

/* Sends a command with as many words as it needs. Returns whether Redis refuses it for lack of rights. The
 * commands that begin a session are everybody's. CONFIG alone, without GET, is no command. MODULE LOAD is refused
 * to all ("not allowed"). */
static bool is_refused(redisContext *c, const char *name) {
    _cleanup_reply_ redisReply *reply = NULL, *info = redis_command(&redis_bed.server, "COMMAND INFO %s", name);
    const redisReply *facts = info && info->elements == 1 ? info->element[0] : NULL;
    const char *argv[16];
    char copy[64], *rest = copy;
    int argc = 0, least;

    if (!facts || facts->elements <= SUBCOMMANDS)
        return false;
    if (facts->element[SUBCOMMANDS]->elements > 0)
        return true;
    least = abs((int) facts->element[1]->integer);
    for (size_t i = 0; i < facts->element[2]->elements; i++)
        if (strcmp(facts->element[2]->element[i]->str, "no_auth") == 0)
            return true;
    (void) snprintf(copy, sizeof(copy), "%s", name);
    for (char *word; (word = strsep(&rest, "|"));)
        argv[argc++] = word;
    while (argc < least && argc < (int) ELEMENTSOF(argv))
        argv[argc++] = "berth:{test}:meta";
    reply = redisCommandArgv(c, argc, argv, NULL);
    return is_error(reply, "") && (strstr(reply->str, "NOPERM") || strstr(reply->str, "not allowed"));
}

/* Each command of the server, but those of the file. So no key of berth gets a TTL: EXPIRE and SET are refused. */
static void test_all_others(void) {
    _cleanup_reply_ redisReply *hello = NULL, *categories = redis_command(&redis_bed.server, "ACL CAT");
    redisContext *c = redisConnectUnix(redis_bed.server.socket);
    _cleanup_free_ char *line = read_acl(), *rights = NULL, *seen = calloc(1, SEEN_SIZE);
    unsigned n = 0;

    CU_ASSERT_FATAL(c && line && seen && categories && asprintf(&rights, "%s ", line) > 0);
    hello = redisCommand(c, "AUTH berth %s", PASSWORD);
    for (size_t i = 0; i < categories->elements; i++) {
        const char *category = categories->element[i]->str;
        _cleanup_reply_ redisReply *names = redis_command(&redis_bed.server, "ACL CAT %s", category);

        for (size_t k = 0; names && k < names->elements; k++) {
            const char *name = names->element[k]->str;
            char granted[64], padded[64];

            (void) snprintf(granted, sizeof(granted), " +%s ", name);
            (void) snprintf(padded, sizeof(padded), " %s ", name);
            if (strstr(rights, granted) || strstr(seen, padded) || strlen(seen) + sizeof(padded) > SEEN_SIZE)
                continue;
            strcat(seen, padded);
            TEST_STRING(is_refused(c, name) ? "refused" : name, "refused");
            n++;
        }
    }
    CU_ASSERT(n > 200 && strstr(seen, " expire ") && strstr(seen, " set "));
    redisFree(c);
}

/* Adds the commands that a script calls to list, " hget hset ". */
static void add_commands(const char *script, char *list, size_t size) {
    for (const char *at = script; (at = strstr(at, "call('")); at++) {
        size_t n = strcspn(at + 6, "'");
        char word[32];

        snprintf(word, sizeof(word), " %.*s ", (int) n, at + 6);
        for (char *c = word; *c; c++)
            *c = (char) (*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
        if (!strstr(list, word) && strlen(list) + strlen(word) < size)
            strncat(list, word, size - strlen(list) - 1);
    }
}

/* The commands that berthd and its scripts send are allowed, and no others. */
static void test_each_command(void) {
    char used[2048] = " client|setname  select  info  script|exists  script|load  evalsha  ssubscribe  ping ", allowed[2048] = " ";
    _cleanup_free_ char *line = read_acl();
    DIR *scripts = opendir(LUA);
    struct dirent *entry;
    char *rest = line, *word;

    CU_ASSERT_PTR_NOT_NULL_FATAL(scripts);
    CU_ASSERT_PTR_NOT_NULL_FATAL(line);
    while ((entry = readdir(scripts))) {
        _cleanup_free_ char *text = NULL;
        char path[512];
        size_t size;

        snprintf(path, sizeof(path), LUA "/%s", entry->d_name);
        if (strstr(entry->d_name, ".lua") && file_read(path, FILE_MAX, &text, &size) == 0)
            add_commands(text, used, sizeof(used));
    }
    closedir(scripts);
    while ((word = strsep(&rest, " ")))
        if (word[0] == '+') {
            char padded[64];

            snprintf(padded, sizeof(padded), " %s ", word + 1);
            TEST_STRING(strstr(used, padded) ? "used" : word, "used");
            strncat(allowed, padded, sizeof(allowed) - strlen(allowed) - 1);
        }
    for (rest = used; (word = strsep(&rest, " "));)
        if (*word) {
            char padded[64];

            snprintf(padded, sizeof(padded), " %s ", word);
            TEST_STRING(strstr(allowed, padded) ? "allowed" : word, "allowed");
        }
}

/* Returns the missing rights that the probe reports as user berth, "HSET TIME"; to be freed. */
static char *probe(void) {
    redisContext *c = redisConnectUnix(redis_bed.server.socket);
    _cleanup_reply_ redisReply *hello = NULL, *reply = NULL;
    char list[512] = "";

    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    hello = redisCommand(c, "AUTH berth %s", PASSWORD);
    reply = redisCommand(c, "EVALSHA %s 2 berth:{test}:meta berth:{test}:none", redis_script_sha(REDIS_SCRIPT_PROBE));
    CU_ASSERT(reply && reply->type == REDIS_REPLY_ARRAY);
    for (size_t i = 0; reply && i < reply->elements && i < 2 && reply->element[1]->elements > i; i++)
        (void) snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i > 0 ? " " : "", reply->element[1]->element[i]->str);
    redisFree(c);
    return strdup(list);
}

/* If one right is missing, the probe names it before any script begins. */
static void test_probe(void) {
    char used[2048] = " ";
    _cleanup_free_ char *whole = NULL;

    freeReplyObject(redis_command(&redis_bed.server, "SCRIPT LOAD %s", redis_script_text(REDIS_SCRIPT_PROBE)));
    whole = probe();
    TEST_STRING(whole, "");
    for (enum redis_script i = 0; i < REDIS_SCRIPTS; i++)
        add_commands(redis_script_text(i), used, sizeof(used));
    for (char *rest = used, *word; (word = strsep(&rest, " "));) {
        _cleanup_reply_ redisReply *taken = NULL, *given = NULL;
        _cleanup_free_ char *missing = NULL;

        if (!*word)
            continue;
        taken = redis_command(&redis_bed.server, "ACL SETUSER berth -%s", word);
        missing = probe();
        TEST_STRING(missing && strcasecmp(missing, word) == 0 ? word : missing, word);
        given = redis_command(&redis_bed.server, "ACL SETUSER berth +%s", word);
    }
    freeReplyObject(redis_command(&redis_bed.server, "ACL SETUSER berth resetchannels"));
    _cleanup_free_ char *mute = probe();
    TEST_STRING(mute, "SPUBLISH");
    TEST_INT(make_user(), 0);
    TEST_INT(redis_number(&redis_bed.server, "EXISTS berth:{test}:probe:h berth:{test}:probe:s berth:{test}:probe:s2 berth:{test}:probe:z"), 0);
}

/* A host that lacks rights logs their names, and connects as soon as it has them. */
static void test_missing_right(void) {
    struct bed b;

    if (!store_suite_begin(&b))
        return;
    freeReplyObject(redis_command(&redis_bed.server, "ACL SETUSER berth -spublish -unlink"));
    freeReplyObject(redis_command(&redis_bed.server, "CLIENT KILL TYPE normal"));
    BED_UNTIL(&b, bed_says(&b, "it lacks UNLINK, SPUBLISH"));
    TEST_INT(make_user(), 0);
    for (unsigned i = 0; i < 3; i++)
        BED_UNTIL(&b, b.stores[i]->state == STORE_STATE_READY);
    struct probe *p = bed_probe(&b, 0, "db:1");
    probe_grant(p);
    probe_end(p);
    bed_done(&b);
}

static CU_TestInfo tests[] = {
    {"the probe", test_probe},
    {"a right is missing", test_missing_right},
    {"no other rights", test_nothing_besides},
    {"all other commands", test_all_others},
    {"each command", test_each_command},
    CU_TEST_INFO_NULL,
};

static const struct store_fixture fixture = {.n_hosts = 3, .n_seeds = 1, .make = redis_bed_make};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "store-redis-acl", .pTests = store_suite_tests}, {.pName = "redis-acl", .pTests = tests}, CU_SUITE_INFO_NULL};

    redis_bed.lease = 30 * USEC_PER_SEC; /* no test here waits for it, or for a timeout: stalls of a busy machine end no connection */
    redis_bed.heartbeat = USEC_PER_SEC;
    redis_bed.timeout = 10 * USEC_PER_SEC;
    redis_bed.username = "berth";
    redis_bed.password = PASSWORD;
    store_suite_use(&fixture);
    return redis_bed_main(argc, argv, suites, make_user);
}
