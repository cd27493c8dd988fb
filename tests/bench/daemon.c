/* SPDX-License-Identifier: MIT */
#include "tests/bench/daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define COMMAND_MSEC_MAX 60000

extern char **environ;

const char *build_path(const char *name, char buffer[static 300]) {
    const char *build = getenv("BUILD");

    snprintf(buffer, 300, "%s/%s", build ? build : "build", name);
    return buffer;
}

pid_t command_fork(void (*run)(void *userdata), void *userdata) {
    pid_t parent = getpid(), pid = fork();

    if (pid == 0) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            run(userdata);
        _exit(0);
    }
    return pid;
}

double process_cpu(pid_t pid) {
    struct timespec t = {0};
    clockid_t id;

    if (clock_getcpuclockid(pid, &id) != 0 || clock_gettime(id, &t) < 0)
        rig_fail("process %d has ended", (int) pid);
    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

pid_t command_start(const char *const *argv) {
    posix_spawn_file_actions_t actions;
    char berth[300];
    pid_t pid;
    int r;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    posix_spawn_file_actions_adddup2(&actions, 0, 2);
    r = posix_spawnp(&pid, strcmp(argv[0], "berth") == 0 ? build_path("berth", berth) : argv[0], &actions, NULL,
                     (char *const *) (uintptr_t) argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return r == 0 ? pid : -1;
}

static int wait_for(pid_t pid, struct rusage *ret_usage) {
    int status;

    if (pid < 0 || wait4(pid, &status, 0, ret_usage) != pid)
        return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int command_wait(pid_t pid) {
    return wait_for(pid, NULL);
}

/* A command that hangs is killed after a while. */
static int wait_patiently(pid_t pid, struct rusage *ret_usage) {
    _cleanup_close_ int fd = pid < 0 ? -1 : pidfd_open(pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};

    if (fd >= 0 && poll(&p, 1, COMMAND_MSEC_MAX) == 0)
        (void) kill(pid, SIGKILL);
    return wait_for(pid, ret_usage);
}

double command_cost(const char *const *argv, double *ret_cpu_usec) {
    usec_t began = clock_boottime();
    struct rusage usage = {0};
    int status = wait_patiently(command_start(argv), &usage);

    *ret_cpu_usec = (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
                    (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    return status == 0 ? (double) (clock_boottime() - began) : -1;
}

double command_time(const char *const *argv) {
    double cpu_usec;

    return command_cost(argv, &cpu_usec);
}

static void write_config(const struct fleet *f, const struct bench_daemon *d) {
    const char *stamp = getenv("BENCH_STAMP");
    char span[300];
    _cleanup_fclose_ FILE *file = fopen(d->config, "we");

    if (!file || !stamp)
        abort();
    fprintf(file,
            "host = \"%s\"\nnamespace = \"bench\"\nruntime-directory = \"%s\"\nredis { url = \"unix://%s\" }\n"
            "pool \"many\" { limit = 1000000 }\npool \"one\" { limit = 1 }\npool \"none\" { limit = 0\n queue-limit = 100000 }\n"
            "pool \"own\" { scope = \"host\"\n limit = 1 }\npool \"spare\" { scope = \"host\"\n limit = 1 }\n"
            "job \"stamp\" { command = {\"%s\", \"%s\"}\n pools = {\"many\"}\n output = \"null\" }\n"
            "job \"sleeper\" { command = {\"/bin/sleep\", \"600\"}\n pools = {\"many\"}\n overlap = \"allow\"\n output = \"null\" }\n"
            "job \"span\" { command = {\"%s\", \"%s\", \"3000\"}\n pools = {\"one\"}\n overlap = \"allow\"\n output = \"null\" }\n"
            "job \"true\" { command = {\"/bin/true\"}\n pools = {\"many\"}\n output = \"null\" }\n"
            "job \"waiter\" { command = {\"/bin/true\"}\n pools = {\"none\"}\n overlap = \"allow\"\n output = \"null\" }\n",
            d->name, d->folder, f->redis.socket, stamp, f->stamps, build_path("tests/bench/tools/span", span), f->spans);
}

static void daemon_start(struct bench_daemon *d) {
    pid_t parent = getpid();
    char berthd[300];

    build_path("berthd", berthd);
    d->pid = fork();
    if (d->pid == 0) {
        (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            _exit(0);
        execl(berthd, "berthd", "-c", d->config, "--with-runner", (char *) NULL);
        _exit(127);
    }
}

/* Waits until a reply of berthd says that Redis is connected. */
static void daemon_await(const struct bench_daemon *d) {
    const char *const pools[] = {"berth", "--socket", d->socket, "pools", NULL};
    usec_t end = clock_boottime() + 30 * USEC_PER_SEC;

    while (command_time(pools) < 0) {
        if (clock_boottime() > end)
            rig_fail("%s does not answer", d->name);
        (void) poll(NULL, 0, 20);
    }
}

void fleet_up(struct fleet *f, size_t n) {
    *f = (struct fleet) {.folder = "/dev/shm/berth-bench-XXXXXX", .n = n, /* memory, as /run is */
                          .daemons = calloc(n, sizeof(*f->daemons))};
    if (!f->daemons || !mkdtemp(f->folder) || redis_server_start(&f->redis, NULL) < 0)
        rig_fail("cannot make a fleet");
    snprintf(f->stamps, sizeof(f->stamps), "%s/stamps", f->folder);
    snprintf(f->spans, sizeof(f->spans), "%s/spans", f->folder);
    for (size_t i = 0; i < n; i++) {
        struct bench_daemon *d = &f->daemons[i];

        snprintf(d->name, sizeof(d->name), "host-%u", (unsigned) i % 1000);
        snprintf(d->folder, sizeof(d->folder), "%s/%s", f->folder, d->name);
        snprintf(d->socket, sizeof(d->socket), "%s/control.sock", d->folder);
        snprintf(d->config, sizeof(d->config), "%s.conf", d->folder);
        if (mkdir(d->folder, 0755) < 0)
            rig_fail("cannot make %s", d->folder);
        write_config(f, d);
        daemon_start(d);
    }
    for (size_t i = 0; i < n; i++)
        daemon_await(&f->daemons[i]);
    const char *const grace[] = {"berth", "--socket", f->daemons[0].socket, "grace", "--end", NULL};
    (void) command_time(grace); /* fails if it has ended */
    for (size_t i = 0; i < n; i++) {
        const char *const run[] = {"berth", "--socket", f->daemons[i].socket, "run", "-p", "many", "--", "true", NULL};

        if (command_time(run) < 0)
            rig_fail("%s runs nothing", f->daemons[i].name);
    }
}

void fleet_down(struct fleet *f) {
    const char *const remove[] = {"rm", "-rf", f->folder, NULL};

    for (size_t i = 0; i < f->n; i++)
        if (f->daemons[i].pid > 0)
            (void) kill(f->daemons[i].pid, SIGTERM);
    for (size_t i = 0; i < f->n; i++)
        (void) command_wait(f->daemons[i].pid);
    redis_server_done(&f->redis);
    (void) command_time(remove);
    free(f->daemons);
}
