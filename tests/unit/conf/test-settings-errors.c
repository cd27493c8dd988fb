/* SPDX-License-Identifier: MIT */

/* Each error of a config, with its exact message. */

#include <string.h>

#include "conf/settings.h"
#include "tests/harness/test.h"

#define POOL "pool p { limit = 2 scope = host }\n"
#define JOB(options) "job j { command = {\"/j\"} " options " }"
#define NAMES "use 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with '.' or '-'"
#define KEYS NAMES ", or NAME/KEY, or NAME/* for all keys"
#define ACCOUNT "must be a name, not a number: letters, digits, '_', '-' and '.', beginning with a letter or '_'"
#define DURATION "must be a duration such as \"250ms\", \"30s\" or \"1h30m\""
#define X65 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

struct wrong {
    const char *text;
    const char *errors; /* one a line, without the file's name */
};

static const char *join(const struct settings_errors *errors, char *buffer, size_t size) {
    size_t n = 0;

    buffer[0] = '\0';
    for (size_t i = 0; i < errors->n && n < size; i++)
        n += (size_t) snprintf(buffer + n, size - n, "%s%s", i > 0 ? "\n" : "", errors->lines[i]);
    return buffer;
}

static void refuses_files(const struct settings_source *sources, size_t n, const char *hostname, const char *expected) {
    struct settings_errors errors = {};
    struct settings *s = NULL;
    char text[8192];

    TEST_INT(settings_parse(sources, n, hostname, &s, &errors), SETTINGS_E_INVALID);
    CU_ASSERT_PTR_NULL(s);
    CU_ASSERT(!errors.out_of_memory);
    TEST_STRING(join(&errors, text, sizeof(text)), expected);
    settings_errors_done(&errors);
}

static void refuse_bytes(const char *text, size_t size, const char *expected) {
    refuses_files(&(struct settings_source) {"c", text, size}, 1, "ant", expected);
}

static void refuse_all(const struct wrong *wrong, size_t n) {
    for (size_t i = 0; i < n; i++)
        refuse_bytes(wrong[i].text, strlen(wrong[i].text), wrong[i].errors);
}

/* ---- the text ---- */

static void test_syntax(void) {
    static const struct wrong wrong[] = {
        {"host = \"x", "c:1: the string is not closed on its line; add \""},
        {"\nhost = 'x\n'", "c:2: the string is not closed on its line; add '"},
        {"host = \"x\\\ny\"", "c:1: the string is not closed on its line; add \""},
        {"host = \"x\\", "c:1: the string is not closed on its line; add \""},
        {"# x\n\n/* y\n", "c:3: the comment is not closed; add */"},
        {"/*/", "c:1: the comment is not closed; add */"},
        {"\npool p {\n limit = 1 scope = host\n", "c:2: '{' of \"pool\" is not closed; add }"},
        {"job j {\n command = {\n\"/x\"", "c:2: '{' of the list \"command\" is not closed; add }"},
        {"}", "c:1: unexpected '}'; the name of an option or a section must stand here"},
        {POOL "}", "c:2: unexpected '}'; the name of an option or a section must stand here"},
        {"= x", "c:1: unexpected '='; the name of an option or a section must stand here"},
        {"\"host\" = x", "c:1: unexpected string; the name of an option or a section must stand here"},
        {"pool p { , }", "c:1: unexpected ',' in pool; the name of an option must stand here"},
        {"\"redis|url\" = x", "c:1: unexpected string; the name of an option or a section must stand here"},
        {"host x", "c:1: unexpected \"host\"; an option is host = ..., a section is host {"},
        {"host", "c:1: unexpected \"host\"; an option is host = ..., a section is host {"},
        {"host = ", "c:1: \"host\" has no value; write host = ..."},
        {"host = = x", "c:1: \"host\" has no value; write host = ..."},
        {"pool p { limit 3 }", "c:1: \"limit\" in pool: '=' is missing; write limit = ..."},
        {"pool p { pool q { } }", "c:1: \"pool\" in pool: '=' is missing; write pool = ..."},
        {"host = a/b", "c:1: unexpected '/'; a value with it must stand in quotes"},
        {"host = (", "c:1: unexpected '('; a value with it must stand in quotes"},
        {"host = x;", "c:1: unexpected ';'; a value with it must stand in quotes"},
        {"host = f\303\274r", "c:1: unexpected character 0xc3; a value with it must stand in quotes"},
        {"job j { pools += {x} }", "c:1: there is no \"+=\"; write the whole list with ="},
        {"job j { pools = {a b} }", "c:1: ',' is missing in the list \"pools\"; put one between two values"},
        {"job j { pools = {a,,b} }", "c:1: unexpected ',' in the list \"pools\"; a value must stand before it"},
        {"job j {\npools = {a,\n{b} }", "c:3: unexpected '{' in the list \"pools\", which began in line 2; is a } missing?"},
        {"job j {\npools = {a,\nuser = x\n}", "c:3: unexpected '=' in the list \"pools\", which began in line 2; is a } missing?"},
        {"host = \"\\8\"", "c:1: bad escape sequence '\\8'; correct the syntax"},
        {"host = \"\\777\"", "c:1: invalid octal number '\\777'; correct the syntax"},
        {"include(\"x\")", "c:1: there is no \"include\"; put files into c.d/, named *.conf"},
        {"\ninclude = x", "c:2: there is no \"include\"; put files into c.d/, named *.conf"},
    };

    refuse_all(wrong, ELEMENTSOF(wrong));
}

static void test_traps_of_libconfuse(void) {
    static const struct wrong wrong[] = {
        {"host = \"${USER}\"", "c:1: \"${\" in double quotes: variables are not replaced; write '${' in single quotes"},
        {"runtime-directory = \"$${USER}\"", "c:1: \"${\" in double quotes: variables are not replaced; write '${' in single quotes"},
        {"redis { url = \"${URL}\" }", "c:1: \"${\" in double quotes: variables are not replaced; write '${' in single quotes"},
        {"pool p { scope = host limit = \"${N}\" }", "c:1: \"${\" in double quotes: variables are not replaced; write '${' in single quotes"},
        {"host = \"a${\"", "c:1: \"${\" in double quotes: variables are not replaced; write '${' in single quotes"},
        {"host = ${USER}", "c:1: \"${\" without quotes: variables are not replaced; write '${' in single quotes"},
        {"host = a${USER}", "c:1: \"${\" without quotes: variables are not replaced; write '${' in single quotes"},
        {"host = \"a\\x00b\"", "c:1: a string cannot hold the character 0, \"\\0\" or \"\\x00\"; remove it"},
        {"host = \"a\\x0\"", "c:1: a string cannot hold the character 0, \"\\0\" or \"\\x00\"; remove it"},
        {"host = \"a\\0\"", "c:1: a string cannot hold the character 0, \"\\0\" or \"\\x00\"; remove it"},
        {"host = \"a\\000b\"", "c:1: a string cannot hold the character 0, \"\\0\" or \"\\x00\"; remove it"},
        {"host = a\r\n" POOL "\r\n", "c:1: control character 0x0d (lines must end in a newline alone); remove it"},
        {"# \033[2J", "c:1: control character 0x1b; remove it"},
        {"/* \n\001 */", "c:2: control character 0x01; remove it"},
        {"host = \"\t\"", "c:1: control character 0x09; remove it"},
        {"host = '\177'", "c:1: control character 0x7f; remove it"},
        {"host = a\nhost = b", "c:2: \"host\" is given twice, first in line 1; keep one"},
        {"pool p { limit = 1\nscope = host limit = 2 }", "c:2: \"limit\" is given twice, first in line 1; keep one"},
        {JOB("environment = {} environment = {\"A=1\"}"), "c:1: \"environment\" is given twice, first in line 1; keep one"},
        {"job j {\n command = \"/x\" }", "c:2: \"command\" takes a list; write command = {\"...\"}"},
        {POOL "job j { command = {\"/x\"} pools = p }", "c:2: \"pools\" takes a list; write pools = {\"...\"}"},
        {"pool p { limit = {1} scope = host }", "c:1: \"limit\" takes one value, not a list; write limit = \"...\""},
        {"host = {}", "c:1: \"host\" takes one value, not a list; write host = \"...\""},
    };

    refuse_all(wrong, ELEMENTSOF(wrong));
    refuse_bytes("host = a\0b", 10, "c:1: control character 0x00; remove it\nc:1: unexpected \"b\"; an option is b = ..., a section is b {");
}

