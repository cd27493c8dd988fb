/* SPDX-License-Identifier: MIT */
#include "base/record-writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/file.h"

enum step { STEP_IDLE, STEP_WANTED, STEP_DONE, STEP_QUIT };

/* Shared by both threads. The mutex guards `step`. While that is WANTED the text belongs to the writer's thread. */
struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum step step;
    char *text;
    size_t size;
    bool replaces;
    int error;
    int done_fd; /* eventfd */
    int fd;      /* of the file, for the writer's thread; -1: not open */
    char path[];
};

struct record_writer {
    struct shared *shared;
    pthread_t thread;
    bool is_busy, has_thread;
    sd_event_source *source;
    record_writer_fn fn;
    void *userdata;
};

/* --- the thread --- */

/* Appends to the open file, unless it was removed. */
static int append(struct shared *shared) {
    struct stat st;
    int r;

    if (shared->fd < 0)
        shared->fd = open(shared->path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (shared->fd < 0 || fstat(shared->fd, &st) < 0)
        return -errno;
    if (st.st_nlink == 0 || !S_ISREG(st.st_mode))
        return -ESTALE;
    r = file_write(shared->fd, shared->text, shared->size);
    if (r < 0)
        return r;
    FAILPOINT("record-written");
    return fdatasync(shared->fd) < 0 ? -errno : 0;
}

static int write_text(struct shared *shared) {
    int r;

    if (!shared->replaces) {
        r = append(shared);
        if (r == 0)
            return 0;
    } else
        r = file_write_durable(shared->path, shared->text, shared->size, 0600);
    shared->fd = close_fd(shared->fd);
    return r;
}

static void shared_free(struct shared *shared) {
    if (!shared)
        return;
    (void) close_fd(shared->fd);
    (void) close_fd(shared->done_fd);
    (void) pthread_cond_destroy(&shared->changed);
    (void) pthread_mutex_destroy(&shared->mutex);
    free(shared->text);
    free(shared);
}

static void *run(void *data) {
    struct shared *shared = data;
    const uint64_t one = 1;

    (void) pthread_mutex_lock(&shared->mutex);
    while (shared->step != STEP_QUIT) {
        int r;

        if (shared->step != STEP_WANTED) {
            (void) pthread_cond_wait(&shared->changed, &shared->mutex);
            continue;
        }
        (void) pthread_mutex_unlock(&shared->mutex);
        r = write_text(shared);
        (void) pthread_mutex_lock(&shared->mutex);
        shared->error = r;
        if (shared->step == STEP_QUIT)
            break;
        shared->step = STEP_DONE;
        (void) pthread_cond_broadcast(&shared->changed);
        while (write(shared->done_fd, &one, sizeof(one)) < 0 && errno == EINTR)
            ;
    }
    (void) pthread_mutex_unlock(&shared->mutex);
    shared_free(shared);
    return NULL;
}

/* --- the event loop --- */

static int finish(struct record_writer *writer) {
    struct shared *shared = writer->shared;
    uint64_t n;

    while (read(shared->done_fd, &n, sizeof(n)) < 0 && errno == EINTR)
        ;
    shared->step = STEP_IDLE;
    free(shared->text);
    shared->text = NULL;
    writer->is_busy = false;
    return shared->error;
}

static int record_writer_on_done(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t events,
                                 void *userdata) {
    struct record_writer *writer = userdata;
    bool is_done;
    int r = 0;

    (void) pthread_mutex_lock(&writer->shared->mutex);
    is_done = writer->shared->step == STEP_DONE;
    if (is_done)
        r = finish(writer);
    (void) pthread_mutex_unlock(&writer->shared->mutex);
    if (is_done)
        writer->fn(r, writer->userdata);
    return 0;
}

static int make_shared(struct shared **ret, const char *path) {
    struct shared *shared = calloc(1, sizeof(*shared) + strlen(path) + 1);
    pthread_condattr_t attributes;

    if (!shared)
        return -ENOMEM;
    memcpy(shared->path, path, strlen(path) + 1);
    shared->fd = -1;
    /* None of these fails on Linux. */
    (void) pthread_mutex_init(&shared->mutex, NULL);
    (void) pthread_condattr_init(&attributes);
    (void) pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void) pthread_cond_init(&shared->changed, &attributes);
    (void) pthread_condattr_destroy(&attributes);
    shared->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (shared->done_fd < 0) {
        int r = -errno;

        shared_free(shared);
        return r;
    }
    *ret = shared;
    return 0;
}

