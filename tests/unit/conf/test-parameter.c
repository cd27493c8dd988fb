/* SPDX-License-Identifier: MIT */
#include "conf/parameter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/harness/test.h"

static void refuse(const char *text, const char *expected) {
    char error[PARAMETER_ERROR_SIZE];

    TEST_INT(parameter_check(text, error), -EINVAL);
    TEST_STRING(error, expected);
}

static void test_texts(void) {
    static const char *const right[] = {
        "A",     "TABLE=users|orders", "A=x", "D=~[0-9]{4}-[0-9]{2}", "E=~(a|b)*", "_1", "LDX",
        "PATHS", "S=~a\\\\1"};
    char error[PARAMETER_ERROR_SIZE], long_name[PARAMETER_NAME_MAX + 2], regex[PARAMETER_REGEX_MAX + 5];

    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
        TEST_INT(parameter_check(right[i], error), 0);
    memset(long_name, 'A', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    refuse(long_name, "has a name that is longer than 64 characters");
    TEST_INT(parameter_check(long_name + 1, error), 0);
    memset(regex, 'a', sizeof(regex) - 1);
    memcpy(regex, "A=~", 3);
    regex[sizeof(regex) - 1] = '\0';
    refuse(regex, "has a regular expression of more than 256 bytes");
    regex[sizeof(regex) - 2] = '\0';
    TEST_INT(parameter_check(regex, error), 0);
    refuse("", "is not the name of a parameter; use A-Z 0-9 _, not beginning with a digit");
    refuse("a", "is not the name of a parameter; use A-Z 0-9 _, not beginning with a digit");
    refuse("1A", "is not the name of a parameter; use A-Z 0-9 _, not beginning with a digit");
    refuse("A B", "is not the name of a parameter; use A-Z 0-9 _, not beginning with a digit");
    refuse("BERTH_JOB", "begins with BERTH_, which berth sets itself; choose another name");
    refuse("A=", "has an empty value; write NAME=a|b|c, or NAME=~REGEX");
    refuse("A=a||b", "has an empty value; write NAME=a|b|c, or NAME=~REGEX");
    refuse("A=a|", "has an empty value; write NAME=a|b|c, or NAME=~REGEX");
    refuse("A=\303\274", "has a value that is not printable ASCII");
    refuse("A=~", "has no regular expression behind '~'");
    refuse("A=~(", "is no regular expression: Unmatched ( or \\(");
    refuse("A=~(a)\\1", "refers back with \"\\1\", which may take for ever to match; write it out");
    refuse("A=~((x{100}){100}){2}", "is longer than 512 characters with its repeats written out; write * or smaller numbers");
    refuse("A=~x+++++++++++++", "is longer than 512 characters with its repeats written out; write * or smaller numbers");
    refuse("A=~x*+++++*+++++", "is longer than 512 characters with its repeats written out; write * or smaller numbers");
    refuse("A=~(((x*)?)*(y*)?){250}", "has repeats within repeats within repeats, which may take for ever; use fewer");
    refuse("A=~(((x*)?)*(y*)?)*", "has repeats within repeats within repeats, which may take for ever; use fewer");
    refuse("A=~x{0,20000}", "is longer than 512 characters with its repeats written out; write * or smaller numbers");
}

/* S28 */
static void test_names_that_run_anything(void) {
    static const char *const names[] = {"PATH",
                                        "IFS",
                                        "ENV",
                                        "BASH_ENV",
                                        "SHELLOPTS",
                                        "LD_PRELOAD",
                                        "LD_LIBRARY_PATH",
                                        "GCONV_PATH",
                                        "PYTHONPATH",
                                        "PYTHONSTARTUP",
                                        "PERL5LIB",
                                        "PERL5OPT",
                                        "RUBYOPT",
                                        "NODE_OPTIONS",
                                        "_JAVA_OPTIONS",
                                        "GIT_SSH_COMMAND",
                                        "CREDENTIALS_DIRECTORY",
                                        "HOME"};
    char error[PARAMETER_ERROR_SIZE], set[64], expected[128];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        refuse(names[i], "would let a caller run anything; choose another name");
        snprintf(set, sizeof(set), "%s=x", names[i]);
        snprintf(expected, sizeof(expected), "%s would let a caller run anything; choose another name",
                 names[i]);
        TEST_INT(parameter_check_set(set, error), -EINVAL);
        TEST_STRING(error, expected);
    }
    refuse("NODE_OPTIONS=a|b", "would let a caller run anything; choose another name");
    TEST_INT(parameter_check("NODE_OPTION", error), 0);
    TEST_INT(parameter_check("NODE_OPTIONS_", error), 0);
    TEST_INT(parameter_check("GIT_BRANCH", error), 0);
}

/* "NAME" or "NAME*" of the manual. */
static void test_name_of_manual(const char *word) {
    char name[64], error[PARAMETER_ERROR_SIZE];
    size_t n = strcspn(word, "*");

    snprintf(name, sizeof(name), "%.*s", (int) n, word);
    TEST_INT(parameter_check(name, error), -EINVAL);
    snprintf(name, sizeof(name), "%.*s_X", (int) n, word);
    TEST_INT(parameter_check(name, error), word[n] == '*' ? -EINVAL : 0);
}