static void test_unknown(void) {
    static const struct wrong wrong[] = {
        {"hartbeat = 5s", "c:1: unknown option \"hartbeat\"; did you mean \"heartbeat\"?"},
        {"wallclock = 5s", "c:1: unknown option \"wallclock\"; there are host, namespace, lease, heartbeat, runtime-directory,"
                            " state-directory, zone,"
                           " run-group, operate-group, connections, user-connections, user-runs, user-buffer"},
        {"pool p { limt = 5 scope = host }", "c:1: unknown option \"limt\" in pool; did you mean \"limit\"?"},
        {"redis { passwordfile = {a, b} }", "c:1: unknown option \"passwordfile\" in redis; did you mean \"password-file\"?"},
        {"redis { colour = red }", "c:1: unknown option \"colour\" in redis; there are url, username, password-file, tls-ca, "
         "tls-certificate, tls-key, tls-server-name, tls-minimum, timeout, connect-timeout"},
        {JOB("stop_timeout = 5s"), "c:1: unknown option \"stop_timeout\" in job; did you mean \"stop-timeout\"?"},
        {JOB("cron = daily"), "c:1: unknown option \"cron\" in job; berth.conf(5) lists them"},
        {JOB("once = true"), "c:1: unknown option \"once\" in job; berth.conf(5) lists them"},
        {"pol p { limt = 1 }", "c:1: unknown section \"pol\"; did you mean \"pool\"?"},
        {"cluster { }", "c:1: unknown section \"cluster\"; there are redis, pool and job"},
        {"lease { }", "c:1: \"lease\" is an option; write lease = ..."},
        {"redis = \"redis://h\"", "c:1: \"redis\" is a section; write redis {"},
        {"redis x { urll = y }", "c:1: redis has no name; write redis {\nc:1: unknown option \"urll\" in redis; did you mean \"url\"?"},
        {"pool { limit = x }", "c:1: pool must have a name; write pool \"NAME\" {"},
        {X65 " = 1", "c:1: unknown option \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"; there are host, namespace, lease,"
                     " heartbeat, runtime-directory, state-directory, zone, run-group, operate-group, connections, user-connections, user-runs, user-buffer"},
    };

    refuse_all(wrong, ELEMENTSOF(wrong));
}

/* ---- values ---- */

static void test_top(void) {
    static const struct wrong wrong[] = {
        {"host = \"\"", "c:1: host \"\" is empty; " NAMES},
        {"host = \"a b\"", "c:1: host \"a b\" has a space; " NAMES},
        {"host = -a", "c:1: host \"-a\" begins with '.' or '-'; " NAMES},
        {"namespace = \"a{b\"", "c:1: namespace \"a{b\" has a character that is not one of A-Z a-z 0-9 . _ -; " NAMES},
        {"namespace = \"f\303\274r\"", "c:1: namespace \"f\303\274r\" has a character that is not one of A-Z a-z 0-9 . _ -; " NAMES},
        {"namespace = \"a\\\"b\"", "c:1: namespace \"a\"b\" has a character that is not one of A-Z a-z 0-9 . _ -; " NAMES},
        {"namespace = \"a\\nb\"", "c:1: namespace \"a?b\" holds a control character; remove it"},
        {"namespace = \"\\xff\"", "c:1: namespace \"?\" is not UTF-8; write it as UTF-8"},
        {"namespace = \"\\xc2\\x9b\"", "c:1: namespace \"??\" holds a control character; remove it"},
        {"namespace = " X65, "c:1: namespace \"" X65 "\" is longer than 64 characters; " NAMES},
        {"lease = 30", "c:1: lease \"30\" " DURATION},
        {"lease = \"\"", "c:1: lease \"\" " DURATION},
        {"lease = \"2d\"", "c:1: lease \"2d\" must be between 20ms and 1d"},
        {"lease = 99999999999d", "c:1: lease \"99999999999d\" must be between 20ms and 1d"},
        {"heartbeat = 0s", "c:1: heartbeat \"0s\" must be between 10ms and 1d"},
        {"lease = 10s\nheartbeat = 5s", "c:2: lease 10s is shorter than 2 heartbeats of 5s and a margin of 500ms; make it at least 10s500ms,"
                                        " or the heartbeat shorter"},
        {"\nlease = 700ms", "c:2: lease 700ms is shorter than 2 heartbeats of 116ms and a margin of 500ms; make it at least 732ms, or the"
                            " heartbeat shorter"},
        {"lease = 20m heartbeat = 10m", "c:1: lease 20m is shorter than 2 heartbeats of 10m and a margin of 12s; make it at least"
                                        " 20m12s122ms, or the heartbeat shorter"},
        {"connections = 0", "c:1: connections \"0\" must be a decimal number from 1 to 1000000, without leading zeros"},
        {"user-connections = many", "c:1: user-connections \"many\" must be a decimal number from 1 to 1000000, without leading zeros"},
        {"user-runs = 1000001", "c:1: user-runs \"1000001\" must be a decimal number from 1 to 1000000, without leading zeros"},
        {"user-buffer = 1000K", "c:1: user-buffer \"1000K\" is too small; make it at least 1M"},
        {"user-buffer = much", "c:1: user-buffer \"much\" must be a size such as \"512M\" or \"2G\""},
        {"run-group = 0", "c:1: run-group \"0\" " ACCOUNT},
        {"operate-group = \"@wheel\"", "c:1: operate-group \"@wheel\" " ACCOUNT},
        {"runtime-directory = run", "c:1: runtime-directory \"run\" must be an absolute path"},
        {"runtime-directory = \"\"", "c:1: runtime-directory \"\" must be an absolute path"},
        {"runtime-directory = \"/run/\"", "c:1: runtime-directory \"/run/\" must not end in '/'"},
        {"runtime-directory = \"/\"", "c:1: runtime-directory \"/\" must not end in '/'"},
        {"runtime-directory = \"/12345678901234567890123456789012345678901234567890123456789a\"",
         "c:1: runtime-directory \"/12345678901234567890123456789012345678901234567890123456789a\" has 61 bytes; sockets in it allow at most"
         " 60"},
    };

    refuse_all(wrong, ELEMENTSOF(wrong));
    refuses_files(&(struct settings_source) {"c", "", 0}, 1, "my host",
                  "c:1: host is not given, and the machine's hostname \"my host\" has a space; write host = \"NAME\"");
}

