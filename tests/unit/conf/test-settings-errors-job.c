/* SPDX-License-Identifier: MIT */

/* Each error of a job, with its exact message; templates are in test-settings-errors-template.c, times in
 * test-settings-when.c. */

#include "tests/harness/host/config.h"
#include "tests/harness/test.h"

/* Other programs had these bugs: CVE-2017-1000082, CVE-2020-13776, CVE-2018-19788. */
static void test_jobs(void) {
    static const struct config_error wrong[] = {
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
         "c:1: job \"j\": stop-signal \"15\" is not the name of a signal; write for instance \"TERM\", \"INT\" or \"HUP\""},
        {JOB("user = 0"), "c:1: job \"j\": user \"0\" must be a name, not a number: letters, digits, '_', '-' and '.', beginning with a letter"
                          " or '_'"},
        {JOB("user = berth"), "c:1: job \"j\": user \"berth\" is berthd's own, and the job could act as berthd; make another user for the job"},
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
        {JOB("\nscript = true"), "c:2: job \"j\": command and script exclude each other; remove one"},
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
         "c:1: job \"j\": credentials \"redis-password\" has the name of a password of berthd; choose another name"},
        {JOB("credentials = {\"sentinel-password\"}"),
         "c:1: job \"j\": credentials \"sentinel-password\" has the name of a password of berthd; choose another name"},
        {JOB("credentials = {\"redis-password=/x\"}"),
         "c:1: job \"j\": credentials \"redis-password=/x\" has the name of a password of berthd; choose another name"},
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

    config_refuse_all(wrong, ELEMENTSOF(wrong));
}

#define LIMIT_FORM "must be NAME=VALUE, such as \"nofile=1024\" or \"core=0\""
#define OR_NONE ", or \"\" for none"
#define SIZE_FORM "must be a size such as \"512M\" or \"2G\"" OR_NONE

static void test_bounds(void) {
    static const struct config_error wrong[] = {
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
        {JOB("limits = {\"core=0\",\n\"as=1G\",\n\"core=1M\"}"), "c:3: job \"j\": limits \"core=1M\" sets a limit twice, first in"
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

    config_refuse_all(wrong, ELEMENTSOF(wrong));
}

/* ---- retries and hooks ---- */

#define ENDS "there are failure, exit:N, exit:N-M, signal:NAME, timeout, lease-lost, guard-died, host-lost, not-started and queue-timeout"
#define RESTART "restart excludes schedule, every, at-start and retry: the job starts with the service, and again after each" \
                " end; remove them, or restart"

static void test_retries(void) {
    static const struct config_error wrong[] = {
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
         "c:1: job \"j\": retry-on \"signal:9\": there is no such signal; write for instance \"signal:KILL\" or \"signal:SEGV\""},
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

    config_refuse_all(wrong, ELEMENTSOF(wrong));
}

#define NAMED(name, options) "job " name " { command = {\"/j\"} " options " }\n"
#define CIRCLE " is a circle, which would never end; remove one of these hooks"

static void test_hooks(void) {
    static const struct config_error wrong[] = {
        {JOB("broken-after = 0"), "c:1: job \"j\": broken-after \"0\" must be a decimal number from 1 to 1000, without leading zeros"},
        {JOB("remind-after = 0s"), "c:1: job \"j\": remind-after \"0s\" must be between 1ms and 3650d, or \"\" for none"},
        {JOB("max-silence = never"), "c:1: job \"j\": max-silence \"never\" " DURATION ", or \"\" for none"},
        {JOB("on-failure = mail"), "c:1: \"on-failure\" takes a list; write on-failure = {\"...\"}"},
        {JOB("on-failure = {\"m/x\"}"), "c:1: job \"j\": on-failure \"m/x\" has a character that is not one of A-Z a-z 0-9 . _ -; " NAMES},
        {JOB("on-failure = {mial}") NAMED("mail", ""),
         "c:1: job \"j\": on-failure \"mial\" names a job that is not defined; did you mean \"mail\"?"},
        {JOB("on-broken = {\npager}"),
         "c:2: job \"j\": on-broken \"pager\" names a job that is not defined; add job \"pager\" { command = {...} }"},
        {JOB("on-success = {m,\nm}") NAMED("m", ""), "c:2: job \"j\": on-success \"m\" is listed twice, first in line 1; keep one"},
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

    config_refuse_all(wrong, ELEMENTSOF(wrong));
}

/* ---- one with another ---- */

static void test_demands(void) {
    static const struct config_error wrong[] = {
        {POOL JOB("pools = {\"p:x\"}"), "c:2: job \"j\": pools \"p:x\" must be POOL or POOL:PERMITS"},
        {POOL JOB("pools = {\"p q\"}"), "c:2: job \"j\": pools \"p q\" must name a pool with 1 to 64 of A-Z a-z 0-9 . _ -, not beginning with"
                                        " '.' or '-' (or NAME/KEY)"},
        {POOL JOB("pools = {\"p:0\"}"), "c:2: job \"j\": pools \"p:0\" permits must be 1 to 1000, in all pools together"},
        {POOL JOB("pools = {\"p:01\"}"), "c:2: job \"j\": pools \"p:01\" must be POOL or POOL:PERMITS"},
        {POOL JOB("pools = {p, \"p:2\"}"), "c:2: job \"j\": pools \"p:2\" names a pool twice; ask for all its permits at once, POOL:PERMITS"},
        {POOL JOB("pools = {p,\npp}"), "c:3: job \"j\": pools \"pp\" names a pool that is not defined; did you mean \"p\"?"},
        {POOL JOB("pools = {net}"), "c:2: job \"j\": pools \"net\" names a pool that is not defined; add pool \"net\" { limit = N }"},
        {JOB("pools = {net}"), "c:1: job \"j\": pools \"net\" names a pool that is not defined; add pool \"net\" { limit = N }"},
        {POOL JOB("pools = {\"p:3\"}"),
         "c:2: job \"j\": pools \"p:3\" needs more than the pool's limit; ask for at most 2, or raise the limit at c:1"},
        {"pool p { limit = 9 scope = host host-limit = 2 }\n" JOB("pools = {\"p:3\"}"),
         "c:2: job \"j\": pools \"p:3\" needs more than the pool's host-limit; ask for at most 2, or raise the host-limit at c:1"},
        /* A paused or invalid pool is too small for no job. */
        {"pool p { limit = x scope = host }\n" JOB("pools = {\"p:3\"}"),
         "c:1: pool \"p\": limit \"x\" must be a decimal number from 0 to 1000000, without leading zeros"},
    };

    config_refuse_all(wrong, ELEMENTSOF(wrong));
}

#define CLUSTER "redis { }\npool p { limit = 1 }\n"

static void test_stop_timeout(void) {
    static const struct config_error wrong[] = {
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

    config_refuse_all(wrong, ELEMENTSOF(wrong));
    for (size_t i = 0; i < ELEMENTSOF(right); i++)
        settings_free(config_parse(right[i]));
}

static CU_TestInfo tests[] = {
    {"jobs", test_jobs},
    {"bounds", test_bounds},
    {"retries", test_retries},
    {"hooks", test_hooks},
    {"demands", test_demands},
    {"stop-timeout", test_stop_timeout},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "config-jobs", .pTests = tests});
