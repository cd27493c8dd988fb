/* SPDX-License-Identifier: MIT */
/* The files of `credentials`. The child reads them, for the reason given in runner/exec/exec-environment.c. While
 * it has their bytes in memory, it leaves no core file, and nobody may trace it. */

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

struct secret {
    char name[NAME_MAX_LENGTH + 1];
    const char *path; /* NULL: a credential that systemd passed to berth-runner */
    char *bytes;      /* allocated once: realloc(3) could leave a copy behind */
    size_t size;
};

static void secret_done(struct secret *s) {
    if (s->bytes)
        explicit_bzero(s->bytes, s->size);
    free(s->bytes);
}

/* Sets the text of the failure. Returns r. */
static int refuse(struct exec_context *context, const struct secret *s, int r, const char *problem) {
    return exec_explain(context, r, "credentials %s%s%s: %s", s->name, s->path ? "=" : "",
                        s->path ? s->path : "", problem);
}

/* Opens a credential that systemd passed (LoadCredential=). */
static int open_own(struct exec_context *context, const struct secret *s) {
    const char *directory = getenv("CREDENTIALS_DIRECTORY");
    char path[512];
    int fd = -1;

    errno = ENOENT;
    if (directory && (size_t) snprintf(path, sizeof(path), "%s/%s", directory, s->name) < sizeof(path))
        fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? refuse(context, s, -errno,
                           "berth-runner has no such credential; pass it by LoadCredential= of its unit")
                  : fd;
}

static int open_file(struct exec_context *context, const struct secret *s) {
    _cleanup_close_ int fd = exec_open_file(s->path, O_RDONLY);
    struct stat st;

    if (fd < 0)
        return refuse(context, s, fd, strerror(-fd));
    if (fstat(fd, &st) < 0)
        return refuse(context, s, -errno, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return refuse(context, s, -EPERM, "not a regular file");
    if (st.st_mode & (S_IROTH | S_IWOTH))
        return refuse(context, s, -EPERM, "open to every user of this machine");
    return steal_fd(&fd);
}

/* Returns 0 or a negative errno; -EFBIG: the file has more than `room` bytes. */
static int read_bytes(int fd, struct secret *s, size_t room) {
    ssize_t n = 1;

    s->bytes = malloc(room + 1);
    if (!s->bytes)
        return -ENOMEM;
    while (n != 0 && s->size <= room) {
        n = read(fd, s->bytes + s->size, room + 1 - s->size);
        if (n < 0 && errno != EINTR)
            return -errno;
        s->size += n > 0 ? (size_t) n : 0;
    }
    return s->size > room ? -EFBIG : 0;
}

static int read_secret(struct exec_context *context, struct secret *s, size_t room) {
    _cleanup_close_ int fd = s->path ? open_file(context, s) : open_own(context, s);
    int r = fd < 0 ? fd : read_bytes(fd, s, room);

    if (fd < 0)
        return r;
    if (r == -EFBIG)
        return refuse(context, s, r, "the credentials of a job may have 1M in all");
    return r < 0 ? refuse(context, s, r, strerror(-r)) : 0;
}

/* text: "NAME" or "NAME=/path" */
static int add_secret(struct exec_context *context, int directory, const char *text, size_t *room) {
    size_t n = strcspn(text, "=");
    _cleanup_(secret_done) struct secret s = {.path = text[n] == '=' ? text + n + 1 : NULL};
    int r;

    snprintf(s.name, sizeof(s.name), "%.*s", (int) n, text);
    r = read_secret(context, &s, *room);
    if (r < 0)
        return r;
    *room -= s.size;
    return credentials_add(directory, s.name, s.bytes, s.size, context->plan->uid, context->plan->gid);
}

static int add_secrets(struct exec_context *context, char *const *items) {
    _cleanup_close_ int directory = -1;
    size_t room = CREDENTIALS_MAX;
    int r = 0;

    directory = credentials_make(context->plan->runs, context->plan->record->run);
    if (directory == -EMEDIUMTYPE)
        return exec_explain(context, directory,
                            "credentials: the runtime directory is on a disk; it must be on a tmpfs");
    if (directory < 0)
        return directory;
    for (; r == 0 && *items; items++)
        r = add_secret(context, directory, *items, &room);
    return r == 0 ? credentials_hand_over(directory, context->plan->uid, context->plan->gid) : r;
}

int exec_credentials(struct exec_context *context) {
    char *const *items = context->plan->job->input.credentials;
    int dumpable = prctl(PR_GET_DUMPABLE), r;

    if (!items || !*items)
        return 0;
    if (dumpable < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
        return -errno;
    r = add_secrets(context, items);
    /* The bytes are erased. Later steps open files of /proc/self, which an ordinary user may do only in a
     * dumpable process. */
    if (dumpable == 1 && prctl(PR_SET_DUMPABLE, 1) < 0 && r == 0)
        r = -errno;
    return r;
}