static void test_redis(void) {
    static const struct wrong wrong[] = {
        {"redis {\nurl = \"http://h\" }", "c:2: redis: url must begin with redis://, rediss:// or unix://"},
        {"redis { url = \"redis://:secret@h\" }",
         "c:1: redis: url must not hold a password; write it to a file and name that in password-file"},
        {"redis { url = \"redis://h:0\" }", "c:1: redis: url has a port that is not 1 to 65535"},
        {"redis { tls-ca = \"/ca\" }", "c:1: redis: tls-ca is given, and url does not name rediss://; remove it, or change the url"},
        {"redis { url = \"unix:///s\"\ntls-minimum = \"1.3\" }",
         "c:2: redis: tls-minimum is given, and url does not name rediss://; remove it, or change the url"},
        {"redis { url = \"rediss://h\" tls-ca = ca }", "c:1: redis: tls-ca \"ca\" must be an absolute path"},
        {"redis { url = \"rediss://h\" tls-certificate = \"/c\" }", "c:1: redis: tls-certificate is given without tls-key; name both"},
        {"redis { url = \"rediss://h\" tls-key = \"/k\" }", "c:1: redis: tls-key is given without tls-certificate; name both"},
        {"redis { url = \"rediss://h\" tls-minimum = \"1.1\" }", "c:1: redis: tls-minimum \"1.1\" must be \"1.2\" or \"1.3\"; did you mean \"1.2\"?"},
        {"redis { url = \"rediss://h\" tls-server-name = \"h:6380\" }",
         "c:1: redis: tls-server-name \"h:6380\" must be a host name or an address, without a port"},
        {"redis { connect-timeout = \"15001ms\" }",
         "c:1: redis: connect-timeout \"15001ms\" is above half the lease; make it at most 15s"},
        {"redis { connect-timeout = \"0s\" }", "c:1: redis: connect-timeout \"0s\" must be between 1ms and 1d"},
        {"redis { url = \"\\a\" }", "c:1: redis: url \"?\" holds a control character; remove it"},
        {"redis { username = \"a b\" }", "c:1: redis: username \"a b\" has a space; a user of Redis has none"},
        {"redis { url = \"redis://u@h\" username = v }", "c:1: redis: username \"v\" is given beside a user in the url; keep one"},
        {"redis { password-file = \"secret\" }", "c:1: redis: password-file \"secret\" must be an absolute path"},
        {"redis { timeout = \"0s\" }", "c:1: redis: timeout \"0s\" must be between 1ms and 1d"},
        {"redis { timeout = 5001ms }", "c:1: redis: timeout \"5001ms\" is above the heartbeat; make it at most 5s"},
        {"redis { }\nredis { }\nredis { }",
         "c:2: a second redis section, the first is at c:1; keep one\nc:3: a second redis section, the first is at c:1; keep one"},
    };

    refuse_all(wrong, ELEMENTSOF(wrong));
}

static void test_pools(void) {
    static const struct wrong wrong[] = {
        {"pool p {\nscope = host }", "c:1: pool \"p\": limit is missing; write limit = N, 0 pauses the pool"},
        {"pool p { scope = host limit = 010 }", "c:1: pool \"p\": limit \"010\" must be a decimal number from 0 to 1000000, without leading zeros"},
        {"pool p { scope = host limit = 0x10 }",
         "c:1: pool \"p\": limit \"0x10\" must be a decimal number from 0 to 1000000, without leading zeros"},
        {"pool p { scope = host limit = -1 }", "c:1: pool \"p\": limit \"-1\" must be a decimal number from 0 to 1000000, without leading zeros"},
        {"pool p { scope = host limit = \"\" }", "c:1: pool \"p\": limit \"\" must be a decimal number from 0 to 1000000, without leading zeros"},
        {"pool p { scope = host limit = 1000001 }",
         "c:1: pool \"p\": limit \"1000001\" must be a decimal number from 0 to 1000000, without leading zeros"},
        {"pool p { scope = host limit = 1 host-limit = x }",
         "c:1: pool \"p\": host-limit \"x\" must be a decimal number from 0 to 1000000, without leading zeros"},
        {"pool p { scope = host limit = 1 queue-limit = 1.5 }",
         "c:1: pool \"p\": queue-limit \"1.5\" must be a decimal number from 0 to 1000000, without leading zeros"},
        {"pool p { scope = hots limit = 1 }", "c:1: pool \"p\": scope \"hots\" must be \"cluster\" or \"host\"; did you mean \"host\"?"},
        {"redis { } pool p { scope = \"\" limit = 1 }", "c:1: pool \"p\": scope \"\" must be \"cluster\" or \"host\""},
        {"\npool p { limit = 1 }", "c:2: pool \"p\": scope \"cluster\" needs a Redis; add a redis section, or write scope = \"host\""},
        {"pool p { limit = 1\nscope = cluster }",
         "c:2: pool \"p\": scope \"cluster\" needs a Redis; add a redis section, or write scope = \"host\""},
        {"pool p { limit = 1 scope = host description = \"\\e\" }",
         "c:1: pool \"p\": description \"?\" holds a control character; remove it"},
        {"pool p { limit = 1 scope = host\nusers = {\"alice\",\n\"0\"} }", "c:3: pool \"p\": users \"0\" " ACCOUNT "; '@' before it for a group"},
        {"pool p { limit = 1 scope = host users = {\"@\"} }", "c:1: pool \"p\": users \"@\" " ACCOUNT "; '@' before it for a group"},
        {"pool p { limit = 1 scope = host users = {\"\"} }", "c:1: pool \"p\": users \"\" " ACCOUNT "; '@' before it for a group"},
        {"pool p { limit = 1 scope = host users = {\"@@a\"} }", "c:1: pool \"p\": users \"@@a\" " ACCOUNT "; '@' before it for a group"},
        {"pool p { limit = 1 scope = host head-start-max = \"\" }", "c:1: pool \"p\": head-start-max \"\" " DURATION},
        {"pool p { limit = 1 scope = host head-start-max = 3651d }",
         "c:1: pool \"p\": head-start-max \"3651d\" must be between 0s and 3650d"},
        {"pool \"a b\" { limit = 1 scope = host }", "c:1: pool \"a b\": its name has a space; " KEYS},
        {"pool \"a/\" { limit = 1 scope = host }", "c:1: pool \"a/\": its name has no key behind the slash; " KEYS},
        {"pool \"@b\" { limit = 1 scope = host }", "c:1: pool \"@b\": its name begins with '@', as the pools of jobs do; " KEYS},
        {"pool \"/b\" { limit = 1 scope = host }", "c:1: pool \"/b\": its name is empty; " KEYS},
        {"pool \"*/b\" { limit = 1 scope = host }",
         "c:1: pool \"*/b\": its name has a character that is not one of A-Z a-z 0-9 . _ -; " KEYS},
        {"pool \"a/b*\" { limit = 1 scope = host }",
         "c:1: pool \"a/b*\": its name has a character that is not one of A-Z a-z 0-9 . _ -; " KEYS},
        {"pool \"a/*\" { limit = 1 scope = host }\njob j { command = {\"/j\"} pools = {\"a\"} }",
         "c:2: job \"j\": pools \"a\" names a pool that is not defined; did you mean \"a/KEY\"?"},
        {"pool \"a/*\" { limit = 1 scope = host }\njob j { command = {\"/j\"} pools = {\"a/*\"} }",
         "c:2: job \"j\": pools \"a/*\" names a pattern; name one key in place of the star"},
        {"pool \"a/*\" { limit = 2 scope = host }\njob j { command = {\"/j\"} pools = {\"a/b:3\"} }",
         "c:2: job \"j\": pools \"a/b:3\" needs more than the pool's limit; ask for at most 2, or raise the limit at c:1"},
        {"pool \"\" { limit = 1 scope = host }", "c:1: pool \"\": its name is empty; " KEYS},
        {POOL POOL POOL, "c:2: pool \"p\" is defined twice, first at c:1; rename or remove one\n"
                         "c:3: pool \"p\" is defined twice, first at c:2; rename or remove one"},
    };

    refuse_all(wrong, ELEMENTSOF(wrong));
}

