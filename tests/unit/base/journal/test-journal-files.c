/* SPDX-License-Identifier: MIT */

/* Which journal files have one writer, and which are read at all. */

#include "base/journal/journal-files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/harness/place.h"
#include "tests/harness/test.h"

static char folder[] = "/tmp/berth-files-XXXXXX";

static int make_folder(void) {
    static const char *const folders[] = {"0123", "0123.other", "4567", "remote"};
    static const char *const files[] = {
        "0123/system.journal", "0123.other/system.journal",
        "4567/system@0005a1-00.journal~", "4567/system.journal", "4567/user-1000.journal", "4567/system@ab12-0001-0005.journal", "4567/system.txt",
        "remote/remote-10.0.0.1.journal", "remote/remote-10.0.0.11.journal", "remote/remote-10.0.0.1@ab12-0001-0005.journal",
        "remote/journal@bee.journal", "remote/journal@cow.journal",
    };
    char path[128];

    if (!mkdtemp(folder))
        return -1;
    for (size_t i = 0; i < ELEMENTSOF(folders); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, folders[i]);
        if (mkdir(path, 0700) < 0)
            return -1;
    }
    for (size_t i = 0; i < ELEMENTSOF(files); i++) {
        int fd;

        snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
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

/* Formats the files of each writer as "first other|first ...", without the folder. */
static void format_writers(const struct journal_files *f, char *buffer, size_t size) {
    size_t n;

    buffer[0] = '\0';
    for (size_t i = 0; i < f->n; i += n) {
        _cleanup_free_ const char **paths = journal_files_of_writer(f, i, &n);

        CU_ASSERT_PTR_NOT_NULL_FATAL(paths);
        CU_ASSERT_PTR_NULL(paths[n]);
        for (size_t k = 0; k < n; k++)
            snprintf(buffer + strlen(buffer), size - strlen(buffer), "%s%s", k > 0 ? " " : i > 0 ? "|" : "", paths[k] + strlen(folder) + 1);
    }
}

static void test_writers(void) {
    _cleanup_(journal_files_done) struct journal_files f = {};
    char text[1024];

    CU_ASSERT_EQUAL_FATAL(journal_files_find(&f, folder, "0123"), 0);
    journal_files_sort(&f);
    format_writers(&f, text, sizeof(text));
    TEST_STRING(text, "4567/system.journal 4567/system@0005a1-00.journal~ 4567/system@ab12-0001-0005.journal|4567/user-1000.journal|"
                      "remote/journal@bee.journal|remote/journal@cow.journal|"
                      "remote/remote-10.0.0.1.journal remote/remote-10.0.0.1@ab12-0001-0005.journal|remote/remote-10.0.0.11.journal");
}

static void test_all_of_a_folder(void) {
    _cleanup_(journal_files_done) struct journal_files f = {};

    TEST_INT(journal_files_find(&f, folder, NULL), 0);
    TEST_INT(f.n, 11);
}

static void test_no_folder(void) {
    _cleanup_(journal_files_done) struct journal_files f = {};

    TEST_INT(journal_files_find(&f, "/does/not/exist", NULL), -ENOENT);
    TEST_INT(journal_files_find(&f, "/dev/null", NULL), -ENOTDIR);
    TEST_INT(f.n, 0);
    journal_files_sort(&f);
}

static CU_TestInfo tests[] = {
    {"files of one writer belong together, of two not", test_writers},
    {"all files below a folder", test_all_of_a_folder},
    {"no folder", test_no_folder},
    CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "journal files", .pInitFunc = make_folder, .pCleanupFunc = remove_folder,
             .pTests = tests});
