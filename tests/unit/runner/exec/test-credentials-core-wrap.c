/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=write */

/* The child that reads credentials cannot be dumped while it has their bytes in memory, and clears them
 * before it goes on. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "runner/exec/credentials.h"
#include "runner/exec/exec-internal.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

#define RUN "0123456789abcdef0123456789abcdef"
#define PART "S3CRET/"
#define MANY 3000 /* times: more than one read, and more than small allocations */

static char folder[] = "/dev/shm/berth-test-core-XXXXXX", runs[64];
static unsigned n_written, n_dumpable;

ssize_t __real_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n);
ssize_t __wrap_write(int fd, const void *bytes, size_t n) {
    if (n >= strlen(PART) && memcmp(bytes, PART, strlen(PART)) == 0) {
        n_written++;
        n_dumpable += prctl(PR_GET_DUMPABLE) != 0;
    }
    return __real_write(fd, bytes, n);
}

static void write_secret(const char *name, unsigned times) {
    char path[96];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "we");
    if (!f)
        abort();
    (void) setvbuf(f, NULL, _IONBF, 0); /* a buffer would be a copy in this process */
    for (unsigned i = 0; i < times; i++)
        (void) fputs(PART, f);
    if (fchmod(fileno(f), 0600) < 0 || fclose(f) != 0)
        abort();
}

/* Returns how many writable pages of this process contain two parts in a row. */
static unsigned count_copies(void) {
    static const char part[] = PART;
    _cleanup_free_ char *line = NULL;
    _cleanup_close_ int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned long begin, end;
    unsigned n = 0;
    char rights[8];

    CU_ASSERT_FATAL(memory >= 0 && maps != NULL);
    for (size_t size = 0; getline(&line, &size, maps) > 0;) {
        static char page[4096];

        if (sscanf(line, "%lx-%lx %7s", &begin, &end, rights) != 3 || strncmp(rights, "rw", 2) != 0 || end - begin > 64UL << 20)
            continue;
        for (unsigned long at = begin; at < end; at += sizeof(page)) {
            unsigned run = 0;

            if (at / sizeof(page) == (unsigned long) page / sizeof(page) || pread(memory, page, sizeof(page), (off_t) at) != sizeof(page))
                continue;
            for (size_t i = 0; i + 2 * strlen(part) <= sizeof(page); i++)
                run += memcmp(page + i, part, strlen(part)) == 0 && memcmp(page + i + strlen(part), part, strlen(part)) == 0;
            n += run > 0;
        }
        memset(page, 0, sizeof(page));
    }
    (void) fclose(maps);
    return n;
}

static int add(const char *const *names) {
    char items[2][128], *credentials[3] = {NULL};
    struct job_settings job = {.name = "j", .input = {.credentials = credentials}};
    struct guard_file record = {.job = "j", .run = RUN};
    struct exec_plan plan = {.job = &job, .record = &record, .runs = runs, .uid = getuid(), .gid = getgid()};
    struct exec_context context = {.plan = &plan, .journal_fd = -1};
    int r;

    for (size_t i = 0; names[i]; i++) {
        snprintf(items[i], sizeof(items[i]), "%s=%s/%s", names[i], folder, names[i]);
        credentials[i] = items[i];
    }
    n_written = n_dumpable = 0;
    r = exec_credentials(&context);
    TEST_INT(prctl(PR_GET_DUMPABLE), 1);
    credentials_remove(runs, RUN);
    return r;
}

static void test_gone(void) {
    TEST_INT(add((const char *[]) {"short", "long", NULL}), 0);
    TEST_INT(n_written, 2);
    TEST_INT(n_dumpable, 0);
    TEST_INT(count_copies(), 0);
}

static void test_too_large(void) {
    TEST_INT(add((const char *[]) {"short", "huge", NULL}), -EFBIG);
    TEST_INT(n_dumpable, 0);
    TEST_INT(count_copies(), 0);
}

static void make_files(void) {
    char path[64];

    if (!mkdtemp(folder))
        abort();
    snprintf(runs, sizeof(runs), "%s/runs", folder);
    snprintf(path, sizeof(path), "%s/credentials", folder);
    if (mkdir(runs, 0700) < 0 || mkdir(path, 0700) < 0)
        abort();
    write_secret("short", 2);
    write_secret("long", MANY);
    write_secret("huge", CREDENTIALS_MAX / (unsigned) strlen(PART) + 1);
}

int main(int argc, char **argv) {
    CU_TestInfo tests[] = {{"gone", test_gone}, {"too large", test_too_large}, CU_TEST_INFO_NULL};
    CU_SuiteInfo suites[] = {{.pName = "credentials-core", .pTests = tests}, CU_SUITE_INFO_NULL};
    int status;

    make_files();
    status = test_main(argc, argv, suites);
    place_remove(folder);
    return status;
}
