/* SPDX-License-Identifier: MIT */

/* `berth metrics --output` with a fake berthd: no old figures stay, and nothing but a file is replaced. */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/verbs.h"
#include "tests/harness/host/fake-berthd.h"
#include "tests/harness/test.h"

#define FIGURES "{'parameters': {'schema': 1, 'metrics': {'berth_drained': [{'labels': {}, 'value': 1}]}}}"
#define UP(text)                                                                                            \
    "# HELP berth_up 1: berthd answered; 0: it did not, and there are no other metrics.\n"               \
    "# TYPE berth_up gauge\nberth_up " text "\n"
#define DRAINED                                                                                             \
    "# HELP berth_drained 1: this host begins no runs.\n# TYPE berth_drained gauge\nberth_drained 1\n"
#define OLD "berth_up 1\n"

static char path[128];
static const char *instead; /* of standard output; NULL: a pipe */
static bool is_disk_full;

/* In the child, in place of `berth run`. An empty path: without --output. */
static void metrics(_unused_ struct fake *f) {
    char *argv[] = {(char[]){"berth"}, (char[]){"metrics"}, (char[]){"--output"}, path, NULL};
    const struct rlimit limit = {150, 150}; /* an error is shorter, the file is not */

    if (instead && !freopen(instead, "w", stdout))
        _exit(99);
    if (is_disk_full && (signal(SIGXFSZ, SIG_IGN) == SIG_ERR || setrlimit(RLIMIT_FSIZE, &limit) < 0))
        _exit(98);
    exit(cli_main(*path ? 4 : 2, argv));
}

static void begin(struct fake *f, const char *name) {
    fake_init(f);
    fake_in_child = metrics;
    (void) snprintf(path, sizeof(path), "%s%s%s", *name ? f->directory : "", *name ? "/" : "", name);
}

static void call(struct fake *f) {
    fake_run(f, "", NULL);
    fake_accept(f);
    json_decref(fake_expect(f, "io.berth.Metrics"));
}

static void end(struct fake *f, int status, const char *error) {
    TEST_INT(fake_await_exit(f), status);
    TEST_STRING(fake_errors(f), error);
}

static const char *about(const char *file, const char *after) {
    static char text[256];

    (void) snprintf(text, sizeof(text), "berth: %s%s\n", file, after);
    return text;
}

static void file_has(const char *expected) {
    _cleanup_free_ char *text = NULL;
    size_t size;

    TEST_INT(file_read(path, 65536, &text, &size), 0);
    TEST_STRING(text, expected);
}

static void done(struct fake *f) {
    if (*path)
        TEST_INT(unlink(path), 0);
    fake_done(f); /* the directory is empty */
}

/* berthd's reply becomes this file. The old file is gone in any case. */
static void writes(const char *reply, int status, const char *error, const char *expected) {
    struct fake f;

    begin(&f, "berth.prom");
    TEST_INT(file_write_atomic(path, OLD, strlen(OLD), 0600), 0);
    call(&f);
    if (reply)
        fake_reply(&f, reply);
    else
        fake_hang_up(&f);
    end(&f, status, error);
    file_has(expected);
    done(&f);
}

static void test_figures(void) {
    writes(FIGURES, 0, "", UP("1") DRAINED);
    writes("{'parameters': {'metrics': {}}}", 0, "", UP("1"));
}

static void test_none(void) {
    writes(NULL, 0, "", UP("0"));
    writes("{'error': 'io.berth.Stopping'}", 0, "berth: berthd is stopping\n", UP("0"));
    writes("{'error': 'io.berth.Internal', 'parameters': {'text': 'it is late'}}", 70, "berth: it is late\n",
           UP("0"));
    writes("{'error': 'io.berth.NotAllowed', 'parameters': {'text': 'no'}}", 77, "berth: no\n", UP("0"));
}

static void refuses(const char *reply) {
    struct fake f;

    begin(&f, "berth.prom");
    call(&f);
    fake_reply(&f, reply);
    end(&f, 70, about(f.socket, ": the listening process does not speak Varlink"));
    file_has(UP("0"));
    done(&f);
    begin(&f, "");
    call(&f);
    fake_reply(&f, reply);
    end(&f, 70, about(f.socket, ": the listening process does not speak Varlink"));
    TEST_STRING(f.text, "");
    done(&f);
}

/* After a reply without figures the file has berth_up 0, and the verb fails. */
static void test_liar(void) {
    refuses("{}");
    refuses("{'parameters': {'metrics': 7}}");
    refuses("{'parameters': {'metrics': []}}");
    refuses("[]");
}

static void keeps(struct fake *f, const char *error) {
    call(f);
    fake_reply(f, FIGURES);
    end(f, 70, error);
}

static void test_no_file(void) {
    char target[128];
    struct fake f;
    struct stat st;

    begin(&f, "folder");
    TEST_INT(mkdir(path, 0700), 0);
    keeps(&f, about(path, ": is not a regular file"));
    TEST_INT(rmdir(path), 0);
    TEST_INT(mkfifo(path, 0600), 0);
    keeps(&f, about(path, ": is not a regular file"));
    TEST_INT(lstat(path, &st), 0);
    CU_ASSERT(S_ISFIFO(st.st_mode));
    TEST_INT(unlink(path), 0);
    TEST_INT(symlink("/dev/full", path), 0);
    keeps(&f, about(path, ": is not a regular file"));
    CU_ASSERT(readlink(path, target, sizeof(target)) == (ssize_t) strlen("/dev/full"));
    done(&f);
    begin(&f, "missing/berth.prom");
    keeps(&f, about(path, ".tmp: No such file or directory"));
    fake_done(&f);
}

static void test_full(void) {
    struct fake f;

    begin(&f, "berth.prom");
    TEST_INT(file_write_atomic(path, OLD, strlen(OLD), 0600), 0);
    is_disk_full = true;
    keeps(&f, about(path, ".tmp: File too large"));
    is_disk_full = false;
    file_has(OLD);
    done(&f);
    begin(&f, "");
    instead = "/dev/full";
    keeps(&f, "berth: standard output: No space left on device\n");
    instead = NULL;
    done(&f);
}

static CU_TestInfo tests[] = {
    {"figures", test_figures},         {"berthd is away, or refuses", test_none},
    {"a berthd that lies", test_liar}, {"devices, links and folders stay", test_no_file},
    {"a full disk", test_full},        CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "metrics-file", .pTests = tests});
