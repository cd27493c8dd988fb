/* SPDX-License-Identifier: MIT */
/* Verbs that need no berthd: check-config, version. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json/format.h"
#include "cli/client.h"
#include "cli/verbs.h"
#include "conf/settings.h"

static const char *plural(size_t n) {
    return n == 1 ? "" : "s";
}

int verb_check_config(int argc, char **argv) {
    _cleanup_(settings_freep) struct settings *settings = NULL;
    _cleanup_free_ char *warning = NULL;
    struct settings_errors errors = {};
    const char *file = NULL;
    const struct verb_option options[] = {OPTION_VALUE("-c", &file)};
    int words, status, r;

    words = options_parse(argc, argv, options, ELEMENTSOF(options), &status);
    if (words < 0)
        return status;
    if (words == 1 && file)
        return options_wrong_usage("check-config", "name the file once: FILE or -c FILE");
    file = words == 1 ? argv[1] : file ? file : SETTINGS_PATH_DEFAULT;
    r = settings_load(file, &settings, &errors);
    if (r == 0)
        r = settings_check_machine(settings, &errors);
    for (size_t i = 0; i < errors.n; i++)
        fprintf(stderr, "%s\n", errors.lines[i]);
    warning = settings ? settings_warn_of_cleartext(settings) : NULL;
    if (warning)
        fprintf(stderr, "%s\n", warning);
    if (r < 0)
        fprintf(stderr, "berth: %s: %s\n", file, strerror(-r));
    else if (r == 0)
        printf("%s: %zu pool%s, %zu job%s, ok\n", file, settings_count_pools(settings),
               plural(settings_count_pools(settings)), settings->n_jobs, plural(settings->n_jobs));
    settings_errors_done(&errors);
    return r == 0 ? 0 : r == -ENOMEM ? EXIT_INTERNAL : EXIT_CONFIG;
}

int verb_version(int argc, char **argv) {
    _cleanup_(client_freep) struct client *c = NULL;
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
    int status, r;

    if (options_parse(argc, argv, NULL, 0, &status) < 0)
        return status;
    puts("berth " VERSION);
    (void) fflush(stdout); /* the call to berthd may take a while */
    /* An unreachable berthd is not a failure here. */
    if (client_connect(&c) < 0 || client_send(c, "io.berth.Version", NULL, 0) < 0)
        return 0;
    r = client_receive(c, &reply);
    if (r < 0) {
        if (r != -ECONNRESET)
            (void) client_explain_errno(r);
        return 0;
    }
    if (!reply.error)
        printf("berthd %s on %s, namespace %s, process %" JSON_INTEGER_FORMAT "%s\n",
               format_get_text(reply.params, "version"), format_get_text(reply.params, "host"),
               format_get_text(reply.params, "namespace"), format_get_number(reply.params, "pid"),
               json_is_true(json_object_get(reply.params, "drained")) ? ", drained" : "");
    return 0;
}
