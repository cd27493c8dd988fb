/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=setsid,--wrap=setrlimit,--wrap=setrlimit64,--wrap=setpriority,--wrap=open,--wrap=open64,--wrap=write,--wrap=setgroups,--wrap=setresgid,--wrap=setresuid,--wrap=prctl,--wrap=capset,--wrap=capget,--wrap=getresuid,--wrap=getresgid,--wrap=getgroups,--wrap=setuid,--wrap=seteuid,--wrap=setgid,--wrap=setegid,--wrap=dup2,--wrap=chdir,--wrap=sigprocmask,--wrap=close_range,--wrap=execve,--wrap=getpwnam,--wrap=exec_look_up */

/* Between fork and exec, each system call fails once, and each that drops a right pretends once to have
 * done so. The command must not start, and the stage must be reported. The last test shows the command's
 * rights and limits. */

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/deadline.h"
#include "base/file.h"
#include "base/process/supervise.h"
#include "runner/exec/exec-internal.h"
#include "tests/harness/test.h"

#define DAEMON 1
#define OTHER_GROUPS {4, 60000}

enum mode { MODE_NONE, MODE_FAIL, MODE_LIE };

static struct {
    enum mode mode;
    const char *call; /* "setsid"; the nth call of it */
    int nth;
} fault;

/* Whether this call is to go wrong, and how. */
static enum mode meet(const char *call) {
    if (fault.mode == MODE_NONE || strcmp(fault.call, call) != 0 || --fault.nth > 0)
        return MODE_NONE;
    errno = EIO;
    return fault.mode;
}

#define WRAP(type, name, parameters, arguments)            \
    type __real_##name parameters;                         \
    type __wrap_##name parameters;                         \
    type __wrap_##name parameters {                        \
        enum mode mode = meet(#name);                      \
                                                           \
        if (mode != MODE_NONE)                             \
            return mode == MODE_FAIL ? -1 : 0;             \
        return __real_##name arguments;                    \
    }

/* The plan of this test has its user already. */
int __real_exec_look_up(struct exec_context *context);
int __wrap_exec_look_up(struct exec_context *context);
int __wrap_exec_look_up(struct exec_context *context) {
    return context->plan->changes_user ? 0 : __real_exec_look_up(context);
}

/* Users of strange name services. */
struct passwd *__real_getpwnam(const char *name);
struct passwd *__wrap_getpwnam(const char *name);
struct passwd *__wrap_getpwnam(const char *name) {
    static struct passwd strange;
    bool is_root = strcmp(name, "toor") == 0;

    if (!is_root && strcmp(name, "none") != 0)
        return __real_getpwnam(name);
    strange = (struct passwd) {.pw_name = (char *) (is_root ? "toor" : "none"), .pw_uid = is_root ? 0 : (uid_t) -1, .pw_dir = (char *) "/",
                               .pw_shell = (char *) "/bin/sh"};
    return &strange;
}

struct __user_cap_header_struct;
WRAP(pid_t, setsid, (void), ())
WRAP(int, setrlimit, (int resource, const struct rlimit *limit), (resource, limit))
WRAP(int, setpriority, (int which, id_t who, int priority), (which, who, priority))
WRAP(ssize_t, write, (int fd, const void *bytes, size_t n), (fd, bytes, n))
WRAP(int, setgroups, (size_t n, const gid_t *groups), (n, groups))
WRAP(int, setresgid, (gid_t a, gid_t b, gid_t c), (a, b, c))
WRAP(int, setresuid, (uid_t a, uid_t b, uid_t c), (a, b, c))
WRAP(int, capset, (void *header, const void *data), (header, data))
WRAP(int, capget, (void *header, void *data), (header, data))
WRAP(int, getresuid, (uid_t *a, uid_t *b, uid_t *c), (a, b, c))
WRAP(int, getresgid, (gid_t *a, gid_t *b, gid_t *c), (a, b, c))
WRAP(int, getgroups, (int n, gid_t *groups), (n, groups))
WRAP(int, setuid, (uid_t uid), (uid))
WRAP(int, seteuid, (uid_t uid), (uid))
WRAP(int, setgid, (gid_t gid), (gid))
WRAP(int, setegid, (gid_t gid), (gid))
WRAP(int, dup2, (int fd, int place), (fd, place))
WRAP(int, chdir, (const char *path), (path))
WRAP(int, sigprocmask, (int how, const sigset_t *set, sigset_t *old), (how, set, old))
WRAP(int, close_range, (unsigned first, unsigned last, int flags), (first, last, flags))
WRAP(int, execve, (const char *path, char *const *argv, char *const *environment), (path, argv, environment))

