/* SPDX-License-Identifier: MIT */
#include "tests/harness/place.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define FOLDERS_OPEN_MAX 16

#define COPIES "TEST_PROGRAM_COPIES"

const char *place_build(void) {
    static char *build;

    if (!build) {
        const char *named = getenv("BERTH_BUILD");

        build = realpath(named && *named ? named : "build", NULL);
        if (!build)
            abort();
    }
    return build;
}

/* Tests put the path into commands and configs unquoted. Tests that root runs as another user need a path
 * that all may follow. */
static bool is_usable_by_all(const char *build) {
    char path[PATH_MAX];
    struct stat st;

    if (build[strspn(build, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-")])
        return false;
    if (geteuid() != 0)
        return true;
    for (size_t n = strlen(build); n > 0; n--) {
        if (build[n] && build[n] != '/')
            continue;
        snprintf(path, sizeof(path), "%.*s", (int) n, build);
        if (stat(path, &st) < 0 || !(st.st_mode & S_IXOTH))
            return false;
    }
    snprintf(path, sizeof(path), "%s/berthd", build);
    return stat(path, &st) < 0 || (st.st_mode & 05) == 05;
}

/* A program that is not built is left out: a test that needs it fails. */
static void copy(const char *from, const char *to) {
    _cleanup_close_ int in = open(from, O_RDONLY | O_CLOEXEC), out = -1;
    ssize_t n;

    if (in < 0 && errno == ENOENT)
        return;
    out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    if (in < 0 || out < 0 || fchmod(out, 0755) < 0)
        abort();
    while ((n = sendfile(out, in, NULL, 1 << 20)) > 0)
        ;
    if (n < 0)
        abort();
}

static char copies[] = "/tmp/berth-build-XXXXXX";
static pid_t copied_by;

static void remove_copies(void) {
    if (getpid() == copied_by)
        place_remove(copies);
}

static void copy_programs(const char *build) {
    static const char *const folders[] = {"/tests", "/tests/tools", "/tests/preload"};
    static const char *const programs[] = {"berth", "berth-verbs", "berthd", "berth-runner", "berth-web", "tests/tools/activate",
                                           "tests/tools/witness", "tests/preload/clock-step.so", "tests/preload/host-clock.so"};
    char from[PATH_MAX], to[PATH_MAX];

    copied_by = getpid();
    (void) atexit(remove_copies);
    if (getenv(COPIES)) { /* made before this program executed itself again (clock-file.c) */
        snprintf(copies, sizeof(copies), "%s", getenv(COPIES));
        (void) unsetenv(COPIES);
        return;
    }
    if (!mkdtemp(copies) || chmod(copies, 0755) < 0)
        abort();
    for (size_t i = 0; i < ELEMENTSOF(folders); i++) {
        snprintf(to, sizeof(to), "%s%s", copies, folders[i]);
        if (mkdir(to, 0755) < 0 || chmod(to, 0755) < 0)
            abort();
    }
    for (size_t i = 0; i < ELEMENTSOF(programs); i++) {
        snprintf(from, sizeof(from), "%s/%s", build, programs[i]);
        snprintf(to, sizeof(to), "%s/%s", copies, programs[i]);
        copy(from, to);
    }
}

const char *place_programs(void) {
    static const char *programs;

    if (!programs) {
        programs = place_build();
        if (!is_usable_by_all(programs)) {
            copy_programs(programs);
            programs = copies;
        }
    }
    return programs;
}

void place_keep_over_exec(void) {
    if (place_programs() == copies)
        (void) setenv(COPIES, copies, 1);
}

const char *place_program(char *buffer, size_t size, const char *name) {
    if ((size_t) snprintf(buffer, size, "%s/%s", place_programs(), name) >= size)
        abort();
    return buffer;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void) st;
    (void) type;
    (void) ftw;
    return remove(path) < 0 && errno != ENOENT ? -1 : 0; /* an ending process removes its own files */
}

void place_remove(const char *folder) {
    (void) nftw(folder, remove_one, FOLDERS_OPEN_MAX, FTW_DEPTH | FTW_PHYS);
}
