/* SPDX-License-Identifier: MIT */
#include "base/discard.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/connection.h"
#include "base/list.h"
#include "base/timer.h"

#define CHILDREN_MAX 8                      /* at once; a hanging file system may delay the end of a process */
#define CHILD_PAUSE (100 * USEC_PER_MSEC)   /* between two children: a flood of connections causes few forks */

struct child {
    struct list link;         /* on discard->children */
    struct discard *discard;
    pid_t pid;
    int pidfd;
    sd_event_source *source;
};

struct discard {
    sd_event *event;
    int *fds;                 /* to be closed by a child */
    size_t n;
    struct list children;
    size_t n_children;
    struct timer timer;       /* set while connections are pending */
    usec_t next;              /* boottime of the earliest next child */
};

static struct child *child_free(struct child *c) {
    if (!c)
        return NULL;
    if (list_is_linked(&c->link)) {
        list_unlink(&c->link);
        c->discard->n_children--;
    }
    sd_event_source_disable_unref(c->source);
    close_fd(c->pidfd);
    free(c);
    return NULL;
}
DEFINE_CLEANUP(struct child, child_free)

static int child_on_end(_unused_ sd_event_source *source, int pidfd, _unused_ uint32_t revents, void *userdata) {
    siginfo_t info;

    /* berth-runner reaps all its children, including this one. */
    (void) waitid(P_PIDFD, (id_t) pidfd, &info, WEXITED | WNOHANG);
    child_free(userdata);
    return 0;
}

static _Noreturn void child_main(pid_t parent) {
    /* A process that ends by _exit() or a signal is PF_EXITING before its descriptors are closed. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
        _exit(0);
    for (;;)
        (void) pause();
}

/* The child has copies of all pending descriptors. */
static int child_new(struct child **ret, struct discard *d) {
    _cleanup_(child_freep) struct child *c = calloc(1, sizeof(*c));
    pid_t parent = getpid();
    int r;

    if (!c)
        return -ENOMEM;
    c->discard = d;
    c->pidfd = -1;
    list_init(&c->link);
    c->pid = fork();
    if (c->pid < 0)
        return -errno;
    if (c->pid == 0)
        child_main(parent);
    c->pidfd = pidfd_open(c->pid, 0);
    r = c->pidfd < 0 ? -errno : sd_event_add_io(d->event, &c->source, c->pidfd, EPOLLIN, child_on_end, c);
    if (r < 0) { /* it holds no last reference yet, so it ends quickly */
        (void) kill(c->pid, SIGKILL);
        (void) waitpid(c->pid, NULL, 0);
        return r;
    }
    list_append(&d->children, &c->link);
    d->n_children++;
    *ret = steal_pointer(&c);
    return 0;
}

static int discard_all(struct discard *d) {
    struct child *c = NULL;
    int r = child_new(&c, d);

    if (r < 0)
        return r;
    while (d->n > 0) /* none of these is the last reference, because the child lives until it is killed */
        close_fd(d->fds[--d->n]);
    (void) kill(c->pid, SIGKILL);
    return 0;
}

static void discard_on_time(void *userdata) {
    struct discard *d = userdata;

    d->next = usec_add(clock_boottime(), CHILD_PAUSE);
    if (d->n_children < CHILDREN_MAX)
        (void) discard_all(d); /* without a process or memory they stay pending */
    timer_set(&d->timer, d->n > 0 ? d->next : USEC_INFINITY);
}

void discard_connection(struct discard *d, int fd) {
    if (fd < 0)
        return;
    if (connection_end(fd)) {
        close_fd(fd);
        return;
    }
    if (!array_grow(d->fds, d->n))
        return; /* it stays open, which is better than a close that sleeps */
    d->fds[d->n++] = fd;
    if (d->n == 1)
        timer_set(&d->timer, d->next);
}

int discard_new(struct discard **ret, sd_event *event) {
    _cleanup_(discard_freep) struct discard *d = calloc(1, sizeof(*d));
    int r;

    if (!d)
        return -ENOMEM;
    d->event = sd_event_ref(event);
    list_init(&d->children);
    r = timer_init(&d->timer, event, SD_EVENT_PRIORITY_NORMAL, discard_on_time, d);
    if (r < 0)
        return r;
    *ret = steal_pointer(&d);
    return 0;
}

struct discard *discard_free(struct discard *d) {
    if (!d)
        return NULL;
    if (d->n > 0)
        (void) discard_all(d); /* else they stay open until this process ends, which is now */
    while (!list_is_empty(&d->children)) {
        struct child *c = list_first(&d->children, struct child, link);

        (void) child_on_end(NULL, c->pidfd, 0, c);
    }
    timer_done(&d->timer);
    sd_event_unref(d->event);
    free(d->fds);
    free(d);
    return NULL;
}
