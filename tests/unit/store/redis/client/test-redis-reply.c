/* SPDX-License-Identifier: MIT */

/* Replies of Redis are parsed as if an attacker had sent them; the class of each error (R13); the scripts
 * as they are sent. */

#include <errno.h>
#include <hiredis/hiredis.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "store/redis/client/reply.h"
#include "store/redis/client/script.h"
#include "store/redis/client/command.h"
#include "tests/harness/redis/resp.h"
#include "tests/harness/test.h"

static void test_values(void) {
    redisReply *r = resp_parse("*7\r\n$2\r\nok\r\n:42\r\n$16\r\n1763637705123456\r\n:-1\r\n$3\r\n0x1\r\n*0\r\n$-1\r\n");
    char buffer[3];
    uint64_t number = 7;
    uint32_t small = 7;
    size_t n = 7;

    CU_ASSERT(reply_count(r, &n) == 0 && n == 7);
    CU_ASSERT(reply_is(reply_at(r, 0), "ok"));
    CU_ASSERT_FALSE(reply_is(reply_at(r, 0), "o"));
    CU_ASSERT_FALSE(reply_is(reply_at(r, 1), "42"));
    CU_ASSERT(reply_u64(reply_at(r, 1), &number) == 0 && number == 42);
    CU_ASSERT(reply_u64(reply_at(r, 2), &number) == 0 && number == 1763637705123456);
    TEST_INT(reply_u32(reply_at(r, 2), &small), -EBADMSG);
    TEST_INT(reply_u64(reply_at(r, 3), &number), -EBADMSG);
    TEST_INT(reply_u64(reply_at(r, 4), &number), -EBADMSG);
    TEST_INT(reply_u64(reply_at(r, 5), &number), -EBADMSG);
    TEST_INT(reply_u64(reply_at(r, 6), &number), -EBADMSG);
    TEST_INT(reply_u64(reply_at(r, 7), &number), -EBADMSG); /* there is none */
    CU_ASSERT(number == 1763637705123456 && small == 7);
    CU_ASSERT_PTR_NULL(reply_at(r, SIZE_MAX));
    CU_ASSERT_PTR_NULL(reply_at(reply_at(r, 0), 0));
    TEST_INT(reply_count(reply_at(r, 0), &n), -EBADMSG);
    TEST_INT(reply_count(NULL, &n), -EBADMSG);
    TEST_INT(reply_copy(reply_at(r, 0), buffer, sizeof(buffer)), 0);
    TEST_STRING(buffer, "ok");
    TEST_INT(reply_copy(reply_at(r, 4), buffer, sizeof(buffer)), -EBADMSG); /* no room for its NUL */
    TEST_INT(reply_copy(reply_at(r, 5), buffer, sizeof(buffer)), -EBADMSG);
    TEST_STRING(buffer, "ok");
    freeReplyObject(r);
}

/* Numbers of the namespace's clock are times: a number far ahead is refused, in either form (R7). */
static void test_numbers(void) {
    const usec_t now = clock_realtime(), year = 366 * (usec_t) 86400 * USEC_PER_SEC;
    const struct {
        uint64_t number;
        bool believed;
    } cases[] = {{0, true}, {1, true}, {now, true}, {now + year, true}, {now + 9 * year, true}, {now + 11 * year, false},
                 {NUMBER_MAX, false}, {NUMBER_MAX + 1, false}, {9000000000000000000, false}, {INT64_MAX, false}};

    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        char text[128], word[32];
        struct reply_line line;
        uint64_t number = 7;
        redisReply *r;

        (void) snprintf(word, sizeof(word), "%" PRIu64, cases[i].number);
        (void) snprintf(text, sizeof(text), "*2\r\n:%s\r\n$%zu\r\n%s\r\n", word, strlen(word), word);
        r = resp_parse(text);
        TEST_INT(reply_u64(reply_at(r, 0), &number), cases[i].believed ? 0 : -EBADMSG);
        TEST_INT(reply_u64(reply_at(r, 1), &number), cases[i].believed ? 0 : -EBADMSG);
        TEST_INT(reply_line_read(reply_at(r, 1), &line), 0);
        TEST_INT(reply_line_u64(&line, 0, &number), cases[i].believed ? 0 : -EBADMSG);
        TEST_INT(reply_number_parse(word, &number), cases[i].believed ? 0 : -EBADMSG);
        CU_ASSERT(number == (cases[i].believed ? cases[i].number : 7));
        freeReplyObject(r);
    }
}

