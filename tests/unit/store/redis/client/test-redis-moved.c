/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/redis/client/moved.h"
#include "tests/harness/test.h"

static void names(const char *error, const char *host, unsigned port) {
    struct moved moved;

    TEST_INT(moved_parse(error, &moved), 0);
    TEST_STRING(moved.host, host);
    TEST_INT(moved.port, port);
}

static void test_named(void) {
    names("MOVED 9937 10.0.0.5:6379", "10.0.0.5", 6379);
    names("MOVED 9937 node-1.example.net:65535", "node-1.example.net", 65535);
    names("MOVED 9937 2001:db8::5:6379", "2001:db8::5", 6379);
    names("MOVED 9937 :7001", "", 7001);
}

static void test_not_named(void) {
    static const char *const errors[] = {
        "", "MOVED", "MOVED ", "MOVED 9937", "MOVED 9937 ", "MOVED 9937 h", "MOVED 9937 h:", "MOVED 9937 h:0", "MOVED 9937 h:65536",
        "MOVED 9937 h:-1", "MOVED 9937 h:1x", "MOVED 9937 ?:6379", "MOVED 9937 a b:6379", "MOVED 9937 a/b:6379", "MOVED 9937 a\n:6379",
        "ASK 9937 10.0.0.5:6379", "READONLY You can't write against a read only replica.",
    };
    struct moved moved;
    char text[MOVED_HOST_SIZE + 40] = "MOVED 1 ";

    for (size_t i = 0; i < ELEMENTSOF(errors); i++)
        TEST_INT(moved_parse(errors[i], &moved), -EBADMSG);
    memset(text + strlen(text), 'a', MOVED_HOST_SIZE);
    memcpy(text + strlen("MOVED 1 ") + MOVED_HOST_SIZE, ":1", sizeof(":1"));
    TEST_INT(moved_parse(text, &moved), -EBADMSG);
}

/* The check value of CRC-16/XMODEM, and results of CLUSTER KEYSLOT. */
static void test_slot(void) {
    TEST_INT(moved_slot("123456789"), 0x31c3);
    TEST_INT(moved_slot("foo"), 12182);
    TEST_INT(moved_slot("berth:{user1000}:meta"), 3443);
    TEST_INT(moved_slot("{}foo"), 9500);
    TEST_INT(moved_slot("{user1000"), 8723);
}

static CU_TestInfo tests[] = {
    {"named", test_named},
    {"not named", test_not_named},
    {"slot", test_slot},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "redis-moved", .pTests = tests});
