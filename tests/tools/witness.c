/* SPDX-License-Identifier: MIT */

/* A command that knows nothing of berth and checks its limits. It records its own start and end, each as
 * one line in one write. It holds a kernel lock until it and its children have ended, also by SIGKILL. At
 * its start it looks for the locks of others, twice. The holders of locks that it saw both times lived at
 * one instant, between the two looks. So it counts what runs at once, also if records are lost.
 *
 *     witness FOLDER [--id TEXT] [--for MSEC] [--gate FIFO] [--ignore-term] [--child] [--exit CODE]
 *
 * --for         end this long after the start (default 0)
 * --gate        end when the FIFO can be read or its writer is gone
 * --ignore-term record TERM and go on
 * --child       end at once, and go on in a process that is left behind (double fork)
 * --exit        exit with this code
 * --id @run     the id is BERTH_RUN
 * --id @due     the id is HOST/JOB/DUE/ATTEMPT, or HOST/JOB/OF-JOB/OF-DUE/EVENT for a hook
 *
 * FOLDER/records has the lines, FOLDER/locks the locks.
 *
 *     start ID PID USEC POOLS TOKEN NAME HOST SEEN        SEEN: permits in use, its own included: "db:3,net:1"
 *     end ID PID USEC SIGNAL                              SIGNAL: 0 if no signal ended it
 *     ignored ID PID USEC SIGNAL
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/demand.h"
#include "base/number.h"

static const char *arg_folder, *arg_id = "-", *arg_gate;
static usec_t arg_for_usec;
static bool arg_ignore_term, arg_child;
static int arg_exit;

static const char *from_environment(const char *name) {
    const char *value = getenv(name);

    return value && *value ? value : "-";
}

static void fail(const char *what) {
    fprintf(stderr, "witness: %s: %s\n", what, strerror(errno));
    exit(99);
}

static void record(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void record(const char *format, ...) {
    char path[4096], line[8192];
    va_list args;
    int fd, n;

    snprintf(path, sizeof(path), "%s/records", arg_folder);
    va_start(args, format);
    n = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, line, (size_t) n) != n)
        fail(path);
    (void) close(fd);
}

/* The slash of a key cannot stand in the name of a file. */
static void replace(char *text, char from, char to) {
    for (; *text; text++)
        if (*text == from)
            *text = to;
}

/* An OFD lock belongs to the open file: all processes that inherit the descriptor hold the lock together. */
static int lock_file(const char *pools) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[8192], name[256];
    int fd;

    snprintf(path, sizeof(path), "%s/locks", arg_folder);
    (void) mkdir(path, 0777);
    snprintf(name, sizeof(name), "%s@%d", pools, (int) getpid());
    replace(name, '/', '~');
    snprintf(path, sizeof(path), "%s/locks/.%s", arg_folder, name);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666); /* inherited on purpose */
    if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) < 0)
        fail(path);
    /* Others see the file only when it is locked. */
    snprintf(path, sizeof(path), "%s/locks", arg_folder);
    {
        char from[300], to[300];
        int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        snprintf(from, sizeof(from), ".%s", name);
        snprintf(to, sizeof(to), "%s", name);
        if (folder < 0 || renameat(folder, from, folder, to) < 0)
            fail(path);
        (void) close(folder);
    }
    return fd;
}

static bool is_locked(int folder, const char *name) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = openat(folder, name, O_RDWR | O_CLOEXEC);
    bool locked = fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;

    if (fd >= 0)
        (void) close(fd);
    return locked;
}

static void add_demands(struct demands *sum, const struct demands *d) {
    for (size_t i = 0; i < d->n; i++) {
        size_t k = 0;

        while (k < sum->n && strcmp(sum->items[k].pool, d->items[i].pool) != 0)
            k++;
        if (k == sum->n) {
            if (sum->n == DEMAND_POOLS_MAX)
                continue;
            sum->items[sum->n++] = d->items[i];
        } else
            sum->items[k].permits += d->items[i].permits;
    }
}

/* Adds the permits of a lock's holder, which are in the name of the file. */
static void add_holder(struct demands *sum, const char *name) {
    const char *at = strrchr(name, '@');
    struct demands one;
    char pools[512];

    if (!at || (size_t) (at - name) >= sizeof(pools))
        return;
    memcpy(pools, name, (size_t) (at - name));
    pools[at - name] = '\0';
    replace(pools, '~', '/');
    if (demands_parse(pools, &one) == 0)
        add_demands(sum, &one);
}

/* Returns the permits of all holders. One look takes time: the first holder may end before the last one
 * begins. So this function looks twice. */
static const char *count_locked(char buffer[static DEMANDS_TEXT_SIZE]) {
    struct demands sum = {0};
    char path[4096], **names = NULL, **grown;
    size_t n = 0;
    int folder;
    DIR *list;

    snprintf(path, sizeof(path), "%s/locks", arg_folder);
    folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    list = folder < 0 ? NULL : fdopendir(folder);
    if (!list)
        fail(path);
    for (struct dirent *entry; (entry = readdir(list));) {
        if (entry->d_name[0] == '.' || !is_locked(folder, entry->d_name))
            continue;
        grown = realloc(names, (n + 1) * sizeof(*names));
        if (!grown || !(grown[n++] = strdup(entry->d_name)))
            fail("memory");
        names = grown;
    }
    for (size_t i = 0; i < n; i++) {
        if (is_locked(folder, names[i]))
            add_holder(&sum, names[i]);
        free(names[i]);
    }
    free(names);
    (void) closedir(list);
    return sum.n ? demands_format(&sum, buffer) : "-";
}

