/* SPDX-License-Identifier: MIT */
/* Looks through /proc for the processes of runs. */
#include "cli/doctor/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"
#include "base/text.h"

#define LOOK_TIME USEC_PER_SEC
#define ENVIRON_MAX (256 * 1024)
#define STAT_MAX 4096
#define PATH_SIZE 64

struct look {
    struct processes *found;
    const char *host, *namespace, *holds;
    usec_t until;
};

struct children {
    pid_t parent;
    const char *name;
    bool has;
};

struct stat_line { /* of /proc/PID/stat */
    char name[32], state;
    pid_t parent;
    usec_t started; /* boottime */
};

static int read_proc(pid_t pid, const char *file, size_t max, char **ret, size_t *ret_size) {
    _cleanup_close_ int fd = -1;
    char path[PATH_SIZE];

    (void) snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : file_read_fd(fd, max, ret, ret_size);
}

/* The name may have spaces and parentheses. 0 or a negative errno. */
static int read_stat(pid_t pid, struct stat_line *ret) {
    _cleanup_free_ char *text = NULL;
    unsigned long long ticks;
    char *begin, *end;
    int parent, r;
    size_t size = 0;

    r = read_proc(pid, "stat", STAT_MAX, &text, &size);
    if (r < 0 || !text)
        return r < 0 ? r : -ENODATA;
    begin = strchr(text, '(');
    end = strrchr(text, ')');
    if (!begin || !end || end < begin)
        return -EBADMSG;
    *end = '\0';
    if (sscanf(end + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &ret->state, &parent, &ticks) != 3)
        return -EBADMSG;
    (void) snprintf(ret->name, sizeof(ret->name), "%s", begin + 1);
    ret->parent = parent;
    ret->started = ticks * USEC_PER_SEC / (usec_t) sysconf(_SC_CLK_TCK);
    return 0;
}

char process_state(pid_t pid) {
    struct stat_line line;

    return read_stat(pid, &line) == 0 ? line.state : '\0';
}

/* --- the environment --- */

static bool is_same(const char *value, const char *expected) {
    return value && strcmp(value, expected) == 0;
}

/* Stores BERTH_RUN if the run is one of this host. Negative errno. */
static int read_run(const struct look *look, pid_t pid, char run[static ID_TEXT_SIZE]) {
    _cleanup_free_ char *text = NULL;
    const char *value;
    size_t size = 0;
    int r = read_proc(pid, "environ", ENVIRON_MAX, &text, &size);

    if (r < 0 || !text)
        return r == -EFBIG ? 0 : r;
    value = text_find_variable(text, size, "BERTH_RUN=");
    if (value && strlen(value) == ID_TEXT_SIZE - 1 &&
        is_same(text_find_variable(text, size, "BERTH_HOST="), look->host) &&
        is_same(text_find_variable(text, size, "BERTH_NAMESPACE="), look->namespace))
        (void) snprintf(run, ID_TEXT_SIZE, "%s", value);
    return 0;
}

/* --- open holds --- */

struct descriptors {
    pid_t pid;
    const char *holds;
    char hold[ID_TEXT_SIZE];
};

static int look_at_descriptor(const char *name, void *userdata) {
    struct descriptors *d = userdata;
    char path[PATH_SIZE], target[512];
    size_t length = strlen(d->holds);
    ssize_t n;

    (void) snprintf(path, sizeof(path), "/proc/%d/fd/%.10s", (int) d->pid, name);
    n = readlink(path, target, sizeof(target) - 1);
    if (n < 0)
        return 0;
    target[n] = '\0';
    if (strncmp(target, d->holds, length) == 0 && target[length] == '/' &&
        strlen(target + length + 1) == ID_TEXT_SIZE - 1)
        (void) snprintf(d->hold, sizeof(d->hold), "%s", target + length + 1);
    return 0;
}

static int read_hold(const struct look *look, pid_t pid, char hold[static ID_TEXT_SIZE]) {
    struct descriptors d = {.pid = pid, .holds = look->holds};
    char path[PATH_SIZE];
    int r;

    (void) snprintf(path, sizeof(path), "/proc/%d/fd", (int) pid);
    r = directory_each(path, look_at_descriptor, &d);
    (void) snprintf(hold, ID_TEXT_SIZE, "%s", d.hold);
    return r;
}

/* --- all of them --- */

static bool is_hidden(int r) {
    return r == -EACCES || r == -EPERM;
}

static int add(struct processes *all, const struct process *p) {
    if (!array_grow(all->items, all->n))
        return -ENOMEM;
    all->items[all->n++] = *p;
    return 0;
}

static bool parse_pid(const char *name, pid_t *ret) {
    uint64_t number;

    if (number_parse(name, INT32_MAX, &number) != 0 || number == 0)
        return false;
    *ret = (pid_t) number;
    return true;
}

static int look_at(const char *name, void *userdata) {
    struct look *look = userdata;
    struct process p = {0};
    struct stat_line line;
    int r;

    if (!parse_pid(name, &p.pid) || p.pid == 1) /* no run starts that one */
        return 0;
    if (clock_boottime() > look->until) {
        look->found->is_partial = true;
        return 0;
    }
    r = read_run(look, p.pid, p.run);
    if (r == 0 && look->holds)
        r = read_hold(look, p.pid, p.hold);
    if (is_hidden(r))
        look->found->is_partial = true;
    if (r == -ENOMEM)
        return r;
    if ((!p.run[0] && !p.hold[0]) || read_stat(p.pid, &line) < 0)
        return 0;
    p.state = line.state;
    p.age = usec_sub(clock_boottime(), line.started);
    (void) snprintf(p.name, sizeof(p.name), "%s", line.name);
    return add(look->found, &p);
}

int processes_find(struct processes *ret, const char *host, const char *namespace, const char *holds) {
    struct look look = {ret, host, namespace, holds, usec_add(clock_boottime(), LOOK_TIME)};

    return directory_each("/proc", look_at, &look) == -ENOMEM ? -ENOMEM : 0;
}

void processes_done(struct processes *all) {
    free(all->items);
    *all = (struct processes){0};
}

static int look_for_child(const char *name, void *userdata) {
    struct children *c = userdata;
    struct stat_line line;
    pid_t pid;

    if (parse_pid(name, &pid) && read_stat(pid, &line) == 0 && line.parent == c->parent &&
        line.state != 'Z' && strcmp(line.name, c->name) == 0)
        c->has = true;
    return 0;
}

bool process_has_child(pid_t parent, const char *name) {
    struct children c = {.parent = parent, .name = name};

    (void) directory_each("/proc", look_for_child, &c);
    return c.has;
}