/* Starts the thread with all signals blocked: they are for the thread of the event loop. */
static int start_thread(struct record_writer *writer) {
    sigset_t all, before;
    int r;

    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_BLOCK, &all, &before);
    r = -pthread_create(&writer->thread, NULL, run, writer->shared);
    (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
    writer->has_thread = r == 0;
    return r;
}

int record_writer_new(struct record_writer **ret, sd_event *event, const char *path, record_writer_fn fn,
                      void *userdata) {
    struct record_writer *writer = calloc(1, sizeof(*writer));
    int r = writer ? 0 : -ENOMEM;

    if (r < 0)
        return r;
    writer->fn = fn;
    writer->userdata = userdata;
    r = make_shared(&writer->shared, path);
    if (r >= 0)
        r = sd_event_add_io(event, &writer->source, writer->shared->done_fd, EPOLLIN, record_writer_on_done,
                            writer);
    if (r >= 0)
        r = start_thread(writer);
    if (r < 0) {
        (void) record_writer_free(writer);
        return r;
    }
    *ret = writer;
    return 0;
}

bool record_writer_is_busy(const struct record_writer *writer) {
    return writer->is_busy;
}

void record_writer_write(struct record_writer *writer, char *text, size_t size, bool replaces) {
    struct shared *shared = writer->shared;

    (void) pthread_mutex_lock(&shared->mutex);
    shared->text = text;
    shared->size = size;
    shared->replaces = replaces;
    shared->step = STEP_WANTED;
    writer->is_busy = true;
    (void) pthread_cond_broadcast(&shared->changed);
    (void) pthread_mutex_unlock(&shared->mutex);
}

bool record_writer_wait(struct record_writer *writer, usec_t patience, int *ret_error) {
    usec_t until = usec_add(clock_monotonic(), patience);
    struct timespec limit = {.tv_sec = (time_t) (until / USEC_PER_SEC),
                             .tv_nsec = (long) (until % USEC_PER_SEC) * 1000};
    struct shared *shared = writer->shared;
    bool is_done;

    (void) pthread_mutex_lock(&shared->mutex);
    while (shared->step == STEP_WANTED &&
           pthread_cond_timedwait(&shared->changed, &shared->mutex, &limit) == 0)
        ;
    is_done = shared->step != STEP_WANTED;
    if (shared->step == STEP_DONE)
        *ret_error = finish(writer);
    (void) pthread_mutex_unlock(&shared->mutex);
    return is_done;
}

/* A thread that still waits for the disk frees the shared memory when it ends. */
struct record_writer *record_writer_free(struct record_writer *writer) {
    bool is_idle = true;
    int error;

    if (!writer)
        return NULL;
    writer->source = sd_event_source_disable_unref(writer->source);
    if (!writer->has_thread) {
        shared_free(writer->shared);
        free(writer);
        return NULL;
    }
    if (writer->is_busy)
        is_idle = record_writer_wait(writer, 0, &error);
    (void) pthread_mutex_lock(&writer->shared->mutex);
    writer->shared->step = STEP_QUIT;
    (void) pthread_cond_broadcast(&writer->shared->changed);
    (void) pthread_mutex_unlock(&writer->shared->mutex);
    if (is_idle)
        (void) pthread_join(writer->thread, NULL);
    else
        (void) pthread_detach(writer->thread);
    free(writer);
    return NULL;
}
