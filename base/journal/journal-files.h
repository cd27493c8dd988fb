/* SPDX-License-Identifier: MIT */
#pragma once

/* The journal files of folders, grouped by writer: NAME.journal, and the rotated NAME@*.journal in the same
 * folder. */

#include <stddef.h>

#define JOURNAL_FILES_MAX 4096

struct journal_file_path {
    char *path;
    size_t source; /* length of the first part of the path, which only the files of one writer share */
};

struct journal_files {
    struct journal_file_path *items;
    size_t n;
};

/* Adds all *.journal and *.journal~ files in the folder and below, except below subfolders whose names begin
 * with `except` (or NULL). Negative errno: the folder or something below cannot be read; -ENOENT: there is no such
 * folder; -E2BIG: more than JOURNAL_FILES_MAX; -EAGAIN: files vanish all the time. */
int journal_files_find(struct journal_files *f, const char *directory, const char *except);
/* Sorts by writer, and each writer's files by their order of rotation. */
void journal_files_sort(struct journal_files *f);
/* Returns the paths of the writer whose first file is `first`, after a sort; ends in NULL. The array is to
 * be freed, the paths belong to the list. NULL: out of memory. *ret_n: their number. */
const char **journal_files_of_writer(const struct journal_files *f, size_t first, size_t *ret_n);
void journal_files_done(struct journal_files *f);
