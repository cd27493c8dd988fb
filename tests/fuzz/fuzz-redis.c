/* SPDX-License-Identifier: MIT */

/* What a Redis may answer: the store on Redis talks to a server (redis-peer.h) that answers as the scripts would, so that all states are
 * reached; the input decides what is asked of the store, when time passes, what is pushed, and which answers are changed, and how.
 *
 * The input is steps of a byte and what each of them takes: see step(). */

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/journal/journal.h"
#include "base/socket.h"
#include "conf/redis-url.h"
#include "conf/settings.h"
#include "store/store.h"
#include "tests/fuzz/fuzz.h"
#include "tests/harness/redis/redis-peer.h"

#define CONNECTIONS_MAX 8
#define CLAIMS 6
#define STEPS_MAX 200
#define TURNS_MAX 60
#define ANSWER_SIZE 16384

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
    const uint8_t *input; /* not used yet */
    size_t left;
    unsigned last_id;
    int subscriber;       /* -1: none */
} f = {.listener = -1, .subscriber = -1};

/* --- the listener of the store: notes grants, and releases them --- */

static void on_claim(_unused_ struct claim *c, _unused_ void *userdata) {
}
static void on_refused(_unused_ struct claim *c, enum store_refusal refusal, const char *pool, _unused_ void *userdata) {
    FUZZ_ASSERT(store_refusal_name(refusal) && pool);
}
static void on_lost(_unused_ struct claim *c, _unused_ enum store_loss loss, _unused_ void *userdata) {
}
static void on_turn_refused(_unused_ struct claim *c, _unused_ const struct store_turn_answer *answer, _unused_ void *userdata) {
}
static void on_committed(_unused_ struct claim *c, _unused_ bool is_ours, _unused_ void *userdata) {
}
static void on_turn_superseded(_unused_ struct claim *c, const struct store_ended_turn *turn, _unused_ void *userdata) {
    FUZZ_ASSERT(turn->attempt > 0 && strlen(turn->chain) < TURN_CHAIN_SIZE);
}

static void on_turn_open(_unused_ struct store *s, _unused_ const struct store_open_turn *turn, _unused_ void *userdata) {
}
static void on_done(_unused_ int r, _unused_ void *userdata) {
}
static void on_deadline(_unused_ struct store *s, _unused_ usec_t deadline, _unused_ void *userdata) {
}
static void on_state(_unused_ struct store *s, _unused_ enum store_state state, _unused_ void *userdata) {
}
static void on_inspected(int r, struct snapshot *snapshot, _unused_ void *userdata) {
    FUZZ_ASSERT((r == 0) == (snapshot != NULL));
    snapshot_free(snapshot);
}

/* --- time --- */

static long long passed; /* ns: what the store takes for CLOCK_BOOTTIME is so much later */

/* In place of libc's, for this program and for the library with the event loop. */
int clock_gettime(clockid_t id, struct timespec *ts) {
    if (syscall(SYS_clock_gettime, id, ts) < 0)
        return -1;
    if (id == CLOCK_BOOTTIME) {
        long long sum = ts->tv_nsec + passed;

        ts->tv_sec += sum / 1000000000;
        ts->tv_nsec = sum % 1000000000;
    }
    return 0;
}

/* --- the server --- */

