/* SPDX-License-Identifier: MIT */
/* main() of berth. It carries out `berth run` itself, which starts as often as commands do, so it is linked
 * with libc and jansson alone. berth-verbs has all other verbs, the help, and the errors about options of
 * `berth run`. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/run/options.h"
#include "cli/run/run.h"

#define VERBS "berth-verbs"

/* Executes berth-verbs from the directory of this program, else from where it is installed. */
static int exec_verbs(char **argv) {
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(VERBS));
    char *slash;

    if (n > 0) {
        path[n] = '\0';
        slash = strrchr(path, '/');
        memcpy(slash + 1, VERBS, sizeof(VERBS));
        (void) execv(path, argv);
    }
    (void) execv(LIBEXECDIR "/" VERBS, argv);
    fprintf(stderr, "berth: cannot start %s: %s\n", LIBEXECDIR "/" VERBS, strerror(errno));
    return EXIT_INTERNAL;
}

/* Returns the index of the verb if it is `run` and nothing before it is unusual; else 0. */
static int find_run(int argc, char **argv) {
    int i = 1;

    while (i + 1 < argc && strcmp(argv[i], "--socket") == 0)
        i += 2;
    return i < argc && strcmp(argv[i], "run") == 0 ? i : 0;
}

int main(int argc, char **argv) {
    char error[RUN_OPTIONS_ERROR_SIZE];
    struct run_options options;
    int i = find_run(argc, argv);

    if (i == 0 || run_options_parse(argc - i, argv + i, &options, error) != 0)
        return exec_verbs(argv);
    if (i > 1)
        client_set_socket(argv[i - 1]);
    return run_adhoc(&options);
}
