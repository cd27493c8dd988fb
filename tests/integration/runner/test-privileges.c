/* SPDX-License-Identifier: MIT */
/* The user and rights of a job, seen from inside a job of a real berth-runner; and the callers and requests
 * that the runner refuses. */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/keyctl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process/cgroup.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/protocol.h"
#include "tests/harness/place.h"
#include "tests/harness/runner/runner.h"
#include "tests/harness/test.h"

#define STATUS(pattern) "grep -E '^(" pattern "):' /proc/self/status"
#define NOBODY 65534
#define DAEMON 1

static struct test_runner t;
static struct message m; /* large */

static void begin(const char *jobs, uid_t uid) {
    test_runner_init(&t, jobs, uid);
    CU_ASSERT(chmod(t.directory, 01777) == 0); /* a job's output is opened as its user */
    test_runner_join(&t);
}

static void fails_at(const char *job, int error, const char *stage) {
    char name[40];

    test_runner_fails(&t, &m, job, error, stage);
    snprintf(name, sizeof(name), "%s.out", job);
    CU_ASSERT(!test_runner_has(&t, name));
}

/* --- from inside --- */

#define NONE "0000000000000000"

static void test_credentials(void) {
    gid_t groups[64];
    char expected[1024] = "";
    int n = ELEMENTSOF(groups);
    size_t length = 0;

    TEST_NEEDS_ROOT();
    begin(TEST_OUT("status", STATUS("Uid|Gid|CapInh|CapPrm|CapEff|CapAmb|NoNewPrivs"), "user = daemon")
          TEST_OUT("id", "id -u; id -ru; id -g; id -rg; id -un; id -gn", "user = daemon group = nogroup")
          TEST_OUT("groups", "id -G", "user = daemon") TEST_OUT("root", "id -u; id -g; id -G", "user = root"), 0);
    test_runner_prints(&t, &m, "status",
                       "Uid:\t1\t1\t1\t1\nGid:\t1\t1\t1\t1\nCapInh:\t" NONE "\nCapPrm:\t" NONE "\nCapEff:\t" NONE "\nCapAmb:\t" NONE "\nNoNewPrivs:\t0\n");
    test_runner_prints(&t, &m, "id", "1\n1\n65534\n65534\ndaemon\nnogroup\n");
    /* The harness gave the runner a group of its own to pass on; the groups of the system are right. */
    CU_ASSERT_FATAL(getgrouplist("daemon", DAEMON, groups, &n) > 0);
    for (int i = 0; i < n; i++)
        length += (size_t) snprintf(expected + length, sizeof(expected) - length, "%u%s", groups[i], i + 1 < n ? " " : "\n");
    test_runner_prints(&t, &m, "groups", expected);
    test_runner_run(&t, &m, '1', "root");
    TEST_FIELD(&m, "code", "0");
    test_runner_done(&t);
}

/* As another user the same: nothing is open but 0, 1 and 2, nothing is ignored or blocked, nothing of the runner's environment. */
static void test_surroundings(void) {
    _cleanup_free_ char *text = NULL;
    const char *lang = getenv("LANG");
    char expected[512];

    TEST_NEEDS_ROOT();
    begin(TEST_OUT("fds", "ls /proc/$$/fd; readlink /proc/$$/fd/0", "user = daemon")
          TEST_OUT("signals", STATUS("SigBlk|SigIgn"), "user = daemon")
          "job \"env\" { command = {\"/usr/bin/env\", \"-0\"} output = \"@/env.out\" user = nobody environment = {\"LAST=\\n\"} }\n", 0);
    test_runner_prints(&t, &m, "fds", "0\n1\n2\n/dev/null\n");
    test_runner_prints(&t, &m, "signals", "SigBlk:\t" NONE "\nSigIgn:\t" NONE "\n");
    test_runner_run(&t, &m, '1', "env");
    TEST_FIELD(&m, "code", "0");
    snprintf(expected, sizeof(expected), "%s/env.out", t.directory);
    size_t size;
    CU_ASSERT_FATAL(file_read(expected, 65536, &text, &size) == 0);
    for (size_t i = 0; i < size; i++)
        text[i] = text[i] == '\0' ? '|' : text[i];
    snprintf(expected, sizeof(expected),
             "HOME=/nonexistent|USER=nobody|LOGNAME=nobody|SHELL=/usr/sbin/nologin|PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
             "/sbin:/bin|LANG=%s|LAST=\n|BERTH_JOB=env|BERTH_RUN=%s|BERTH_POOLS=db:2,net:1|BERTH_TOKEN=1763640079123456|BERTH_HOST=h|"
             "BERTH_NAMESPACE=n|", lang && *lang ? lang : "C.UTF-8", test_runner_id('1'));
    TEST_STRING(text, expected);
    test_runner_done(&t);
}

