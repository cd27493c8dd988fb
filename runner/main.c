/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <syslog.h>
#include <systemd/sd-daemon.h>

#include "base/activation.h"
#include "base/file-limit.h"
#include "base/number.h"
#include "base/protocol.h"
#include "base/standard-fds.h"
#include "runner/runner.h"

enum { EXIT_USAGE = 64, EXIT_INTERNAL = 70, EXIT_TEMPORARY = 75, EXIT_PERMISSION = 77, EXIT_CONFIG = 78 };

static const char *arg_config = SETTINGS_PATH_DEFAULT;
static int arg_socket_fd = -1;

/* FileDescriptorName= of berth-runner.socket */
#define SOCKET_NAME "runner"

static void print_help(void) {
    puts("berth-runner [-c FILE] [--version] [--help]\n"
         "\n"
         "Starts the jobs of a berth config when berthd asks for them, and watches over\n"
         "them.\n"
         "\n"
         "  -c, --config FILE  config to read, and FILE.d/*.conf (default\n"
         "                     " SETTINGS_PATH_DEFAULT ")\n"
         "      --socket-fd N  internal, for berthd --with-runner: talk to berthd on this\n"
         "                     descriptor, and end when it closes, instead of listening\n"
         "                     on runner/runner.sock\n"
         "      --version      print the version\n"
         "  -h, --help         print this help");
}

/* The socketpair must not go to commands. */
static int parse_socket_fd(const char *text) {
    uint64_t fd;

    if (number_parse(text, INT32_MAX, &fd) < 0 || fcntl((int) fd, F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl((int) fd, F_SETFL, O_NONBLOCK) < 0) {
        fprintf(stderr, "berth-runner: --socket-fd %s: not an open descriptor\n", text);
        return -EINVAL;
    }
    arg_socket_fd = (int) fd;
    return 0;
}

/* -1: go on; else the exit status. */
static int parse_arguments(int argc, char **argv) {
    enum { OPTION_SOCKET_FD = 256, OPTION_VERSION };
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"socket-fd", required_argument, NULL, OPTION_SOCKET_FD},
        {"version", no_argument, NULL, OPTION_VERSION},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "c:h", options, NULL)) != -1)
        switch (option) {
        case 'c':
            arg_config = optarg;
            break;
        case OPTION_SOCKET_FD:
            if (parse_socket_fd(optarg) < 0)
                return EXIT_USAGE;
            break;
        case OPTION_VERSION:
            puts("berth-runner " VERSION);
            return standard_output_end("berth-runner", 0);
        case 'h':
            print_help();
            return standard_output_end("berth-runner", 0);
        default:
            fputs("berth-runner: try `berth-runner --help`\n", stderr);
            return EXIT_USAGE;
        }
    if (optind < argc) {
        fprintf(stderr, "berth-runner: \"%s\" is one argument too many; try `berth-runner --help`\n", argv[optind]);
        return EXIT_USAGE;
    }
    return -1;
}

static void on_alarm(_unused_ int signal) {
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, _unused_ void *userdata) {
    /* HUP is ignored: the runner reads the config again when berthd names a job that it does not know. */
    if (info->ssi_signo != SIGHUP)
        (void) sd_event_exit(sd_event_source_get_event(source), 0);
    return 0;
}

/* Guards inherit the mask: signals to the runner do not end them. */
static int add_signals(sd_event *event) {
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    const struct sigaction ignore = {.sa_handler = SIG_IGN}, note = {.sa_handler = on_alarm};
    sigset_t mask;

    if (sigemptyset(&mask) < 0 || sigaction(SIGPIPE, &ignore, NULL) < 0 || sigaction(SIGALRM, &note, NULL) < 0)
        return -errno;
    for (size_t i = 0; i < ELEMENTSOF(signals); i++)
        (void) sigaddset(&mask, signals[i]);
    if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
        return -errno;
    for (size_t i = 0; i < ELEMENTSOF(signals); i++) {
        int r = sd_event_add_signal(event, NULL, signals[i], on_signal, NULL);

        if (r < 0)
            return r;
    }
    return 0;
}

