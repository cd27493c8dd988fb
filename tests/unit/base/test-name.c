/* SPDX-License-Identifier: MIT */
#include "base/name.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/test.h"

static void test_valid(void) {
    static const char *const right[] = {"a", "Z9", "_", "a.b-c_d", "0", "pg-dump", "web-07.example.net"};
    char longest[NAME_MAX_LENGTH + 2];

    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
        CU_ASSERT(name_is_valid(right[i]));
    memset(longest, 'x', sizeof(longest));
    longest[NAME_MAX_LENGTH + 1] = '\0';
    CU_ASSERT(!name_is_valid(longest));
    TEST_STRING(name_explain(longest), "is longer than 64 characters");
    longest[NAME_MAX_LENGTH] = '\0';
    CU_ASSERT(name_is_valid(longest));
}

/* Another program had this bug: CVE-2025-67733. */
static void test_refuse(void) {
    static const struct {
        const char *name, *why;
    } wrong[] = {
        {"", "is empty"},
        {" ", "has a space"},
        {"a b", "has a space"},
        {".a", "begins with '.' or '-'"},
        {"-a", "begins with '.' or '-'"},
        {"a/b", "has a character that is not one of A-Z a-z 0-9 . _ -"},
        {"a:b", "has a character that is not one of A-Z a-z 0-9 . _ -"},
        {"a{b", "has a character that is not one of A-Z a-z 0-9 . _ -"},
        {"a\"b", "has a character that is not one of A-Z a-z 0-9 . _ -"},
        {"a\n", "has a character that is not one of A-Z a-z 0-9 . _ -"},
        {"a\r\n", "has a character that is not one of A-Z a-z 0-9 . _ -"},
        {"f\303\274r", "has a character that is not one of A-Z a-z 0-9 . _ -"},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CU_ASSERT(!name_is_valid(wrong[i].name));
        TEST_STRING(name_explain(wrong[i].name), wrong[i].why);
    }
}

static void test_id(void) {
    char first[ID_TEXT_SIZE], second[ID_TEXT_SIZE];

    id_make(first);
    id_make(second);
    CU_ASSERT(id_is_valid(first));
    CU_ASSERT(id_is_valid(second));
    CU_ASSERT(strcmp(first, second) != 0);
    CU_ASSERT(id_is_valid("0123456789abcdef0123456789abcdef"));
    CU_ASSERT(!id_is_valid(""));
    CU_ASSERT(!id_is_valid("0123456789abcdef0123456789abcde"));
    CU_ASSERT(!id_is_valid("0123456789abcdef0123456789abcdef0"));
    CU_ASSERT(!id_is_valid("0123456789abcdef0123456789abcdeF"));
    CU_ASSERT(!id_is_valid("0123456789abcdef/../456789abcdef"));
}

static void forbid_random_numbers(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        _exit(1);
}

/* A process that went on with an old id could give another run's permits to this one. */
static void test_id_without_random_numbers(void) {
    char id[ID_TEXT_SIZE];
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        forbid_random_numbers();
        id_make(id);
        _exit(0);
    }
    TEST_INT(waitpid(child, &status, 0), child);
    TEST_INT(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 70);
}

static void test_id_prefix(void) {
    static const char id[] = "0123456789abcdef0123456789abcdef";

    CU_ASSERT(id_begins_with(id, "0123"));
    CU_ASSERT(id_begins_with(id, "0123456789abcdef"));
    CU_ASSERT(id_begins_with(id, id));
    CU_ASSERT(!id_begins_with(id, "012")); /* too short */
    CU_ASSERT(!id_begins_with(id, ""));
    CU_ASSERT(!id_begins_with(id, "1234"));
    CU_ASSERT(!id_begins_with(id, "0123456789abcdef0123456789abcdef0"));
    CU_ASSERT(!id_prefix_is_valid("01234567X"));
    CU_ASSERT(!id_prefix_is_valid("ABCD"));
    CU_ASSERT(!id_prefix_is_valid("0123456789abcdef0123456789abcdef0"));
    CU_ASSERT(id_prefix_is_valid("cafe"));
}

static CU_TestInfo tests[] = {
    {"valid", test_valid},
    {"refuse", test_refuse},
    {"id", test_id},
    {"id without random numbers", test_id_without_random_numbers},
    {"id-prefix", test_id_prefix},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "name", .pTests = tests});
