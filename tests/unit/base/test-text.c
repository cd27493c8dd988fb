/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/harness/test.h"

static void test_utf8(void) {
    static const char *const right[] = {"", "abc", "f\303\274r", "\302\200", "\337\277", "\340\240\200", "\355\237\277", "\356\200\200",
                                        "\360\220\200\200", "\364\217\277\277"};
    static const char *const wrong[] = {"\200", "\300\200", "\301\277", "\302", "\302a", "\340\237\277", "\342\202", "\355\240\200",
                                        "\360\217\277\277", "\364\220\200\200", "\365\200\200\200", "\377", "a\342\202x"};

    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
        if (!text_is_utf8(right[i]))
            TEST_STRING("refused", right[i]);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (text_is_utf8(wrong[i]))
            TEST_STRING("taken", wrong[i]);
}

static void test_control(void) {
    CU_ASSERT(!text_has_control("abc \303\274 \302\240", false));
    CU_ASSERT(text_has_control("a\001", false));
    CU_ASSERT(text_has_control("a\177", false));
    CU_ASSERT(text_has_control("\302\233", false));
    CU_ASSERT(text_has_control("\302\233", true));
    CU_ASSERT(text_has_control("a\nb", false));
    CU_ASSERT(!text_has_control("a\nb\t", true));
    CU_ASSERT(text_has_control("a\r\n", true));
    CU_ASSERT(text_has_control("db \342\200\256bd", false)); /* U+202E: right to left */
    CU_ASSERT(text_has_control("\342\201\246", true));
    CU_ASSERT(!text_has_control("\342\200\251\342\200\257\342\201\245\342\201\252", false)); /* beside them */
}

static void test_character(void) {
    TEST_INT(text_character("a\303"), 1);
    TEST_INT(text_character("\303\274x"), 2);
    TEST_INT(text_character("\346\235\261"), 3);
    TEST_INT(text_character("\342\200\252"), 0);
    TEST_INT(text_character("\342\200"), 0);
    TEST_INT(text_character("\302\233"), 0);
    TEST_INT(text_character("\033"), 0);
}

static void printable(const char *text, const char *expected) {
    char buffer[64];

    snprintf(buffer, sizeof(buffer), "%s", text);
    text_make_printable(buffer);
    TEST_STRING(buffer, expected);
}

static void test_printable(void) {
    printable("abc \303\274", "abc \303\274");
    printable("a\033[2Jb\n", "a?[2Jb?");
    printable("a\302\233b", "a??b");
    printable("a\377b", "a?b");
    printable("cut \342\202", "cut ??");
}

static void test_escape(void) {
    static const struct {
        const char *data;
        size_t n, size;
        const char *expected;
    } cases[] = {
        {"", 0, 8, ""},
        {"abc", 3, 8, "abc"},
        {"a\0b", 3, 8, "a\\x00b"},
        {"\377\\\n", 3, 16, "\\xff\\x5c\\x0a"},
        {"abcdefg", 7, 8, "abcdefg"}, /* fits exactly */
        {"abcdefgh", 8, 8, "abcd..."},
        {"ab\377\377", 4, 8, "ab..."},
        {"\377\377\377", 3, 4, "..."},
    };

    for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
        char buffer[17];

        memset(buffer, '#', sizeof(buffer));
        text_escape(cases[i].data, cases[i].n, buffer, cases[i].size);
        TEST_STRING(buffer, cases[i].expected);
        CU_ASSERT(buffer[cases[i].size] == '#');
    }
}

static void test_find_variable(void) {
    static const char environment[] = "AB=no\0A=1\0\0A=2\0B=cut"; /* the last NUL is not passed */
    const size_t size = sizeof(environment) - 1;

    TEST_STRING(text_find_variable(environment, size, "A="), "1");
    TEST_STRING(text_find_variable(environment, size, "AB="), "no");
    CU_ASSERT_PTR_NULL(text_find_variable(environment, size, "B="));
    TEST_STRING(text_find_variable(environment, size + 1, "B="), "cut");
    CU_ASSERT_PTR_NULL(text_find_variable(environment, size, "C="));
    CU_ASSERT_PTR_NULL(text_find_variable(environment, 0, "AB="));
}

static CU_TestInfo tests[] = {
    {"utf8", test_utf8}, {"control", test_control}, {"character", test_character}, {"printable", test_printable}, {"escape", test_escape}, {"find variable", test_find_variable}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "text", .pTests = tests});