static void answer_one(struct peer_connection *p, const redisReply *command) {
    char answer[ANSWER_SIZE];
    size_t size = redis_peer_answer(command, answer, sizeof(answer));

    if (command->type == REDIS_REPLY_ARRAY && command->elements > 0 && strcmp(command->element[0]->str, "SSUBSCRIBE") == 0)
        f.subscriber = p->fd;
    if (size == 0)
        (void) shutdown(p->fd, SHUT_RDWR);
    else
        (void) !send(p->fd, answer, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Whether anything was done. */
static bool serve(struct peer_connection *p) {
    char data[65536];
    ssize_t n = recv(p->fd, data, sizeof(data), MSG_DONTWAIT);
    void *command = NULL;

    if (n > 0)
        (void) redisReaderFeed(p->commands, data, (size_t) n);
    while (redisReaderGetReply(p->commands, &command) == REDIS_OK && command) {
        answer_one(p, command);
        freeReplyObject(command);
        command = NULL;
    }
    return n > 0;
}

/* The store closed it, or it was closed to it. */
static void drop_closed(void) {
    for (size_t k = f.n_peers; k-- > 0;) {
        char byte;

        if (recv(f.peers[k].fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) != 0)
            continue;
        if (f.subscriber == f.peers[k].fd)
            f.subscriber = -1;
        (void) close(f.peers[k].fd);
        redisReaderFree(f.peers[k].commands);
        f.peers[k] = f.peers[--f.n_peers];
    }
}

static void serve_all(void) {
    bool busy = true;

    for (int i = 0; i < TURNS_MAX && busy; i++) {
        int fd;

        drop_closed();
        fd = f.n_peers < CONNECTIONS_MAX ? accept4(f.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
        busy = fd >= 0;
        if (fd >= 0)
            f.peers[f.n_peers++] = (struct peer_connection) {fd, redisReaderCreate()};
        for (size_t k = 0; k < f.n_peers; k++)
            busy |= serve(&f.peers[k]);
        for (int turn = 0; turn < TURNS_MAX && sd_event_run(f.event, 0) > 0; turn++)
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

/* --- the input --- */

static uint8_t take(void) {
    if (f.left == 0)
        return 0;
    f.left--;
    return *f.input++;
}

static size_t take_text(const char **ret) {
    size_t size = take() % 48;

    if (size > f.left)
        size = f.left;
    *ret = (const char *) f.input;
    f.input += size;
    f.left -= size;
    return size;
}

static const char *known_text(uint8_t which, size_t *ret_size) {
    static const char *const texts[] = {
        "gone",
        "stale",
        "epoch",
        "ok",
        "refused",
        "busy",
        "queue-full",
        "lease-differs",
        "name-taken",
        "schema",
        "conflict",
        "unknown",
        "0",
        "-1",
        "1",
        "18446744073709551615",
        "9007199254740993",
        "H",
        "W",
        "P",
        "-",
        "[",
        "]",
        "db",
        "NOSCRIPT No matching script",
        "LOADING",
        "BUSY",
        "READONLY",
        "NOAUTH",
        "OOM command not allowed",
        "MOVED 1 127.0.0.1:1",
        "NOREPLICAS",
        "WRONGPASS",
        "00000000000000000000000000000001",
        "",
    };
    const char *text = texts[which % ELEMENTSOF(texts)];

    *ret_size = strlen(text);
    return text;
}

static void change_answer(void) {
    uint8_t kind = take() % PEER_KINDS, how = take(), at = take();
    const char *text;
    size_t size;

    if (how & 0x80)
        size = take_text(&text);
    else
        text = known_text(take(), &size);
    redis_peer_change(kind, (enum peer_change)(how % PEER_CHANGES), at, text, size);
}

static void push(bool raw) {
    char bytes[1024];
    const char *text = bytes;
    size_t size = raw ? take_text(&text) : 0;

    if (!raw) {
        uint8_t verb = take();

        size = redis_peer_push(verb, take(), bytes, sizeof(bytes));
    }
    if (f.subscriber >= 0)
        (void) !send(f.subscriber, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static struct claim claims[CLAIMS];
static char ids[CLAIMS][ID_TEXT_SIZE];

static void ask(struct store *s, uint8_t number) {
    static const struct demand_ref db = {.pool = "db", .permits = 1};
    struct claim *c = &claims[number % CLAIMS];
    char *id = ids[number % CLAIMS];

    if (c->state == CLAIM_STATE_NONE) {
        *c = (struct claim) {.demands = &db, .n_demands = 1, .id = id, .name = "job", .nowait = (number & 0x80) != 0, .keep = (number & 0x40) != 0};
        snprintf(id, ID_TEXT_SIZE, "%032u", ++f.last_id);
        FUZZ_ASSERT(store_claim(s, c) == 0);
    } else {
        store_release(s, c);
    }
}

static void administer(struct store *s, uint8_t which) {
    const struct store_override o = {.pool = which & 4 ? "db" : "none", .clear = (which & 8) != 0, .pause = (which & 16) != 0,
                                     .resume = (which & 32) != 0, .limit = which, .for_usec = USEC_INFINITY};
    char id[ID_TEXT_SIZE];

    snprintf(id, sizeof(id), "%032u", 1u);
    switch (which % 4) {
    case 0: (void) store_override(s, &o, on_done, NULL); break;
    case 1: (void) store_revoke(s, id, "reason", on_done, NULL); break;
    case 2: (void) store_end_grace(s, on_done, NULL); break;
    default: (void) store_inspect(s, NULL, on_inspected, NULL); break;
    }
}

static void declare(struct store *s, uint8_t limit) {
    const struct store_pool pools[] = {{.name = "db", .limit = limit, .queue_limit = 10}, {.name = "local", .is_host_scoped = true}};

    FUZZ_ASSERT(store_declare(s, pools, ELEMENTSOF(pools), false) == 0);
}

static void step(struct store *s) {
    switch (take() % 10) {
    case 0:
    case 1:
    case 2: change_answer(); return; /* and go on: it is for a call that is yet to come */
    case 3: push(false); break;
    case 4: push(true); break;
    case 5: ask(s, take()); break;
    case 6: /* several in one turn of the event loop */
        for (uint8_t n = take() % CLAIMS; n > 0; n--)
            ask(s, take());
        break;
    case 7: administer(s, take()); break;
    case 8: passed += (take() + 1) * 20000000LL; break; /* up to 5 s: the lease is 3 */
    default:
        if (f.left % 2)
            redis_peer_wipe();
        else
            declare(s, take());
    }
    serve_all();
}

static void drop_peers(void) {
    for (size_t k = 0; k < f.n_peers; k++) {
        (void) close(f.peers[k].fd);
        redisReaderFree(f.peers[k].commands);
    }
    f.n_peers = 0;
    f.subscriber = -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct store_listener listener = {.on_waiting = on_claim,
                                                   .on_granted = on_claim,
                                                   .on_refused = on_refused,
                                                   .on_lost = on_lost,
                                                   .on_released = on_claim,
                                                   .on_deadline = on_deadline,
                                                   .on_state = on_state,
                                                   .on_turn_refused = on_turn_refused,
                                                   .on_committed = on_committed,
                                                   .on_turn_open = on_turn_open,
                                                   .on_turn_superseded = on_turn_superseded};
    static const struct demand_ref db = {.pool = "db", .permits = 1};
    struct redis_settings redis = {.timeout_usec = USEC_PER_SEC, .connect_timeout_usec = USEC_PER_SEC, .username = (char *) "", .password_file = (char *) ""};
    struct store_redis_options options = {.redis = &redis, .host = "host", .namespace = "test", .version = VERSION,
                                          .lease_usec = 3 * USEC_PER_SEC, .heartbeat_usec = USEC_PER_SEC / 2};
    struct store *s = NULL;

    if (f.listener < 0)
        set_up();
    f.input = data;
    f.left = size;
    f.last_id = 1;
    redis.unix_path = f.path;
    redis_peer_reset();
    memset(claims, 0, sizeof(claims));
    FUZZ_ASSERT(store_redis_new(&s, f.event, f.events, &options, &listener) == 0);
    declare(s, 3);
    claims[0] = (struct claim) {.demands = &db, .n_demands = 1, .id = ids[0], .name = "job", .token = 1000, .ticket = 1000};
    snprintf(ids[0], sizeof(ids[0]), "%032u", 1u);
    FUZZ_ASSERT(store_adopt(s, &claims[0]) == 0);
    FUZZ_ASSERT(store_start(s) >= 0);
    for (unsigned i = 0; f.left > 0 && i < STEPS_MAX; i++)
        step(s);
    serve_all();
    store_stop(s, on_done, NULL);
    serve_all();
    store_free(s);
    drop_peers();
    for (int turn = 0; turn < TURNS_MAX && sd_event_run(f.event, 0) > 0; turn++)
        ;
    return 0;
}