static void test_bounds(void) {
    TEST_NEEDS_ROOT();
    begin(TEST_OUT("limits", "ulimit -c; ulimit -Hc; ulimit -n; ulimit -Hn; ulimit -p; ulimit -f",
              "user = daemon limits = {\"nofile=1024\", \"core=0\", \"nproc=300\", \"fsize=1M\"}")
          TEST_OUT("few", "ulimit -n; ulimit -Hn", "limits = {\"nofile=5\"}") /* fewer than the guard has open */
          TEST_OUT("nice", "nice; cat /proc/self/oom_score_adj", "user = daemon nice = 7 oom-score-adjust = 300")
          TEST_OUT("plain", STATUS("NoNewPrivs"), "user = daemon")
          TEST_OUT("renounced", STATUS("NoNewPrivs"), "user = daemon no-new-privileges = true")
          TEST_OUT("many", "echo no", "limits = {\"nofile=4000000000\"}"), 0);
    test_runner_prints(&t, &m, "limits", "0\n0\n1024\n1024\n300\n2048\n"); /* of 512 bytes */
    test_runner_prints(&t, &m, "few", "5\n5\n");
    test_runner_prints(&t, &m, "nice", "7\n300\n");
    test_runner_prints(&t, &m, "plain", "NoNewPrivs:\t0\n");
    test_runner_prints(&t, &m, "renounced", "NoNewPrivs:\t1\n");
    fails_at("many", EPERM, "limits"); /* more than the kernel allows anybody */
    test_runner_done(&t);
}

/* A runner without rights starts no job that needs some, and no job without what it asks for. */
static void test_bounds_not_allowed(void) {
    TEST_NEEDS_ROOT();
    begin(TEST_OUT("nice", "echo no", "nice = -5") TEST_OUT("oom", "echo no", "oom-score-adjust = -500")
          TEST_OUT("limits", "echo no", "limits = {\"nofile=4000000000\"}")
          TEST_OUT("less", "nice; ulimit -n;" STATUS("NoNewPrivs|CapEff"), "nice = 19 limits = {\"nofile=100\"} no-new-privileges = true"),
          NOBODY);
    fails_at("nice", EACCES, "nice");
    fails_at("oom", EACCES, "oom-score");
    fails_at("limits", EPERM, "limits");
    test_runner_prints(&t, &m, "less", "19\n100\nCapEff:\t" NONE "\nNoNewPrivs:\t1\n");
    test_runner_done(&t);
}

/* The run's cgroup cannot be made: what asks for bounds is not begun, what asks for none is followed without it. */
static void test_no_cgroup(void) {
    _cleanup_free_ char *own = NULL;
    char path[PATH_MAX];

    TEST_NEEDS_ROOT();
    if (cgroup_find_own(&own) < 0)
        TEST_SKIP("no cgroup v2 that this process may write to");
    snprintf(path, sizeof(path), "%s/berth-%s", own, test_runner_id('1'));
    begin(TEST_OUT("few", "echo no", "tasks-max = 5") TEST_OUT("any", "echo yes", ""), 0);
    CU_ASSERT_FATAL(mkdir(path, 0755) == 0);
    fails_at("few", EEXIST, "cgroup");
    test_runner_prints(&t, &m, "any", "yes\n");
    CU_ASSERT(rmdir(path) == 0); /* it is not its own that a run removes */
    test_runner_done(&t);
}

