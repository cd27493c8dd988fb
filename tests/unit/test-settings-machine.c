/* SPDX-License-Identifier: MIT */

/* What a config asks for that the machine cannot do. */

#include <string.h>

#include "base/cgroup-control.h"
#include "conf/settings.h"
#include "tests/harness/test.h"

#define CONFIG                                                                                                                       \
    "pool p { limit = 2 scope = host }\n"                                                                                            \
    "job b { command = {\"/b\"} tasks-max = 9 cpu-weight = 5 }\n"                                                                    \
    "job a { command = {\"/a\"} memory-max = 64M }\n"                                                                               \
    "job c { command = {\"/c\"} nice = 5 }\n"                                                                                        \
    "operate-group = berth-no-group\n"                                                                                                \
    "pool q { limit = 1 scope = host users = {\"root\", \"@root\",\n\"berth-no-user\"} }\n"                                          \
    "job d { command = {\"/d\"} operators = {\"@berth-no-group\"} }\n"
#define NEEDS(job, option, controller)                                                                                               \
    "job \"" job "\": " option " needs the controller \"" controller                                                                  \
    "\" of cgroup v2, which this machine does not have; remove it, or have the machine boot with that controller"

static struct settings *settings;

static void begin(void) {
    struct settings_source source = {"x.conf", CONFIG, strlen(CONFIG)};
    struct settings_errors errors = {};

    CU_ASSERT_FATAL(settings_parse(&source, 1, "ant", &settings, &errors) == 0);
}

static void end(void) {
    settings = settings_free(settings);
}

static void has_all(void) {
    struct settings_errors errors = {};

    TEST_INT(settings_check_controllers(settings, CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS, &errors), 0);
    TEST_INT(errors.n, 0);
    settings_errors_done(&errors);
}

static void has_none(void) {
    struct settings_errors errors = {};

    TEST_INT(settings_check_controllers(settings, 0, &errors), SETTINGS_E_INVALID);
    CU_ASSERT_FATAL(errors.n == 3);
    TEST_STRING(errors.lines[0], "x.conf:2: " NEEDS("b", "cpu-weight", "cpu"));
    TEST_STRING(errors.lines[1], "x.conf:2: " NEEDS("b", "tasks-max", "pids"));
    TEST_STRING(errors.lines[2], "x.conf:3: " NEEDS("a", "memory-max", "memory"));
    settings_errors_done(&errors);
}

static void lacks_one(void) {
    struct settings_errors errors = {};

    TEST_INT(settings_check_controllers(settings, CGROUP_CPU | CGROUP_PIDS, &errors), SETTINGS_E_INVALID);
    CU_ASSERT_FATAL(errors.n == 1);
    TEST_STRING(errors.lines[0], "x.conf:3: " NEEDS("a", "memory-max", "memory"));
    settings_errors_done(&errors);
}

#define LACKS(kind, name) "there is no " kind " \"" name "\" on this machine, so it matches nobody; make it, or remove it here"

/* Defaults are looked for, and not missed. */
static void lacks_accounts(void) {
    struct settings_errors errors = {};
    const struct accounts *users = &settings_find_pool(settings, "q")->users;

    TEST_INT(settings_find_accounts(settings, &errors), 0);
    CU_ASSERT_FATAL(errors.n == 3);
    TEST_STRING(errors.lines[0], "x.conf:5: operate-group: " LACKS("group", "berth-no-group"));
    TEST_STRING(errors.lines[1], "x.conf:7: pool \"q\": users: " LACKS("user", "berth-no-user"));
    TEST_STRING(errors.lines[2], "x.conf:8: job \"d\": operators: " LACKS("group", "berth-no-group"));
    CU_ASSERT(users->items[0].is_known && users->items[0].id == 0);
    CU_ASSERT(users->items[1].is_known && users->items[1].id == 0);
    CU_ASSERT(!users->items[2].is_known);
    CU_ASSERT(!settings->operate_group.is_known);
    settings_errors_done(&errors);
}

/* Whatever controllers this machine has. */
static void check_names_accounts(void) {
    struct settings_source source = {"y.conf", "run-group = berth-no-group\n", strlen("run-group = berth-no-group\n")};
    _cleanup_(settings_freep) struct settings *s = NULL;
    struct settings_errors errors = {};

    CU_ASSERT_FATAL(settings_parse(&source, 1, "ant", &s, &errors) == 0);
    TEST_INT(settings_check_machine(s, &errors), SETTINGS_E_INVALID);
    CU_ASSERT_FATAL(errors.n == 1);
    TEST_STRING(errors.lines[0], "y.conf:1: run-group: " LACKS("group", "berth-no-group"));
    settings_errors_done(&errors);
}

static CU_TestInfo tests[] = {
    {"the machine lacks accounts", lacks_accounts},
    {"a check names accounts", check_names_accounts},
    {"the machine has all controllers", has_all},
    {"the machine has none", has_none},
    {"the machine lacks one", lacks_one},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "machine", .pSetUpFunc = begin, .pTearDownFunc = end, .pTests = tests},
        CU_SUITE_INFO_NULL,
    };

    return test_main(argc, argv, suites);
}
