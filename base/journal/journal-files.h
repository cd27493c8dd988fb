/* SPDX-License-Identifier: MIT */
#pragma once

/* The journal files of folders, told apart by who wrote them: NAME.journal, and NAME@*.journal that it was rotated to, in one folder. */

#include <stddef.h>

#define JOURNAL_FILES_MAX 4096

struct journal_file_path {
    char *path;
    size_t source; /* so many first bytes are the same for all files of one writer, and differ from all others' */
};

struct journal_files {
    struct journal_file_path *items;
    size_t n;
};

/* Adds all *.journal and *.journal~ files in the folder and below, but not below folders in it whose names begin with `except` (NULL: none).
 * Negative errno: it, or something below, cannot be read; -E2BIG: more than JOURNAL_FILES_MAX. */
int journal_files_find(struct journal_files *f, const char *directory, const char *except);
/* One writer's files after the other's, the rotated ones in their order. */
void journal_files_sort(struct journal_files *f);
/* The paths of the writer whose first file is `first`, after a sort; ends in NULL. The array is to be freed, the paths are the list's.
 * NULL: out of memory. *ret_n: how many. */
const char **journal_files_of_writer(const struct journal_files *f, size_t first, size_t *ret_n);
void journal_files_done(struct journal_files *f);
