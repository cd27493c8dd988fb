/* SPDX-License-Identifier: MIT */

/* berthd: arguments, config, manager, control socket, loop, exit. */

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <syslog.h>
#include <systemd/sd-event.h>

#include "base/activation.h"
#include "base/file-limit.h"
#include "base/program.h"
#include "base/protocol.h"
#include "base/standard-fds.h"
#include "daemon/pid1.h"
#include "daemon/manager.h"
#include "daemon/api/verbs.h"

static const char *arg_config = SETTINGS_PATH_DEFAULT;
static bool arg_check = false;
static bool arg_with_runner = false;
static const char *arg_runner = NULL; /* --with-runner=PATH */

enum { CONTROL, LOOK, N_SOCKETS };
static const char *const descriptor_names[] = {"control", "look"}; /* of berthd.socket and berthd-look.socket */
static const char *const socket_files[] = {PROTOCOL_CONTROL_SOCKET, PROTOCOL_LOOK_SOCKET};
static const char *const socket_units[] = {"berthd.socket", "berthd-look.socket"};

#define DRAIN_TIME (250 * USEC_PER_MSEC) /* to finish the calls of clients before a restart */

static void help(void) {
    puts("berthd [OPTIONS]\n"
         "\n"
         "Runs jobs on many hosts without ever exceeding what they share.\n"
         "\n"
         "  -c, --config FILE        read FILE and FILE.d/*.conf instead of\n"
         "                           " SETTINGS_PATH_DEFAULT "\n"
         "      --check              print all errors of the config, or that it is ok,\n"
         "                           and exit\n"
         "      --with-runner[=PATH] start a berth-runner of its own (no service manager:\n"
         "                           demo, containers, tests)\n"
         "      --version            print the version\n"
         "  -h, --help               print this");
}

/* 0: go on; otherwise exit with *ret_status. */
static int parse_arguments(int argc, char **argv, int *ret_status) {
    enum { ARG_CHECK = 256, ARG_WITH_RUNNER, ARG_VERSION };
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"check", no_argument, NULL, ARG_CHECK},
        {"with-runner", optional_argument, NULL, ARG_WITH_RUNNER},
        {"version", no_argument, NULL, ARG_VERSION},
        {"help", no_argument, NULL, 'h'},
        {},
    };
    int c;

    while ((c = getopt_long(argc, argv, "c:h", options, NULL)) >= 0)
        switch (c) {
        case 'c':
            arg_config = optarg;
            break;
        case ARG_CHECK:
            arg_check = true;
            break;
        case ARG_WITH_RUNNER:
            arg_with_runner = true;
            arg_runner = optarg;
            break;
        case ARG_VERSION:
            puts("berthd " VERSION);
            *ret_status = standard_output_end("berthd", 0);
            return 1;
        case 'h':
            help();
            *ret_status = standard_output_end("berthd", 0);
            return 1;
        default:
            fputs("berthd: try `berthd --help`\n", stderr);
            *ret_status = EX_USAGE;
            return 1;
        }
    if (optind < argc) {
        fprintf(stderr, "berthd: \"%s\" is one argument too many; try `berthd --help`\n", argv[optind]);
        *ret_status = EX_USAGE;
        return 1;
    }
    return 0;
}

/* Loads the config. Errors go to standard error with --check, else to the journal. */
static int load(struct journal *journal, struct settings **ret) {
    struct settings_errors errors = {};
    char why[512];
    int r = settings_load(arg_config, ret, &errors);

    if (r == 0 && arg_check) /* the service starts even if the machine lacks something */
        r = settings_check_machine(*ret, &errors);
    if (r == 0 && arg_check && (*ret)->redis && store_redis_check((*ret)->redis, why, sizeof(why)) == 1) {
        fprintf(stderr, "%s:%d: redis: %s\n", (*ret)->redis->place.file, (*ret)->redis->place.line, why);
        r = SETTINGS_E_INVALID;
    }
    if (r != 0)
        *ret = settings_free(*ret);
    for (size_t i = 0; i < errors.n; i++)
        if (arg_check)
            fprintf(stderr, "%s\n", errors.lines[i]);
        else
            journal_log(journal, LOG_ERR, "%s", errors.lines[i]);
    if (r < 0 || errors.out_of_memory)
        journal_log(journal, LOG_ERR, "%s: %s", arg_config, strerror(r < 0 ? -r : ENOMEM));
    settings_errors_done(&errors);
    return r;
}

