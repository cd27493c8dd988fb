/* SPDX-License-Identifier: MIT */

/* Configs that need something the machine does not have. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process/cgroup-control.h"
#include "conf/settings.h"
#include "tests/harness/test.h"

#define CONFIG                                                                                                                       \
    "pool p { limit = 2 scope = host }\n"                                                                                            \
    "job b { command = {\"/b\"} tasks-max = 9 cpu-weight = 5 }\n"                                                                    \
    "job a { command = {\"/a\"} memory-max = 64M memory-high = 60M }\n"                                                                               \
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
    CU_ASSERT_FATAL(errors.n == 4);
    TEST_STRING(errors.lines[0], "x.conf:2: " NEEDS("b", "cpu-weight", "cpu"));
    TEST_STRING(errors.lines[1], "x.conf:2: " NEEDS("b", "tasks-max", "pids"));
    TEST_STRING(errors.lines[2], "x.conf:3: " NEEDS("a", "memory-max", "memory"));
    TEST_STRING(errors.lines[3], "x.conf:3: " NEEDS("a", "memory-high", "memory"));
    settings_errors_done(&errors);
}

static void lacks_one(void) {
    struct settings_errors errors = {};

    TEST_INT(settings_check_controllers(settings, CGROUP_CPU | CGROUP_PIDS, &errors), SETTINGS_E_INVALID);
    CU_ASSERT_FATAL(errors.n == 2);
    TEST_STRING(errors.lines[0], "x.conf:3: " NEEDS("a", "memory-max", "memory"));
    settings_errors_done(&errors);
}

#define LACKS(kind, name) "there is no " kind " \"" name "\" on this machine, so it matches nobody; make it, or remove it here"

/* A default group that is missing is no error. */
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

/* The check of accounts does not depend on the controllers of this machine. */
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

