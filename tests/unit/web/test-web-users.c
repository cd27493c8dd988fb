/* SPDX-License-Identifier: MIT */

/* The token, and the sessions of users who know it. */

#include <stdio.h>
#include <string.h>

#include "tests/harness/test.h"
#include "web/users.h"

#define TOKEN "0123456789abcdef0123456789abcdef"
#define NOW (100 * USEC_PER_SEC)
#define MINUTE (60 * USEC_PER_SEC)

static struct users users;

static void set_up(void) {
    memset(&users, 0, sizeof(users));
    strcpy(users.token, TOKEN);
}

static void test_login(void) {
    char session[USERS_SESSION_SIZE], other[USERS_SESSION_SIZE];

    TEST_INT(users_login(&users, TOKEN, NOW, session), 0);
    TEST_INT(strlen(session), 64);
    CU_ASSERT(users_is_session(&users, session, NOW));
    CU_ASSERT(!users_is_session(&users, "", NOW));
    CU_ASSERT(!users_is_session(&users, "0000000000000000000000000000000000000000000000000000000000000000", NOW));
    CU_ASSERT(users_is_session(&users, session, NOW + USERS_SESSION_TIME - 1));
    CU_ASSERT(!users_is_session(&users, session, NOW + USERS_SESSION_TIME));
    TEST_INT(users_login(&users, TOKEN, NOW, other), 0);
    CU_ASSERT(strcmp(session, other) != 0);
    users_logout(&users, session);
    CU_ASSERT(!users_is_session(&users, session, NOW));
    CU_ASSERT(users_is_session(&users, other, NOW));
}

static void test_wrong(void) {
    static const char *const wrong[] = {"", "0123456789abcdef0123456789abcde", "0123456789abcdef0123456789abcdeg",
                                        "0123456789abcdef0123456789abcdef0", "x"};
    char session[USERS_SESSION_SIZE];

    for (size_t i = 0; i < USERS_WRONG_MAX; i++)
        TEST_INT(users_login(&users, wrong[i], NOW, session), USERS_E_WRONG);
    TEST_INT(users_login(&users, TOKEN, NOW + MINUTE - 1, session), USERS_E_LATER);
    TEST_INT(users_login(&users, TOKEN, NOW + MINUTE, session), 0);
}

static void test_none(void) {
    char session[USERS_SESSION_SIZE];

    users.token[0] = '\0';
    TEST_INT(users_login(&users, "", NOW, session), USERS_E_WRONG);
    TEST_INT(users_login(&users, "x", NOW, session), USERS_E_WRONG);
}

static void test_many(void) {
    char first[USERS_SESSION_SIZE], session[USERS_SESSION_SIZE];

    TEST_INT(users_login(&users, TOKEN, NOW, first), 0);
    for (unsigned i = 1; i <= USERS_SESSIONS_MAX; i++)
        TEST_INT(users_login(&users, TOKEN, NOW + i, session), 0);
    CU_ASSERT(!users_is_session(&users, first, NOW + USERS_SESSIONS_MAX));
    CU_ASSERT(users_is_session(&users, session, NOW + USERS_SESSIONS_MAX));
}

static void test_names(void) {
    CU_ASSERT(users_is_name("alice") && users_is_name("Alice Example <a@example.net>"));
    CU_ASSERT(!users_is_name("") && !users_is_name(" alice") && !users_is_name("alice ") && !users_is_name("a\tb"));
    CU_ASSERT(!users_is_name("al\xc3\xad" "ce") && users_is_name("1234567890123456789012345678901234567890123456789012345678901234"));
    CU_ASSERT(!users_is_name("12345678901234567890123456789012345678901234567890123456789012345"));
}

static CU_TestInfo tests[] = {{"login", test_login}, {"wrong", test_wrong}, {"none", test_none},
                              {"many", test_many},   {"names", test_names}, CU_TEST_INFO_NULL};

TEST_SUITES({.pName = "web-users", .pSetUpFunc = set_up, .pTests = tests});
