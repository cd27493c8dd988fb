/* SPDX-License-Identifier: MIT */
/* berth import-crontab: reads the files and finds their owners. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/schedule/zone.h"
#include "cli/client.h"
#include "cli/import/import.h"
#include "cli/output.h"
#include "cli/verbs.h"

#define CRONTAB_MAX (1024 * 1024)

struct request {
    bool is_system;
    const char *user, *prefix; /* NULL: from the file */
};

static bool has_home(const char *user, _unused_ void *userdata) {
    const struct passwd *account = getpwnam(user);

    return account && account->pw_dir && account->pw_dir[0] == '/';
}

static bool is_zone(const char *name, _unused_ void *userdata) {
    _cleanup_(zone_freep) struct zone *zone = NULL;

    return strcmp(name, "local") != 0 && zone_load(ZONE_DIRECTORY, name, &zone) == 0;
}

static const char *get_own_name(void) {
    const struct passwd *account = getpwuid(getuid());

    return account ? account->pw_name : NULL;
}

/* Returns whether the last folder of a path has this name. */
static bool is_below(const char *path, const char *folder) {
    const char *slash = strrchr(path, '/');
    size_t n = strlen(folder);

    return slash && (size_t) (slash - path) >= n && strncmp(slash - n, folder, n) == 0 &&
           ((size_t) (slash - path) == n || slash[-(ptrdiff_t) n - 1] == '/');
}

/* Finds the user of a crontab file. Returns 0, or EXIT_USAGE after printing why the user is unknown. */
static int find_owner(const struct request *request, const char *file, struct import_source *source) {
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;

    source->file = strcmp(file, "-") == 0 ? "crontab" : name;
    source->prefix = request->prefix ? request->prefix : name;
    source->user = request->user;
    if (strcmp(name, "anacrontab") == 0) {
        source->kind = CRONTAB_ANACRON;
    } else if (request->is_system ||
               (!request->user && (strcmp(file, "/etc/crontab") == 0 || is_below(file, "cron.d")))) {
        source->kind = CRONTAB_SYSTEM;
    } else {
        source->kind = CRONTAB_OF_USER;
        if (!source->user)
            source->user = strcmp(file, "-") == 0       ? get_own_name()
                           : is_below(file, "crontabs") ? name
                                                        : NULL;
        if (!source->user)
            return options_wrong_usage("import-crontab",
                                       "%.200s: whose crontab is it? Add --user USER, or --system", file);
    }
    if (!request->prefix && strcmp(file, "-") == 0)
        source->prefix = source->user ? source->user : "crontab";
    return 0;
}

/* Makes a file's name usable as the beginning of names of jobs. */
static void clean_prefix(char *prefix) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";

    if (*prefix == '.' || *prefix == '-')
        *prefix = '_';
    for (; *prefix; prefix++)
        if (!strchr(letters, *prefix))
            *prefix = '-';
}

static int read_source(const char *file, char **ret) {
    _cleanup_free_ char *text = NULL;
    size_t size;
    int r = strcmp(file, "-") == 0 ? file_read_fd(STDIN_FILENO, CRONTAB_MAX, &text, &size)
                                   : file_read(file, CRONTAB_MAX, &text, &size);

    if (r < 0)
        fprintf(stderr, "berth: %s: %s\n", file, strerror(-r));
    else if (strlen(text) != size)
        fprintf(stderr, "berth: %s: not a crontab: it has a NUL byte\n", file);
    if (r < 0 || strlen(text) != size)
        return EXIT_UNKNOWN_NAME;
    *ret = steal_pointer(&text);
    return 0;
}

static int add_file(struct import *import, const struct request *request, const char *file) {
    struct import_source source = {.has_home = has_home, .is_zone = is_zone};
    _cleanup_free_ char *text = NULL, *prefix = NULL;
    int status = find_owner(request, file, &source);

    if (status == 0)
        status = read_source(file, &text);
    if (status != 0)
        return status;
    prefix = strdup(source.prefix);
    if (!prefix)
        return output_error(-ENOMEM);
    clean_prefix(prefix);
    source.prefix = prefix;
    source.text = text;
    return import_crontab(import, &source) < 0 ? output_error(-ENOMEM) : 0;
}

/* Prints the config if all files were read: a part of it would look like the whole in the file that receives it. */
static int import_all(struct import *import, const struct request *request, char **files, int n) {
    _cleanup_free_ char *text = NULL;
    size_t size;
    int status = 0;
    bool is_lacking;

    import->out = open_memstream(&text, &size);
    if (!import->out)
        return output_error(-ENOMEM);
    import_begin(import);
    for (int i = 0; i < n && status == 0; i++)
        status = add_file(import, request, files[i]);
    import_done(import);
    is_lacking = ferror(import->out) != 0;
    if (fclose(import->out) != 0 || is_lacking)
        return output_error(-ENOMEM);
    if (status == 0)
        (void) fwrite(text, 1, size, stdout);
    return status;
}

int verb_import_crontab(int argc, char **argv) {
    struct import import = {};
    struct request request = {};
    const struct verb_option options[] = {OPTION_FLAG("--system", &request.is_system),
                                          OPTION_VALUE("--user", &request.user),
                                          OPTION_VALUE("--prefix", &request.prefix)};
    int words, status;

    words = options_parse(argc, argv, options, ELEMENTSOF(options), &status);
    if (words < 0)
        return status;
    if (request.is_system && request.user)
        return options_wrong_usage("import-crontab", "--system and --user exclude each other");
    if (request.prefix && options_check_name("import-crontab", "prefix", request.prefix) != 0)
        return EXIT_USAGE;
    status = import_all(&import, &request, argv + 1, words);
    if (status != 0)
        return status;
    (void) fflush(stdout);
    fprintf(stderr,
            "%u line%s: %u job%s, %u not converted; overlap = \"allow\" is the behaviour of cron: check whether "
            "\"skip\" is meant\n",
            import.n_lines, import.n_lines == 1 ? "" : "s", import.n_jobs, import.n_jobs == 1 ? "" : "s",
            import.n_left_out);
    return import.n_left_out > 0 ? EXIT_UNKNOWN_NAME : 0;
}
