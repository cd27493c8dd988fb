/* SPDX-License-Identifier: MIT */
#pragma once

/* Beds of store-redis: a private redis-server, which is emptied for each bed, and stores in namespace "test" on it. */

#include "conf/settings.h"
#include "tests/harness/redis/proxy.h"
#include "tests/harness/redis/redis.h"
#include "tests/harness/store/store-bed.h"

#define REDIS_BED_LEASE (2 * USEC_PER_SEC)

/* Options of the next stores; may be changed at any time. */
extern struct redis_bed {
    struct redis_server server;
    usec_t lease, heartbeat, timeout; /* 2 s, a sixth of it, 1 s */
    usec_t connect_timeout;           /* 0: as timeout */
    const char *username, *password;  /* NULL: none */
    bool has_certificate;             /* by TLS: client.crt and client.key of the shared place */
    usec_t failover_margin;           /* 0: none */
    uint16_t port;                    /* of another server on 127.0.0.1; 0: the one above */
    bool port_has_tls;
    usec_t leases[BED_HOSTS_MAX];     /* of single hosts; 0: as above */
    const char *names[BED_HOSTS_MAX]; /* NULL: as the bed names them */
    const char *namespace;            /* NULL: "test" */
    uint64_t redis_hash;              /* of the url */
    const char *session_path[BED_HOSTS_MAX]; /* NULL: none */
} redis_bed;

/* Pools "db" (4 permits) and "one" (1). */
extern const struct store_pool redis_bed_pools[2];

/* For this number of hosts. */
const struct store_fixture *redis_bed_fixture(unsigned n_hosts);
/* bed_init() with these pools; and bed_start(). */
bool redis_bed_init(struct bed *b, unsigned n_hosts);
bool redis_bed_begin(struct bed *b, unsigned n_hosts);
/* Returns the settings of the next store; writes the password to its file. */
struct redis_settings redis_bed_settings(void);
/* For fixtures of one's own: .make. */
int redis_bed_make(void *userdata, unsigned host, const char *host_name, bool is_first, sd_event *event, struct events *events,
                   const struct store_listener *listener, struct store **ret);
/* Starts a proxy before the server and lets the next stores connect through it. 0 or a negative errno. */
int redis_bed_start_proxy(struct proxy *proxy);
/* Runs a command that must work, words separated by spaces. */
void redis_bed_command(const char *text);

/* As test_main(), with the server up; prepare() (may be NULL) is called before the tests and returns 0 or a negative errno. */
int redis_bed_main(int argc, char **argv, CU_SuiteInfo *suites, int (*prepare)(void));
/* As redis_bed_main(), with a clock of the test for the stores: no busy machine loses a lease, and waits
 * cost no time. Not for overrides that end, because these end by the server's clock. */
int redis_bed_main_on_own_clock(int argc, char **argv, CU_SuiteInfo *suites);
