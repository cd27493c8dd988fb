/* SPDX-License-Identifier: MIT */

/* A silent subscription on a real server. The client sends PING, and does not take the reply for a message.
 * A subscription whose server does not reply ends. */

#include <signal.h>
#include <string.h>

#include "store/redis/client/connection.h"
#include "tests/harness/redis/redis.h"
#include "tests/harness/test.h"

#define PATIENCE (20 * USEC_PER_SEC)

static struct {
    struct redis_server server;
    sd_event *event;
    struct redis_settings settings;
    struct redis_connection_options options;
    struct redis_connection *connection;
    unsigned n_acknowledged, n_messages, n_others, n_down;
    char text[256];
} bed;

static void on_message(const struct redisReply *reply, _unused_ void *userdata) {
    if (reply_is(reply_at(reply, 0), "ssubscribe"))
        bed.n_acknowledged++;
    else if (reply_is(reply_at(reply, 0), "smessage"))
        bed.n_messages++;
    else
        bed.n_others++;
}

static void on_up(struct redis_connection *c, _unused_ void *userdata) {
    TEST_INT(redis_connection_subscribe(c, "channel", on_message, NULL), 0);
}

static void on_down(struct redis_connection *c, _unused_ enum redis_error error, const char *text, _unused_ void *userdata) {
    bed.n_down++;
    (void) snprintf(bed.text, sizeof(bed.text), "%s", text);
    bed.connection = redis_connection_free(c);
}

static void up(void) {
    memset(&bed, 0, sizeof(bed));
    CU_ASSERT_FATAL(redis_server_start(&bed.server, NULL) == 0);
    CU_ASSERT_FATAL(sd_event_new(&bed.event) >= 0);
    bed.settings = (struct redis_settings) {.timeout_usec = 5 * USEC_PER_SEC};
    bed.options = (struct redis_connection_options) {
        .settings = &bed.settings, .client_name = "test", .on_up = on_up, .on_down = on_down, .silence_usec = 20 * USEC_PER_MSEC};
}

static void down(void) {
    bed.connection = redis_connection_free(bed.connection);
    sd_event_unref(bed.event);
    redis_server_done(&bed.server);
}

static void await(const unsigned *count, unsigned n) {
    usec_t limit = clock_boottime() + PATIENCE;

    while (*count < n && clock_boottime() < limit)
        (void) sd_event_run(bed.event, 100 * USEC_PER_MSEC);
    CU_ASSERT_FATAL(*count >= n);
}

static void subscribe(void) {
    const struct redis_target target = {.unix_path = bed.server.socket, .deadline = clock_boottime() + PATIENCE};

    TEST_INT(redis_connection_new(&bed.connection, bed.event, &target, &bed.options), 0);
    await(&bed.n_acknowledged, 1);
}

/* Returns how many PINGs the server has received since it started. */
static unsigned count_pings(const char *outcome) {
    _cleanup_(redis_reply_freep) redisReply *stats = redis_command(&bed.server, "INFO commandstats");
    const char *line = stats ? strstr(stats->str, "cmdstat_ping:") : NULL, *end = line ? strchr(line, '\n') : NULL,
               *found = line ? strstr(line, outcome) : NULL;

    return found && found < end ? (unsigned) strtoul(found + strlen(outcome), NULL, 10) : 0;
}

static void await_pings(const char *outcome, unsigned n) {
    usec_t limit = clock_boottime() + PATIENCE;

    while (count_pings(outcome) < n && clock_boottime() < limit)
        (void) sd_event_run(bed.event, 10 * USEC_PER_MSEC);
    CU_ASSERT(count_pings(outcome) >= n);
}

static void lives(void) {
    unsigned before = count_pings("calls=");

    subscribe();
    await_pings("calls=", before + 5);
    TEST_INT(redis_number(&bed.server, "SPUBLISH channel hello"), 1);
    await(&bed.n_messages, 1);
    await_pings("calls=", before + 10);
    TEST_INT(bed.n_others, 0);
    TEST_INT(bed.n_down, 0);
}

/* A user without the right to PING: the refusal shows that the server lives. */
static void refused(void) {
    _cleanup_(redis_reply_freep) redisReply *acl = redis_command(&bed.server, "ACL SETUSER default -ping");

    CU_ASSERT(acl && acl->type == REDIS_REPLY_STATUS);
    subscribe();
    await_pings("rejected_calls=", 5);
    TEST_INT(redis_number(&bed.server, "SPUBLISH channel hello"), 1);
    await(&bed.n_messages, 1);
    TEST_INT(bed.n_others, 0);
    TEST_INT(bed.n_down, 0);
}

static void dead(void) {
    subscribe();
    bed.settings.timeout_usec = 100 * USEC_PER_MSEC;
    kill(bed.server.pid, SIGSTOP);
    await(&bed.n_down, 1);
    kill(bed.server.pid, SIGCONT);
    TEST_STRING(bed.text, "no answer in time");
}

/* Without a bound the client sends no PING. */
static void unbounded(void) {
    unsigned before = count_pings("calls=");

    bed.options.silence_usec = 0;
    subscribe();
    TEST_INT(redis_number(&bed.server, "SPUBLISH channel hello"), 1);
    await(&bed.n_messages, 1);
    (void) sd_event_run(bed.event, 200 * USEC_PER_MSEC); /* ten times silence_usec of the other tests */
    TEST_INT(count_pings("calls="), before);
}

static CU_TestInfo tests[] = {
    {"lives", lives}, {"refused", refused}, {"dead", dead}, {"unbounded", unbounded}, CU_TEST_INFO_NULL,
};

TEST_SUITES({.pName = "redis-subscription", .pSetUpFunc = up, .pTearDownFunc = down, .pTests = tests});
