/* SPDX-License-Identifier: MIT */

/* The hold of one granted `berth run`. It is over when no process has the write end of the FIFO and the command has
 * ended. */
#include "daemon/adhoc/hold.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/stat.h>

#include "base/failpoint.h"
#include "base/file.h"
#include "base/process/process-tree.h"
#include "base/removals.h"
#include "base/timer.h"
#include "daemon/adhoc/hold-record.h"

/* A client reports how its command ended, then closes the write end. If both arrive in one turn, the report is
 * handled first. */
#define PRIORITY (SD_EVENT_PRIORITY_NORMAL + 20)

struct hold {
    struct hold_handler handler;
    sd_event *event;
    char *fifo, *record;         /* paths */
    int fifo_fd;                 /* read end; -1: no process has the write end any more */
    sd_event_source *fifo_source;
    int pidfd;                   /* of the command; -1: unknown, or it has ended */
    sd_event_source *pidfd_source;
    pid_t pid;                   /* of the command, also when it has ended; 0: unknown */
    uint64_t start_ticks;        /* 0: could not be read; the record then omits the pid */
    struct defer over_turn;      /* set if the hold was over when it was opened: calls on_over */
    bool over;                   /* on_over was called */
};

struct hold *hold_detach(struct hold *h) {
    if (!h)
        return NULL;
    defer_done(&h->over_turn);
    h->fifo_source = sd_event_source_disable_unref(h->fifo_source);
    h->pidfd_source = sd_event_source_disable_unref(h->pidfd_source);
    h->fifo_fd = close_fd(h->fifo_fd);
    h->pidfd = close_fd(h->pidfd);
    h->event = sd_event_unref(h->event);
    free(h->fifo);
    free(h->record);
    free(h);
    return NULL;
}

static int hold_allocate(struct hold **ret, sd_event *event, const char *directory, const char *run,
                         const struct hold_handler *handler) {
    _cleanup_(hold_detachp) struct hold *h = NULL;

    if (!id_is_valid(run))
        return -EINVAL;
    h = calloc(1, sizeof(*h));
    if (!h)
        return -ENOMEM;
    h->fifo_fd = h->pidfd = -1;
    h->handler = *handler;
    h->event = sd_event_ref(event);
    if (asprintf(&h->fifo, "%s/%s", directory, run) < 0) {
        h->fifo = NULL;
        return -ENOMEM;
    }
    if (asprintf(&h->record, "%s/%s" HOLD_RECORD_SUFFIX, directory, run) < 0) {
        h->record = NULL;
        return -ENOMEM;
    }
    *ret = steal_pointer(&h);
    return 0;
}

int hold_write_record(struct hold *h, const struct message_writer *record) {
    struct message_writer w = *record;
    int r = hold_record_put_identity(&w, h->pid, h->start_ticks);

    if (r < 0)
        return r;
    return w.error ? w.error : file_write_atomic(h->record, w.text, w.size, 0600);
}

static void hold_check_over(struct hold *h) {
    if (h->over || h->fifo_fd >= 0 || h->pidfd >= 0)
        return;
    h->over = true;
    h->handler.on_over(h, h->handler.userdata);
}

/* Returns whether a process still has the write end. Reads nothing: a command that writes into the FIFO fills it. */
static bool fifo_is_held(int fd) {
    struct pollfd p = {.fd = fd};

    return poll(&p, 1, 0) <= 0 || !(p.revents & POLLHUP);
}

/* Opens and closes the write end: the reader of a FIFO gets no hang-up for writers that closed it before. */
static int fifo_touch(const char *path) {
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return -errno;
    close_fd(fd);
    return 0;
}

static int hold_on_fifo(_unused_ sd_event_source *source, int fd, _unused_ uint32_t revents, void *userdata) {
    struct hold *h = userdata;

    if (fifo_is_held(fd))
        return 0;
    h->fifo_source = sd_event_source_disable_unref(h->fifo_source);
    h->fifo_fd = close_fd(h->fifo_fd);
    hold_check_over(h);
    return 0;
}

static int hold_on_command_gone(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents,
                                void *userdata) {
    struct hold *h = userdata;

    h->pidfd_source = sd_event_source_disable_unref(h->pidfd_source);
    h->pidfd = close_fd(h->pidfd);
    hold_check_over(h);
    return 0;
}

static void hold_on_turn(void *userdata) {
    hold_check_over(userdata);
}

static int hold_open_fifo(struct hold *h) {
    _cleanup_close_ int fd = open(h->fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    struct stat st;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISFIFO(st.st_mode))
        return -ENOTSUP;
    h->fifo_fd = steal_fd(&fd);
    return 0;
}

static int hold_watch_fifo(struct hold *h) {
    /* No events: epoll reports a hang-up in any case, and a write into the FIFO does not wake berthd. */
    int r = sd_event_add_io(h->event, &h->fifo_source, h->fifo_fd, 0, hold_on_fifo, h);

    return r < 0 ? r : sd_event_source_set_priority(h->fifo_source, PRIORITY);
}

static bool pidfd_is_alive(int pidfd) {
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    return poll(&p, 1, 0) == 0;
}

bool hold_is_released(const struct hold *h) {
    return (h->fifo_fd < 0 || !fifo_is_held(h->fifo_fd)) && (h->pidfd < 0 || !pidfd_is_alive(h->pidfd));
}