/* What went wrong elsewhere: CVE-2017-1000082, CVE-2020-13776, CVE-2018-19788. */
static void test_jobs(void) {
    static const struct wrong wrong[] = {
        {"\njob j { }", "c:2: job \"j\": command or script is missing; write command = {\"/path/to/program\", \"argument\"}"},
        {"job j { command = {} }", "c:1: job \"j\": command or script is missing; write command = {\"/path/to/program\", \"argument\"}"},
        {"job j { command = {\"ls\", \"-l\"} }",
         "c:1: job \"j\": command \"ls\" must be an absolute path: it is executed without a shell"},
        {"job j { command = {\"\"} }", "c:1: job \"j\": command \"\" must be an absolute path: it is executed without a shell"},
        {"job j { command = {\"/j\",\n\"\\b\"} }", "c:2: job \"j\": command \"?\" holds a control character; remove it"},
        {"job \"j/k\" { command = {\"/j\"} }", "c:1: job \"j/k\": its name has a character that is not one of A-Z a-z 0-9 . _ -; " NAMES},
        {JOB("") JOB(""), "c:1: job \"j\" is defined twice, first at c:1; rename or remove one"},
        {JOB("head-start = -5s"), "c:1: job \"j\": head-start \"-5s\" " DURATION},
        {JOB("head-start = \"\""), "c:1: job \"j\": head-start \"\" " DURATION},
        {JOB("at-start = yes"), "c:1: job \"j\": at-start \"yes\" must be true or false"},
        {JOB("every = 1"), "c:1: job \"j\": every \"1\" " DURATION ", or \"\" for none"},
        {JOB("every = 5ms"), "c:1: job \"j\": every \"5ms\" must be between 10ms and 3650d, or \"\" for none"},
        {JOB("queue-timeout = 0s"), "c:1: job \"j\": queue-timeout \"0s\" must be between 1ms and 3650d, or \"\" for none"},
        {JOB("timeout = 3651d"), "c:1: job \"j\": timeout \"3651d\" must be between 1ms and 3650d, or \"\" for none"},
        {JOB("timeout = soon"), "c:1: job \"j\": timeout \"soon\" " DURATION ", or \"\" for none"},
        {JOB("stop-timeout = \"\""), "c:1: job \"j\": stop-timeout \"\" " DURATION},
        {JOB("overlap = quueue"), "c:1: job \"j\": overlap \"quueue\" must be \"skip\", \"queue\", \"allow\" or \"replace\"; did you mean \"queue\"?"},
        {JOB("on-lease-lost = kill"), "c:1: job \"j\": on-lease-lost \"kill\" must be \"stop\" or \"continue\""},
        {JOB("stop-signal = SIGTREM"), "c:1: job \"j\": stop-signal \"SIGTREM\" is not the name of a signal; did you mean \"TERM\"?"},
        {JOB("stop-signal = 15"),
         "c:1: job \"j\": stop-signal \"15\" is not the name of a signal; write \"TERM\", \"INT\", \"HUP\" or the like"},
        {JOB("user = 0"), "c:1: job \"j\": user \"0\" must be a name, not a number: letters, digits, '_', '-' and '.', beginning with a letter"
                          " or '_'"},
        {JOB("user = berth"), "c:1: job \"j\": user \"berth\" is berthd's own, and a job of it could act as berthd; make another user for the job"},
        {JOB("group = berth-admin"), "c:1: job \"j\": group \"berth-admin\" is that of operators, and the job could act as one; name another group"},
        {"operate-group = wheel\n" JOB("group = wheel"),
         "c:2: job \"j\": group \"wheel\" is that of operators, and the job could act as one; name another group"},
        {"run-group = users\n" JOB("group = berth"), "c:2: job \"j\": group \"berth\" is berthd's own; name another group"},
        {JOB("user = 0day"), "c:1: job \"j\": user \"0day\" must be a name, not a number: letters, digits, '_', '-' and '.', beginning with a"
                             " letter or '_'"},
        {JOB("group = 4294967296"), "c:1: job \"j\": group \"4294967296\" must be a name, not a number: letters, digits, '_', '-' and '.',"
                                    " beginning with a letter or '_'"},
        {JOB("user = \"a:b\""), "c:1: job \"j\": user \"a:b\" must be a name, not a number: letters, digits, '_', '-' and '.', beginning with a"
                                " letter or '_'"},
        {JOB("operators = {\"@1000\"}"), "c:1: job \"j\": operators \"@1000\" " ACCOUNT "; '@' before it for a group"},
        {JOB("directory = tmp"), "c:1: job \"j\": directory \"tmp\" must be an absolute path, or \"~\" for the user's home"},
        {JOB("directory = \"~bob\""), "c:1: job \"j\": directory \"~bob\" must be an absolute path, or \"~\" for the user's home"},
        {"job j { script = \"\" }", "c:1: job \"j\": command or script is missing; write command = {\"/path/to/program\", \"argument\"}"},
        {"job j { skript = \"true\" }", "c:1: unknown option \"skript\" in job; did you mean \"script\"?"},
        {"job j { script = \"a\\x01\" }", "c:1: job \"j\": script \"a?\" holds a control character; remove it"},
        {JOB("\nscript = true"), "c:2: job \"j\": command and script exclude one another; remove one"},
        {JOB("\nshell = \"/bin/bash\""), "c:2: job \"j\": shell without script; remove it, or write script = \"...\" instead of command"},
        {"job j { script = true shell = sh }", "c:1: job \"j\": shell \"sh\" must be an absolute path"},
        {"job j {\n script = '\n\ttrue\n }", "c:2: the string is not closed; add '"},
        {"job j {\n script = '\n\ttrue\n\001'\n}\n", "c:4: control character 0x01; remove it"},
        {"job j {\n script = \"\n${A}\"\n}\n", "c:3: \"${\" in double quotes: variables are not replaced; write '${' in single quotes"},
        {JOB("user = \"a\nb\""), "c:1: the string is not closed on its line; add \""},
        {JOB("environment-file = {\"x\"}"),
         "c:1: job \"j\": environment-file \"x\" must be an absolute path, with '-' before it if the file may be missing"},
        {JOB("environment-file = {\"/x\", \"-\"}"),
         "c:1: job \"j\": environment-file \"-\" must be an absolute path, with '-' before it if the file may be missing"},
        {JOB("credentials = {\"a=/x\",\n\"a\"}"), "c:2: job \"j\": credentials \"a\" names a credential twice, first in line 1; keep one"},
        {JOB("credentials = {\"a=/x\", \"ab\", \"a=/y\"}"),
         "c:1: job \"j\": credentials \"a=/y\" names a credential twice, first in line 1; keep one"},
        {JOB("credentials = {\"../a\"}"),
         "c:1: job \"j\": credentials \"../a\" must be NAME=/path, or NAME of berth-runner's own; " NAMES},
        {JOB("credentials = {\"=/x\"}"),
         "c:1: job \"j\": credentials \"=/x\" must be NAME=/path, or NAME of berth-runner's own; " NAMES},
        {JOB("credentials = {\"" X65 "=/x\"}"),
         "c:1: job \"j\": credentials \"" X65 "=/x\" must be NAME=/path, or NAME of berth-runner's own; " NAMES},
        {JOB("credentials = {\"a=x\"}"), "c:1: job \"j\": credentials \"a=x\" must have an absolute path after '='"},
        {JOB("credentials = {\"redis-password\"}"),
         "c:1: job \"j\": credentials \"redis-password\" has the name of berthd's password of Redis; choose another name"},
        {JOB("credentials = {\"redis-password=/x\"}"),
         "c:1: job \"j\": credentials \"redis-password=/x\" has the name of berthd's password of Redis; choose another name"},
        {JOB("stdin = file"), "c:1: job \"j\": stdin \"file\" must be \"null\" or an absolute path"},
        {JOB("io-class = high"),
         "c:1: job \"j\": io-class \"high\" must be \"\", \"realtime\", \"best-effort\" or \"idle\""},
        {JOB("io-class = realtime io-priority = 8"),
         "c:1: job \"j\": io-priority \"8\" must be a decimal number from 0 to 7, or \"\" for none"},
        {JOB("io-priority = 0"), "c:1: job \"j\": io-priority without io-class; add io-class = \"best-effort\""},
        {JOB("io-class = idle io-priority = 0"),
         "c:1: job \"j\": io-priority with io-class = \"idle\", which has no priorities; remove one"},
        {JOB("umask = 8"), "c:1: job \"j\": umask \"8\" must be octal, \"000\" to \"777\""},
        {JOB("umask = 1000"), "c:1: job \"j\": umask \"1000\" must be octal, \"000\" to \"777\""},
        {JOB("umask = \"\""), "c:1: job \"j\": umask \"\" must be octal, \"000\" to \"777\""},
        {JOB("umask = 00022"), "c:1: job \"j\": umask \"00022\" must be octal, \"000\" to \"777\""},
        {JOB("output = file"), "c:1: job \"j\": output \"file\" must be \"journal\", \"null\" or an absolute path"},
        {JOB("environment = {A}"),
         "c:1: job \"j\": environment \"A\" must be NAME=value, NAME of letters, digits and '_', not beginning with a digit"},
        {JOB("environment = {\"=x\"}"),
         "c:1: job \"j\": environment \"=x\" must be NAME=value, NAME of letters, digits and '_', not beginning with a digit"},
        {JOB("environment = {\"1A=x\"}"),
         "c:1: job \"j\": environment \"1A=x\" must be NAME=value, NAME of letters, digits and '_', not beginning with a digit"},
        {JOB("environment = {\"A=1\",\n\"B=1\",\n\"A=2\"}"), "c:3: job \"j\": environment \"A=2\" names a variable twice, first in line 1; keep one"},
        {JOB("environment = {\"BERTH_JOB=x\"}"),
         "c:1: job \"j\": environment \"BERTH_JOB=x\" begins with BERTH_, which berth sets itself; choose another name"},
    };

    refuse_all(wrong, ELEMENTSOF(wrong));
}

