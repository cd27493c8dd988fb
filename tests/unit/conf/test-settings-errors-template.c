/* SPDX-License-Identifier: MIT */

/* Each error of a template, its instances and of parameters, with its exact message. */

#include "tests/harness/host/config.h"
#include "tests/harness/test.h"

static void test_templates(void) {
    static const struct config_error wrong[] = {
        {"job \"x@y\" { command = {\"/j\"} }",
         "c:1: job \"x@y\": is an instance; write job \"x@\" with instances = {\"y\"}"},
        {"job \"@\" { command = {\"/j\"} }", "c:1: job \"@\": its name is empty; " NAMES},
        {"job \"x@y@z\" { command = {\"/j\"} }",
         "c:1: job \"x@y@z\": its name has a character that is not one of A-Z a-z 0-9 . _ -; " NAMES},
        {"job \"x@\" { command = {\"/j\"} }",
         "c:1: job \"x@\": a template without instances; write instances = {\"a\", \"b\"}, or "
         "open-instances = true"},
        {"job \"x@\" { command = {\"/j\"} instances = {} }",
         "c:1: job \"x@\": a template without instances; write instances = {\"a\", \"b\"}, or "
         "open-instances = true"},
        {JOB("instances = {a}"), "c:1: job \"j\": instances in a job that is no template; write job \"j@\""},
        {JOB("open-instances = true"),
         "c:1: job \"j\": open-instances in a job that is no template; write job \"j@\""},
        {"job \"x@\" { command = {\"/j\"} instances = {a} open-instances = 1 }",
         "c:1: job \"x@a\": open-instances \"1\" must be true or false"},
        {"redis { }\njob \"x@\" { command = {\"/j\"} open-instances = true on = any }",
         "c:2: job \"x@\": open-instances and on = \"any\" exclude each other: hosts share jobs that all "
         "of "
         "them list"},
        {"job \"x@\" { command = {\"/j\"} open-instances = true restart = always }",
         "c:1: job \"x@\": open-instances and restart exclude each other: list the instances that are to "
         "keep running"},
        {"job \"x@\" { command = {\"/j\"} open-instances = true on-failure = {\"h%i\"} }\njob hi { command "
         "= {\"/h\"} }",
         "c:1: job \"x@\": on-failure \"h%i\" with open-instances names a hook for each instance; name one "
         "hook "
         "for all"},
        /* Options that need no instance are checked without one. */
        {"job \"x@\" { command = {\"j\"} open-instances = true pools = {\"p\", \"%i\"} }",
         "c:1: job \"x@\": command \"j\" must be an absolute path: it is executed without a shell\n"
         "c:1: job \"x@\": pools \"p\" names a pool that is not defined; add pool \"p\" { limit = N }"},
        {"job \"x@\" { command = {\"j\"} open-instances = true instances = {a, b} }",
         "c:1: job \"x@a\": command \"j\" must be an absolute path: it is executed without a shell"},
        {"job \"x@\" { command = {\"/j\"} open-instances = true }\njob \"x@\" { command = {\"/k\"} "
         "open-instances = true }",
         "c:2: job \"x@\" is defined twice, first at c:1; rename or remove one"},
        {"job \"x@\" { command = {\"/j\"} open-instances = true }\n" JOB("on-failure = {\"x@\"}"),
         "c:2: job \"j\": on-failure \"x@\" names a template; name one of its instances"},
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
         "c:1: job \"x@\": instances \"a\" is listed twice, first in line 1; keep one"},
        {"job \"x@\" { command = {\"/j\", \"50%\"} instances = {a} }",
         "c:1: job \"x@\": command \"50%\" has a '%' at byte 3; write %i for the instance, %% for a percent "
         "sign"},
        {"job \"x@\" { command = {\"/j\"} description = \"%j\" instances = {a} }",
         "c:1: job \"x@\": description \"%j\" has a '%' at byte 1; write %i for the instance, %% for a "
         "percent sign"},
        /* An error that several instances share is reported once. */
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

    config_refuse_all(wrong, ELEMENTSOF(wrong));
}

static void test_parameters(void) {
    static const struct config_error wrong[] = {
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

    config_refuse_all(wrong, ELEMENTSOF(wrong));
}

static CU_TestInfo tests[] = {
    {"templates", test_templates},
    {"parameters", test_parameters},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "config-templates", .pTests = tests});
