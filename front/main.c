/* SPDX-License-Identifier: MIT */
/* main() of berth. It carries out `berth run` and `berth start JOB` itself, which start as often as commands do, so it
 * is linked with libc and jansson alone. berth-verbs has all other verbs, the help, and the errors about options. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/job-name.h"
#include "base/program.h"
#include "base/standard-fds.h"
#include "cli/client.h"
#include "cli/run/options.h"
#include "cli/run/run.h"
#include "cli/start-jobs.h"
#include "cli/verbs.h"

static int exec_verbs(char **argv) {
    char path[PATH_MAX];

    (void) program_find("berth-verbs", path);
    (void) execv(path, argv);
    fprintf(stderr, "berth: cannot start %s: %s\n", path, strerror(errno));
    return EXIT_INTERNAL;
}

/* Takes `start JOB` and `start JOB --wait`. Returns false for anything else. */
static bool is_plain_start(int argc, char **argv, bool *ret_wait) {
    *ret_wait = argc == 3 && strcmp(argv[2], "--wait") == 0;
    return (argc == 2 || *ret_wait) && job_name_parse(argv[1]) != JOB_NAME_INVALID;
}

static int start(char *job, bool wait) {
    _cleanup_json_ json_t *set = json_object();

    return standard_output_end("berth", start_jobs(1, &job, set, wait));
}

int main(int argc, char **argv) {
    char error[RUN_OPTIONS_ERROR_SIZE];
    struct run_options options;
    const char *verb;
    bool wait;
    int i = 1;

    while (i + 1 < argc && strcmp(argv[i], "--socket") == 0)
        i += 2;
    if (i > 1)
        client_set_socket(argv[i - 1]);
    verb = i < argc ? argv[i] : "";
    if (strcmp(verb, "run") == 0 && run_options_parse(argc - i, argv + i, &options, error) == 0)
        return run_adhoc(&options);
    if (strcmp(verb, "start") == 0 && is_plain_start(argc - i, argv + i, &wait))
        return start(argv[i + 1], wait);
    return exec_verbs(argv);
}
