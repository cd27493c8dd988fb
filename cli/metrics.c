/* SPDX-License-Identifier: MIT */

/* `berth metrics`: what berthd has counted, for Prometheus. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/client.h"
#include "cli/metrics-text.h"
#include "cli/verbs.h"

static bool means_away(int error) {
    return error == -ENOENT || error == -ECONNREFUSED || error == -ECONNRESET || error == -EAGAIN ||
           error == -ETIMEDOUT;
}

/* As client_call(), but a berthd that is away is no error: *ret stays NULL then. */
static int ask_quietly(json_t *params, json_t **ret) {
    _cleanup_(client_freep) struct client *c = NULL;
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
    int r = client_connect_patiently(&c);

    if (r < 0)
        json_decref(params);
    else
        r = client_send(c, "io.berth.Metrics", params, 0);
    if (r == 0)
        r = client_receive(c, &reply);
    if (r < 0)
        return means_away(r) ? 0 : client_explain_errno(r);
    if (reply.error)
        return client_explain(&reply);
    *ret = json_incref(reply.params);
    return 0;
}

static int write_file(const char *path, const json_t *metrics, bool is_openmetrics) {
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    int r = -ENOMEM;

    if (f) {
        metrics_print(f, metrics, is_openmetrics);
        r = fclose(f) == 0 ? file_write_durable(path, text, size, 0644) : -errno;
    }
    if (r < 0)
        fprintf(stderr, "berth: %s.tmp: %s\n", path, strerror(-r));
    return r < 0 ? EXIT_INTERNAL : 0;
}

int verb_metrics(int argc, char **argv) {
    _cleanup_json_ json_t *answer = NULL;
    bool cluster = false, is_openmetrics;
    const char *format = NULL, *output = NULL;
    const struct verb_option options[] = {OPTION_FLAG("--cluster", &cluster),
                                          OPTION_VALUE("--format", &format),
                                          OPTION_VALUE("--output", &output)};
    json_t *params;
    int status;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), &status) < 0)
        return status;
    is_openmetrics = format && strcmp(format, "openmetrics") == 0;
    if (format && !is_openmetrics && strcmp(format, "prometheus") != 0)
        return options_wrong_usage("metrics", "--format %.100s: must be prometheus or openmetrics", format);
    if (output && !*output)
        return options_wrong_usage("metrics", "--output needs the path of a file");
    params = json_pack("{s:b}", "cluster", cluster);
    status = output ? ask_quietly(params, &answer) : client_call("io.berth.Metrics", params, &answer);
    if (status != 0)
        return status;
    if (output)
        return write_file(output, json_object_get(answer, "metrics"), is_openmetrics);
    metrics_print(stdout, json_object_get(answer, "metrics"), is_openmetrics);
    return 0;
}
