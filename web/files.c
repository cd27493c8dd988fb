/* SPDX-License-Identifier: MIT */
#include "web/files.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

static const char html[] =
#include "web/page/index.html.inc"
    ;
static const char style[] =
#include "web/page/berth.css.inc"
    ;
static const char script[] =
#include "web/page/berth.js.inc"
    ;
static const char icon[] =
#include "web/page/icon.svg.inc"
    ;

static struct file files[] = {
    [PAGE_HTML] = {"text/html; charset=utf-8", html, sizeof(html) - 1, ""},
    [PAGE_STYLE] = {"text/css; charset=utf-8", style, sizeof(style) - 1, ""},
    [PAGE_SCRIPT] = {"text/javascript; charset=utf-8", script, sizeof(script) - 1, ""},
    [PAGE_ICON] = {"image/svg+xml", icon, sizeof(icon) - 1, ""},
};

/* FNV-1a, for tags that differ with the contents. */
static uint64_t hash(const char *data, size_t size) {
    uint64_t value = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < size; i++)
        value = (value ^ (unsigned char) data[i]) * UINT64_C(1099511628211);
    return value;
}

const struct file *files_get(enum page_file i) {
    struct file *file = &files[i];

    if (!file->etag[0])
        (void) snprintf(file->etag, sizeof(file->etag), "\"%016" PRIx64 "\"", hash(file->data, file->size));
    return file;
}