/* Exactly the names that berth.conf(5) lists are refused. */
static void test_names_of_the_manual(void) {
    _cleanup_fclose_ FILE *f = fopen("packaging/man/berth.conf.5.scd", "re");
    static char text[256 * 1024];
    size_t n = 0;
    char *rest;

    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT(fread(text, 1, sizeof(text) - 1, f) > 0);
    rest = strstr(text, "could run anything");
    rest = rest ? strstr(rest, "```\n") : NULL;
    CU_ASSERT_PTR_NOT_NULL_FATAL(rest);
    *strstr(rest += 4, "```") = '\0';
    for (char *word; (word = strsep(&rest, " \n"));)
        if (*word) {
            test_name_of_manual(word);
            n++;
        }
    CU_ASSERT(n > 60);
}

/* S28: each printable byte is accepted and no other; shell syntax is ordinary text. */
static void test_bytes(void) {
    static const char *const literal[] = {"$(id)", "; rm -rf /", "`id`", "a b", "'\"\\", "", "%i", "a=b"};
    char error[PARAMETER_ERROR_SIZE], set[PARAMETER_VALUE_MAX + 8];

    for (int c = 1; c < 256; c++) {
        snprintf(set, sizeof(set), "A=%c", c);
        TEST_INT(parameter_check_set(set, error), c >= ' ' && c <= '~' ? 0 : -EINVAL);
        if (c < ' ' || c > '~')
            TEST_STRING(error, "A: the value is not printable ASCII");
    }
    for (size_t i = 0; i < sizeof(literal) / sizeof(literal[0]); i++) {
        snprintf(set, sizeof(set), "A=%s", literal[i]);
        TEST_INT(parameter_check_set(set, error), 0);
    }
    memset(set, 'x', sizeof(set));
    memcpy(set, "A=", 2);
    set[2 + PARAMETER_VALUE_MAX] = '\0';
    TEST_INT(parameter_check_set(set, error), 0);
    set[2 + PARAMETER_VALUE_MAX] = 'x';
    set[3 + PARAMETER_VALUE_MAX] = '\0';
    TEST_INT(parameter_check_set(set, error), -EINVAL);
    TEST_STRING(error, "A: the value is longer than 1024 bytes");
    TEST_INT(parameter_check_set("A", error), -EINVAL);
    TEST_STRING(error, "\"A\" is not NAME=VALUE");
}

#define LIST(...) ((char *const *) (const char *const[]){__VA_ARGS__, NULL})
#define TEXTS LIST("TABLE=users|orders", "DAY=~[0-9]{4}|today", "NOTE")
static const struct {
    const char *sets[4];
    const char *error; /* NULL: right */
} checks[] = {
    {{"TABLE=users"}, NULL},
    {{"TABLE=orders", "DAY=2027", "NOTE=$(id)"}, NULL},
    {{"TABLE=users", "DAY=today"}, NULL},
    {{"TABLE=user"}, "TABLE must be one of users, orders"},
    {{"TABLE=users|orders"}, "TABLE must be one of users, orders"},
    {{"TABLE="}, "TABLE must be one of users, orders"},
    {{"TABLE=users", "DAY=20270"}, "DAY must match [0-9]{4}|today, all of it"},
    {{"TABLE=users", "DAY=x2027"}, "DAY must match [0-9]{4}|today, all of it"},
    {{"TABLE=users", "DAY="}, "DAY must match [0-9]{4}|today, all of it"},
    {{"TABEL=users"}, "job \"x\" has no parameter \"TABEL\"; did you mean \"TABLE\"?"},
    {{"TABLE=users", "COLOUR=red"}, "job \"x\" has no parameter \"COLOUR\""},
    {{"TABLE=users", "TABLE=orders"}, "TABLE is set twice; keep one"},
    {{"TABLE=users", "NOTE=a\nb"}, "NOTE: the value is not printable ASCII"},
    {{"TABLE=users", "LD_PRELOAD=/x"}, "LD_PRELOAD would let a caller run anything; choose another name"},
    {{"NOTE=x"}, "job \"x\" needs --set TABLE=..."},
    {{NULL}, "job \"x\" needs --set TABLE=..."},
};

static void test_checks(void) {
    const struct parameters parameters = {"x", TEXTS, LIST("DAY=today", "NOTE=")};
    char error[PARAMETER_ERROR_SIZE];

    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        size_t n = 0;
        int r;

        while (checks[i].sets[n])
            n++;
        r = parameters_check(&parameters, (char *const *) checks[i].sets, n, error);
        TEST_INT(r, checks[i].error ? -EINVAL : 0);
        if (checks[i].error && r < 0)
            TEST_STRING(error, checks[i].error);
    }
}

static void test_defaults(void) {
    struct parameters parameters = {"x", TEXTS, LIST("TABLE=users", "DAY=x")};
    char error[PARAMETER_ERROR_SIZE];

    TEST_INT(parameters_check_defaults(&parameters, error), -EINVAL);
    TEST_STRING(error,
                "the default \"DAY=x\" in environment is refused: DAY must match [0-9]{4}|today, all of it");
    parameters.environment = LIST("TABLE=users", "DAY=1999", "X=y");
    TEST_INT(parameters_check_defaults(&parameters, error), 0);
    TEST_STRING(parameters_find_missing(&parameters, NULL, 0), "NOTE");
    parameters.texts = NULL;
    CU_ASSERT_PTR_NULL(parameters_find_missing(&parameters, NULL, 0));
    TEST_INT(parameters_check(&parameters, NULL, 0, error), 0);
}

static CU_TestInfo tests[] = {
    {"the texts of the option", test_texts},
    {"names by which a caller could run anything", test_names_that_run_anything},
    {"names of the manual", test_names_of_the_manual},
    {"bytes of a value", test_bytes},
    {"what a trigger sets", test_checks},
    {"defaults", test_defaults},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "parameter", .pTests = tests});
