/* SPDX-License-Identifier: MIT */
/* berth-web: a page that shows pools, queues and hosts live. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#include "base/client/client.h"
#include "base/file.h"
#include "base/file-limit.h"
#include "base/socket.h"
#include "base/standard-fds.h"
#include "web/app.h"
#include "web/listen.h"
#include "web/users.h"

#define EXIT_USAGE 64
#define EXIT_SETUP 70
#define LOOK_SOCKET "/run/berth/look.sock"
#define TOKEN_NAME "web-token" /* of the credential */
#define UNIX_MODE 0660

static const char *arg_listen, *arg_unix, *arg_berth = LOOK_SOCKET;
static struct app_options options = {.site = {.prefix = ""}};
static char token[sizeof(((struct users *) NULL)->token)];

static void help(void) {
    puts("berth-web [OPTIONS]\n"
         "\n"
         "Shows pools, queues and hosts of a berth cluster on a live page.\n"
         "\n"
         "      --listen ADDRESS:PORT  listen here, e.g. 127.0.0.1:9737\n"
         "      --unix PATH            listen on this unix socket, for a proxy\n"
         "      --berth SOCKET         ask this berthd instead of " LOOK_SOCKET "\n"
         "      --host NAME            a name of this server for browsers; may be repeated\n"
         "      --path PREFIX          serve below this path, e.g. /berth\n"
         "      --title TEXT           name of the cluster on the page\n"
         "      --actions              let users act (berth-web(8), ACTIONS)\n"
         "      --user-header NAME     the header in which the proxy names the user\n"
         "      --metrics-only         serve /metrics and /healthz alone\n"
         "      --version              print the version\n"
         "  -h, --help                 print this");
}

static int usage(const char *text, const char *what) {
    fprintf(stderr, "berth-web: %s%s\n", text, what);
    return EXIT_USAGE;
}

/* --- the command line --- */

static int take_host(const char *name) {
    if (options.site.n_hosts == REQUEST_HOSTS_MAX)
        return usage("too many --host", "");
    if (!*name)
        return usage("--host needs a name", "");
    options.site.hosts[options.site.n_hosts++] = name;
    return 0;
}

/* "/berth/" is "/berth", and "/" is "". */
static int take_path(char *path) {
    size_t n = strlen(path);

    while (n > 0 && path[n - 1] == '/')
        path[--n] = '\0';
    if (n > 0 && path[0] != '/')
        return usage("--path must begin with /: ", path);
    options.site.prefix = path;
    return 0;
}

static int take(int option) {
    switch (option) {
    case 'l':
        arg_listen = optarg;
        return 0;
    case 'u':
        arg_unix = optarg;
        return 0;
    case 'b':
        arg_berth = optarg;
        return 0;
    case 'n':
        return take_host(optarg);
    case 'p':
        return take_path(optarg);
    case 't':
        options.title = optarg;
        return 0;
    case 'a':
        options.site.has_actions = true;
        return 0;
    case 'U':
        options.site.user_header = optarg;
        return 0;
    case 'm':
        options.site.metrics_only = true;
        return 0;
    default:
        return usage("try `berth-web --help`", "");
    }
}

/* Returns 0 to go on, 1 after --help or --version, or an exit status. */
static int parse(int argc, char **argv) {
    static const struct option table[] = {
        {"listen", required_argument, NULL, 'l'},      {"unix", required_argument, NULL, 'u'},
        {"berth", required_argument, NULL, 'b'},       {"host", required_argument, NULL, 'n'},
        {"path", required_argument, NULL, 'p'},        {"title", required_argument, NULL, 't'},
        {"actions", no_argument, NULL, 'a'},           {"user-header", required_argument, NULL, 'U'},
        {"metrics-only", no_argument, NULL, 'm'},      {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},              {},
    };
    int option, status = 0;

    while (status == 0 && (option = getopt_long(argc, argv, "h", table, NULL)) >= 0)
        if (option == 'V') {
            puts("berth-web " VERSION);
            return 1;
        } else if (option == 'h') {
            help();
            return 1;
        } else {
            status = take(option);
        }
    if (status == 0 && optind < argc)
        return usage("one argument too many: ", argv[optind]);
    if (status == 0 && options.site.user_header && !options.site.has_actions)
        return usage("--user-header has no use without --actions", "");
    return status;
}