/* Files and accounts of jobs and of the redis section that are missing, each reported at its line. */
static void lacks_commands(void) {
    static const char format[] = "redis { password-file = \"%s/secret\" }\n"
                                 "job a { command = {\"%s/none\"} directory = \"%s/none\" user = \"berth-no-user\" group = \"berth-no-group\" }\n"
                                 "job b { command = {\"%s/secret\"} directory = \"%s/secret\" }\n"
                                 "job c { command = {\"%s\"} }\n"
                                 "job d { command = {\"/bin/sh\"} user = root directory = \"/\" }\n"
                                 "job e { script = \"/no/such\" shell = \"/bin/no-such-shell\" directory = \"~\" }\n"
                                 "job f { script = \"/no/such\" }\n";
    char folder[] = "/tmp/berth-test-machine-XXXXXX", text[1024], secret[64], expected[9][256];
    _cleanup_(settings_freep) struct settings *s = NULL;
    struct settings_errors errors = {};
    size_t n = 0;

    CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
    snprintf(secret, sizeof(secret), "%s/secret", folder);
    close_fd(open(secret, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    CU_ASSERT(chmod(secret, 0604) == 0);
    snprintf(text, sizeof(text), format, folder, folder, folder, folder, folder, folder);
    CU_ASSERT_FATAL(settings_parse(&(struct settings_source) {"z.conf", text, strlen(text)}, 1, "ant", &s, &errors) == 0);
    TEST_INT(settings_check_commands(s, &errors), SETTINGS_E_INVALID);
#define EXPECT(...) snprintf(expected[n++], sizeof(expected[0]), __VA_ARGS__)
    EXPECT("z.conf:1: redis: password-file \"%s\" is open to every user of this machine; run: chmod o-rwx %s", secret, secret);
    EXPECT("z.conf:2: job \"a\": there is no user \"berth-no-user\" on this machine; make it, or name another one");
    EXPECT("z.conf:2: job \"a\": there is no group \"berth-no-group\" on this machine; make it, or name another one");
    EXPECT("z.conf:2: job \"a\": command \"%s/none\" does not exist; install it, or correct the path", folder);
    EXPECT("z.conf:2: job \"a\": directory \"%s/none\" does not exist; make it, or name another one", folder);
    EXPECT("z.conf:3: job \"b\": command \"%s\" is not executable; run: chmod a+x %s", secret, secret);
    EXPECT("z.conf:3: job \"b\": directory \"%s\" is a file; name a directory", secret);
    EXPECT("z.conf:4: job \"c\": command \"%s\" is not a file; name a program", folder);
    EXPECT("z.conf:6: job \"e\": shell \"/bin/no-such-shell\" does not exist; install it, or correct the path");
#undef EXPECT
    TEST_INT(errors.n, n);
    for (size_t i = 0; i < n && i < errors.n; i++)
        TEST_STRING(errors.lines[i], expected[i]);
    settings_errors_done(&errors);
    s = settings_free(s);
    snprintf(text, sizeof(text), "redis { url = \"rediss://h\" tls-ca = \"%s/none\" tls-certificate = \"%s\" tls-key = \"%s\" }\n", folder, secret,
             secret);
    CU_ASSERT_FATAL(settings_parse(&(struct settings_source) {"z.conf", text, strlen(text)}, 1, "ant", &s, &errors) == 0);
    TEST_INT(settings_check_commands(s, &errors), SETTINGS_E_INVALID);
    TEST_INT(errors.n, 2);
    snprintf(expected[0], sizeof(expected[0]), "z.conf:1: redis: tls-ca \"%s/none\" does not exist; make it, or correct the path", folder);
    snprintf(expected[1], sizeof(expected[1]), "z.conf:1: redis: tls-key \"%s\" is open to every user of this machine; run: chmod o-rwx %s", secret,
             secret);
    for (size_t i = 0; i < 2 && i < errors.n; i++)
        TEST_STRING(errors.lines[i], expected[i]);
    settings_errors_done(&errors);
    /* Nothing is missing. */
    CU_ASSERT(chmod(secret, 0640) == 0);
    s = settings_free(s);
    snprintf(text, sizeof(text), "redis { password-file = \"%s\" }\njob d { command = {\"/bin/sh\"} user = root }\n", secret);
    CU_ASSERT_FATAL(settings_parse(&(struct settings_source) {"z.conf", text, strlen(text)}, 1, "ant", &s, &errors) == 0);
    TEST_INT(settings_check_commands(s, &errors), 0);
    TEST_INT(errors.n, 0);
    settings_errors_done(&errors);
    CU_ASSERT(unlink(secret) == 0 && rmdir(folder) == 0);
}

/* Checks the start of the warning about these options of redis; NULL: no warning. */
static void warns(const char *redis, const char *expected) {
    _cleanup_(settings_freep) struct settings *s = NULL;
    _cleanup_free_ char *warning = NULL;
    struct settings_errors errors = {};
    char text[256];

    snprintf(text, sizeof(text), "\nredis { %s }\n", redis);
    CU_ASSERT_FATAL(settings_parse(&(struct settings_source) {"r.conf", text, strlen(text)}, 1, "ant", &s, &errors) == 0);
    warning = settings_warn_of_cleartext(s);
    if (warning && expected)
        warning[strlen(expected) < strlen(warning) ? strlen(expected) : strlen(warning)] = '\0';
    TEST_STRING(warning, expected);
}

#define PASSWORD "password-file = \"/secret\""

static void warns_of_cleartext(void) {
    if (access("/etc/credstore/redis-password", F_OK) == 0)
        TEST_SKIP("this machine has a password of Redis");
    warns("url = \"redis://192.0.2.7\" " PASSWORD, "r.conf:2: warning: redis: the password goes to 192.0.2.7 unencrypted");
    warns("url = \"redis://redis.example.org:6380\" " PASSWORD, "r.conf:2: warning: redis: the password goes to redis.example.org unencrypted");
    warns("url = \"redis://bob@[2001:db8::1]\"", "r.conf:2: warning: redis: the password goes to 2001:db8::1 unencrypted");
    warns("url = \"redis://192.0.2.7\"", NULL);
    warns("url = \"redis://localhost\" " PASSWORD, NULL);
    warns("url = \"redis://127.0.0.2\" " PASSWORD, NULL);
    warns("url = \"redis://[::1]\" " PASSWORD, NULL);
    warns("url = \"unix:///run/redis.sock\" " PASSWORD, NULL);
    warns(PASSWORD, NULL); /* the default is 127.0.0.1 */
    TEST_INT(setenv("CREDENTIALS_DIRECTORY", "/nonexistent", 1), 0);
    warns("url = \"redis://192.0.2.7\"", NULL);
    TEST_INT(unsetenv("CREDENTIALS_DIRECTORY"), 0);
}

static CU_TestInfo tests[] = {
    {"cleartext", warns_of_cleartext},
    {"the machine lacks commands", lacks_commands},
    {"the machine lacks accounts", lacks_accounts},
    {"a check names accounts", check_names_accounts},
    {"the machine has all controllers", has_all},
    {"the machine has no controllers", has_none},
    {"the machine lacks one controller", lacks_one},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "machine", .pSetUpFunc = begin, .pTearDownFunc = end, .pTests = tests});