/* Writes a warning about a valid config to where its errors go. */
static void warn(struct journal *journal, const struct settings *s) {
    _cleanup_free_ char *text = settings_warn_of_cleartext(s);

    if (text && arg_check)
        fprintf(stderr, "%s\n", text);
    else if (text)
        journal_log(journal, LOG_WARNING, "%s", text);
}

/* Returns the exit status. */
static int print_checked(const struct settings *s) {
    size_t n_pools = settings_count_pools(s);

    printf("%s: %zu pool%s, %zu job%s, ok\n", arg_config, n_pools, n_pools == 1 ? "" : "s", s->n_jobs,
           s->n_jobs == 1 ? "" : "s");
    return standard_output_end("berthd", 0);
}

static int find_runner(char path[static PATH_MAX]) {
    if (!arg_runner)
        return program_find("berth-runner", path);
    snprintf(path, PATH_MAX, "%s", arg_runner);
    return access(path, X_OK) < 0 ? -errno : 0;
}

/* --- the sockets, if berthd.socket and berthd-look.socket made them --- */

/* Answers each waiting client with an error of io.berth. */
static void turn_away(const int fds[static N_SOCKETS]) {
    static const char text[] =
        "{\"error\":\"io.berth.Away\",\"parameters\":{\"text\":\"berthd cannot start: its config is wrong, see `berthd --check` "
        "and `journalctl -t berthd`\"}}";

    for (size_t i = 0; i < N_SOCKETS; i++)
        activation_turn_away(fds[i], text, sizeof(text));
}

/* Returns 0, or an exit status after logging the reason. */
static int receive_sockets(struct journal *journal, int fds[static N_SOCKETS]) {
    int r = activation_receive(descriptor_names, N_SOCKETS, SOCK_STREAM, fds);

    if (r >= 0)
        return 0;
    journal_log(journal, LOG_ERR, "the service manager must pass one listening stream socket, that of berthd.socket, with "
                                  "FileDescriptorName=control, and may pass that of berthd-look.socket, with FileDescriptorName=look: %s",
                strerror(-r));
    return EX_CONFIG;
}

static void socket_path(const struct settings *s, size_t i, char path[static PATH_MAX]) {
    snprintf(path, PATH_MAX, "%s/%s", s->runtime_directory, socket_files[i]);
}

static int check_sockets(struct journal *journal, const int fds[static N_SOCKETS], const struct settings *s) {
    char path[PATH_MAX];

    for (size_t i = 0; i < N_SOCKETS; i++) {
        socket_path(s, i, path);
        if (fds[i] < 0 || activation_is_at(fds[i], path))
            continue;
        journal_log(journal, LOG_ERR,
                    "%s: the service manager passed another socket; ListenStream= of %s must match "
                    "`runtime-directory`",
                    path, socket_units[i]);
        turn_away(fds);
        return EX_CONFIG;
    }
    return 0;
}

/* A service manager that made control.sock also decides whether look.sock exists. */
static int listen_for_clients(struct journal *journal, struct control **ret, sd_event *event, struct manager *m, int fds[static N_SOCKETS]) {
    bool is_passed = fds[CONTROL] >= 0;
    char path[PATH_MAX];
    int r;

    socket_path(manager_settings(m), CONTROL, path);
    r = verbs_new_control(ret, event, m, path, steal_fd(&fds[CONTROL]));
    if (r >= 0 && (!is_passed || fds[LOOK] >= 0)) {
        socket_path(manager_settings(m), LOOK, path);
        r = control_add_look(*ret, path, steal_fd(&fds[LOOK]));
    }
    if (r < 0)
        journal_log(journal, LOG_ERR, "%s: %s", path, strerror(-r));
    return r;
}

static void main_on_abuse(uid_t uid, pid_t pid, void *userdata) {
    journal_log(userdata, LOG_WARNING,
                "process %d of user %u passed a descriptor to " PROTOCOL_CONTROL_SOCKET
                ", which accepts none: connections of that user are refused for a minute",
                (int) pid, (unsigned) uid);
}

/* --- signals --- */

struct daemon {
    struct manager *manager;
    struct control *control;
};

static void main_on_drained(void *userdata) {
    manager_stop(userdata, false);
}

/* If the runs go on, the socket usually does, too. Then clients in the middle of a call are answered
 * first. */
static int main_on_terminate(_unused_ sd_event_source *source, _unused_ const struct signalfd_siginfo *info, void *userdata) {
    struct daemon *d = userdata;

    if (manager_stops_jobs(d->manager))
        manager_stop(d->manager, true);
    else if (control_drain(d->control, DRAIN_TIME, main_on_drained, d->manager) != 0)
        manager_stop(d->manager, false);
    return 0;
}

