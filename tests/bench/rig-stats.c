/* SPDX-License-Identifier: MIT */
/* What the server of a rig reports, and the middle of many values. */
#include "tests/bench/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rig_reset_stats(struct redis_server *s) {
    _cleanup_reply_ redisReply *reply = redis_command(s, "CONFIG RESETSTAT");

    if (!reply || reply->type != REDIS_REPLY_STATUS)
        rig_fail("CONFIG RESETSTAT failed");
}

static bool is_ours(const char *name, size_t length) {
    static const char *const skipped[] = {"info", "config|resetstat", "script|load", "exec" /* its time has that of its commands */};

    for (size_t i = 0; i < ELEMENTSOF(skipped); i++)
        if (strlen(skipped[i]) == length && strncmp(name, skipped[i], length) == 0)
            return false;
    return true;
}

double rig_server_usec(struct redis_server *s, const char *command, uint64_t *ret_calls) {
    _cleanup_reply_ redisReply *reply = redis_command(s, "INFO commandstats");
    double usec = 0;

    *ret_calls = 0;
    if (!reply || reply->type != REDIS_REPLY_STRING)
        rig_fail("INFO failed");
    for (const char *line = strstr(reply->str, "cmdstat_"); line; line = strstr(line, "cmdstat_")) {
        const char *name = line + strlen("cmdstat_");
        size_t length = strcspn(name, ":");
        unsigned long long calls, took;

        line = name;
        if (sscanf(name + length, ":calls=%llu,usec=%llu", &calls, &took) != 2)
            continue;
        if (strcmp(command, "*") == 0 ? is_ours(name, length) : strlen(command) == length && strncmp(name, command, length) == 0) {
            *ret_calls += calls;
            usec += (double) took;
        }
    }
    return usec;
}

double rig_server_cpu(struct redis_server *s) {
    _cleanup_reply_ redisReply *reply = redis_command(s, "INFO cpu");
    double sys = 0, user = 0;
    const char *at;

    if (!reply || reply->type != REDIS_REPLY_STRING)
        rig_fail("INFO failed");
    if ((at = strstr(reply->str, "used_cpu_sys:")))
        sys = strtod(at + strlen("used_cpu_sys:"), NULL);
    if ((at = strstr(reply->str, "used_cpu_user:")))
        user = strtod(at + strlen("used_cpu_user:"), NULL);
    return sys + user;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

double quantile(double *values, size_t n, double q) {
    if (n == 0)
        return 0;
    qsort(values, n, sizeof(*values), compare);
    return values[(size_t) (q * (double) (n - 1) + 0.5)];
}

size_t median_round(const double *cost, const double *yardstick, size_t n) {
    size_t i = 0;

    for (; i + 1 < n; i++) {
        size_t below = 0, same = 0;

        for (size_t k = 0; k < n; k++) {
            below += cost[k] * yardstick[i] < cost[i] * yardstick[k];
            same += cost[k] * yardstick[i] == cost[i] * yardstick[k];
        }
        if (below <= (n - 1) / 2 && (n - 1) / 2 < below + same)
            break;
    }
    return i;
}