#define LIMIT_FORM "must be NAME=VALUE, such as \"nofile=1024\" or \"core=0\""
#define OR_NONE ", or \"\" for none"
#define SIZE_FORM "must be a size such as \"512M\" or \"2G\"" OR_NONE

static void test_bounds(void) {
    static const struct wrong wrong[] = {
        {JOB("limits = 5"), "c:1: \"limits\" takes a list; write limits = {\"...\"}"},
        {JOB("limits = {nofile}"), "c:1: job \"j\": limits \"nofile\" " LIMIT_FORM},
        {JOB("limits = {\"=5\"}"), "c:1: job \"j\": limits \"=5\" " LIMIT_FORM},
        {JOB("limits = {\"\"}"), "c:1: job \"j\": limits \"\" " LIMIT_FORM},
        {JOB("limits = {\"core=0\",\n\"nofiles=5\"}"), "c:2: job \"j\": limits \"nofiles=5\" is no limit of setrlimit(2); did you mean \"nofile\"?"},
        {JOB("limits = {\"RLIMIT_X=5\"}"), "c:1: job \"j\": limits \"RLIMIT_X=5\" is no limit of setrlimit(2); there are as, core, cpu, data,"
                                         " fsize, locks, memlock, msgqueue, nice, nofile, nproc, rss, rtprio, rttime, sigpending, stack"},
        {JOB("limits = {\"nofile=\"}"), "c:1: job \"j\": limits \"nofile=\" must be a decimal number; the kernel knows no unlimited nofile"},
        {JOB("limits = {\"nofile=unlimited\"}"),
         "c:1: job \"j\": limits \"nofile=unlimited\" must be a decimal number; the kernel knows no unlimited nofile"},
        {JOB("limits = {\"nofile=1K\"}"), "c:1: job \"j\": limits \"nofile=1K\" must be a decimal number; the kernel knows no unlimited nofile"},
        {JOB("limits = {\"nproc=-1\"}"), "c:1: job \"j\": limits \"nproc=-1\" must be a decimal number, or unlimited"},
        {JOB("limits = {\"nproc=010\"}"), "c:1: job \"j\": limits \"nproc=010\" must be a decimal number, or unlimited"},
        {JOB("limits = {\"cpu=infinity\"}"), "c:1: job \"j\": limits \"cpu=infinity\" must be a decimal number, or unlimited"},
        {JOB("limits = {\"as=4GB\"}"), "c:1: job \"j\": limits \"as=4GB\" must be a size such as \"64M\" or \"2G\", or unlimited"},
        {JOB("limits = {\"core=18446744073709551615\"}"),
         "c:1: job \"j\": limits \"core=18446744073709551615\" must be a size such as \"64M\" or \"2G\", or unlimited"},
        {JOB("limits = {\"core=0\",\n\"as=1G\",\n\"core=1M\"}"), "c:3: job \"j\": limits \"core=1M\" is the second of this name, the first is in"
                                                              " line 1; keep one"},
        {JOB("nice = -21"), "c:1: job \"j\": nice \"-21\" must be a decimal number from -20 to 19" OR_NONE},
        {JOB("nice = 20"), "c:1: job \"j\": nice \"20\" must be a decimal number from -20 to 19" OR_NONE},
        {JOB("nice = -0"), "c:1: job \"j\": nice \"-0\" must be a decimal number from -20 to 19" OR_NONE},
        {JOB("nice = \"--5\""), "c:1: job \"j\": nice \"--5\" must be a decimal number from -20 to 19" OR_NONE},
        {JOB("nice = \"+5\""), "c:1: job \"j\": nice \"+5\" must be a decimal number from -20 to 19" OR_NONE},
        {JOB("oom-score-adjust = 1001"), "c:1: job \"j\": oom-score-adjust \"1001\" must be a decimal number from -1000 to 1000" OR_NONE},
        {JOB("oom-score-adjust = -1001"), "c:1: job \"j\": oom-score-adjust \"-1001\" must be a decimal number from -1000 to 1000" OR_NONE},
        {JOB("no-new-privileges = 1"), "c:1: job \"j\": no-new-privileges \"1\" must be true or false"},
        {JOB("memory-max = 0"), "c:1: job \"j\": memory-max \"0\" " SIZE_FORM},
        {JOB("memory-max = 1.5G"), "c:1: job \"j\": memory-max \"1.5G\" " SIZE_FORM},
        {JOB("memory-max = 9223372036854775808"), "c:1: job \"j\": memory-max \"9223372036854775808\" " SIZE_FORM},
        {JOB("cpu-weight = 0"), "c:1: job \"j\": cpu-weight \"0\" must be a decimal number from 1 to 10000" OR_NONE},
        {JOB("cpu-weight = 10001"), "c:1: job \"j\": cpu-weight \"10001\" must be a decimal number from 1 to 10000" OR_NONE},
        {JOB("tasks-max = 0"), "c:1: job \"j\": tasks-max \"0\" must be a decimal number from 1 to 4194304" OR_NONE},
        {JOB("tasks-max = 4194305"), "c:1: job \"j\": tasks-max \"4194305\" must be a decimal number from 1 to 4194304" OR_NONE},
    };

    refuse_all(wrong, ELEMENTSOF(wrong));
}

