/* SPDX-License-Identifier: MIT */
/* wrap: -Wl,--wrap=fts64_read */

/* A search for journal files whose folder changes meanwhile, or that the system cannot finish: no file is left out silently. */

#include "base/journal/journal-files.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

static char folder[] = "/tmp/berth-files-XXXXXX";
static unsigned n_vanished; /* so many files in a row vanish after their names were read */
static int end_error;       /* 0, or why the search ends before its last file */

FTSENT *__real_fts64_read(FTS *fts);
FTSENT *__wrap_fts64_read(FTS *fts);
FTSENT *__wrap_fts64_read(FTS *fts) {
    FTSENT *entry = __real_fts64_read(fts);

    if (entry && entry->fts_info == FTS_F && end_error != 0) {
        errno = end_error;
        return NULL;
    }
    if (entry && entry->fts_info == FTS_F && n_vanished > 0) {
        n_vanished--;
        entry->fts_info = FTS_NS;
        entry->fts_errno = ENOENT;
    }
    return entry;
}

static int make_folder(void) {
    char path[128];

    if (!mkdtemp(folder))
        return -1;
    for (unsigned i = 0; i < 3; i++) {
        int fd;

        snprintf(path, sizeof(path), "%s/system@0005a1-0%u.journal", folder, i);
        fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (fd < 0)
            return -1;
        close(fd);
    }
    return 0;
}

static int remove_folder(void) {
    place_remove(folder);
    return 0;
}

/* journald renames a file when it rotates, and deletes the oldest one. */
static void test_changing(void) {
    _cleanup_(journal_files_done) struct journal_files f = {};

    n_vanished = 2;
    TEST_INT(journal_files_find(&f, folder, NULL), 0);
    TEST_INT(f.n, 3);
}

static void test_always_changing(void) {
    _cleanup_(journal_files_done) struct journal_files f = {};

    n_vanished = UINT_MAX;
    TEST_INT(journal_files_find(&f, folder, NULL), -EAGAIN);
    n_vanished = 0;
}

static void test_cut(void) {
    _cleanup_(journal_files_done) struct journal_files f = {};

    end_error = ENOMEM;
    TEST_INT(journal_files_find(&f, folder, NULL), -ENOMEM);
    end_error = 0;
}

static CU_TestInfo tests[] = {
    {"the folder changes", test_changing},
    {"the folder always changes", test_always_changing},
    {"cut short", test_cut},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "journal files wrap", .pInitFunc = make_folder, .pCleanupFunc = remove_folder,
             .pTests = tests});
