/* SPDX-License-Identifier: MIT */

/* Errors of a config, with their exact messages: its text, options outside of jobs, several files. Those of jobs are in
 * test-settings-errors-job.c. */

#include <string.h>

#include "tests/harness/host/config.h"
#include "tests/harness/test.h"

/* ---- the text ---- */

static void test_syntax(void) {
    static const struct config_error wrong[] = {
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
        {"pool p { limit: 3 }", "c:1: \"limit:\" in pool: '=' is missing; write limit = ..."},
        {"pools:\n- p", "c:1: unexpected \"pools:\"; an option is pools = ..., a section is pools {"},
        {"pool p {\nlimit = 3 scope = host\njob j { } }", "c:3: section \"job\" begins inside of pool, which began in line 1; is a } missing?"},
        {"pool \"p\" limit = 3 }", "c:1: '{' is missing after pool; write pool \"NAME\" {"},
        {"pool:\n p", "c:1: '{' is missing after pool; write pool \"NAME\" {"},
        {"redis url = x", "c:1: '{' is missing after redis; write redis {"},
        {"host = a/b", "c:1: unexpected '/'; a value with it must stand in quotes"},
        {"host = (", "c:1: unexpected '('; a value with it must stand in quotes"},
        {"host = [\"a\"]", "c:1: unexpected '['; write a list as {\"a\", \"b\"}, or put the value with it in quotes"},
        {"host = x;", "c:1: unexpected ';'; remove it, or put the value with it in quotes"},
        {"host = f\303\274r",
         "c:1: unexpected byte 0xc3; outside of strings only ASCII is allowed: strings stand in \" or ', blanks are spaces"},
        {"pool \342\200\234p\342\200\235 { }",
         "c:1: unexpected byte 0xe2; outside of strings only ASCII is allowed: strings stand in \" or ', blanks are spaces"},
        {"\357\273\277host = x", "c:1: the file begins with a byte order mark; save it as UTF-8 without one"},
        {"\377\376h", "c:1: the file is UTF-16; save it as UTF-8"},
        {"\376\377", "c:1: the file is UTF-16; save it as UTF-8"},
        {"job j { pools += {x} }", "c:1: \"+=\" is not supported; write the whole list with ="},
        {"job j {\npools = {a\nb} }",
         "c:3: ',' or '}' is missing in the list \"pools\", which began in line 2; put ',' between two values"},
        {"job j { pools = {a,,b} }", "c:1: unexpected ',' in the list \"pools\"; a value must stand before it"},
        {"job j {\npools = {a,\n{b} }", "c:3: unexpected '{' in the list \"pools\", which began in line 2; is a } missing?"},
        {"job j {\npools = {a,\nuser = x\n}", "c:3: unexpected '=' in the list \"pools\", which began in line 2; is a } missing?"},
        {"host = \"\\8\"", "c:1: bad escape sequence '\\8'; correct the syntax"},
        {"host = \"\\777\"", "c:1: invalid octal number '\\777'; correct the syntax"},
        {"include(\"x\")", "c:1: \"include\" is not supported; put files into c.d/, named *.conf"},
        {"\ninclude = x", "c:2: \"include\" is not supported; put files into c.d/, named *.conf"},
    };

    config_refuse_all(wrong, ELEMENTSOF(wrong));
}