/* --- keys --- */

/* This program as a job: prints its session keyring's id and owner. Status 1: it sees no keyring. */
static int print_keyring(void) {
    char text[256] = "";
    long id = syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0, 0, 0);
    unsigned uid = 0;

    if (id < 0 || syscall(SYS_keyctl, KEYCTL_DESCRIBE, id, text, sizeof(text) - 1, 0) < 0 || sscanf(text, "keyring;%u;", &uid) != 1)
        return 1;
    printf("%ld %u\n", id, uid);
    return 0;
}

/* Where any user may start it. */
static void copy_this_program(const char *name) {
    _cleanup_close_ int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = -1;
    char path[160];
    struct stat st;

    snprintf(path, sizeof(path), "%s/%s", t.directory, name);
    to = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    CU_ASSERT_FATAL(from >= 0 && to >= 0 && fstat(from, &st) == 0 && fchmod(to, 0755) == 0);
    for (ssize_t n = 1; n > 0;)
        n = sendfile(to, from, NULL, (size_t) st.st_size);
}

/* One run of the job that prints; its keyring. */
static long keyring_of(const char *job, unsigned expected_uid) {
    _cleanup_free_ char *text = NULL;
    char name[40], path[160];
    unsigned uid = 4711;
    long id = 0;

    snprintf(name, sizeof(name), "%s.out", job);
    snprintf(path, sizeof(path), "%s/%s", t.directory, name);
    (void) unlink(path);
    test_runner_run(&t, &m, '1', job);
    TEST_FIELD(&m, "code", "0");
    text = test_runner_read(&t, name);
    TEST_INT(sscanf(text, "%ld %u", &id, &uid), 2);
    TEST_INT(uid, expected_uid);
    return id;
}

#define KEYRING(name, user) "job \"" name "\" { command = {\"@/keyring\", \"--print-keyring\"} output = \"@/" name ".out\" " user " }\n"

/* A key that one run leaves in its session keyring is no other run's. */
static void test_keyrings(void) {
    long ids[5];

    TEST_NEEDS_ROOT();
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0) < 0)
        TEST_SKIP("no session keyring may be made here");
    begin(KEYRING("one", "user = daemon") KEYRING("two", "user = nobody") KEYRING("own", ""), 0);
    copy_this_program("keyring");
    ids[0] = syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0, 0, 0); /* that of the runner, too */
    ids[1] = keyring_of("one", DAEMON);
    ids[2] = keyring_of("two", NOBODY);
    ids[3] = keyring_of("one", DAEMON);
    ids[4] = keyring_of("own", 0);
    for (size_t i = 0; i < ELEMENTSOF(ids); i++)
        for (size_t k = 0; k < i; k++)
            CU_ASSERT(ids[i] > 0 && ids[i] != ids[k]);
    test_runner_done(&t);
}

/* --- who is refused, and what --- */

/* As another user: connects, and sends all that berthd would. Nothing comes back. */
static void speak_as(uid_t uid) {
    unsigned failures = CU_get_number_of_failures();
    struct message_writer w;
    int status = 0;
    pid_t pid;

    test_runner_begin_start(&w, '1', "a", test_runner_hash(&t, "a"));
    pid = fork();
    if (pid == 0) {
        int fd;

        if (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0)
            _exit(1);
        fd = test_runner_connect(&t);
        (void) !send(fd, "hello\nversion=1\n", 16, MSG_NOSIGNAL); /* it may be closed already */
        (void) !send(fd, w.text, w.size, MSG_NOSIGNAL);
        test_await_end(fd);
        _exit(CU_get_number_of_failures() > failures ? 2 : 0);
    }
    CU_ASSERT_FATAL(waitpid(pid, &status, 0) == pid);
    TEST_INT(status, 0);
}