/* With _FILE_OFFSET_BITS=64, which some libraries' flags bring along, these have other names. */
int __real_setrlimit64(int resource, const struct rlimit *limit);
int __wrap_setrlimit64(int resource, const struct rlimit *limit);
int __wrap_setrlimit64(int resource, const struct rlimit *limit) {
    return meet("setrlimit") == MODE_FAIL ? -1 : __real_setrlimit64(resource, limit);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, mode_t mode);
int __wrap_open64(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode) {
    return meet(path) == MODE_FAIL ? -1 : __real_open(path, flags, mode);
}
int __wrap_open64(const char *path, int flags, mode_t mode) {
    return __wrap_open(path, flags, mode);
}

int __real_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
int __wrap_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
int __wrap_prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d) {
    const char *name = option == PR_CAP_AMBIENT      ? "prctl ambient"
                       : option == PR_SET_NO_NEW_PRIVS ? "prctl no-new-privs"
                       : option == PR_SET_PDEATHSIG    ? "prctl pdeathsig"
                                                       : "prctl";

    return meet(name) == MODE_FAIL ? -1 : __real_prctl(option, a, b, c, d);
}

/* --- a child --- */

static char directory[] = "/tmp/berth-test-exec-XXXXXX", output[64];
static char root[] = "/";
static char *command[] = {(char[]) {"/bin/sh"}, (char[]) {"-c"}, NULL, NULL};
static char *environment[] = {(char[]) {"PATH=/usr/bin:/bin"}, NULL};
static gid_t groups[] = OTHER_GROUPS;
static struct rlimit_setting limits[] = {{RLIMIT_CORE, 0}, {RLIMIT_NOFILE, 5}, {RLIMIT_NPROC, 500}};

struct outcome {
    int error;      /* 0: the command ran */
    char stage[16];
};

/* Gives the child capabilities to pass on, as a misconfigured runner would have. */
static void prepare(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];

    if (__real_capget(&header, sets) < 0)
        _exit(99);
    sets[0].inheritable = sets[0].permitted;
    sets[1].inheritable = sets[1].permitted;
    if (__real_capset(&header, sets) < 0 || __real_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 10 /* NET_BIND_SERVICE */, 0, 0) < 0 ||
        __real_prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
        _exit(99);
}

static struct outcome run(struct exec_plan *plan, enum mode mode, const char *call, int nth) {
    struct outcome outcome = {0};
    int fds[2], status = 0;
    pid_t pid;

    CU_ASSERT_FATAL(pipe2(fds, O_CLOEXEC) == 0);
    plan->parent = getpid();
    pid = fork();
    if (pid == 0) {
        const char *stage = "";

        prepare();
        fault.mode = mode;
        fault.call = call;
        fault.nth = nth;
        outcome.error = exec_child(plan, &stage);
        fault.mode = MODE_NONE;
        snprintf(outcome.stage, sizeof(outcome.stage), "%s", stage);
        _exit(__real_write(fds[1], &outcome, sizeof(outcome)) == sizeof(outcome) ? 98 : 97);
    }
    CU_ASSERT_FATAL(pid > 0);
    (void) close(fds[1]);
    if (read(fds[0], &outcome, sizeof(outcome)) != sizeof(outcome))
        outcome = (struct outcome) {0};
    (void) close(fds[0]);
    CU_ASSERT(waitpid(pid, &status, 0) == pid);
    TEST_INT(status, outcome.error ? 98 << 8 : 0);
    return outcome;
}

static struct job_settings whole_job(const char *script) {
    command[2] = (char *) (uintptr_t) script;
    return (struct job_settings) {.name = "j", .command = {.argv = command}, .directory = root, .umask = 022,
                                  .output = {JOB_OUTPUT_FILE, output},
                                  .process = {.rlimits = {limits, ELEMENTSOF(limits)}, .nice = 5, .oom_score_adjust = 500,
                                              .no_new_privileges = true}};
}

