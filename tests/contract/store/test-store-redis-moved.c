/* SPDX-License-Identifier: MIT */

/* Redis moves to another address. One server plays both Redis servers, at 127.0.0.1 and 127.0.0.2. */

#include <string.h>

#include "base/file.h"
#include "store/redis/store-redis.h"
#include "tests/harness/port.h"
#include "tests/harness/redis/redis-bed.h"

static const char *host = "127.0.0.1";
static unsigned port;
static char *others; /* hosts of the url; or NULL */

static struct redis_settings settings_now(void) {
    struct redis_settings settings = redis_bed_settings();

    settings.unix_path = NULL;
    settings.host = (char *) host;
    settings.port = (uint16_t) port;
    settings.tls.is_used = false;
    settings.others = others;
    return settings;
}

static int make(_unused_ void *userdata, _unused_ unsigned number, const char *name, bool is_first, sd_event *event,
                struct events *events, const struct store_listener *listener, struct store **ret) {
    struct redis_settings settings = settings_now();
    struct store_redis_options options = {.redis = &settings, .namespace = "test", .version = "1", .host = name,
                                          .lease_usec = redis_bed.lease, .heartbeat_usec = redis_bed.heartbeat};

    if (is_first)
        redis_bed_command("FLUSHALL");
    return store_redis_new(ret, event, events, &options, listener);
}

static bool begin(struct bed *b) {
    static const struct store_fixture fixture = {.n_hosts = 1, .make = make};

    host = "127.0.0.1";
    return bed_init(b, &fixture, redis_bed_pools, ELEMENTSOF(redis_bed_pools)) && bed_start(b);
}

static void use(struct bed *b, const char *other) {
    struct redis_settings settings;

    host = other;
    settings = settings_now();
    TEST_INT(store_redis_use(b->stores[0], &settings), 0);
}

static bool has_line(const struct bed *b, const char *event, const char *word, const char *field) {
    _cleanup_free_ char *said = capture_read((struct capture *) &b->capture);
    const char *line = strstr(said, event);
    char *end = line ? strchr(line, '\n') : NULL;

    if (!end)
        return false;
    *end = '\0';
    return strstr(line, word) && strstr(line, field);
}

static void test_by_reload(void) {
    char first[64], second[64], word[160];
    struct bed b;

    redis_bed.password = "first";
    redis_bed_command("ACL SETUSER default >first");
    if (!begin(&b))
        return;
    (void) snprintf(first, sizeof(first), "redis=127.0.0.1:%u ", port);
    CU_ASSERT(has_line(&b, "redis-connected: ", "", first));
    struct probe *held = bed_probe(&b, 0, "db:1");
    probe_grant(held);
    redis_bed_command("ACL SETUSER default >second");
    redis_bed.password = "second";
    use(&b, "127.0.0.2");
    BED_UNTIL(&b, bed_has_event(&b, "redis-moved: "));
    (void) snprintf(word, sizeof(word), "Redis is at 127.0.0.2:%u now, it was at 127.0.0.1:%u: reload", port, port);
    (void) snprintf(second, sizeof(second), "redis=127.0.0.2:%u ", port);
    CU_ASSERT(has_line(&b, "redis-moved: ", word, second));
    CU_ASSERT(has_line(&b, "redis-moved: ", "reason=reload", second));
    BED_UNTIL(&b, bed_count_events(&b, "redis-connected: ") == 2); /* it follows */
    TEST_INT(bed_count_events(&b, "redis-lost: "), 0);
    TEST_INT(held->n_lost, 0);
    probe_end(held);
    bed_done(&b);
    redis_bed_command("ACL SETUSER default nopass");
    redis_bed.password = NULL;
}

static void test_by_name(void) {
    char first[64], word[160];
    struct bed b;

    if (!begin(&b))
        return;
    use(&b, "127.0.0.2"); /* as a name that is looked up again: nothing happens while it is connected */
    bed_settle(&b);
    TEST_INT(bed_count_events(&b, "redis-moved: "), 0);
    redis_bed_command("CLIENT KILL TYPE normal");
    BED_UNTIL(&b, bed_has_event(&b, "redis-moved: "));
    (void) snprintf(word, sizeof(word), "Redis is at 127.0.0.2:%u now, it was at 127.0.0.1:%u: the name has another address",
                    port, port);
    CU_ASSERT(has_line(&b, "redis-moved: ", word, "redis=127.0.0.2"));
    (void) snprintf(first, sizeof(first), "redis=127.0.0.1:%u ", port);
    CU_ASSERT(has_line(&b, "redis-lost: ", "", first)); /* where it was lost */
    BED_UNTIL(&b, bed_all_ready(&b));
    redis_bed_command("CLIENT KILL TYPE normal");
    BED_UNTIL(&b, bed_count_events(&b, "redis-connected: ") == 3);
    TEST_INT(bed_count_events(&b, "redis-moved: "), 1); /* the same address */
    bed_done(&b);
}

/* The url names several hosts, and the next one answers. */
static void test_by_host(void) {
    char second[32];
    struct bed b;

    (void) snprintf(second, sizeof(second), "127.0.0.1:%u", port);
    others = second;
    if (begin(&b)) {
        use(&b, "127.0.0.2");
        bed_settle(&b);
        redis_bed_command("CLIENT KILL TYPE normal");
        BED_UNTIL(&b, bed_has_event(&b, "redis-moved: "));
        CU_ASSERT(has_line(&b, "redis-moved: ", "another host of the url answers", "redis=127.0.0.2"));
        BED_UNTIL(&b, bed_all_ready(&b));
        bed_done(&b);
    }
    others = NULL;
}

static int prepare(void) {
    char text[64];

    port = port_reserve();
    (void) snprintf(text, sizeof(text), "CONFIG SET port %u", port);
    _cleanup_reply_ redisReply *at = redis_command(&redis_bed.server, "CONFIG SET bind %s", "127.0.0.1 127.0.0.2"),
                               *on = redis_command(&redis_bed.server, text);
    return at && at->type == REDIS_REPLY_STATUS && on && on->type == REDIS_REPLY_STATUS ? 0 : -EIO;
}

static CU_TestInfo tests[] = {
    {"by reload", test_by_reload},
    {"by name", test_by_name},
    {"by host", test_by_host},
    CU_TEST_INFO_NULL,
};

int main(int argc, char **argv) {
    CU_SuiteInfo suites[] = {{.pName = "store-redis-moved", .pTests = tests}, CU_SUITE_INFO_NULL};

    return redis_bed_main(argc, argv, suites, prepare);
}
