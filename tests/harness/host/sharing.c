/* SPDX-License-Identifier: MIT */
#include "tests/harness/host/sharing.h"

#include "base/schedule/schedule.h"
#include "tests/harness/host/host-clock.h"
#include "tests/harness/test.h"

static const char *const names[SHARING_HOSTS_MAX] = {"ant", "bee", "cat", "dog", "eel"};
struct host *sharing_hosts[SHARING_HOSTS_MAX];
const char *sharing_way;
static size_t n_hosts = SHARING_HOSTS;

void sharing_up(const char *config) {
    sharing_up_many(config, SHARING_HOSTS);
}

void sharing_up_many(const char *config, size_t n) {
    n_hosts = n;
    for (size_t i = 0; i < n_hosts; i++) {
        struct host *host = sharing_hosts[i] = host_add(names[i], " ");

        host->redis = i == 0 ? sharing_way : NULL;
        host_set_config(host, "%s", config);
        host_clock_give(host);
        host_clock_set_realtime(host, (usec_t) (SHARING_FIRST - 30) * USEC_PER_SEC);
        host_start(host);
        if (i == 0)
            host_open(host);
        else
            host_await_redis(host);
    }
}

void sharing_clocks_at(int64_t due, int64_t msec) {
    for (size_t i = 0; i < n_hosts; i++)
        host_clock_set_realtime(sharing_hosts[i],
                                (usec_t) due * USEC_PER_SEC + (usec_t) (msec * (int64_t) USEC_PER_MSEC));
}

const char *sharing_text(int64_t due) {
    static char text[SCHEDULE_TEXT_SIZE];
    struct zone *utc = NULL;

    TEST_INT(zone_load(ZONE_DIRECTORY, "UTC", &utc), 0);
    schedule_format(utc, due, text);
    zone_free(utc);
    return text;
}

unsigned sharing_count(const char *event, const char *fields) {
    unsigned n = 0;

    for (size_t i = 0; i < n_hosts; i++)
        n += host_count(sharing_hosts[i], event, "%s", fields);
    return n;
}

void sharing_await_count(const char *event, const char *fields, unsigned n) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (sharing_count(event, fields) < n && clock_boottime() < until)
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    TEST_INT(sharing_count(event, fields), n);
}

struct host *sharing_await(const char *event, const char *fields) {
    usec_t until = clock_boottime() + HOST_PATIENCE;

    while (clock_boottime() < until) {
        for (size_t i = 0; i < n_hosts; i++)
            if (host_count(sharing_hosts[i], event, "%s", fields) > 0)
                return sharing_hosts[i];
        child_turn(clock_boottime() + 5 * USEC_PER_MSEC);
    }
    TEST_FATAL(false, "the event is on no host");
    return NULL;
}