/* ---- retries and hooks ---- */

#define ENDS "there are failure, exit:N, exit:N-M, signal:NAME, timeout, lease-lost, guard-died, host-lost, not-started and queue-timeout"
#define RESTART "restart excludes schedule, every, at-start and retry: the job runs from the start of the service on, and again after each" \
                " end; remove them, or restart"

static void test_retries(void) {
    static const struct wrong wrong[] = {
        {JOB("retry = 1001"), "c:1: job \"j\": retry \"1001\" must be a decimal number from 0 to 1000, without leading zeros"},
        {JOB("retry-on = {exitt}"), "c:1: job \"j\": retry-on \"exitt\": did you mean \"exit:N\"?"},
        {JOB("retry-on = {failure,\n\"time-out\"}"), "c:2: job \"j\": retry-on \"time-out\": did you mean \"timeout\"?"},
        {JOB("retry-on = {\"!stopped\"}"), "c:1: job \"j\": retry-on \"!stopped\": a run that was stopped is never retried; remove it"},
        {JOB("retry-on = {always}"), "c:1: job \"j\": retry-on \"always\": " ENDS},
        {JOB("retry-on = {\"\"}"), "c:1: job \"j\": retry-on \"\": " ENDS},
        {JOB("retry-on = {\"exit:300\"}"), "c:1: job \"j\": retry-on \"exit:300\": statuses are 0 to 255"},
        {JOB("retry-on = {\"exit:99999999\"}"), "c:1: job \"j\": retry-on \"exit:99999999\": statuses are 0 to 255"},
        {JOB("retry-on = {\"!exit:7-3\"}"), "c:1: job \"j\": retry-on \"!exit:7-3\": runs backwards; write !exit:3-7"},
        {JOB("retry-on = {\"exit:\"}"),
         "c:1: job \"j\": retry-on \"exit:\": write an exit status or a range of them, such as \"exit:24\" or \"exit:0-1\""},
        {JOB("retry-on = {\"exit:1-\"}"),
         "c:1: job \"j\": retry-on \"exit:1-\": write an exit status or a range of them, such as \"exit:24\" or \"exit:0-1\""},
        {JOB("retry-on = {\"exit:010\"}"),
         "c:1: job \"j\": retry-on \"exit:010\": write an exit status or a range of them, such as \"exit:24\" or \"exit:0-1\""},
        {JOB("retry-on = {\"signal:KIL\"}"), "c:1: job \"j\": retry-on \"signal:KIL\": did you mean \"signal:KILL\"?"},
        {JOB("retry-on = {\"signal:9\"}"),
         "c:1: job \"j\": retry-on \"signal:9\": there is no such signal; write \"signal:KILL\", \"signal:SEGV\" or the like"},
        {JOB("retry-delay = 0s"), "c:1: job \"j\": retry-delay \"0s\" must be between 1ms and 3650d"},
        {JOB("\nretry-delay = 16m"), "c:2: job \"j\": retry-delay is longer than retry-delay-max: 16m and 15m; make it at most that, or"
                                    " raise retry-delay-max"},
        {JOB("\nretry-delay-max = 29s"), "c:2: job \"j\": retry-delay is longer than retry-delay-max: 30s and 29s; make it at most that, or"
                                        " raise retry-delay-max"},
        {JOB("retry-within = 0s"), "c:1: job \"j\": retry-within \"0s\" must be between 1ms and 3650d, or \"\" for none"},
        {JOB("success-on = {x}"),
         "c:1: job \"j\": success-on \"x\": write an exit status or a range of them, such as \"24\" or \"0-1\""},
        {JOB("success-on = {\"0\",\n\"256\"}"), "c:2: job \"j\": success-on \"256\": statuses are 0 to 255"},
        {JOB("success-on = {\"1-0\"}"), "c:1: job \"j\": success-on \"1-0\": runs backwards; write 0-1"},
        {JOB("restart = yes"), "c:1: job \"j\": restart \"yes\" must be \"no\", \"always\" or \"on-failure\""},
        {JOB("every = 1h\nrestart = always"), "c:2: job \"j\": " RESTART},
        {JOB("at-start = true restart = on-failure"), "c:1: job \"j\": " RESTART},
        {JOB("retry = 1 restart = always"), "c:1: job \"j\": " RESTART},
        {JOB("schedule = {\"@daily\"} restart = always"), "c:1: job \"j\": " RESTART},
    };

    refuse_all(wrong, ELEMENTSOF(wrong));
}

#define NAMED(name, options) "job " name " { command = {\"/j\"} " options " }\n"
#define CIRCLE " is a circle, which would never end; remove one of these hooks"

static void test_hooks(void) {
    static const struct wrong wrong[] = {
        {JOB("broken-after = 0"), "c:1: job \"j\": broken-after \"0\" must be a decimal number from 1 to 1000, without leading zeros"},
        {JOB("remind-after = 0s"), "c:1: job \"j\": remind-after \"0s\" must be between 1ms and 3650d, or \"\" for none"},
        {JOB("max-silence = never"), "c:1: job \"j\": max-silence \"never\" " DURATION ", or \"\" for none"},
        {JOB("on-failure = mail"), "c:1: \"on-failure\" takes a list; write on-failure = {\"...\"}"},
        {JOB("on-failure = {\"m/x\"}"), "c:1: job \"j\": on-failure \"m/x\" has a character that is not one of A-Z a-z 0-9 . _ -; " NAMES},
        {JOB("on-failure = {mial}") NAMED("mail", ""),
         "c:1: job \"j\": on-failure \"mial\" names a job that is not defined; did you mean \"mail\"?"},
        {JOB("on-broken = {\npager}"),
         "c:2: job \"j\": on-broken \"pager\" names a job that is not defined; add job \"pager\" { command = {...} }"},
        {JOB("on-success = {m,\nm}") NAMED("m", ""), "c:2: job \"j\": on-success \"m\" is there twice, first in line 1; keep one"},
        {JOB("on-failure = {j}"), "c:1: job \"j\": on-failure: j -> j" CIRCLE},
        {NAMED("b", "on-success = {c, a}") NAMED("a", "on-success = {b}") NAMED("c", ""), "c:2: job \"a\": on-success: a -> b -> a" CIRCLE},
        {NAMED("a", "on-success = {b}") NAMED("b", "on-broken = {c}") NAMED("c", "on-recovered = {b}"),
         "c:2: job \"b\": on-broken: b -> c -> b" CIRCLE},
        /* Two circles of one job are two errors; a job after a circle is in none. */
        {NAMED("a", "on-success = {b} on-failure = {c}") NAMED("b", "on-success = {a, z}") NAMED("c", "on-success = {a}") NAMED("z", ""),
         "c:1: job \"a\": on-success: a -> b -> a" CIRCLE "\nc:1: job \"a\": on-failure: a -> c -> a" CIRCLE},
        /* After a syntax error the rest of the file may define the job. */
        {JOB("on-failure = {mail}") "}", "c:1: unexpected '}'; the name of an option or a section must stand here"},
    };

    refuse_all(wrong, ELEMENTSOF(wrong));
}

/* ---- one with another ---- */

