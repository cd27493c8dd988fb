/* SPDX-License-Identifier: MIT */
/* Cgroup controllers, on folders with files named like the kernel's: what is written where. Only a
 * machine whose cgroup v2 has controllers shows the effect. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file.h"
#include "runner/resource-control.h"
#include "tests/harness/test.h"

static char directory[64];

static const char *path(const char *name) {
    static char text[128];

    snprintf(text, sizeof(text), "%s/%s", directory, name);
    return text;
}

static void put(const char *name, const char *text) {
    CU_ASSERT_FATAL(file_write_atomic(path(name), text, strlen(text), 0644) == 0);
}

static void holds(const char *name, const char *expected) {
    _cleanup_free_ char *text = NULL;
    size_t size;

    TEST_INT(file_read(path(name), 4096, &text, &size), 0);
    TEST_STRING(text, expected);
}

static void begin(const char *enabled) {
    snprintf(directory, sizeof(directory), "/tmp/berth-test-cgroup-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(directory) != NULL);
    put("cgroup.subtree_control", enabled);
}

static void end(void) {
    static const char *const names[] = {"cgroup.subtree_control", "cgroup.controllers", "cgroup.procs", "memory.max",
                                        "memory.high", "cpu.weight", "pids.max", "guards/cgroup.procs"};

    for (size_t i = 0; i < ELEMENTSOF(names); i++)
        (void) unlink(path(names[i]));
    (void) rmdir(path("guards"));
    TEST_INT(rmdir(directory), 0);
}

static void test_needed(void) {
    TEST_INT(resource_control_needed(&(struct job_settings) {.process.nice = 5}), 0);
    TEST_INT(resource_control_needed(&(struct job_settings) {.resources.cpu_weight = 1}), CGROUP_CPU);
    TEST_INT(resource_control_needed(&(struct job_settings) {.resources.memory_max = 1}), CGROUP_MEMORY);
    TEST_INT(resource_control_needed(&(struct job_settings) {.resources.memory_high = 1}), CGROUP_MEMORY);
    TEST_INT(resource_control_needed(&(struct job_settings) {.resources.tasks_max = 1, .resources.memory_max = 1}), CGROUP_MEMORY | CGROUP_PIDS);
}

static void test_available(void) {
    unsigned available = 99;

    begin("");
    TEST_INT(cgroup_available(directory, &available), -ENOENT);
    TEST_INT(available, 99);
    put("cgroup.controllers", "cpuset cpu io memory\n");
    TEST_INT(cgroup_available(directory, &available), 0);
    TEST_INT(available, CGROUP_CPU | CGROUP_MEMORY);
    end();
}

static void test_format(void) {
    char text[CGROUP_NAMES_SIZE];

    TEST_STRING(cgroup_format(0, text), "");
    TEST_STRING(cgroup_format(CGROUP_PIDS, text), "pids");
    TEST_STRING(cgroup_format(CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS, text), "cpu, memory, pids");
}

static void test_enabled(void) {
    begin("cpuset cpu io pids\n");
    TEST_INT(cgroup_enabled(directory), CGROUP_CPU | CGROUP_PIDS);
    TEST_INT(resource_control_prepare(directory, CGROUP_CPU | CGROUP_PIDS), 0);
    TEST_INT(resource_control_prepare(directory, 0), 0);
    TEST_INT(resource_control_prepare(NULL, CGROUP_CPU), CGROUP_CPU);
    holds("cgroup.subtree_control", "cpuset cpu io pids\n"); /* nothing to do */
    end();
    TEST_INT(cgroup_enabled(directory), 0); /* gone */
    TEST_INT(cgroup_enable(directory, CGROUP_MEMORY), CGROUP_MEMORY);
}

static void test_enable(void) {
    begin("\n");
    TEST_INT(cgroup_enable(directory, CGROUP_MEMORY), CGROUP_MEMORY); /* no kernel here enables it */
    holds("cgroup.subtree_control", "+memory");
    end();
}

/* Processes of a delegated group step aside; those of any other are left alone. */
static void test_move(void) {
    begin("\n");
    CU_ASSERT_FATAL(mkdir(path("guards"), 0755) == 0);
    put("cgroup.procs", "4711\n");
    put("guards/cgroup.procs", "");
    TEST_INT(resource_control_prepare(directory, CGROUP_PIDS), CGROUP_PIDS);
    holds("guards/cgroup.procs", "");
    holds("cgroup.subtree_control", "+pids");
    CU_ASSERT(!cgroup_is_delegated(directory));
    if (setxattr(directory, "trusted.delegate", "1", 1, 0) < 0 && setxattr(directory, "user.delegate", "1", 1, 0) < 0) {
        end();
        TEST_SKIP("no extended attributes below /tmp");
    }
    CU_ASSERT(cgroup_is_delegated(directory));
    TEST_INT(resource_control_prepare(directory, CGROUP_PIDS), CGROUP_PIDS);
    holds("guards/cgroup.procs", "4711");
    end();
}

static void test_apply(void) {
    const struct job_settings job = {.resources.memory_max = UINT64_C(5) << 30, .resources.memory_high = 4096, .resources.cpu_weight = 10, .resources.tasks_max = 64};

    begin("\n");
    TEST_INT(resource_control_apply(directory, &job), 0); /* a missing controller was reported before */
    put("memory.max", "");
    put("memory.high", "");
    put("cpu.weight", "");
    put("pids.max", "");
    TEST_INT(resource_control_apply(directory, &(struct job_settings) {0}), 0);
    holds("memory.max", "");
    TEST_INT(resource_control_apply(directory, &job), 0);
    holds("memory.max", "5368709120");
    holds("memory.high", "4096");
    holds("cpu.weight", "10");
    holds("pids.max", "64");
    CU_ASSERT(unlink(path("pids.max")) == 0 && mkdir(path("pids.max"), 0700) == 0);
    TEST_INT(resource_control_apply(directory, &job), EISDIR);
    CU_ASSERT(rmdir(path("pids.max")) == 0);
    end();
}

static CU_TestInfo tests[] = {
    {"needed", test_needed}, {"format", test_format}, {"enabled", test_enabled}, {"enable", test_enable},
    {"available", test_available},
    {"move", test_move},     {"apply", test_apply},   CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "cgroup-control", .pTests = tests});