/* Watches the command by pid. client: must be an ancestor; 0: any process. want_ticks: must be its start time; 0: any.
 * -ESRCH: the command has ended. */
static int hold_open_command(struct hold *h, pid_t client, pid_t pid, uint64_t want_ticks) {
    _cleanup_close_ int pidfd = -1;
    _cleanup_(sd_event_source_disable_unrefp) sd_event_source *source = NULL;
    uint64_t ticks = 0;
    int r;

    if (pid <= 1)
        return -EINVAL;
    pidfd = pidfd_open(pid, 0);
    if (pidfd < 0)
        return -errno;
    /* /proc described the process behind pidfd only if that process still lives afterwards. */
    if (client > 0 && process_tree_contains(client, NULL, 0, pid) != 1)
        return pidfd_is_alive(pidfd) ? -EPERM : -ESRCH;
    r = process_start_time(pid, &ticks);
    if (!pidfd_is_alive(pidfd))
        return -ESRCH;
    if (want_ticks > 0 && (r < 0 || ticks != want_ticks))
        return -ESRCH;
    r = sd_event_add_io(h->event, &source, pidfd, EPOLLIN, hold_on_command_gone, h);
    if (r < 0)
        return r;
    r = sd_event_source_set_priority(source, PRIORITY);
    if (r < 0)
        return r;
    sd_event_source_disable_unref(h->pidfd_source);
    close_fd(h->pidfd);
    h->pidfd_source = steal_pointer(&source);
    h->pidfd = steal_fd(&pidfd);
    h->pid = pid;
    h->start_ticks = ticks;
    return 0;
}

static void hold_unlink(const struct hold *h) {
    /* The record first: after a crash in between, hold_recover() removes a FIFO without a record. */
    if (h->handler.removals) {
        (void) removals_remove(h->handler.removals, h->record);
        (void) removals_remove(h->handler.removals, h->fifo);
        return;
    }
    (void) unlink(h->record);
    (void) unlink(h->fifo);
}

int hold_new(struct hold **ret, sd_event *event, const char *directory, const char *run, const struct message_writer *record,
             const struct hold_handler *handler, int *ret_write_fd) {
    _cleanup_(hold_detachp) struct hold *h = NULL;
    _cleanup_close_ int write_fd = -1;
    int r = hold_allocate(&h, event, directory, run, handler);

    if (r < 0)
        return r;
    if (mkfifo(h->fifo, 0600) < 0)
        return -errno;
    FAILPOINT("hold-fifo-made");
    r = hold_open_fifo(h);
    if (r < 0)
        goto fail;
    write_fd = open(h->fifo, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (write_fd < 0) {
        r = -errno;
        goto fail;
    }
    r = hold_watch_fifo(h);
    if (r < 0)
        goto fail;
    r = hold_write_record(h, record);
    if (r < 0)
        goto fail;
    FAILPOINT("hold-record-written");
    *ret_write_fd = steal_fd(&write_fd);
    *ret = steal_pointer(&h);
    return 0;
fail:
    hold_unlink(h);
    return r;
}

int hold_open(struct hold **ret, sd_event *event, const char *directory, const char *run, const struct message *record,
              const struct hold_handler *handler) {
    _cleanup_(hold_detachp) struct hold *h = NULL;
    uint64_t ticks;
    pid_t pid;
    int r = hold_allocate(&h, event, directory, run, handler);

    if (r < 0)
        return r;
    if (hold_record_is_of_this_boot(record)) {
        r = hold_open_fifo(h);
        if (r < 0 && r != -ENOENT) /* without a FIFO the command alone decides */
            return r;
        r = hold_record_get_identity(record, &pid, &ticks) ? hold_open_command(h, 0, pid, ticks) : 0;
        if (r == -ESRCH) {
            h->pid = pid;
            h->start_ticks = ticks;
        }
        if (r < 0 && r != -ESRCH && r != -EINVAL)
            return r;
    }
    if (h->fifo_fd >= 0) {
        r = fifo_touch(h->fifo);
        if (r < 0)
            return r;
        if (!fifo_is_held(h->fifo_fd))
            h->fifo_fd = close_fd(h->fifo_fd);
    }
    /* Over already: a report may wait in the listening socket, which outlives berthd. */
    r = h->fifo_fd >= 0 ? hold_watch_fifo(h) : defer_init(&h->over_turn, event, PRIORITY, hold_on_turn, h);
    if (r < 0)
        return r;
    defer_set(&h->over_turn);
    *ret = steal_pointer(&h);
    return 0;
}

int hold_watch_command(struct hold *h, pid_t client, pid_t pid) {
    int r;

    if (h->over)
        return -ESRCH;
    r = hold_open_command(h, client, pid, 0);
    if (r == -ESRCH && process_is_in_own_namespace(client))
        h->pid = pid; /* it was a process of this host */
    return r;
}

pid_t hold_get_pid(const struct hold *h) {
    return h->pid;
}

pid_t hold_get_command(const struct hold *h) {
    return h->pidfd >= 0 && pidfd_is_alive(h->pidfd) ? h->pid : 0;
}

struct hold *hold_free(struct hold *h) {
    if (h)
        hold_unlink(h);
    return hold_detach(h);
}
