/* SPDX-License-Identifier: MIT */
/* Reads /proc/PID/environ of all processes. Each match is checked again through a pidfd. */
#include "base/process/process-environ.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
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
#include "base/text.h"

#define ENVIRON_MAX (128 * 1024) /* bytes read of each; the environments of runs have a few hundred */

#define RUN "BERTH_RUN="
#define TOKEN "BERTH_TOKEN="

struct search {
    struct environ_run *runs;
    size_t n;
    char *buffer; /* of ENVIRON_MAX bytes */
    bool kill;
    int error;    /* the last one */
};

static bool has_token(const char *text, size_t size, uint64_t token) {
    const char *value = text_find_variable(text, size, TOKEN);
    char wanted[24];

    snprintf(wanted, sizeof(wanted), "%" PRIu64, token);
    return token == 0 || (value && strcmp(value, wanted) == 0);
}

/* Stores the run to which the process belongs; NULL: to none of these. 0, or the negative errno of a lack of descriptors or
 * memory. */
static int find_run(const struct search *search, pid_t pid, struct environ_run **ret) {
    _cleanup_close_ int fd = -1;
    const char *run;
    char path[32];
    size_t size = 0;
    ssize_t n;

    *ret = NULL;
    snprintf(path, sizeof(path), "/proc/%d/environ", (int) pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return process_error_is_ours(-errno) ? -errno : 0;
    while (size < ENVIRON_MAX && (n = read(fd, search->buffer + size, ENVIRON_MAX - size)) > 0)
        size += (size_t) n;
    run = text_find_variable(search->buffer, size, RUN);
    for (size_t i = 0; run && i < search->n; i++)
        if (strcmp(search->runs[i].run, run) == 0 && has_token(search->buffer, size, search->runs[i].token))
            *ret = &search->runs[i];
    return 0;
}

/* Kills the descendants, too: sudo(8) gives its command another environment. Meanwhile the process is stopped: a shell would go on
 * with its next command. */
static void kill_all(pid_t pid, int pidfd) {
    (void) pidfd_send_signal(pidfd, SIGSTOP, NULL, 0);
    (void) process_tree_signal(pid, SIGKILL, NULL, 0);
    (void) pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
}

/* Returns 0 or a negative errno. */
static int visit(pid_t pid, const struct search *search) {
    _cleanup_close_ int fd = -1;
    struct environ_run *run;
    int k = find_run(search, pid, &run);

    if (k < 0 || !run)
        return k;
    fd = pidfd_open(pid, 0);
    if (fd < 0 && errno == ESRCH)
        return 0;
    if (fd >= 0)
        k = find_run(search, pid, &run); /* the pid may belong to another process by now */
    if (k < 0 || !run)
        return k;
    run->n_found++;
    run->found = pid;
    if (fd >= 0 && search->kill)
        kill_all(pid, fd);
    return 0;
}

static int process_environ_on_entry(const char *name, void *userdata) {
    struct search *search = userdata;
    uint64_t pid;
    int r = 0;

    if (number_parse(name, INT32_MAX, &pid) == 0 && (pid_t) pid != getpid())
        r = visit((pid_t) pid, search);
    if (r < 0)
        search->error = r;
    return 0;
}

static int process_environ_each(struct search *search) {
    _cleanup_free_ char *buffer = malloc(ENVIRON_MAX);
    int r;

    for (size_t i = 0; i < search->n; i++) {
        search->runs[i].n_found = 0;
        search->runs[i].found = 0;
    }
    if (!buffer)
        return -ENOMEM;
    search->buffer = buffer;
    r = directory_each("/proc", process_environ_on_entry, search);
    return r < 0 ? r : search->error;
}

int process_environ_kill(struct environ_run *runs, size_t n) {
    return process_environ_each(&(struct search) {.runs = runs, .n = n, .kill = true});
}

pid_t process_environ_find(const char *run) {
    struct environ_run wanted = {.run = run};
    int r = process_environ_each(&(struct search) {.runs = &wanted, .n = 1});

    return wanted.found > 0 ? wanted.found : r;
}
