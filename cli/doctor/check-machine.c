/* SPDX-License-Identifier: MIT */
/* Checks of this machine: the units, the files of berthd. */
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json/format.h"
#include "cli/doctor/doctor.h"

#define PATH_SIZE 512
#define OTHERS 0022 /* rights of others to write */

/* --- unit --- */

static const struct property { /* of the shipped units, which others must not weaken */
    const char *unit, *line, *why;
} properties[] = {
    {"berthd.service", "KillMode=control-group", "what berthd starts would outlive it"},
    {"berthd.service", "User=berth", "berthd would have more rights than it needs"},
    {"berthd.service", "Restart=always", "after a crash nobody extends the leases of runs"},
    {"berthd.service", "WatchdogUSec=30s", "a berthd that hangs would not be restarted"},
    {"berth-runner.service", "KillMode=process", "an upgrade of berth-runner would kill all runs"},
    {"berth-runner.service", "Delegate=yes", "berth-runner could not bound the cgroups of runs"},
    {"berth-runner.service", "Slice=berth.slice", "runs would be counted elsewhere"},
    {"berth-runner.service", "Restart=always", "after a crash no job would start"},
    {"berth-runner.service", "WatchdogUSec=30s", "a berth-runner that hangs would not be restarted"},
};

#define SHOW                                                                                                \
    "timeout 1 systemctl show -p Id -p LoadState -p DropInPaths -p KillMode -p Delegate -p User -p Slice "  \
    "-p Restart "                                                                                           \
    "-p WatchdogUSec berthd.service berth-runner.service 2>/dev/null"

/* Returns the value of "KEY=" in the lines of one unit; "": none. */
static const char *value_of(const char *unit, const char *key, size_t length, char value[static PATH_SIZE]) {
    value[0] = '\0';
    for (const char *line = unit; *line && *line != '\n';
         line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n'))
        if (strncmp(line, key, length) == 0)
            (void) snprintf(value, PATH_SIZE, "%.*s", (int) strcspn(line + length, "\n"), line + length);
    return value;
}

/* unit: its lines, up to an empty one. */
static void check_properties(struct report *r, const char *unit) {
    char id[PATH_SIZE], state[PATH_SIZE], value[PATH_SIZE], drop_ins[PATH_SIZE];

    if (strcmp(value_of(unit, "LoadState=", 10, state), "loaded") != 0)
        return;
    value_of(unit, "Id=", 3, id);
    value_of(unit, "DropInPaths=", 12, drop_ins);
    for (size_t i = 0; i < ELEMENTSOF(properties); i++) {
        const struct property *p = &properties[i];
        size_t length = strcspn(p->line, "=") + 1;

        if (strcmp(p->unit, id) != 0 ||
            strcmp(value_of(unit, p->line, length, value), p->line + length) == 0)
            continue;
        report_add(r, SEVERITY_WARN, "%s has %.*s%s instead of %s: %s", id, (int) length, p->line, value,
                   p->line, p->why);
        report_do(r, "correct %s; runs outlive a restart:", *drop_ins ? drop_ins : "the unit");
        report_command(r, "systemctl", "daemon-reload");
        report_command(r, "systemctl", "restart", id);
    }
}

void doctor_unit(const struct facts *f, struct report *r) {
    _cleanup_free_ char *text = NULL;
    FILE *pipe;
    size_t size;

    if (!facts_has_path(f, "/run/systemd/system"))
        return;               /* another service manager, or none */
    pipe = popen(SHOW, "re"); /* NOLINT(cert-env33-c): a fixed command */
    if (!pipe)
        return;
    if (file_read_fd(fileno(pipe), 65536, &text, &size) < 0 || size == 0)
        report_add(r, SEVERITY_UNKNOWN, "systemctl does not answer");
    (void) pclose(pipe);
    for (const char *unit = text; unit && *unit;) {
        const char *end = strstr(unit, "\n\n");

        check_properties(r, unit);
        unit = end ? end + 2 : NULL;
    }
}

/* --- files --- */

static const struct place { /* below the runtime directory: units/berth.tmpfiles */
    const char *path;
    mode_t mode;
    bool is_berths; /* of the system service: berth's, else root's */
} places[] = {
    {"", 0755, false},        {"/holds", 0700, true},        {"/waiting", 0700, true},
    {"/jobs", 0700, true},    {"/state", 0700, true},        {"/lock", 0600, true},
    {"/runner", 0711, false}, {"/runner/runs", 0711, false}, {"/runner/credentials", 0711, false},
};

struct owners {
    uid_t berth, root;
    bool are_known;
};

/* The files of the system service have two owners, those of any other berthd one. */
static struct owners find_owners(const struct facts *f, const struct stat *top) {
    struct owners owners = {.berth = top->st_uid, .root = top->st_uid, .are_known = true};
    const struct passwd *user;

    if (strcmp(f->settings->runtime_directory, RUNTIME_DIRECTORY_DEFAULT) != 0)
        return owners;
    user = getpwnam(DAEMON_USER);
    return (struct owners){.berth = user ? user->pw_uid : 0, .root = 0, .are_known = user != NULL};
}

static void check_place(const struct owners *owners, struct report *r, const struct place *p,
                        const char *path) {
    uid_t owner = p->is_berths ? owners->berth : owners->root;
    char text[16];
    mode_t more;
    struct stat st;

    if (lstat(path, &st) < 0)
        return; /* berthd makes what it needs */
    more = st.st_mode & 07777 & ~p->mode;
    if (more != 0) {
        report_add(r, more & OTHERS ? SEVERITY_CRIT : SEVERITY_WARN, "%s has mode %04o instead of %04o%s",
                   path, (unsigned) (st.st_mode & 07777), (unsigned) p->mode,
                   more & OTHERS ? ": others may write there" : "");
        (void) snprintf(text, sizeof(text), "%04o", (unsigned) p->mode);
        report_command(r, "chmod", text, path);
    }
    if (!owners->are_known || st.st_uid == owner)
        return;
    report_add(r, SEVERITY_CRIT, "%s belongs to user %u instead of %u", path, (unsigned) st.st_uid,
               (unsigned) owner);
    (void) snprintf(text, sizeof(text), "%u", (unsigned) owner);
    report_command(r, "chown", text, path);
}

void doctor_files(const struct facts *f, struct report *r) {
    const char *error = format_get_text(f->jobs, "state_error");
    char path[PATH_SIZE];
    struct owners owners;
    struct stat top;

    if (*error) {
        report_add(r, SEVERITY_WARN, "berthd cannot use its state directory %s: %s",
                   f->settings->state_directory, error);
        report_do(r, "after a reboot it does not know what it began or which jobs are broken; see whether the disk is full:");
        report_command(r, "df", "-h", f->settings->state_directory);
    }
    (void) snprintf(path, sizeof(path), "%s%s", f->root, f->settings->runtime_directory);
    if (stat(path, &top) < 0)
        return;
    owners = find_owners(f, &top);
    for (size_t i = 0; i < ELEMENTSOF(places); i++) {
        (void) snprintf(path, sizeof(path), "%s%s%s", f->root, f->settings->runtime_directory,
                        places[i].path);
        check_place(&owners, r, &places[i], path);
    }
}
