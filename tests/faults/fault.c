/* SPDX-License-Identifier: MIT */

/* All tables of faults, and the processes that faults hit. */

#include "tests/faults/fault.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/harness/host/net.h"
#include "tests/harness/test.h"

static const struct fault *const tables[] = {faults_process, faults_redis, faults_memory, faults_net, faults_network,
                                             faults_clock, faults_host, faults_scarce, faults_keys};

const struct fault *faults_get(size_t i) {
    for (size_t t = 0; t < ELEMENTSOF(tables); t++)
        for (const struct fault *f = tables[t]; f->name; f++)
            if (i-- == 0)
                return f;
    return NULL;
}

size_t faults_count(void) {
    size_t n = 0;

    while (faults_get(n))
        n++;
    return n;
}

const struct fault *faults_find(const char *name) {
    for (size_t i = 0; faults_get(i); i++)
        if (strcmp(faults_get(i)->name, name) == 0)
            return faults_get(i);
    return NULL;
}

const char *fault_lacks(const struct fault *f) {
    if ((f->flags & (FAULT_TMPFS | (FAULT_USER & ~FAULT_ALONE))) && geteuid() != 0)
        return "needs root";
    return f->flags & FAULT_NETWORK ? net_lacks() : NULL;
}

/* --- processes --- */

struct process {
    int pid, parent;
    char state, name[32];
    bool ours;
};

struct processes {
    struct process items[2048];
    size_t n;
};

static void read_process(struct processes *ps, int pid) {
    struct process *p = &ps->items[ps->n];
    _cleanup_fclose_ FILE *f = NULL;
    char path[64], line[512], *open, *close;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    f = fopen(path, "re");
    if (!f || ps->n == ELEMENTSOF(ps->items) || !fgets(line, sizeof(line), f) || !(open = strchr(line, '(')) || !(close = strrchr(line, ')')))
        return;
    *close = '\0';
    if (sscanf(close + 1, " %c %d", &p->state, &p->parent) != 2 || p->state == 'Z')
        return;
    snprintf(p->name, sizeof(p->name), "%s", open + 1);
    p->pid = pid;
    p->ours = pid == getpid();
    ps->n++;
}

/* Lists the descendants of this program. No other process is ever hit. */
static void read_processes(struct processes *ps) {
    DIR *proc = opendir("/proc");
    bool grew = true;

    ps->n = 0;
    for (struct dirent *entry; proc && (entry = readdir(proc));)
        if (strtol(entry->d_name, NULL, 10) > 0)
            read_process(ps, (int) strtol(entry->d_name, NULL, 10));
    if (proc)
        (void) closedir(proc);
    while (grew) {
        grew = false;
        for (size_t i = 0; i < ps->n; i++)
            for (size_t k = 0; k < ps->n && !ps->items[i].ours; k++)
                if (ps->items[k].ours && ps->items[k].pid == ps->items[i].parent)
                    grew = ps->items[i].ours = true;
    }
}

static bool mentions(int pid, const char *file, const char *text) {
    char path[64], buffer[8192];
    _cleanup_close_ int fd = -1;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, buffer, sizeof(buffer));
    return n > 0 && memmem(buffer, (size_t) n, text, strlen(text)) != NULL;
}

static bool is_of(const struct process *p, const struct host *h, enum kind kind) {
    static const char *const names[] = {
        [KIND_BERTHD] = "berthd", [KIND_RUNNER] = "berth-runner", [KIND_GUARD] = "berth-guard", [KIND_RUN] = "berth", [KIND_COMMAND] = "witness",
    };
    char host[64];

    if (!p->ours || p->pid == getpid() || strcmp(p->name, names[kind]) != 0)
        return false;
    snprintf(host, sizeof(host), "BERTH_HOST=%s", h->name);
    switch (kind) {
    case KIND_COMMAND: return mentions(p->pid, "environ", host);
    case KIND_RUN: return mentions(p->pid, "environ", h->socket) && mentions(p->pid, "cmdline", "--name");
    case KIND_BERTHD:
    case KIND_RUNNER:
    case KIND_GUARD: return mentions(p->pid, "cmdline", h->config);
    }
    return false;
}

static unsigned each_process(struct bed *b, size_t host, enum kind kind, void (*fn)(int pid, void *userdata), void *userdata) {
    static struct processes ps;
    unsigned n = 0;

    read_processes(&ps);
    for (size_t i = 0; i < ps.n; i++)
        if (is_of(&ps.items[i], b->load.hosts[host].host, kind)) {
            fn(ps.items[i].pid, userdata);
            n++;
        }
    return n;
}

struct bound {
    int resource;
    uint64_t most;
};

static void set_bound(int pid, void *userdata) {
    const struct bound *b = userdata;
    struct rlimit limit;

    if (prlimit(pid, b->resource, NULL, &limit) < 0)
        return;
    limit.rlim_cur = b->most < limit.rlim_max ? b->most : limit.rlim_max;
    (void) prlimit(pid, b->resource, &limit, NULL);
}

unsigned bound(struct bed *b, size_t host, enum kind kind, int resource, uint64_t most) {
    struct bound bound = {resource, most};

    return each_process(b, host, kind, set_bound, &bound);
}

unsigned hit(struct bed *b, struct injection *i, enum kind kind, int signal, unsigned most, bool pin) {
    static struct processes ps;
    unsigned n = 0;

    read_processes(&ps);
    for (size_t k = 0; k < ps.n && n < most; k++) {
        int fd;

        if (!is_of(&ps.items[k], b->load.hosts[i->host].host, kind))
            continue;
        fd = (int) syscall(SYS_pidfd_open, ps.items[k].pid, 0);
        /* Checked again, because the pid cannot become another process from now on. */
        if (fd < 0 || !is_of(&ps.items[k], b->load.hosts[i->host].host, kind)) {
            (void) close_fd(fd);
            continue;
        }
        n += syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) == 0;
        if (pin && i->n_pinned < PINNED_MAX)
            i->pinned[i->n_pinned++] = fd;
        else
            (void) close(fd);
    }
    i->n_hit += n;
    return n;
}

void unpin(struct injection *i) {
    while (i->n_pinned > 0) {
        int fd = i->pinned[--i->n_pinned];

        (void) syscall(SYS_pidfd_send_signal, fd, SIGCONT, NULL, 0);
        (void) close(fd);
    }
}

void touch(struct bed *b, const struct injection *i, unsigned leases) {
    load_touch(&b->load, i->host, clock_boottime() + (i->until > i->at ? i->until - i->at : 0) + leases * LOAD_LEASE);
}

void restore_limit(struct bed *b, struct injection *i) {
    (void) i;
    b->limit_owed = !load_set_limit(&b->load, "db", LOAD_DB);
}

void restore_pattern(struct bed *b, struct injection *i) {
    (void) i;
    b->pattern_owed = !load_set_limit(&b->load, "tenant/*", LOAD_TENANT);
}

void revive(struct bed *b, size_t host) {
    struct load_host *h = &b->load.hosts[host];

    if (b->n_down[host] > 0)
        return;
    if (!h->host->berthd || h->host->berthd->ended) {
        load_write_config(&b->load, host); /* another fault may have broken it; berthd would refuse to start */
        host_launch(h->host);
    }
    h->down = false;
}