static int status_of(int error) {
    switch (error) {
    case -EBUSY:
    case -EADDRINUSE:
        return EXIT_TEMPORARY;
    case -EACCES:
    case -EPERM:
        return EXIT_PERMISSION;
    default:
        return EXIT_INTERNAL;
    }
}

/* berth-runner needs this right itself, to read the environment of other users' processes
 * (process-environ.h). No job gets it: exec(2) gives root no more than the bounding set has. */
static void keep_from_jobs(void) {
    (void) prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE, 0, 0, 0); /* EPERM: another user, who has no such right */
}

/* Takes runner/runner.sock if berth-runner.socket made it. Returns 0, or an exit status after logging the
 * reason. */
static int receive_socket(struct journal *journal, int *ret_fd) {
    static const char *const names[] = {SOCKET_NAME};
    int r = activation_receive(names, ELEMENTSOF(names), SOCK_SEQPACKET, ret_fd);

    if (r >= 0)
        return 0;
    journal_log(journal, LOG_ERR, "the service manager must pass one listening packet socket, that of "
                                  "berth-runner.socket, with FileDescriptorName=" SOCKET_NAME ": %s", strerror(-r));
    return EXIT_CONFIG;
}

static int check_socket(struct journal *journal, int listen_fd, const struct settings *settings) {
    char path[RUNTIME_DIRECTORY_MAX + sizeof("/" PROTOCOL_RUNNER_SOCKET)];

    snprintf(path, sizeof(path), "%s/" PROTOCOL_RUNNER_SOCKET, settings->runtime_directory);
    if (listen_fd < 0 || activation_is_at(listen_fd, path))
        return 0;
    journal_log(journal, LOG_ERR,
                "%s: the service manager passed another socket; ListenSequentialPacket= of "
                "berth-runner.socket must match `runtime-directory`",
                path);
    return EXIT_CONFIG;
}

static int run(struct journal *journal, struct job_config *config, int *listen_fd) {
    _cleanup_(runner_freep) struct runner *runner = NULL;
    _cleanup_(sd_event_unrefp) sd_event *event = NULL;
    int r;

    r = sd_event_new(&event);
    if (r >= 0)
        r = journal_attach_event(journal, event);
    if (r >= 0)
        r = add_signals(event);
    if (r >= 0)
        r = runner_new(&runner, event, journal, &(struct runner_options) {config, arg_socket_fd, steal_fd(listen_fd)});
    if (r < 0) {
        journal_log(journal, LOG_ERR, "berth-runner cannot start: %s", strerror(-r));
        return status_of(r);
    }
    if (arg_socket_fd < 0) { /* else the service is berthd, which sends READY and WATCHDOG itself */
        (void) sd_notify(0, "READY=1");
        r = sd_event_set_watchdog(event, true);
    }
    if (r >= 0)
        r = sd_event_loop(event);
    return r < 0 ? EXIT_INTERNAL : r;
}

int main(int argc, char **argv) {
    _cleanup_(journal_freep) struct journal *journal = NULL;
    _cleanup_close_ int listen_fd = -1;
    _cleanup_(job_config_done) struct job_config config = {};
    int status = standard_fds_fill() < 0 ? EXIT_INTERNAL : parse_arguments(argc, argv), r;

    if (status >= 0)
        return status;
    (void) umask(022);
    keep_from_jobs();
    file_limit_raise(); /* one descriptor for each run */
    if (journal_new(&journal, "berth-runner") < 0)
        return EXIT_INTERNAL;
    status = receive_socket(journal, &listen_fd);
    if (status != 0)
        return status;
    r = job_config_init(&config, journal, arg_config);
    status = r == 0 ? check_socket(journal, listen_fd, config.settings) : r < 0 && r != -ENOENT ? EXIT_INTERNAL : EXIT_CONFIG;
    if (status == 0)
        return run(journal, &config, &listen_fd);
    activation_turn_away(listen_fd, NULL, 0);
    return status;
}