static struct supervise_term term = {.deadline = USEC_INFINITY, .stop_timeout = 5 * USEC_PER_SEC};

static struct exec_plan whole_plan(const struct job_settings *job) {
    static struct guard_file record = {.job = "j"};
    static struct gate gate = GATE_OPEN();

    return (struct exec_plan) {.gate = &gate, .job = job, .record = &record, .runs = "/nonexistent/runs", .changes_user = true, .uid = DAEMON, .gid = DAEMON, .groups = groups,
                               .n_groups = ELEMENTSOF(groups), .environment = {environment, 1}, .term = &term};
}

static bool was_run(void) {
    struct stat st;

    return stat(output, &st) == 0 && st.st_size > 0;
}

static void stays_out(enum mode mode, const char *call, int nth, int error, const char *stage) {
    struct job_settings job = whole_job("echo yes");
    struct exec_plan plan = whole_plan(&job);
    struct outcome outcome;

    (void) unlink(output);
    outcome = run(&plan, mode, call, nth);
    if (strcmp(outcome.stage, stage) != 0)
        TEST_STRING(call, stage);
    TEST_STRING(outcome.stage, stage);
    TEST_INT(outcome.error, error);
    CU_ASSERT(!was_run());
}

static void test_each_call_fails(void) {
    static const struct {
        const char *call;
        int nth, error;
        const char *stage;
    } faults[] = {
        {"setsid", 1, EIO, "session"},
        {"setrlimit", 1, EIO, "limits"},
        {"setrlimit", 2, EIO, "limits"},
        {"setpriority", 1, EIO, "nice"},
        {"/proc/self/oom_score_adj", 1, EIO, "oom-score"},
        {"write", 1, EIO, "oom-score"},
        {"setgroups", 1, EIO, "user"},
        {"setresgid", 1, EIO, "user"},
        {"setresuid", 1, EIO, "user"},
        {"prctl ambient", 1, EIO, "capabilities"},
        {"capset", 1, EIO, "capabilities"},
        {"capget", 1, EIO, "capabilities"},
        {"getresuid", 1, EPERM, "user"},
        {"getresgid", 1, EPERM, "user"},
        {"getgroups", 1, EPERM, "user"},
        {"prctl pdeathsig", 1, EIO, "guard"},
        {"prctl pdeathsig", 2, EIO, "guard"}, /* once more, after the drop */
        {"/dev/null", 1, EIO, "input"},
        {"dup2", 1, EIO, "input"},
        {"dup2", 2, EIO, "output"},
        {"dup2", 3, EIO, "output"},
        {"chdir", 1, EIO, "directory"},
        {"sigprocmask", 1, EIO, "signals"},
        {"close_range", 1, EIO, "descriptors"},
        {"setrlimit", 3, EIO, "limits"}, /* descriptors, after those of the command were opened */
        {"prctl no-new-privs", 1, EIO, "privileges"},
        {"execve", 1, EIO, "exec"},
    };

    TEST_NEEDS_ROOT();
    for (size_t i = 0; i < ELEMENTSOF(faults); i++)
        stays_out(MODE_FAIL, faults[i].call, faults[i].nth, faults[i].error, faults[i].stage);
}

static void test_each_call_lies(void) {
    static const struct {
        const char *call;
        int nth;
        const char *stage;
    } lies[] = {
        {"setgroups", 1, "user"}, {"setresgid", 1, "user"}, {"setresuid", 1, "user"}, {"capset", 1, "capabilities"},
        /* These report that a dropped right came back. */
        {"setuid", 1, "user"},    {"seteuid", 1, "user"},   {"setgid", 1, "user"},    {"setegid", 1, "user"},
        {"setgroups", 2, "user"},
    };

    TEST_NEEDS_ROOT();
    for (size_t i = 0; i < ELEMENTSOF(lies); i++)
        stays_out(MODE_LIE, lies[i].call, lies[i].nth, EPERM, lies[i].stage);
}

