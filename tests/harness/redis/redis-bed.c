/* SPDX-License-Identifier: MIT */
#include "tests/harness/redis/redis-bed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "conf/settings.h"
#include "tests/harness/clock-file.h"
#include "tests/harness/port.h"
#include "tests/harness/redis/tls.h"

struct redis_bed redis_bed = {.lease = REDIS_BED_LEASE, .heartbeat = REDIS_BED_LEASE / 6, .timeout = USEC_PER_SEC};

const struct store_pool redis_bed_pools[2] = {
    {.name = "db", .limit = 4, .queue_limit = 1000},
    {.name = "one", .limit = 1, .queue_limit = 1000},
};

struct redis_settings redis_bed_settings(void) {
    static char password_file[sizeof(redis_bed.server.directory) + 16];
    struct redis_settings settings = {.unix_path = redis_bed.server.socket, .timeout_usec = redis_bed.timeout,
                                      .connect_timeout_usec = redis_bed.connect_timeout, .username = (char *) redis_bed.username,
                                      .failover_margin_usec = redis_bed.failover_margin};

    if (redis_bed.connect_timeout == 0)
        settings.connect_timeout_usec = redis_bed.timeout;
    if (redis_bed.port > 0 || redis_bed.server.tls_port > 0) {
        settings.unix_path = NULL;
        settings.host = (char *) "127.0.0.1";
        settings.port = redis_bed.port > 0 ? redis_bed.port : (uint16_t) redis_bed.server.tls_port;
    }
    if (redis_bed.port > 0 ? redis_bed.port_has_tls : redis_bed.server.tls_port > 0) {
        settings.tls = (struct tls_settings) {.is_used = true, .ca = tls_place_path(tls_shared_place(), "ca.crt")};
        if (redis_bed.has_certificate) {
            settings.tls.certificate = tls_place_path(tls_shared_place(), "client.crt");
            settings.tls.key = tls_place_path(tls_shared_place(), "client.key");
        }
    }
    (void) snprintf(password_file, sizeof(password_file), "%s/password", redis_bed.server.directory);
    if (redis_bed.password &&
        file_write_atomic(password_file, redis_bed.password, strlen(redis_bed.password), 0600) == 0)
        settings.password_file = password_file;
    return settings;
}

int redis_bed_make(_unused_ void *userdata, unsigned host, const char *host_name, bool is_first, sd_event *event, struct events *events,
                   const struct store_listener *listener, struct store **ret) {
    struct redis_settings settings = redis_bed_settings();
    struct store_redis_options options = {.redis = &settings, .redis_hash = redis_bed.redis_hash, .version = "1",
                                          .host = redis_bed.names[host] ? redis_bed.names[host] : host_name,
                                          .namespace = redis_bed.namespace ? redis_bed.namespace : "test",
                                          .lease_usec = redis_bed.leases[host] ? redis_bed.leases[host] : redis_bed.lease,
                                          .heartbeat_usec = redis_bed.heartbeat,
                                          .session_path = redis_bed.session_path[host]};

    if (is_first && redis_bed.server.pid > 0) {
        _cleanup_reply_ redisReply *reply = redis_command(&redis_bed.server, "FLUSHALL");

        if (!reply || reply->type == REDIS_REPLY_ERROR)
            return -EIO;
    }
    return store_redis_new(ret, event, events, &options, listener);
}

int redis_bed_start_proxy(struct proxy *proxy) {
    char path[16];

    redis_bed.port = (uint16_t) port_reserve();
    (void) snprintf(path, sizeof(path), ":%u", redis_bed.port);
    return proxy_start(proxy, path, redis_bed.server.socket);
}

static bool is_idle(_unused_ void *userdata) {
    return redis_server_is_idle(&redis_bed.server);
}

const struct store_fixture *redis_bed_fixture(unsigned n_hosts) {
    static const struct store_fixture fixtures[BED_HOSTS_MAX] = {{.n_hosts = 1, .make = redis_bed_make, .is_idle = is_idle},
                                                                 {.n_hosts = 2, .make = redis_bed_make, .is_idle = is_idle},
                                                                 {.n_hosts = 3, .make = redis_bed_make, .is_idle = is_idle}};

    return &fixtures[n_hosts - 1];
}

bool redis_bed_init(struct bed *b, unsigned n_hosts) {
    return bed_init(b, redis_bed_fixture(n_hosts), redis_bed_pools, ELEMENTSOF(redis_bed_pools));
}

bool redis_bed_begin(struct bed *b, unsigned n_hosts) {
    return redis_bed_init(b, n_hosts) && bed_start(b);
}

void redis_bed_command(const char *text) {
    _cleanup_reply_ redisReply *reply = redis_command(&redis_bed.server, text);

    CU_ASSERT(reply && reply->type != REDIS_REPLY_ERROR);
}

int redis_bed_main_on_own_clock(int argc, char **argv, CU_SuiteInfo *suites) {
    clock_file_own(argv);
    clock_file_stand(&own_clock, clock_boottime());
    return redis_bed_main(argc, argv, suites, NULL);
}

int redis_bed_main(int argc, char **argv, CU_SuiteInfo *suites, int (*prepare)(void)) {
    int r;

    if (redis_server_start(&redis_bed.server, NULL) < 0 || (prepare && prepare() < 0)) {
        puts("no redis-server as it is needed");
        return 1;
    }
    r = test_main(argc, argv, suites);
    redis_server_done(&redis_bed.server);
    return r;
}
