/* SPDX-License-Identifier: MIT */
/* The environment, files and user of a command that a real berth-runner starts; and failures at its
 * start. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/protocol.h"
#include "tests/harness/runner/runner.h"
#include "tests/harness/test.h"

static struct test_runner t;
static struct message m; /* large */

static void test_environment(void) {
    char *expected = NULL;

    test_runner_begin(&t, "job \"env\" { command = {\"/usr/bin/env\"} output = \"@/env.out\" user = \"root\"\n"
          "  environment = {\"A=1 2\", \"LANG=de_DE\", \"EMPTY=\"} }\n", getuid());
    if (getuid() != 0) {
        test_runner_done(&t);
        TEST_NEEDS_ROOT();
    }
    CU_ASSERT_FATAL(asprintf(&expected,
                             "HOME=/root\nUSER=root\nLOGNAME=root\nSHELL=/bin/bash\n"
                             "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nLANG=de_DE\n"
                             "A=1 2\nEMPTY=\nBERTH_JOB=env\nBERTH_RUN=%s\nBERTH_POOLS=db:2,net:1\n"
                             "BERTH_TOKEN=1763640079123456\nBERTH_HOST=h\nBERTH_NAMESPACE=n\n",
                             test_runner_id('1')) > 0);
    test_runner_prints(&t, &m, "env", expected);
    free(expected);
    test_runner_done(&t);
}

