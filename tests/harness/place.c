/* SPDX-License-Identifier: MIT */
#include "tests/harness/place.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#define FOLDERS_OPEN_MAX 16

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

const char *place_program(char *buffer, size_t size, const char *name) {
    if ((size_t) snprintf(buffer, size, "%s/%s", place_build(), name) >= size)
        abort();
    return buffer;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void) st;
    (void) type;
    (void) ftw;
    return remove(path) < 0 && errno != ENOENT ? -1 : 0; /* what is about to end takes its files away itself */
}

void place_remove(const char *folder) {
    (void) nftw(folder, remove_one, FOLDERS_OPEN_MAX, FTW_DEPTH | FTW_PHYS);
}