static void test_line(void) {
    static const char *const bad[] = {"*1\r\n$2\r\nok\r\n", ":1\r\n", "$-1\r\n", "$25\r\n1 2 3 4 5 6 7 8 9 a b c d\r\n"};
    redisReply *r = resp_parse("$26\r\nok 0 H 1763637705123456 01\r\n"), *longest;
    char text[REPLY_LINE_SIZE + 16];
    struct reply_line line;
    uint64_t number = 7;

    TEST_INT(reply_line_read(r, &line), 0);
    TEST_INT(line.n, 5);
    TEST_STRING(reply_line_field(&line, 0), "ok");
    TEST_STRING(reply_line_field(&line, 5), "");
    TEST_INT(reply_line_u64(&line, 2, &number), -EBADMSG);
    TEST_INT(reply_line_u64(&line, 4, &number), -EBADMSG);
    TEST_INT(reply_line_u64(&line, 5, &number), -EBADMSG); /* there is none */
    CU_ASSERT(number == 7);
    CU_ASSERT(reply_line_u64(&line, 3, &number) == 0 && number == 1763637705123456);
    freeReplyObject(r);
    for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
        r = resp_parse(bad[i]);
        TEST_INT(reply_line_read(r, &line), -EBADMSG);
        freeReplyObject(r);
    }
    (void) snprintf(text, sizeof(text), "$%d\r\n%0*d\r\n", REPLY_LINE_SIZE, REPLY_LINE_SIZE, 0);
    longest = resp_parse(text);
    TEST_INT(reply_line_read(longest, &line), -EBADMSG);
    freeReplyObject(longest);
    TEST_INT(reply_line_read(NULL, &line), -EBADMSG);
}

static void test_embedded_nul(void) {
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;

    CU_ASSERT_FATAL(redisReaderFeed(reader, "$3\r\na\0b\r\n", 9) == REDIS_OK);
    CU_ASSERT_FATAL(redisReaderGetReply(reader, &reply) == REDIS_OK);
    CU_ASSERT_PTR_NULL(reply_text(reply));
    freeReplyObject(reply);
    redisReaderFree(reader);
}