static int wait_for_end(int signals) {
    struct pollfd fds[2] = {{.fd = signals, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    usec_t until = clock_boottime() + arg_for_usec;

    if (arg_gate && (fds[1].fd = open(arg_gate, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
        fail(arg_gate);
    for (;;) {
        usec_t now = clock_boottime();
        struct signalfd_siginfo info;

        if (!arg_gate && now >= until)
            return 0;
        if (poll(fds, 2, arg_gate ? -1 : (int) ((until - now + 999) / 1000)) < 0)
            continue;
        if (fds[1].revents)
            return 0;
        if (!fds[0].revents || read(signals, &info, sizeof(info)) != sizeof(info))
            continue;
        if (!arg_ignore_term || info.ssi_signo != SIGTERM)
            return (int) info.ssi_signo;
        record("ignored %s %d %" PRIu64 " %u\n", arg_id, (int) getpid(), clock_boottime(), info.ssi_signo);
    }
}

static const char *name_by_due_time(void) {
    bool is_shared = strchr(from_environment("BERTH_POOLS"), '@'); /* any host may run the job */
    static char text[64];

    if (getenv("BERTH_OF_JOB"))
        snprintf(text, sizeof(text), "%s/%s/%s/%s/%s", from_environment("BERTH_HOST"), from_environment("BERTH_JOB"), from_environment("BERTH_OF_JOB"),
                 from_environment("BERTH_OF_DUE"), from_environment("BERTH_OF_EVENT"));
    else
        snprintf(text, sizeof(text), "%s/%s/%s/%s", is_shared ? "any" : from_environment("BERTH_HOST"),
                 from_environment("BERTH_JOB"), from_environment("BERTH_DUE"),
                 from_environment("BERTH_ATTEMPT"));
    return text;
}

static int parse_arguments(int argc, char **argv) {
    static const struct option options[] = {
        {"id", required_argument, NULL, 'i'},         {"for", required_argument, NULL, 'f'},
        {"gate", required_argument, NULL, 'g'},       {"ignore-term", no_argument, NULL, 't'},
        {"child", no_argument, NULL, 'c'},            {"exit", required_argument, NULL, 'e'},
        {0},
    };
    uint64_t number = 0;

    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) >= 0;)
        switch (c) {
        case 'i': arg_id = optarg; break;
        case 'g': arg_gate = optarg; break;
        case 't': arg_ignore_term = true; break;
        case 'c': arg_child = true; break;
        case 'f':
        case 'e':
            if (number_parse(optarg, 3600000, &number) < 0)
                return -1;
            if (c == 'f')
                arg_for_usec = number * USEC_PER_MSEC;
            else
                arg_exit = (int) number;
            break;
        default: return -1;
        }
    arg_folder = optind + 1 == argc ? argv[optind] : NULL;
    return arg_folder ? 0 : -1;
}

int main(int argc, char **argv) {
    char seen[DEMANDS_TEXT_SIZE];
    const char *pools;
    int signals, signal, lock;
    sigset_t set;

    if (parse_arguments(argc, argv) < 0) {
        fputs("usage: witness FOLDER [--id TEXT] [--for MSEC] [--gate FIFO] [--ignore-term] [--child] [--exit CODE]\n", stderr);
        return 64;
    }
    (void) sigemptyset(&set);
    for (size_t i = 0; i < 5; i++)
        (void) sigaddset(&set, (int[]) {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGQUIT}[i]);
    (void) sigprocmask(SIG_BLOCK, &set, NULL);
    signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (signals < 0)
        fail("signalfd");

    if (strcmp(arg_id, "@run") == 0)
        arg_id = from_environment("BERTH_RUN");
    else if (strcmp(arg_id, "@due") == 0)
        arg_id = name_by_due_time();
    pools = from_environment("BERTH_POOLS");
    if (arg_child) {
        pid_t pid = fork();

        if (pid < 0)
            fail("fork");
        if (pid > 0)
            return arg_exit;
        if (setsid() < 0 || (pid = fork()) < 0)
            fail("fork");
        if (pid > 0)
            return 0;
    }
    lock = lock_file(pools); /* after the fork, because its name has the pid */
    record("start %s %d %" PRIu64 " %s %s %s %s %s\n", arg_id, (int) getpid(), clock_boottime(), pools, from_environment("BERTH_TOKEN"),
           from_environment("BERTH_JOB"), from_environment("BERTH_HOST"), count_locked(seen));
    signal = wait_for_end(signals);
    record("end %s %d %" PRIu64 " %d\n", arg_id, (int) getpid(), clock_boottime(), signal);
    (void) close(lock);
    if (signal) {
        (void) sigprocmask(SIG_UNBLOCK, &set, NULL);
        (void) raise(signal);
    }
    return arg_exit;
}