/* What went wrong elsewhere: CVE-2012-6097, CVE-2024-21626. */
static void test_surroundings(void) {
    test_runner_begin(&t, TEST_OUT("fds", "ls /proc/$$/fd", "") TEST_OUT("stdin", "readlink /proc/$$/fd/0", "")
          TEST_OUT("where", "pwd; umask", "directory = \"/usr\" umask = \"027\"") TEST_OUT("default", "pwd; umask", "")
          TEST_OUT("signals", "grep -E '^Sig(Blk|Ign)' /proc/self/status", "")
          TEST_OUT("leader", "read -r a b c d e f g </proc/$$/stat; [ $e = $$ ] && [ $f = $$ ] && echo yes", "")
          TEST_OUT("both", "echo out; echo err >&2", "") TEST_JOB("silent", "echo out; echo err >&2", "output = \"null\"")
          TEST_JOB("journal", "echo out", ""), getuid());
    test_runner_prints(&t, &m, "fds", "0\n1\n2\n");
    test_runner_prints(&t, &m, "stdin", "/dev/null\n");
    test_runner_prints(&t, &m, "where", "/usr\n0027\n");
    test_runner_prints(&t, &m, "default", "/\n0022\n");
    test_runner_prints(&t, &m, "signals", "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    test_runner_prints(&t, &m, "leader", "yes\n");
    test_runner_prints(&t, &m, "both", "out\nerr\n");
    test_runner_prints(&t, &m, "both", "out\nerr\nout\nerr\n"); /* appended */
    test_runner_run(&t, &m, '1', "silent");
    TEST_FIELD(&m, "code", "0");
    test_runner_run(&t, &m, '1', "journal");
    TEST_FIELD(&m, "code", "0");
    test_runner_done(&t);
}

static void test_failures(void) {
    test_runner_begin(&t, "job \"none\" { command = {\"/nonexistent/program\"} }\n"
          "job \"no-interpreter\" { command = {\"@/script\"} }\n"
          "job \"not-program\" { command = {\"/etc/passwd\"} }\n"
          "job \"no-directory\" { command = {\"/bin/true\"} directory = \"/nonexistent\" }\n"
          "job \"no-output\" { command = {\"/bin/true\"} output = \"/nonexistent/a\" }\n"
          "job \"fifo\" { command = {\"/bin/true\"} output = \"@/fifo\" }\n"
          "job \"no-user\" { command = {\"/bin/true\"} user = \"no-such-user\" }\n"
          "job \"no-group\" { command = {\"/bin/true\"} group = \"no-such-group\" }\n", getuid());
    char path[128];

    snprintf(path, sizeof(path), "%s/fifo", t.directory);
    CU_ASSERT_FATAL(mkfifo(path, 0600) == 0);
    test_runner_fails(&t, &m, "none", ENOENT, "exec");
    TEST_FIELD(&m, "text", "exec /nonexistent/program: No such file or directory");
    snprintf(path, sizeof(path), "%s/script", t.directory);
    CU_ASSERT_FATAL(file_write_atomic(path, "#!/nonexistent/sh\n", 18, 0755) == 0);
    test_runner_fails(&t, &m, "no-interpreter", ENOENT, "exec");
    CU_ASSERT(strstr(message_get(&m, "text"), "/script: its interpreter or loader does not exist (does the #! line end in CR?)") != NULL);
    test_runner_fails(&t, &m, "not-program", EACCES, "exec");
    test_runner_fails(&t, &m, "no-directory", ENOENT, "directory");
    TEST_FIELD(&m, "text", "directory /nonexistent: No such file or directory");
    test_runner_fails(&t, &m, "no-output", ENOENT, "output");
    TEST_FIELD(&m, "text", "output /nonexistent/a: No such file or directory");
    test_runner_fails(&t, &m, "fifo", ENXIO, "output"); /* that nobody reads: not waited for */
    snprintf(path, sizeof(path), "output %s/fifo: No such device or address", t.directory);
    TEST_FIELD(&m, "text", path);
    test_runner_fails(&t, &m, "no-user", ESRCH, "user");
    TEST_FIELD(&m, "text", "user no-such-user: there is no such user");
    test_runner_fails(&t, &m, "no-group", ESRCH, "group");
    TEST_FIELD(&m, "text", "group no-such-group: there is no such group");
    test_runner_done(&t);
}

/* What went wrong elsewhere: CVE-2006-2607, CVE-2023-25173. */
static void test_user(void) {
    struct stat st;
    char path[80];

    TEST_NEEDS_ROOT();
    test_runner_begin(&t, TEST_OUT("nobody", "id -u; id -g; id -G; echo $USER $HOME; grep -E '^(Uid|Gid|CapEff):' /proc/self/status",
                                   "user = nobody")
                          TEST_OUT("group", "id -un; id -gn", "user = nobody group = daemon")
                          TEST_OUT("only-group", "id -un; id -gn", "group = daemon")
                          TEST_OUT("secret", "cat @/secret", "user = nobody"), getuid());
    CU_ASSERT(chmod(t.directory, 01777) == 0); /* the output is opened as nobody */
    test_runner_prints(&t, &m, "nobody",
                       "65534\n65534\n65534\nnobody /nonexistent\n"
                       "Uid:\t65534\t65534\t65534\t65534\nGid:\t65534\t65534\t65534\t65534\nCapEff:\t0000000000000000\n");
    snprintf(path, sizeof(path), "%s/nobody.out", t.directory);
    CU_ASSERT(stat(path, &st) == 0 && st.st_uid == NOBODY && st.st_gid == NOBODY);
    test_runner_prints(&t, &m, "group", "nobody\ndaemon\n");
    test_runner_prints(&t, &m, "only-group", "root\ndaemon\n");
    /* Opened after the drop: an output that the user may not write is refused, whatever root may. */
    snprintf(path, sizeof(path), "%s/secret.out", t.directory);
    CU_ASSERT(file_write_atomic(path, "root's\n", 7, 0600) == 0);
    test_runner_fails(&t, &m, "secret", EACCES, "output");
    test_runner_done(&t);
}

static void test_not_root(void) {
    TEST_NEEDS_ROOT();
    test_runner_begin(&t, TEST_OUT("own", "id -u; id -g", "user = \"nobody\" group = \"nogroup\"") TEST_OUT("none", "id -u; id -g", "")
          TEST_JOB("root", "exit 0", "user = \"root\"") TEST_JOB("daemon", "exit 0", "group = \"daemon\""), NOBODY);
    test_runner_prints(&t, &m, "own", "65534\n65534\n");
    test_runner_prints(&t, &m, "none", "65534\n65534\n");
    test_runner_fails(&t, &m, "root", EPERM, "user");
    test_runner_fails(&t, &m, "daemon", EPERM, "user");
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"environment", test_environment},
    {"surroundings", test_surroundings},
    {"failures", test_failures},
    {"user", test_user},
    {"not root", test_not_root},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "job command", .pTests = tests});