static void test_errors(void) {
    static const struct {
        const char *text;
        enum redis_error error;
    } table[] = {
        {"LOADING Redis is loading the dataset in memory", REDIS_ERROR_BUSY},
        {"BUSY Redis is busy running a script", REDIS_ERROR_BUSY},
        {"NOREPLICAS Not enough good replicas to write.", REDIS_ERROR_RETRY},
        {"MASTERDOWN Link with MASTER is down", REDIS_ERROR_RETRY},
        {"CLUSTERDOWN The cluster is down", REDIS_ERROR_RETRY},
        {"MISCONF Redis is configured to save RDB snapshots", REDIS_ERROR_RETRY},
        {"MISCONF Errors writing to the AOF file: No space left on device", REDIS_ERROR_RETRY},
        {"ERR max number of clients reached", REDIS_ERROR_LATER},
        {"ERR max number of clients + cluster connections reached", REDIS_ERROR_LATER},
        {"NOSCRIPT No matching script. Please use EVAL.", REDIS_ERROR_RELOAD},
        {"MOVED 3999 127.0.0.1:6381", REDIS_ERROR_REDIRECT},
        {"ASK 3999 127.0.0.1:6381", REDIS_ERROR_WAIT},
        {"TRYAGAIN Multiple keys request during rehashing of slot", REDIS_ERROR_WAIT},
        {"READONLY You can't write against a read only replica.", REDIS_ERROR_REDIRECT},
        {"OOM command not allowed when used memory > 'maxmemory'.", REDIS_ERROR_FULL},
        {"NOAUTH Authentication required.", REDIS_ERROR_FATAL},
        {"WRONGPASS invalid username-password pair", REDIS_ERROR_FATAL},
        {"DENIED Redis is running in protected mode", REDIS_ERROR_FATAL},
        {"NOPERM this user has no permissions", REDIS_ERROR_FATAL},
        {"ERR unknown command", REDIS_ERROR_FATAL},
        {"ERR AUTH <password> called without any password configured for the default user.", REDIS_ERROR_FATAL},
        {"BUSYGROUP Consumer Group name already exists", REDIS_ERROR_FATAL}, /* not BUSY */
        {"", REDIS_ERROR_FATAL},
    };

    for (size_t i = 0; i < ELEMENTSOF(table); i++)
        TEST_INT(redis_error_class(table[i].text), table[i].error);
    TEST_STRING(redis_error_text("ERR AUTH <password> called without any password configured for the default user."),
                "Redis asks for no password, and the config names one: wrong url, or remove password-file");
    TEST_STRING(redis_error_text("DENIED Redis is running in protected mode because no password is set"),
                "Redis in protected mode refuses other hosts (DENIED): give its user default a password");
    TEST_STRING(redis_error_text("MISCONF Redis is configured to save RDB snapshots"),
                "Redis refuses writes because its last snapshot failed: free its disk or set stop-writes-on-bgsave-error no");
    TEST_STRING(redis_error_text("MISCONF Errors writing to the AOF file: No space left on device"),
                "Redis refuses writes because it cannot write its append-only file: free its disk, and see its log");
    TEST_STRING(redis_error_text("ERR DB index is out of range"),
                "Redis does not have the database that the url names (DB index is out of range)");
    redisReply *r = resp_parse("-OOM full\r\n");
    TEST_STRING(reply_error(r), "OOM full");
    CU_ASSERT_PTR_NULL(reply_text(r));
    freeReplyObject(r);
    CU_ASSERT_PTR_NULL(reply_error(NULL));
}

/* R13: a full Redis refuses claims and turns alone. The script `inspect` writes nothing. All parts are
 * inserted, and comments are removed. */
static void test_scripts(void) {
    for (enum redis_script i = 0; i < REDIS_SCRIPTS; i++) {
        bool claims = i == REDIS_SCRIPT_CLAIM || i == REDIS_SCRIPT_CLAIMS || i == REDIS_SCRIPT_TURN;
        const char *first = claims ? "#!lua\n" : i == REDIS_SCRIPT_INSPECT ? "#!lua flags=allow-oom,no-writes\n" : "#!lua flags=allow-oom\n";
        const char *text = redis_script_text(i);

        CU_ASSERT(strncmp(text, first, strlen(first)) == 0);
        CU_ASSERT((strstr(text, "allow-oom") != NULL) == !claims);
        CU_ASSERT_PTR_NULL(strstr(text, "--"));
    }
}

static void test_words(void) {
    _cleanup_command_ struct redis_command w = {0};

    for (unsigned i = 0; i < 100; i++)
        command_add_u64(&w, UINT64_MAX - i);
    command_add(&w, "");
    TEST_INT(command_check(&w), 0);
    TEST_INT(w.n, 101);
    TEST_STRING(w.items[0], "18446744073709551615");
    TEST_STRING(w.items[99], "18446744073709551516");
    TEST_STRING(w.items[100], "");
}

/* A key with a TTL could be evicted under the policies volatile-*. */
static void test_no_ttl(void) {
    static const char *const words[] = {"EXPIRE'", "EXPIREAT'", "SETEX'", "GETEX'", "'PX'", "'EX'", "'RESTORE'", "'COPY'"};

    for (enum redis_script i = 0; i < REDIS_SCRIPTS; i++)
        for (size_t k = 0; k < ELEMENTSOF(words); k++)
            TEST_STRING(strcasestr(redis_script_text(i), words[k]) ? redis_script_name(i) : "", "");
}

static CU_TestInfo tests[] = {
    {"values", test_values}, {"numbers", test_numbers}, {"line", test_line}, {"embedded nul", test_embedded_nul},
    {"errors", test_errors}, {"scripts", test_scripts}, {"no TTL", test_no_ttl}, {"words", test_words},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "redis-reply", .pTests = tests});