static void test_traps_of_libconfuse(void) {
    static const struct config_error wrong[] = {
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

    config_refuse_all(wrong, ELEMENTSOF(wrong));
    config_refuse_files(&(struct settings_source) {"c", "host = a\0b", 10}, 1, "ant",
                        "c:1: control character 0x00; remove it\nc:1: unexpected \"b\"; an option is b = ..., a section is b {");
}

static void test_unknown(void) {
    static const struct config_error wrong[] = {
        {"hartbeat = 5s", "c:1: unknown option \"hartbeat\"; did you mean \"heartbeat\"?"},
        {"wallclock = 5s", "c:1: unknown option \"wallclock\"; there are host, namespace, lease, heartbeat, runtime-directory,"
                            " state-directory, zone,"
                           " run-group, operate-group, connections, user-connections, user-runs, user-buffer"},
        {"pool p { limt = 5 scope = host }", "c:1: unknown option \"limt\" in pool; did you mean \"limit\"?"},
        {"redis { passwordfile = {a, b} }", "c:1: unknown option \"passwordfile\" in redis; did you mean \"password-file\"?"},
        {"redis { colour = red }", "c:1: unknown option \"colour\" in redis; there are url, sentinels, master, username, password-file, "
                                 "sentinel-username, sentinel-password-file, tls-ca, "
         "tls-certificate, tls-key, tls-server-name, tls-minimum, timeout, connect-timeout, failover-margin"},
        {JOB("stop_timeout = 5s"), "c:1: unknown option \"stop_timeout\" in job; did you mean \"stop-timeout\"?"},
        {JOB("cron = daily"), "c:1: unknown option \"cron\" in job; berth.conf(5) lists them"},
        {JOB("once = true"), "c:1: unknown option \"once\" in job; did you mean \"on\"?"},
        {"pol p { limt = 1 }", "c:1: unknown section \"pol\"; did you mean \"pool\"?"},
        {"cluster { }", "c:1: unknown section \"cluster\"; there are redis, pool and job"},
        {"lease { }", "c:1: \"lease\" is an option; write lease = ..."},
        {"redis = \"redis://h\"", "c:1: \"redis\" is a section; write redis {"},
        {"redis x { urll = y }", "c:1: redis has no name; write redis {\nc:1: unknown option \"urll\" in redis; did you mean \"url\"?"},
        {"pool { limit = x }", "c:1: pool must have a name; write pool \"NAME\" {"},
        {X65 " = 1", "c:1: unknown option \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"; there are host, namespace, lease,"
                     " heartbeat, runtime-directory, state-directory, zone, run-group, operate-group, connections, user-connections, user-runs, user-buffer"},
    };

    config_refuse_all(wrong, ELEMENTSOF(wrong));
}

/* ---- values ---- */

static void test_top(void) {
    static const struct config_error wrong[] = {
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

    config_refuse_all(wrong, ELEMENTSOF(wrong));
    config_refuse_files(&(struct settings_source) {"c", "", 0}, 1, "my host",
                        "c:1: host is not given, and the machine's hostname \"my host\" has a space; write host = \"NAME\"");
}

static void test_redis(void) {
    static const struct config_error wrong[] = {
        {"redis {\nurl = \"http://h\" }", "c:2: redis: url must begin with redis://, rediss:// or unix://"},
        {"redis { url = \"redis://:secret@h\" }",
         "c:1: redis: url must not hold a password; write it to a file, and name the file in password-file"},
        {"redis { url = \"redis://h:0\" }", "c:1: redis: url has a port that is not 1 to 65535"},
        {"redis { tls-ca = \"/ca\" }", "c:1: redis: tls-ca is given, and url does not begin with rediss://; remove it, or change the url"},
        {"redis { url = \"unix:///s\"\ntls-minimum = \"1.3\" }",
         "c:2: redis: tls-minimum is given, and url does not begin with rediss://; remove it, or change the url"},
        {"redis { url = \"rediss://h\" tls-ca = ca }", "c:1: redis: tls-ca \"ca\" must be an absolute path"},
        {"redis { url = \"rediss://h\" tls-certificate = \"/c\" }", "c:1: redis: tls-certificate is given without tls-key; name both"},
        {"redis { url = \"rediss://h\" tls-key = \"/k\" }", "c:1: redis: tls-key is given without tls-certificate; name both"},
        {"redis { url = \"rediss://h\" tls-minimum = \"1.1\" }", "c:1: redis: tls-minimum \"1.1\" must be \"1.2\" or \"1.3\"; did you mean \"1.2\"?"},
        {"redis { url = \"rediss://h\" tls-server-name = \"h:6380\" }",
         "c:1: redis: tls-server-name \"h:6380\" must be a host name or an address, without a port"},
        {"redis { url = \"redis:///0\" }", "c:1: redis: url must name a host or an address, IPv6 in [ ]; or name sentinels"},
        {"redis { sentinels = {a} }",
         "c:1: redis: sentinels are given without url; write url = \"redis:///0\", or \"rediss:///0\" for TLS"},
        {"redis { url = \"redis://h\"\nsentinels = {a} }",
         "c:1: redis: url names a host beside sentinels; keep one: the sentinels know where the master is"},
        {"redis { url = \"unix:///s\"\nsentinels = {a} }",
         "c:1: redis: url names a host beside sentinels; keep one: the sentinels know where the master is"},
        {"redis { sentinels = {}\nmaster = mymaster\nsentinel-username = \"\"\nurl = \"redis:///\" }",
         "c:4: redis: url must name a host or an address, IPv6 in [ ]; or name sentinels"},
        {"redis { master = m\nsentinel-username = u\nsentinel-password-file = \"/f\" }",
         "c:1: redis: master is given without sentinels; name them, or remove it\n"
         "c:2: redis: sentinel-username is given without sentinels; name them, or remove it\n"
         "c:3: redis: sentinel-password-file is given without sentinels; name them, or remove it"},
        {"redis { url = \"redis:///0\"\nsentinels = {a}\nmaster = \"a b\" }",
         "c:3: redis: master \"a b\" must be the name by which the sentinels know the master; "
         "use 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with '.' or '-'"},
        {"redis { url = \"redis:///0\"\nsentinels = {\"a,b\", \"\",\n\"::1\", \"h:0\"} }",
         "c:2: redis: sentinels \"a,b\" must be host or host:port, IPv6 in [ ]\n"
         "c:2: redis: sentinels \"\" must be host or host:port, IPv6 in [ ]\n"
         "c:3: redis: sentinels \"::1\" must be host or host:port, IPv6 in [ ]\n"
         "c:3: redis: sentinels \"h:0\" has a port that is not 1 to 65535"},
        {"redis { url = \"redis:///0\"\nsentinels = {a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q} }",
         "c:2: redis: sentinels \"q\" is one of 17; name at most 16 sentinels"},
        {"redis { connect-timeout = \"15001ms\" }",
         "c:1: redis: connect-timeout \"15001ms\" is above half the lease; make it at most 15s"},
        {"redis { failover-margin = \"301s\" }", "c:1: redis: failover-margin \"301s\" is above 10 leases; make it at most 5m"},
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

    config_refuse_all(wrong, ELEMENTSOF(wrong));
}

static void test_pools(void) {
    static const struct config_error wrong[] = {
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

    config_refuse_all(wrong, ELEMENTSOF(wrong));
}

/* ---- several at once ---- */

static void test_all_at_once(void) {
    static const struct config_error wrong[] = {
        {"lease = 1\nhartbeat = 5s\npool p {\n  limit = 08\n  scop = host\n}\njob j {\n  user = 7\n  timeout = x\n}\n",
         "c:1: lease \"1\" " DURATION "\n"
         "c:2: unknown option \"hartbeat\"; did you mean \"heartbeat\"?\n"
         "c:4: pool \"p\": limit \"08\" must be a decimal number from 0 to 1000000, without leading zeros\n"
         "c:5: unknown option \"scop\" in pool; did you mean \"scope\"?\n"
         "c:7: job \"j\": command or script is missing; write command = {\"/path/to/program\", \"argument\"}\n"
         "c:8: job \"j\": user \"7\" must be a name, not a number: letters, digits, '_', '-' and '.', beginning with a letter or '_'\n"
         "c:9: job \"j\": timeout \"x\" " DURATION ", or \"\" for none"},
    };

    config_refuse_all(wrong, ELEMENTSOF(wrong));
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
    config_refuse_files(sources, 3, "ant",
                        "a:1: the string is not closed on its line; add \"\n"
                        "b:2: \"lease\" is given twice, first at z:1; keep one\n"
                        "b:3: a second redis section, the first is at z:3; keep one\n"
                        "b:3: pool \"p\" is defined twice, first at z:2; rename or remove one\n"
                        "b:3: job \"j\": command \"j\" must be an absolute path: it is executed without a shell\n"
                        "b:3: job \"j\" is defined twice, first at z:4; rename or remove one");
    config_refuse_files((struct settings_source[]) {sources[0], sources[2]}, 2, "ant",
                        "z:4: job \"j\": pools \"r\" names a pool that is not defined; add pool \"r\" { limit = N }\n"
                        "b:2: \"lease\" is given twice, first at z:1; keep one\n"
                        "b:3: a second redis section, the first is at z:3; keep one\n"
                        "b:3: pool \"p\" is defined twice, first at z:2; rename or remove one\n"
                        "b:3: job \"j\": command \"j\" must be an absolute path: it is executed without a shell\n"
                        "b:3: job \"j\" is defined twice, first at z:4; rename or remove one");
}

/* A text that leaves libconfuse's lexer in the middle of a string does not affect the next text. */
static void test_no_memory_of_errors(void) {
    struct settings_source source = {"c", POOL, strlen(POOL)};
    struct settings_errors errors = {};
    struct settings *s = NULL;

    config_refuse("host = \"x", "c:1: the string is not closed on its line; add \"");
    config_refuse("host = \"\\8", "c:1: the string is not closed on its line; add \"");
    config_refuse("host = \"\\8\"", "c:1: bad escape sequence '\\8'; correct the syntax");
    TEST_INT(settings_parse(&source, 1, "ant", &s, &errors), 0);
    settings_errors_done(&errors);
    settings_free(s);
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
    {"all-at-once", test_all_at_once},
    {"files", test_files},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "config-text", .pTests = text_tests},
            {.pName = "config-values", .pTests = value_tests});
