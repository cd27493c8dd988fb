/* SPDX-License-Identifier: MIT */
/* `berth metrics`: the figures of berthd, for Prometheus. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/client/metrics-text.h"
#include "base/file.h"
#include "cli/client.h"
#include "cli/verbs.h"

static bool means_away(int error) {
    return error == -ENOENT || error == -ECONNREFUSED || error == -ECONNRESET || error == -EAGAIN ||
           error == -ETIMEDOUT;
}

/* Stores the figures, or NULL if berthd is away. Returns 0, or an exit status whose reason was printed. */
static int ask(bool cluster, bool may_be_away, json_t **ret) {
    _cleanup_client_reply_ struct client_reply reply = CLIENT_REPLY_INIT;
    int r = client_ask("io.berth.Metrics", json_pack("{s:b}", "cluster", cluster), &reply);
    json_t *metrics = r == 0 ? json_object_get(reply.params, "metrics") : NULL;

    if (r == 0 && reply.error)
        return client_explain(&reply);
    if (r == 0 && !json_is_object(metrics))
        r = -EBADMSG;
    if (r < 0)
        return may_be_away && means_away(r) ? 0 : client_explain_errno(r);
    *ret = json_incref(metrics);
    return 0;
}

/* Returns whether a rename to this path replaces no device, link or folder. */
static bool is_replaceable(const char *path) {
    struct stat st;

    return lstat(path, &st) < 0 || S_ISREG(st.st_mode);
}

static int write_file(const char *path, const json_t *metrics, bool is_openmetrics) {
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    int r = -ENOMEM;

    if (f) {
        metrics_print(f, metrics, is_openmetrics);
        r = fclose(f) == 0 ? 0 : -ENOMEM;
    }
    if (r == 0 && !is_replaceable(path)) {
        fprintf(stderr, "berth: %s: is not a regular file\n", path);
        return EXIT_INTERNAL;
    }
    if (r == 0)
        r = file_write_durable(path, text, size, 0644);
    if (r < 0)
        fprintf(stderr, "berth: %s.tmp: %s\n", path, strerror(-r));
    return r < 0 ? EXIT_INTERNAL : 0;
}

int verb_metrics(int argc, char **argv) {
    _cleanup_json_ json_t *metrics = NULL;
    bool cluster = false, is_openmetrics;
    const char *format = NULL, *output = NULL;
    const struct verb_option options[] = {OPTION_FLAG("--cluster", &cluster),
                                          OPTION_VALUE("--format", &format),
                                          OPTION_VALUE("--output", &output)};
    int status, written;

    if (options_parse(argc, argv, options, ELEMENTSOF(options), &status) < 0)
        return status;
    is_openmetrics = format && strcmp(format, "openmetrics") == 0;
    if (format && !is_openmetrics && strcmp(format, "prometheus") != 0)
        return options_wrong_usage("metrics", "--format %.100s: must be prometheus or openmetrics", format);
    if (output && !*output)
        return options_wrong_usage("metrics", "--output needs the path of a file");
    status = ask(cluster, output != NULL, &metrics);
    if (output) { /* also after an error: old figures must not remain */
        written = write_file(output, metrics, is_openmetrics);
        return status != 0 && status != EXIT_AWAY ? status : written;
    }
    if (status == 0)
        metrics_print(stdout, metrics, is_openmetrics);
    return status;
}