/* Loads the token from the service manager's credentials, if there is one. */
static int load_token(void) {
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    _cleanup_free_ char *path = NULL, *text = NULL;
    size_t size;
    int r;

    if (!options.site.has_actions || !folder)
        return 0;
    if (asprintf(&path, "%s/" TOKEN_NAME, folder) < 0) {
        path = NULL;
        r = -ENOMEM;
    } else {
        r = file_read(path, sizeof(token) - 1, &text, &size);
    }
    if (r == -ENOENT)
        return 0;
    if (r < 0) {
        fprintf(stderr, "berth-web: %s/" TOKEN_NAME ": %s\n", folder, strerror(-r));
        return EXIT_SETUP;
    }
    text[strcspn(text, "\r\n")] = '\0';
    if (strlen(text) < USERS_TOKEN_MIN) {
        fprintf(stderr, "berth-web: %s: a token has at least %d characters\n", path, USERS_TOKEN_MIN);
        return EXIT_USAGE;
    }
    (void) snprintf(token, sizeof(token), "%.*s", (int) sizeof(token) - 1, text);
    options.token = token;
    return 0;
}

/* --- run --- */

/* Returns an exit status. */
static int listen_on(struct app *a, int fd, bool is_unix, const char *what) {
    int r = fd < 0 ? fd : app_listen(a, fd, is_unix);

    if (r < 0)
        fprintf(stderr, "berth-web: %s: %s\n", what, strerror(-r));
    return r < 0 ? EXIT_SETUP : 0;
}

static int listen_all(struct app *a) {
    int fds[LISTEN_MAX], status = 0, n, fd = -1;
    bool is_unix[LISTEN_MAX];

    n = listen_received(fds, is_unix);
    if (n < 0) {
        fprintf(stderr, "berth-web: sockets of the service manager: %s\n", strerror(-n));
        return EXIT_SETUP;
    }
    for (int i = 0; i < n && status == 0; i++)
        status = listen_on(a, fds[i], is_unix[i], "a socket of the service manager");
    if (arg_listen && status == 0) {
        fd = listen_tcp(arg_listen);
        if (fd == -EINVAL)
            return usage("--listen must be ADDRESS:PORT, e.g. 127.0.0.1:9737: ", arg_listen);
        status = listen_on(a, fd, false, arg_listen);
    }
    if (arg_unix && status == 0)
        status = listen_on(a, socket_listen(arg_unix, SOCK_STREAM, UNIX_MODE), true, arg_unix);
    if (n == 0 && !arg_listen && !arg_unix)
        return usage("nothing to listen on: --listen, --unix, or berth-web.socket", "");
    return status;
}

static int block_signals(sd_event *event) {
    sigset_t set;

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGTERM);
    (void) sigaddset(&set, SIGINT);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return -errno;
    /* Without a callback the signal ends the loop. */
    if (sd_event_add_signal(event, NULL, SIGTERM, NULL, NULL) < 0 || sd_event_add_signal(event, NULL, SIGINT, NULL, NULL) < 0)
        return -EIO;
    return 0;
}

static int serve(void) {
    _cleanup_(sd_event_unrefp) sd_event *event = NULL;
    _cleanup_(app_freep) struct app *a = NULL;
    int r = sd_event_new(&event), status;

    if (r >= 0)
        r = block_signals(event);
    if (r >= 0)
        r = app_new(&a, event, &options);
    if (r < 0) {
        fprintf(stderr, "berth-web: cannot start: %s\n", strerror(-r));
        return EXIT_SETUP;
    }
    status = listen_all(a);
    if (status != 0)
        return status;
    (void) sd_event_set_watchdog(event, true);
    (void) sd_notify(0, "READY=1");
    r = sd_event_loop(event);
    (void) sd_notify(0, "STOPPING=1");
    return r < 0 ? EXIT_SETUP : 0;
}

int main(int argc, char **argv) {
    int status = parse(argc, argv);

    if (status == 0)
        status = load_token();
    else if (status == 1)
        return standard_output_end("berth-web", 0);
    if (status != 0)
        return status;
    client_set_socket(arg_berth);
    file_limit_raise();
    return serve();
}