static void test_demands(void) {
    static const struct wrong wrong[] = {
        {POOL JOB("pools = {\"p:x\"}"), "c:2: job \"j\": pools \"p:x\" must be POOL or POOL:PERMITS"},
        {POOL JOB("pools = {\"p q\"}"), "c:2: job \"j\": pools \"p q\" must name a pool with 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with"
                                        " '.' or '-' (or NAME/KEY)"},
        {POOL JOB("pools = {\"p:0\"}"), "c:2: job \"j\": pools \"p:0\" permits must be 1 to 1000, in all pools together"},
        {POOL JOB("pools = {\"p:01\"}"), "c:2: job \"j\": pools \"p:01\" must be POOL or POOL:PERMITS"},
        {POOL JOB("pools = {p, \"p:2\"}"), "c:2: job \"j\": pools \"p:2\" names a pool twice"},
        {POOL JOB("pools = {p,\npp}"), "c:3: job \"j\": pools \"pp\" names a pool that is not defined; did you mean \"p\"?"},
        {POOL JOB("pools = {net}"), "c:2: job \"j\": pools \"net\" names a pool that is not defined; add pool \"net\" { limit = N }"},
        {JOB("pools = {net}"), "c:1: job \"j\": pools \"net\" names a pool that is not defined; add pool \"net\" { limit = N }"},
        {POOL JOB("pools = {\"p:3\"}"),
         "c:2: job \"j\": pools \"p:3\" needs more than the pool's limit; ask for at most 2, or raise the limit at c:1"},
        {"pool p { limit = 9 scope = host host-limit = 2 }\n" JOB("pools = {\"p:3\"}"),
         "c:2: job \"j\": pools \"p:3\" needs more than the pool's host-limit; ask for at most 2, or raise the host-limit at c:1"},
        /* A pool that is paused or wrong is too small for nobody. */
        {"pool p { limit = x scope = host }\n" JOB("pools = {\"p:3\"}"),
         "c:1: pool \"p\": limit \"x\" must be a decimal number from 0 to 1000000, without leading zeros"},
    };

    refuse_all(wrong, ELEMENTSOF(wrong));
}

#define CLUSTER "redis { }\npool p { limit = 1 }\n"

static void test_stop_timeout(void) {
    static const struct wrong wrong[] = {
        {CLUSTER JOB("pools = {p}\nstop-timeout = 19501ms"),
         "c:4: job \"j\": stop-timeout 19s501ms does not fit into the lease of 30s beside 2 heartbeats of 5s and a margin of 500ms;"
         " make it at most 19s500ms, or the lease at least 30s1ms"},
        {"lease = 10s heartbeat = 4s " CLUSTER JOB("pools = {p}"),
         "c:3: job \"j\": stop-timeout 1s666ms does not fit into the lease of 10s beside 2 heartbeats of 4s and a margin of 500ms;"
         " make it at most 1s500ms, or the lease at least 10s166ms"},
        {"lease = 100s heartbeat = 10s " CLUSTER JOB("pools = {p} stop-timeout = 79001ms"),
         "c:3: job \"j\": stop-timeout 1m19s1ms does not fit into the lease of 1m40s beside 2 heartbeats of 10s and a margin of 1s;"
         " make it at most 1m19s, or the lease at least 1m40s2ms"},
    };
    static const char *const right[] = {
        CLUSTER JOB("pools = {p} stop-timeout = 19500ms"),
        CLUSTER JOB("stop-timeout = 1h"), /* holds no permit of the cluster */
        CLUSTER "pool h { limit = 1 scope = host }\n" JOB("pools = {h} stop-timeout = 1h"),
        CLUSTER JOB("pools = {p} stop-timeout = 1h on-lease-lost = continue"),
    };

    refuse_all(wrong, ELEMENTSOF(wrong));
    for (size_t i = 0; i < ELEMENTSOF(right); i++) {
        struct settings_source source = {"c", right[i], strlen(right[i])};
        struct settings_errors errors = {};
        struct settings *s = NULL;

        TEST_INT(settings_parse(&source, 1, "ant", &s, &errors), 0);
        settings_errors_done(&errors);
        settings_free(s);
    }
}

/* ---- several at once ---- */

static void test_all_at_once(void) {
    static const struct wrong wrong[] = {
        {"lease = 1\nhartbeat = 5s\npool p {\n  limit = 08\n  scop = host\n}\njob j {\n  user = 7\n  timeout = x\n}\n",
         "c:1: lease \"1\" " DURATION "\n"
         "c:2: unknown option \"hartbeat\"; did you mean \"heartbeat\"?\n"
         "c:4: pool \"p\": limit \"08\" must be a decimal number from 0 to 1000000, without leading zeros\n"
         "c:5: unknown option \"scop\" in pool; did you mean \"scope\"?\n"
         "c:7: job \"j\": command or script is missing; write command = {\"/path/to/program\", \"argument\"}\n"
         "c:8: job \"j\": user \"7\" must be a name, not a number: letters, digits, '_', '-' and '.', beginning with a letter or '_'\n"
         "c:9: job \"j\": timeout \"x\" " DURATION ", or \"\" for none"},
    };

    refuse_all(wrong, ELEMENTSOF(wrong));
}

static void test_files(void) {
    const char *const texts[] = {
        "lease = 30s\npool p { limit = 1 scope = host }\nredis { }\n" JOB("pools = {r}"),
        "pool q { limit = \"1 }\n",
        "\nlease = 20s\npool p { limit = 1 scope = host } redis { } job j { command = {\"j\"} }",
    };
    struct settings_source sources[3];

    for (size_t i = 0; i < 3; i++)
        sources[i] = (struct settings_source) {(const char *const[]) {"z", "a", "b"}[i], texts[i], strlen(texts[i])};
    /* The order is that of the files, not of their names. A syntax error ends its own file; pools may be missing then. */
    refuses_files(sources, 3, "ant",
                  "a:1: the string is not closed on its line; add \"\n"
                  "b:2: \"lease\" is given twice, first at z:1; keep one\n"
                  "b:3: a second redis section, the first is at z:3; keep one\n"
                  "b:3: pool \"p\" is defined twice, first at z:2; rename or remove one\n"
                  "b:3: job \"j\": command \"j\" must be an absolute path: it is executed without a shell\n"
                  "b:3: job \"j\" is defined twice, first at z:4; rename or remove one");
    refuses_files((struct settings_source[]) {sources[0], sources[2]}, 2, "ant",
                  "z:4: job \"j\": pools \"r\" names a pool that is not defined; add pool \"r\" { limit = N }\n"
                  "b:2: \"lease\" is given twice, first at z:1; keep one\n"
                  "b:3: a second redis section, the first is at z:3; keep one\n"
                  "b:3: pool \"p\" is defined twice, first at z:2; rename or remove one\n"
                  "b:3: job \"j\": command \"j\" must be an absolute path: it is executed without a shell\n"
                  "b:3: job \"j\" is defined twice, first at z:4; rename or remove one");
}

/* After what leaves libconfuse's lexer in the middle of a string, other texts are read as before. */
static void test_no_memory_of_errors(void) {
    struct settings_source source = {"c", POOL, strlen(POOL)};
    struct settings_errors errors = {};
    struct settings *s = NULL;

    refuse_bytes("host = \"x", 9, "c:1: the string is not closed on its line; add \"");
    refuse_bytes("host = \"\\8", 10, "c:1: the string is not closed on its line; add \"");
    refuse_bytes("host = \"\\8\"", 11, "c:1: bad escape sequence '\\8'; correct the syntax");
    TEST_INT(settings_parse(&source, 1, "ant", &s, &errors), 0);
    settings_errors_done(&errors);
    settings_free(s);
}

/* ---- templates and parameters ---- */