static void test_other_users(void) {
    TEST_NEEDS_ROOT();
    begin(TEST_OUT("a", "echo run", ""), 0);
    test_runner_open_up(&t, "run/" PROTOCOL_RUNNER_SOCKET); /* as a unit could; by itself it is closed to them (test-runner) */
    speak_as(NOBODY);
    speak_as(DAEMON);
    CU_ASSERT(!test_runner_has(&t, "a.out"));
    test_runner_prints(&t, &m, "a", "run\n"); /* the run's id was never taken, and our connection is berthd's still */
    test_runner_done(&t);
}

static void refuses(const char *job, const char *hash, const char *reason) {
    struct message_writer w;

    test_runner_begin_start(&w, '1', job, hash);
    TEST_INT(message_send(t.fd, &w), 0);
    test_await(t.fd, &m, PROTOCOL_REFUSED);
    TEST_FIELD(&m, "reason", reason);
}

/* berth-runner starts only jobs of its own config, and refuses a config that others may write. */
static void test_only_what_is_configured(void) {
    char path[160], old[17], new[17];

    begin(TEST_OUT("a", "echo a", ""), getuid());
    memcpy(old, test_runner_hash(&t, "a"), sizeof(old));
    refuses("b", old, "unknown-job");
    snprintf(path, sizeof(path), "%s/berth.conf", t.directory);
    test_runner_configure(&t, TEST_OUT("a", "echo changed", "") TEST_OUT("b", "echo b", ""));
    memcpy(new, test_runner_hash(&t, "b"), sizeof(new));
    CU_ASSERT(chmod(path, 0666) == 0);
    refuses("b", new, "unknown-job");
    CU_ASSERT(chmod(path, 0664) == 0);
    refuses("b", new, "unknown-job");
    if (getuid() == 0) {
        CU_ASSERT(chmod(path, 0644) == 0 && chown(path, DAEMON, 0) == 0);
        refuses("b", new, "unknown-job");
        CU_ASSERT(chown(path, 0, 0) == 0);
    }
    CU_ASSERT(chmod(path, 0644) == 0);
    CU_ASSERT(chmod(t.directory, 0777) == 0); /* anybody could have put the file there */
    refuses("b", new, "unknown-job");
    CU_ASSERT(chmod(t.directory, 01777) == 0);
    test_runner_prints(&t, &m, "b", "b\n"); /* as it should be: now it is taken */
    refuses("a", old, "config-differs");
    CU_ASSERT(!test_runner_has(&t, "a.out"));
    test_runner_done(&t);
}

/* Nor does it begin with such a config. */
static void test_start_with_foreign_config(void) {
    char program[512], path[160];
    int status = 0, null;
    pid_t pid;

    begin(TEST_OUT("a", "echo a", ""), getuid());
    test_runner_end(&t, SIGTERM);
    snprintf(path, sizeof(path), "%s/berth.conf", t.directory);
    CU_ASSERT(chmod(path, 0646) == 0);
    (void) place_program(program, sizeof(program), "berth-runner");
    pid = fork();
    if (pid == 0) {
        null = open("/dev/null", O_WRONLY);
        if (null < 0 || dup2(null, STDERR_FILENO) < 0)
            _exit(1);
        execl(program, "berth-runner", "-c", path, (char *) NULL);
        _exit(127);
    }
    CU_ASSERT_FATAL(waitpid(pid, &status, 0) == pid);
    CU_ASSERT(WIFEXITED(status));
    TEST_INT(WEXITSTATUS(status), 78);
    test_runner_done(&t);
}

static CU_TestInfo tests[] = {
    {"credentials", test_credentials},
    {"surroundings", test_surroundings},
    {"bounds", test_bounds},
    {"bounds not allowed", test_bounds_not_allowed},
    {"no cgroup", test_no_cgroup},
    {"keyrings", test_keyrings},
    {"other users", test_other_users},
    {"only what is configured", test_only_what_is_configured},
    {"start with foreign config", test_start_with_foreign_config},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "privileges", .pTests = tests}, CU_SUITE_INFO_NULL};

    if (argc == 2 && strcmp(argv[1], "--print-keyring") == 0)
        return print_keyring();
    return test_main(argc, argv, suites);
}
