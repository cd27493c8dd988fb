/* SPDX-License-Identifier: MIT */
#include "tests/harness/capture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"

void capture_begin(struct capture *c) {
    c->saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    c->file = memfd_create("stderr", MFD_CLOEXEC);
    if (c->saved < 0 || c->file < 0 || dup2(c->file, STDERR_FILENO) < 0)
        abort();
}

char *capture_read(struct capture *c) {
    struct stat st;
    char *text;

    if (fstat(c->file, &st) < 0 || !(text = calloc(1, (size_t) st.st_size + 1)))
        abort();
    if (pread(c->file, text, (size_t) st.st_size, 0) != st.st_size)
        abort();
    return text;
}

char *capture_end(struct capture *c) {
    char *text = capture_read(c);

    if (dup2(c->saved, STDERR_FILENO) < 0)
        abort();
    c->saved = close_fd(c->saved);
    c->file = close_fd(c->file);
    return text;
}