static void test_templates(void) {
    static const struct wrong wrong[] = {
        {"job \"x@y\" { command = {\"/j\"} }",
         "c:1: job \"x@y\": is an instance; write job \"x@\" with instances = {\"y\"}"},
        {"job \"@\" { command = {\"/j\"} }", "c:1: job \"@\": its name is empty; " NAMES},
        {"job \"x@y@z\" { command = {\"/j\"} }",
         "c:1: job \"x@y@z\": its name has a character that is not one of A-Z a-z 0-9 . _ -; " NAMES},
        {"job \"x@\" { command = {\"/j\"} }",
         "c:1: job \"x@\": a template without instances; write instances = {\"a\", \"b\"}"},
        {"job \"x@\" { command = {\"/j\"} instances = {} }",
         "c:1: job \"x@\": a template without instances; write instances = {\"a\", \"b\"}"},
        {JOB("instances = {a}"), "c:1: job \"j\": instances in a job that is no template; write job \"j@\""},
        /* S29 */
        {"job \"x@\" { command = {\"/j\"} instances = {\"../x\", \"-rf\", \".\", \"a@b\", \"" X65 "\"} }",
         "c:1: job \"x@\": instances \"../x\" has a character that is not one of A-Z a-z 0-9 . _ -; " NAMES
         "\n"
         "c:1: job \"x@\": instances \"-rf\" begins with '.' or '-'; " NAMES "\n"
         "c:1: job \"x@\": instances \".\" begins with '.' or '-'; " NAMES "\n"
         "c:1: job \"x@\": instances \"a@b\" has a character that is not one of A-Z a-z 0-9 . _ -; " NAMES
         "\n"
         "c:1: job \"x@\": instances \"" X65 "\" is longer than 64 characters; " NAMES},
        {"job \"template@\" { command = {\"/j\"} instances = "
         "{\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"} }",
         "c:1: job \"template@\": instances \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" "
         "makes"
         " template@xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx longer than 64 characters; "
         "shorten one"},
        {"job \"x@\" { command = {\"/j\"} instances = {a, b, a} }",
         "c:1: job \"x@\": instances \"a\" is there twice, first in line 1; keep one"},
        {"job \"x@\" { command = {\"/j\", \"50%\"} instances = {a} }",
         "c:1: job \"x@\": command \"50%\" has a '%' at byte 3; write %i for the instance, %% for a percent "
         "sign"},
        {"job \"x@\" { command = {\"/j\"} description = \"%j\" instances = {a} }",
         "c:1: job \"x@\": description \"%j\" has a '%' at byte 1; write %i for the instance, %% for a "
         "percent sign"},
        /* What two instances have in common is reported once. */
        {"job \"x@\" { command = {\"j\"} instances = {a, b} }",
         "c:1: job \"x@a\": command \"j\" must be an absolute path: it is executed without a shell"},
        {POOL "job \"x@\" { command = {\"/j\"} pools = {\"%i\"} instances = {p, q, r} }",
         "c:2: job \"x@q\": pools \"q\" names a pool that is not defined; add pool \"q\" { limit = N }"},
        {"job \"x@\" { command = {\"/j\"} instances = {a, b} }\njob \"x@\" { command = {\"/j\"} instances = "
         "{b} }",
         "c:2: job \"x@b\" is defined twice, first at c:1; rename or remove one"},
        {"job \"x@\" { command = {\"/j\"} instances = {a} }\n" JOB("on-failure = {\"x@\"}"),
         "c:2: job \"j\": on-failure \"x@\" names a template; name one of its instances"},
        {"job \"x@\" { command = {\"/j\"} instances = {aa} on-failure = {\"y@%i\"} }\njob \"y@\" { command "
         "= {\"/j\"} instances = {bb} }",
         "c:1: job \"x@aa\": on-failure \"y@aa\" names a job that is not defined; did you mean \"x@aa\"?"},
        {"job \"x@\" { command = {\"/j\"} instances = {a} on-failure = {\"x@%i\"} }",
         "c:1: job \"x@a\": on-failure: x@a -> x@a is a circle, which would never end; remove one of these "
         "hooks"},
    };

    refuse_all(wrong, ELEMENTSOF(wrong));
}

static void test_parameters(void) {
    static const struct wrong wrong[] = {
        {JOB("parameters = {a}"), "c:1: job \"j\": parameters \"a\" is not the name of a parameter; use A-Z "
                                  "0-9 _, not beginning with a digit"},
        {JOB("parameters = {\"LD_PRELOAD\"}"),
         "c:1: job \"j\": parameters \"LD_PRELOAD\" would let a caller run anything; choose another name"},
        {JOB("parameters = {\"BERTH_X\"}"), "c:1: job \"j\": parameters \"BERTH_X\" begins with BERTH_, "
                                            "which berth sets itself; choose another name"},
        {JOB("parameters = {A, \"A=b\"}"),
         "c:1: job \"j\": parameters \"A=b\" names a parameter twice, first in line 1; keep one"},
        {JOB("parameters = {A,B,C,D,E,F,G,H,I,J,K,L,M,N,O,P,Q}"),
         "c:1: job \"j\": parameters \"Q\" is one too many; a job has at most 16 parameters"},
        {JOB("parameters = {\"T=users|orders\"} environment = {\"T=all\"}"),
         "c:1: job \"j\": the default \"T=all\" in environment is refused: T must be one of users, orders"},
        {JOB("parameters = {T} schedule = {\"@daily\"}"),
         "c:1: job \"j\": schedule \"@daily\": parameter T has no default; write T=... behind the fields, "
         "or in environment"},
        {JOB("parameters = {TABLE} schedule = {\"@daily TABEL=x\"}"),
         "c:1: job \"j\": schedule \"@daily TABEL=x\": job \"j\" has no parameter \"TABEL\"; did you mean "
         "\"TABLE\"?"},
        {JOB("parameters = {\"T=a|b\"} schedule = {\"@daily T=c\"}"),
         "c:1: job \"j\": schedule \"@daily T=c\": T must be one of a, b"},
        {JOB("parameters = {T} every = 1d"),
         "c:1: job \"j\": every, and parameter T has no default; add T=... to environment"},
        {JOB("parameters = {T} at-start = true"),
         "c:1: job \"j\": at-start, and parameter T has no default; add T=... to environment"},
        {JOB("parameters = {T} restart = always"),
         "c:1: job \"j\": restart, and parameter T has no default; add T=... to environment"},
        {JOB("parameters = {T}") "\njob k { command = {\"/k\"} on-failure = {j} }",
         "c:2: job \"k\": on-failure \"j\" names a job whose parameter T has no default; add T=... to its "
         "environment"},
    };

    refuse_all(wrong, ELEMENTSOF(wrong));
}

static CU_TestInfo text_tests[] = {
    {"syntax", test_syntax},
    {"traps-of-libconfuse", test_traps_of_libconfuse},
    {"unknown", test_unknown},
    {"no-memory-of-errors", test_no_memory_of_errors},
    CU_TEST_INFO_NULL,
};

static CU_TestInfo value_tests[] = {
    {"top", test_top},
    {"redis", test_redis},
    {"pools", test_pools},
    {"jobs", test_jobs},
    {"bounds", test_bounds},
    {"retries", test_retries},
    {"hooks", test_hooks},
    {"templates", test_templates},
    {"parameters", test_parameters},
    {"demands", test_demands},
    {"stop-timeout", test_stop_timeout},
    {"all-at-once", test_all_at_once},
    {"files", test_files},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {
        {.pName = "config-text", .pTests = text_tests}, {.pName = "config-values", .pTests = value_tests}, CU_SUITE_INFO_NULL};

    return test_main(argc, argv, suites);
}