/* R12: the deadline is checked once more right before exec. */
static void test_deadline_has_passed(void) {
    struct job_settings job = whole_job("echo yes");
    struct exec_plan plan = whole_plan(&job);
    struct outcome outcome;

    TEST_NEEDS_ROOT();
    (void) unlink(output);
    for (int early = 0; early < 2; early++) { /* passed, or too near for a stop */
        atomic_store(&term.deadline, clock_boottime() + (early ? deadline_needed(term.stop_timeout) - 1 : 0));
        outcome = run(&plan, MODE_NONE, "", 0);
        TEST_STRING(outcome.stage, "deadline");
        TEST_INT(outcome.error, ETIME);
        CU_ASSERT(!was_run());
    }
    atomic_store(&term.deadline, USEC_INFINITY);
}

static void prints(const struct exec_plan *given, const char *expected) {
    _cleanup_free_ char *text = NULL;
    struct exec_plan plan = *given;
    struct outcome outcome;
    size_t size;

    (void) unlink(output);
    outcome = run(&plan, MODE_NONE, "", 0);
    TEST_STRING(outcome.stage, "");
    TEST_INT(outcome.error, 0);
    TEST_INT(file_read(output, 65536, &text, &size), 0);
    TEST_STRING(text, expected);
}

#define RIGHTS "grep -E '^(Uid|Gid|Groups|Cap(Inh|Prm|Eff|Amb)|NoNewPrivs):' /proc/self/status"
#define NO_RIGHTS "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapAmb:\t0000000000000000\n"

static void test_what_it_is(void) {
    struct job_settings job = whole_job(RIGHTS "; ulimit -c; ulimit -n; ulimit -Hn; ulimit -p; nice; cat /proc/self/oom_score_adj");
    struct exec_plan plan = whole_plan(&job);

    TEST_NEEDS_ROOT();
    prints(&plan, "Uid:\t1\t1\t1\t1\nGid:\t1\t1\t1\t1\nGroups:\t4 60000 \n" NO_RIGHTS "NoNewPrivs:\t1\n0\n5\n5\n500\n5\n500\n");
    plan.n_groups = 0;
    job.process.no_new_privileges = false;
    job.process.rlimits.n = 0;
    job.process.nice = job.process.oom_score_adjust = JOB_INHERIT;
    command[2] = (char *) (uintptr_t) RIGHTS;
    prints(&plan, "Uid:\t1\t1\t1\t1\nGid:\t1\t1\t1\t1\nGroups:\t \n" NO_RIGHTS "NoNewPrivs:\t0\n");
}

/* Only the name root may have uid 0 (CVE-2017-1000082). No name may have the uid -1, with which
 * setresuid(2) changes nothing. */
static void test_strange_users(void) {
    static const struct {
        const char *user;
        int error;
    } users[] = {{"toor", EACCES}, {"none", EINVAL}, {"no-such-user", ESRCH}, {"daemon", 0}, {"root", 0}};

    TEST_NEEDS_ROOT();
    for (size_t i = 0; i < ELEMENTSOF(users); i++) {
        struct job_settings job = whole_job("true");
        struct guard_file record = {.job = "j"};
        const char *stage = "user";
        struct exec_plan plan;
        struct exec_context context = {.plan = &plan, .stage = &stage};

        job.user = (char *) (uintptr_t) users[i].user;
        job.group = (char *) (uintptr_t) "";
        exec_plan_init(&plan, &job, &record, "/nonexistent/runs");
        TEST_INT(exec_look_up(&context), -users[i].error);
        if (users[i].error)
            TEST_STRING(stage, "user");
        else
            CU_ASSERT(plan.uid == (strcmp(users[i].user, "root") == 0 ? 0 : DAEMON));
        environment_done(&plan.environment);
        free(plan.groups);
        free(plan.home);
    }
}

static CU_TestInfo tests[] = {
    {"strange-users", test_strange_users},
    {"each-call-fails", test_each_call_fails},
    {"each-call-lies", test_each_call_lies},
    {"deadline", test_deadline_has_passed},
    {"what-it-is", test_what_it_is},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "exec", .pTests = tests}, CU_SUITE_INFO_NULL};
    int status;

    if (!mkdtemp(directory) || chmod(directory, 0777) < 0)
        return 1;
    snprintf(output, sizeof(output), "%s/out", directory);
    status = test_main(argc, argv, suites);
    (void) unlink(output);
    (void) rmdir(directory);
    return status;
}
