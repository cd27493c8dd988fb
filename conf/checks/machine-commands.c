/* SPDX-License-Identifier: MIT */

/* Checks whether this machine has the programs, users and files that jobs and the redis section name, and whether a password crosses a network
 * unencrypted. A file that the caller may not see is no error. */

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "conf/syntax/notes.h"
#include "conf/settings.h"

static bool is_missing(int error) {
    return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

static void check_command(const struct job_settings *job, struct notes *notes) {
    bool is_script = *job->command.script;
    const char *command = is_script ? job->command.shell : job->command.argv[0], *option = is_script ? "shell" : "command";
    struct stat st;

    if (stat(command, &st) < 0) {
        if (is_missing(errno))
            notes_add(notes, &job->place, "job \"%s\": %s \"%s\" does not exist; install it, or correct the path", job->name, option, command);
    } else if (!S_ISREG(st.st_mode)) {
        notes_add(notes, &job->place, "job \"%s\": %s \"%s\" is not a file; name a program", job->name, option, command);
    } else if (!(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH))) {
        notes_add(notes, &job->place, "job \"%s\": %s \"%s\" is not executable; run: chmod a+x %s", job->name, option, command, command);
    }
}

static void check_directory(const struct job_settings *job, struct notes *notes) {
    struct stat st;

    if (strcmp(job->directory, "~") == 0)
        return;
    if (stat(job->directory, &st) < 0) {
        if (is_missing(errno))
            notes_add(notes, &job->place, "job \"%s\": directory \"%s\" does not exist; make it, or name another one", job->name,
                      job->directory);
    } else if (!S_ISDIR(st.st_mode)) {
        notes_add(notes, &job->place, "job \"%s\": directory \"%s\" is a file; name a directory", job->name, job->directory);
    }
}

/* A lookup that fails because the directory service is away is no error. */
static bool has_no_account(const char *name, bool is_group) {
    bool is_there;

    errno = 0;
    is_there = is_group ? getgrnam(name) != NULL : getpwnam(name) != NULL;
    return !is_there && (errno == 0 || errno == ENOENT || errno == ESRCH);
}

static void check_accounts(const struct job_settings *job, struct notes *notes) {
    if (job->user[0] && has_no_account(job->user, false))
        notes_add(notes, &job->place, "job \"%s\": there is no user \"%s\" on this machine; make it, or name another one", job->name, job->user);
    if (job->group[0] && has_no_account(job->group, true))
        notes_add(notes, &job->place, "job \"%s\": there is no group \"%s\" on this machine; make it, or name another one", job->name,
                  job->group);
}

/* Returns whether berthd's user may read a file, by its mode; true if there is no such user. */
static bool may_berthd_read(const struct stat *st) {
    const struct passwd *user = getpwnam(DAEMON_USER);

    if (!user || user->pw_uid == 0)
        return true;
    return st->st_mode & (st->st_uid == user->pw_uid ? S_IRUSR : st->st_gid == user->pw_gid ? S_IRGRP : S_IROTH);
}

static void check_file(const struct redis_settings *redis, const char *option, const char *path, bool is_secret, struct notes *notes) {
    struct stat st;

    if (!path || *path == '\0')
        return;
    if (stat(path, &st) < 0) {
        if (is_missing(errno))
            notes_add(notes, &redis->place, "redis: %s \"%s\" does not exist; make it, or correct the path", option, path);
    } else if (is_secret && st.st_mode & S_IRWXO) {
        notes_add(notes, &redis->place, "redis: %s \"%s\" is open to every user of this machine; run: chmod o-rwx %s", option, path, path);
    } else if (geteuid() == 0 && !may_berthd_read(&st)) {
        notes_add(notes, &redis->place, "redis: %s \"%s\" cannot be read by user " DAEMON_USER "; run: chgrp " DAEMON_USER " %s && chmod g+r %s",
                  option, path, path, path);
    }
}

int settings_check_commands(const struct settings *s, struct settings_errors *errors) {
    struct notes notes = {};
    int r;

    for (size_t i = 0; i < s->open.n_templates; i++)
        check_accounts(&s->open.templates[i], &notes);
    for (size_t i = 0; i < s->n_jobs; i++) {
        check_accounts(&s->jobs[i], &notes);
        check_command(&s->jobs[i], &notes);
        check_directory(&s->jobs[i], &notes);
    }
    if (s->redis) {
        check_file(s->redis, "password-file", s->redis->password_file, true, &notes);
        check_file(s->redis, "sentinel-password-file", s->redis->sentinels.password_file, true, &notes);
        check_file(s->redis, "tls-ca", s->redis->tls.ca, false, &notes);
        check_file(s->redis, "tls-certificate", s->redis->tls.certificate, false, &notes);
        check_file(s->redis, "tls-key", s->redis->tls.key, true, &notes);
    }
    r = notes.out_of_memory ? -ENOMEM : notes.n > 0 ? SETTINGS_E_INVALID : 0;
    notes_finish(&notes, s->files, s->n_files, errors);
    notes_done(&notes);
    return r;
}

/* --- the password's way --- */

#define CREDENTIAL "redis-password" /* units/berthd.service */
#define CREDENTIAL_STORE "/etc/credstore/" CREDENTIAL

static bool is_loopback(const char *host) {
    return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

/* berthd finds the credential that the service manager passes; whoever checks a config finds the file from which it comes. */
static bool has_password(const struct redis_settings *redis) {
    const char *credentials = getenv("CREDENTIALS_DIRECTORY");
    char path[512];

    snprintf(path, sizeof(path), "%s/" CREDENTIAL, credentials ? credentials : "");
    return redis->password_file[0] || redis->username[0] || (credentials && access(path, F_OK) == 0) || access(CREDENTIAL_STORE, F_OK) == 0;
}

char *settings_warn_of_cleartext(const struct settings *s) {
    const struct redis_settings *redis = s->redis;
    const char *to = !redis ? NULL : redis->sentinels.hosts ? "the master that the sentinels name" : redis->host;
    char *text = NULL;

    if (!to || redis->tls.is_used || (is_loopback(to) && !redis->others) || !has_password(redis))
        return NULL;
    if (asprintf(&text,
                 "%s:%d: warning: redis: the password goes to %s unencrypted, and whoever sees that network can read it; reach Redis "
                 "by TLS (rediss://), or through a unix socket",
                 redis->place.file, redis->place.line, to) < 0)
        return NULL;
    return text;
}
