/* SPDX-License-Identifier: MIT */

/* What a Redis may answer: the store on Redis talks to a server whose answers are the input's, one for each command that it sends,
 * well-formed as such and with any content. */

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/journal.h"
#include "base/socket.h"
#include "conf/redis-url.h"
#include "conf/settings.h"
#include "daemon/store.h"
#include "tests/fuzz/fuzz.h"

#define CONNECTIONS_MAX 8

struct peer_connection {
    int fd;
    redisReader *commands;
};

static struct {
    sd_event *event;
    struct journal *journal;
    struct events *events;
    struct peer_connection peers[CONNECTIONS_MAX];
    size_t n_peers;
    int listener;
    char path[64];
    const char *input; /* not used yet */
    size_t left;
} f = {.listener = -1};

/* --- the listener of the store: hears, and lets go --- */

static void on_claim(struct claim *c, void *userdata) {
    (void) c;
    (void) userdata;
}
static void on_refused(struct claim *c, enum store_refusal refusal, const char *pool, void *userdata) {
    (void) c;
    (void) userdata;
    FUZZ_ASSERT(store_refusal_name(refusal) && pool);
}
static void on_lost(struct claim *c, enum store_loss loss, void *userdata) {
    (void) c;
    (void) loss;
    (void) userdata;
}
static void on_deadline(struct store *s, usec_t deadline, void *userdata) {
    (void) s;
    (void) deadline;
    (void) userdata;
}
static void on_state(struct store *s, enum store_state state, void *userdata) {
    (void) s;
    (void) state;
    (void) userdata;
}
static void on_inspected(int r, struct snapshot *snapshot, void *userdata) {
    (void) userdata;
    FUZZ_ASSERT((r == 0) == (snapshot != NULL));
    snapshot_free(snapshot);
}

/* --- the server --- */

/* The next whole reply of the input, with its size; 0: what is left is none. */
static size_t next_reply(void) {
    redisReader *reader = redisReaderCreate();
    size_t size = 0;
    void *reply = NULL;

    for (size_t fed = 0; fed < f.left && !reply;) {
        size_t n = strcspn(f.input + fed, "\n") + 1;

        n = fed + n > f.left ? f.left - fed : n;
        if (redisReaderFeed(reader, f.input + fed, n) != REDIS_OK || redisReaderGetReply(reader, &reply) != REDIS_OK)
            break;
        fed += n;
        size = reply ? fed : 0;
    }
    if (reply)
        freeReplyObject(reply);
    redisReaderFree(reader);
    return size;
}

static bool answer_one(struct peer_connection *p) {
    size_t size = next_reply();

    if (size == 0)
        return false;
    (void) !send(p->fd, f.input, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    f.input += size;
    f.left -= size;
    return true;
}

/* Whether anything was done. */
static bool serve(struct peer_connection *p) {
    char data[16384];
    ssize_t n = recv(p->fd, data, sizeof(data), MSG_DONTWAIT);
    bool busy = n > 0;
    void *command = NULL;

    if (n > 0)
        (void) redisReaderFeed(p->commands, data, (size_t) n);
    while (redisReaderGetReply(p->commands, &command) == REDIS_OK && command) {
        freeReplyObject(command);
        command = NULL;
        if (!answer_one(p))
            (void) shutdown(p->fd, SHUT_RDWR); /* the input is used up */
    }
    return busy;
}

static void serve_all(void) {
    bool busy = true;

    for (int i = 0; i < 100 && busy; i++) {
        int fd = f.n_peers < CONNECTIONS_MAX ? accept4(f.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;

        busy = fd >= 0;
        if (fd >= 0)
            f.peers[f.n_peers++] = (struct peer_connection) {fd, redisReaderCreate()};
        for (size_t k = 0; k < f.n_peers; k++)
            busy |= serve(&f.peers[k]);
        while (sd_event_run(f.event, 0) > 0)
            busy = true;
    }
}

static void remove_socket(void) {
    (void) unlink(f.path);
}

static void set_up(void) {
    snprintf(f.path, sizeof(f.path), "/tmp/berth-fuzz-redis-%d", (int) getpid());
    FUZZ_ASSERT(sd_event_new(&f.event) >= 0);
    FUZZ_ASSERT(journal_new(&f.journal, "fuzz") == 0);
    FUZZ_ASSERT(events_new(&f.events, f.journal, "host", "test") == 0);
    f.listener = socket_listen(f.path, SOCK_STREAM, 0600);
    FUZZ_ASSERT(f.listener >= 0);
    (void) atexit(remove_socket);
}

static void fill_claim(struct claim *c, unsigned number, uint64_t token) {
    static struct demand db = {.pool = "db", .permits = 1};

    *c = (struct claim) {.demands = &db, .n_demands = 1, .name = "job", .token = token, .ticket = token};
    snprintf(c->id, sizeof(c->id), "%032u", number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct store_listener listener = {on_claim, on_claim, on_refused, on_lost, on_claim, on_deadline, on_state, NULL};
    static struct claim held, waiting;
    _cleanup_free_ char *copy = strndup((const char *) data, size);
    struct redis_settings redis = {.timeout_usec = USEC_PER_SEC, .username = (char *) "", .password_file = (char *) ""};
    struct store_redis_options options = {.redis = &redis, .host = "host", .namespace = "test", .version = VERSION,
                                          .lease_usec = 3 * USEC_PER_SEC, .heartbeat_usec = USEC_PER_SEC / 2};
    struct store_pool pool = {.name = "db", .limit = 3, .queue_limit = 10};
    struct store *s = NULL;

    if (f.listener < 0)
        set_up();
    f.input = copy;
    f.left = strlen(copy);
    redis.unix_path = f.path;
    FUZZ_ASSERT(store_redis_new(&s, f.event, f.events, &options, &listener) == 0);
    FUZZ_ASSERT(store_declare(s, &pool, 1) == 0);
    fill_claim(&held, 1, 1000);
    fill_claim(&waiting, 2, 0);
    FUZZ_ASSERT(store_adopt(s, &held) == 0);
    FUZZ_ASSERT(store_start(s) >= 0);
    FUZZ_ASSERT(store_claim(s, &waiting) == 0);
    serve_all();
    (void) store_inspect(s, on_inspected, NULL);
    store_release(s, &held);
    serve_all();
    store_free(s);
    for (size_t k = 0; k < f.n_peers; k++) {
        (void) close(f.peers[k].fd);
        redisReaderFree(f.peers[k].commands);
    }
    f.n_peers = 0;
    while (sd_event_run(f.event, 0) > 0)
        ;
    return 0;
}
