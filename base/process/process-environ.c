/* SPDX-License-Identifier: MIT */
/* Reads /proc/PID/environ of all processes. Each match is checked again through a pidfd. */
#include "base/process/process-environ.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"
#include "base/process/process-list.h"
#include "base/process/process-tree.h"

#define ENVIRON_MAX (128 * 1024) /* bytes read of each; the environments of runs have a few hundred */

/* Every entry of an environment ends with NUL. A zombie has none. */
static bool has_assignment(const char *environ_text, size_t size, const char *assignment) {
    size_t length = strlen(assignment) + 1;

    for (const char *entry = environ_text, *end = environ_text + size, *nul; entry < end; entry = nul + 1) {
        nul = memchr(entry, '\0', (size_t) (end - entry));
        if (!nul)
            return false;
        if ((size_t) (nul - entry) + 1 == length && memcmp(entry, assignment, length) == 0)
            return true;
    }
    return false;
}

struct search {
    const char *assignment, *also; /* also: NULL, or a second one */
    char *buffer;                  /* of ENVIRON_MAX bytes */
    bool kill;
    int n, error;                  /* processes that have the assignments; the last error */
    pid_t found;                   /* one of them; 0: none */
};

/* Returns 1, 0, or the negative errno of a lack of descriptors or memory. */
static int process_has(pid_t pid, const struct search *search) {
    _cleanup_close_ int fd = -1;
    char path[32];
    size_t size = 0;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/environ", (int) pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return process_error_is_ours(-errno) ? -errno : 0;
    while (size < ENVIRON_MAX && (n = read(fd, search->buffer + size, ENVIRON_MAX - size)) > 0)
        size += (size_t) n;
    return has_assignment(search->buffer, size, search->assignment) &&
           (!search->also || has_assignment(search->buffer, size, search->also));
}

/* Kills the descendants, too: sudo(8) gives its command another environment. Meanwhile the process is stopped: a shell would go on
 * with its next command. Returns 1 if the process has the assignments, 0, or a negative errno. */
static int visit(pid_t pid, const struct search *search) {
    _cleanup_close_ int fd = -1;
    int k = process_has(pid, search);

    if (k <= 0)
        return k;
    fd = pidfd_open(pid, 0);
    if (fd < 0)
        return errno != ESRCH;
    k = process_has(pid, search); /* the pid may belong to another process by now */
    if (k <= 0 || !search->kill)
        return k;
    (void) pidfd_send_signal(fd, SIGSTOP, NULL, 0);
    (void) process_tree_signal(pid, SIGKILL, NULL, 0);
    (void) pidfd_send_signal(fd, SIGKILL, NULL, 0);
    return k;
}

static int process_environ_on_entry(const char *name, void *userdata) {
    struct search *search = userdata;
    uint64_t pid;
    int r = 0;

    if (number_parse(name, INT32_MAX, &pid) == 0 && (pid_t) pid != getpid())
        r = visit((pid_t) pid, search);
    if (r < 0)
        search->error = r;
    else if (r > 0) {
        search->n += r;
        search->found = (pid_t) pid;
    }
    return 0;
}

/* Returns how many processes have the assignments, or a negative errno. */
static int process_environ_each(struct search *search) {
    _cleanup_free_ char *buffer = malloc(ENVIRON_MAX);
    int r;

    if (!buffer)
        return -ENOMEM;
    search->buffer = buffer;
    r = directory_each("/proc", process_environ_on_entry, search);
    if (r < 0)
        search->error = r;
    return search->n == 0 ? search->error : search->n;
}

int process_environ_kill(const char *assignment, const char *also) {
    struct search search = {.assignment = assignment, .also = also, .kill = true};

    return process_environ_each(&search);
}

pid_t process_environ_find(const char *assignment) {
    struct search search = {.assignment = assignment};
    int r = process_environ_each(&search);

    return r < 0 ? r : search.found;
}
