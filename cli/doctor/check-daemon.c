/* SPDX-License-Identifier: MIT */
/* Checks of berthd itself, its runner and its config. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json/format.h"
#include "cli/client.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/processes.h"

#define ERRORS_SHOWN 5
#define SOCKETS_MAX (4 * 1024 * 1024) /* bytes of /proc/net/unix */
#define RELOAD_SLACK 1.0              /* seconds: clocks of files are coarse */

/* --- daemon --- */

static void add_away(const struct facts *f, struct report *r) {
    const char *path = client_socket();

    if (f->daemon_error == -EACCES || f->daemon_error == -EPERM) {
        report_add(r, SEVERITY_UNKNOWN, "no permission to use %s; root and the group \"berth\" have it",
                   path);
        return;
    }
    if (f->daemon_refusal)
        report_add(r, SEVERITY_CRIT, "%s", f->daemon_refusal);
    else if (f->daemon_error == -ENOENT)
        report_add(r, SEVERITY_CRIT, "berthd cannot be reached: %s does not exist", path);
    else if (f->daemon_error == -ECONNREFUSED)
        report_add(r, SEVERITY_CRIT, "berthd cannot be reached: no process listens on %s", path);
    else if (f->daemon_error == -ETIME || f->daemon_error == -ETIMEDOUT || f->daemon_error == -EAGAIN)
        report_add(r, SEVERITY_CRIT, "berthd at %s does not answer: it hangs or is overloaded", path);
    else
        report_add(r, SEVERITY_CRIT, "berthd at %s: %s", path, strerror(-f->daemon_error));
    if (strcmp(path, CLIENT_SOCKET_DEFAULT) != 0) {
        report_do(r, "start it, or name its socket with --socket");
        return;
    }
    report_do(r, "find the reason, then start it:");
    report_command(r, "systemctl", "status", "berthd");
    report_command(r, "journalctl", "-u", "berthd", "-n", "50");
}

/* Returns whether /proc/net/unix has a listening socket of this path. */
static bool is_listening(const char *sockets, const char *path) {
    size_t length = strlen(path);

    for (const char *at = sockets; (at = strstr(at, path)); at += length) {
        const char *line = at;
        unsigned flags;

        while (line > sockets && line[-1] != '\n')
            line--;
        if ((at[length] == '\n' || at[length] == '\0') && at > line && at[-1] == ' ' &&
            sscanf(line, "%*s %*s %*s %x", &flags) == 1 && flags & 0x10000 /* __SO_ACCEPTCON */)
            return true;
    }
    return false;
}

/* A runner is a child of berthd, or a service that listens on its own socket. */
static void check_runner(const struct facts *f, struct report *r) {
    _cleanup_free_ char *sockets = NULL, *path = NULL;
    _cleanup_fclose_ FILE *file = NULL;
    size_t size;

    if (!f->settings || f->settings->n_jobs == 0)
        return;
    if (process_has_child((pid_t) format_get_number(f->version, "pid"), "berth-runner"))
        return;
    file = fopen("/proc/net/unix", "re");
    if (asprintf(&path, "%s/runner/runner.sock", f->settings->runtime_directory) < 0) {
        path = NULL;
        r->out_of_memory = true;
        return;
    }
    if (!file || file_read_fd(fileno(file), SOCKETS_MAX, &sockets, &size) < 0 ||
        !is_listening(sockets, client_socket())) /* of another network namespace */
        return;
    if (is_listening(sockets, path))
        return;
    report_add(r, SEVERITY_CRIT, "berth-runner does not run: no process listens on %s, no job can start",
               path);
    report_do(r, "start it:");
    report_command(r, "systemctl", "start", "berth-runner.socket");
}

void doctor_daemon(const struct facts *f, struct report *r) {
    if (f->daemon_error < 0)
        add_away(f, r);
    else
        check_runner(f, r);
}

/* --- config --- */

static void add_errors(const struct facts *f, struct report *r, const struct settings_errors *errors,
                       enum severity severity) {
    for (size_t i = 0; i < errors->n && i < ERRORS_SHOWN; i++)
        report_add(r, severity, "%s", errors->lines[i]);
    if (errors->n == 0)
        return;
    if (errors->n > ERRORS_SHOWN)
        report_do(r, "and %zu more", errors->n - ERRORS_SHOWN);
    report_do(r, "correct this, then check and reload:");
    report_command(r, "berth", "check-config", f->config_path);
    report_command(r, "berth", "reload");
}

static void add_unreadable(const struct facts *f, struct report *r) {
    if (f->config_error == -EACCES || f->config_error == -EPERM)
        report_add(r, SEVERITY_UNKNOWN, "%s", f->is_root ? "the config cannot be read" : "needs root");
    else
        report_add(r, SEVERITY_CRIT, "%s: %s", f->config_path, strerror(-f->config_error));
}

/* Reports a config that berthd refused, or has not read since it changed. */
static void check_in_force(const struct facts *f, struct report *r) {
    double good, loaded;

    if (facts_metric(f, "berth_config_last_reload_successful", &good) && good == 0) {
        report_add(r, SEVERITY_WARN,
                   "berthd refused the changed config: the previous one is in force");
        report_do(r, "to see the errors:");
        report_command(r, "berth", "reload");
        return;
    }
    if (!facts_metric(f, "berth_config_last_reload_success_timestamp_seconds", &loaded) ||
        (double) f->config_changed <= loaded + RELOAD_SLACK)
        return;
    report_add(r, SEVERITY_WARN, "%s was changed after berthd read it", f->config_path);
    report_do(r, "to bring it into force:");
    report_command(r, "berth", "reload");
}

void doctor_config(const struct facts *f, struct report *r) {
    if (f->config_error < 0 && f->errors.n == 0)
        add_unreadable(f, r);
    add_errors(f, r, &f->errors, SEVERITY_CRIT);
    if (f->is_other_config) {
        report_add(r, SEVERITY_UNKNOWN, "%s is the config of another berthd; name the right one with -c",
                   f->config_path);
        return;
    }
    add_errors(f, r, &f->machine_errors, SEVERITY_WARN);
    if (f->version && f->settings)
        check_in_force(f, r);
}