/* Under systemd a restart must leave the jobs alone, but stop and restart both send SIGTERM. So
 * units/berthd-stop.sh announces a stop. */
static int main_on_stop_announced(_unused_ sd_event_source *source, _unused_ const struct signalfd_siginfo *info, void *userdata) {
    struct daemon *d = userdata;

    manager_expect_stop(d->manager);
    return 0;
}

static int main_on_hangup(_unused_ sd_event_source *source, _unused_ const struct signalfd_siginfo *info, void *userdata) {
    struct settings_errors errors = {};
    struct daemon *d = userdata;

    (void) manager_reload(d->manager, &errors); /* which logs the result */
    settings_errors_done(&errors);
    return 0;
}

static int add_signals(sd_event *event, struct daemon *d) {
    static const struct {
        int signal;
        sd_event_signal_handler_t handler;
    } signals[] = {{SIGTERM, main_on_terminate}, {SIGINT, main_on_terminate}, {SIGHUP, main_on_hangup}, {SIGUSR1, main_on_stop_announced}};
    int r = 0;

    for (size_t i = 0; r >= 0 && i < ELEMENTSOF(signals); i++)
        r = sd_event_add_signal(event, NULL, signals[i].signal, signals[i].handler, d);
    return r;
}

/* Takes ownership of the settings, also on failure. */
static int run(struct journal *journal, struct settings *passed, int fds[static N_SOCKETS]) {
    _cleanup_(settings_freep) struct settings *settings = passed;
    _cleanup_(sd_event_unrefp) sd_event *event = NULL;
    _cleanup_(manager_freep) struct manager *manager = NULL;
    _cleanup_(control_freep) struct control *control = NULL;
    char runner[PATH_MAX];
    struct manager_options options = {.config = arg_config};
    struct daemon daemon;
    int r;

    r = check_sockets(journal, fds, settings);
    if (r != 0)
        return r;
    if (arg_with_runner) {
        r = find_runner(runner);
        if (r < 0) {
            journal_log(journal, LOG_ERR, "%s: %s; name it with --with-runner=PATH", runner, strerror(-r));
            return EX_UNAVAILABLE;
        }
        options.with_runner = runner;
    }
    r = sd_event_default(&event);
    if (r >= 0)
        r = journal_attach_event(journal, event);
    if (r >= 0)
        r = sd_event_set_watchdog(event, true);
    if (r >= 0)
        r = manager_new(&manager, event, journal, steal_pointer(&settings), &options);
    if (r >= 0)
        r = listen_for_clients(journal, &control, event, manager, fds);
    if (r >= 0)
        control_watch_abuse(control, main_on_abuse, journal);
    daemon = (struct daemon) {manager, control};
    if (r >= 0)
        r = add_signals(event, &daemon);
    if (r >= 0)
        r = manager_start(manager);
    if (r >= 0)
        r = sd_event_loop(event);
    if (r < 0) {
        journal_log(journal, LOG_CRIT, "berthd cannot go on: %s", strerror(-r));
        return EX_SOFTWARE;
    }
    return r;
}

int main(int argc, char **argv) {
    _cleanup_(journal_freep) struct journal *journal = NULL;
    int fds[N_SOCKETS] = {-1, -1};
    struct settings *settings = NULL;
    sigset_t blocked;
    int status, r;

    if (standard_fds_fill() < 0)
        return EX_SOFTWARE;
    if (parse_arguments(argc, argv, &status) != 0)
        return status;
    if (!arg_check && pid1_serve(&status))
        return status;
    if (journal_new(&journal, "berthd") < 0)
        return EX_SOFTWARE;
    status = arg_check ? 0 : receive_sockets(journal, fds);
    if (status != 0)
        return status;
    r = load(journal, &settings);
    if (r != 0 && r != -ENOMEM)
        turn_away(fds);
    if (r != 0)
        return r == -ENOMEM ? EX_SOFTWARE : EX_CONFIG;
    warn(journal, settings);
    if (arg_check) {
        status = print_checked(settings);
        settings_free(settings);
        return status;
    }
    (void) signal(SIGPIPE, SIG_IGN);
    file_limit_raise();
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGHUP);
    sigaddset(&blocked, SIGUSR1);
    (void) sigprocmask(SIG_BLOCK, &blocked, NULL);
    return run(journal, settings, fds);
}
