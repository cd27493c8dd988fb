/* SPDX-License-Identifier: MIT */
#pragma once

/* The page's files, which are part of the program. */

#include <stddef.h>

struct file {
    const char *type; /* Content-Type */
    const char *data;
    size_t size;
    char etag[20]; /* with quotes */
};

enum page_file { PAGE_HTML, PAGE_STYLE, PAGE_SCRIPT, PAGE_ICON };

const struct file *files_get(enum page_file file);
